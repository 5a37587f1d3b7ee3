//! The network log of a box: one line for each host, port and verdict, with how often and how much.
//! Bounded: the oldest lines go.

use crate::host::Host;
use crate::store::StoreError;
use box_api::BoxId;
use box_api::network::NetLine;
use rusqlite::{Connection, Row, Transaction};

/// Lines one box can have; the oldest go first.
const LINES_MAX: i64 = 1000;

/// What is added to a line; the same host, verdict and rule count up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// `host`, `host:port`, or an address.
    pub(crate) host: String,
    /// `allowed`, else why not.
    pub(crate) verdict: &'static str,
    pub(crate) rule: String,
    pub(crate) at_ms: i64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) credential: Option<String>,
}

/// Adds to the box's log, if the box is there still.
pub(crate) fn add(rows: &Transaction<'_>, id: &BoxId, entry: &Entry) -> rusqlite::Result<()> {
    let bytes = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let again = rows
        .prepare_cached(
            "UPDATE net_log SET times = times + 1, at_ms = ?5, sent_bytes = sent_bytes + ?6, \
             received_bytes = received_bytes + ?7, credential = ifnull(?8, credential) \
             WHERE box_id = ?1 AND host = ?2 AND verdict = ?3 AND rule = ?4",
        )?
        .execute((
            id.as_str(),
            &entry.host,
            entry.verdict,
            &entry.rule,
            entry.at_ms,
            bytes(entry.sent_bytes),
            bytes(entry.received_bytes),
            &entry.credential,
        ))?;
    if again > 0 {
        return Ok(());
    }
    rows.prepare_cached(
        "INSERT INTO net_log (box_id, host, verdict, rule, at_ms, times, sent_bytes, \
         received_bytes, credential) \
         SELECT id, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8 FROM boxes WHERE id = ?1",
    )?
    .execute((
        id.as_str(),
        &entry.host,
        entry.verdict,
        &entry.rule,
        entry.at_ms,
        bytes(entry.sent_bytes),
        bytes(entry.received_bytes),
        &entry.credential,
    ))?;
    rows.prepare_cached(
        "DELETE FROM net_log WHERE box_id = ?1 AND id <= \
         (SELECT max(id) FROM net_log WHERE box_id = ?1) - ?2",
    )?
    .execute((id.as_str(), LINES_MAX))
    .map(drop)
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
        "SELECT host, verdict, rule, at_ms, times, sent_bytes, received_bytes, credential \
         FROM net_log WHERE box_id = ?1 AND at_ms >= ?2 ORDER BY at_ms, id",
    )?;
    let rows = statement.query_map((id.as_str(), since.at_ms), line)?;
    rows.collect()
}

fn line(row: &Row<'_>) -> rusqlite::Result<NetLine> {
    let count = |column| {
        row.get::<_, i64>(column)
            .map(|count| u64::try_from(count).unwrap_or_default())
    };
    Ok(NetLine {
        host: row.get(0)?,
        verdict: row.get(1)?,
        rule: row.get(2)?,
        at_ms: row.get(3)?,
        times: count(4)?,
        sent_bytes: count(5)?,
        received_bytes: count(6)?,
        credential: row.get(7)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::schema;

    fn database(id: &BoxId) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::upgrade(&mut connection, schema::STEPS).unwrap();
        connection
            .execute(
                "INSERT INTO boxes (id, owner, name, state, runtime, image, image_digest, profile, \
                 net, limits, allow, id_offset, created_at_ms, changed_at_ms) VALUES \
                 (?1, 'uid:0', 'demo', 'running', 'native', 'i', 'd', 'root', 'open', '{}', '[]', \
                 1, 1, 1)",
                [id.as_str()],
            )
            .unwrap();
        connection
    }

    fn entry(host: &str, at_ms: i64) -> Entry {
        Entry {
            host: host.to_owned(),
            verdict: "allowed",
            rule: "preset open".to_owned(),
            at_ms,
            sent_bytes: 10,
            received_bytes: 100,
            credential: None,
        }
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
