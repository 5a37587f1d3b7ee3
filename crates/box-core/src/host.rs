//! What everything in the host needs, in one place.

use crate::boxes::BoxRecord;
use crate::clock::Clock;
use crate::credentials::Vault;
use crate::egress::Egress;
use crate::expose::Listeners;
use crate::images::ImageUse;
use crate::lifecycle::Changes;
use crate::lock::Lock;
use crate::logs::Logs;
use crate::network::live::Live;
use crate::paths::Paths;
use crate::people::People;
use crate::policy::Machine;
use crate::pool::Pool;
use crate::push::Push;
use crate::random::Random;
use crate::settings::{Current, Settings};
use crate::sign_ins::SignIns;
use crate::store::Store;
use crate::thread::Threads;
use crate::watch::Touches;
use box_runtime::{Runtime, RuntimeError};
use std::sync::Arc;

/// The host. Made once, shared by every task as `Arc<Host>`.
#[derive(Debug)]
pub struct Host {
    pub paths: Paths,
    /// As they were at the start; what can be read again is in `current`.
    pub settings: Settings,
    pub current: Current,
    pub store: Store,
    pub runtimes: Runtimes,
    pub egress: Egress,
    /// Opens what is sealed.
    pub vault: Arc<Vault>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub threads: Threads,
    /// Who is there to be asked.
    pub people: People,
    /// Browsers that are let in.
    pub sign_ins: SignIns,
    /// How browsers are told what happens.
    pub push: Push,
    /// Connections of boxes that are open.
    pub live: Live,
    /// Who wants something of which running box.
    pub touches: Touches,
    /// Boxes begun ahead of their time.
    pub pool: Pool,
    /// Which images must not go.
    pub image_use: ImageUse,
    /// Woken whenever a box's row changes.
    pub changes: Changes,
    /// Ports of boxes this host listens at.
    pub exposed: Listeners,
    /// Woken whenever a log of a process grows.
    pub logs: Logs,
    /// Settings of this machine's own package clients.
    pub machine: Machine,
    /// Which build this is, as greetings show it.
    pub build: String,
    /// The user the host runs as.
    pub uid: u32,
    pub started_at_ms: i64,
    /// Held as long as the host lives; see [`crate::open`].
    #[expect(dead_code, reason = "dropping them is what they are for")]
    pub(crate) locks: Vec<Lock>,
}

impl Host {
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// The engine a box was made with.
    ///
    /// # Errors
    /// [`RuntimeError::Refused`] when this host was started without it.
    pub fn runtime_of(&self, record: &BoxRecord) -> Result<&Arc<dyn Runtime>, RuntimeError> {
        self.runtimes
            .named(&record.runtime)
            .ok_or_else(|| RuntimeError::Refused {
                why: format!(
                    "box `{}` needs the engine `{}`",
                    record.name, record.runtime
                ),
                hint: Some("start the host with that engine".to_owned()),
            })
    }
}

/// The engines of this host; the first is the default.
#[derive(Debug, Clone)]
pub struct Runtimes {
    default: Arc<dyn Runtime>,
    others: Vec<Arc<dyn Runtime>>,
}

impl Runtimes {
    pub fn new(default: Arc<dyn Runtime>, others: Vec<Arc<dyn Runtime>>) -> Self {
        Self { default, others }
    }

    /// The engine new boxes are made with.
    pub fn default(&self) -> &Arc<dyn Runtime> {
        &self.default
    }

    pub fn named(&self, name: &str) -> Option<&Arc<dyn Runtime>> {
        self.all().find(|runtime| runtime.name() == name)
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Runtime>> {
        std::iter::once(&self.default).chain(&self.others)
    }
}
