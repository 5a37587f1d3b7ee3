//! Links and sign-ins in the tables.

use super::{Key, owner_of, tier_of, tier_word};
use crate::caller::{Caller, Tier};
use box_api::Owner;
use box_api::page::SignIn;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction};

const COLUMNS: &str = "id, owner, agent, made_at_ms, seen_at_ms, ends_at_ms, tier";

/// A sign-in's row, but for its key.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) sign_in: SignIn,
    pub(super) tier: Tier,
}

pub(super) fn drop_old(tables: &Transaction<'_>, now_ms: i64) -> rusqlite::Result<()> {
    for table in ["pairing_links", "sign_ins"] {
        let sql = format!("DELETE FROM {table} WHERE ends_at_ms <= ?");
        tables.prepare_cached(&sql)?.execute([now_ms])?;
    }
    Ok(())
}

pub(super) fn insert_link(
    tables: &Transaction<'_>,
    key: &Key,
    caller: Caller,
    ends_at_ms: i64,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached(
            "INSERT INTO pairing_links (key, owner, tier, ends_at_ms) VALUES (?, ?, ?, ?)",
        )?
        .execute((
            key,
            caller.owner.to_string(),
            tier_word(caller.tier),
            ends_at_ms,
        ))?;
    Ok(())
}

pub(super) fn trim_links(
    tables: &Transaction<'_>,
    owner: Owner,
    kept: u32,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached(
            "DELETE FROM pairing_links WHERE owner = ?1 AND rowid NOT IN (SELECT rowid FROM \
             pairing_links WHERE owner = ?1 ORDER BY rowid DESC LIMIT ?2)",
        )?
        .execute((owner.to_string(), kept))?;
    Ok(())
}

/// Takes a link away and says whose it was, if it was still good.
pub(super) fn take_link(
    tables: &Transaction<'_>,
    key: &Key,
    now_ms: i64,
) -> rusqlite::Result<Option<(Owner, Tier)>> {
    let taken = tables
        .prepare_cached(
            "DELETE FROM pairing_links WHERE key = ? RETURNING owner, tier, ends_at_ms",
        )?
        .query_row([key], |row| {
            let owner = owner_of(row.get(0)?)?;
            let tier = tier_of(&row.get::<_, String>(1)?);
            Ok((owner, tier, row.get::<_, i64>(2)?))
        })
        .optional()?;
    Ok(taken
        .filter(|(_, _, ends_at_ms)| now_ms < *ends_at_ms)
        .map(|(owner, tier, _)| (owner, tier)))
}

pub(super) fn link_waits(tables: &Connection, key: &Key, now_ms: i64) -> rusqlite::Result<bool> {
    tables
        .prepare_cached("SELECT 1 FROM pairing_links WHERE key = ? AND ends_at_ms > ?")?
        .exists((key, now_ms))
}

pub(super) fn insert(
    tables: &Transaction<'_>,
    key: &Key,
    sign_in: &SignIn,
    tier: Tier,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached(
            "INSERT INTO sign_ins (id, owner, agent, made_at_ms, seen_at_ms, ends_at_ms, tier, \
             key) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute((
            &sign_in.id,
            sign_in.owner.to_string(),
            &sign_in.agent,
            sign_in.made_at_ms,
            sign_in.seen_at_ms,
            sign_in.ends_at_ms,
            tier_word(tier),
            key,
        ))?;
    Ok(())
}

pub(super) fn trim(tables: &Transaction<'_>, owner: Owner, kept: u32) -> rusqlite::Result<()> {
    tables
        .prepare_cached(
            "DELETE FROM sign_ins WHERE owner = ?1 AND id NOT IN (SELECT id FROM sign_ins \
             WHERE owner = ?1 ORDER BY seen_at_ms DESC, rowid DESC LIMIT ?2)",
        )?
        .execute((owner.to_string(), kept))?;
    Ok(())
}

pub(super) fn by_key(
    tables: &Connection,
    key: &Key,
    now_ms: i64,
) -> rusqlite::Result<Option<Kept>> {
    let sql = format!("SELECT {COLUMNS} FROM sign_ins WHERE key = ? AND ends_at_ms > ?");
    tables
        .prepare_cached(&sql)?
        .query_row((key, now_ms), read)
        .optional()
}

pub(super) fn stands(tables: &Connection, id: &str, now_ms: i64) -> rusqlite::Result<bool> {
    tables
        .prepare_cached("SELECT 1 FROM sign_ins WHERE id = ? AND ends_at_ms > ?")?
        .exists((id, now_ms))
}

pub(super) fn seen(
    tables: &Transaction<'_>,
    id: &str,
    now_ms: i64,
    ends_at_ms: i64,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached("UPDATE sign_ins SET seen_at_ms = ?, ends_at_ms = ? WHERE id = ?")?
        .execute((now_ms, ends_at_ms, id))?;
    Ok(())
}

pub(super) fn all(tables: &Connection, now_ms: i64) -> rusqlite::Result<Vec<SignIn>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM sign_ins WHERE ends_at_ms > ? ORDER BY made_at_ms DESC, rowid DESC"
    );
    let mut statement = tables.prepare_cached(&sql)?;
    let rows = statement.query_map([now_ms], read)?;
    rows.map(|row| row.map(|kept| kept.sign_in)).collect()
}

pub(super) fn remove(tables: &Transaction<'_>, id: &str) -> rusqlite::Result<bool> {
    let removed = tables
        .prepare_cached("DELETE FROM sign_ins WHERE id = ?")?
        .execute([id])?;
    Ok(removed == 1)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Kept> {
    Ok(Kept {
        sign_in: SignIn {
            id: row.get(0)?,
            owner: owner_of(row.get(1)?)?,
            agent: row.get(2)?,
            made_at_ms: row.get(3)?,
            seen_at_ms: row.get(4)?,
            ends_at_ms: row.get(5)?,
        },
        tier: tier_of(&row.get::<_, String>(6)?),
    })
}
