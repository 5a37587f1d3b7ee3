//! What a connection of one box can see: its own settings, and what is held for every box.

use crate::clock;
use crate::events::Events;
use crate::http::upstream::UpstreamTls;
use crate::intercept::grant::{Credential, Grant};
use crate::intercept::leaf::Minter;
use crate::limits::{self, Bucket};
use crate::policy::{self, Allowed, Settings, Way};
use crate::refuse::Refused;
use crate::resolve::Resolver;
use box_api::BoxId;
use box_api::egress::{Event, HostName, Reason, Refusal};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// What the host configured.
pub(crate) struct Configured {
    pub(crate) resolver: Resolver,
    pub(crate) upstream_tls: UpstreamTls,
    pub(crate) minter: Option<Arc<Minter>>,
}

/// What is held for every box. Empty at start: nothing goes through then.
#[derive(Default)]
pub(crate) struct Holdings {
    pub(crate) configured: Option<Arc<Configured>>,
    pub(crate) credentials: HashMap<String, Arc<Credential>>,
    /// Which box each placeholder belongs to.
    pub(crate) placeholders: HashMap<String, BoxId>,
}

/// Numbers of a box, for `status`.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU32,
    pub(crate) names: AtomicU32,
    pub(crate) refused: AtomicU64,
}

pub(crate) struct BoxContext {
    pub(crate) id: BoxId,
    pub(crate) counters: Arc<Counters>,
    settings: watch::Receiver<Settings>,
    holdings: watch::Receiver<Holdings>,
    events: Events,
    event_bucket: Bucket,
    /// What is left for connections of all boxes together.
    room: Arc<Semaphore>,
    /// What is left to this box of [`limits::FURTHER_UPSTREAMS_MAX`].
    further: Arc<Semaphore>,
}

/// Held while a connection is open.
pub(crate) type Room = Vec<OwnedSemaphorePermit>;

/// What [`BoxContext::new`] puts together.
pub(crate) struct Views {
    pub(crate) settings: watch::Receiver<Settings>,
    pub(crate) holdings: watch::Receiver<Holdings>,
    pub(crate) events: Events,
    pub(crate) counters: Arc<Counters>,
    pub(crate) room: Arc<Semaphore>,
}

impl BoxContext {
    pub(crate) fn new(id: BoxId, views: Views) -> Self {
        Self {
            id,
            counters: views.counters,
            settings: views.settings,
            holdings: views.holdings,
            events: views.events,
            event_bucket: Bucket::new(limits::EVENTS_PER_SECOND, limits::EVENTS_BURST),
            room: views.room,
            further: Arc::new(Semaphore::new(limits::FURTHER_UPSTREAMS_MAX)),
        }
    }

    /// Room for one more connection, if the process has any.
    pub(crate) fn room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).try_acquire_owned().ok()
    }

    /// Room for one more connection to a host than the box has connections of its own.
    pub(crate) fn further_room(&self) -> Option<Room> {
        let own = Arc::clone(&self.further).try_acquire_owned().ok()?;
        Some(vec![own, self.room()?])
    }

    /// The configuration, without which nothing goes through.
    pub(crate) fn configured(&self) -> Option<Arc<Configured>> {
        self.holdings.borrow().configured.clone()
    }

    /// The decision for this box, with what must be there to carry it out.
    pub(crate) fn admit(&self, host: &HostName, port: u16) -> Result<Allowed, Refused> {
        let refuse = |reason| Err(Refused::new(host.as_str(), port, reason));
        let Some(configured) = self.configured() else {
            return refuse(Reason::NoPolicy);
        };
        let allowed = policy::admit(&self.settings.borrow(), host, port)?;
        if allowed.way() == Way::Intercept && configured.minter.is_none() {
            return refuse(Reason::NoCa);
        }
        Ok(allowed)
    }

    /// Runs `read` on the box's settings as they are now.
    pub(crate) fn with_settings<T>(&self, read: impl FnOnce(&Settings) -> T) -> T {
        read(&self.settings.borrow())
    }

    /// What the box's placeholders are worth at `host`.
    pub(crate) fn grants(&self, host: &HostName) -> Vec<Grant> {
        let settings = self.settings.borrow();
        let holdings = self.holdings.borrow();
        let bindings = settings
            .bindings
            .iter()
            .filter(|binding| binding.hosts.contains(host));
        bindings
            .map(|binding| Grant {
                placeholder: binding.placeholder.clone(),
                credential: holdings
                    .credentials
                    .get(&binding.credential)
                    .filter(|credential| credential.serves(host))
                    .cloned(),
            })
            .collect()
    }

    /// Whose placeholder a text is, if it is one.
    pub(crate) fn owner_of(&self, text: &str) -> Option<BoxId> {
        self.holdings.borrow().placeholders.get(text).copied()
    }

    /// Returns once the policy no longer lets this connection through.
    pub(crate) async fn revoked(&self, allowed: &Allowed) -> Refused {
        let mut settings = self.settings.clone();
        loop {
            // Marks what is there as seen, so that no change between the two lines is missed.
            let verdict = policy::admit(
                &settings.borrow_and_update(),
                allowed.host(),
                allowed.port(),
            );
            match verdict {
                Ok(now) if now.way() == allowed.way() => {}
                Ok(_) => {
                    return Refused::new(allowed.host().as_str(), allowed.port(), Reason::Denied);
                }
                Err(refused) => return refused,
            }
            if settings.changed().await.is_err() {
                return Refused::new(allowed.host().as_str(), allowed.port(), Reason::NoPolicy);
            }
        }
    }

    /// Counts a refusal and tells the host.
    pub(crate) fn note(&self, refused: &Refused) {
        self.counters.refused.fetch_add(1, Ordering::Relaxed);
        self.tell(Event::Refused(Refusal {
            box_id: self.id,
            host: refused.host.clone(),
            port: refused.port,
            reason: refused.reason,
            rule: refused.rule.clone(),
            at_ms: clock::now_ms(),
        }));
    }

    /// Tells the host, unless this box has told it too much lately: events of one box must not
    /// push out those of the others.
    pub(crate) fn tell(&self, event: Event) {
        if self.event_bucket.take(Instant::now()) {
            self.events.emit(event);
        } else {
            self.events.lose();
        }
    }

    /// Tells the host what it has to keep. A box learns a name once.
    pub(crate) fn tell_to_keep(&self, event: Event) {
        self.events.emit(event);
    }
}
