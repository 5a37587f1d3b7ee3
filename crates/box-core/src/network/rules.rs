//! Entries owners added: for one box, or for all of theirs. Deny wins over allow.

use crate::boxes::{self, BoxRecord, rows};
use crate::host::Host;
use crate::store::StoreError;
use box_api::control::BoxState;
use box_api::egress::PrivateEntry;
use box_api::{BoxId, Owner};
use rusqlite::Connection;

/// How far a rule reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Box,
    /// Every box of the owner.
    Owner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    Allow,
    Deny,
}

/// A rule of one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// As [`box_api::egress::Entry`] writes itself.
    pub entry: String,
    pub ruling: Ruling,
    /// Absent: every box of the owner.
    pub box_id: Option<BoxId>,
}

/// Adds a rule; one about the same entry is replaced.
///
/// # Errors
/// What the database said.
pub fn put(
    connection: &Connection,
    owner: &Owner,
    rule: &Rule,
    at_ms: i64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO net_rules (owner, box_id, entry, verdict, at_ms) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((
            owner.to_string(),
            rule.box_id.as_ref().map(BoxId::as_str),
            &rule.entry,
            match rule.ruling {
                Ruling::Allow => "allow",
                Ruling::Deny => "deny",
            },
            at_ms,
        ))
        .map(drop)
}

/// Entries of one box, or of an owner for every box; not both.
///
/// # Errors
/// What the database said.
pub fn of_scope(
    connection: &Connection,
    owner: &Owner,
    box_id: Option<&BoxId>,
) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached("SELECT entry FROM net_rules WHERE owner = ?1 AND box_id IS ?2")?
        .query_map((owner.to_string(), box_id.map(BoxId::as_str)), |row| {
            row.get(0)
        })?
        .collect()
}

/// Takes a rule away, whatever it says.
///
/// # Errors
/// What the database said.
pub fn remove(
    connection: &Connection,
    owner: &Owner,
    box_id: Option<&BoxId>,
    entry: &str,
) -> rusqlite::Result<()> {
    connection.execute(
        "DELETE FROM net_rules WHERE owner = ?1 AND box_id IS ?2 AND entry = ?3",
        (owner.to_string(), box_id.map(BoxId::as_str), entry),
    )?;
    Ok(())
}

/// The rules that hold for a box, the owner's own first.
///
/// # Errors
/// What the database said.
pub fn of_box(connection: &Connection, owner: &Owner, id: &BoxId) -> rusqlite::Result<Vec<Rule>> {
    let mut statement = connection.prepare_cached(
        "SELECT entry, verdict, box_id IS NULL FROM net_rules \
         WHERE owner = ?1 AND (box_id IS NULL OR box_id = ?2) ORDER BY box_id IS NOT NULL, entry",
    )?;
    let rows = statement.query_map((owner.to_string(), id.as_str()), |row| {
        let verdict: String = row.get(1)?;
        Ok(Rule {
            entry: row.get(0)?,
            ruling: if verdict == "allow" {
                Ruling::Allow
            } else {
                Ruling::Deny
            },
            box_id: (!row.get::<_, bool>(2)?).then_some(*id),
        })
    })?;
    rows.collect()
}

/// Gives one box the rules of another.
///
/// # Errors
/// What the database said.
pub fn copy(connection: &Connection, from: &BoxId, to: &BoxId) -> rusqlite::Result<()> {
    connection
        .execute(
            "INSERT INTO net_rules (owner, box_id, entry, verdict, at_ms) \
             SELECT b.owner, b.id, r.entry, r.verdict, r.at_ms \
             FROM net_rules r JOIN boxes b ON b.id = ?2 \
             WHERE r.box_id = ?1 AND r.owner = b.owner",
            (from.as_str(), to.as_str()),
        )
        .map(drop)
}

/// Lets a box reach one name and port wherever it leads, or no longer; answers whether that is new.
///
/// # Errors
/// What the database said.
pub fn set_private(
    connection: &Connection,
    id: &BoxId,
    entry: &PrivateEntry,
    at_ms: Option<i64>,
) -> rusqlite::Result<bool> {
    let changed = match at_ms {
        Some(at_ms) => connection
            .prepare_cached(
                "INSERT OR IGNORE INTO net_private (box_id, entry, at_ms) VALUES (?1, ?2, ?3)",
            )?
            .execute((id.as_str(), entry.to_string(), at_ms))?,
        None => connection
            .prepare_cached("DELETE FROM net_private WHERE box_id = ?1 AND entry = ?2")?
            .execute((id.as_str(), entry.to_string()))?,
    };
    Ok(changed > 0)
}

/// The private names and ports a box may reach.
///
/// # Errors
/// What the database said.
pub fn private(connection: &Connection, id: &BoxId) -> rusqlite::Result<Vec<PrivateEntry>> {
    let mut statement = connection
        .prepare_cached("SELECT entry FROM net_private WHERE box_id = ?1 ORDER BY entry")?;
    let rows = statement.query_map([id.as_str()], |row| row.get::<_, String>(0))?;
    let mut entries = Vec::new();
    for row in rows {
        entries.extend(PrivateEntry::parse(&row?).ok());
    }
    Ok(entries)
}

/// Tells box-egress what now holds: for one box, or every box of the owner that runs. Returns once
/// it holds there.
///
/// # Errors
/// What the store said.
pub async fn hand_over(host: &Host, owner: Owner, box_id: Option<BoxId>) -> Result<(), StoreError> {
    let all: Vec<BoxRecord> = match box_id {
        Some(id) => boxes::get(host, id).await?.into_iter().collect(),
        None => host.store.read(rows::all).await?,
    };
    let running = all.iter().filter(|record| {
        record.owner == owner && matches!(record.state, BoxState::Running | BoxState::Starting)
    });
    tell(host, running.map(|record| record.id).collect()).await;
    Ok(())
}

/// Tells box-egress what the rows say of boxes now. One that is away lets nothing through, and is
/// told when it is back.
pub(crate) async fn tell(host: &Host, running: Vec<BoxId>) {
    if running.is_empty() {
        return;
    }
    if let Err(error) = host.egress.retell(running).await {
        tracing::warn!(%error, "box-egress was not told yet what holds for boxes");
    }
}
