//! A thread's journal in pages: its tail first, then what comes, in pieces a page can take.
//!
//! A [`Follower`] is a cursor, as every client of a journal is. It reads when somebody is ready to
//! take, joins growth of one text, and cuts at a size: slow readers get fewer, fatter pieces.

mod cut;

pub(super) use cut::page_row;

use super::Web;
use super::call::ask;
use crate::control::client::PageWire;
use crate::problem;
use box_api::control::{Outcome, Request, ThreadAct, ThreadAsk};
use box_api::page::{FRAME_BYTES_MAX, LogUpdate, ROW_BYTES_MAX, Start, TAIL_BYTES_MAX, ThreadHead};
use box_api::thread::{Cursor, JournalRow, ThreadUpdate};
use box_api::{Problem, ThreadId};
use box_core::caller::Caller;
use box_core::decisions;
use box_core::host::Host;
use box_core::journal::{self, Measure, Place, Subscription, Tail};
use box_core::thread::ThreadHandle;
use cut::{grown, text_bytes};
use std::collections::VecDeque;
use std::sync::Arc;

/// Rows a page has at most.
const PAGE_ROWS_MAX: u32 = 400;
/// A page that is further behind than this begins anew.
const BEHIND_ROWS_MAX: u64 = 2000;

/// What a follower begins with.
#[derive(Debug)]
pub(super) struct Beginning {
    pub(super) start: Start,
    pub(super) from: Cursor,
    pub(super) updates: Vec<LogUpdate>,
    pub(super) older: bool,
}

/// Somebody who reads a journal as it grows.
#[derive(Debug)]
pub(super) struct Follower {
    subscription: Subscription,
    /// Everything up to here was given.
    reached: Cursor,
    /// Read, and not given yet.
    waiting: VecDeque<LogUpdate>,
}

pub(super) fn place(handle: &ThreadHandle) -> Place {
    Place {
        thread: handle.thread(),
        epoch: handle.subscribe(Cursor::default()).cursor().epoch,
    }
}

/// The newest rows before `before`, or of all.
pub(super) async fn tail(host: &Host, place: Place, before: Option<u64>) -> Result<Tail, Problem> {
    let measure = Measure {
        rows_max: PAGE_ROWS_MAX,
        bytes_max: TAIL_BYTES_MAX - ROW_BYTES_MAX,
        row_bytes_max: ROW_BYTES_MAX,
    };
    let read = host
        .store
        .read(move |tables| journal::tail(tables, place, before, measure));
    read.await.map_err(problem::store)
}

/// A thread beside its journal.
pub(super) async fn head(
    web: &Arc<Web>,
    caller: Caller,
    thread: ThreadId,
) -> Result<ThreadHead, Problem> {
    let (_, record) = super::call::thread_of(&web.door.host, &caller, thread).await?;
    let asked = ThreadAsk {
        name: record.name,
        thread: Some(thread),
        act: ThreadAct::Show,
    };
    let outcome = ask(web, caller, Request::Thread(asked), PageWire::default()).await?;
    let Outcome::ThreadShown(shown) = outcome else {
        return Err(problem::unlike(&outcome));
    };
    let open = decisions::open_of_thread(&web.door.host, thread).await;
    Ok(ThreadHead {
        shown: *shown,
        open: open.map_err(problem::store)?,
    })
}

impl Follower {
    /// From a cursor on, or with the journal's tail where the cursor leads nowhere near its end.
    pub(super) async fn begin(
        host: &Host,
        handle: &ThreadHandle,
        after: Option<Cursor>,
    ) -> Result<(Self, Beginning), Problem> {
        let place = place(handle);
        // The tail first: what is appended meanwhile is read by the subscription.
        let tail = tail(host, place, None).await?;
        let last = tail.rows.last().map_or(0, |row| row.seq);
        let near = |after: &Cursor| {
            after.epoch == place.epoch && after.seq <= last && last - after.seq <= BEHIND_ROWS_MAX
        };
        if let Some(after) = after.filter(near) {
            let beginning = Beginning {
                start: Start::Cursor,
                from: after,
                updates: Vec::new(),
                older: false,
            };
            let mut follower = Self::at(handle, after);
            let end = tail.rows.last().map_or(0, end_bytes);
            if (after.seq, after.bytes) < (last, end) {
                // It is in the tables: this waits for nobody but them.
                follower.wait().await?;
            }
            return Ok((follower, beginning));
        }
        let beginning = Beginning {
            start: Start::Tail,
            from: Cursor {
                epoch: place.epoch,
                seq: tail.rows.first().map_or(0, |row| row.seq - 1),
                bytes: 0,
            },
            older: tail.older,
            updates: tail
                .rows
                .iter()
                .cloned()
                .map(page_row)
                .map(|row| LogUpdate::Row(Box::new(row)))
                .collect(),
        };
        let reached = Cursor {
            epoch: place.epoch,
            seq: last,
            bytes: tail.rows.last().map_or(0, end_bytes),
        };
        Ok((Self::at(handle, reached), beginning))
    }

