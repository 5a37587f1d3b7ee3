//! A conversation that an agent recorded on a machine becomes a thread of a box: its rows at once,
//! and the file itself where the agent looks for it, so that the next prompt goes on with it.

use super::{RunError, Running, home};
use crate::agents;
use crate::boxes;
use crate::caller::Caller;
use crate::clock::shown_ms;
use crate::host::Host;
use crate::journal::{self, Place};
use crate::lifecycle;
use crate::recorded::{self, Recorded, RecordedError, Recorder};
use crate::store::Durability;
use crate::thread::saved::{self, NewThread};
use crate::thread::state::{Asks, Settings, ThreadState};
use box_api::control::ThreadImported;
use box_api::guest::WORKSPACE;
use box_api::thread::{Item, JournalRow};
use box_api::{BoxName, ThreadId};
use box_runtime::Progress;
use std::sync::Arc;

/// Why a conversation did not become a thread.
#[derive(Debug, thiserror::Error)]
pub enum TakeInError {
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Makes a thread of a box of the caller's out of a file that is called `file`. The box is started
/// if it does not run, the agent with the first prompt.
///
/// # Errors
/// [`TakeInError`]; nothing was changed then but that the box runs.
pub async fn take_in(
    host: &Arc<Host>,
    caller: &Caller,
    (name, file, content): (&BoxName, &str, Vec<u8>),
    progress: Arc<dyn Progress>,
) -> Result<ThreadImported, TakeInError> {
    let record = boxes::find(host, caller, name)
        .await
        .map_err(RunError::from)?;
    let (shown, now_ms) = (file.to_owned(), host.now_ms());
    let read = tokio::task::spawn_blocking(move || {
        recorded::read(&shown, &content, now_ms).map(|read| (read, content))
    });
    // Should the reading ever panic, nothing is taken in.
    let foreign = || RecordedError::Foreign(file.to_owned());
    let (read, content) = read.await.map_err(|_| foreign())??;
    let agent = read.agent.agent();
    let profile = agents::find(agent).map_err(RunError::from)?;
    agents::ensure(profile, &host.paths.data, &*progress)
        .await
        .map_err(RunError::from)?;
    let record = lifecycle::start(host, record.id)
        .await
        .map_err(RunError::from)?;
    home::place(host, &record, profile).await?;
    if let Some(path) = path_of(&read) {
        home::lay(host, &record, &path, content).await?;
    }
    let thread = ThreadId::from_random(host.random.bytes());
    let (damaged, damaged_count) = (read.damaged.clone(), read.damaged_count);
    let known_as = read.known_as.clone();
    let mut state = ThreadState::new(Settings::new(profile, (record.id, thread), Asks::Person));
    let rows = rows_of(read, file, &mut state);
    let count = rows.len() as u64;
    let new = NewThread {
        owner: record.owner,
        agent: agent.to_owned(),
        state,
        at_ms: now_ms,
    };
    let write = move |tables: &rusqlite::Transaction<'_>| {
        saved::insert(tables, &new)?;
        let place = Place { thread, epoch: 1 };
        rows.iter()
            .try_for_each(|row| journal::append(tables, place, row))
    };
    host.store
        .write(Durability::Full, write)
        .await
        .map_err(RunError::from)?;
    let handle = host.threads.handle(host, thread).await;
    let handle = handle.map_err(RunError::from)?;
    let running = Running { record, handle };
    Ok(ThreadImported {
        name: running.record.name,
        thread: running.handle.thread(),
        agent: agent.to_owned(),
        rows: count,
        goes_on: known_as.is_some(),
        damaged,
        damaged_count,
    })
}

/// Below the home, where the agent looks for a conversation it is to go on with.
fn path_of(read: &Recorded) -> Option<String> {
    let id = read.known_as.as_deref()?;
    Some(match read.agent {
        Recorder::Claude => {
            let folder = WORKSPACE.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            format!(".claude/projects/{folder}/{id}.jsonl")
        }
        Recorder::Codex => {
            let began = shown_ms(read.began_at_ms.max(0));
            let moment = began.trim_end_matches('Z').replace(':', "-");
            let day = moment.split('T').next().unwrap_or_default();
            let folder = day.replace('-', "/");
            format!(".codex/sessions/{folder}/rollout-{moment}-{id}.jsonl")
        }
    })
}

/// The rows with their numbers, and the state that stands behind them.
fn rows_of(read: Recorded, file: &str, state: &mut ThreadState) -> Vec<JournalRow> {
    let last_ms = read
        .rows
        .last()
        .map_or(read.began_at_ms, |(at_ms, _)| *at_ms);
    let lost = match read.known_as {
        Some(_) => "the next prompt goes on with it",
        None => "its agent cannot go on with it: the next prompt begins a new one",
    };
    let notice = Item::Notice {
        text: format!("taken in from `{}`; {lost}", shown(file)),
    };
    let items = read.rows.into_iter().chain([(last_ms, notice)]);
    let rows: Vec<JournalRow> = (1..)
        .zip(items)
        .map(|(seq, (at_ms, item))| JournalRow { seq, at_ms, item })
        .collect();
    state.goes_on_with(read.known_as, read.title, rows.len() as u64 + 1);
    rows
}

/// A file's name, harmless and short.
fn shown(file: &str) -> String {
    let visible = file.chars().filter(|c| !c.is_control() && *c != '`');
    visible.take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(agent: Recorder, id: Option<&str>) -> Recorded {
        Recorded {
            agent,
            known_as: id.map(str::to_owned),
            title: "t".to_owned(),
            rows: Vec::new(),
            damaged: Vec::new(),
            damaged_count: 0,
            began_at_ms: 1_767_323_045_678,
        }
    }

    #[test]
    fn a_conversation_lies_where_its_agent_looks_for_it() {
        let claude = path_of(&read(Recorder::Claude, Some("a-b"))).unwrap();
        assert_eq!(claude, ".claude/projects/-workspace/a-b.jsonl");
        let codex = path_of(&read(Recorder::Codex, Some("a-b"))).unwrap();
        assert_eq!(
            codex,
            ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-a-b.jsonl"
        );
        assert_eq!(path_of(&read(Recorder::Codex, None)), None);
    }
}
