//! A thread's journal: rows in order, the text of the last one growing, and whoever follows it.
//!
//! A row is committed before anybody is shown it. A follower is a cursor: it subscribes first and
//! reads what is there afterwards, so nothing falls between the two. One that cannot keep up is
//! sent back to the tables and never holds the writer up.

mod tail;

pub use tail::{Measure, Tail, row, tail};

use crate::restore_points;
use crate::search;
use crate::store::{Store, StoreError};
use box_api::ThreadId;
use box_api::restore_point::WayBack;
use box_api::thread::{Cursor, Item, JournalRow, ThreadUpdate};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, types::Type};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Rows read at once.
const PAGE_ROWS_MAX: u32 = 500;
/// A page ends with the row that takes it past this.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// Commits a follower may be behind before it is sent back to the tables.
const COMMITS_HELD_MAX: usize = 64;
/// A commit larger than this is announced and read from the tables.
const COMMIT_BYTES_HELD_MAX: usize = 64 << 10;

/// One thread's journal in the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub thread: ThreadId,
    pub epoch: u32,
}

/// What a commit announces to followers.
#[derive(Debug, Clone)]
enum Announced {
    Updates(Arc<[ThreadUpdate]>),
    /// Too much to hold; read it.
    Read,
    /// Nothing will follow.
    Over,
}

/// Tells followers what was committed. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed {
    announced: broadcast::Sender<Announced>,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            announced: broadcast::channel(COMMITS_HELD_MAX).0,
        }
    }
}

impl Feed {
    /// Announces updates that are committed. Never waits.
    pub fn announce(&self, updates: Vec<ThreadUpdate>) {
        if updates.is_empty() {
            return;
        }
        let bytes: usize = updates.iter().map(size).sum();
        let announced = if bytes > COMMIT_BYTES_HELD_MAX {
            Announced::Read
        } else {
            Announced::Updates(updates.into())
        };
        // Nobody may be following, and that is fine.
        drop(self.announced.send(announced));
    }

    /// Nothing will follow: the thread is gone.
    pub fn end(&self) {
        drop(self.announced.send(Announced::Over));
    }

    /// Follows the journal from `after`.
    pub fn follow(&self, store: Store, place: Place, after: Cursor) -> Subscription {
        let cursor = if after.epoch == place.epoch {
            after
        } else {
            Cursor {
                epoch: place.epoch,
                seq: 0,
                bytes: 0,
            }
        };
        Subscription {
            live: self.announced.subscribe(),
            store,
            place,
            reached: cursor,
            ready: VecDeque::new(),
            given: cursor,
            source: Source::Tables,
            told: Told::Nothing,
        }
    }
}

/// A reader of a journal.
#[derive(Debug)]
pub struct Subscription {
    live: broadcast::Receiver<Announced>,
    store: Store,
    place: Place,
    /// Everything up to here was given or is ready.
    reached: Cursor,
    ready: VecDeque<ThreadUpdate>,
    given: Cursor,
    source: Source,
    told: Told,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Tables,
    Live,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    CaughtUp,
}

impl Subscription {
    /// The next update: rows in order, growth of the last row, and once
    /// [`ThreadUpdate::CaughtUp`]. `None` when the thread is gone. May be cancelled: nothing is
    /// lost.
    ///
    /// # Errors
    /// What the store said; the next call tries again.
    pub async fn next(&mut self) -> Result<Option<ThreadUpdate>, StoreError> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                self.given = end_of(&update, self.given);
                return Ok(Some(update));
            }
            match self.source {
                Source::Tables => self.read_tables().await?,
                Source::Live if self.told == Told::Nothing => {
                    self.told = Told::CaughtUp;
                    return Ok(Some(ThreadUpdate::CaughtUp {
                        cursor: self.reached,
                    }));
                }
                Source::Live => match self.live.recv().await {
                    Ok(Announced::Updates(updates)) => self.take_live(&updates),
                    Ok(Announced::Read) | Err(RecvError::Lagged(_)) => self.source = Source::Tables,
                    Ok(Announced::Over) | Err(RecvError::Closed) => return Ok(None),
                },
            }
        }
    }

    async fn read_tables(&mut self) -> Result<(), StoreError> {
        let (place, cursor) = (self.place, self.reached);
        let page = self
            .store
            .read(move |tables| page(tables, place, cursor))
            .await?;
        if page.is_empty() {
            self.source = Source::Live;
        }
        for update in page {
            if let ThreadUpdate::Grew { from_byte, .. } = update {
                // Earlier than the cursor when that pointed into a character.
                self.reached.bytes = self.reached.bytes.min(from_byte);
            }
            self.take(&update);
        }
        Ok(())
    }

    fn take_live(&mut self, updates: &[ThreadUpdate]) {
        for update in updates {
            if self.take(update) == Taken::Gap {
                self.source = Source::Tables;
                return;
            }
        }
    }

    /// Where to go on after what [`Self::next`] gave last.
    pub fn cursor(&self) -> Cursor {
        self.given
    }

    fn take(&mut self, update: &ThreadUpdate) -> Taken {
        let (taken, fresh) = advance(&mut self.reached, update);
        self.ready.extend(fresh);
        taken
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Fits,
    /// Something between the cursor and the update is missing.
    Gap,
}

