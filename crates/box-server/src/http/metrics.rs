//! `GET /metrics`: numbers as Prometheus reads them. With a sign-in, or for anybody on loopback
//! where `metrics` under `[page]` says so: the numbers name no box.

use super::Web;
use super::answer::{self, Answer};
use box_api::control::BoxState;
use box_core::boxes::{self, state_word};
use box_core::caller::Caller;
use hyper::StatusCode;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted from the start of the host on.
#[derive(Debug, Default)]
pub(super) struct Counts {
    requests: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    pub(super) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answer(&self, status: StatusCode) {
        if status.is_server_error() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        } else if status.is_client_error() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// States in which a box is for longer than a moment.
const STATES: [BoxState; 3] = [BoxState::Running, BoxState::Stopped, BoxState::Failed];

pub(super) async fn handle(web: &Web) -> Answer {
    let host = &web.door.host;
    // All boxes of this host, as its own user sees them.
    let all = Caller::from_peer(host.uid, host.uid);
    let Ok(records) = boxes::list(host, &all).await else {
        return answer::empty(StatusCode::SERVICE_UNAVAILABLE);
    };
    let mut by_state: BTreeMap<&str, u64> = STATES
        .into_iter()
        .map(|state| (state_word(state), 0))
        .collect();
    for record in &records {
        *by_state.entry(state_word(record.state)).or_default() += 1;
    }
    let mut text = String::new();
    gauge(&mut text, "box_up", "The host answers", 1);
    let _ = writeln!(
        text,
        "# HELP box_boxes Boxes by state\n# TYPE box_boxes gauge"
    );
    for (state, count) in by_state {
        let _ = writeln!(text, "box_boxes{{state=\"{state}\"}} {count}");
    }
    gauge(
        &mut text,
        "box_page_sockets",
        "Open WebSockets",
        web.sockets.count() as u64,
    );
    let counts = &web.counts;
    let counters = [
        ("box_page_requests_total", "Requests", &counts.requests),
        (
            "box_page_refused_total",
            "Requests answered with 4xx",
            &counts.refused,
        ),
        (
            "box_page_failed_total",
            "Requests answered with 5xx",
            &counts.failed,
        ),
    ];
    for (name, help, count) in counters {
        let count = count.load(Ordering::Relaxed);
        let _ = writeln!(
            text,
            "# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}"
        );
    }
    answer::of(StatusCode::OK, "text/plain; version=0.0.4", text)
}

fn gauge(text: &mut String, name: &str, help: &str, value: u64) {
    let _ = writeln!(
        text,
        "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"
    );
}
