//! Tokens in the tables.

use super::super::{Key, owner_of};
use super::{Kept, tier_of, tier_word};
use box_api::page::{TokenInfo, TokenScope};
use box_api::{BoxId, BoxName, Owner};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction};

const SELECT: &str = "SELECT tokens.id, tokens.owner, tokens.label, tokens.scope, tokens.box_id, \
    boxes.name, tokens.made_at_ms, tokens.seen_at_ms, tokens.ends_at_ms, tokens.tier \
    FROM tokens LEFT JOIN boxes ON boxes.id = tokens.box_id";

pub(super) fn drop_old(tables: &Transaction<'_>, now_ms: i64) -> rusqlite::Result<()> {
    tables
        .prepare_cached("DELETE FROM tokens WHERE ends_at_ms <= ?")?
        .execute([now_ms])?;
    Ok(())
}

pub(super) fn count(tables: &Transaction<'_>, owner: Owner) -> rusqlite::Result<usize> {
    tables
        .prepare_cached("SELECT count(*) FROM tokens WHERE owner = ?")?
        .query_row([owner.to_string()], |row| row.get(0))
}

pub(super) fn insert(tables: &Transaction<'_>, key: &Key, kept: &Kept) -> rusqlite::Result<()> {
    let Kept { info, tier, box_id } = kept;
    tables
        .prepare_cached(
            "INSERT INTO tokens (id, key, owner, tier, label, scope, box_id, made_at_ms, \
             ends_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute((
            &info.id,
            key,
            info.owner.to_string(),
            tier_word(*tier),
            &info.label,
            info.scope.word(),
            box_id.map(|id| id.to_string()),
            info.made_at_ms,
            info.ends_at_ms,
        ))?;
    Ok(())
}

pub(super) fn by_key(
    tables: &Connection,
    key: &Key,
    now_ms: i64,
) -> rusqlite::Result<Option<Kept>> {
    let sql = format!("{SELECT} WHERE tokens.key = ? AND tokens.ends_at_ms > ?");
    tables
        .prepare_cached(&sql)?
        .query_row((key, now_ms), read)
        .optional()
}

pub(super) fn stands(tables: &Connection, id: &str, now_ms: i64) -> rusqlite::Result<bool> {
    tables
        .prepare_cached("SELECT 1 FROM tokens WHERE id = ? AND ends_at_ms > ?")?
        .exists((id, now_ms))
}

pub(super) fn seen(tables: &Transaction<'_>, id: &str, now_ms: i64) -> rusqlite::Result<()> {
    tables
        .prepare_cached("UPDATE tokens SET seen_at_ms = ? WHERE id = ?")?
        .execute((now_ms, id))?;
    Ok(())
}

pub(super) fn all(tables: &Connection, now_ms: i64) -> rusqlite::Result<Vec<Kept>> {
    let sql = format!(
        "{SELECT} WHERE tokens.ends_at_ms > ? ORDER BY tokens.made_at_ms DESC, tokens.rowid DESC"
    );
    let mut statement = tables.prepare_cached(&sql)?;
    let rows = statement.query_map([now_ms], read)?;
    rows.collect()
}

pub(super) fn remove(tables: &Transaction<'_>, id: &str) -> rusqlite::Result<bool> {
    let removed = tables
        .prepare_cached("DELETE FROM tokens WHERE id = ?")?
        .execute([id])?;
    Ok(removed == 1)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Kept> {
    let scope: String = row.get(3)?;
    let scope = TokenScope::from_word(&scope).ok_or_else(|| broken(3, "no scope"))?;
    let box_id: Option<String> = row.get(4)?;
    let box_id = box_id.map(|id| BoxId::parse(&id)).transpose();
    let name: Option<String> = row.get(5)?;
    Ok(Kept {
        info: TokenInfo {
            id: row.get(0)?,
            owner: owner_of(row.get(1)?)?,
            label: row.get(2)?,
            scope,
            // One in the trash has no name to go by.
            name: name.and_then(|name| BoxName::parse(&name).ok()),
            made_at_ms: row.get(6)?,
            seen_at_ms: row.get(7)?,
            ends_at_ms: row.get(8)?,
        },
        tier: tier_of(&row.get::<_, String>(9)?),
        box_id: box_id.map_err(|error| broken(4, error))?,
    })
}

fn broken(
    column: usize,
    why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.into())
}
