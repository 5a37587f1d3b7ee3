//! Opens a deployment: folders, locks, layout, settings, database.

use crate::agents;
use crate::clock::Clock;
use crate::credentials::Vault;
use crate::egress::{self, Egress, PrepareError, Program, Surroundings};
use crate::expose::Listeners;
use crate::host::{Host, Runtimes};
use crate::images::ImageUse;
use crate::lifecycle::Changes;
use crate::lock::{Holder, Lock, LockError};
use crate::logs::Logs;
use crate::network::live::Live;
use crate::paths::Paths;
use crate::people::People;
use crate::policy::Machine;
use crate::pool::Pool;
use crate::push::Push;
use crate::random::Random;
use crate::settings::{Current, Environment, Settings, SettingsError};
use crate::sign_ins::SignIns;
use crate::store::{Store, StoreError};
use crate::thread::Threads;
use crate::watch::Touches;
use box_api::BoxId;
use box_runtime::erase::erase;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The layout of the data folder this build knows.
const LAYOUT: u32 = 1;

/// What a host is made of.
#[derive(Debug)]
pub struct Opening {
    pub paths: Paths,
    pub machine: Machine,
    /// The variables that are settings.
    pub environment: Environment,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub build: String,
    /// The user the host runs as.
    pub uid: u32,
    /// Its process id, for whoever finds the folders in use.
    pub pid: u32,
}

/// Why a host cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("could not make the folder `{path}`")]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the folder `{path}` belongs to another user")]
    Foreign { path: PathBuf },
    #[error("others may write to the folder `{path}`")]
    Writable { path: PathBuf },
    #[error("another host uses the data folder `{path}`{}", said(.holder.as_ref()))]
    DataInUse {
        path: PathBuf,
        holder: Option<Holder>,
    },
    #[error("another host listens in the run folder `{path}`{}", said(.holder.as_ref()))]
    RunInUse {
        path: PathBuf,
        holder: Option<Holder>,
    },
    #[error("could not lock the folder")]
    Lock(#[source] LockError),
    #[error(
        "the data folder `{path}` has layout {found}, newer than {LAYOUT}, the newest this build knows"
    )]
    Newer { path: PathBuf, found: u32 },
    #[error("`{path}` does not name a layout")]
    Layout { path: PathBuf },
    #[error("could not use `{path}`")]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Trust(#[from] PrepareError),
}

fn said(holder: Option<&Holder>) -> String {
    holder
        .map(|holder| format!(": {holder}"))
        .unwrap_or_default()
}

impl OpenError {
    /// What the person can do now.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::DataInUse {
                holder: Some(holder),
                ..
            } => Some(format!(
                "talk to it with `BOX_RUN_DIR={}`, or end it with `box serve --stop`",
                holder.run_dir.display()
            )),
            Self::RunInUse { .. } | Self::DataInUse { holder: None, .. } => {
                Some("end it with `box serve --stop`, or set `BOX_RUN_DIR`".to_owned())
            }
            Self::Newer { .. } => Some("use the build that made it, or a later one".to_owned()),
            Self::Foreign { .. } | Self::Writable { .. } => {
                Some("set `BOX_DATA_DIR` and `BOX_RUN_DIR` to folders of your own".to_owned())
            }
            Self::Settings(error) => error.hint(),
            Self::Folder { .. }
            | Self::Lock(_)
            | Self::Layout { .. }
            | Self::File { .. }
            | Self::Store(_)
            | Self::Trust(_) => None,
        }
    }
}

/// A deployment that is this host's alone, before box-egress is thought of.
#[derive(Debug)]
pub struct Opened {
    opening: Opening,
    runtimes: Runtimes,
    settings: Settings,
    current: Current,
    store: Store,
    vault: Arc<Vault>,
    locks: Vec<Lock>,
}

/// Opens a deployment. Blocks: called before anything is served.
///
/// # Errors
/// [`OpenError`]; [`OpenError::DataInUse`] names the host that was first.
pub fn open(opening: Opening, runtimes: Runtimes) -> Result<Opened, OpenError> {
    let paths = &opening.paths;
    let settings = Settings::load_with(&paths.config, &opening.environment)?;
    agents::load(&paths.config);
    for folder in [&paths.data, &paths.run, &paths.log] {
        own_folder(folder, opening.uid)?;
    }
    let holder = Holder {
        pid: opening.pid,
        since_ms: opening.clock.now_ms(),
        run_dir: paths.run.clone(),
    };
    let data = Lock::take(&paths.data_lock(), &holder).map_err(|error| match error {
        LockError::Held { holder, .. } => OpenError::DataInUse {
            path: paths.data.clone(),
            holder,
        },
        error @ LockError::File { .. } => OpenError::Lock(error),
    })?;
    let run = Lock::take(&paths.run_lock(), &holder).map_err(|error| match error {
        LockError::Held { holder, .. } => OpenError::RunInUse {
            path: paths.run.clone(),
            holder,
        },
        error @ LockError::File { .. } => OpenError::Lock(error),
    })?;
    check_layout(&paths.version_file())?;
    clear_tmp(&paths.tmp())?;
    let store = Store::open(&paths.database())?;
    egress::prepare(paths, &settings, &*opening.random)?;
    Ok(Opened {
        runtimes,
        vault: Arc::new(Vault::new(store.clone(), settings.seal.value)),
        current: Current::new(
            settings.clone(),
            paths.config.clone(),
            opening.environment.clone(),
        ),
        settings,
        store,
        locks: vec![data, run],
        opening,
    })
}

