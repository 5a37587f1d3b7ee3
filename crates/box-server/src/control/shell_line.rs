//! `ShellLine`: runs a `!` line and shows what it prints. It goes on when nobody looks any more.

use super::client::Client;
use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, ShellLine};
use box_core::caller::Caller;
use box_core::{Host, shell_line};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Pieces of output that wait for the client.
const PIECES_MAX: usize = 16;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    client: &Client,
    asked: ShellLine,
) -> Result<Outcome, Problem> {
    let (told, mut pieces) = mpsc::channel::<Vec<u8>>(PIECES_MAX);
    let show = async {
        while let Some(piece) = pieces.recv().await {
            if let Err(error) = client.output(&piece).await {
                tracing::debug!(%error, "nobody watches a line any more");
                return;
            }
        }
    };
    let (ended, ()) = tokio::join!(shell_line::run(host, caller, asked, told), show);
    Ok(Outcome::ShellEnded(ended.map_err(problem::shell_line)?))
}
