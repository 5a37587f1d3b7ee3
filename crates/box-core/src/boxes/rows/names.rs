//! SQL of the fake addresses a box knows names by.

use box_api::BoxId;
use box_api::egress::HostName;
use rusqlite::Connection;
use std::net::Ipv4Addr;

/// What a box knows, the names it learned first; at most `max`.
///
/// # Errors
/// What the database said.
pub fn names(
    connection: &Connection,
    id: &BoxId,
    max: usize,
) -> rusqlite::Result<Vec<(String, u32)>> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "SELECT name, address FROM egress_names WHERE box_id = ?1 ORDER BY address LIMIT ?2",
        )?
        .query_map((id.as_str(), max), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// Gives a new box what another knew. A second one of a name or an address is left out.
///
/// # Errors
/// What the database said.
pub fn keep_names(
    connection: &Connection,
    id: &BoxId,
    names: &[(HostName, Ipv4Addr)],
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO egress_names (box_id, name, address) VALUES (?1, ?2, ?3) \
         ON CONFLICT DO NOTHING",
    )?;
    for (name, address) in names {
        insert.execute((id.as_str(), name.as_str(), u32::from(*address)))?;
    }
    Ok(())
}
