//! Push in the tables: the key, the browsers, what happened, and messages on their way.

use super::encrypt::Keys;
use crate::sign_ins::owner_of;
use box_api::{BoxId, DecisionId, Owner, ThreadId};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

/// Notes looked at at once.
const NOTES_MAX: u32 = 128;
/// Messages of one browser that may be on their way; the oldest go first.
const WAITING_MAX: u32 = 64;
/// Messages looked at at once.
const DUE_MAX: u32 = 64;

const DEVICE: &str = "push_devices.sign_in, owner, endpoint, p256dh, auth, push_devices.key, origin, \
     names_only, push_devices.made_at_ms, told_at_ms, problem \
     FROM push_devices JOIN sign_ins ON sign_ins.id = push_devices.sign_in";

/// The host's key as it is kept.
pub(super) struct KeptKey {
    pub(super) public: Vec<u8>,
    /// The row of `seals` that opens `private`; absent: it is bare.
    pub(super) seal: Option<String>,
    pub(super) private: Vec<u8>,
}

/// A browser that is told.
#[derive(Clone)]
pub(super) struct Device {
    pub(super) sign_in: String,
    pub(super) owner: Owner,
    pub(super) endpoint: String,
    pub(super) keys: Keys,
    /// The host's public key it subscribed with.
    pub(super) key: Vec<u8>,
    pub(super) origin: String,
    pub(super) names_only: bool,
    pub(super) made_at_ms: i64,
    pub(super) told_at_ms: Option<i64>,
    pub(super) problem: Option<String>,
}

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) id: i64,
    pub(super) box_id: BoxId,
    pub(super) about: About,
    pub(super) at_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    Decision(DecisionId),
    /// A turn is over.
    Over(ThreadId),
}

/// A message for a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queued {
    pub(super) id: i64,
    pub(super) sign_in: String,
    pub(super) topic: String,
    pub(super) body: String,
    pub(super) tries: u32,
    pub(super) ends_at_ms: i64,
}

pub(super) fn key(tables: &Connection) -> rusqlite::Result<Option<KeptKey>> {
    tables
        .prepare_cached("SELECT public, seal, private FROM push_key")?
        .query_row([], |row| {
            Ok(KeptKey {
                public: row.get(0)?,
                seal: row.get(1)?,
                private: row.get(2)?,
            })
        })
        .optional()
}

pub(super) fn put_key(
    tables: &Transaction<'_>,
    kept: &KeptKey,
    now_ms: i64,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached(
            "INSERT OR REPLACE INTO push_key (one, public, seal, private, made_at_ms) \
             VALUES (1, ?, ?, ?, ?)",
        )?
        .execute(params![kept.public, kept.seal, kept.private, now_ms])?;
    Ok(())
}

/// Puts a browser in. One endpoint is one browser: who had it before is told no more.
pub(super) fn put_device(tables: &Transaction<'_>, device: &Device) -> rusqlite::Result<()> {
    tables
        .prepare_cached("DELETE FROM push_devices WHERE sign_in = ?1 OR endpoint = ?2")?
        .execute((&device.sign_in, &device.endpoint))?;
    tables
        .prepare_cached(
            "INSERT INTO push_devices (sign_in, endpoint, p256dh, auth, key, origin, names_only, \
             made_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            device.sign_in,
            device.endpoint,
            device.keys.p256dh,
            device.keys.auth,
            device.key,
            device.origin,
            device.names_only,
            device.made_at_ms,
        ])?;
    Ok(())
}

pub(super) fn drop_device(tables: &Transaction<'_>, sign_in: &str) -> rusqlite::Result<bool> {
    let removed = tables
        .prepare_cached("DELETE FROM push_devices WHERE sign_in = ?")?
        .execute([sign_in])?;
    Ok(removed == 1)
}

/// Every browser, newest first.
/// The browsers whose sign-in has not ended.
pub(super) fn devices(tables: &Connection, now_ms: i64) -> rusqlite::Result<Vec<Device>> {
    let sql = format!(
        "SELECT {DEVICE} WHERE sign_ins.ends_at_ms > ? \
         ORDER BY push_devices.made_at_ms DESC, sign_in"
    );
    let mut statement = tables.prepare_cached(&sql)?;
    let rows = statement.query_map([now_ms], read_device)?;
    rows.collect()
}

pub(super) fn device(
    tables: &Connection,
    sign_in: &str,
    now_ms: i64,
) -> rusqlite::Result<Option<Device>> {
    let sql = format!("SELECT {DEVICE} WHERE push_devices.sign_in = ? AND sign_ins.ends_at_ms > ?");
    tables
        .prepare_cached(&sql)?
        .query_row((sign_in, now_ms), read_device)
        .optional()
}

fn read_device(row: &Row<'_>) -> rusqlite::Result<Device> {
    Ok(Device {
        sign_in: row.get(0)?,
        owner: owner_of(row.get(1)?)?,
        endpoint: row.get(2)?,
        keys: Keys {
            p256dh: row.get(3)?,
            auth: row.get(4)?,
        },
        key: row.get(5)?,
        origin: row.get(6)?,
        names_only: row.get(7)?,
        made_at_ms: row.get(8)?,
        told_at_ms: row.get(9)?,
        problem: row.get(10)?,
    })
}

/// How a browser's last message went: with `problem` it did not get there.
pub(super) fn mark(
    tables: &Transaction<'_>,
    sign_in: &str,
    (told_at_ms, problem): (Option<i64>, Option<&str>),
) -> rusqlite::Result<()> {
    tables
        .prepare_cached(
            "UPDATE push_devices SET told_at_ms = COALESCE(?, told_at_ms), problem = ? \
             WHERE sign_in = ?",
        )?
        .execute((told_at_ms, problem, sign_in))?;
    Ok(())
}