impl Opened {
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The host, with a task that keeps box-egress alive. The second half yields the boxes that
    /// ended by themselves.
    pub fn with_egress(self, program: Program) -> (Arc<Host>, mpsc::Receiver<BoxId>) {
        let (threads, people) = (Threads::default(), People::default());
        let live = Live::default();
        let (egress, gone) = Egress::start(Surroundings {
            paths: self.opening.paths.clone(),
            settings: self.current.clone(),
            store: self.store.clone(),
            vault: Arc::clone(&self.vault),
            clock: Arc::clone(&self.opening.clock),
            runtimes: self.runtimes.clone(),
            random: Arc::clone(&self.opening.random),
            machine: self.opening.machine.clone(),
            threads: threads.clone(),
            people: people.clone(),
            live: live.clone(),
            build: self.opening.build.clone(),
            program,
        });
        (self.put_together(egress, threads, (people, live)), gone)
    }

    /// The host, speaking with box-egress through `egress`.
    pub fn with(self, egress: Egress) -> Arc<Host> {
        self.put_together(egress, Threads::default(), Default::default())
    }

    fn put_together(
        self,
        egress: Egress,
        threads: Threads,
        (people, live): (People, Live),
    ) -> Arc<Host> {
        let Self {
            opening,
            runtimes,
            settings,
            current,
            store,
            vault,
            locks,
        } = self;
        Arc::new(Host {
            started_at_ms: opening.clock.now_ms(),
            paths: opening.paths,
            settings,
            current,
            store,
            runtimes,
            egress,
            vault,
            clock: opening.clock,
            random: opening.random,
            threads,
            people,
            sign_ins: SignIns::default(),
            push: Push::default(),
            live,
            image_use: ImageUse::default(),
            pool: Pool::default(),
            touches: Touches::default(),
            changes: Changes::default(),
            exposed: Listeners::default(),
            logs: Logs::default(),
            machine: opening.machine,
            build: opening.build,
            uid: opening.uid,
            locks,
        })
    }
}

/// The folder is there, is the host's own, and nobody else can put anything into it.
fn own_folder(path: &Path, uid: u32) -> Result<(), OpenError> {
    // Root's folders can be walked through: other users reach the control socket and are judged
    // there. What is private below them (database, log, boxes, CA) says so itself.
    let mode = if uid == 0 { 0o755 } else { 0o700 };
    DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .map_err(|source| OpenError::Folder {
            path: path.to_owned(),
            source,
        })?;
    let found = fs::metadata(path).map_err(|source| OpenError::Folder {
        path: path.to_owned(),
        source,
    })?;
    // The user's number in a user namespace of its own is another one, in which files are seen too.
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(OpenError::Foreign {
            path: path.to_owned(),
        });
    }
    if found.permissions().mode() & 0o022 != 0 {
        return Err(OpenError::Writable {
            path: path.to_owned(),
        });
    }
    Ok(())
}

fn check_layout(path: &Path) -> Result<(), OpenError> {
    let fail = |source| OpenError::File {
        path: path.to_owned(),
        source,
    };
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return fs::write(path, format!("{LAYOUT}\n")).map_err(fail);
        }
        text => text.map_err(fail)?,
    };
    match text.trim().parse::<u32>() {
        Ok(LAYOUT) => Ok(()),
        Ok(found) if found > LAYOUT => {
            let path = path.parent().unwrap_or(path).to_owned();
            Err(OpenError::Newer { path, found })
        }
        Ok(_) | Err(_) => Err(OpenError::Layout {
            path: path.to_owned(),
        }),
    }
}

/// What is born there and did not get out before the last host ended is nobody's.
fn clear_tmp(path: &Path) -> Result<(), OpenError> {
    let fail = |source| OpenError::File {
        path: path.to_owned(),
        source,
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(fail)?;
    for entry in fs::read_dir(path).map_err(fail)? {
        let entry = entry.map_err(fail)?.path();
        let is_folder = fs::symlink_metadata(&entry).is_ok_and(|found| found.is_dir());
        let removed = if is_folder {
            erase(&entry)
        } else {
            fs::remove_file(&entry)
        };
        if let Err(error) = removed {
            tracing::warn!(path = %entry.display(), %error, "left-overs stay");
        }
    }
    Ok(())
}
