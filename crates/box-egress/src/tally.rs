//! What a connection amounted to, counted on the box's side of it: bytes, where it led, what was
//! asked on it.

use crate::spent::Spent;
use box_api::egress::traffic::{EXCHANGES_MAX, Exchange};
use http::{Method, StatusCode};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// Methods that are told by name (RFC 9110 §9.3, RFC 5789); a box could make up any number.
const METHODS: [Method; 8] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::CONNECT,
    Method::OPTIONS,
    Method::PATCH,
];

/// What one connection amounted to, both ways. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
    /// Of everything that goes to and comes from the host.
    spent: OnceLock<Arc<Spent>>,
    address: OnceLock<SocketAddr>,
    has_used_credential: AtomicBool,
    exchanges: watch::Sender<Vec<Exchange>>,
}

impl Tally {
    /// The box sent so many.
    pub(crate) fn sent(&self, bytes: u64) {
        self.0.sent.fetch_add(bytes, Ordering::Relaxed);
        if let Some(spent) = self.0.spent.get() {
            spent.sent(bytes);
        }
    }

    /// The box was sent so many.
    pub(crate) fn received(&self, bytes: u64) {
        self.0.received.fetch_add(bytes, Ordering::Relaxed);
        if let Some(spent) = self.0.spent.get() {
            spent.received(bytes);
        }
    }

    /// Sent and received so far.
    pub(crate) fn so_far(&self) -> (u64, u64) {
        (
            self.0.sent.load(Ordering::Relaxed),
            self.0.received.load(Ordering::Relaxed),
        )
    }

    /// From now on the bytes count for the host as well.
    pub(crate) fn count_for(&self, spent: Arc<Spent>) {
        // Only the first counts; it is told once for each connection.
        drop(self.0.spent.set(spent));
    }

    /// A connection to the host was made; the first one is told.
    pub(crate) fn reached(&self, address: SocketAddr) {
        // One connection of a box can need several.
        let _ = self.0.address.set(address);
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.0.address.get().copied()
    }

    /// A credential was put in place of its placeholder.
    pub(crate) fn uses_credential(&self) {
        self.0.has_used_credential.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_used_credential(&self) -> bool {
        self.0.has_used_credential.load(Ordering::Relaxed)
    }

    /// A request was answered by the host.
    pub(crate) fn exchanged(&self, method: &Method, status: StatusCode) {
        let method = if METHODS.contains(method) {
            method.as_str()
        } else {
            "OTHER"
        };
        let status = status.as_u16();
        self.0.exchanges.send_if_modified(|all| {
            add_exchange(
                all,
                Exchange {
                    method: method.to_owned(),
                    status,
                    times: 1,
                },
            );
            false
        });
    }

    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.0.exchanges.borrow().clone()
    }
}

/// Counts up what is there already; past [`EXCHANGES_MAX`] kinds no more are told apart.
pub(crate) fn add_exchange(all: &mut Vec<Exchange>, one: Exchange) {
    let is_same = |known: &Exchange| known.method == one.method && known.status == one.status;
    match all.iter().position(is_same) {
        Some(at) => all[at].times = all[at].times.saturating_add(one.times),
        None if all.len() < EXCHANGES_MAX => all.push(one),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_method_and_status_and_no_box_makes_up_kinds() {
        let tally = Tally::default();
        for _ in 0..3 {
            tally.exchanged(&Method::GET, StatusCode::OK);
        }
        tally.exchanged(&Method::GET, StatusCode::NOT_FOUND);
        for number in 0..200 {
            let odd = Method::from_bytes(format!("X{number}").as_bytes()).unwrap();
            tally.exchanged(&odd, StatusCode::OK);
        }
        let all = tally.exchanges();
        let counts: Vec<_> = all
            .iter()
            .map(|one| (one.method.as_str(), one.status, one.times))
            .collect();
        assert_eq!(
            counts,
            [("GET", 200, 3), ("GET", 404, 1), ("OTHER", 200, 200)]
        );
        for status in 200..600 {
            tally.exchanged(&Method::GET, StatusCode::from_u16(status).unwrap());
        }
        assert_eq!(tally.exchanges().len(), EXCHANGES_MAX);
    }
}