pub(super) fn waiting(tables: &Connection, sign_in: &str) -> rusqlite::Result<u32> {
    tables
        .prepare_cached("SELECT COUNT(*) FROM push_queue WHERE sign_in = ?")?
        .query_row([sign_in], |row| row.get(0))
}

/// What happened, oldest first; of several ends of turns of a thread the last alone.
pub(super) fn notes(tables: &Connection) -> rusqlite::Result<Vec<Note>> {
    let mut statement = tables.prepare_cached(
        "SELECT id, box_id, thread, decision, at_ms FROM push_notes AS note \
         WHERE kind = 'decision' OR NOT EXISTS (SELECT 1 FROM push_notes AS later \
             WHERE later.kind = 'over' AND later.thread = note.thread AND later.id > note.id) \
         ORDER BY id LIMIT ?",
    )?;
    let rows = statement.query_map([NOTES_MAX], |row| {
        let about = match row.get::<_, Option<i64>>(3)? {
            Some(decision) => About::Decision(DecisionId(decision)),
            None => About::Over(parsed(row, 2)?),
        };
        Ok(Note {
            id: row.get(0)?,
            box_id: parsed(row, 1)?,
            about,
            at_ms: row.get(4)?,
        })
    })?;
    rows.collect()
}

fn parsed<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: TryFrom<String, Error: std::error::Error + Send + Sync + 'static>,
{
    T::try_from(row.get(column)?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
    })
}

/// A note is done with; with it what it made obsolete.
pub(super) fn drop_note(tables: &Transaction<'_>, note: &Note) -> rusqlite::Result<()> {
    match note.about {
        About::Decision(_) => tables
            .prepare_cached("DELETE FROM push_notes WHERE id = ?")?
            .execute([note.id])?,
        About::Over(thread) => tables
            .prepare_cached(
                "DELETE FROM push_notes WHERE kind = 'over' AND thread = ? AND id <= ?",
            )?
            .execute((thread.as_str(), note.id))?,
    };
    Ok(())
}

/// Puts a message on its way; an earlier one about the same is replaced.
pub(super) fn enqueue(
    tables: &Transaction<'_>,
    (sign_in, topic): (&str, &str),
    (body, decision): (&str, Option<DecisionId>),
    (now_ms, ends_at_ms): (i64, i64),
) -> rusqlite::Result<()> {
    tables
        .prepare_cached(
            "INSERT OR REPLACE INTO push_queue (sign_in, topic, body, decision, next_at_ms, \
             ends_at_ms) VALUES (?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            sign_in,
            topic,
            body,
            decision.map(|decision| decision.0),
            now_ms,
            ends_at_ms
        ])?;
    tables
        .prepare_cached(
            "DELETE FROM push_queue WHERE sign_in = ?1 AND id NOT IN (SELECT id FROM push_queue \
             WHERE sign_in = ?1 ORDER BY id DESC LIMIT ?2)",
        )?
        .execute((sign_in, WAITING_MAX))?;
    Ok(())
}

/// Takes off the queue what is too old or answered by now.
pub(super) fn drop_stale(tables: &Transaction<'_>, now_ms: i64) -> rusqlite::Result<()> {
    tables
        .prepare_cached(
            "DELETE FROM push_queue WHERE ends_at_ms <= ? OR decision IN \
             (SELECT id FROM decisions WHERE state <> 'open')",
        )?
        .execute([now_ms])?;
    Ok(())
}

/// Whether [`drop_stale`] would find anything.
pub(super) fn is_stale(tables: &Connection, now_ms: i64) -> rusqlite::Result<bool> {
    tables
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM push_queue WHERE ends_at_ms <= ? OR decision IN \
             (SELECT id FROM decisions WHERE state <> 'open'))",
        )?
        .query_row([now_ms], |row| row.get(0))
}

/// Whether something happened, a message is due, or one is too old.
pub(super) fn is_work(tables: &Connection, now_ms: i64) -> rusqlite::Result<bool> {
    tables
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM push_notes) OR EXISTS (SELECT 1 FROM push_queue \
             WHERE next_at_ms <= ?1 OR ends_at_ms <= ?1)",
        )?
        .query_row([now_ms], |row| row.get(0))
}

/// The first message of each browser that is due, and still meant.
pub(super) fn due(tables: &Connection, now_ms: i64) -> rusqlite::Result<Vec<Queued>> {
    let mut statement = tables.prepare_cached(
        "SELECT MIN(id), sign_in, topic, body, tries, ends_at_ms FROM push_queue \
         WHERE next_at_ms <= ?1 AND ends_at_ms > ?1 AND (decision IS NULL OR decision IN \
             (SELECT id FROM decisions WHERE state = 'open')) \
         GROUP BY sign_in ORDER BY 1 LIMIT ?2",
    )?;
    let rows = statement.query_map((now_ms, DUE_MAX), |row| {
        Ok(Queued {
            id: row.get(0)?,
            sign_in: row.get(1)?,
            topic: row.get(2)?,
            body: row.get(3)?,
            tries: row.get(4)?,
            ends_at_ms: row.get(5)?,
        })
    })?;
    rows.collect()
}

pub(super) fn drop_queued(tables: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    tables
        .prepare_cached("DELETE FROM push_queue WHERE id = ?")?
        .execute([id])?;
    Ok(())
}

/// It is tried again.
pub(super) fn postpone(tables: &Transaction<'_>, id: i64, next_at_ms: i64) -> rusqlite::Result<()> {
    tables
        .prepare_cached("UPDATE push_queue SET tries = tries + 1, next_at_ms = ? WHERE id = ?")?
        .execute((next_at_ms, id))?;
    Ok(())
}
