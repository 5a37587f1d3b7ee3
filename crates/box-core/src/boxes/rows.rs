//! SQL of the table `boxes`.

mod names;
mod undo;

pub use names::{keep_names, names};
pub use undo::{
    Renamed, Trashing, copy_names, keeper_of, rename, trash, trashed, undelete, workspace_is_taken,
};

use super::BoxRecord;
use box_api::control::{BoxState, NetPreset};
use box_api::{BoxId, BoxName, BoxTitle, Owner};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, types::Type};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// First host id of the first box (brief of the native engine: ranges of 65,536 each).
pub const ID_OFFSET_FIRST: u32 = 2_000_000_000;
/// Host ids of one box.
pub const ID_RANGE: u32 = 65_536;
/// Boxes that fit between [`ID_OFFSET_FIRST`] and the largest id (2³² − 2).
pub const BOXES_MAX: u32 = (u32::MAX - ID_OFFSET_FIRST) / ID_RANGE;

const COLUMNS: &str = "id, owner, name, title, state, runtime, image, image_digest, profile, net, \
                       limits, allow, id_offset, created_at_ms, problem, settings, origin, \
                       trashed_at_ms";

/// What came of reserving a row for a new box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// The row is there; this is its id range.
    Offset(u32),
    /// The owner has a live box of that name.
    NameTaken,
    /// Every id range is in use.
    Full,
}

/// Every row, by name.
///
/// # Errors
/// What the database said, or a row this build cannot read.
pub fn all(connection: &Connection) -> rusqlite::Result<Vec<BoxRecord>> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM boxes ORDER BY name, id"))?;
    let rows = statement.query_map([], read)?;
    rows.collect()
}

/// # Errors
/// As [`all`].
pub fn get(connection: &Connection, id: &BoxId) -> rusqlite::Result<Option<BoxRecord>> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM boxes WHERE id = ?1"))?;
    statement.query_row([id.as_str()], read).optional()
}

/// Whether the owner has a live box of that name.
///
/// # Errors
/// What the database said.
pub fn name_taken(
    connection: &Connection,
    owner: &Owner,
    name: &BoxName,
) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT 1 FROM boxes WHERE owner = ?1 AND name = ?2 AND state NOT IN ('removing', 'trashed')",
        )?
        .exists([owner.to_string(), name.to_string()])
}

/// Writes the row of a new box and gives it an id range; `record.id_offset` is not looked at.
///
/// # Errors
/// What the database said.
pub fn reserve(connection: &Connection, record: &BoxRecord) -> rusqlite::Result<Reserved> {
    if name_taken(connection, &record.owner, &record.name)? {
        return Ok(Reserved::NameTaken);
    }
    let Some(id_offset) = free_offset(connection)? else {
        return Ok(Reserved::Full);
    };
    connection
        .prepare_cached(
            "INSERT INTO boxes (id, owner, name, title, state, runtime, image, image_digest, \
             profile, net, limits, allow, id_offset, created_at_ms, changed_at_ms, problem, settings, \
             origin) \
             VALUES (:id, :owner, :name, :title, :state, :runtime, :image, :image_digest, \
             :profile, :net, :limits, :allow, :id_offset, :created_at_ms, :created_at_ms, NULL, \
             :settings, :origin)",
        )?
        .execute(named_params! {
            ":id": record.id.as_str(),
            ":owner": record.owner.to_string(),
            ":name": record.name.as_str(),
            ":title": record.title.as_ref().map(BoxTitle::as_str),
            ":state": word(&record.state)?,
            ":runtime": record.runtime,
            ":image": record.image,
            ":image_digest": record.image_digest,
            ":profile": word(&record.profile)?,
            ":net": word(&record.net)?,
            ":limits": json(&record.limits)?,
            ":allow": json(&record.allow)?,
            ":id_offset": id_offset,
            ":created_at_ms": record.created_at_ms,
            ":settings": json(&record.settings)?,
            ":origin": record.origin.as_ref().map(json).transpose()?,
        })?;
    Ok(Reserved::Offset(id_offset))
}

/// The lowest id range no row has.
fn free_offset(connection: &Connection) -> rusqlite::Result<Option<u32>> {
    let mut statement =
        connection.prepare_cached("SELECT id_offset FROM boxes ORDER BY id_offset")?;
    let taken = statement.query_map([], |row| row.get::<_, u32>(0))?;
    let mut candidate = 0;
    for offset in taken {
        if offset? != ID_OFFSET_FIRST + candidate * ID_RANGE {
            break;
        }
        candidate += 1;
    }
    Ok((candidate < BOXES_MAX).then(|| ID_OFFSET_FIRST + candidate * ID_RANGE))
}

