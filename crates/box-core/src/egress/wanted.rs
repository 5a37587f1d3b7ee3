//! What box-egress should hold, by the rows of the store; and what it reports, into them.

use super::Surroundings;
use crate::boxes::{BoxRecord, rows};
use crate::credentials;
use crate::policy;
use crate::store::{Durability, StoreError};
use box_api::BoxId;
use box_api::control::BoxState;
use box_api::egress::{Binding, HostName, MappedName, Policy};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Rows of the network log one box can have; the oldest go first.
const NET_LOG_ROWS_MAX: i64 = 1000;

/// A box as box-egress should know it.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) policy: Policy,
    pub(super) bindings: Vec<Binding>,
    pub(super) map: Vec<MappedName>,
}

/// What the store says about boxes and credentials.
#[derive(Debug)]
pub(super) struct Rows {
    /// Boxes that run as far as the host knows.
    pub(super) running: Vec<BoxRecord>,
    /// Boxes about to run; they are admitted by whoever starts them.
    pub(super) starting: BTreeSet<BoxId>,
    /// Ids of the credentials there are.
    pub(super) credentials: BTreeSet<String>,
}

pub(super) async fn rows(around: &Surroundings) -> Result<Rows, StoreError> {
    around
        .store
        .read(|connection| {
            let boxes = rows::all(connection)?;
            let starting = boxes
                .iter()
                .filter(|record| record.state == BoxState::Starting);
            Ok(Rows {
                starting: starting.map(|record| record.id).collect(),
                running: boxes
                    .into_iter()
                    .filter(|record| record.state == BoxState::Running)
                    .collect(),
                credentials: credentials::rows::every_id(connection)?
                    .into_iter()
                    .collect(),
            })
        })
        .await
}

/// Everything box-egress is to know of one box.
pub(super) async fn of_box(
    around: &Surroundings,
    record: &BoxRecord,
) -> Result<Wanted, StoreError> {
    let id = record.id;
    let (bindings, map) = around
        .store
        .read(move |connection| {
            Ok((
                credentials::bindings(connection, &id)?,
                names(connection, &id)?,
            ))
        })
        .await?;
    let (record, settings, machine) = (
        record.clone(),
        around.settings.clone(),
        around.machine.clone(),
    );
    let policy = tokio::task::spawn_blocking(move || policy::of_box(&record, &settings, &machine));
    // Should the reading of the clients' settings ever panic, the box gets no way out.
    Ok(Wanted {
        policy: policy.await.unwrap_or_else(|_| Policy::nothing()),
        bindings,
        map,
    })
}

fn names(connection: &Connection, id: &BoxId) -> rusqlite::Result<Vec<MappedName>> {
    let mut statement = connection.prepare_cached(
        "SELECT name, address FROM egress_names WHERE box_id = ?1 ORDER BY address",
    )?;
    let rows = statement.query_map([id.as_str()], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, u32>(1)?))
    })?;
    let mut map = Vec::new();
    for row in rows {
        let (name, address) = row?;
        // Every name was one when it was written.
        if let Ok(name) = HostName::parse(&name) {
            map.push(MappedName {
                name,
                addr: Ipv4Addr::from(address),
            });
        }
    }
    Ok(map)
}

/// Keeps a name a box has learned.
pub(super) async fn keep_name(
    around: &Surroundings,
    id: BoxId,
    name: HostName,
    addr: Ipv4Addr,
) -> Result<(), StoreError> {
    around
        .store
        .write(Durability::Grouped, move |transaction| {
            transaction
                .prepare_cached(
                    "INSERT INTO egress_names (box_id, name, address) \
                     SELECT id, ?2, ?3 FROM boxes WHERE id = ?1 ON CONFLICT DO NOTHING",
                )?
                .execute((id.as_str(), name.as_str(), u32::from(addr)))
                .map(drop)
        })
        .await
}

/// A line of a box's network log.
#[derive(Debug)]
pub(super) struct NetLine {
    pub(super) host: String,
    pub(super) verdict: &'static str,
    pub(super) rule: String,
    pub(super) at_ms: i64,
}

/// Adds a line to a box's network log; the same one again counts up.
pub(super) async fn keep_line(
    around: &Surroundings,
    id: BoxId,
    line: NetLine,
) -> Result<(), StoreError> {
    around
        .store
        .write(Durability::Grouped, move |transaction| {
            let again = transaction
                .prepare_cached(
                    "UPDATE net_log SET times = times + 1, at_ms = ?5 \
                     WHERE box_id = ?1 AND host = ?2 AND verdict = ?3 AND rule = ?4",
                )?
                .execute((
                    id.as_str(),
                    &line.host,
                    line.verdict,
                    &line.rule,
                    line.at_ms,
                ))?;
            if again > 0 {
                return Ok(());
            }
            transaction
                .prepare_cached(
                    "INSERT INTO net_log (box_id, host, verdict, rule, at_ms, times) \
                     SELECT id, ?2, ?3, ?4, ?5, 1 FROM boxes WHERE id = ?1",
                )?
                .execute((
                    id.as_str(),
                    &line.host,
                    line.verdict,
                    &line.rule,
                    line.at_ms,
                ))?;
            transaction
                .prepare_cached(
                    "DELETE FROM net_log WHERE box_id = ?1 AND id <= \
                     (SELECT max(id) FROM net_log WHERE box_id = ?1) - ?2",
                )?
                .execute((id.as_str(), NET_LOG_ROWS_MAX))
                .map(drop)
        })
        .await
}
