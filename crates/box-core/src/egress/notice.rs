//! What box-egress reports: into the rows, the log, and to whoever waits for the end of a box.

use super::Surroundings;
use super::wanted;
use crate::network::{self, log::Entry};
use crate::store::StoreError;
use box_api::BoxId;
use box_api::egress::{Event, HostName, Passed, Refusal};
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
            wanted::keep_line(around, passed.box_id, entry_of(passed)).await?;
        }
        Event::ForeignPlaceholder {
            box_id,
            host,
            belongs_to,
            at_ms,
        } => {
            tracing::warn!(id = %box_id, %host, %belongs_to, "a box sent a foreign placeholder");
            let line = alarm(&host, "foreign_placeholder_used", at_ms);
            wanted::keep_line(around, box_id, line).await?;
        }
        Event::SecretReflected {
            box_id,
            host,
            at_ms,
        } => {
            tracing::warn!(id = %box_id, %host, "a host sent a credential back");
            let line = alarm(&host, "secret_reflected", at_ms);
            wanted::keep_line(around, box_id, line).await?;
        }
        Event::BoxGone { box_id } => {
            if gone.try_send(box_id).is_err() {
                tracing::warn!(id = %box_id, "nobody was told that a box ended");
            }
        }
        Event::Lost { count } => tracing::warn!(count, "box-egress threw events away"),
    }
    Ok(())
}

fn entry_of(passed: Passed) -> Entry {
    Entry {
        host: format!("{}:{}", passed.host, passed.port),
        verdict: "allowed",
        rule: passed.rule,
        at_ms: passed.ended_at_ms,
        sent_bytes: passed.sent_bytes,
        received_bytes: passed.received_bytes,
        credential: passed.credential,
    }
}

fn line_of(refusal: Refusal) -> Entry {
    let host = match refusal.port {
        0 => refusal.host,
        port => format!("{}:{port}", refusal.host),
    };
    let rule = refusal.rule.unwrap_or_default();
    Entry {
        host,
        verdict: refusal.reason.slug(),
        rule,
        at_ms: refusal.at_ms,
        sent_bytes: 0,
        received_bytes: 0,
        credential: None,
    }
}

fn alarm(host: &HostName, verdict: &'static str, at_ms: i64) -> Entry {
    Entry {
        host: host.to_string(),
        verdict,
        rule: String::new(),
        at_ms,
        sent_bytes: 0,
        received_bytes: 0,
        credential: None,
    }
}
