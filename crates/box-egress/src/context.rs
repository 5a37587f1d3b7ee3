//! What a connection of one box can see: its own settings, and what is held for every box.

use crate::clock;
use crate::dial::proxy::Proxy;
use crate::events::Events;
use crate::grants::Grants;
use crate::http::request::Site;
use crate::http::upstream::UpstreamTls;
use crate::intercept::grant::{Credential, Grant};
use crate::intercept::leaf::Minter;
use crate::intercept::login::desk::{Desk, is_bound};
use crate::intercept::login::seal::Key;
use crate::intercept::scope;
use crate::limits;
use crate::policy::{self, Allowed, Settings, Way};
use crate::refuse::Refused;
use crate::resolve::Resolver;
use crate::signals::{Seen, Signals};
use crate::spent::Ledger;
use crate::telling::Telling;
use box_api::BoxId;
use box_api::egress::GithubScope;
use box_api::egress::policy::{HELD_SECONDS_MAX, Unlisted};
use box_api::egress::traffic::{Signal, SignalKind};
use box_api::egress::{Event, HostName, Reason, Refusal};
use http::request::Parts;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// What the host configured.
pub(crate) struct Configured {
    pub(crate) resolver: Resolver,
    pub(crate) upstream_tls: UpstreamTls,
    pub(crate) minter: Option<Arc<Minter>>,
    /// Between this machine and the internet.
    pub(crate) proxy: Option<Proxy>,
}

/// What is held for every box. Empty at start: nothing goes through then.
#[derive(Default)]
pub(crate) struct Holdings {
    pub(crate) configured: Option<Arc<Configured>>,
    pub(crate) credentials: HashMap<String, Arc<Credential>>,
    /// Which box each placeholder belongs to.
    pub(crate) placeholders: HashMap<String, BoxId>,
    /// What logins made inside boxes are sealed with.
    pub(crate) login_key: Option<Arc<Key>>,
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
    pub(crate) logins: Desk,
    settings: watch::Receiver<Settings>,
    holdings: watch::Receiver<Holdings>,
    telling: Telling,
    signals: Signals,
    /// What went to and came from each host.
    pub(crate) ledger: Ledger,
    connections: AtomicU64,
    grants: Arc<Grants>,
    /// Room for connections that wait for a person.
    held: Arc<Semaphore>,
    /// What is left for connections of all boxes together.
    room: Arc<Semaphore>,
    /// Room for bodies that are kept back until they are judged.
    pub(crate) judged: Arc<Semaphore>,
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
    pub(crate) logins: Desk,
}

impl BoxContext {
    pub(crate) fn new(id: BoxId, views: Views) -> Self {
        Self {
            id,
            counters: views.counters,
            logins: views.logins,
            settings: views.settings,
            holdings: views.holdings,
            telling: Telling::new(views.events),
            signals: Signals::default(),
            ledger: Ledger::default(),
            connections: AtomicU64::new(0),
            grants: views.grants,
            held: Arc::new(Semaphore::new(limits::HELD_MAX)),
            judged: Arc::new(Semaphore::new(scope::HELD_PER_BOX_MAX)),
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
        let budget = self.with_settings(|settings| settings.policy.limits.budget_bytes);
        if budget.is_some() && self.ledger.of(host).exceeds(budget) {
            return refuse(Reason::Budget);
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

    pub(crate) fn credential_for(&self, host: &HostName) -> Option<String> {
        let settings = self.settings.borrow();
        let mut bindings = settings.bindings.iter();
        let binding = bindings.find(|binding| binding.hosts.contains(host))?;
        Some(binding.credential.clone())
    }

    /// Whether what is written at `host` is judged: where a credential of the owner is used, and
    /// where a login is whose owner said what it may write.
    pub(crate) fn is_scoped(&self, host: &HostName) -> bool {
        scope::is_scoped(&self.settings.borrow(), host)
    }

    /// What the box may write at `host`, which is GitHub's.
    pub(crate) fn github_scope(&self, host: &HostName) -> GithubScope {
        scope::of_host(&self.settings.borrow(), host)
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
        let bound = bindings.map(|binding| Grant {
            placeholder: binding.placeholder.clone(),
            credential: holdings
                .credentials
                .get(&binding.credential)
                .filter(|credential| credential.serves(host))
                .cloned(),
        });
        let mut grants: Vec<Grant> = bound.collect();
        // Somebody else's account, made a login of the box, would take there what the box sends
        // with the owner's.
        if !is_bound(&settings, host) {
            grants.extend(settings.logins.grants(host));
        }
        grants
    }

    /// Whose placeholder a text is, if it is one.
    pub(crate) fn owner_of(&self, text: &str) -> Option<BoxId> {
        self.holdings.borrow().placeholders.get(text).copied()
    }

    /// Whether a connection may lead to an address, by the policy as it is now.
    pub(crate) fn may_lead_to(&self, allowed: &Allowed, addr: IpAddr) -> Result<(), Refused> {
        policy::may_lead_to(&self.settings.borrow(), allowed, addr)
    }

    /// Judges a request to a host that is opened up, and puts the path that was judged into it.
    pub(crate) fn judge_request(&self, parts: &mut Parts, site: &Site) -> Result<(), Refused> {
        let judged = policy::requests::judge_parts(&self.settings.borrow(), parts, &site.host);
        judged.map_err(|(reason, rule)| Refused {
            rule: rule.map(|rule| rule.to_string()),
            ..site.refuse(reason)
        })
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
            times: 1,
            entrance: None,
        }));
        let now = Instant::now();
        self.show(self.signals.refused(&refused.host, refused.reason, now));
    }

    /// The box asks for a name, allowed or not.
    pub(crate) fn sees_name(&self, name: &HostName) {
        self.show(self.signals.name(name, Instant::now()));
    }

    /// Something looks like theft.
    pub(crate) fn signal(&self, kind: SignalKind, host: &str, count: u64) {
        let seen = Seen {
            kind,
            host: host.to_owned(),
            count,
        };
        self.show(self.signals.raise(seen, Instant::now()));
    }

    fn show(&self, seen: Option<Seen>) {
        if let Some(seen) = seen {
            self.telling.tell_always(Event::Signal(Signal {
                box_id: self.id,
                kind: seen.kind,
                host: seen.host,
                count: seen.count,
                at_ms: clock::now_ms(),
            }));
        }
    }

    /// Tells the host. What one box tells too much of is added up, so that it does not push out the
    /// events of the others.
    pub(crate) fn tell(&self, event: Event) {
        self.telling.tell(event, Instant::now());
    }

    /// Tells of a connection that is open, if there is room for it.
    pub(crate) fn tell_open(&self, event: Event) {
        self.telling.tell_open(event, Instant::now());
    }

    /// Tells what was added up, as far as there is room.
    pub(crate) fn catch_up(&self) {
        self.telling.catch_up(Instant::now());
    }

    pub(crate) fn settings(&self) -> watch::Receiver<Settings> {
        self.settings.clone()
    }

    /// The number of one more connection.
    pub(crate) fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Tells the host what it has to keep. A box learns a name once.
    pub(crate) fn tell_to_keep(&self, event: Event) {
        self.telling.tell_always(event);
    }
}
