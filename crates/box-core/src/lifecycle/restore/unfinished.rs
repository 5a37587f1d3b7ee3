//! A restore that a host died in. Which files the box has then nobody knows; that it was asked for,
//! and that what the box was before is kept, is in the rows. So it is done once more, which changes
//! nothing where it was done, and the conversations follow.

use super::super::snapshot::engine_of;
use crate::boxes;
use crate::events;
use crate::host::Host;
use crate::restore_points;
use crate::store::{Durability, StoreError};
use box_api::BoxId;
use box_api::control::{BoxState, EventKind};
use box_api::snapshot::Label;
use box_runtime::Progress;
use rusqlite::types::Type;
use std::sync::Arc;

/// From here on the restore is carried through, whoever does it.
pub(super) async fn begin(host: &Host, id: BoxId, label: &Label) -> Result<(), StoreError> {
    let label = label.to_string();
    let write = move |tables: &rusqlite::Transaction<'_>| {
        tables.execute(
            "INSERT INTO restores (box_id, label) VALUES (?1, ?2) \
             ON CONFLICT (box_id) DO UPDATE SET label = ?2",
            (id.as_str(), &label),
        )
    };
    host.store.write(Durability::Full, write).await.map(drop)
}

/// It is over, one way or the other.
pub(super) async fn end(host: &Host, id: BoxId) {
    let write = move |tables: &rusqlite::Transaction<'_>| {
        tables.execute("DELETE FROM restores WHERE box_id = ?", [id.as_str()])
    };
    if let Err(error) = host.store.write(Durability::Full, write).await {
        let why = boxes::reason(&error);
        tracing::error!(%id, why, "a restore that is over is done once more by the next host");
    }
}

/// Carries through what an earlier host left half done. Called once the boxes are reconciled and
/// before anybody can ask for anything. Says how many there were.
///
/// # Errors
/// What the store said.
pub async fn finish(host: &Arc<Host>) -> Result<usize, StoreError> {
    let all = host.store.read(|tables| {
        let mut statement = tables.prepare_cached("SELECT box_id, label FROM restores")?;
        let rows = statement.query_map([], |row| {
            let id: String = row.get(0)?;
            let label: String = row.get(1)?;
            let unread = |error: Box<dyn std::error::Error + Send + Sync>| {
                rusqlite::Error::FromSqlConversionFailure(0, Type::Text, error)
            };
            let id = BoxId::try_from(id).map_err(|error| unread(error.into()))?;
            let label = Label::parse(&label).map_err(|error| unread(error.into()))?;
            Ok((id, label))
        })?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    });
    let all = all.await?;
    let count = all.len();
    for (id, label) in all {
        carry_through(host, id, &label).await;
        end(host, id).await;
    }
    Ok(count)
}

/// Nobody is there to be told how far it is.
struct Quiet;

impl Progress for Quiet {
    fn say(&self, _text: &str) {}
}

async fn carry_through(host: &Arc<Host>, id: BoxId, label: &Label) {
    let record = match boxes::get(host, id).await {
        Ok(Some(record)) if record.state == BoxState::Stopped => record,
        Ok(_) => return,
        Err(error) => {
            let why = boxes::reason(&error);
            return tracing::error!(%id, why, "a restore is half done");
        }
    };
    let restored = match engine_of(host, &record) {
        Ok(engine) => engine
            .restore(&id, label, &Quiet)
            .await
            .map_err(|error| boxes::reason(&error)),
        Err(error) => Err(boxes::reason(&error)),
    };
    match restored {
        Ok(()) => {
            restore_points::go_back(host, id, label).await;
            tracing::info!(%id, %label, "a restore that a host died in is carried through");
        }
        Err(why) => {
            tracing::error!(%id, %label, why, "a restore is half done");
            let text = format!(
                "the host ended while it was brought back to `{label}`, and that could not be \
                 done once more: {why}; its conversations are as they were"
            );
            events::try_note(host, id, EventKind::Ended, text).await;
        }
    }
}
