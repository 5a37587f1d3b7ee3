//! SQL of names that change and of the trash.

use super::{COLUMNS, StateChange, name_taken, read, set_state, word};
use crate::boxes::BoxRecord;
use box_api::control::{BoxState, KeepWorkspace};
use box_api::{BoxId, BoxName, Owner};
use rusqlite::{Connection, OptionalExtension as _};

/// What came of giving a box a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renamed {
    Done,
    /// The owner has another live box of that name.
    NameTaken,
    /// It is gone, or on its way.
    Gone,
}

/// What is noted of a box that goes into the trash.
#[derive(Debug, Clone, Copy)]
pub struct Trashing {
    pub at_ms: i64,
    pub workspace: KeepWorkspace,
}

/// Gives a live box another name.
///
/// # Errors
/// What the database said.
pub fn rename(connection: &Connection, id: &BoxId, to: &BoxName) -> rusqlite::Result<Renamed> {
    let Some(record) = super::get(connection, id)?.filter(BoxRecord::is_live) else {
        return Ok(Renamed::Gone);
    };
    if record.name != *to && name_taken(connection, &record.owner, to)? {
        return Ok(Renamed::NameTaken);
    }
    connection
        .prepare_cached("UPDATE boxes SET name = ?2 WHERE id = ?1")?
        .execute((id.as_str(), to.as_str()))?;
    Ok(Renamed::Done)
}

/// Puts a box into the trash: its name is free, its placeholders are gone (D33), and the ports it
/// was shown on can be another's. Answers the placeholders there were.
///
/// # Errors
/// What the database said.
pub fn trash(
    connection: &Connection,
    id: &BoxId,
    trashing: Trashing,
) -> rusqlite::Result<Vec<String>> {
    let keep = i64::from(trashing.workspace == KeepWorkspace::Yes);
    connection
        .prepare_cached(
            "UPDATE boxes SET state = ?2, problem = NULL, changed_at_ms = ?3, trashed_at_ms = ?3, \
             keep_workspace = ?4 WHERE id = ?1",
        )?
        .execute((id.as_str(), word(&BoxState::Trashed)?, trashing.at_ms, keep))?;
    connection.execute("DELETE FROM exposed_ports WHERE box_id = ?1", [id.as_str()])?;
    connection
        .prepare_cached("DELETE FROM placeholders WHERE box_id = ?1 RETURNING placeholder")?
        .query_map([id.as_str()], |row| row.get(0))?
        .collect()
}

/// Takes a box out of the trash; it is stopped then.
///
/// # Errors
/// What the database said.
pub fn undelete(
    connection: &Connection,
    record: &BoxRecord,
    name: &BoxName,
    at_ms: i64,
) -> rusqlite::Result<Renamed> {
    let state = super::get(connection, &record.id)?.map(|found| found.state);
    if state != Some(BoxState::Trashed) {
        return Ok(Renamed::Gone);
    }
    if name_taken(connection, &record.owner, name)? {
        return Ok(Renamed::NameTaken);
    }
    connection
        .prepare_cached(
            "UPDATE boxes SET name = ?2, trashed_at_ms = NULL, keep_workspace = 0 WHERE id = ?1",
        )?
        .execute((record.id.as_str(), name.as_str()))?;
    let change = StateChange {
        state: BoxState::Stopped,
        problem: None,
        at_ms,
    };
    set_state(connection, &record.id, change)?;
    Ok(Renamed::Done)
}

/// Boxes in the trash, the one that was put there first at the beginning; without those whose
/// workspace is kept for the next of their name, unless `kept` asks for them.
///
/// # Errors
/// What the database said, or a row this build cannot read.
pub fn trashed(connection: &Connection, kept: KeepWorkspace) -> rusqlite::Result<Vec<BoxRecord>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM boxes WHERE state = 'trashed' AND keep_workspace <= ?1 \
             ORDER BY trashed_at_ms, id"
        ))?
        .query_map([i64::from(kept == KeepWorkspace::Yes)], read)?
        .collect()
}

/// The box in the trash whose workspace is kept for the next box of this name.
///
/// # Errors
/// As [`trashed`].
pub fn keeper_of(
    connection: &Connection,
    owner: &Owner,
    name: &BoxName,
) -> rusqlite::Result<Option<BoxRecord>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM boxes WHERE state = 'trashed' AND keep_workspace = 1 \
             AND owner = ?1 AND name = ?2 ORDER BY trashed_at_ms DESC LIMIT 1"
        ))?
        .query_row([owner.to_string(), name.to_string()], read)
        .optional()
}

/// The kept workspace is another box's now.
///
/// # Errors
/// What the database said.
pub fn workspace_is_taken(connection: &Connection, id: &BoxId) -> rusqlite::Result<()> {
    let sql = "UPDATE boxes SET keep_workspace = 0 WHERE id = ?1";
    connection.execute(sql, [id.as_str()]).map(drop)
}

/// A clone knows the names its source knows, at the same fake addresses: programs inside may hold
/// them.
///
/// # Errors
/// What the database said.
pub fn copy_names(connection: &Connection, from: &BoxId, to: &BoxId) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO egress_names (box_id, name, address) \
             SELECT ?2, name, address FROM egress_names WHERE box_id = ?1",
        )?
        .execute([from.as_str(), to.as_str()])
        .map(drop)
}
