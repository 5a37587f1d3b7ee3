//! `Info`: one box.

use super::top;
use crate::problem;
use box_api::control::{BoxEvent, BoxInfo, EVENTS_WITH_BOX_MAX, EventKind, Outcome};
use box_api::{BoxName, Problem};
use box_core::Host;
use box_core::boxes::{self, BoxRecord};
use box_core::caller::Caller;
use box_core::credentials;
use box_core::events;
use box_core::thread;
use box_runtime::Observed;
use std::collections::HashMap;

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
) -> Result<Outcome, Problem> {
    let record = boxes::find(host, caller, name)
        .await
        .map_err(problem::find)?;
    of(host, &record).await
}

/// One box as the last word of a request.
pub(super) async fn of(host: &Host, record: &BoxRecord) -> Result<Outcome, Problem> {
    Ok(Outcome::Info(Box::new(one(host, record).await?)))
}

pub(super) async fn one(host: &Host, record: &BoxRecord) -> Result<BoxInfo, Problem> {
    let mut all = all(host, std::slice::from_ref(record)).await?;
    all.pop().ok_or_else(problem::gone)
}

/// Boxes with what their engines and the threads module know of them. An engine that does not
/// answer costs only what it alone knows.
pub(super) async fn all(host: &Host, records: &[BoxRecord]) -> Result<Vec<BoxInfo>, Problem> {
    let mut observed: HashMap<&str, Vec<Observed>> = HashMap::new();
    let mut infos = Vec::with_capacity(records.len());
    for record in records {
        if !observed.contains_key(record.runtime.as_str()) {
            let seen = match host.runtime_of(record) {
                Ok(runtime) => runtime.list().await.unwrap_or_default(),
                Err(_) => Vec::new(),
            };
            observed.insert(&record.runtime, seen);
        }
        let seen = observed.get(record.runtime.as_str());
        let seen = seen.and_then(|seen| seen.iter().find(|seen| seen.id == record.id));
        let threads = thread::list(host, record.id)
            .await
            .map_err(problem::store)?;
        let pid = seen.and_then(|seen| seen.pid);
        let events = events::newest(host, record.id, EVENTS_WITH_BOX_MAX).await;
        let events = events.map_err(problem::store)?;
        let frozen = pid.is_some() && host.touches.is_frozen(&record.id).await;
        let accounts = credentials::accounts_of(host, record).await;
        infos.push(BoxInfo {
            frozen,
            frozen_why: frozen.then(|| why_frozen(&events)).flatten(),
            traffic: top::traffic(host, record.id).await?,
            events,
            accounts: accounts.map_err(problem::store)?,
            ..boxes::info(host, record, pid, threads)
        });
    }
    Ok(infos)
}

/// Nothing befalls a box while it is frozen: its freeze is among the newest.
fn why_frozen(events: &[BoxEvent]) -> Option<String> {
    let mut newest = events.iter().rev();
    let frozen = newest.find(|event| event.kind == EventKind::Frozen)?;
    Some(frozen.text.clone())
}
