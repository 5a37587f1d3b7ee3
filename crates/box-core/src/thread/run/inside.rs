//! Runs a short command inside a box and waits for it.

use crate::boxes::BoxRecord;
use crate::credentials;
use crate::host::Host;
use crate::store::StoreError;
use box_runtime::{ExecSpec, RuntimeError};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;

/// How much of what it prints is kept: the end.
const WORDS_BYTES_MAX: usize = 4 << 10;
const WORDS_LINES_MAX: usize = 5;
const READ_BYTES: usize = 16 << 10;

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
pub(super) struct Inside {
    /// Program and arguments.
    pub(super) command: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) input: Vec<u8>,
    pub(super) deadline: Duration,
}

/// Runs it in the workspace, with the placeholders of the box.
///
/// # Errors
/// [`InsideError`]; the command is killed when it takes too long.
pub(super) async fn run(
    host: &Host,
    record: &BoxRecord,
    inside: Inside,
) -> Result<(), InsideError> {
    let Inside {
        command,
        env: more,
        input,
        deadline,
    } = inside;
    let program = command.first().cloned().unwrap_or_default();
    let mut env = credentials::environment_for_process(host, record).await?;
    env.extend(more);
    let spec = ExecSpec {
        command,
        cwd: None,
        env,
        terminal: None,
    };
    let execution = host.runtime_of(record)?.exec(&record.id, spec).await?;
    let io = |source| InsideError::Io {
        program: program.clone(),
        source,
    };
    let [stdin, stdout, stderr] = <[OwnedFd; 3]>::try_from(execution.streams)
        .map_err(|_| io(io::Error::other("not three streams")))?;
    let mut stdin = pipe::Sender::from_owned_fd(stdin).map_err(io)?;
    let stdout = pipe::Receiver::from_owned_fd(stdout).map_err(io)?;
    let stderr = pipe::Receiver::from_owned_fd(stderr).map_err(io)?;
    let feed = async move {
        // A command that does not read its input has its own reasons; its code tells.
        drop(stdin.write_all(&input).await);
        drop(stdin);
    };
    let process = execution.process;
    let done = async { tokio::join!(feed, tail(stdout), tail(stderr), process.wait()) };
    let late = |_| InsideError::Late {
        program: program.clone(),
        after: deadline,
    };
    let ((), stdout, stderr, code) = tokio::time::timeout(deadline, done).await.map_err(late)?;
    let (stdout, stderr) = (stdout.map_err(io)?, stderr.map_err(io)?);
    match code? {
        0 => Ok(()),
        code => {
            let words = if stderr.is_empty() { stdout } else { stderr };
            Err(InsideError::Code {
                program,
                code,
                words,
            })
        }
    }
}

/// The last lines of what a stream says, in one, printable.
async fn tail(mut stream: impl AsyncRead + Unpin) -> io::Result<String> {
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
