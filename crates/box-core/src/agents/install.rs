//! Installs a pack: downloads, checks and unpacks its packages, then gives the whole its place.
//!
//! No package manager and no script of a package runs. What comes out is what
//! `npm ci --ignore-scripts --no-bin-links` makes of the same lock file (a test compares them).

use super::error::InstallError;
use super::fetch::{Counters, Fetcher, agent};
use super::lock::{Pack, Package};
use super::npm::{self, NpmConfig};
use super::profile::AgentProfile;
use box_runtime::Progress;
use box_runtime::unpack::{Policy, Staging, hold, unpack};
use rustix::fs::{Mode, OFlags, ResolveFlags, fchmod, openat2};
use rustix::io::Errno;
use serde::Serialize;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// What `tmp/` folders of installations are called.
const STAGING: &str = "agent";
/// Says what is in a pack, for people; lies in its top folder.
const MANIFEST: &str = "pack.json";
const DOWNLOADS_AT_ONCE: usize = 4;
/// How long an installation may take.
const INSTALL_TIME_MAX: Duration = Duration::from_mins(30);
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
const PAUSES: [Duration; 4] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

#[derive(Debug, Serialize)]
struct Manifest<'pack> {
    agent: &'pack str,
    version: &'pack str,
    packages: Vec<String>,
}

/// Where the agent's pack is, when it is whole and of the version this program was built with.
pub fn installed(profile: &AgentProfile, data_dir: &Path) -> Option<PathBuf> {
    let place = place(&Pack::of(profile).ok()??, data_dir);
    place.is_dir().then_some(place)
}

/// Removes what an interrupted installation left in `tmp/`; says how many folders. For start-up.
///
/// # Errors
/// When `tmp/` cannot be read or cleared.
pub fn clear(data_dir: &Path) -> io::Result<usize> {
    box_runtime::unpack::clear(&data_dir.join("tmp"), STAGING)
}

/// Installs the agent's pack if it is not there; `None` for an agent that is built in. Two at once
/// do it once. Dropping the future does not stop it; the next one who asks finds the result.
///
/// # Errors
/// [`InstallError`]; nothing of a failed installation stays.
pub async fn ensure(
    profile: &AgentProfile,
    data_dir: &Path,
    progress: &dyn Progress,
) -> Result<Option<PathBuf>, InstallError> {
    let Some(pack) = Pack::of(profile)? else {
        return Ok(None);
    };
    if let Some(there) = installed(profile, data_dir) {
        return Ok(Some(there));
    }
    let says = npm::ask().await;
    let config =
        NpmConfig::read(&|name| std::env::var_os(name), says.as_deref())?.ok_or_else(|| {
            InstallError::NoRegistry {
                agent: pack.agent.clone(),
            }
        })?;
    let count = pack.packages.len();
    progress.say(&format!(
        "installing agent `{}` {}: {count} packages",
        pack.agent, pack.version
    ));
    let counters = Arc::new(Counters::default());
    let mut work = tokio::task::spawn_blocking({
        let (counters, data_dir) = (Arc::clone(&counters), data_dir.to_owned());
        move || {
            let fetcher = Fetcher {
                config: &config,
                agent: agent(&config)?,
                counters: &counters,
                deadline: Instant::now() + INSTALL_TIME_MAX,
                pauses: &PAUSES,
            };
            install(&pack, &data_dir, &fetcher)
        }
    });
    let mut tick = tokio::time::interval(PROGRESS_EVERY);
    let mut last = (0, 0);
    loop {
        tokio::select! {
            done = &mut work => {
                return done.map_err(|_| InstallError::GivenUp)?.map(Some);
            }
            _ = tick.tick() => {}
        }
        if counters.waiting.swap(false, Ordering::Relaxed) {
            progress.say("waiting: it is being installed already");
        }
        let bytes = counters.bytes.load(Ordering::Relaxed);
        let now = (counters.packages.load(Ordering::Relaxed), bytes / 100_000);
        if now != std::mem::replace(&mut last, now) {
            progress.say(&format!(
                "{} of {count} packages, {}.{} MB",
                now.0,
                now.1 / 10,
                now.1 % 10
            ));
        }
    }
}

/// Held while packs of an agent come or go.
pub(super) fn hold_agent(folder: &Path) -> io::Result<OwnedFd> {
    hold(&folder.join(".lock"), || {})
}

