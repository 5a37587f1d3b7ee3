//! Starts a host of its own: detached, in its own session, with no descriptor of ours.
//!
//! Two steps, each this executable again: `box serve --step detach` leads a process group of its own (so
//! that a Ctrl-C does not reach it), starts `box serve --step report` and ends; that one is nobody's
//! child any more, makes its own session and writes one [`Report`] line to its standard output, a
//! pipe we read.

use crate::child;
use crate::client::wire::wait_for;
use crate::complaint::Complaint;
use crate::identity::OWN_EXECUTABLE;
use box_api::Problem;
use box_server::paths::Paths;
use rustix::event::PollFlags;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// From the first exec to a listening socket. Bringing boxes back happens after it.
const READY_DEADLINE: Duration = Duration::from_mins(1);
const REPORT_BYTES_MAX: usize = 64 << 10;
/// How much of a dead host's last words is shown.
const LAST_WORDS_BYTES_MAX: u64 = 400;

/// What a host that was started says once.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub(crate) enum Report {
    /// It listens.
    Ready,
    /// It will not; this is why.
    Failed(Problem),
}

/// Waits for the turn to start a host. The lock goes with the value, or with the process.
///
/// # Errors
/// When the run folder cannot be made.
pub(crate) fn take_turn(paths: &Paths) -> Result<File, Complaint> {
    make_own_folder(&paths.run)?;
    let path = paths.run.join("start.lock");
    let file = open_lock(&path)?;
    // Whoever holds it gives up at a deadline of its own.
    rustix::fs::flock(&file, FlockOperation::LockExclusive)
        .map_err(|errno| no_lock(&path, errno))?;
    Ok(file)
}

/// Takes a lock if nobody has it.
///
/// # Errors
/// When the file cannot be made or locked at all.
pub(crate) fn lock_now(path: &Path) -> Result<Option<File>, Complaint> {
    let file = open_lock(path)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(no_lock(path, errno)),
    }
}

fn open_lock(path: &Path) -> Result<File, Complaint> {
    let mut options = OpenOptions::new();
    let options = options
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600);
    options.open(path).map_err(|error| no_lock(path, error))
}

fn no_lock(path: &Path, error: impl ToString) -> Complaint {
    Complaint::engine("no-start", format!("could not lock `{}`", path.display())).caused_by(error)
}

/// Where a host that was started in the background writes what it says before its log is open.
pub(crate) fn last_words(paths: &Paths) -> PathBuf {
    paths.log.join("serve.stderr")
}

/// Starts a host and waits until it listens.
///
/// # Errors
/// The host's own problem, or that it ended or took too long.
pub(crate) fn launch(paths: &Paths) -> Result<(), Complaint> {
    make_own_folder(&paths.log)?;
    let words = last_words(paths);
    let could_not = |error: std::io::Error| {
        Complaint::engine("no-start", "could not start the host").caused_by(error)
    };
    let stderr = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&words)
        .map_err(could_not)?;
    let (reader, writer) = std::io::pipe().map_err(could_not)?;
    let mut first = again(&["serve", "--step", "detach"]);
    first
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(stderr)
        .process_group(0);
    let status = first.status().map_err(could_not)?;
    // It holds a copy of the pipe's writing end.
    drop(first);
    let line = if status.success() {
        read_report(reader)
    } else {
        Ok(String::new())
    };
    let line = line.map_err(|error| {
        Complaint::engine(
            "no-start",
            format!(
                "the host was not ready within {} s",
                READY_DEADLINE.as_secs()
            ),
        )
        .caused_by(error)
        .hinted(format!("what it says is in `{}`", words.display()))
    })?;
    match serde_json::from_str(&line) {
        Ok(Report::Ready) => Ok(()),
        Ok(Report::Failed(problem)) => Err(problem.into()),
        Err(_) => Err(
            Complaint::engine("no-start", "the host ended before it was ready")
                .caused_by(tail(&words).unwrap_or_else(|| "it said nothing".to_owned()))
                .hinted(format!("all it said is in `{}`", words.display())),
        ),
    }
}

