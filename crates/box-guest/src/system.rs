//! What the guest needs from the kernel and no safe crate offers, and its own start.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_child_subreaper, set_dumpable_behavior};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// Where the launcher leaves the listening socket.
const LISTENER: i32 = 3;

/// From here on nothing in the box can trace this process, read its memory or its environment, or
/// take one of its descriptors.
pub(crate) fn become_undumpable() -> Result<(), String> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| format!("could not become non-dumpable: {error}"))?;
    // Pid 1 inherits orphans anyway; this makes the same true of a guest that is not pid 1.
    set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| format!("could not become the reaper: {error}"))
}

/// The listening socket, with every other descriptor closed or harmless.
pub(crate) fn take_over_descriptors() -> Result<OwnedFd, String> {
    loop {
        // A command's own descriptors are moved onto 0, 1 and 2, so these three must be taken.
        let opened = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty())
            .map_err(|error| format!("could not open `/dev/null`: {error}"))?;
        if opened.as_raw_fd() > 2 {
            break;
        }
        std::mem::forget(opened);
    }
    // SAFETY: closes descriptors nothing in this process has a name for yet.
    unsafe { libc::syscall(libc::SYS_close_range, LISTENER + 1, u32::MAX, 0) };
    // SAFETY: the descriptor is this process's alone; that it is open and a socket that listens is
    // checked next, before anything else is done with it.
    let listener = unsafe { OwnedFd::from_raw_fd(LISTENER) };
    let right = rustix::net::sockopt::socket_acceptconn(&listener).unwrap_or(false);
    if !right {
        std::mem::forget(listener);
        return Err(format!("descriptor {LISTENER} is not a listening socket"));
    }
    rustix::io::fcntl_setfd(&listener, rustix::io::FdFlags::CLOEXEC)
        .and_then(|()| set_nonblocking(&listener))
        .map_err(|error| format!("could not prepare the listening socket: {error}"))?;
    Ok(listener)
}

pub(crate) fn set_nonblocking(fd: impl AsFd) -> Result<(), Errno> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)
}

/// The descriptor signals are read from.
#[derive(Debug)]
pub(crate) struct Signals(OwnedFd);

/// A signal that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrived {
    Child,
    /// A wish to stop, from somebody who may have it.
    Stop,
    /// A `SIGTERM` from inside the box, or anything else.
    Other,
}

impl Signals {
    pub(crate) fn block_all() -> Result<Self, String> {
        let failed = |what: &str| format!("{what}: {}", std::io::Error::last_os_error());
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut wanted = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: each set is initialised by its first call, before anything reads it; the
        // descriptor signalfd gives is new and nobody else's.
        let fd = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::sigemptyset(wanted.as_mut_ptr());
            libc::sigaddset(wanted.as_mut_ptr(), libc::SIGCHLD);
            libc::sigaddset(wanted.as_mut_ptr(), libc::SIGTERM);
            if libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut()) != 0 {
                return Err(failed("could not block signals"));
            }
            libc::signalfd(-1, wanted.as_ptr(), libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)
        };
        if fd < 0 {
            return Err(failed("could not open a descriptor for signals"));
        }
        // SAFETY: as above.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The next signal that waits, if any.
    pub(crate) fn take(&self) -> Option<Arrived> {
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
        let got = rustix::io::read(&self.0, &mut info).ok()?;
        if got != info.len() {
            return None;
        }
        // SAFETY: the kernel wrote a whole signalfd_siginfo, which is plain numbers; the array has
        // its size, and read_unaligned does not ask for its alignment.
        let info =
            unsafe { std::ptr::read_unaligned(info.as_ptr().cast::<libc::signalfd_siginfo>()) };
        Some(match i32::try_from(info.ssi_signo) {
            Ok(libc::SIGCHLD) => Arrived::Child,
            Ok(libc::SIGTERM) if may_stop(&info) => Arrived::Stop,
            _ => Arrived::Other,
        })
    }
}

/// As pid 1, only kill(2) from outside the pid namespace: such a sender has no pid here, and with
/// `SI_USER` the kernel does not let a sender inside pretend to be pid 0 (sigqueue(3) could).
fn may_stop(info: &libc::signalfd_siginfo) -> bool {
    !is_pid_1() || (info.ssi_code == libc::SI_USER && info.ssi_pid == 0)
}

pub(crate) fn is_pid_1() -> bool {
    rustix::process::getpid().is_init()
}

/// kill(2) with any signal number. `target` is a pid, or the negative of a process group; -1, which
/// means everything, only as pid 1, where everything is the box.
pub(crate) fn send_signal(target: i32, number: i32) -> Result<(), Errno> {
    if target == 0 || target == 1 || (target == -1 && !is_pid_1()) {
        return Err(Errno::PERM);
    }
    // SAFETY: takes two numbers and touches no memory of ours.
    match unsafe { libc::kill(target, number) } {
        0 => Ok(()),
        _ => Err(last_errno()),
    }
}

/// A signal to the process group that `leader`, a child not reaped yet, leads or is about to.
pub(crate) fn signal_group(leader: i32, number: i32) -> Result<(), Errno> {
    match send_signal(-leader, number) {
        // Freshly forked it has no group of its own yet; what is pending then reaches it later.
        Err(Errno::SRCH) => send_signal(leader, number),
        told => told,
    }
}

pub(crate) fn last_errno() -> Errno {
    let number = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Errno::from_raw_os_error(number)
}
