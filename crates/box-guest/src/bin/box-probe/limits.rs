//! How much a box can take before it is stopped.

use crate::outcome::Outcome;
use crate::words::{Usage, Words};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
const MOST_MIB: usize = 1 << 20;
const MOST_PROCESSES: usize = 100_000;

/// Sleeping children until one more is refused; all are ended and collected again. The detail is
/// their number.
pub(crate) fn fork(words: &Words) -> Result<Outcome, Usage> {
    let most = words.number::<usize>(0)?.min(MOST_PROCESSES);
    let mut children = Vec::with_capacity(most);
    let mut outcome = Outcome::ok();
    while children.len() < most {
        // SAFETY: this process has one thread; the child waits for its end and nothing else.
        match unsafe { libc::fork() } {
            0 => loop {
                // SAFETY: as above.
                unsafe { libc::pause() };
            },
            child if child > 0 => children.push(child),
            failed => {
                outcome = Outcome::of_call(failed.into());
                break;
            }
        }
    }
    for child in &children {
        // SAFETY: our own child, not collected yet, so the number is still its.
        unsafe { libc::kill(*child, libc::SIGKILL) };
    }
    for child in &children {
        // SAFETY: waits for our own child and wants no status.
        unsafe { libc::waitpid(*child, std::ptr::null_mut(), 0) };
    }
    Ok(outcome.with(format!("{} processes", children.len())))
}

/// Memory that is really used, a MiB at a time, in a child: what ends it, and after how much. The
/// second word says of which kind it is.
pub(crate) fn memory(words: &Words) -> Result<Outcome, Usage> {
    let most = words.number::<usize>(0)?.min(MOST_MIB);
    let take = match words.text(1).unwrap_or("own") {
        "own" => own_memory,
        "memfd" => file_in_memory,
        "shared" => shared_segment,
        _ => return Err(Usage),
    };
    let Ok((mut reader, writer)) = io::pipe() else {
        return Ok(Outcome::not_tried("no pipe could be opened"));
    };
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        0 => {
            drop(reader);
            let errno = fill(most, take, writer);
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(errno) }
        }
        child if child > 0 => {
            drop(writer);
            let mut steps = Vec::new();
            // One byte a MiB; whatever arrived before the end counts.
            drop(reader.read_to_end(&mut steps));
            let mut status = 0;
            // SAFETY: waits for our own child; `status` takes an int.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            Ok(ended(status).with(format!("{} MiB", steps.len())))
        }
        failed => Ok(Outcome::of_call(failed.into()).with("no process could be started")),
    }
}

/// Takes and touches memory; gives the error, or 0.
fn fill(most: usize, take: fn() -> io::Result<*mut u8>, mut steps: io::PipeWriter) -> i32 {
    for _ in 0..most {
        let at = match take() {
            Ok(at) => at,
            Err(error) => return error.raw_os_error().unwrap_or(libc::ENOMEM),
        };
        // SAFETY: a mapping this long and writable that nothing else points into. Not zero, or it
        // could be shared.
        unsafe { std::ptr::write_bytes(at, 1, MIB) };
        if steps.write_all(&[1]).is_err() {
            return libc::EPIPE;
        }
    }
    0
}

fn own_memory() -> io::Result<*mut u8> {
    map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
}

/// Pages of a file that lies nowhere (`memfd_create(2)`): they belong to no process. The file stays
/// with its mapping.
fn file_in_memory() -> io::Result<*mut u8> {
    let file = rustix::fs::memfd_create("box-probe", rustix::fs::MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&file, MIB as u64)?;
    map(libc::MAP_SHARED, std::os::fd::AsRawFd::as_raw_fd(&file))
}

fn map(flags: i32, file: i32) -> io::Result<*mut u8> {
    // SAFETY: a new mapping that nothing else points into.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            MIB,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            file,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(at.cast())
}

/// A System V segment, removed at once: it stays while it is attached.
fn shared_segment() -> io::Result<*mut u8> {
    // SAFETY: numbers; the segment just made is attached where the kernel likes, and marked to go
    // with its last user.
    unsafe {
        let id = libc::shmget(libc::IPC_PRIVATE, MIB, 0o600);
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        let at = libc::shmat(id, std::ptr::null(), 0);
        let error = io::Error::last_os_error();
        libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut());
        if at.addr() == usize::MAX {
            return Err(error);
        }
        Ok(at.cast())
    }
}

pub(crate) fn ended(status: i32) -> Outcome {
    if libc::WIFSIGNALED(status) {
        let signal = match libc::WTERMSIG(status) {
            libc::SIGKILL => "SIGKILL".to_owned(),
            libc::SIGSYS => "SIGSYS".to_owned(),
            libc::SIGBUS => "SIGBUS".to_owned(),
            other => format!("SIG#{other}"),
        };
        return Outcome::Refused {
            errno: signal,
            detail: None,
        };
    }
    match libc::WEXITSTATUS(status) {
        0 => Outcome::ok(),
        errno => Outcome::of_errno(errno),
    }
}

/// A file that grows until it may not; it is removed again.
pub(crate) fn file(words: &Words) -> Result<Outcome, Usage> {
    let path = words.text(0)?;
    let most = words.number::<usize>(1)?.min(MOST_MIB);
    let block = vec![1_u8; MIB];
    // So that a limit on the size of files is an error to report and not the end of us.
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let mut written = 0;
    let grown = File::create_new(path).and_then(|mut file| {
        while written < most {
            file.write_all(&block)?;
            written += 1;
        }
        Ok(())
    });
    if written > 0 || grown.is_ok() {
        drop(std::fs::remove_file(path));
    }
    Ok(Outcome::of(grown).with(format!("{written} MiB")))
}

/// Open files until one more is refused.
pub(crate) fn open(words: &Words) -> Result<Outcome, Usage> {
    let most = words.number::<usize>(0)?.min(MOST_PROCESSES);
    let mut files = Vec::new();
    let mut outcome = Outcome::ok();
    while files.len() < most {
        match File::open("/") {
            Ok(file) => files.push(file),
            Err(error) => {
                outcome = Outcome::of(Err(error));
                break;
            }
        }
    }
    Ok(outcome.with(format!("{} files", files.len())))
}

/// Computes for so long; the detail says how much CPU it got: `cpu=… ms wall=… ms`.
pub(crate) fn spin(words: &Words) -> Result<Outcome, Usage> {
    let wanted = Duration::from_millis(words.number(0)?);
    let start = Instant::now();
    let mut number = 1_u64;
    while start.elapsed() < wanted {
        for _ in 0..1000 {
            number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005));
        }
    }
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu_ms = used.tv_sec * 1000 + used.tv_nsec / 1_000_000;
    Ok(Outcome::ok().with(format!(
        "cpu={cpu_ms} ms wall={} ms",
        start.elapsed().as_millis()
    )))
}
