//! `Logs`: what a durable process of a box wrote.

use super::client::Client;
use crate::problem;
use box_api::Problem;
use box_api::control::{Logs, Outcome, Reply};
use box_core::Host;
use box_core::caller::Caller;
use box_core::logs::{self, Follow, Reading, Whose};

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    client: &mut Client,
    asked: Logs,
) -> Result<Outcome, Problem> {
    let follow = if asked.follow {
        Follow::Yes
    } else {
        Follow::No
    };
    let Reading {
        mut pieces, whose, ..
    } = logs::read(host, caller, &asked.name, asked.process.as_deref(), follow)
        .await
        .map_err(problem::logs)?;
    // Of an agent's process this is what it printed beside its work.
    let elsewhere = (whose == Whose::Agents).then(|| Reply::Note {
        text: format!(
            "what the agent said and did is in `box attach {}`",
            asked.name
        ),
    });
    let (first, last) = match follow {
        Follow::Yes => (elsewhere, None),
        Follow::No => (None, elsewhere),
    };
    if let Some(note) = first {
        client.reply(&note).await.map_err(problem::client)?;
    }
    loop {
        tokio::select! {
            piece = pieces.recv() => match piece {
                Some(piece) => client.output(&piece).await.map_err(problem::client)?,
                None => break,
            },
            // Nothing can be said to a log, so the only news is that the reader is gone.
            message = client.message() => if message.map_err(problem::client)?.is_none() {
                return Err(problem::client_gone());
            }
        }
    }
    if let Some(note) = last {
        client.reply(&note).await.map_err(problem::client)?;
    }
    Ok(Outcome::Nothing)
}
