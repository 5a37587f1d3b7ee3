//! Addresses a connection leads to by now, so that a policy that changes can be held against them.

use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// Addresses one connection of a box can lead to, one after the other.
const REACHED_MAX: usize = 256;

/// Shared by every copy of a connection's `Allowed`.
#[derive(Debug, Clone)]
pub(crate) struct Reached(Arc<watch::Sender<Vec<IpAddr>>>);

impl Reached {
    pub(super) fn none() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }

    /// False when there are too many.
    pub(crate) fn add(&self, addr: IpAddr) -> bool {
        self.0.send_if_modified(|all| {
            let is_new = !all.contains(&addr) && all.len() < REACHED_MAX;
            if is_new {
                all.push(addr);
            }
            is_new
        });
        self.0.borrow().contains(&addr)
    }

    pub(super) fn all(&self) -> Vec<IpAddr> {
        self.0.borrow().clone()
    }
}
