//! `Snapshots`: taken, listed, removed, come back to.

use super::client::Client;
use super::{info, target};
use crate::problem;
use box_api::control::{Outcome, Restored, Snapshots, Taken, Target};
use box_api::{BoxName, Label, Problem};
use box_core::Host;
use box_core::boxes::{self, BoxRecord};
use box_core::caller::Caller;
use box_core::lifecycle;
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    client: &Client,
    asked: Snapshots,
) -> Result<Outcome, Problem> {
    match asked {
        Snapshots::Take { target, label } => take(host, caller, client, (target, label)).await,
        Snapshots::List { name } => {
            let record = find(host, caller, &name).await?;
            let snapshots = lifecycle::snapshots(host, &record).await;
            let snapshots = snapshots.map_err(problem::snapshot)?;
            Ok(Outcome::Snapshots { snapshots })
        }
        Snapshots::Remove { name, label } => {
            let record = find(host, caller, &name).await?;
            let removed = lifecycle::discard(host, record.id, label).await;
            removed.map_err(problem::snapshot)?;
            Ok(Outcome::Nothing)
        }
        Snapshots::Restore { name, label } => {
            let record = find(host, caller, &name).await?;
            restore(host, client, &record, label).await
        }
    }
}

async fn find(host: &Host, caller: &Caller, name: &BoxName) -> Result<BoxRecord, Problem> {
    boxes::find(host, caller, name).await.map_err(problem::find)
}

async fn take(
    host: &Arc<Host>,
    caller: &Caller,
    client: &Client,
    (asked, label): (Target, Option<Label>),
) -> Result<Outcome, Problem> {
    let (mut taken, mut problems) = (Vec::new(), Vec::new());
    for record in target::boxes_of(host, caller, &asked).await? {
        let label = label.clone();
        let made = client
            .with_progress(|progress| lifecycle::snapshot(host, record.id, label, progress))
            .await;
        match made {
            Ok(snapshot) => taken.push(Taken {
                name: record.name,
                snapshot,
            }),
            Err(error) => problems.push(problem::snapshot(error)),
        }
    }
    target::whole(problems)?;
    Ok(Outcome::Taken { taken })
}

async fn restore(
    host: &Arc<Host>,
    client: &Client,
    record: &BoxRecord,
    label: Label,
) -> Result<Outcome, Problem> {
    let restored = client
        .with_progress(|progress| lifecycle::restore(host, record.id, label, progress))
        .await;
    let (record, undo) = restored.map_err(problem::restore)?;
    let info = info::all(host, std::slice::from_ref(&record)).await?.pop();
    let info = info.ok_or_else(problem::gone)?;
    Ok(Outcome::Restored(Box::new(Restored { info, undo })))
}
