//! A deployment in a folder of its own, and hosts that come after each other on it.

use crate::fake_runtime::FakeRuntime;
use box_api::BoxName;
use box_api::control::{Limits, NetPreset, NewBox, Profile};
use box_core::caller::Caller;
use box_core::clock::ManualClock;
use box_core::egress::{Egress, Program};
use box_core::host::Runtimes;
use box_core::open::{OpenError, Opened, Opening, open};
use box_core::paths::Paths;
use box_core::policy::Machine;
use box_core::random::SystemRandom;
use box_core::{Host, lifecycle};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longest a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Rig {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) runtime: FakeRuntime,
    /// What every host of this deployment takes the time from.
    pub(crate) clock: ManualClock,
    /// Which build its hosts are.
    pub(crate) build: &'static str,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The machine's keyring is nothing for tests, but for those of it.
        let config = "[credentials]\nseal = \"memory\"\n";
        std::fs::write(folder.path().join("config.toml"), config).unwrap();
        Self {
            folder,
            runtime: FakeRuntime::default(),
            clock: ManualClock::at(1_790_000_000_000),
            build: "test",
        }
    }

    pub(crate) fn paths(&self) -> Paths {
        Paths::below(self.folder.path()).unwrap()
    }

    pub(crate) fn open(&self) -> Result<Opened, OpenError> {
        let opening = Opening {
            paths: self.paths(),
            machine: Machine::at(Path::new("/nonexistent"), &|_| None),
            environment: box_core::settings::Environment::default(),
            clock: Arc::new(self.clock.clone()),
            random: Arc::new(SystemRandom),
            build: self.build.to_owned(),
            uid: uid(),
            pid: std::process::id(),
        };
        open(
            opening,
            Runtimes::new(Arc::new(self.runtime.clone()), Vec::new()),
        )
    }

    /// A host that has no box-egress.
    pub(crate) fn host(&self) -> Arc<Host> {
        self.open().unwrap().with(Egress::absent())
    }

    /// Runs one host until `work` is over, then ends it as a kill would: its tasks stop where they
    /// are, nothing is tidied up.
    pub(crate) fn life<T>(&self, work: impl AsyncFnOnce(Arc<Host>) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let output = runtime.block_on(async {
            let host = self.host();
            tokio::time::timeout(PATIENCE, work(host)).await.unwrap()
        });
        runtime.shutdown_timeout(PATIENCE);
        output
    }
}

pub(crate) fn uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Whoever runs the host.
pub(crate) fn owner() -> Caller {
    Caller::from_peer(uid(), uid())
}

pub(crate) fn name(text: &str) -> BoxName {
    BoxName::parse(text).unwrap()
}

pub(crate) fn new_box(text: &str) -> NewBox {
    NewBox {
        name: name(text),
        title: None,
        image: None,
        profile: Profile::Locked,
        net: NetPreset::Balanced,
        limits: Limits::default(),
        allow: Vec::new(),
        start: true,
        settings: box_api::control::BoxSettings::default(),
        setup: None,
        marks: box_api::control::Marks::default(),
    }
}

pub(crate) fn quiet() -> Arc<lifecycle::Quiet> {
    Arc::new(lifecycle::Quiet)
}

/// A program that ends at once: where box-egress is not to come up.
pub(crate) fn no_program() -> Program {
    Program {
        program: "/bin/false".into(),
        arguments: Vec::new(),
        user: None,
    }
}
