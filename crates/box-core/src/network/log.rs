//! The network log of a box: one line for each host, port and verdict, with how often and how much.
//! Bounded: the oldest lines go, those of the box with the most first.

use crate::host::Host;
use crate::store::StoreError;
use box_api::BoxId;
use box_api::egress::traffic::EXCHANGES_MAX;
use box_api::network::{Exchange, NetLine, NetProcess};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, named_params};
use serde::Serialize;
use std::net::SocketAddr;

/// Lines one box can have of what it reached, and as many of what it was refused: the oldest go
/// first, and no box pushes out where it was by naming where it was not.
const LINES_MAX: i64 = 1000;
/// Lines of all boxes together.
const ALL_LINES_MAX: i64 = 100_000;
/// One line of so many goes at once, where there are too many in all.
const TRIMMED_PART: i64 = 20;
/// Lines that nothing was added to for so long go.
const KEPT_MS: i64 = 30 * 24 * 3600 * 1000;
/// What is reached.
pub const ALLOWED: &str = "allowed";

/// What is added to a line; the same host, verdict and rule count up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// `host`, `host:port`, or an address.
    pub(crate) host: String,
    /// `allowed`, else why not.
    pub(crate) verdict: &'static str,
    pub(crate) rule: String,
    pub(crate) at_ms: i64,
    pub(crate) times: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) credential: Option<String>,
    pub(crate) process: Option<NetProcess>,
    /// `transparent`, `proxy`, or unknown.
    pub(crate) way: &'static str,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) open_ms: u64,
    pub(crate) exchanges: Vec<Exchange>,
}

impl Entry {
    /// Something that happened once and carried nothing.
    pub(crate) fn of(host: String, verdict: &'static str, at_ms: i64) -> Self {
        Self {
            host,
            verdict,
            rule: String::new(),
            at_ms,
            times: 1,
            sent_bytes: 0,
            received_bytes: 0,
            credential: None,
            process: None,
            way: "",
            address: None,
            open_ms: 0,
            exchanges: Vec::new(),
        }
    }
}

/// Adds to the box's log, if the box is there still.
pub(crate) fn add(rows: &Transaction<'_>, id: &BoxId, entry: &Entry) -> rusqlite::Result<()> {
    add_total(rows, id, entry)?;
    let known: Option<(i64, String)> = rows
        .prepare_cached(
            "SELECT id, exchanges FROM net_log \
             WHERE box_id = ?1 AND host = ?2 AND verdict = ?3 AND rule = ?4",
        )?
        .query_row(
            (id.as_str(), &entry.host, entry.verdict, &entry.rule),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let line = match &known {
        Some((line, _)) => *line,
        None if insert(rows, id, entry)? => rows.last_insert_rowid(),
        None => return Ok(()),
    };
    let before = known.as_ref().map_or("[]", |(_, exchanges)| exchanges);
    rows.prepare_cached(
        "UPDATE net_log SET times = times + :times, at_ms = :at_ms, \
         sent_bytes = sent_bytes + :sent, received_bytes = received_bytes + :received, \
         credential = ifnull(:credential, credential), process = ifnull(:process, process), \
         way = CASE :way WHEN '' THEN way ELSE :way END, address = ifnull(:address, address), \
         open_ms = open_ms + :open_ms, exchanges = :exchanges WHERE id = :line",
    )?
    .execute(named_params! {
        ":times": count(entry.times),
        ":at_ms": entry.at_ms,
        ":sent": count(entry.sent_bytes),
        ":received": count(entry.received_bytes),
        ":credential": entry.credential,
        ":process": entry.process.as_ref().and_then(json),
        ":way": entry.way,
        ":address": entry.address.map(|at| at.to_string()),
        ":open_ms": count(entry.open_ms),
        ":exchanges": merged(before, &entry.exchanges),
        ":line": line,
    })?;
    if known.is_none() {
        trim(rows, id, entry)?;
    }
    Ok(())
}

fn add_total(rows: &Transaction<'_>, id: &BoxId, entry: &Entry) -> rusqlite::Result<()> {
    if (entry.sent_bytes, entry.received_bytes) == (0, 0) {
        return Ok(());
    }
    rows.prepare_cached(
        "INSERT INTO net_totals (box_id, sent_bytes, received_bytes) \
         SELECT id, ?2, ?3 FROM boxes WHERE id = ?1 ON CONFLICT (box_id) DO UPDATE \
         SET sent_bytes = sent_bytes + ?2, received_bytes = received_bytes + ?3",
    )?
    .execute((
        id.as_str(),
        count(entry.sent_bytes),
        count(entry.received_bytes),
    ))
    .map(drop)
}

/// A line that nothing is counted in yet. Answers whether the box is there.
fn insert(rows: &Transaction<'_>, id: &BoxId, entry: &Entry) -> rusqlite::Result<bool> {
    let written = rows
        .prepare_cached(
            "INSERT INTO net_log (box_id, host, verdict, rule, at_ms, times) \
             SELECT id, ?2, ?3, ?4, ?5, 0 FROM boxes WHERE id = ?1",
        )?
        .execute((
            id.as_str(),
            &entry.host,
            entry.verdict,
            &entry.rule,
            entry.at_ms,
        ))?;
    Ok(written > 0)
}

/// Lets go of what is too much or too old.
fn trim(rows: &Transaction<'_>, id: &BoxId, entry: &Entry) -> rusqlite::Result<()> {
    rows.prepare_cached(
        "DELETE FROM net_log WHERE box_id = ?1 AND (verdict = ?2) = ?3 AND id <= \
         (SELECT id FROM net_log WHERE box_id = ?1 AND (verdict = ?2) = ?3 \
          ORDER BY id DESC LIMIT 1 OFFSET ?4)",
    )?
    .execute((id.as_str(), ALLOWED, entry.verdict == ALLOWED, LINES_MAX))?;
    rows.prepare_cached("DELETE FROM net_log WHERE at_ms < ?1")?
        .execute([entry.at_ms - KEPT_MS])?;
    trim_all(rows, ALL_LINES_MAX)
}

/// Lets go of what is too much in all, of the box with the most lines: the oldest of what it was
/// refused, then of what it reached. A part of its lines at once, so that this is seldom.
fn trim_all(rows: &Transaction<'_>, lines_max: i64) -> rusqlite::Result<()> {
    let count = |rows: &Transaction<'_>| {
        rows.prepare_cached("SELECT count(*) FROM net_log")?
            .query_row([], |row| row.get::<_, i64>(0))
    };
    while count(rows)? > lines_max {
        let (most, lines): (String, i64) = rows
            .prepare_cached(
                "SELECT box_id, count(*) FROM net_log GROUP BY box_id \
                 ORDER BY count(*) DESC, box_id LIMIT 1",
            )?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.prepare_cached(
            "DELETE FROM net_log WHERE id IN (SELECT id FROM net_log WHERE box_id = ?1 \
             ORDER BY verdict = ?2, id LIMIT ?3)",
        )?
        .execute((most, ALLOWED, (lines / TRIMMED_PART).max(1)))?;
    }
    Ok(())
}

