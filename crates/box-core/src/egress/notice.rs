//! What box-egress reports: into the rows, the log, and to whoever waits for the end of a box.

use super::wanted;
use super::{Surroundings, logins};
use crate::budget;
use crate::network;
use crate::network::live::Heard;
use crate::network::log::{self, Entry};
use crate::store::StoreError;
use box_api::BoxId;
use box_api::egress::traffic::Entrance;
use box_api::egress::{Event, Passed, Refusal};
use box_api::network::NetProcess;
use tokio::sync::mpsc;

/// Takes one event.
pub(super) async fn take(
    around: &Surroundings,
    gone: &mpsc::Sender<BoxId>,
    event: Event,
) -> Result<(), StoreError> {
    match event {
        Event::Mapped { box_id, name, addr } => {
            wanted::keep_name(around, box_id, name, addr).await?;
        }
        Event::Refused(refusal) => {
            wanted::keep_line(around, refusal.box_id, line_of(refusal)).await?;
        }
        Event::Asked {
            box_id,
            host,
            port,
            at_ms,
        } => network::ask(around, box_id, (host, port), at_ms).await?,
        Event::Passed(passed) => {
            let process = around.live.close(&passed, around.clock.now_ms());
            match passed.times {
                // It only ended; what it was refused for was told.
                0 => around.people.log_grew(),
                _ => wanted::keep_line(around, passed.box_id, entry_of(passed, process)).await?,
            }
        }
        Event::Open(open) => {
            if around.live.hear(open.clone(), around.clock.now_ms()) == Heard::First {
                network::look_for_process(around, open);
            }
            around.people.log_grew();
        }
        Event::Signal(signal) => {
            let line = Entry::of(signal.host.clone(), signal.kind.slug(), signal.at_ms);
            wanted::keep_line(around, signal.box_id, line).await?;
            around.live.raise(signal);
        }
        Event::Used(used) => budget::take(around, used).await?,
        // Signals tell the same, and not too often.
        Event::ForeignPlaceholder {
            box_id,
            host,
            belongs_to,
            ..
        } => tracing::warn!(id = %box_id, %host, %belongs_to, "a box sent a foreign placeholder"),
        Event::SecretReflected { box_id, host, .. } => {
            tracing::warn!(id = %box_id, %host, "a host sent a credential back");
        }
        Event::LoggedIn { box_id, login } => logins::keep(around, box_id, login).await?,
        Event::BoxGone { box_id } => {
            around.live.forget(&box_id);
            if gone.try_send(box_id).is_err() {
                tracing::warn!(id = %box_id, "nobody was told that a box ended");
            }
        }
        Event::Lost { count } => tracing::warn!(count, "box-egress threw events away"),
    }
    Ok(())
}

fn entry_of(passed: Passed, process: Option<NetProcess>) -> Entry {
    let host = format!("{}:{}", passed.host, passed.port);
    Entry {
        rule: passed.rule,
        times: passed.times,
        sent_bytes: passed.sent_bytes,
        received_bytes: passed.received_bytes,
        credential: passed.credential,
        process,
        way: passed.entrance.map_or("", Entrance::word),
        address: passed.address,
        open_ms: passed.open_ms,
        exchanges: passed.exchanges,
        ..Entry::of(host, log::ALLOWED, passed.ended_at_ms)
    }
}

fn line_of(refusal: Refusal) -> Entry {
    let host = match refusal.port {
        0 => refusal.host,
        port => format!("{}:{port}", refusal.host),
    };
    Entry {
        rule: refusal.rule.unwrap_or_default(),
        times: refusal.times,
        way: refusal.entrance.map_or("", Entrance::word),
        ..Entry::of(host, refusal.reason.slug(), refusal.at_ms)
    }
}
