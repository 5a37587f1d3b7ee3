//! Durable processes of boxes: started by a person to outlive them, listed, ended.
//!
//! box-guest holds the process and its output; a task of the host takes the output into the
//! process's log ([`crate::logs`]) and lets the guest forget it. Without a host the guest keeps what
//! comes, and the process waits once that is full: nothing is lost and nothing runs over. The next
//! host goes on where the last one was ([`resume`]).

mod collect;
pub(crate) mod rows;

use crate::boxes::{self, BoxRecord, FindError};
use crate::caller::Caller;
use crate::credentials;
use crate::host::Host;
use crate::logs;
use crate::store::{Durability, StoreError};
use crate::watch;
use box_api::control::{
    BoxState, End, Exec, KillProcess, ProcessInfo, ProcessKind, ProcessState, Spawn,
};
use box_api::guest::{ProcessNameError, Refusal};
use box_api::{BoxId, BoxName};
use box_runtime::guest::{self, GuestError, Kill, ProcessName};
use box_runtime::{ExecSpec, RuntimeError};
use rows::{Detached, Kept};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Detached processes of one box that are remembered, ended ones included; the oldest ended one
/// makes room.
const DETACHED_MAX: usize = 64;
/// Names tried after one another when a person chose none.
const NAMES_MAX: usize = DETACHED_MAX + box_api::guest::PROCESSES_MAX;
/// Characters of a name made of the program's.
const NAME_CHARS_MAX: usize = 40;
/// How long a process that was asked to end may take.
const ASKED_WAIT: Duration = Duration::from_secs(10);
/// How long one that was killed may take to be gone.
const KILLED_WAIT: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Highest signal number on Linux (signal(7)).
const SIGNAL_MAX: i32 = 64;

