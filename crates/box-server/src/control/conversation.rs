//! Shows a thread to a client and does what the client says meanwhile. A client that goes away ends
//! only the showing: the turn goes on.

use super::client::Client;
use crate::problem;
use box_api::control::{ClientMessage, Outcome, Reply};
use box_api::network::Waiting;
use box_api::thread::{Decision, Item, ThreadUpdate, TurnOutcome};
use box_api::{DecisionId, Problem};
use box_core::caller::Caller;
use box_core::decisions::AnswerError;
use box_core::host::Host;
use box_core::journal::Subscription;
use box_core::people::Look;
use box_core::thread::ThreadHandle;
use box_core::{boxes, decisions, watch};
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
    // Whoever looks on keeps the box awake, and so does what they say.
    let _awake = watch::touch(host, handle.box_id())
        .await
        .map_err(problem::engine)?;
    let mut told = host.people.listen();
    let mut look: Option<Look> = None;
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
            decision = told.recv(), if look.is_some() => match decision {
                Ok(decision) => show_of_box(host, client, &handle, [decision]).await?,
                // Behind: the rows say it all.
                Err(_) => show_network(host, client, &handle).await?,
            },
            message = client.message() => match message.map_err(problem::client)? {
                Some(ClientMessage::Person) => {
                    look = Some(host.people.look_at(handle.box_id()));
                    show_network(host, client, &handle).await?;
                }
                Some(message) => hear(host, caller, client, (&handle, message)).await?,
                None => return Err(problem::client_gone()),
            }
        }
    }
}

/// What is open about the network of the thread's box.
async fn show_network(
    host: &Arc<Host>,
    client: &Client,
    handle: &ThreadHandle,
) -> Result<(), Problem> {
    let open = decisions::open_of_network(host, handle.box_id())
        .await
        .map_err(problem::store)?;
    show_of_box(host, client, handle, open).await
}

/// Those decisions that are the thread's box's.
async fn show_of_box(
    host: &Arc<Host>,
    client: &Client,
    handle: &ThreadHandle,
    decisions: impl IntoIterator<Item = Decision>,
) -> Result<(), Problem> {
    let Some(record) = boxes::get(host, handle.box_id())
        .await
        .map_err(problem::store)?
    else {
        return Ok(());
    };
    for decision in decisions {
        if decision.box_id == record.id {
            let name = record.name.clone();
            let reply = Reply::Decision(Waiting { name, decision });
            client.reply(&reply).await.map_err(problem::client)?;
        }
    }
    Ok(())
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
            let answered = decisions::answer(host, caller, decision, &option, &by).await;
            refused(client, decision, answered).await
        }
        ClientMessage::AnswerForm { decision, answer } => {
            let answered = decisions::answer_form(host, caller, decision, answer, &by).await;
            refused(client, decision, answered).await
        }
        // The first is heard where the client is; the other is not for a thread.
        ClientMessage::Person | ClientMessage::Signal { .. } | ClientMessage::Piece { .. } => {
            Ok(())
        }
    }
}

/// Whoever came too late, or did not fit, is told why.
async fn refused(
    client: &Client,
    decision: DecisionId,
    answered: Result<(), AnswerError>,
) -> Result<(), Problem> {
    let Err(error) = answered else { return Ok(()) };
    let why = error.to_string();
    let refused = Reply::AnswerRefused { decision, why };
    client.reply(&refused).await.map_err(problem::client)
}
