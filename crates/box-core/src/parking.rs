//! Threads that wait for a time: who is let go on, and when.
//!
//! A thread is parked by its own state machine, which writes the row here in the commit that ends
//! its turn. This room only looks at the rows and the clock: whose time has come is told to go on,
//! one after the other for each account, the most important first. Nothing is kept in memory that a
//! host that dies would have to remember.

mod lot;

pub use lot::{Entry, LOOK_MS, Lot, RETRY_MS, STAGGER_MS};

use crate::boxes::{self, FindError};
use crate::caller::Caller;
use crate::clock::shown_ms;
use crate::host::Host;
use crate::store::StoreError;
use crate::thread::parked::Parked as State;
use crate::thread::{self, AttachError, ThreadError};
use crate::watch;
use box_api::control::{Park, Parked, Parking};
use box_api::{BoxId, BoxName, ThreadId};
use rusqlite::{Connection, Row, Transaction, types::Type};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Farthest a thread is parked: longer is a slip of the finger.
const PARK_MS_MAX: i64 = 366 * 24 * 3_600_000;

/// Why a thread was not parked, or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum ParkError {
    #[error("{} is over already", shown_ms(*.0))]
    Past(i64),
    #[error("{} is more than a year away", shown_ms(*.0))]
    Far(i64),
    #[error("box `{0}` has no thread")]
    NoThread(BoxName),
    #[error("nothing of box `{0}` is parked")]
    NotParked(BoxName),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Thread(#[from] ThreadError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Parks a thread of a box of the caller, or all of them.
///
/// # Errors
/// [`ParkError`]
pub async fn park(
    host: &Arc<Host>,
    caller: &Caller,
    asked: Park,
    by: &str,
) -> Result<Vec<Parked>, ParkError> {
    let now_ms = host.now_ms();
    match asked.until_ms {
        Some(until_ms) if until_ms <= now_ms => return Err(ParkError::Past(until_ms)),
        Some(until_ms) if until_ms - now_ms > PARK_MS_MAX => return Err(ParkError::Far(until_ms)),
        Some(_) | None => {}
    }
    let record = boxes::find(host, caller, &asked.name).await?;
    let threads = if let Some(thread) = asked.thread {
        vec![thread]
    } else {
        let all = thread::list(host, record.id).await?;
        all.into_iter().map(|info| info.thread).collect()
    };
    if threads.is_empty() {
        return Err(ParkError::NoThread(asked.name));
    }
    for thread in threads {
        let handle = thread::attach(host, caller, &asked.name, Some(thread)).await?;
        handle.park(asked.until_ms, by.to_owned()).await?;
    }
    Ok(of_box(host, record.id).await?)
}

/// Lets a parked thread of a box of the caller go on now, or all of them. Answers which they were.
///
/// # Errors
/// [`ParkError`]
pub async fn resume(
    host: &Arc<Host>,
    caller: &Caller,
    (name, thread): (&BoxName, Option<ThreadId>),
    by: &str,
) -> Result<Vec<Parked>, ParkError> {
    let record = boxes::find(host, caller, name).await?;
    if let Some(thread) = thread {
        thread::attach(host, caller, name, Some(thread)).await?;
    }
    let mut parked = of_box(host, record.id).await?;
    parked.retain(|parked| thread.is_none_or(|thread| parked.thread == thread));
    if parked.is_empty() {
        return Err(ParkError::NotParked(name.clone()));
    }
    wake(host, record.id).await;
    for parked in &parked {
        let handle = host.threads.handle(host, parked.thread).await?;
        handle.resume(Some(by.to_owned())).await?;
    }
    Ok(parked)
}

/// The parked threads of a box, the one parked first first.
///
/// # Errors
/// What the store said.
pub async fn of_box(host: &Host, id: BoxId) -> Result<Vec<Parked>, StoreError> {
    host.store
        .read(move |tables| {
            let mut statement = tables.prepare_cached(
                "SELECT thread, why, until_ms FROM parked JOIN threads ON threads.id = thread \
                 WHERE threads.box_id = ? ORDER BY since_ms, thread",
            )?;
            let rows = statement.query_map([id.as_str()], |row| {
                Ok(Parked {
                    thread: thread_of(row)?,
                    why: why(row)?,
                    until_ms: row.get(2)?,
                })
            })?;
            rows.collect()
        })
        .await
}

/// Lets threads go on when their time has come, as long as the host lives.
pub async fn run(host: Arc<Host>) {
    let mut lot = Lot::default();
    loop {
        let wait_ms = look(&host, &mut lot).await;
        sleep(Duration::from_millis(
            u64::try_from(wait_ms).unwrap_or_default(),
        ))
        .await;
    }
}

/// One look; answers how long until the next.
async fn look(host: &Arc<Host>, lot: &mut Lot) -> i64 {
    let entries = match host.store.read(entries).await {
        Ok(entries) => entries,
        Err(error) => {
            tracing::error!(
                why = boxes::reason(&error),
                "what is parked could not be read"
            );
            return LOOK_MS;
        }
    };
    let look = lot.look(&entries, host.now_ms());
    for thread in look.go_on {
        if let Err(error) = go_on(host, thread).await {
            // Its row is still there: it is its turn again.
            tracing::warn!(%thread, why = boxes::reason(&error), "a parked thread does not go on");
        }
    }
    look.wait_ms
}

async fn go_on(host: &Arc<Host>, thread: ThreadId) -> Result<(), ThreadError> {
    let handle = host.threads.handle(host, thread).await?;
    wake(host, handle.box_id()).await;
    tracing::info!(%thread, "a parked thread goes on");
    handle.resume(None).await
}

/// What goes on is on record whether or not the box can be woken now.
async fn wake(host: &Host, id: BoxId) {
    if let Err(error) = watch::touch(host, id).await {
        tracing::warn!(%id, %error, "a box whose thread goes on is not awake");
    }
}

/// Writes what a commit says about a thread.
///
/// # Errors
/// What the database said.
pub(crate) fn keep(
    tables: &Transaction<'_>,
    thread: ThreadId,
    parked: Option<&State>,
) -> rusqlite::Result<()> {
    let Some(parked) = parked else {
        tables
            .prepare_cached("DELETE FROM parked WHERE thread = ?")?
            .execute([thread.as_str()])?;
        return Ok(());
    };
    let why = match parked.why {
        Parking::Limit => "limit",
        Parking::Person => "person",
    };
    tables
        .prepare_cached(
            "INSERT INTO parked (thread, why, until_ms, since_ms) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (thread) DO UPDATE SET why = ?2, until_ms = ?3, since_ms = ?4",
        )?
        .execute((thread.as_str(), why, parked.until_ms, parked.since_ms))?;
    Ok(())
}

/// Every parked thread of a box that runs. Those of other boxes go on once theirs does.
fn entries(tables: &Connection) -> rusqlite::Result<Vec<Entry>> {
    let mut statement = tables.prepare_cached(
        "SELECT parked.thread, parked.why, parked.until_ms, parked.since_ms, \
           threads.owner || ' ' || threads.agent || ' ' || coalesce((SELECT group_concat(account) \
             FROM (SELECT kind || ':' || name AS account FROM placeholders \
                   WHERE box_id = boxes.id ORDER BY 1)), ''), \
           coalesce(json_extract(boxes.settings, '$.priority'), 'normal') \
         FROM parked JOIN threads ON threads.id = parked.thread \
         JOIN boxes ON boxes.id = threads.box_id WHERE boxes.state = 'running'",
    )?;
    let rows = statement.query_map([], |row| {
        let priority: String = row.get(5)?;
        Ok(Entry {
            thread: thread_of(row)?,
            why: why(row)?,
            until_ms: row.get(2)?,
            since_ms: row.get(3)?,
            account: row.get(4)?,
            rank: match priority.as_str() {
                "high" => 0,
                "low" => 2,
                _ => 1,
            },
        })
    })?;
    rows.collect()
}

fn thread_of(row: &Row<'_>) -> rusqlite::Result<ThreadId> {
    ThreadId::try_from(row.get::<_, String>(0)?)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, error.into()))
}

fn why(row: &Row<'_>) -> rusqlite::Result<Parking> {
    Ok(match row.get::<_, String>(1)?.as_str() {
        "person" => Parking::Person,
        _ => Parking::Limit,
    })
}
