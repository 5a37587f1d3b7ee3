//! `Top`: what the caller's boxes use, looked at twice.

use crate::problem;
use box_api::control::{BoxState, BoxUsage, Outcome, Traffic, Used};
use box_api::{BoxId, Problem};
use box_core::Host;
use box_core::boxes::{self, BoxRecord};
use box_core::caller::Caller;
use box_core::network::log;
use box_runtime::Usage;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Between the two looks.
const APART: Duration = Duration::from_millis(500);

pub(super) async fn handle(host: &Host, caller: &Caller) -> Result<Outcome, Problem> {
    let records = boxes::list(host, caller).await.map_err(problem::store)?;
    let first = look(host, &records).await;
    if first.iter().any(|(_, usage)| usage.is_some()) {
        sleep(APART).await;
    }
    let second = look(host, &records).await;
    let mut boxes = Vec::with_capacity(records.len());
    for (record, (before, after)) in records.iter().zip(first.into_iter().zip(second)) {
        let net = traffic(host, record.id).await?;
        boxes.push(BoxUsage {
            id: record.id,
            name: record.name.clone(),
            state: record.state,
            limits: record.limits,
            used: used(before, after).map(|used| Used { net, ..used }),
        });
    }
    Ok(Outcome::Usage { boxes })
}

/// What went over a box's network in all, and goes now.
pub(super) async fn traffic(host: &Host, id: BoxId) -> Result<Traffic, Problem> {
    let (sent, received) = log::total(host, id).await.map_err(problem::store)?;
    let mut now = host.live.traffic(&id, host.now_ms());
    now.sent_bytes += sent;
    now.received_bytes += received;
    Ok(now)
}

/// When a box was looked at and what it used.
type Seen = (Instant, Option<Usage>);

/// A box whose engine cannot tell costs only its own line.
async fn look(host: &Host, records: &[BoxRecord]) -> Vec<Seen> {
    let mut seen = Vec::with_capacity(records.len());
    for record in records {
        let limiter = host
            .runtime_of(record)
            .ok()
            .and_then(|runtime| runtime.limiter());
        let usage = match limiter {
            Some(limiter) if record.state == BoxState::Running => {
                limiter.usage(&record.id).await.ok()
            }
            Some(_) | None => None,
        };
        seen.push((Instant::now(), usage));
    }
    seen
}

fn used((then, before): Seen, (now, after): Seen) -> Option<Used> {
    let (before, after) = (before?, after?);
    let elapsed_ms = (now - then).as_millis().max(1);
    // Microseconds in milliseconds are thousandths.
    let cpu_milli = u128::from(after.cpu_us.saturating_sub(before.cpu_us)) / elapsed_ms;
    Some(Used {
        cpu_us: after.cpu_us,
        cpu_milli: u32::try_from(cpu_milli).unwrap_or(u32::MAX),
        memory_bytes: after.memory_bytes,
        processes: after.processes,
        frozen: after.frozen,
        net: Traffic::default(),
    })
}
