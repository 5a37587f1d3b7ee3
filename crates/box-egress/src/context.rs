//! What a connection of one box can see: its own settings, and what is held for every box.

use crate::clock;
use crate::events::Events;
use crate::grants::Grants;
use crate::http::upstream::UpstreamTls;
use crate::intercept::grant::{Credential, Grant};
use crate::intercept::leaf::Minter;
use crate::limits::{self, Bucket};
use crate::policy::{self, Allowed, Settings, Way};
use crate::refuse::Refused;
use crate::resolve::Resolver;
use crate::tally::Tally;
use box_api::BoxId;
use box_api::egress::policy::{HELD_SECONDS_MAX, Unlisted};
use box_api::egress::{Event, HostName, Passed, Reason, Refusal};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
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
    grants: Arc<Grants>,
    /// Room for connections that wait for a person.
    held: Arc<Semaphore>,
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
    pub(crate) grants: Arc<Grants>,
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
            grants: views.grants,
            held: Arc::new(Semaphore::new(limits::HELD_MAX)),
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
        let decided = policy::admit(&self.settings.borrow(), host, port);
        let allowed = match decided {
            Err(refused) if self.is_granted(&refused, host) => {
                policy::admit_once(&self.settings.borrow(), host, port)?
            }
            other => other?,
        };
        if allowed.way() == Way::Intercept && configured.minter.is_none() {
            return refuse(Reason::NoCa);
        }
        Ok(allowed)
    }

    fn is_granted(&self, refused: &Refused, host: &HostName) -> bool {
        refused.reason == Reason::NotListed && self.grants.take(host, refused.port, Instant::now())
    }

    /// [`Self::admit`], but a host that is not listed is asked about first, when somebody is there
    /// to be asked: the connection waits, and the client knows nothing of it.
    pub(crate) async fn admit_or_ask(
        &self,
        host: &HostName,
        port: u16,
    ) -> Result<Allowed, Refused> {
        // Both watch from before the first look, so that no answer is missed.
        let (mut settings, mut answers) = (self.settings.clone(), self.grants.watch());
        let refused = match self.admit(host, port) {
            Err(refused) if refused.reason == Reason::NotListed => refused,
            other => return other,
        };
        let Ok(_held) = self.held.try_acquire() else {
            return Err(refused);
        };
        let held_for = Duration::from_secs(HELD_SECONDS_MAX);
        let (deadline, mut is_asked) = (tokio::time::Instant::now() + held_for, false);
        loop {
            if settings.borrow_and_update().policy.unlisted == Unlisted::Refuse {
                return Err(refused);
            }
            if !is_asked {
                is_asked = true;
                self.tell(Event::Asked {
                    box_id: self.id,
                    host: host.clone(),
                    port,
                    at_ms: clock::now_ms(),
                });
            }
            tokio::select! {
                changed = settings.changed() => changed.map_err(|_| refused.clone())?,
                answered = answers.changed() => answered.map_err(|_| refused.clone())?,
                () = tokio::time::sleep_until(deadline) => return Err(refused),
            }
            match self.admit(host, port) {
                Err(refused) if refused.reason == Reason::NotListed => {}
                other => return other,
            }
        }
    }

    /// Tells the host of a connection that went through.
    pub(crate) fn note_passed(&self, allowed: &Allowed, tally: &Tally, began_at_ms: i64) {
        let (sent_bytes, received_bytes) = tally.so_far();
        let credential = match allowed.way() {
            Way::Intercept => self.credential_for(allowed.host()),
            Way::Http | Way::Tls | Way::Opaque => None,
        };
        self.tell(Event::Passed(Passed {
            box_id: self.id,
            host: allowed.host().clone(),
            port: allowed.port(),
            rule: allowed.basis().to_string(),
            credential,
            sent_bytes,
            received_bytes,
            began_at_ms,
            ended_at_ms: clock::now_ms(),
        }));
    }

    fn credential_for(&self, host: &HostName) -> Option<String> {
        let settings = self.settings.borrow();
        let mut bindings = settings.bindings.iter();
        let binding = bindings.find(|binding| binding.hosts.contains(host))?;
        Some(binding.credential.clone())
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
            let verdict = policy::admit_again(&settings.borrow_and_update(), allowed);
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