/// Moves a box from one of the states `from` to `to`. Answers whether it was in one of them.
///
/// # Errors
/// What the database said.
pub fn move_state(
    connection: &Connection,
    id: &BoxId,
    from: &[BoxState],
    to: StateChange<'_>,
) -> rusqlite::Result<bool> {
    let Some(now) = state(connection, id)? else {
        return Ok(false);
    };
    if !from.contains(&now) {
        return Ok(false);
    }
    set_state(connection, id, to)?;
    Ok(true)
}

/// Sets a box's state, whatever it was.
///
/// # Errors
/// What the database said.
pub fn set_state(connection: &Connection, id: &BoxId, to: StateChange<'_>) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE boxes SET state = ?2, problem = ?3, changed_at_ms = ?4 WHERE id = ?1",
        )?
        .execute((id.as_str(), word(&to.state)?, to.problem, to.at_ms))?;
    Ok(())
}

/// Changes what is said of a box, if it is still in the state it was seen in. Answers whether it was.
///
/// # Errors
/// What the database said.
pub fn change(
    connection: &Connection,
    record: &BoxRecord,
    seen: BoxState,
    at_ms: i64,
) -> rusqlite::Result<bool> {
    let changed = connection
        .prepare_cached(
            "UPDATE boxes SET title = ?3, limits = ?4, settings = ?5, changed_at_ms = ?6 \
             WHERE id = ?1 AND state = ?2",
        )?
        .execute((
            record.id.as_str(),
            word(&seen)?,
            record.title.as_ref().map(BoxTitle::as_str),
            json(&record.limits)?,
            json(&record.settings)?,
            at_ms,
        ))?;
    Ok(changed > 0)
}

/// What a box's state becomes.
#[derive(Debug, Clone, Copy)]
pub struct StateChange<'a> {
    pub state: BoxState,
    /// Why, for state `failed`.
    pub problem: Option<&'a str>,
    pub at_ms: i64,
}

/// Sets what a box may reach; an absent preset stays.
///
/// # Errors
/// What the database said.
pub fn set_net(
    connection: &Connection,
    id: &BoxId,
    net: Option<NetPreset>,
    allow: &[String],
) -> rusqlite::Result<()> {
    let net = net.as_ref().map(word).transpose()?;
    connection
        .prepare_cached("UPDATE boxes SET net = ifnull(?2, net), allow = ?3 WHERE id = ?1")?
        .execute((id.as_str(), net, json(&allow)?))
        .map(drop)
}

fn state(connection: &Connection, id: &BoxId) -> rusqlite::Result<Option<BoxState>> {
    connection
        .prepare_cached("SELECT state FROM boxes WHERE id = ?1")?
        .query_row([id.as_str()], |row| unword(row, 0))
        .optional()
}

/// # Errors
/// What the database said.
pub fn remove(connection: &Connection, id: &BoxId) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM boxes WHERE id = ?1", [id.as_str()])?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<BoxRecord> {
    Ok(BoxRecord {
        id: parsed(row, 0)?,
        owner: parsed(row, 1)?,
        name: parsed(row, 2)?,
        title: match row.get::<_, Option<String>>(3)? {
            Some(_) => Some(parsed(row, 3)?),
            None => None,
        },
        state: unword(row, 4)?,
        runtime: row.get(5)?,
        image: row.get(6)?,
        image_digest: row.get(7)?,
        profile: unword(row, 8)?,
        net: unword(row, 9)?,
        limits: unjson(row, 10)?,
        allow: unjson(row, 11)?,
        id_offset: row.get(12)?,
        created_at_ms: row.get(13)?,
        problem: row.get(14)?,
        settings: unjson(row, 15)?,
        origin: match row.get::<_, Option<String>>(16)? {
            Some(_) => Some(unjson(row, 16)?),
            None => None,
        },
        trashed_at_ms: row.get(17)?,
    })
}

/// An enum without fields as the word serde writes for it.
fn word<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    Ok(json(value)?.trim_matches('"').to_owned())
}

fn unword<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_value(text.into()).map_err(|error| unreadable(column, error))
}

fn json<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn unjson<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| unreadable(column, error))
}

fn parsed<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: TryFrom<String, Error: std::error::Error + Send + Sync + 'static>,
{
    let text: String = row.get(column)?;
    T::try_from(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}

fn unreadable(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}

#[cfg(test)]
mod tests;
