//! SQL of the tables `credentials` and `placeholders`. A secret is part of neither, unless sealed.

use super::{CREDENTIALS_MAX, DEFAULT_NAME};
use box_api::control::{CredentialForm, CredentialInfo, CredentialSource, SealMethod};
use box_api::{BoxId, BoxName, Owner};
use rusqlite::{Connection, OptionalExtension as _, Row, params, types::Type};

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
    pub source: CredentialSource,
    pub form: CredentialForm,
    /// When its secret came.
    pub fetched_at_ms: i64,
    pub expires_at_ms: Option<i64>,
    /// Why its command last failed.
    pub problem: Option<String>,
    /// What holds the key its secret is sealed with.
    pub sealed: SealMethod,
}

/// A secret as it lies in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The row of `seals` whose key opens it.
    pub seal: String,
    pub bytes: Vec<u8>,
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
            source: self.source.clone(),
            expires_at_ms: self.expires_at_ms,
            sealed: self.sealed,
            hosts: super::hosts_of(self),
            boxes: Vec::new(),
            problem: self.problem.clone(),
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

const COLUMNS: &str = "c.owner, c.kind, c.name, c.prefix, c.chars, c.added_at_ms, c.source, \
     c.form, c.fetched_at_ms, c.expires_at_ms, c.problem, \
     (SELECT method FROM seals WHERE id = c.seal)";
/// How many columns those are.
const COLUMNS_COUNT: usize = 12;

/// Adds or replaces a row.
///
/// # Errors
/// What the database said.
pub fn put(
    connection: &Connection,
    row: &CredentialRow,
    sealed: Option<&Sealed>,
) -> rusqlite::Result<Put> {
    let before = find(connection, &row.owner, &row.kind, &row.name)?;
    if before.is_none() && of_owner(connection, &row.owner)?.len() >= CREDENTIALS_MAX {
        return Ok(Put::TooMany);
    }
    connection
        .prepare_cached(
            "INSERT INTO credentials (owner, kind, name, prefix, chars, added_at_ms, source, form, \
             fetched_at_ms, expires_at_ms, problem, sealed, seal) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) \
             ON CONFLICT (owner, kind, name) DO UPDATE SET prefix = excluded.prefix, \
             chars = excluded.chars, added_at_ms = excluded.added_at_ms, \
             source = excluded.source, form = excluded.form, \
             fetched_at_ms = excluded.fetched_at_ms, expires_at_ms = excluded.expires_at_ms, \
             problem = excluded.problem, sealed = excluded.sealed, seal = excluded.seal",
        )?
        .execute(params![
            row.owner.to_string(),
            row.kind,
            row.name,
            row.prefix,
            row.chars,
            row.added_at_ms,
            json(&row.source),
            json(&row.form),
            row.fetched_at_ms,
            row.expires_at_ms,
            row.problem,
            sealed.map(|sealed| &sealed.bytes),
            sealed.map(|sealed| &sealed.seal),
        ])?;
    let stale_placeholders = match before {
        Some(before) if !super::looks_alike(&before, row) => take_placeholders(connection, row)?,
        Some(_) | None => Vec::new(),
    };
    Ok(Put::Done { stale_placeholders })
}

/// Notes why a credential's command failed, or that it did not.
///
/// # Errors
/// What the database said.
pub fn note_problem(
    connection: &Connection,
    row: &CredentialRow,
    problem: Option<&str>,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE credentials SET problem = ?4 WHERE (owner, kind, name) = (?1, ?2, ?3)",
        )?
        .execute(params![row.owner.to_string(), row.kind, row.name, problem])
        .map(drop)
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
    let Some(row) = find(connection, owner, kind, name)? else {
        return Ok(None);
    };
    let stale = take_placeholders(connection, &row)?;
    connection.execute(
        "DELETE FROM credentials WHERE (owner, kind, name) = (?1, ?2, ?3)",
        (owner.to_string(), kind, name),
    )?;
    Ok(Some(stale))
}

