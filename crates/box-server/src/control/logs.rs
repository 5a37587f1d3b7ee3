//! `Logs`: what a durable process of a box wrote.

use super::client::Client;
use crate::problem;
use box_api::control::Outcome;
use box_api::{BoxName, Problem};
use box_core::Host;
use box_core::caller::Caller;
use box_core::logs::{self, Follow};

pub(super) struct Asked {
    pub(super) name: BoxName,
    pub(super) process: Option<String>,
    pub(super) follow: bool,
}

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    client: &mut Client,
    asked: Asked,
) -> Result<Outcome, Problem> {
    let follow = if asked.follow {
        Follow::Yes
    } else {
        Follow::No
    };
    let mut pieces = logs::read(host, caller, &asked.name, asked.process.as_deref(), follow)
        .await
        .map_err(problem::logs)?;
    loop {
        tokio::select! {
            piece = pieces.recv() => match piece {
                Some(piece) => client.output(&piece).await.map_err(problem::client)?,
                None => return Ok(Outcome::Nothing),
            },
            // Nothing can be said to a log, so the only news is that the reader is gone.
            message = client.message() => if message.map_err(problem::client)?.is_none() {
                return Err(problem::client_gone());
            }
        }
    }
}