    fn at(handle: &ThreadHandle, cursor: Cursor) -> Self {
        Self {
            subscription: handle.subscribe(cursor),
            reached: cursor,
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn reached(&self) -> Cursor {
        self.reached
    }

    /// Until there is something to give. May be cancelled: nothing is lost.
    pub(super) async fn wait(&mut self) -> Result<(), Problem> {
        while self.waiting.is_empty() {
            let update = self.subscription.next().await.map_err(problem::store)?;
            let update = update.ok_or_else(problem::thread_gone)?;
            self.waiting.extend(pieces(update));
        }
        Ok(())
    }

    /// What there is now, up to a frame of it. Empty when there is nothing.
    pub(super) async fn ready(&mut self) -> Result<Vec<LogUpdate>, Problem> {
        let (mut given, mut bytes) = (Vec::new(), 0);
        while bytes < FRAME_BYTES_MAX {
            if self.waiting.is_empty() && !self.more().await? {
                break;
            }
            let Some(update) = self.waiting.front() else {
                break;
            };
            let size = cut::size(update);
            if !given.is_empty() && bytes + size > FRAME_BYTES_MAX {
                break;
            }
            bytes += size;
            if let Some(update) = self.waiting.pop_front() {
                self.reached = end_of(&update, self.reached.epoch);
                join(&mut given, update);
            }
        }
        Ok(given)
    }

    /// Reads on if that takes no waiting for the agent.
    async fn more(&mut self) -> Result<bool, Problem> {
        tokio::select! {
            biased;
            read = self.wait() => read.map(|()| true),
            () = tokio::task::yield_now() => Ok(false),
        }
    }
}

/// A journal's update in pieces that each fit into a frame.
fn pieces(update: ThreadUpdate) -> Vec<LogUpdate> {
    match update {
        ThreadUpdate::Row(row) => vec![LogUpdate::Row(Box::new(page_row(row)))],
        ThreadUpdate::Grew {
            seq,
            from_byte,
            text,
        } => grown(seq, from_byte, &text),
        ThreadUpdate::CaughtUp { .. } => Vec::new(),
    }
}

fn end_of(update: &LogUpdate, epoch: u32) -> Cursor {
    match update {
        LogUpdate::Row(row) => Cursor {
            epoch,
            seq: row.row.seq,
            bytes: row.text_from + end_bytes(&row.row),
        },
        LogUpdate::Grew {
            seq,
            from_byte,
            text,
        } => Cursor {
            epoch,
            seq: *seq,
            bytes: from_byte + text.len() as u64,
        },
    }
}

/// How much text a row that can grow has.
fn end_bytes(row: &JournalRow) -> u64 {
    text_bytes(&row.item)
}

/// Adds an update; growth of the text that was added last becomes part of it.
fn join(given: &mut Vec<LogUpdate>, update: LogUpdate) {
    if let (
        Some(LogUpdate::Grew {
            seq: last,
            from_byte: begin,
            text: whole,
        }),
        LogUpdate::Grew {
            seq,
            from_byte,
            text,
        },
    ) = (given.last_mut(), &update)
        && last == seq
        && *begin + whole.len() as u64 == *from_byte
    {
        whole.push_str(text);
        return;
    }
    given.push(update);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grew(seq: u64, from_byte: u64, text: &str) -> LogUpdate {
        LogUpdate::Grew {
            seq,
            from_byte,
            text: text.into(),
        }
    }

    #[test]
    fn growth_of_one_text_is_one_update() {
        let mut given = Vec::new();
        for update in [
            grew(1, 0, "ab"),
            grew(1, 2, "cd"),
            grew(1, 9, "x"),
            grew(2, 0, "y"),
        ] {
            join(&mut given, update);
        }
        assert_eq!(
            given,
            [grew(1, 0, "abcd"), grew(1, 9, "x"), grew(2, 0, "y")]
        );
    }

    #[test]
    fn the_cursor_counts_the_whole_text_of_a_row_that_was_cut() {
        let text = "ä".repeat(ROW_BYTES_MAX);
        let row = JournalRow {
            seq: 4,
            at_ms: 0,
            item: box_api::thread::Item::Text { text: text.clone() },
        };
        let row = page_row(row);
        assert!(row.text_from > 0);
        let end = end_of(&LogUpdate::Row(Box::new(row)), 7);
        assert_eq!((end.epoch, end.seq, end.bytes), (7, 4, text.len() as u64));
    }
}
