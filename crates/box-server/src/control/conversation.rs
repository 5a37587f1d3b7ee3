//! Shows a thread to a client and does what the client says meanwhile. A client that goes away ends
//! only the showing: the turn goes on.

use super::client::Client;
use crate::problem;
use box_api::Problem;
use box_api::control::{ClientMessage, Outcome, Reply};
use box_api::thread::{Item, ThreadUpdate, TurnOutcome};
use box_core::caller::Caller;
use box_core::decisions;
use box_core::host::Host;
use box_core::journal::Subscription;
use box_core::thread::ThreadHandle;
use std::sync::Arc;

/// When the request is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    TurnEnds,
    CaughtUp,
    ClientLeaves,
}

pub(super) async fn show(
    host: &Arc<Host>,
    caller: &Caller,
    client: &mut Client,
    (handle, mut updates): (ThreadHandle, Subscription),
    until: Until,
) -> Result<Outcome, Problem> {
    loop {
        tokio::select! {
            update = updates.next() => {
                let Some(update) = update.map_err(problem::store)? else {
                    return Err(problem::thread_gone());
                };
                let over = over(&update, until);
                client.reply(&Reply::Update(update)).await.map_err(problem::client)?;
                match over {
                    Over::Not => {}
                    Over::Turn(outcome) => return Ok(Outcome::Turn { outcome }),
                    Over::CaughtUp => {
                        let open = decisions::open_of_thread(host, handle.thread()).await;
                        return Ok(Outcome::Detached { open: open.map_err(problem::store)? });
                    }
                }
            }
            message = client.message() => match message.map_err(problem::client)? {
                Some(message) => hear(host, caller, client, (&handle, message)).await?,
                None => return Err(problem::client_gone()),
            }
        }
    }
}

enum Over {
    Not,
    Turn(TurnOutcome),
    CaughtUp,
}

fn over(update: &ThreadUpdate, until: Until) -> Over {
    match (update, until) {
        (ThreadUpdate::CaughtUp { .. }, Until::CaughtUp) => Over::CaughtUp,
        (ThreadUpdate::Row(row), Until::TurnEnds) => {
            if let Item::TurnEnded { outcome, .. } = &row.item {
                Over::Turn(*outcome)
            } else {
                Over::Not
            }
        }
        (ThreadUpdate::CaughtUp { .. } | ThreadUpdate::Row(_) | ThreadUpdate::Grew { .. }, _) => {
            Over::Not
        }
    }
}

async fn hear(
    host: &Arc<Host>,
    caller: &Caller,
    client: &Client,
    (handle, message): (&ThreadHandle, ClientMessage),
) -> Result<(), Problem> {
    let by = caller.owner.to_string();
    match message {
        ClientMessage::CancelTurn => handle.cancel(by).await.map_err(problem::thread),
        ClientMessage::Prompt { text } => handle.prompt(text).await.map_err(problem::prompt),
        ClientMessage::Answer { decision, option } => {
            match decisions::answer(host, caller, decision, &option, &by).await {
                Ok(()) => Ok(()),
                Err(error) => {
                    let refused = Reply::AnswerRefused {
                        decision,
                        why: error.to_string(),
                    };
                    client.reply(&refused).await.map_err(problem::client)
                }
            }
        }
        // Not for a thread; a newer client may know why.
        ClientMessage::Signal { .. } => Ok(()),
    }
}