fn place(pack: &Pack, data_dir: &Path) -> PathBuf {
    data_dir.join("agents").join(&pack.agent).join(&pack.folder)
}

fn install(pack: &Pack, data_dir: &Path, fetcher: &Fetcher<'_>) -> Result<PathBuf, InstallError> {
    let target = place(pack, data_dir);
    let folder = data_dir.join("agents").join(&pack.agent);
    std::fs::create_dir_all(&folder).map_err(InstallError::store("make the agent's folder"))?;
    let waiting = || fetcher.counters.waiting.store(true, Ordering::Relaxed);
    let _held = hold(&folder.join(".lock"), waiting)
        .map_err(InstallError::store("lock the agent's folder"))?;
    if target.is_dir() {
        return Ok(target);
    }
    let staging = || Staging::new(&data_dir.join("tmp"), STAGING);
    let tree = staging().map_err(InstallError::store("make a folder for the pack"))?;
    let downloads = staging().map_err(InstallError::store("make a folder for downloads"))?;
    install_all(&pack.packages, fetcher, downloads.path(), tree.path())?;
    describe(pack, tree.path()).map_err(InstallError::store("describe the pack"))?;
    tree.publish(&target)
        .map_err(InstallError::store("store the pack"))?;
    Ok(target)
}

/// Several at once, in order; the first failure ends all.
fn install_all(
    packages: &[Package],
    fetcher: &Fetcher<'_>,
    downloads: &Path,
    tree: &Path,
) -> Result<(), InstallError> {
    let next = AtomicUsize::new(0);
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(package) = packages.get(index) else {
                return Ok(());
            };
            if fetcher.counters.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let file = downloads.join(format!("{index}.tgz"));
            let done = fetcher
                .fetch(package, &file)
                .and_then(|()| put(package, &file, tree));
            if done.is_err() {
                fetcher.counters.stop.store(true, Ordering::Relaxed);
                return done;
            }
            fetcher.counters.packages.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..DOWNLOADS_AT_ONCE)
            .map(|_| scope.spawn(worker))
            .collect();
        let results = threads.into_iter().map(ScopedJoinHandle::join);
        let results = results.map(|result| result.unwrap_or(Err(InstallError::GivenUp)));
        // Others were only given up because of the first.
        let given_up = |error: &InstallError| matches!(error, InstallError::GivenUp);
        let errors: Vec<_> = results.filter_map(Result::err).collect();
        let cause = errors
            .iter()
            .position(|error| !given_up(error))
            .unwrap_or_default();
        errors.into_iter().nth(cause).map_or(Ok(()), Err)
    })
}

/// Unpacks a checked package and forgets its file.
fn put(package: &Package, file: &Path, tree: &Path) -> Result<(), InstallError> {
    let folder = make_folders(tree, &package.path)
        .map_err(InstallError::store("make a folder of the pack"))?;
    let archive = File::open(file).map_err(InstallError::store("read a download"))?;
    unpack(archive, folder.as_fd(), &Policy::PACKAGE).map_err(|source| InstallError::Unpack {
        package: package.title(),
        source,
    })?;
    for program in &package.programs {
        make_executable(&folder, program).map_err(InstallError::store("mark a program"))?;
    }
    std::fs::remove_file(file).map_err(InstallError::store("remove a download"))
}

/// As npm does with the files a package calls its programs; one that is not there is no matter.
fn make_executable(package: &File, program: &str) -> Result<(), Errno> {
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    match openat2(package, program, flags, Mode::empty(), beneath) {
        Ok(file) => fchmod(file, Mode::from_raw_mode(0o755)),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Folders a box's user can read, whatever our umask is.
fn make_folders(tree: &Path, path: &str) -> io::Result<File> {
    let mut folder = tree.to_owned();
    for part in path.split('/') {
        folder.push(part);
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
    }
    File::open(folder)
}

fn describe(pack: &Pack, tree: &Path) -> io::Result<()> {
    let mut packages: Vec<String> = pack.packages.iter().map(Package::title).collect();
    packages.sort();
    let manifest = Manifest {
        agent: &pack.agent,
        version: &pack.version,
        packages,
    };
    let file = tree.join(MANIFEST);
    std::fs::write(&file, serde_json::to_vec_pretty(&manifest)?)?;
    std::fs::set_permissions(&file, Permissions::from_mode(0o644))?;
    std::fs::set_permissions(tree, Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests;
