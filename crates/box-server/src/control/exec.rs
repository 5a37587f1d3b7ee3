//! `Exec`: a command whose streams go straight to the client. A client that goes away ends it.

use super::client::Client;
use crate::problem;
use box_api::control::{ClientMessage, Exec, Outcome, Reply};
use box_api::{BoxName, Problem};
use box_core::Host;
use box_core::caller::Caller;
use box_core::exec::{self, Started};
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How soon a person is told that their command stands still with its box.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    client: &mut Client,
    asked: Exec,
) -> Result<Outcome, Problem> {
    let name = asked.name.clone();
    let started = exec::exec(host, caller, asked)
        .await
        .map_err(problem::exec)?;
    let Started { box_id, execution } = started;
    client
        .streams(&execution.streams)
        .await
        .map_err(problem::client)?;
    // The client has them now; ours would keep its pipes from ever ending.
    drop(execution.streams);
    let process = execution.process;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stood = false;
    loop {
        tokio::select! {
            _ = looks.tick() => {
                let stands = host.touches.is_frozen(&box_id).await;
                if stands && !stood {
                    client.reply(&standing(&name)).await.map_err(problem::client)?;
                }
                stood = stands;
            }
            code = process.wait() => {
                return Ok(Outcome::Exit { code: code.map_err(problem::engine)? });
            }
            message = client.message() => match message.map_err(problem::client)? {
                Some(ClientMessage::Signal { number }) => {
                    if let Err(error) = process.signal(number).await {
                        tracing::debug!(%error, number, "a signal was not delivered");
                    }
                }
                // Not for this request; a newer client may know why.
                Some(
                    ClientMessage::CancelTurn
                    | ClientMessage::Person
                    | ClientMessage::Piece { .. }
                    | ClientMessage::Answer { .. }
                    | ClientMessage::AnswerForm { .. }
                    | ClientMessage::Prompt { .. },
                ) => {}
                // Letting go of the process kills it.
                None => return Err(problem::client_gone()),
            }
        }
    }
}

fn standing(name: &BoxName) -> Reply {
    Reply::Note {
        text: format!("box `{name}` stands still; `box events {name}` says why"),
    }
}