/// What of `update` a reader at `cursor` has not seen; moves the cursor past it.
fn advance(cursor: &mut Cursor, update: &ThreadUpdate) -> (Taken, Option<ThreadUpdate>) {
    match update {
        ThreadUpdate::Row(row) if row.seq <= cursor.seq => (Taken::Fits, None),
        ThreadUpdate::Row(row) if row.seq == cursor.seq + 1 => {
            *cursor = end_of(update, *cursor);
            (Taken::Fits, Some(update.clone()))
        }
        ThreadUpdate::Grew {
            seq,
            from_byte,
            text,
        } if *seq == cursor.seq => {
            let Some(seen) = cursor.bytes.checked_sub(*from_byte) else {
                return (Taken::Gap, None);
            };
            let seen = usize::try_from(seen).unwrap_or(usize::MAX);
            let Some(fresh) = text.get(seen..).filter(|fresh| !fresh.is_empty()) else {
                return (Taken::Fits, None);
            };
            let grew = ThreadUpdate::Grew {
                seq: *seq,
                from_byte: cursor.bytes,
                text: fresh.to_owned(),
            };
            *cursor = end_of(&grew, *cursor);
            (Taken::Fits, Some(grew))
        }
        ThreadUpdate::Grew { seq, .. } if *seq < cursor.seq => (Taken::Fits, None),
        ThreadUpdate::Row(_) | ThreadUpdate::Grew { .. } => (Taken::Gap, None),
        ThreadUpdate::CaughtUp { .. } => (Taken::Fits, None),
    }
}

/// Where a reader stands who has taken in the whole of `update`.
fn end_of(update: &ThreadUpdate, before: Cursor) -> Cursor {
    match update {
        ThreadUpdate::Row(row) => Cursor {
            epoch: before.epoch,
            seq: row.seq,
            bytes: growing_text(&row.item).map_or(0, |text| text.len() as u64),
        },
        ThreadUpdate::Grew {
            seq,
            from_byte,
            text,
        } => Cursor {
            epoch: before.epoch,
            seq: *seq,
            bytes: from_byte + text.len() as u64,
        },
        ThreadUpdate::CaughtUp { .. } => before,
    }
}

/// The text of an item that can grow.
pub(crate) fn growing_text(item: &Item) -> Option<&str> {
    match item {
        Item::Text { text } | Item::Thought { text } => Some(text),
        Item::Prompt { .. }
        | Item::ToolCall { .. }
        | Item::ToolUpdate { .. }
        | Item::Plan { .. }
        | Item::DecisionOpened(_)
        | Item::DecisionClosed { .. }
        | Item::TurnEnded { .. }
        | Item::Command { .. }
        | Item::Steered { .. }
        | Item::Queue { .. }
        | Item::OptionSet { .. }
        | Item::Background { .. }
        | Item::Woke { .. }
        | Item::Forked { .. }
        | Item::WentBack { .. }
        | Item::Notice { .. }
        | Item::Mode { .. }
        | Item::Usage { .. }
        | Item::Detail { .. }
        | Item::Unknown { .. } => None,
    }
}

/// The item with its text, which is kept in a column of its own.
fn with_text(item: &Item, text: String) -> Item {
    if matches!(item, Item::Thought { .. }) {
        Item::Thought { text }
    } else {
        Item::Text { text }
    }
}

/// Roughly how much memory an update takes.
fn size(update: &ThreadUpdate) -> usize {
    match update {
        ThreadUpdate::Grew { text, .. } => text.len(),
        ThreadUpdate::Row(row) => match growing_text(&row.item) {
            Some(text) => text.len(),
            None => serde_json::to_string(&row.item).map_or(0, |text| text.len()),
        },
        ThreadUpdate::CaughtUp { .. } => 0,
    }
}

/// Writes a row.
pub(crate) fn append(
    tables: &Transaction<'_>,
    place: Place,
    row: &JournalRow,
) -> rusqlite::Result<()> {
    let text = growing_text(&row.item);
    let item = match text {
        Some(_) => json(&with_text(&row.item, String::new()))?,
        None => json(&row.item)?,
    };
    tables
        .prepare_cached(
            "INSERT INTO journal (thread, epoch, seq, at_ms, item, text) VALUES (?, ?, ?, ?, ?, ?)",
        )?
        .execute((
            place.thread.as_str(),
            place.epoch,
            row.seq,
            row.at_ms,
            item,
            text,
        ))?;
    if let Item::WentBack { before, .. } = row.item {
        let way = WayBack {
            at: row.seq,
            before,
        };
        restore_points::note_way_back(tables, place, way)?;
    }
    search::take_in(tables, place, row)
}

