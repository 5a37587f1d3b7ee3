//! How long boxes have run since they were last started, on disk: a deadline outlives its host.

use super::touch::Still;
use crate::host::Host;
use crate::store::{Durability, StoreError};
use box_api::BoxId;
use rusqlite::{Connection, OptionalExtension as _, params};

/// A count of running time and when it was right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) ran_ms: i64,
    pub(super) at_ms: i64,
}

/// A box begins to run: counted from here.
///
/// # Errors
/// What the store said.
pub(crate) async fn begin(host: &Host, id: BoxId) -> Result<(), StoreError> {
    let at_ms = host.now_ms();
    host.store
        .write(Durability::Grouped, move |tables| {
            tables
                .prepare_cached(
                    "INSERT INTO box_runs (box_id, ran_ms, counted_at_ms) \
                     SELECT id, 0, ?2 FROM boxes WHERE id = ?1 ON CONFLICT (box_id) \
                     DO UPDATE SET ran_ms = 0, counted_at_ms = ?2, frozen = 0",
                )?
                .execute(params![id.as_str(), at_ms])
                .map(drop)
        })
        .await
}

/// Notes that the host has frozen or thawed a box, for the host after this one.
pub(super) async fn note_still(host: &Host, id: BoxId, still: Still) -> Result<(), StoreError> {
    let at_ms = host.now_ms();
    host.store
        .write(Durability::Prompt, move |tables| {
            tables
                .prepare_cached(
                    "INSERT INTO box_runs (box_id, ran_ms, counted_at_ms, frozen) \
                     SELECT id, 0, ?2, ?3 FROM boxes WHERE id = ?1 \
                     ON CONFLICT (box_id) DO UPDATE SET frozen = ?3",
                )?
                .execute(params![id.as_str(), at_ms, number(still)])
                .map(drop)
        })
        .await
}

/// Boxes the host has frozen, this one or one before.
pub(super) async fn still(host: &Host) -> Result<Vec<(BoxId, Still)>, StoreError> {
    let frozen: Vec<(String, i64)> = host
        .store
        .read(|tables| {
            let sql = "SELECT box_id, frozen FROM box_runs WHERE frozen > 0";
            let mut statement = tables.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
        .await?;
    Ok(frozen
        .iter()
        .filter_map(|(text, how)| Some((BoxId::parse(text).ok()?, from_number(*how))))
        .collect())
}

fn number(still: Still) -> i64 {
    match still {
        Still::No => 0,
        Still::Yes => 1,
        Still::Kept => 2,
    }
}

/// A number of a newer host is the strictest.
fn from_number(number: i64) -> Still {
    match number {
        0 => Still::No,
        1 => Still::Yes,
        _ => Still::Kept,
    }
}

pub(super) async fn keep(host: &Host, id: BoxId, counted: Counted) -> Result<(), StoreError> {
    host.store
        .write(Durability::Grouped, move |tables| {
            write(tables, &id, counted)
        })
        .await
}

fn write(tables: &Connection, id: &BoxId, counted: Counted) -> rusqlite::Result<()> {
    // A box that is gone by now has no run.
    tables
        .prepare_cached(
            "INSERT INTO box_runs (box_id, ran_ms, counted_at_ms) \
             SELECT id, ?2, ?3 FROM boxes WHERE id = ?1 \
             ON CONFLICT (box_id) DO UPDATE SET ran_ms = ?2, counted_at_ms = ?3",
        )?
        .execute(params![id.as_str(), counted.ran_ms, counted.at_ms])?;
    Ok(())
}

/// What the host before has counted.
pub(super) async fn get(host: &Host, id: BoxId) -> Result<Option<Counted>, StoreError> {
    host.store
        .read(move |tables| {
            tables
                .prepare_cached("SELECT ran_ms, counted_at_ms FROM box_runs WHERE box_id = ?1")?
                .query_row([id.as_str()], |row| {
                    Ok(Counted {
                        ran_ms: row.get(0)?,
                        at_ms: row.get(1)?,
                    })
                })
                .optional()
        })
        .await
}
