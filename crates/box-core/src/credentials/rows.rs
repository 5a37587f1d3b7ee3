//! SQL of the tables `credentials` and `placeholders`. A secret is never part of either.

use super::{CREDENTIALS_MAX, DEFAULT_NAME};
use box_api::control::CredentialInfo;
use box_api::{BoxId, Owner};
use rusqlite::{Connection, OptionalExtension as _, Row, types::Type};

/// A credential without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialRow {
    pub owner: Owner,
    pub kind: String,
    pub name: String,
    /// How the secret begins; shared by all of its form.
    pub prefix: String,
    /// How long the secret is.
    pub chars: u32,
    pub added_at_ms: i64,
}

impl CredentialRow {
    /// How box-egress knows it.
    pub fn id(&self) -> String {
        credential_id(&self.owner, &self.kind, &self.name)
    }

    /// As clients see it, its secret taken to be there.
    pub fn info(&self) -> CredentialInfo {
        CredentialInfo {
            kind: self.kind.clone(),
            name: self.name.clone(),
            added_at_ms: self.added_at_ms,
            lost: false,
        }
    }
}

/// How box-egress knows a credential.
pub fn credential_id(owner: &Owner, kind: &str, name: &str) -> String {
    format!("{owner}/{kind}/{name}")
}

/// What came of writing a credential's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// Placeholders of the secret before that look different from the new one; they are gone.
    Done {
        stale_placeholders: Vec<(BoxId, String)>,
    },
    TooMany,
}

const COLUMNS: &str = "c.owner, c.kind, c.name, c.prefix, c.chars, c.added_at_ms";

/// Adds or replaces a row.
///
/// # Errors
/// What the database said.
pub fn put(connection: &Connection, row: &CredentialRow) -> rusqlite::Result<Put> {
    let owner = row.owner.to_string();
    let before: Option<String> = connection
        .prepare_cached("SELECT prefix FROM credentials WHERE (owner, kind, name) = (?1, ?2, ?3)")?
        .query_row((&owner, &row.kind, &row.name), |found| found.get(0))
        .optional()?;
    if before.is_none() && of_owner(connection, &row.owner)?.len() >= CREDENTIALS_MAX {
        return Ok(Put::TooMany);
    }
    connection
        .prepare_cached(
            "INSERT INTO credentials (owner, kind, name, prefix, chars, added_at_ms) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (owner, kind, name) DO UPDATE SET \
             prefix = excluded.prefix, chars = excluded.chars, added_at_ms = excluded.added_at_ms",
        )?
        .execute((
            &owner,
            &row.kind,
            &row.name,
            &row.prefix,
            row.chars,
            row.added_at_ms,
        ))?;
    let stale_placeholders = match before {
        Some(prefix) if prefix != row.prefix => take_placeholders(connection, row)?,
        Some(_) | None => Vec::new(),
    };
    Ok(Put::Done { stale_placeholders })
}

/// Deletes a row; the answer is its placeholders, deleted as well, or nothing if it was not there.
///
/// # Errors
/// What the database said.
pub fn remove(
    connection: &Connection,
    owner: &Owner,
    kind: &str,
    name: &str,
) -> rusqlite::Result<Option<Vec<(BoxId, String)>>> {
    let row = connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM credentials c WHERE (owner, kind, name) = (?1, ?2, ?3)"
        ))?
        .query_row((owner.to_string(), kind, name), read)
        .optional()?;
    let Some(row) = row else { return Ok(None) };
    let stale = take_placeholders(connection, &row)?;
    connection.execute(
        "DELETE FROM credentials WHERE (owner, kind, name) = (?1, ?2, ?3)",
        (owner.to_string(), kind, name),
    )?;
    Ok(Some(stale))
}

/// # Errors
/// What the database said.
pub fn of_owner(connection: &Connection, owner: &Owner) -> rusqlite::Result<Vec<CredentialRow>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM credentials c WHERE owner = ?1 ORDER BY kind, name"
        ))?
        .query_map([owner.to_string()], read)?
        .collect()
}

