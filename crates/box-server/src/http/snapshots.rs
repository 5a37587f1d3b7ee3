//! `/api/boxes/{box}/snapshots`: taken, listed, removed, come back to; and the restore points.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::control::{Outcome, Request, Snapshots, Target};
use box_api::page::{SnapshotList, TakeAsk};
use hyper::StatusCode;

pub(super) async fn list(call: Call) -> Called {
    let name = call.box_name().await?;
    let outcome = call
        .ask(Request::Snapshots(Snapshots::List { name }))
        .await?;
    let Outcome::Snapshots { snapshots } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&SnapshotList { snapshots }))
}

pub(super) async fn take(mut call: Call) -> Called {
    let TakeAsk { label } = call.json_or_default().await?;
    let target = Target::Box(call.box_name().await?);
    let outcome = call
        .ask(Request::Snapshots(Snapshots::Take { target, label }))
        .await?;
    let Outcome::Taken { mut taken } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    let taken = taken.pop().ok_or_else(problem::gone)?;
    Ok(answer::created(&taken.snapshot))
}

pub(super) async fn remove(call: Call) -> Called {
    let (name, label) = (call.box_name().await?, call.name(1)?);
    call.ask(Request::Snapshots(Snapshots::Remove { name, label }))
        .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

pub(super) async fn restore(call: Call) -> Called {
    let (name, label) = (call.box_name().await?, call.name(1)?);
    let outcome = call
        .ask(Request::Snapshots(Snapshots::Restore { name, label }))
        .await?;
    let Outcome::Restored(restored) = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&restored))
}

pub(super) async fn points(call: Call) -> Called {
    let name = call.box_name().await?;
    let outcome = call.ask(Request::RestorePoints { name }).await?;
    let Outcome::RestorePoints(points) = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&points))
}
