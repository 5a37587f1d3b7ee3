//! Journals from before there was a search are taken in, a page at a time.

use super::take_in;
use crate::boxes;
use crate::host::Host;
use crate::journal::{self, Place};
use crate::store::Durability;
use box_api::ThreadId;
use box_api::thread::{Cursor, ThreadUpdate};
use rusqlite::{Connection, OptionalExtension as _, Transaction, types::Type};

/// Takes in what is left of them. Whoever asks meanwhile is told that there is more; a host that
/// ends in the middle is followed by one that goes on.
pub async fn catch_up(host: &Host) {
    let mut pages = 0_u64;
    loop {
        match host.store.write(Durability::Prompt, one_page).await {
            Ok(Page::Done) => break,
            Ok(Page::More) => pages += 1,
            Err(error) => {
                let why = boxes::reason(&error);
                return tracing::warn!(why, "old conversations cannot all be found");
            }
        }
        // Others write as well.
        tokio::task::yield_now().await;
    }
    if pages > 0 {
        tracing::info!(pages, "old conversations can be found now");
    }
}

/// How many threads are left.
pub(super) fn left(tables: &Connection) -> rusqlite::Result<u32> {
    tables
        .prepare_cached("SELECT count(*) FROM search_backlog")?
        .query_row([], |row| row.get(0))
}

#[derive(Debug, PartialEq, Eq)]
enum Page {
    More,
    Done,
}

fn one_page(tables: &Transaction<'_>) -> rusqlite::Result<Page> {
    let next = tables
        .prepare_cached("SELECT thread, epoch, seq FROM search_backlog ORDER BY thread LIMIT 1")?
        .query_row([], |row| {
            let thread: String = row.get(0)?;
            let thread = ThreadId::try_from(thread).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(0, Type::Text, error.into())
            })?;
            let epoch = row.get(1)?;
            Ok((Place { thread, epoch }, row.get::<_, u64>(2)?))
        })
        .optional()?;
    let Some((place, seq)) = next else {
        return Ok(Page::Done);
    };
    let after = Cursor {
        epoch: place.epoch,
        seq,
        // Of the row before nothing is wanted any more.
        bytes: u64::MAX,
    };
    let mut reached = None;
    for update in journal::page(tables, place, after)? {
        if let ThreadUpdate::Row(row) = update {
            take_in(tables, place, &row)?;
            reached = Some(row.seq);
        }
    }
    match reached {
        Some(seq) => tables
            .prepare_cached("UPDATE search_backlog SET seq = ? WHERE thread = ?")?
            .execute((seq, place.thread.as_str()))?,
        None => tables
            .prepare_cached("DELETE FROM search_backlog WHERE thread = ?")?
            .execute([place.thread.as_str()])?,
    };
    Ok(Page::More)
}

/// As [`catch_up`], in one go.
#[cfg(test)]
pub(super) fn all(tables: &Transaction<'_>) -> rusqlite::Result<()> {
    while one_page(tables)? == Page::More {}
    Ok(())
}
