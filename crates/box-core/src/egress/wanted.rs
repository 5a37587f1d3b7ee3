//! What box-egress should hold, by the rows of the store; and what it reports, into them.

use super::Surroundings;
use crate::boxes::{BoxRecord, rows};
use crate::credentials;
use crate::github;
use crate::network::{log, rules};
use crate::people::Looking;
use crate::policy;
use crate::store::{Durability, StoreError};
use box_api::BoxId;
use box_api::control::BoxState;
use box_api::egress::policy::Unlisted;
use box_api::egress::{Binding, HostName, HostPattern, LoginState, MappedName, Policy};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// A box as box-egress should know it.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) policy: Policy,
    pub(super) bindings: Vec<Binding>,
    pub(super) map: Vec<MappedName>,
    pub(super) logins: Vec<LoginState>,
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

/// A box as its row is now, if it runs or is about to.
pub(super) async fn current(
    around: &Surroundings,
    id: BoxId,
) -> Result<Option<BoxRecord>, StoreError> {
    let record = around
        .store
        .read(move |tables| rows::get(tables, &id))
        .await?;
    let has_way_out = |state| state == BoxState::Running || state == BoxState::Starting;
    Ok(record.filter(|record| has_way_out(record.state)))
}

/// Everything box-egress is to know of one box.
pub(super) async fn of_box(
    around: &Surroundings,
    record: &BoxRecord,
    looked: &Looking,
) -> Result<Wanted, StoreError> {
    let id = record.id;
    let owner = record.owner;
    let (bindings, map, logins, mut own, helpers) = around
        .store
        .read(move |connection| {
            Ok((
                credentials::bindings(connection, &id)?,
                names(connection, &id)?,
                credentials::logins::of_box(connection, &id)?,
                policy::Own {
                    rules: rules::of_box(connection, &owner, &id)?,
                    private: rules::private(connection, &id)?,
                    helpers: Vec::new(),
                },
                credentials::helper_hosts(connection, &id)?,
            ))
        })
        .await?;
    // What belongs to an account is reachable with it, and passed on unread.
    let helpers = helpers.iter().map(|host| HostPattern::parse(host.as_str()));
    own.helpers = helpers.filter_map(Result::ok).collect();
    let scoped = bindings.into_iter();
    let scoped = scoped.map(|binding| github::scoped(binding, record));
    let (copy, settings, machine) = (
        record.clone(),
        around.settings.now(),
        around.machine.clone(),
    );
    let unlisted = if looked.at(&id) {
        Unlisted::Ask
    } else {
        Unlisted::Refuse
    };
    let policy = tokio::task::spawn_blocking(move || {
        policy::of_box(&copy, &settings, &machine, own, unlisted)
    });
    // Should the reading of the clients' settings ever panic, the box gets no way out.
    Ok(Wanted {
        policy: policy.await.unwrap_or_else(|_| Policy::nothing()),
        bindings: scoped.collect(),
        map,
        logins,
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

/// Adds to a box's network log.
pub(super) async fn keep_line(
    around: &Surroundings,
    id: BoxId,
    entry: log::Entry,
) -> Result<(), StoreError> {
    around
        .store
        .write(Durability::Grouped, move |rows| log::add(rows, &id, &entry))
        .await?;
    around.people.log_grew();
    Ok(())
}
