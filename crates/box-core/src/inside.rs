//! Runs a short command inside a box and waits for it.

use crate::boxes::BoxRecord;
use crate::credentials;
use crate::host::Host;
use crate::store::StoreError;
use crate::watch;
use box_runtime::{ExecSpec, RunningProcess, RuntimeError};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// How much of what it prints is kept: the end.
const WORDS_BYTES_MAX: usize = 4 << 10;
const WORDS_LINES_MAX: usize = 5;
const READ_BYTES: usize = 16 << 10;
/// How long what a command printed last may take to arrive once it has ended.
const DRAIN_WAIT: Duration = Duration::from_secs(1);
/// How much of an answer is kept: the beginning.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// Why a command inside a box did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum InsideError {
    #[error("`{program}` ended with code {code}{}", said(.words))]
    Code {
        program: String,
        code: i32,
        words: String,
    },
    #[error("`{program}` took longer than {} s", .after.as_secs())]
    Late { program: String, after: Duration },
    #[error("could not read what `{program}` said")]
    Io {
        program: String,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn said(words: &str) -> String {
    if words.is_empty() {
        String::new()
    } else {
        format!(": {words}")
    }
}

/// A command, what it reads, and how long it may take.
#[derive(Debug)]
pub(crate) struct Inside {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) input: Vec<u8>,
    pub(crate) deadline: Duration,
}

/// A command that runs, its input on its way.
struct Begun {
    program: String,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    feed: tokio::task::JoinHandle<()>,
    process: Box<dyn RunningProcess>,
}