/// The first step's work: starts the second, which keeps this one's standard output, the pipe of
/// whoever waits.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn detach() -> Result<(), Complaint> {
    leave_descriptors_behind()?;
    let mut second = again(&["serve", "--step", "report"]);
    second.stdin(Stdio::null()).current_dir("/");
    second.spawn().map(drop).map_err(in_the_background)
}

/// The second step's beginning: a session of its own. Standard output stays the pipe of whoever
/// waits, until [`report`].
///
/// # Errors
/// When the system refuses.
pub(crate) fn enter_background() -> Result<(), Complaint> {
    // It is no leader of a process group, as the first step was.
    rustix::process::setsid()
        .map(drop)
        .map_err(in_the_background)
}

/// Tells whoever waits, and lets go of the pipe. Nobody may wait any more; the host stays.
pub(crate) fn report(report: &Report) {
    let mut line = serde_json::to_vec(report).unwrap_or_default();
    line.push(b'\n');
    let mut rest = line.as_slice();
    while let Ok(sent @ 1..) = rustix::io::write(rustix::stdio::stdout(), rest) {
        rest = &rest[sent..];
    }
    if let Ok(nowhere) = OpenOptions::new().write(true).open("/dev/null") {
        let _stays_open = rustix::stdio::dup2_stdout(&nowhere);
    }
}

fn in_the_background(error: impl ToString) -> Complaint {
    Complaint::engine("no-start", "could not start the host in the background").caused_by(error)
}

/// What our caller left open for us (a shell's `3>file`, a test's pipes) goes to no process of ours.
///
/// # Errors
/// When the kernel lacks `close_range(2)`.
pub(crate) fn leave_descriptors_behind() -> Result<(), Complaint> {
    const AFTER_STANDARD_ERROR: u32 = 3;
    box_runtime_native::close_on_exec_from(AFTER_STANDARD_ERROR).map_err(in_the_background)
}

/// This executable again, whatever happened to its file since.
fn again(arguments: &[&str]) -> Command {
    let mut command = child::command(OWN_EXECUTABLE);
    command.arg0("box").args(arguments);
    command
}

fn read_report(mut reader: std::io::PipeReader) -> Result<String, std::io::Error> {
    let deadline = Instant::now() + READY_DEADLINE;
    let mut line = Vec::new();
    let mut piece = [0; 4096];
    while !line.contains(&b'\n') && line.len() < REPORT_BYTES_MAX {
        if !wait_for(&reader, PollFlags::IN, Some(deadline))? {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        let read = reader.read(&mut piece)?;
        if read == 0 {
            break;
        }
        line.extend_from_slice(&piece[..read]);
    }
    Ok(String::from_utf8_lossy(&line).trim().to_owned())
}

/// The last lines of what the host wrote to its standard error.
fn tail(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS_BYTES_MAX)))
        .ok()?;
    let mut bytes = Vec::new();
    file.take(LAST_WORDS_BYTES_MAX)
        .read_to_end(&mut bytes)
        .ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().rev().take(2).collect();
    let last = lines.into_iter().rev().collect::<Vec<_>>().join(" / ");
    Some(last).filter(|last| !last.trim().is_empty())
}

/// A folder of the host, with the mode the host itself gives it.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn make_own_folder(path: &Path) -> Result<(), Complaint> {
    // Root's host is there for every user, one's own for nobody else.
    let permissions = if rustix::process::geteuid().is_root() {
        0o755
    } else {
        0o700
    };
    let made = DirBuilder::new()
        .recursive(true)
        .mode(permissions)
        .create(path);
    made.map_err(|error| {
        let title = format!("could not make the folder `{}`", path.display());
        Complaint::engine("no-start", title).caused_by(error)
    })
}
