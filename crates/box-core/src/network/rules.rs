//! Entries owners added: for one box, or for all of theirs. Deny wins over allow.

use crate::boxes::{self, rows};
use crate::host::Host;
use crate::store::StoreError;
use box_api::control::BoxState;
use box_api::egress::HostPattern;
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
    /// `host`, `*.host` or `host:port`.
    pub entry: String,
    pub ruling: Ruling,
    /// Absent: every box of the owner.
    pub box_id: Option<BoxId>,
}

/// Rules as box-egress takes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lists {
    pub allow: Vec<HostPattern>,
    pub deny: Vec<HostPattern>,
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

/// The lists of [`of_box`]. What another build wrote and this one cannot read is left out where it
/// allows; there is nothing of the kind that denies.
///
/// # Errors
/// What the database said.
pub fn lists(connection: &Connection, owner: &Owner, id: &BoxId) -> rusqlite::Result<Lists> {
    let mut lists = Lists::default();
    for rule in of_box(connection, owner, id)? {
        let Ok(entry) = HostPattern::parse(&rule.entry) else {
            continue;
        };
        match rule.ruling {
            Ruling::Allow => lists.allow.push(entry),
            Ruling::Deny => lists.deny.push(entry),
        }
    }
    Ok(lists)
}

/// Tells box-egress what now holds: for one box, or every box of the owner that runs.
///
/// # Errors
/// What the store said.
pub async fn hand_over(host: &Host, owner: Owner, box_id: Option<BoxId>) -> Result<(), StoreError> {
    let running = match box_id {
        Some(id) => boxes::get(host, id).await?.into_iter().collect(),
        None => host.store.read(rows::all).await?,
    };
    for record in running {
        if record.owner == owner && record.state == BoxState::Running {
            host.egress.admit(&record, None).await;
        }
    }
    Ok(())
}
