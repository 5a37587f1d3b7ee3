//! What looks like theft or a scan, seen over all connections of one box. The detectors are pure:
//! what was seen and when goes in, a signal comes out, at most one in a while for each kind and
//! host ([`cooldown`]), so that a box cannot flood its owner with them.

mod cooldown;
mod names;
mod plain;
mod refusals;

pub(crate) use plain::placeholder_in;

use box_api::egress::traffic::SignalKind;
use box_api::egress::{HostName, Reason};
use cooldown::Cooldown;
use names::Names;
use refusals::Refusals;
use std::time::Instant;
use tokio::sync::watch;

/// What a box did that its owner should know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: SignalKind,
    /// The host or zone it is about.
    pub(crate) host: String,
    /// Names, hosts, bytes.
    pub(crate) count: u64,
}

/// The detectors of one box.
#[derive(Debug)]
pub(crate) struct Signals(watch::Sender<State>);

#[derive(Debug, Default)]
struct State {
    names: Names,
    refusals: Refusals,
    cooldown: Cooldown,
}

impl Default for Signals {
    fn default() -> Self {
        Self(watch::channel(State::default()).0)
    }
}

impl Signals {
    /// The box asked for a name.
    pub(crate) fn name(&self, name: &HostName, now: Instant) -> Option<Seen> {
        self.step(|state| {
            let found = state.names.see(name, now)?;
            state.cooldown.admit(found, now)
        })
    }

    /// The box was refused.
    pub(crate) fn refused(&self, host: &str, reason: Reason, now: Instant) -> Option<Seen> {
        if !refusals::is_a_try(reason) {
            return None;
        }
        self.step(|state| {
            let found = state.refusals.see(host, now)?;
            state.cooldown.admit(found, now)
        })
    }

    /// Something that is a signal by itself.
    pub(crate) fn raise(&self, seen: Seen, now: Instant) -> Option<Seen> {
        self.step(|state| state.cooldown.admit(seen, now))
    }

    fn step(&self, step: impl FnOnce(&mut State) -> Option<Seen>) -> Option<Seen> {
        let mut found = None;
        // Nobody waits for it to change; it is a cell.
        self.0.send_if_modified(|state| {
            found = step(state);
            false
        });
        found
    }
}

#[cfg(test)]
mod tests;
