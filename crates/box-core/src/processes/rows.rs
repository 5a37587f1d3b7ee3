//! SQL of the table `detached`.

use box_api::BoxId;
use box_api::guest::ProcessName;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, types::Type};

/// A process a person started to outlive them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Detached {
    pub(crate) box_id: BoxId,
    pub(crate) name: ProcessName,
    pub(crate) command: Vec<String>,
    pub(crate) started_at_ms: i64,
    pub(crate) ended_at_ms: Option<i64>,
    pub(crate) code: Option<i32>,
    pub(crate) kept: Kept,
}

/// How much of its output is in its log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) stdout: u64,
    pub(crate) stderr: u64,
    /// Length of the log then; what is behind it was written by a host that died before it could
    /// say so, and comes again.
    pub(crate) log_bytes: u64,
}

const COLUMNS: &str = "box_id, name, command, started_at_ms, ended_at_ms, code, stdout_kept, \
                       stderr_kept, log_bytes";

pub(crate) fn insert(connection: &Connection, process: &Detached) -> rusqlite::Result<()> {
    let command = serde_json::to_string(&process.command)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO detached (box_id, name, command, started_at_ms) \
             VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute((
            process.box_id.as_str(),
            process.name.as_str(),
            command,
            process.started_at_ms,
        ))?;
    Ok(())
}

pub(crate) fn remove(
    connection: &Connection,
    id: &BoxId,
    name: &ProcessName,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM detached WHERE box_id = ?1 AND name = ?2")?
        .execute([id.as_str(), name.as_str()])?;
    Ok(())
}

/// Those of a box, oldest first.
pub(crate) fn of_box(connection: &Connection, id: &BoxId) -> rusqlite::Result<Vec<Detached>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM detached WHERE box_id = ?1 ORDER BY started_at_ms, name"
    ))?;
    let rows = statement.query_map([id.as_str()], read)?;
    rows.collect()
}

/// Those whose end is not known, of every box.
pub(crate) fn open(connection: &Connection) -> rusqlite::Result<Vec<Detached>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM detached WHERE ended_at_ms IS NULL"
    ))?;
    let rows = statement.query_map([], read)?;
    rows.collect()
}

/// Whether it has ended; `None` for a process that is not in the table.
pub(crate) fn has_ended(
    connection: &Connection,
    id: &BoxId,
    name: &str,
) -> rusqlite::Result<Option<bool>> {
    connection
        .prepare_cached(
            "SELECT ended_at_ms IS NOT NULL FROM detached WHERE box_id = ?1 AND name = ?2",
        )?
        .query_row([id.as_str(), name], |row| row.get(0))
        .optional()
}

/// Says how much is in the log. Nothing for a process of the same name that began later.
pub(crate) fn keep(
    connection: &Connection,
    (id, name, started_at_ms): (&BoxId, &ProcessName, i64),
    kept: Kept,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE detached SET stdout_kept = :stdout, stderr_kept = :stderr, log_bytes = :log \
             WHERE box_id = :id AND name = :name AND started_at_ms = :started",
        )?
        .execute(named_params! {
            ":stdout": signed(kept.stdout),
            ":stderr": signed(kept.stderr),
            ":log": signed(kept.log_bytes),
            ":id": id.as_str(),
            ":name": name.as_str(),
            ":started": started_at_ms,
        })?;
    Ok(())
}

pub(crate) fn end(
    connection: &Connection,
    (id, name, started_at_ms): (&BoxId, &ProcessName, i64),
    (ended_at_ms, code): (i64, Option<i32>),
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE detached SET ended_at_ms = ?4, code = ?5 \
             WHERE box_id = ?1 AND name = ?2 AND started_at_ms = ?3 AND ended_at_ms IS NULL",
        )?
        .execute((id.as_str(), name.as_str(), started_at_ms, ended_at_ms, code))?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Detached> {
    fn wrong(
        column: usize,
    ) -> impl Fn(Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
        move |error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error)
    }
    let text = |column| row.get::<_, String>(column);
    let unsigned = |column| {
        row.get::<_, i64>(column)
            .map(|number| u64::try_from(number).unwrap_or(0))
    };
    Ok(Detached {
        box_id: BoxId::parse(&text(0)?).map_err(|error| wrong(0)(error.into()))?,
        name: ProcessName::parse(&text(1)?).map_err(|error| wrong(1)(error.into()))?,
        command: serde_json::from_str(&text(2)?).map_err(|error| wrong(2)(error.into()))?,
        started_at_ms: row.get(3)?,
        ended_at_ms: row.get(4)?,
        code: row.get(5)?,
        kept: Kept {
            stdout: unsigned(6)?,
            stderr: unsigned(7)?,
            log_bytes: unsigned(8)?,
        },
    })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
