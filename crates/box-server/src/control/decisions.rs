//! `Decisions`: what waits for the caller, and what comes to wait.

use super::client::Client;
use crate::problem;
use box_api::control::{Outcome, Reply};
use box_api::network::Waiting;
use box_api::thread::Decision;
use box_api::{DecisionId, Problem};
use box_core::Host;
use box_core::caller::Caller;
use box_core::people::Look;
use box_core::{boxes, decisions};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often the rows are looked at for what threads ask; the network tells at once.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(super) async fn list(host: &Host, caller: &Caller) -> Result<Outcome, Problem> {
    let decisions = waiting(host, caller).await?;
    Ok(Outcome::Decisions { decisions })
}

pub(super) async fn follow(
    host: &Host,
    caller: &Caller,
    client: &mut Client,
) -> Result<Outcome, Problem> {
    let mut told = host.people.listen();
    let mut look: Option<Look> = None;
    let mut every = interval(LOOK_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sent: BTreeSet<DecisionId> = BTreeSet::new();
    loop {
        let open = waiting(host, caller).await?;
        for decision in &open {
            if sent.insert(decision.decision.decision) {
                let reply = Reply::Decision(decision.clone());
                client.reply(&reply).await.map_err(problem::client)?;
            }
        }
        sent.retain(|id| open.iter().any(|open| open.decision.decision == *id));
        // From here on connections wait for whoever follows.
        if look.is_none() {
            look = Some(host.people.look_everywhere());
            let text = "waiting for what is asked".to_owned();
            let reply = Reply::Progress { text };
            client.reply(&reply).await.map_err(problem::client)?;
        }
        tokio::select! {
            // Behind or not, the rows say it all.
            _ = told.recv() => {}
            _ = every.tick() => {}
            message = client.message() => {
                if message.map_err(problem::client)?.is_none() {
                    return Err(problem::client_gone());
                }
            }
        }
    }
}

async fn waiting(host: &Host, caller: &Caller) -> Result<Vec<Waiting>, Problem> {
    let open = decisions::open(host, caller)
        .await
        .map_err(problem::store)?;
    let visible = boxes::list(host, caller).await.map_err(problem::store)?;
    let named = open.into_iter().filter_map(|decision: Decision| {
        let record = visible.iter().find(|record| record.id == decision.box_id)?;
        Some(Waiting {
            name: record.name.clone(),
            decision,
        })
    });
    Ok(named.collect())
}
