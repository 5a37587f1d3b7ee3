//! A thread that goes back with the files of its box, and one that comes along with a copy of them.

use super::saved::{self, NewThread};
use super::state::ThreadState;
use crate::journal::{self, Place};
use crate::restore_points::Stood;
use box_api::{BoxId, Owner, ThreadId};
use rusqlite::{OptionalExtension as _, Transaction, types::Type};

/// The files of a box are a snapshot's again, and so is this conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoneBack {
    /// The row that came next when the snapshot was taken.
    pub before: u64,
    /// What the agent called the conversation then; absent: it knew none.
    pub known_as: Option<String>,
    /// The label of the snapshot.
    pub snapshot: String,
}

/// Where a copy of a thread goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Along {
    pub(crate) box_id: BoxId,
    pub(crate) owner: Owner,
    pub(crate) thread: ThreadId,
}

impl ThreadState {
    /// The same conversation as of row `before`, in another box, where its agent does not run yet.
    fn along(mut self, stood: &Stood, to: &Along) -> Self {
        self.settings.box_id = to.box_id;
        self.settings.thread = to.thread;
        let (title, settings) = (self.title, self.settings);
        let mut copy = Self::new(settings);
        copy.title = title;
        copy.known_as.clone_from(&stood.known_as);
        copy.next_seq = stood.before;
        copy
    }
}

/// Copies a thread as it was at a moment: what can be read of it, and what its agent calls it.
/// One that had no row then is left out.
pub(crate) fn bring_along(
    tables: &Transaction<'_>,
    stood: &Stood,
    to: &Along,
) -> rusqlite::Result<()> {
    let copy = tables
        .prepare_cached(
            "SELECT saved, agent, created_at_ms FROM threads WHERE id = ? AND epoch = ?",
        )?
        .query_row((stood.thread.as_str(), stood.epoch), |row| {
            let saved: String = row.get(0)?;
            let state: ThreadState = serde_json::from_str(&saved).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(0, Type::Text, error.into())
            })?;
            Ok(NewThread {
                owner: to.owner,
                agent: row.get(1)?,
                state: state.along(stood, to),
                // The one begun last stays the one that is meant.
                at_ms: row.get(2)?,
            })
        })
        .optional()?;
    let Some(copy) = copy.filter(|_| stood.before > 1) else {
        return Ok(());
    };
    saved::insert(tables, &copy)?;
    let from = Place {
        thread: stood.thread,
        epoch: stood.epoch,
    };
    let place = Place {
        thread: to.thread,
        epoch: 1,
    };
    journal::copy(tables, from, place, stood.before)
}
