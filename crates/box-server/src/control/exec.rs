//! `Exec`: a command whose streams go straight to the client. A client that goes away ends it.

use super::client::Client;
use crate::problem;
use box_api::Problem;
use box_api::control::{ClientMessage, Exec, Outcome};
use box_core::Host;
use box_core::caller::Caller;
use box_core::exec;

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    client: &mut Client,
    asked: Exec,
) -> Result<Outcome, Problem> {
    let execution = exec::exec(host, caller, asked)
        .await
        .map_err(problem::exec)?;
    client
        .streams(&execution.streams)
        .await
        .map_err(problem::client)?;
    // The client has them now; ours would keep its pipes from ever ending.
    drop(execution.streams);
    let process = execution.process;
    loop {
        tokio::select! {
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
                    | ClientMessage::Answer { .. }
                    | ClientMessage::Prompt { .. },
                ) => {}
                // Letting go of the process kills it.
                None => return Err(problem::client_gone()),
            }
        }
    }
}