/// The program behind a line was found out after the line was written.
pub(crate) fn name_process(
    rows: &Transaction<'_>,
    id: &BoxId,
    (host, rule): (&str, &str),
    process: &NetProcess,
) -> rusqlite::Result<()> {
    rows.prepare_cached(
        "UPDATE net_log SET process = ?5 \
         WHERE box_id = ?1 AND host = ?2 AND verdict = ?3 AND rule = ?4",
    )?
    .execute((id.as_str(), host, ALLOWED, rule, json(process)))
    .map(drop)
}

/// What went over a box's network so far, without what is open.
///
/// # Errors
/// What the store said.
pub async fn total(host: &Host, id: BoxId) -> Result<(u64, u64), StoreError> {
    let read = move |rows: &Connection| {
        rows.prepare_cached("SELECT sent_bytes, received_bytes FROM net_totals WHERE box_id = ?1")?
            .query_row([id.as_str()], |row| {
                Ok((natural(row.get(0)?), natural(row.get(1)?)))
            })
            .optional()
    };
    Ok(host.store.read(read).await?.unwrap_or_default())
}

fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn natural(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default()
}

fn json<T: Serialize>(value: &T) -> Option<String> {
    serde_json::to_string(value).ok()
}

/// Kinds of requests with those that came, bounded.
fn merged(before: &str, more: &[Exchange]) -> String {
    let mut all: Vec<Exchange> = serde_json::from_str(before).unwrap_or_default();
    for one in more {
        let is_same = |known: &Exchange| known.method == one.method && known.status == one.status;
        match all.iter().position(is_same) {
            Some(at) => all[at].times = all[at].times.saturating_add(one.times),
            None if all.len() < EXCHANGES_MAX => all.push(one.clone()),
            None => {}
        }
    }
    json(&all).unwrap_or_else(|| "[]".to_owned())
}

/// Where a reader stands: lines that changed since have a later time, or the same and were counted
/// up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// UTC, milliseconds.
    pub at_ms: i64,
}

/// The lines of a box that changed at or after `since`, the longest unchanged first.
///
/// # Errors
/// What the store said.
pub async fn read(host: &Host, id: BoxId, since: Since) -> Result<Vec<NetLine>, StoreError> {
    host.store
        .read(move |connection| select(connection, &id, since))
        .await
}