impl Begun {
    fn io(&self) -> impl Fn(io::Error) -> InsideError + use<> {
        let program = self.program.clone();
        move |source| InsideError::Io {
            program: program.clone(),
            source,
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.feed.abort();
    }
}

/// Runs it in the workspace, with the placeholders of the box.
///
/// # Errors
/// [`InsideError`]; the command is killed when it takes too long.
pub(crate) async fn run(
    host: &Host,
    record: &BoxRecord,
    inside: Inside,
) -> Result<(), InsideError> {
    let deadline = inside.deadline;
    let env = credentials::environment_for_process(host, record).await?;
    let mut begun = begin(host, record, inside, env).await?;
    let done = async {
        tokio::join!(
            tail(&mut begun.stdout),
            tail(&mut begun.stderr),
            begun.process.wait()
        )
    };
    let done = tokio::time::timeout(deadline, done).await;
    let (stdout, stderr, code) = done.map_err(|_| late(&begun.program, deadline))?;
    let (stdout, stderr) = (stdout.map_err(begun.io())?, stderr.map_err(begun.io())?);
    match code? {
        0 => Ok(()),
        code => Err(InsideError::Code {
            program: begun.program.clone(),
            code,
            words: if stderr.is_empty() { stdout } else { stderr },
        }),
    }
}

/// Runs it in the workspace without any placeholder, and gives the beginning of what it prints.
///
/// # Errors
/// As [`run`].
pub(crate) async fn answer(
    host: &Host,
    record: &BoxRecord,
    inside: Inside,
) -> Result<Vec<u8>, InsideError> {
    answer_up_to(host, record, inside, ANSWER_BYTES_MAX).await
}

/// As [`answer`], with a bound of the caller's own, bytes.
///
/// # Errors
/// As [`run`].
pub(crate) async fn answer_up_to(
    host: &Host,
    record: &BoxRecord,
    inside: Inside,
    bytes_max: usize,
) -> Result<Vec<u8>, InsideError> {
    let deadline = inside.deadline;
    let mut begun = begin(host, record, inside, Vec::new()).await?;
    let done = async {
        tokio::join!(
            head(&mut begun.stdout, bytes_max),
            tail(&mut begun.stderr),
            begun.process.wait()
        )
    };
    let done = tokio::time::timeout(deadline, done).await;
    let (stdout, words, code) = done.map_err(|_| late(&begun.program, deadline))?;
    let (stdout, words) = (stdout.map_err(begun.io())?, words.map_err(begun.io())?);
    match code? {
        0 => Ok(stdout),
        code => Err(InsideError::Code {
            program: begun.program.clone(),
            code,
            words,
        }),
    }
}

/// Runs it in the workspace, with the placeholders of the box, and passes on all it prints as it
/// comes. Nobody has to listen. Gives its code.
///
/// # Errors
/// As [`run`].
pub(crate) async fn follow(
    host: &Host,
    record: &BoxRecord,
    inside: Inside,
    told: &mpsc::Sender<Vec<u8>>,
) -> Result<i32, InsideError> {
    let deadline = inside.deadline;
    let env = credentials::environment_for_process(host, record).await?;
    let mut begun = begin(host, record, inside, env).await?;
    let io = begun.io();
    let Begun {
        program,
        stdout,
        stderr,
        process,
        ..
    } = &mut begun;
    let mut pumps =
        std::pin::pin!(async { tokio::try_join!(pass_on(stdout, told), pass_on(stderr, told)) });
    let mut wait = std::pin::pin!(tokio::time::timeout(deadline, process.wait()));
    let code = tokio::select! {
        code = &mut wait => Some(code),
        ended = &mut pumps => {
            ended.map_err(&io)?;
            None
        }
    };
    let code = match code {
        Some(code) => {
            // What it left running may hold its output open for ever.
            drop(tokio::time::timeout(DRAIN_WAIT, pumps).await);
            code
        }
        None => wait.await,
    };
    Ok(code.map_err(|_| late(program, deadline))??)
}

fn late(program: &str, after: Duration) -> InsideError {
    InsideError::Late {
        program: program.to_owned(),
        after,
    }
}

async fn begin(
    host: &Host,
    record: &BoxRecord,
    inside: Inside,
    mut env: Vec<(String, String)>,
) -> Result<Begun, InsideError> {
    let program = inside.command.first().cloned().unwrap_or_default();
    env.extend(inside.env);
    let spec = ExecSpec {
        command: inside.command,
        cwd: None,
        env,
        terminal: None,
    };
    let awake = watch::awake(host, record).await?;
    let execution = awake.exec(&record.id, spec).await?;
    let execution = awake.with(execution);
    let io = |source| InsideError::Io {
        program: program.clone(),
        source,
    };
    let [stdin, stdout, stderr] = <[OwnedFd; 3]>::try_from(execution.streams)
        .map_err(|_| io(io::Error::other("not three streams")))?;
    let mut stdin = pipe::Sender::from_owned_fd(stdin).map_err(io)?;
    let stdout = pipe::Receiver::from_owned_fd(stdout).map_err(io)?;
    let stderr = pipe::Receiver::from_owned_fd(stderr).map_err(io)?;
    let input = inside.input;
    let feed = tokio::spawn(async move {
        // A command that does not read its input has its own reasons; its code tells.
        drop(stdin.write_all(&input).await);
    });
    Ok(Begun {
        program,
        stdout,
        stderr,
        feed,
        process: execution.process,
    })
}

async fn pass_on(
    stream: &mut (impl AsyncRead + Unpin),
    told: &mpsc::Sender<Vec<u8>>,
) -> io::Result<()> {
    let mut piece = vec![0; READ_BYTES];
    loop {
        let count = stream.read(&mut piece).await?;
        if count == 0 {
            return Ok(());
        }
        // Whoever listened may have gone away; the command goes on.
        drop(told.send(piece[..count].to_vec()).await);
    }
}

/// The beginning of what a stream says; the rest is read and dropped.
async fn head(stream: &mut (impl AsyncRead + Unpin), bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let mut piece = vec![0; READ_BYTES];
    loop {
        let count = stream.read(&mut piece).await?;
        if count == 0 {
            return Ok(kept);
        }
        let room = bytes_max.saturating_sub(kept.len());
        kept.extend_from_slice(&piece[..count.min(room)]);
    }
}

/// The last lines of what a stream says, in one, printable.
async fn tail(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut kept = Vec::new();
    let mut piece = vec![0; READ_BYTES];
    loop {
        let count = stream.read(&mut piece).await?;
        if count == 0 {
            return Ok(last_lines(&String::from_utf8_lossy(&kept)));
        }
        kept.extend_from_slice(&piece[..count]);
        let surplus = kept.len().saturating_sub(WORDS_BYTES_MAX);
        kept.drain(..surplus);
    }
}

fn last_lines(text: &str) -> String {
    // A progress display overwrites its line; only what it ends with counts.
    let ends = text
        .lines()
        .filter_map(|line| line.trim_end().rsplit('\r').next());
    let printable = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
    let lines: Vec<String> = ends
        .map(printable)
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(WORDS_LINES_MAX)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn the_last_lines_are_one_line() {
        let git = "Cloning into '.'...\nremote: 1%\rremote: 100%\n\nfatal: \x1b[31mno\n";
        assert_eq!(
            last_lines(git),
            "Cloning into '.'...; remote: 100%; fatal: [31mno"
        );
        assert_eq!(last_lines(""), "");
        let many = (0..100)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join("\n");
        assert!(last_lines(&many).ends_with("98; 99"));
        assert!(!last_lines(&many).contains("50"));
    }
}
