//! What every door asks of threads: the control socket, the page, an editor.
//!
//! A door names a thread by its box and its id, or by its id alone; both answer only for boxes the
//! caller may see. Reading is from the tables and wakes nothing. Whatever else a thread can be told
//! is a method of [`ThreadHandle`]: `subscribe`, `prompt`, `steer`, `cancel`, `set_options`,
//! `edit_queued`, `unqueue`, `send_now`, `rename`, `open`, `stop_task`. Decisions are answered with
//! [`crate::decisions::answer`].

use super::listed::{self, Archived};
use super::saved::{self, ThreadRecord};
use super::{AttachError, ThreadHandle};
use crate::boxes::{self, BoxRecord};
use crate::caller::Caller;
use crate::host::Host;
use crate::store::{Durability, StoreError};
use box_api::thread::{ThreadInBox, ThreadInfo, ThreadShown};
use box_api::{BoxId, BoxName, ThreadId};
use std::sync::Arc;

/// A handle on a thread of a box of the caller; without `thread`, on the one begun last that was
/// not put away.
///
/// # Errors
/// [`AttachError`]
pub async fn attach(
    host: &Arc<Host>,
    caller: &Caller,
    name: &BoxName,
    thread: Option<ThreadId>,
) -> Result<ThreadHandle, AttachError> {
    let (_, found) = find(host, caller, name, thread).await?;
    Ok(host.threads.handle(host, found.thread).await?)
}

/// A handle on a thread, whichever box of the caller's it is of.
///
/// # Errors
/// [`AttachError::NoSuch`], also for a thread of somebody else's.
pub async fn attach_by_id(
    host: &Arc<Host>,
    caller: &Caller,
    thread: ThreadId,
) -> Result<(BoxRecord, ThreadHandle), AttachError> {
    let found = host.store.read(move |tables| saved::get(tables, thread));
    let found = found.await?.ok_or(AttachError::NoSuch(thread))?;
    let record = boxes::get(host, found.box_id).await?;
    let record = record
        .filter(|record| caller.may(&record.owner) && record.is_live())
        .ok_or(AttachError::NoSuch(thread))?;
    Ok((record, host.threads.handle(host, thread).await?))
}

/// The threads of a box, newest first, those that were put away among them.
///
/// # Errors
/// What the store said.
pub async fn list(host: &Host, box_id: BoxId) -> Result<Vec<ThreadInfo>, StoreError> {
    host.store
        .read(move |tables| listed::of_box(tables, &box_id, Archived::Too))
        .await
}

/// The threads of one box of the caller's.
///
/// # Errors
/// [`AttachError::Find`], or what the store said.
pub async fn of_box(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
    archived: Archived,
) -> Result<Vec<ThreadInBox>, AttachError> {
    let record = boxes::find(host, caller, name).await?;
    Ok(of_boxes(host, vec![record], archived).await?)
}

/// The threads of every box of the caller's own, box by box.
///
/// # Errors
/// What the store said.
pub async fn of_owner(
    host: &Host,
    caller: &Caller,
    archived: Archived,
) -> Result<Vec<ThreadInBox>, StoreError> {
    let mut records = boxes::list(host, caller).await?;
    records.retain(|record| record.owner == caller.owner);
    of_boxes(host, records, archived).await
}

async fn of_boxes(
    host: &Host,
    records: Vec<BoxRecord>,
    archived: Archived,
) -> Result<Vec<ThreadInBox>, StoreError> {
    host.store
        .read(move |tables| {
            let mut all = Vec::new();
            for record in &records {
                let threads = listed::of_box(tables, &record.id, archived)?;
                all.extend(threads.into_iter().map(|info| ThreadInBox {
                    box_id: record.id,
                    name: record.name.clone(),
                    info,
                }));
            }
            Ok(all)
        })
        .await
}

/// All that is known of a thread, but for its journal.
///
/// # Errors
/// [`AttachError`]
pub async fn show(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
    thread: Option<ThreadId>,
) -> Result<ThreadShown, AttachError> {
    let (record, found) = find(host, caller, name, thread).await?;
    let name = record.name.clone();
    let shown = host
        .store
        .read(move |tables| listed::shown(tables, found.thread, &name))
        .await?;
    shown.ok_or(AttachError::NoSuch(found.thread))
}

/// Puts a thread away, or takes it out again. It goes on either way.
///
/// # Errors
/// [`AttachError`]
pub async fn archive(
    host: &Host,
    caller: &Caller,
    (name, thread): (&BoxName, Option<ThreadId>),
    put: Put,
) -> Result<ThreadId, AttachError> {
    let (_, found) = find(host, caller, name, thread).await?;
    let at_ms = match put {
        Put::Away => Some(host.now_ms()),
        Put::Back => None,
    };
    host.store
        .write(Durability::Prompt, move |tables| {
            listed::archive(tables, found.thread, at_ms)
        })
        .await?;
    host.threads.changed(found.thread);
    Ok(found.thread)
}

/// What is done with a thread's place in lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    Away,
    Back,
}

/// A thread of a box of the caller's, where it is kept.
pub(super) async fn find(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
    thread: Option<ThreadId>,
) -> Result<(BoxRecord, ThreadRecord), AttachError> {
    let record = boxes::find(host, caller, name).await?;
    let box_id = record.id;
    let found = host.store.read(move |tables| match thread {
        Some(thread) => saved::get(tables, thread),
        None => saved::newest(tables, &box_id),
    });
    let found = found.await?.filter(|found| found.box_id == box_id);
    match (found, thread) {
        (Some(found), _) => Ok((record, found)),
        (None, Some(thread)) => Err(AttachError::Unknown {
            name: record.name,
            thread,
        }),
        (None, None) => Err(AttachError::None(record.name)),
    }
}
