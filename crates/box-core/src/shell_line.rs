//! `!` lines (C58): what a person runs in a box in the middle of a conversation.
//!
//! The line is run by `bash -lc` inside the box, as its user, and becomes a row of the thread when
//! it is over. The agent is not told, and no shell of this machine reads a word of it (C195).

use crate::boxes::BoxRecord;
use crate::boxes::{self, FindError};
use crate::caller::Caller;
use crate::host::Host;
use crate::inside::{self, Inside, InsideError};
use crate::lifecycle::{self, StartError};
use crate::thread::{self, AttachError, ThreadError, ThreadHandle};
use box_api::BoxName;
use box_api::control::{SHELL_LINE_CHARS_MAX, SHELL_OUTPUT_BYTES_MAX, ShellEnded, ShellLine};
use box_api::thread::Item;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Longest a line may run.
pub const RUN_WAIT: Duration = Duration::from_mins(2);
/// Pieces of output on their way.
const PIECES_MAX: usize = 16;
/// Whoever takes longer to read a piece is told nothing more; the row has it all.
const TELL_WAIT: Duration = Duration::from_secs(5);
/// A box without bash has another shell.
const SHELL: &str =
    r#"if command -v bash > /dev/null; then exec bash -lc "$1"; fi; exec sh -lc "$1""#;

/// Why a line was not run.
#[derive(Debug, thiserror::Error)]
pub enum ShellLineError {
    #[error("there is no command after the `!`")]
    Empty,
    #[error("a `!` line has at most {SHELL_LINE_CHARS_MAX} characters")]
    TooLong,
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("could not run the line in box `{name}`")]
    Inside {
        name: BoxName,
        #[source]
        source: InsideError,
    },
    #[error(transparent)]
    Thread(#[from] ThreadError),
    #[error("the host is ending")]
    Ending,
}

/// Runs a line to its end or its limits, whoever listens, passes on what it prints as it comes, and
/// writes the row. A box that does not run is started (D31). A box without threads gets no row.
///
/// # Errors
/// [`ShellLineError`]; how the command itself ended is in the answer.
pub async fn run(
    host: &Arc<Host>,
    caller: &Caller,
    asked: ShellLine,
    told: mpsc::Sender<Vec<u8>>,
) -> Result<ShellEnded, ShellLineError> {
    check(&asked.line)?;
    let record = boxes::find(host, caller, &asked.name).await?;
    let thread = match thread::attach(host, caller, &asked.name, asked.thread).await {
        Ok(handle) => Some(handle),
        Err(AttachError::None(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let record = lifecycle::start(host, record.id).await?;
    let host = Arc::clone(host);
    let whole =
        tokio::spawn(async move { recipe(&host, &record, (thread, asked.line), told).await });
    whole.await.map_err(|_| ShellLineError::Ending)?
}

fn check(line: &str) -> Result<(), ShellLineError> {
    if line.trim().is_empty() {
        return Err(ShellLineError::Empty);
    }
    if line.chars().count() > SHELL_LINE_CHARS_MAX {
        return Err(ShellLineError::TooLong);
    }
    Ok(())
}

async fn recipe(
    host: &Host,
    record: &BoxRecord,
    (thread, line): (Option<ThreadHandle>, String),
    told: mpsc::Sender<Vec<u8>>,
) -> Result<ShellEnded, ShellLineError> {
    let (output, ended) = carry_out(host, record, &line, told)
        .await
        .map_err(|source| ShellLineError::Inside {
            name: record.name.clone(),
            source,
        })?;
    if let Some(thread) = thread {
        let row = Item::Command {
            command: line,
            output,
            exit: ended.exit,
            note: ended.note.clone(),
        };
        thread.write(vec![row]).await?;
    }
    Ok(ended)
}

async fn carry_out(
    host: &Host,
    record: &BoxRecord,
    line: &str,
    told: mpsc::Sender<Vec<u8>>,
) -> Result<(String, ShellEnded), InsideError> {
    let inside = Inside {
        command: ["sh", "-c", SHELL, "sh", line].map(str::to_owned).to_vec(),
        env: Vec::new(),
        input: Vec::new(),
        deadline: RUN_WAIT,
    };
    let (say, mut said) = mpsc::channel(PIECES_MAX);
    let mut kept = Kept::new(told);
    let ended = {
        let mut running = std::pin::pin!(inside::follow(host, record, inside, &say));
        loop {
            tokio::select! {
                biased;
                Some(piece) = said.recv() => if kept.take(&piece).await == Room::None {
                    // Letting go of it ends it.
                    break None;
                },
                ended = &mut running => break Some(ended),
            }
        }
    };
    while let Ok(piece) = said.try_recv() {
        kept.take(&piece).await;
    }
    let cut = kept.room == Room::None;
    let ended = match ended {
        Some(Ok(code)) if !cut => ShellEnded {
            exit: Some(code),
            note: None,
        },
        Some(Err(InsideError::Late { .. })) => cut_off("timed out"),
        Some(Err(error)) => return Err(error),
        Some(Ok(_)) | None => cut_off("truncated"),
    };
    Ok((String::from_utf8_lossy(&kept.bytes).into_owned(), ended))
}

fn cut_off(why: &str) -> ShellEnded {
    ShellEnded {
        exit: None,
        note: Some(why.to_owned()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Some,
    None,
}

/// What a line printed, up to the limit, and who is told of it meanwhile.
struct Kept {
    bytes: Vec<u8>,
    room: Room,
    told: Option<mpsc::Sender<Vec<u8>>>,
}

impl Kept {
    fn new(told: mpsc::Sender<Vec<u8>>) -> Self {
        Self {
            bytes: Vec::new(),
            room: Room::Some,
            told: Some(told),
        }
    }

    async fn take(&mut self, piece: &[u8]) -> Room {
        let left = SHELL_OUTPUT_BYTES_MAX - self.bytes.len();
        let fits = &piece[..piece.len().min(left)];
        self.bytes.extend_from_slice(fits);
        if fits.len() < piece.len() {
            self.room = Room::None;
        }
        if let Some(told) = &self.told
            && !matches!(
                timeout(TELL_WAIT, told.send(fits.to_vec())).await,
                Ok(Ok(()))
            )
        {
            self.told = None;
        }
        self.room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_of_bounded_length() {
        assert!(matches!(check(" "), Err(ShellLineError::Empty)));
        check(&"ä".repeat(8000)).unwrap();
        let error = check(&"ä".repeat(8001)).unwrap_err();
        assert_eq!(error.to_string(), "a `!` line has at most 8000 characters");
    }

    #[tokio::test]
    async fn output_is_kept_up_to_its_limit_and_told_as_long_as_somebody_listens() {
        let (told, mut listens) = mpsc::channel(4);
        let mut kept = Kept::new(told);
        assert_eq!(kept.take(b"one").await, Room::Some);
        assert_eq!(listens.recv().await.unwrap(), b"one");
        drop(listens);
        assert_eq!(
            kept.take(&vec![b'x'; SHELL_OUTPUT_BYTES_MAX - 3]).await,
            Room::Some
        );
        assert_eq!(kept.take(b"y").await, Room::None);
        assert_eq!(kept.bytes.len(), SHELL_OUTPUT_BYTES_MAX);
    }
}
