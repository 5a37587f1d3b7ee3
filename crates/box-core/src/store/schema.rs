//! The tables, as numbered steps that are only ever appended to.
//!
//! `PRAGMA user_version` counts the steps a database has taken. A step that has landed is never
//! changed: whoever needs another table or column adds a step at the end.

use crate::store::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use std::sync::Arc;

/// Every step, in order; the first is number 1.
pub const STEPS: &[&str] = &[
    include_str!("schema/0001-boxes.sql"),
    include_str!("schema/0002-threads.sql"),
    include_str!("schema/0003-undo.sql"),
    include_str!("schema/0004-way-out.sql"),
    include_str!("schema/0005-threads.sql"),
];

/// Takes the steps the database has not taken yet, each in a transaction of its own.
///
/// # Errors
/// [`StoreError::Newer`] when the database has taken more steps than there are.
pub fn upgrade(connection: &mut Connection, steps: &[&str]) -> Result<(), StoreError> {
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let found = connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    for (step, sql) in (1i64..).zip(steps).filter(|(step, _)| *step > found) {
        take(connection, step, sql).map_err(|source| StoreError::Step {
            step,
            source: Arc::new(source),
        })?;
    }
    Ok(())
}

fn take(connection: &mut Connection, step: i64, sql: &str) -> rusqlite::Result<()> {
    // A table that is built anew must not take the rows that refer to it along. Without effect
    // inside a transaction (https://sqlite.org/pragma.html#pragma_foreign_keys).
    connection.pragma_update(None, "foreign_keys", "off")?;
    let taken = take_whole(connection, step, sql);
    connection.pragma_update(None, "foreign_keys", "on")?;
    taken
}

fn take_whole(connection: &mut Connection, step: i64, sql: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(sql)?;
    let dangling = transaction
        .prepare("PRAGMA foreign_key_check")?
        .exists([])?;
    if dangling {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY);
        return Err(rusqlite::Error::SqliteFailure(code, None));
    }
    transaction.pragma_update(None, "user_version", step)?;
    transaction.commit()
}
