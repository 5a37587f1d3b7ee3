//! What one box has told: so much a second one by one; past that the same things are added up and
//! told in one, so that a box that does much pushes nothing of the others out and hides nothing.

use crate::events::Events;
use crate::limits::{self, Bucket};
use crate::tally::add_exchange;
use box_api::egress::usage::ModelUse;
use box_api::egress::{Event, HostName, Passed, Reason, Refusal};
use std::collections::HashMap;
use std::time::Instant;
use tokio::sync::watch;

/// Kinds of things that wait to be told in one. What is more than that is counted as lost.
const KINDS_MAX: usize = 512;
/// Of which so many may be of usage told apart by model and conversation, both of which a box can make up.
const USED_KINDS_MAX: usize = 256;
/// What stands for the models that had no room.
const SEVERAL_MODELS: &str = "several";
/// Connections that are told one by one as over; the host lets go of others by itself.
const CONNECTIONS_MAX: usize = 1024;

#[derive(Debug, PartialEq, Eq, Hash)]
enum Kind {
    Refused(String, u16, Reason, Option<String>),
    Passed(HostName, u16, String, Option<String>),
    Used(HostName, String, String, Option<String>),
}

/// The events of one box on their way to the host.
pub(crate) struct Telling {
    events: Events,
    bucket: Bucket,
    open_bucket: Bucket,
    waiting: watch::Sender<HashMap<Kind, Event>>,
}

impl Telling {
    pub(crate) fn new(events: Events) -> Self {
        let bucket = || Bucket::new(limits::EVENTS_PER_SECOND, limits::EVENTS_BURST);
        Self {
            events,
            bucket: bucket(),
            open_bucket: bucket(),
            waiting: watch::channel(HashMap::new()).0,
        }
    }

    /// Tells now, or later in one with others of its kind.
    pub(crate) fn tell(&self, event: Event, now: Instant) {
        if self.bucket.take(now) {
            self.events.emit(event);
            return;
        }
        let Some(kind) = kind_of(&event) else {
            return self.events.lose();
        };
        let mut kept = Kept::Yes;
        self.waiting.send_if_modified(|waiting| {
            kept = keep(waiting, kind, event);
            false
        });
        if kept == Kept::No {
            self.events.lose();
        }
    }

    /// Tells of an open connection, if there is room: the next time says all there is as well.
    pub(crate) fn tell_open(&self, event: Event, now: Instant) {
        if self.open_bucket.take(now) {
            self.events.emit(event);
        }
    }

    /// Tells what has to be told whatever else there was. For what is rare by itself.
    pub(crate) fn tell_always(&self, event: Event) {
        self.events.emit(event);
    }

    /// Tells what waits, as far as there is room.
    pub(crate) fn catch_up(&self, now: Instant) {
        if self.waiting.borrow().is_empty() {
            return;
        }
        let goes = |event: &Event| {
            let may = self.bucket.take(now);
            if may {
                self.events.emit(event.clone());
            }
            may
        };
        self.waiting.send_if_modified(|waiting| {
            waiting.retain(|_, event| !goes(event));
            false
        });
    }
}

impl Drop for Telling {
    /// The box is gone: there are [`KINDS_MAX`] at most.
    fn drop(&mut self) {
        for event in self.waiting.borrow().values() {
            self.events.emit(event.clone());
        }
    }
}

fn kind_of(event: &Event) -> Option<Kind> {
    match event {
        Event::Refused(refusal) => Some(Kind::Refused(
            refusal.host.clone(),
            refusal.port,
            refusal.reason,
            refusal.rule.clone(),
        )),
        Event::Passed(passed) => Some(Kind::Passed(
            passed.host.clone(),
            passed.port,
            passed.rule.clone(),
            passed.credential.clone(),
        )),
        Event::Used(used) => Some(Kind::Used(
            used.host.clone(),
            used.credential.clone(),
            used.model.clone(),
            used.conversation.clone(),
        )),
        Event::Mapped { .. }
        | Event::Asked { .. }
        | Event::Open(_)
        | Event::Signal(_)
        | Event::ForeignPlaceholder { .. }
        | Event::SecretReflected { .. }
        | Event::BoxGone { .. }
        | Event::LoggedIn { .. }
        | Event::Lost { .. } => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    /// There are too many kinds already.
    No,
}

/// Adds what waits up. Nothing of what a model cost gets lost, whatever else the box does.
fn keep(waiting: &mut HashMap<Kind, Event>, mut kind: Kind, mut event: Event) -> Kept {
    let is_crowded = waiting.len() >= USED_KINDS_MAX && !waiting.contains_key(&kind);
    let mut kinds_max = KINDS_MAX;
    if let Event::Used(used) = &mut event {
        kinds_max = usize::MAX;
        if is_crowded {
            kind = in_general(used);
        }
    }
    let is_full = waiting.len() >= kinds_max;
    match waiting.get_mut(&kind) {
        Some(known) => add(known, event),
        None if is_full => return Kept::No,
        None => drop(waiting.insert(kind, event)),
    }
    Kept::Yes
}

/// Tells it apart no further than by host and account, of which a box can make up none.
fn in_general(used: &mut ModelUse) -> Kind {
    SEVERAL_MODELS.clone_into(&mut used.model);
    used.conversation = None;
    let (host, credential) = (used.host.clone(), used.credential.clone());
    Kind::Used(host, credential, used.model.clone(), None)
}

/// Both are of one kind.
fn add(known: &mut Event, event: Event) {
    if let (Event::Refused(known), Event::Refused(refusal)) = (&mut *known, &event) {
        add_refusal(known, refusal);
    }
    if let (Event::Used(known), Event::Used(used)) = (&mut *known, &event) {
        known.tokens.add(&used.tokens);
        known.answers += used.answers;
        known.unread += used.unread;
        known.at_ms = used.at_ms;
    }
    if let (Event::Passed(known), Event::Passed(passed)) = (known, event) {
        add_passed(known, passed);
    }
}

fn add_refusal(known: &mut Refusal, refusal: &Refusal) {
    known.times += refusal.times;
    known.at_ms = refusal.at_ms;
    known.entrance = refusal.entrance.or(known.entrance);
}

fn add_passed(known: &mut Passed, passed: Passed) {
    known.times += passed.times;
    known.sent_bytes += passed.sent_bytes;
    known.received_bytes += passed.received_bytes;
    known.open_ms += passed.open_ms;
    known.ended_at_ms = passed.ended_at_ms;
    known.entrance = passed.entrance.or(known.entrance);
    known.address = passed.address.or(known.address);
    let room = CONNECTIONS_MAX.saturating_sub(known.connections.len());
    known
        .connections
        .extend(passed.connections.into_iter().take(room));
    for exchange in passed.exchanges {
        add_exchange(&mut known.exchanges, exchange);
    }
}

#[cfg(test)]
mod tests;