fn select(connection: &Connection, id: &BoxId, since: Since) -> rusqlite::Result<Vec<NetLine>> {
    let mut statement = connection.prepare_cached(
        "SELECT host, verdict, rule, at_ms, times, sent_bytes, received_bytes, credential, \
         process, way, address, open_ms, exchanges \
         FROM net_log WHERE box_id = ?1 AND at_ms >= ?2 ORDER BY at_ms, id",
    )?;
    let rows = statement.query_map((id.as_str(), since.at_ms), line)?;
    rows.collect()
}

fn line(row: &Row<'_>) -> rusqlite::Result<NetLine> {
    let count = |column| row.get::<_, i64>(column).map(natural);
    let process: Option<String> = row.get(8)?;
    let exchanges: String = row.get(12)?;
    Ok(NetLine {
        host: row.get(0)?,
        verdict: row.get(1)?,
        rule: row.get(2)?,
        at_ms: row.get(3)?,
        times: count(4)?,
        sent_bytes: count(5)?,
        received_bytes: count(6)?,
        credential: row.get(7)?,
        open: false,
        process: process.and_then(|text| serde_json::from_str(&text).ok()),
        way: row.get(9)?,
        address: row.get(10)?,
        open_ms: count(11)?,
        exchanges: serde_json::from_str(&exchanges).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::schema;

    fn database(id: &BoxId) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::upgrade(&mut connection, schema::STEPS).unwrap();
        insert_box(&connection, id, 1);
        connection
    }

    fn insert_box(connection: &Connection, id: &BoxId, number: i64) {
        connection
            .execute(
                "INSERT INTO boxes (id, owner, name, state, runtime, image, image_digest, profile, \
                 net, limits, allow, id_offset, created_at_ms, changed_at_ms) VALUES \
                 (?1, 'uid:0', 'demo' || ?2, 'running', 'native', 'i', 'd', 'root', 'open', '{}', \
                 '[]', ?2, 1, 1)",
                (id.as_str(), number),
            )
            .unwrap();
    }

    fn hosts(rows: &Transaction<'_>, id: &BoxId) -> Vec<String> {
        let lines = select(rows, id, Since { at_ms: 0 }).unwrap();
        lines.into_iter().map(|line| line.host).collect()
    }

    #[test]
    fn flood_of_one_box_leaves_its_neighbours_lines() {
        let (id, neighbour) = (BoxId::from_random([1; 10]), BoxId::from_random([2; 10]));
        let mut connection = database(&id);
        insert_box(&connection, &neighbour, 2);
        let rows = connection.transaction().unwrap();
        add(&rows, &neighbour, &entry("quiet.test:443", 1)).unwrap();
        add(&rows, &id, &entry("drop.test:443", 1)).unwrap();
        for number in 0..LINES_MAX + 100 {
            let refused = Entry::of(format!("n{number}.test"), "not_listed", 2);
            add(&rows, &id, &refused).unwrap();
        }
        // As many lines came and went as all boxes may have together.
        rows.execute(
            "UPDATE net_log SET id = ?1 WHERE host = 'n1099.test'",
            [ALL_LINES_MAX * 2],
        )
        .unwrap();
        add(&rows, &id, &entry("last.test", 3)).unwrap();
        assert_eq!(hosts(&rows, &neighbour), ["quiet.test:443"]);
        assert_eq!(hosts(&rows, &id)[0], "drop.test:443");
    }

    #[test]
    fn too_many_lines_in_all_go_from_the_box_with_the_most() {
        let (id, neighbour) = (BoxId::from_random([1; 10]), BoxId::from_random([2; 10]));
        let mut connection = database(&id);
        insert_box(&connection, &neighbour, 2);
        let rows = connection.transaction().unwrap();
        for host in ["a.test", "b.test", "c.test"] {
            add(&rows, &neighbour, &entry(host, 1)).unwrap();
        }
        add(&rows, &id, &entry("reached.test", 1)).unwrap();
        for number in 0..20 {
            let refused = Entry::of(format!("n{number}.test"), "not_listed", 2);
            add(&rows, &id, &refused).unwrap();
        }
        trim_all(&rows, 6).unwrap();
        assert_eq!(hosts(&rows, &neighbour), ["a.test", "b.test", "c.test"]);
        assert_eq!(hosts(&rows, &id), ["reached.test", "n18.test", "n19.test"]);
    }

    fn entry(host: &str, at_ms: i64) -> Entry {
        Entry {
            rule: "preset open".to_owned(),
            sent_bytes: 10,
            received_bytes: 100,
            ..Entry::of(host.to_owned(), ALLOWED, at_ms)
        }
    }

    #[test]
    fn no_box_pushes_out_where_it_was_by_naming_where_it_was_not() {
        let id = BoxId::from_random([1; 10]);
        let mut connection = database(&id);
        let rows = connection.transaction().unwrap();
        add(&rows, &id, &entry("drop.test:443", 1)).unwrap();
        for number in 0..LINES_MAX + 100 {
            let refused = Entry::of(format!("n{number}.test"), "not_listed", 2);
            add(&rows, &id, &refused).unwrap();
        }
        let all = select(&rows, &id, Since { at_ms: 0 }).unwrap();
        assert_eq!(all[0].host, "drop.test:443");
        assert_eq!(i64::try_from(all.len()).unwrap(), LINES_MAX + 1);
    }

    #[test]
    fn lines_go_with_time() {
        let id = BoxId::from_random([1; 10]);
        let mut connection = database(&id);
        let rows = connection.transaction().unwrap();
        for (host, at_ms) in [("old.test", 0), ("used.test", 1), ("used.test", KEPT_MS)] {
            add(&rows, &id, &entry(host, at_ms)).unwrap();
        }
        add(&rows, &id, &entry("new.test", KEPT_MS + 1)).unwrap();
        let all = select(&rows, &id, Since { at_ms: 0 }).unwrap();
        let hosts: Vec<&str> = all.iter().map(|line| line.host.as_str()).collect();
        assert_eq!(hosts, ["used.test", "new.test"]);
        let total: i64 = rows
            .query_row("SELECT sent_bytes FROM net_totals", [], |row| row.get(0))
            .unwrap();
        assert_eq!(total, 40, "what went is counted on");
    }

    #[test]
    fn a_line_knows_how_and_by_whom_and_what_was_asked() {
        let id = BoxId::from_random([1; 10]);
        let mut connection = database(&id);
        let rows = connection.transaction().unwrap();
        let get = |status, times| Exchange {
            method: "GET".to_owned(),
            status,
            times,
        };
        let first = Entry {
            way: "proxy",
            address: Some("192.0.2.1:443".parse().unwrap()),
            open_ms: 7,
            exchanges: vec![get(200, 2)],
            ..entry("a.test:443", 1)
        };
        add(&rows, &id, &first).unwrap();
        let second = Entry {
            times: 5,
            exchanges: vec![get(404, 1), get(200, 1)],
            ..entry("a.test:443", 2)
        };
        add(&rows, &id, &second).unwrap();
        let process = NetProcess {
            name: "curl".to_owned(),
            pid: 9,
        };
        name_process(&rows, &id, ("a.test:443", "preset open"), &process).unwrap();
        let all = select(&rows, &id, Since { at_ms: 0 }).unwrap();
        let line = &all[0];
        assert_eq!((line.times, line.open_ms, all.len()), (6, 7, 1));
        assert_eq!(
            (line.way.as_str(), line.address.as_str()),
            ("proxy", "192.0.2.1:443")
        );
        assert_eq!(line.process, Some(process));
        assert_eq!(line.exchanges, [get(200, 3), get(404, 1)]);
    }

    #[test]
    fn the_same_again_counts_up_and_the_oldest_go() {
        let id = BoxId::from_random([1; 10]);
        let mut connection = database(&id);
        let rows = connection.transaction().unwrap();
        add(&rows, &id, &entry("a.test:443", 1)).unwrap();
        add(&rows, &id, &entry("b.test:443", 2)).unwrap();
        add(&rows, &id, &entry("a.test:443", 3)).unwrap();
        let all = select(&rows, &id, Since { at_ms: 0 }).unwrap();
        assert_eq!(all.len(), 2);
        let last = &all[1];
        assert_eq!((last.host.as_str(), last.times), ("a.test:443", 2));
        assert_eq!((last.sent_bytes, last.received_bytes), (20, 200));
        let late = select(&rows, &id, Since { at_ms: 3 }).unwrap();
        assert_eq!(late.len(), 1);
        for number in 0..LINES_MAX {
            add(&rows, &id, &entry(&format!("h{number}.test"), 10 + number)).unwrap();
        }
        let all = select(&rows, &id, Since { at_ms: 0 }).unwrap();
        assert_eq!(i64::try_from(all.len()).unwrap(), LINES_MAX);
        assert_eq!(all[0].host, "h0.test");
    }

    #[test]
    fn a_box_that_is_gone_has_no_log() {
        let id = BoxId::from_random([1; 10]);
        let mut connection = database(&id);
        let rows = connection.transaction().unwrap();
        let stranger = BoxId::from_random([2; 10]);
        add(&rows, &stranger, &entry("a.test:443", 1)).unwrap();
        assert!(
            select(&rows, &stranger, Since { at_ms: 0 })
                .unwrap()
                .is_empty()
        );
    }
}
