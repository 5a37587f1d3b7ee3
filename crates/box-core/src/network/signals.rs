//! What is done about a signal of box-egress: it is written down among the events of the box and,
//! where the owner wants that, the box is frozen until its owner thaws it.

use crate::boxes;
use crate::events;
use crate::host::Host;
use crate::store::StoreError;
use crate::watch;
use box_api::BoxId;
use box_api::control::{EventKind, OnSignal};
use box_api::egress::traffic::{Signal, SignalKind};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The same signal of a box is written down once in this time, unless the box is frozen for it.
const SAME_EVERY_MS: i64 = 10 * 60 * 1000;

/// Acts on signals until the host ends.
pub async fn run(host: Arc<Host>) {
    let mut written = Written::default();
    while let Some(signal) = host.live.signal().await {
        let news = written.see(&signal, host.now_ms());
        if let Err(error) = take(&host, &signal, news).await {
            let why = boxes::reason(&error);
            tracing::error!(id = %signal.box_id, why, "a signal is not on record");
        }
    }
}

/// Whether a signal is written down already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    Fresh,
    Known,
}

/// When each signal was written down last. box-egress tells few of a box, and the old are let go.
#[derive(Debug, Default)]
struct Written(HashMap<(BoxId, SignalKind, String), i64>);

impl Written {
    fn see(&mut self, signal: &Signal, now_ms: i64) -> News {
        self.0.retain(|_, at_ms| now_ms - *at_ms < SAME_EVERY_MS);
        let key = (signal.box_id, signal.kind, signal.host.clone());
        match self.0.entry(key) {
            Entry::Occupied(_) => News::Known,
            Entry::Vacant(place) => {
                place.insert(now_ms);
                News::Fresh
            }
        }
    }
}

async fn take(host: &Host, signal: &Signal, news: News) -> Result<(), StoreError> {
    let Some(record) = boxes::get(host, signal.box_id).await? else {
        return Ok(());
    };
    let text = text(signal);
    let freezes = record.settings.on_signal == OnSignal::Freeze && signal.kind.can_freeze();
    if freezes || news == News::Fresh {
        events::note(host, record.id, EventKind::Signal, text.clone()).await?;
    }
    if freezes && let Err(error) = watch::freeze_for(host, &record, &text).await {
        let why = boxes::reason(&error);
        tracing::error!(id = %record.id, why, "a box that should be frozen runs on");
        let text = format!("it could not be frozen: {why}");
        events::note(host, record.id, EventKind::Signal, text).await?;
    }
    Ok(())
}

/// A signal in one line for a person.
fn text(signal: &Signal) -> String {
    let (host, count) = (shown(&signal.host), signal.count);
    match signal.kind {
        SignalKind::PlaceholderElsewhere => {
            format!("it sent a placeholder of its own to `{host}`, which it is not for")
        }
        SignalKind::PlaceholderOfAnotherBox => {
            format!("it sent the placeholder of another box to `{host}`")
        }
        SignalKind::PlaceholderInPlain => {
            format!("it sent a placeholder to `{host}` over plain http")
        }
        SignalKind::CredentialEchoed => {
            format!("`{host}` sent the credential back; the box was given the placeholder instead")
        }
        SignalKind::DataInNames => {
            format!("it asked for {count} names under `{host}` that look as if they carry data")
        }
        SignalKind::ManyRefused => {
            format!("it was refused {count} different hosts in less than a minute")
        }
        SignalKind::MuchTraffic => {
            format!("{} went to and from `{host}`", events::size(count))
        }
    }
}

/// A host as the box wrote it, harmless and short.
fn shown(host: &str) -> String {
    let visible = host.chars().filter(|c| !c.is_control() && *c != '`');
    visible.take(253).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_of_one_box_is_written_down_once_in_ten_minutes() {
        let mut written = Written::default();
        let of = |box_number: u8| Signal {
            box_id: BoxId::from_random([box_number; 10]),
            kind: SignalKind::PlaceholderElsewhere,
            host: "evil.test".to_owned(),
            count: 1,
            at_ms: 0,
        };
        assert_eq!(written.see(&of(1), 0), News::Fresh);
        assert_eq!(written.see(&of(1), SAME_EVERY_MS - 1), News::Known);
        assert_eq!(written.see(&of(2), SAME_EVERY_MS - 1), News::Fresh);
        assert_eq!(written.see(&of(1), SAME_EVERY_MS), News::Fresh);
        assert_eq!(written.0.len(), 2);
    }

    #[test]
    fn each_signal_reads_as_a_sentence_and_steers_no_terminal() {
        for kind in SignalKind::ALL {
            let signal = Signal {
                box_id: BoxId::from_random([1; 10]),
                kind,
                host: "evil\u{1b}[2J`.test".to_owned(),
                count: 1 << 30,
                at_ms: 0,
            };
            let text = text(&signal);
            assert!(!text.contains('\u{1b}'), "{text}");
            assert!(!text.ends_with('.'), "{text}");
        }
    }
}