/// The account of each kind that boxes of this owner use.
///
/// # Errors
/// What the database said.
pub fn defaults_of(connection: &Connection, owner: &Owner) -> rusqlite::Result<Vec<CredentialRow>> {
    let mut all = of_owner(connection, owner)?;
    // The one called `default` comes first, so that it is the one of its kind that stays.
    all.sort_by_key(|row| (row.kind.clone(), row.name != DEFAULT_NAME, row.name.clone()));
    all.dedup_by(|later, first| later.kind == first.kind);
    Ok(all)
}

/// The account of one kind that boxes of this owner use.
///
/// # Errors
/// What the database said.
pub fn default_of(
    connection: &Connection,
    owner: &Owner,
    kind: &str,
) -> rusqlite::Result<Option<CredentialRow>> {
    Ok(defaults_of(connection, owner)?
        .into_iter()
        .find(|row| row.kind == kind))
}

/// How box-egress knows every credential there is.
///
/// # Errors
/// What the database said.
pub fn every_id(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM credentials c"))?
        .query_map([], |row| Ok(read(row)?.id()))?
        .collect()
}

/// A box's placeholders and what they stand for.
///
/// # Errors
/// What the database said.
pub fn placeholders_of(
    connection: &Connection,
    id: &BoxId,
) -> rusqlite::Result<Vec<(CredentialRow, String)>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS}, p.placeholder FROM placeholders p JOIN boxes b ON b.id = p.box_id \
             JOIN credentials c ON (c.owner, c.kind, c.name) = (b.owner, p.kind, p.name) \
             WHERE p.box_id = ?1 ORDER BY p.kind, p.name"
        ))?
        .query_map([id.as_str()], |row| Ok((read(row)?, row.get(6)?)))?
        .collect()
}

/// Writes a placeholder unless the box has one for the credential; answers the one it has.
///
/// # Errors
/// What the database said.
pub fn put_placeholder(
    connection: &Connection,
    id: &BoxId,
    row: &CredentialRow,
    fresh: &str,
    at_ms: i64,
) -> rusqlite::Result<String> {
    connection
        .prepare_cached(
            "INSERT INTO placeholders (box_id, kind, name, placeholder, made_at_ms) \
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (box_id, kind, name) DO NOTHING",
        )?
        .execute((id.as_str(), &row.kind, &row.name, fresh, at_ms))?;
    connection
        .prepare_cached(
            "SELECT placeholder FROM placeholders WHERE (box_id, kind, name) = (?1, ?2, ?3)",
        )?
        .query_row((id.as_str(), &row.kind, &row.name), |found| found.get(0))
}

/// Deletes the placeholders of a credential in every box of its owner, and says which they were.
/// Removes every placeholder of a box; answers them.
///
/// # Errors
/// What the database said.
pub fn take_from_box(connection: &Connection, id: &BoxId) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached("DELETE FROM placeholders WHERE box_id = ?1 RETURNING placeholder")?
        .query_map([id.as_str()], |row| row.get(0))?
        .collect()
}

fn take_placeholders(
    connection: &Connection,
    row: &CredentialRow,
) -> rusqlite::Result<Vec<(BoxId, String)>> {
    connection
        .prepare_cached(
            "DELETE FROM placeholders WHERE kind = ?2 AND name = ?3 AND box_id IN \
             (SELECT id FROM boxes WHERE owner = ?1) RETURNING box_id, placeholder",
        )?
        .query_map((row.owner.to_string(), &row.kind, &row.name), |found| {
            Ok((parsed(found, 0)?, found.get(1)?))
        })?
        .collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<CredentialRow> {
    Ok(CredentialRow {
        owner: parsed(row, 0)?,
        kind: row.get(1)?,
        name: row.get(2)?,
        prefix: row.get(3)?,
        chars: row.get(4)?,
        added_at_ms: row.get(5)?,
    })
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
