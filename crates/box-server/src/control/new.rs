//! `New`: makes a box, and sets it up if that was asked.

use super::client::Client;
use super::info;
use crate::problem;
use box_api::Problem;
use box_api::control::{NewBox, Outcome};
use box_core::Host;
use box_core::caller::Caller;
use box_core::lifecycle::{self, Setup};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Pieces of a set-up's output that wait for the client; the set-up waits for room.
const PIECES_MAX: usize = 16;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    client: &Client,
    mut asked: NewBox,
) -> Result<Outcome, Problem> {
    lifecycle::check_script(&asked).map_err(problem::script)?;
    let (script, marks, starts) = (asked.setup.take(), asked.marks, asked.start);
    let made = client
        .with_progress(|progress| lifecycle::create(host, caller, asked, progress))
        .await
        .map_err(problem::create)?;
    let setup = lifecycle::setup_of(&made, script);
    if !starts || setup == Setup::None {
        return info::of(host, &made).await;
    }
    let (told, mut pieces) = mpsc::channel::<Vec<u8>>(PIECES_MAX);
    let show = async {
        while let Some(piece) = pieces.recv().await {
            // It runs to its end, whoever looks.
            if let Err(error) = client.output(&piece).await {
                tracing::debug!(%error, "nobody watches a set-up any more");
                return;
            }
        }
    };
    let set_up = client
        .with_progress(|progress| lifecycle::set_up(host, &made, (setup, marks), progress, told));
    let (done, ()) = tokio::join!(set_up, show);
    done.map_err(problem::set_up)?;
    info::of(host, &made).await
}
