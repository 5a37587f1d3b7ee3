//! `GET /api/threads/{thread}/log`, the WebSocket's twin for whoever cannot have one; and single
//! pages and rows.

use super::answer;
use super::call::{Call, Called};
use super::journal::{self, Follower};
use crate::problem;
use box_api::page::{LogPage, RowsPage, WAIT_S_MAX};
use box_api::thread::Cursor;
use std::time::Duration;
use tokio::time::timeout;

pub(super) async fn follow(call: Call) -> Called {
    let wait_s = call
        .asked::<u64>("wait")?
        .unwrap_or_default()
        .min(WAIT_S_MAX);
    let after = match (call.asked("epoch")?, call.asked("seq")?) {
        (Some(epoch), Some(seq)) => Some(Cursor {
            epoch,
            seq,
            bytes: call.asked("bytes")?.unwrap_or_default(),
        }),
        _ => None,
    };
    let (handle, _) = call.thread_named().await?;
    let (mut follower, mut page) = Follower::begin(call.host(), &handle, after).await?;
    if page.updates.is_empty() {
        page.updates = follower.ready().await?;
    }
    if page.updates.is_empty() {
        let waiting = timeout(Duration::from_secs(wait_s), follower.wait()).await;
        if let Ok(waited) = waiting {
            waited?;
            page.updates = follower.ready().await?;
        }
    }
    let head = journal::head(&call.web, call.caller, handle.thread()).await?;
    Ok(answer::json(&LogPage {
        start: page.start,
        from: page.from,
        to: follower.reached(),
        updates: page.updates,
        older: page.older,
        head,
    }))
}

pub(super) async fn rows(call: Call) -> Called {
    let before = call.asked("before")?;
    let (handle, _) = call.thread_named().await?;
    let place = journal::place(&handle);
    let tail = journal::tail(call.host(), place, before).await?;
    Ok(answer::json(&RowsPage {
        epoch: place.epoch,
        rows: tail.rows.into_iter().map(journal::page_row).collect(),
        older: tail.older,
    }))
}

pub(super) async fn row(call: Call) -> Called {
    let seq: u64 = call.name(1)?;
    let (handle, _) = call.thread_named().await?;
    let place = journal::place(&handle);
    let row = call
        .host()
        .store
        .read(move |tables| box_core::journal::row(tables, place, seq))
        .await
        .map_err(problem::store)?;
    let row = row.ok_or_else(|| problem::row(seq))?;
    Ok(answer::json(&row))
}
