//! `Net`: a box's network log, and how it goes on.

use super::client::Client;
use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, Reply};
use box_api::network::{Net, NetLine};
use box_core::Host;
use box_core::boxes;
use box_core::caller::Caller;
use box_core::network::log::{self, Since};

/// A connection that is open for a shorter time is followed by its end at once.
const OPEN_MS_MIN: u64 = 2000;

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    client: &mut Client,
    Net {
        name,
        follow,
        since_ms,
    }: Net,
) -> Result<Outcome, Problem> {
    let record = boxes::find(host, caller, &name)
        .await
        .map_err(problem::find)?;
    // Watches from before the first look, so that nothing falls between.
    let mut grew = host.people.watch_log();
    grew.mark_unchanged();
    let mut lines = log::read(host, record.id, Since { at_ms: since_ms })
        .await
        .map_err(problem::store)?;
    if !follow {
        lines.extend(host.live.lines(&record.id));
        return Ok(Outcome::Net { lines });
    }
    let mut sent: Vec<NetLine> = Vec::new();
    let mut open_sent: Vec<NetLine> = Vec::new();
    loop {
        for line in lines {
            if sent.contains(&line) {
                continue;
            }
            client
                .reply(&Reply::Net(line.clone()))
                .await
                .map_err(problem::client)?;
            sent.push(line);
        }
        let mut open = host.live.lines(&record.id);
        open.retain(|line| line.open_ms >= OPEN_MS_MIN);
        for line in open.iter().filter(|line| !open_sent.contains(line)) {
            client
                .reply(&Reply::Net(line.clone()))
                .await
                .map_err(problem::client)?;
        }
        open_sent = open;
        let newest = sent.iter().map(|line| line.at_ms).max();
        let newest = newest.unwrap_or(since_ms);
        // Only these can be among the lines that are read next.
        sent.retain(|line| line.at_ms == newest);
        tokio::select! {
            // The sender is the host's.
            _ = grew.changed() => {}
            message = client.message() => {
                if message.map_err(problem::client)?.is_none() {
                    return Err(problem::client_gone());
                }
            }
        }
        lines = log::read(host, record.id, Since { at_ms: newest })
            .await
            .map_err(problem::store)?;
    }
}