/// # Errors
/// What the database said.
pub fn find(
    connection: &Connection,
    owner: &Owner,
    kind: &str,
    name: &str,
) -> rusqlite::Result<Option<CredentialRow>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM credentials c WHERE (owner, kind, name) = (?1, ?2, ?3)"
        ))?
        .query_row((owner.to_string(), kind, name), read)
        .optional()
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

/// Every credential there is, with its sealed secret.
///
/// # Errors
/// What the database said.
pub fn every(connection: &Connection) -> rusqlite::Result<Vec<(CredentialRow, Option<Sealed>)>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS}, c.seal, c.sealed FROM credentials c ORDER BY owner, kind, name"
        ))?
        .query_map([], |row| {
            let seal: Option<String> = row.get(COLUMNS_COUNT)?;
            let bytes: Option<Vec<u8>> = row.get(COLUMNS_COUNT + 1)?;
            let sealed = seal.zip(bytes).map(|(seal, bytes)| Sealed { seal, bytes });
            Ok((read(row)?, sealed))
        })?
        .collect()
}

/// How box-egress knows every credential there is.
///
/// # Errors
/// What the database said.
pub fn every_id(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let all = every(connection)?;
    Ok(all.into_iter().map(|(row, _)| row.id()).collect())
}

/// The one called `default` of some of one kind, else the first.
pub fn default_among(rows: &[CredentialRow]) -> Option<&CredentialRow> {
    let named = rows.iter().find(|row| row.name == DEFAULT_NAME);
    named.or(rows.first())
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
        .query_map([id.as_str()], |row| {
            Ok((read(row)?, row.get(COLUMNS_COUNT)?))
        })?
        .collect()
}

/// Boxes of this owner that have a placeholder: of which kind and name.
///
/// # Errors
/// What the database said.
pub fn users(
    connection: &Connection,
    owner: &Owner,
) -> rusqlite::Result<Vec<(BoxId, BoxName, String, String)>> {
    connection
        .prepare_cached(
            "SELECT b.id, b.name, p.kind, p.name FROM placeholders p \
             JOIN boxes b ON b.id = p.box_id WHERE b.owner = ?1 AND b.state <> 'removing' \
             ORDER BY b.name",
        )?
        .query_map([owner.to_string()], |row| {
            Ok((parsed(row, 0)?, parsed(row, 1)?, row.get(2)?, row.get(3)?))
        })?
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

/// Removes the placeholders of a box for other credentials than `kept`; answers them.
///
/// # Errors
/// What the database said.
pub fn take_others(
    connection: &Connection,
    id: &BoxId,
    kept: &[CredentialRow],
) -> rusqlite::Result<Vec<String>> {
    let mut taken = Vec::new();
    for (row, placeholder) in placeholders_of(connection, id)? {
        if kept.iter().any(|kept| kept.id() == row.id()) {
            continue;
        }
        connection
            .prepare_cached("DELETE FROM placeholders WHERE box_id = ?1 AND placeholder = ?2")?
            .execute((id.as_str(), &placeholder))?;
        taken.push(placeholder);
    }
    Ok(taken)
}

/// Deletes the placeholders of a credential in every box of its owner, and says which they were.
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
    let sealed: Option<String> = row.get(11)?;
    Ok(CredentialRow {
        owner: parsed(row, 0)?,
        kind: row.get(1)?,
        name: row.get(2)?,
        prefix: row.get(3)?,
        chars: row.get(4)?,
        added_at_ms: row.get(5)?,
        source: from_json(row, 6)?,
        form: from_json(row, 7)?,
        fetched_at_ms: row.get(8)?,
        expires_at_ms: row.get(9)?,
        problem: row.get(10)?,
        sealed: sealed
            .and_then(|word| super::method_of(&word))
            .unwrap_or_default(),
    })
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn from_json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
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