/// Copies the rows of a journal before row `before` into one that is empty.
pub(crate) fn copy(
    tables: &Transaction<'_>,
    from: Place,
    to: Place,
    before: u64,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached(
            "INSERT INTO journal (thread, epoch, seq, at_ms, item, text) \
             SELECT ?1, ?2, seq, at_ms, item, text FROM journal \
             WHERE thread = ?3 AND epoch = ?4 AND seq < ?5",
        )?
        .execute((
            to.thread.as_str(),
            to.epoch,
            from.thread.as_str(),
            from.epoch,
            before,
        ))?;
    restore_points::copy_ways_back(tables, from, to, before)?;
    search::copy(tables, from, to, before)
}

/// Lets the text of a row grow.
pub(crate) fn grow(
    tables: &Transaction<'_>,
    place: Place,
    seq: u64,
    text: &str,
) -> rusqlite::Result<()> {
    let grown = tables
        .prepare_cached(
            "UPDATE journal SET text = text || ? \
             WHERE thread = ? AND epoch = ? AND seq = ? AND text IS NOT NULL",
        )?
        .execute((text, place.thread.as_str(), place.epoch, seq))?;
    if grown != 1 {
        return Err(rusqlite::Error::StatementChangedRows(grown));
    }
    search::grown(tables, place, seq)
}

/// Keeps a line of the agent with the row it led to.
pub(crate) fn keep_line(
    tables: &Transaction<'_>,
    place: Place,
    seq: u64,
    line: &str,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached("INSERT INTO journal_lines (thread, epoch, seq, line) VALUES (?, ?, ?, ?)")?
        .execute((place.thread.as_str(), place.epoch, seq, line))?;
    Ok(())
}

/// What follows `after`, at most a page of it. Empty when there is nothing.
///
/// # Errors
/// What the database said, or a row this build cannot read.
pub fn page(
    tables: &Connection,
    place: Place,
    after: Cursor,
) -> rusqlite::Result<Vec<ThreadUpdate>> {
    let mut updates: Vec<ThreadUpdate> = Vec::new();
    updates.extend(grown_since(tables, place, after)?);
    let mut statement = tables.prepare_cached(
        "SELECT seq, at_ms, item, text FROM journal \
         WHERE thread = ? AND epoch = ? AND seq > ? ORDER BY seq LIMIT ?",
    )?;
    let mut rows =
        statement.query((place.thread.as_str(), place.epoch, after.seq, PAGE_ROWS_MAX))?;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let update = ThreadUpdate::Row(read(row)?);
        bytes += size(&update);
        updates.push(update);
        if bytes > PAGE_BYTES_MAX {
            break;
        }
    }
    Ok(updates)
}

/// The agent's lines behind a row, whole.
///
/// # Errors
/// What the database said.
pub fn lines(tables: &Connection, place: Place, seq: u64) -> rusqlite::Result<Vec<String>> {
    let mut statement = tables.prepare_cached(
        "SELECT line FROM journal_lines WHERE thread = ? AND epoch = ? AND seq = ? ORDER BY rowid",
    )?;
    let rows = statement.query_map((place.thread.as_str(), place.epoch, seq), |row| row.get(0))?;
    rows.collect()
}

fn grown_since(
    tables: &Connection,
    place: Place,
    after: Cursor,
) -> rusqlite::Result<Option<ThreadUpdate>> {
    let mut statement = tables
        .prepare_cached("SELECT text FROM journal WHERE thread = ? AND epoch = ? AND seq = ?")?;
    let key = (place.thread.as_str(), place.epoch, after.seq);
    let text: Option<Option<String>> = statement.query_row(key, |row| row.get(0)).optional()?;
    let (Some(text), Ok(seen)) = (text.flatten(), usize::try_from(after.bytes)) else {
        return Ok(None);
    };
    // A cursor that points into a character is its client's mistake; it gets the character whole.
    let fresh = text
        .get(text.floor_char_boundary(seen)..)
        .unwrap_or_default();
    if fresh.is_empty() {
        return Ok(None);
    }
    let from_byte = (text.len() - fresh.len()) as u64;
    Ok(Some(ThreadUpdate::Grew {
        seq: after.seq,
        from_byte,
        text: fresh.to_owned(),
    }))
}

fn read(row: &Row<'_>) -> rusqlite::Result<JournalRow> {
    let item: String = row.get(2)?;
    let item: Item = serde_json::from_str(&item)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(2, Type::Text, error.into()))?;
    let item = match row.get::<_, Option<String>>(3)? {
        Some(text) => with_text(&item, text),
        None => item,
    };
    Ok(JournalRow {
        seq: row.get(0)?,
        at_ms: row.get(1)?,
        item,
    })
}

fn json(item: &Item) -> rusqlite::Result<String> {
    serde_json::to_string(item)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

#[cfg(test)]
mod tests;
