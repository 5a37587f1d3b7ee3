//! Follows a recipe: `mmdebstrap` makes the tree, its tar goes straight into our unpacker.
//!
//! It runs in a mount and a pid namespace of its own (unshare(1)): what it mounts is never seen by
//! the host, so removing its folder cannot reach a bind mount, and killing it takes apt and dpkg
//! along.

mod rights;

use super::Say;
use super::apt;
use super::error::ImageError;
use super::index::hex_sha256;
use super::recipe::Recipe;
use super::reference::{Reference, no_such_suite};
use super::store::{Made, Making};
use crate::rootless::Privileges;
use box_runtime::unpack::{Policy, UnpackError, Unpacked, unpack};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, openat2, statat, unlinkat};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, waitid,
};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// How long a whole image may take, downloads included.
const BUILD_TIME_MAX: Duration = Duration::from_mins(30);
/// How much of what it says is kept for an error.
const TAIL_LINES_MAX: usize = 12;
const LINE_BYTES_MAX: u64 = 4096;
/// Largest package list read, bytes.
const STATUS_BYTES_MAX: u64 = 64 << 20;

pub(super) fn make(
    making: &Making<'_>,
    recipe: &Recipe,
    root: BorrowedFd<'_>,
) -> Result<Made, ImageError> {
    let image = || making.image.to_owned();
    let mmdebstrap = on_path("mmdebstrap", std::env::var_os("PATH"))
        .ok_or(ImageError::NoMmdebstrap { image: image() })?;
    let sources = apt::for_suite(&apt::sources(Path::new("/etc/apt")), &recipe.suite)
        .ok_or(ImageError::NoArchive { image: image() })?;
    let work = making.staging()?;
    let list = work.path().join("box.sources");
    std::fs::write(&list, sources).map_err(ImageError::store("write the list of sources"))?;
    making
        .say
        .line(format!("making image `{}` with mmdebstrap", making.image));

    let mut command = command(&mmdebstrap, recipe, &list, making.privileges);
    command.env("TMPDIR", work.path());
    let mut child = command
        .spawn()
        .map_err(ImageError::store("start mmdebstrap"))?;
    let policy = making.privileges.policy(Policy::IMAGE);
    let Followed {
        unpacked,
        late,
        tail,
    } = follow(&mut child, root, (making.say, &policy), BUILD_TIME_MAX)?;
    let status = child
        .wait()
        .map_err(ImageError::store("wait for mmdebstrap"))?;
    if late {
        let how = format!("not done after {} minutes", BUILD_TIME_MAX.as_secs() / 60);
        return Err(ImageError::Mmdebstrap {
            image: image(),
            how,
            tail,
        });
    }
    // A failing mmdebstrap leaves half a tar; a failing unpacker breaks its pipe. The first matters.
    let cut = matches!(
        unpacked,
        Err(UnpackError::Damaged { .. } | UnpackError::Read(_)) | Ok(_)
    );
    if !status.success() && cut {
        return Err(failure(making.image, recipe, status.to_string(), tail));
    }
    let unpacked = unpacked.map_err(|source| ImageError::Unpack {
        image: image(),
        source,
    })?;
    clean(root);
    let packages = packages(root);
    let source = hex_sha256(&[&recipe.stamp(), &packages.join("\n")]);
    Ok(Made {
        unpacked,
        source,
        packages,
        env: Vec::new(),
        blobs: Vec::new(),
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one program the image store starts, by argv"
)]
fn command(mmdebstrap: &Path, recipe: &Recipe, sources: &Path, privileges: Privileges) -> Command {
    let mut command = Command::new("unshare");
    command.args(rights::namespaces(privileges));
    command.args([
        "--mount",
        "--propagation",
        "private",
        "--pid",
        "--fork",
        "--kill-child",
        "--",
    ]);
    command.arg(mmdebstrap);
    // Devices come from the engine; the tar must hold none.
    command.args([
        "--mode=root",
        "--variant=minbase",
        "--format=tar",
        "--skip=output/dev",
    ]);
    command.args(rights::options(privileges));
    // Not a sync per file: the whole image is synced once, before anybody sees it.
    command.arg("--dpkgopt=force-unsafe-io");
    if !recipe.packages.is_empty() {
        command.arg(format!("--include={}", recipe.packages.join(",")));
    }
    for (option, paths) in [
        ("path-exclude", &recipe.exclude),
        ("path-include", &recipe.include),
    ] {
        command.args(
            paths
                .iter()
                .map(|path| format!("--dpkgopt={option}={path}")),
        );
    }
    command.args([recipe.suite.as_str(), "-"]).arg(sources);
    command.env_clear();
    command
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C.UTF-8");
    command.envs(proxies());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    rights::give(&mut command, privileges);
    command
}

/// The way to the archive, where it is a proxy that the environment names (apt honours these).
fn proxies() -> Vec<(&'static str, OsString)> {
    [
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ]
    .into_iter()
    .filter_map(|name| Some((name, std::env::var_os(name)?)))
    .collect()
}

/// How following it went.
#[derive(Debug)]
struct Followed {
    unpacked: Result<Unpacked, UnpackError>,
    /// It took too long and was ended.
    late: bool,
    /// The end of what it said.
    tail: String,
}

/// Unpacks what it writes, tells what it says, and ends it when it takes too long. It has exited
/// when this returns, and can be waited for.
fn follow(
    child: &mut Child,
    root: BorrowedFd<'_>,
    (say, policy): (&Say, &Policy),
    time_max: Duration,
) -> Result<Followed, ImageError> {
    let failed = || ImageError::store::<rustix::io::Errno>("wait for mmdebstrap");
    let pid = Pid::from_child(child);
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(failed()(rustix::io::Errno::BADF));
    };
    let (done, is_done) = sync_channel::<()>(1);
    thread::scope(|scope| {
        let said = scope.spawn(|| listen(stderr, say));
        let watched = scope.spawn(move || {
            let late = is_done.recv_timeout(time_max) == Err(RecvTimeoutError::Timeout);
            if late {
                kill(pid);
            }
            late
        });
        let unpacked = unpack(stdout, root, policy);
        if unpacked.is_err() {
            // It may have failed by itself; then its own words come before this reaches it.
            wait_a_little(pid, Duration::from_secs(2));
            kill(pid);
        }
        // Not reaped here: while it is a zombie its number names no other process.
        waitid(
            WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        )
        .map_err(failed())?;
        drop(done);
        let tail = Vec::from(said.join().unwrap_or_default()).join("\n");
        Ok(Followed {
            unpacked,
            late: watched.join().unwrap_or_default(),
            tail,
        })
    })
}