/// Why nothing was started, shown or ended.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("there is no command to run")]
    NoCommand,
    #[error("a detached process has no terminal")]
    Terminal,
    #[error("`{name}` cannot name a process")]
    Name {
        name: String,
        #[source]
        source: ProcessNameError,
    },
    #[error("box `{name}` is {}", boxes::state_word(*state))]
    NotRunning { name: BoxName, state: BoxState },
    #[error("process `{process}` of box `{name}` runs already")]
    Exists { name: BoxName, process: String },
    #[error("box `{0}` has {DETACHED_MAX} detached processes that run")]
    TooMany(BoxName),
    #[error("box `{name}` has no process `{process}`")]
    Unknown {
        name: BoxName,
        process: String,
        known: Vec<String>,
    },
    #[error("there is no signal {0}")]
    Signal(i32),
    #[error("process `{process}` of box `{name}` does not end")]
    Stays { name: BoxName, process: String },
    #[error("the engine of box `{0}` keeps no processes")]
    NoProcesses(BoxName),
    #[error("could not {action} in box `{name}`")]
    Engine {
        name: BoxName,
        action: String,
        #[source]
        source: RuntimeError,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Starts a process that outlives its caller and this host.
///
/// # Errors
/// [`ProcessError`]
pub async fn spawn(
    host: &Arc<Host>,
    caller: &Caller,
    asked: Spawn,
) -> Result<ProcessInfo, ProcessError> {
    let Spawn { process, exec } = asked;
    let Some(program) = exec.command.first().cloned() else {
        return Err(ProcessError::NoCommand);
    };
    if exec.terminal.is_some() {
        return Err(ProcessError::Terminal);
    }
    let chosen = process.map(|name| parse(&name)).transpose()?;
    let record = running(host, caller, &exec.name).await?;
    let name = free_name(host, &record, chosen, &program).await?;
    let row = Detached {
        box_id: record.id,
        name,
        command: exec.command.clone(),
        started_at_ms: host.now_ms(),
        ended_at_ms: None,
        code: None,
        kept: Kept::default(),
    };
    // First the row: a host that dies after the process began takes it up by it.
    let stored = row.clone();
    host.store
        .write(Durability::Prompt, move |tables| {
            rows::insert(tables, &stored)
        })
        .await?;
    let begun = begin(host, &record, &row, exec).await;
    let pid = match begun {
        Ok(pid) => pid,
        Err(error) => {
            forget_row(host, record.id, row.name).await?;
            return Err(error);
        }
    };
    let info = shown(&row, Some((pid, None)));
    collect::begin(host, row);
    Ok(info)
}

/// Every durable process of a box: those a person started, oldest first, then those of agents.
///
/// # Errors
/// [`ProcessError`]
pub async fn list(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
) -> Result<Vec<ProcessInfo>, ProcessError> {
    let record = boxes::find(host, caller, name).await?;
    all(host, &record).await
}

/// How many processes run in a box, where the engine counts them.
pub async fn count(host: &Host, caller: &Caller, name: &BoxName) -> Option<u32> {
    let record = boxes::find(host, caller, name).await.ok()?;
    let runtime = host.runtime_of(&record).ok()?;
    let usage = runtime.limiter()?.usage(&record.id).await.ok()?;
    Some(usage.processes)
}

/// Whether anything that was started to outlive its caller runs in a box.
pub(crate) async fn run_in(host: &Host, id: BoxId) -> Result<bool, StoreError> {
    let open = host.store.read(rows::open).await?;
    Ok(open.iter().any(|row| row.box_id == id))
}

/// Ends a durable process, or sends it a signal.
///
/// # Errors
/// [`ProcessError`]
pub async fn kill(host: &Host, caller: &Caller, asked: KillProcess) -> Result<(), ProcessError> {
    if let End::Signal(number) = asked.how
        && !(1..=SIGNAL_MAX).contains(&number)
    {
        return Err(ProcessError::Signal(number));
    }
    let record = boxes::find(host, caller, &asked.name).await?;
    let process = parse(&asked.process)?;
    let known = all(host, &record).await?;
    let Some(found) = known.iter().find(|one| one.process == process.as_str()) else {
        return Err(ProcessError::Unknown {
            name: record.name,
            process: asked.process,
            known: known.into_iter().map(|one| one.process).collect(),
        });
    };
    if found.state != ProcessState::Running {
        return Ok(());
    }
    match asked.how {
        End::Signal(number) => send(host, &record, &process, Kill::Signal(number)).await,
        End::Ask => {
            send(host, &record, &process, Kill::Signal(SIGTERM)).await?;
            if has_ended(host, &record, &process, ASKED_WAIT).await? {
                return Ok(());
            }
            end_now(host, &record, &process).await
        }
        End::Now => end_now(host, &record, &process).await,
    }
}

/// signal(7)
const SIGTERM: i32 = 15;

async fn end_now(
    host: &Host,
    record: &BoxRecord,
    process: &ProcessName,
) -> Result<(), ProcessError> {
    send(host, record, process, Kill::Everything).await?;
    if has_ended(host, record, process, KILLED_WAIT).await? {
        return Ok(());
    }
    Err(ProcessError::Stays {
        name: record.name.clone(),
        process: process.to_string(),
    })
}

/// Takes up what earlier hosts started.
///
/// # Errors
/// What the store said.
pub async fn resume(host: &Arc<Host>) -> Result<usize, StoreError> {
    let open = host.store.read(rows::open).await?;
    let count = open.len();
    for row in open {
        collect::begin(host, row);
    }
    Ok(count)
}

fn parse(name: &str) -> Result<ProcessName, ProcessError> {
    ProcessName::parse(name).map_err(|source| ProcessError::Name {
        name: name.to_owned(),
        source,
    })
}

async fn running(host: &Host, caller: &Caller, name: &BoxName) -> Result<BoxRecord, ProcessError> {
    let record = boxes::find(host, caller, name).await?;
    if record.state == BoxState::Running {
        return Ok(record);
    }
    Err(ProcessError::NotRunning {
        name: record.name,
        state: record.state,
    })
}

/// A name nothing that runs has, with room for it among the box's rows.
async fn free_name(
    host: &Host,
    record: &BoxRecord,
    chosen: Option<ProcessName>,
    program: &str,
) -> Result<ProcessName, ProcessError> {
    let known = all(host, record).await?;
    let runs = |name: &str| {
        known
            .iter()
            .any(|one| one.process == name && one.state == ProcessState::Running)
    };
    let name = match chosen {
        Some(name) if runs(name.as_str()) => {
            return Err(ProcessError::Exists {
                name: record.name.clone(),
                process: name.to_string(),
            });
        }
        Some(name) => name,
        None => {
            made_up(program, &known).ok_or_else(|| ProcessError::TooMany(record.name.clone()))?
        }
    };
    let detached: Vec<&ProcessInfo> = known
        .iter()
        .filter(|one| one.kind == ProcessKind::Detached)
        .collect();
    let ended = detached
        .iter()
        .find(|one| one.state != ProcessState::Running);
    let replaces = detached.iter().any(|one| one.process == name.as_str());
    match (detached.len() < DETACHED_MAX || replaces, ended) {
        (true, _) => {}
        (false, Some(oldest)) => {
            let oldest = parse(&oldest.process)?;
            forget_row(host, record.id, oldest).await?;
        }
        (false, None) => return Err(ProcessError::TooMany(record.name.clone())),
    }
    logs::remove(host, &record.id, &name).await;
    Ok(name)
}

/// The program's own name, with a number when a process has it.
fn made_up(program: &str, known: &[ProcessInfo]) -> Option<ProcessName> {
    let own = program.rsplit('/').next().unwrap_or_default();
    let plain: String = own
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(NAME_CHARS_MAX)
        .collect();
    let base = match plain.trim_matches('-') {
        "" => "process",
        base => base,
    };
    let free = |name: &String| known.iter().all(|one| one.process != *name);
    let numbered = (2..NAMES_MAX).map(|number| format!("{base}-{number}"));
    let name = std::iter::once(base.to_owned())
        .chain(numbered)
        .find(free)?;
    ProcessName::parse(&name).ok()
}

async fn begin(
    host: &Host,
    record: &BoxRecord,
    row: &Detached,
    exec: Exec,
) -> Result<u32, ProcessError> {
    let program = row.command.first().cloned().unwrap_or_default();
    let failed = |source: RuntimeError| ProcessError::Engine {
        name: record.name.clone(),
        action: format!("start `{program}`"),
        source,
    };
    logs::append(host, &record.id, &row.name, Vec::new())
        .await
        .map_err(|error| failed(RuntimeError::engine("make its log", error)))?;
    let mut env = credentials::environment_for_process(host, record).await?;
    env.extend(exec.env);
    let spec = ExecSpec {
        command: exec.command,
        cwd: exec.cwd,
        env,
        terminal: None,
    };
    let command =
        guest::command_of(spec).map_err(|error| failed(GuestError::from(error).into()))?;
    // An ended process of that name that no host has forgotten yet.
    drop(guest::forget(connect(host, record).await?, &row.name).await);
    let spawned = guest::spawn(connect(host, record).await?, &row.name, command).await;
    spawned.map_err(|error| {
        let exists = matches!(&error, GuestError::Refused { why, .. } if *why == Refusal::Exists);
        if exists {
            return ProcessError::Exists {
                name: record.name.clone(),
                process: row.name.to_string(),
            };
        }
        failed(error.into())
    })
}

async fn connect(host: &Host, record: &BoxRecord) -> Result<OwnedFd, ProcessError> {
    let failed = |source| match source {
        RuntimeError::NotRunning(_) | RuntimeError::NotFound(_) => ProcessError::NotRunning {
            name: record.name.clone(),
            state: BoxState::Stopped,
        },
        source @ (RuntimeError::Exists(_)
        | RuntimeError::Refused { .. }
        | RuntimeError::Engine { .. }) => ProcessError::Engine {
            name: record.name.clone(),
            action: "reach its processes".to_owned(),
            source,
        },
    };
    let awake = watch::awake(host, record).await.map_err(failed)?;
    let processes = awake
        .processes()
        .ok_or_else(|| ProcessError::NoProcesses(record.name.clone()))?;
    processes.connect(&record.id).await.map_err(failed)
}

async fn send(
    host: &Host,
    record: &BoxRecord,
    process: &ProcessName,
    how: Kill,
) -> Result<(), ProcessError> {
    match guest::kill(connect(host, record).await?, process, how).await {
        Ok(())
        | Err(GuestError::Refused {
            why: Refusal::NotFound,
            ..
        }) => Ok(()),
        Err(error) => Err(ProcessError::Engine {
            name: record.name.clone(),
            action: format!("end process `{process}`"),
            source: error.into(),
        }),
    }
}

/// Waits until a process has ended; says whether it did in time.
async fn has_ended(
    host: &Host,
    record: &BoxRecord,
    process: &ProcessName,
    patience: Duration,
) -> Result<bool, ProcessError> {
    let deadline = tokio::time::Instant::now() + patience;
    loop {
        let runs = all(host, record)
            .await?
            .iter()
            .any(|one| one.process == process.as_str() && one.state == ProcessState::Running);
        if !runs {
            return Ok(true);
        }
        if tokio::time::Instant::now() >= deadline {
            return Ok(false);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn forget_row(host: &Host, id: BoxId, name: ProcessName) -> Result<(), StoreError> {
    logs::remove(host, &id, &name).await;
    host.store
        .write(Durability::Prompt, move |tables| {
            rows::remove(tables, &id, &name)
        })
        .await
}

async fn all(host: &Host, record: &BoxRecord) -> Result<Vec<ProcessInfo>, ProcessError> {
    // The guest first: a process it has forgotten has its end in the row by then.
    let held = match connect(host, record).await {
        Ok(conn) => guest::list(conn).await.unwrap_or_default(),
        // A box that does not run has no processes.
        Err(ProcessError::NotRunning { .. } | ProcessError::NoProcesses(_)) => Vec::new(),
        Err(error) => return Err(error),
    };
    let id = record.id;
    let detached = host
        .store
        .read(move |tables| rows::of_box(tables, &id))
        .await?;
    let mut processes: Vec<ProcessInfo> = detached
        .iter()
        .map(|row| {
            let seen = held.iter().find(|one| one.process == row.name);
            shown(row, seen.map(|one| (one.pid, one.code)))
        })
        .collect();
    let agents = held
        .iter()
        .filter(|one| detached.iter().all(|row| row.name != one.process));
    processes.extend(agents.map(|one| ProcessInfo {
        process: one.process.to_string(),
        kind: ProcessKind::Agent,
        state: match one.code {
            None => ProcessState::Running,
            code @ Some(_) => ProcessState::Ended { code },
        },
        pid: one.code.is_none().then_some(one.pid),
        command: Vec::new(),
        started_at_ms: None,
        ended_at_ms: None,
    }));
    Ok(processes)
}

/// What the row says, and the guest: pid, and code once it has ended.
fn shown(row: &Detached, seen: Option<(u32, Option<i32>)>) -> ProcessInfo {
    let (pid, state) = match (row.ended_at_ms, seen) {
        (None, Some((pid, None))) => (Some(pid), ProcessState::Running),
        (None, Some((_, code))) => (None, ProcessState::Ended { code }),
        (Some(_), _) | (None, None) => (None, ProcessState::Ended { code: row.code }),
    };
    ProcessInfo {
        process: row.name.to_string(),
        kind: ProcessKind::Detached,
        state,
        pid,
        command: row.command.clone(),
        started_at_ms: Some(row.started_at_ms),
        ended_at_ms: row.ended_at_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_named_after_its_program() {
        let known = |names: &[&str]| -> Vec<ProcessInfo> {
            let one = |name: &&str| ProcessInfo {
                process: (*name).to_owned(),
                kind: ProcessKind::Detached,
                state: ProcessState::Running,
                pid: None,
                command: Vec::new(),
                started_at_ms: None,
                ended_at_ms: None,
            };
            names.iter().map(one).collect()
        };
        let named = |program: &str, names: &[&str]| {
            made_up(program, &known(names)).map(|name| name.to_string())
        };
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(named("/usr/bin/python3", &[]), some("python3"));
        assert_eq!(named("npm", &["npm", "npm-2"]), some("npm-3"));
        assert_eq!(named("./Serve_It.sh", &[]), some("serve-it-sh"));
        assert_eq!(named("/", &[]), some("process"));
        assert_eq!(named("ünïcode", &[]), some("n-code"));
    }
}
