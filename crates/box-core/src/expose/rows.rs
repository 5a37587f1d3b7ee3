//! SQL of the table `exposed_ports`.

use box_api::BoxId;
use rusqlite::{Connection, OptionalExtension as _, Row};

/// A port of a box and where it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) box_id: BoxId,
    /// Inside.
    pub(super) port: u16,
    /// On 127.0.0.1.
    pub(super) host_port: u16,
}

/// Every one, by host port.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<Shown>> {
    let mut statement = connection
        .prepare_cached("SELECT box_id, port, host_port FROM exposed_ports ORDER BY host_port")?;
    let rows = statement.query_map([], read)?;
    rows.collect()
}

pub(super) fn get(
    connection: &Connection,
    id: &BoxId,
    port: u16,
) -> rusqlite::Result<Option<Shown>> {
    connection
        .prepare_cached(
            "SELECT box_id, port, host_port FROM exposed_ports WHERE box_id = ?1 AND port = ?2",
        )?
        .query_row((id.as_str(), port), read)
        .optional()
}

/// Whose host port it is already.
pub(super) fn holder(connection: &Connection, host_port: u16) -> rusqlite::Result<Option<Shown>> {
    connection
        .prepare_cached("SELECT box_id, port, host_port FROM exposed_ports WHERE host_port = ?1")?
        .query_row([host_port], read)
        .optional()
}

pub(super) fn insert(connection: &Connection, port: &Shown) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO exposed_ports (box_id, port, host_port) VALUES (?1, ?2, ?3)")?
        .execute((port.box_id.as_str(), port.port, port.host_port))?;
    Ok(())
}

pub(super) fn remove(connection: &Connection, id: &BoxId, port: u16) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM exposed_ports WHERE box_id = ?1 AND port = ?2")?
        .execute((id.as_str(), port))?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Shown> {
    let id: String = row.get(0)?;
    let box_id = BoxId::parse(&id).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
    })?;
    Ok(Shown {
        box_id,
        port: row.get(1)?,
        host_port: row.get(2)?,
    })
}