/// Waits a little for a process to end by itself.
fn wait_a_little(pid: Pid, patience: Duration) {
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    let patience = Timespec::try_from(patience).ok();
    // Whether it ended in time does not matter: it is killed next.
    poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], patience.as_ref()).unwrap_or_default();
}

/// It is not reaped yet, so the number is still its own. Gone already is as good.
fn kill(pid: Pid) {
    kill_process(pid, Signal::KILL).unwrap_or_default();
}

/// Tells its steps (`I: …`) and keeps the end of all it said.
fn listen(stderr: ChildStderr, say: &Say) -> VecDeque<String> {
    let mut tail = VecDeque::new();
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
        {
            Ok(0) | Err(_) => return tail,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        if let Some(step) = text
            .strip_prefix("I: ")
            .and_then(|step| step.strip_suffix("..."))
            .filter(|step| !step.contains('/'))
        {
            say.line(step);
        }
        if tail.len() == TAIL_LINES_MAX {
            tail.pop_front();
        }
        tail.extend((!text.is_empty()).then_some(text));
    }
}

fn failure(image: &str, recipe: &Recipe, how: String, tail: String) -> ImageError {
    let release = format!(" {} Release' does not have a Release file", recipe.suite);
    let missing = tail.contains(&release);
    match Reference::parse(image) {
        Ok(Reference::Debian(suite)) if missing => no_such_suite(&suite),
        Ok(_) | Err(_) => ImageError::Mmdebstrap {
            image: image.to_owned(),
            how,
            tail,
        },
    }
}

fn on_path(program: &str, path: Option<OsString>) -> Option<PathBuf> {
    std::env::split_paths(&path?)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Takes out what the making left: it is of no use in a box.
fn clean(root: BorrowedFd<'_>) {
    for (folder, files) in [
        (
            "var/cache/debconf",
            &["config.dat-old", "templates.dat-old"][..],
        ),
        (
            "var/log",
            &["alternatives.log", "bootstrap.log", "dpkg.log"],
        ),
    ] {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let Ok(folder) = openat2(root, folder, flags, Mode::empty(), beneath) else {
            continue;
        };
        for file in files {
            if statat(&folder, *file, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                unlinkat(&folder, *file, AtFlags::empty()).unwrap_or_default(); // left: harmless
            }
        }
    }
}

/// `name version architecture` of every package dpkg knows there, sorted.
fn packages(root: BorrowedFd<'_>) -> Vec<String> {
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(status) = openat2(root, "var/lib/dpkg/status", flags, Mode::empty(), beneath) else {
        return Vec::new();
    };
    let mut text = String::new();
    if File::from(status)
        .take(STATUS_BYTES_MAX)
        .read_to_string(&mut text)
        .is_err()
    {
        return Vec::new();
    }
    let mut found: Vec<String> = text
        .split("\n\n")
        .filter_map(|stanza| {
            let field = |name| stanza.lines().find_map(|line| line.strip_prefix(name));
            Some(format!(
                "{} {} {}",
                field("Package: ")?,
                field("Version: ")?,
                field("Architecture: ")?
            ))
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests;
