//! What befell boxes: out of memory, out of processes, a full disk, a deadline, a freeze.
//!
//! Written by whoever sees it happen, in [`crate::watch`] for the most part; read by clients. Each
//! box keeps its newest [`EVENTS_PER_BOX_MAX`].

use crate::host::Host;
use crate::store::{Durability, StoreError};
use box_api::BoxId;
use box_api::control::{BoxEvent, EVENTS_PER_BOX_MAX, EventKind};
use rusqlite::{Connection, params};

/// Longest text of an event.
const TEXT_BYTES_MAX: usize = 500;

/// Notes what befell a box. A box that is gone by now has no events.
///
/// # Errors
/// What the store said.
pub async fn note(
    host: &Host,
    id: BoxId,
    kind: EventKind,
    text: impl Into<String>,
) -> Result<(), StoreError> {
    let (at_ms, mut text) = (host.now_ms(), text.into());
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    tracing::info!(%id, ?kind, text, "something befell a box");
    let event = BoxEvent { at_ms, kind, text };
    host.store
        .write(Durability::Grouped, move |tables| {
            insert(tables, &id, &event)
        })
        .await
}

/// As [`note`], where a failure to write it down must not undo what happened.
pub(crate) async fn try_note(host: &Host, id: BoxId, kind: EventKind, text: impl Into<String>) {
    if let Err(error) = note(host, id, kind, text).await {
        tracing::warn!(%id, ?kind, %error, "what befell a box is not on record");
    }
}

/// The newest events of a box, oldest of them first.
///
/// # Errors
/// What the store said.
pub async fn newest(host: &Host, id: BoxId, count: usize) -> Result<Vec<BoxEvent>, StoreError> {
    host.store
        .read(move |tables| of_box(tables, &id, count))
        .await
}

fn insert(tables: &Connection, id: &BoxId, event: &BoxEvent) -> rusqlite::Result<()> {
    let written = tables
        .prepare_cached(
            "INSERT INTO box_events (box_id, at_ms, kind, text) \
             SELECT id, ?2, ?3, ?4 FROM boxes WHERE id = ?1",
        )?
        .execute(params![
            id.as_str(),
            event.at_ms,
            word(event.kind),
            event.text
        ])?;
    if written == 0 {
        return Ok(());
    }
    tables
        .prepare_cached(
            "DELETE FROM box_events WHERE box_id = ?1 AND id <= \
             (SELECT id FROM box_events WHERE box_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        )?
        .execute(params![id.as_str(), EVENTS_PER_BOX_MAX])?;
    Ok(())
}

fn of_box(tables: &Connection, id: &BoxId, count: usize) -> rusqlite::Result<Vec<BoxEvent>> {
    let mut statement = tables.prepare_cached(
        "SELECT at_ms, kind, text FROM box_events WHERE box_id = ?1 ORDER BY id DESC LIMIT ?2",
    )?;
    let rows = statement.query_map(params![id.as_str(), count], |row| {
        Ok(BoxEvent {
            at_ms: row.get(0)?,
            kind: kind(&row.get::<_, String>(1)?),
            text: row.get(2)?,
        })
    })?;
    let mut events = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    events.reverse();
    Ok(events)
}

/// The word the wire has for a kind.
fn word(kind: EventKind) -> String {
    let word = serde_json::to_value(kind).unwrap_or_default();
    word.as_str().unwrap_or("other").to_owned()
}

fn kind(word: &str) -> EventKind {
    serde_json::from_value(word.into()).unwrap_or(EventKind::Other)
}

/// A length of time as people write it: `4h`, `1h30m`, `45s`; whole seconds.
pub fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let mut text = String::new();
    for (count, unit) in parts.iter().filter(|(count, _)| *count > 0) {
        text.push_str(&count.to_string());
        text.push_str(unit);
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

/// A size in the largest unit that divides it: `4 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let even = units
        .iter()
        .find(|(shift, _)| bytes >= 1 << shift && bytes.trailing_zeros() >= *shift);
    even.map_or_else(
        || format!("{} MiB", bytes >> 20),
        |(shift, unit)| format!("{} {unit}", bytes >> shift),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_sizes_read_as_people_write_them() {
        let spans = [
            (0, "0s"),
            (45_000, "45s"),
            (5_400_000, "1h30m"),
            (90_061_000, "1d1h1m1s"),
        ];
        for (ms, text) in spans {
            assert_eq!(span(ms), text);
        }
        assert_eq!(size(4 << 30), "4 GiB");
        assert_eq!(size(1536 << 20), "1536 MiB");
        assert_eq!(size((64 << 20) + 1), "64 MiB");
    }

    #[test]
    fn a_kind_of_a_newer_host_is_shown_without_being_known() {
        for known in [
            EventKind::OutOfMemory,
            EventKind::Deadline,
            EventKind::Ended,
        ] {
            assert_eq!(kind(&word(known)), known);
        }
        assert_eq!(kind("on_fire"), EventKind::Other);
    }
}
