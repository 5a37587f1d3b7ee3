//! The settings as they hold now: `[net]`, `[egress]` and `[budget]` can be read again while the host runs.

use super::environment::Environment;
use super::{Settings, SettingsError};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// What holds now, and how it is read again. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Current {
    now: Arc<watch::Sender<Arc<Settings>>>,
    path: PathBuf,
    environment: Environment,
}

impl Current {
    pub fn new(settings: Settings, path: PathBuf, environment: Environment) -> Self {
        Self {
            now: Arc::new(watch::Sender::new(Arc::new(settings))),
            path,
            environment,
        }
    }

    pub fn now(&self) -> Arc<Settings> {
        self.now.borrow().clone()
    }

    /// Reads the file again; nothing changes yet. Blocks.
    ///
    /// # Errors
    /// [`SettingsError`]
    pub fn read_again(&self) -> Result<Settings, SettingsError> {
        Settings::load_with(&self.path, &self.environment)
    }

    /// Replaces what can be replaced: `[net]`, `[egress]` and `[budget]`. The rest is as it was at the start.
    pub fn replace(&self, read: Settings) {
        self.now.send_modify(|now| {
            *now = Arc::new(Settings {
                resolvers: read.resolvers,
                extra_roots: read.extra_roots,
                preset: read.preset,
                net: read.net,
                upstream: read.upstream,
                budget: read.budget,
                ..Settings::clone(now)
            });
        });
    }
}
