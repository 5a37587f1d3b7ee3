//! Stops and continues every process of a box that has no cgroup to be frozen by.
//!
//! From inside the box's process namespace one call reaches them all (`kill(2)`, pid -1) and misses
//! none: a fork that the signal overtakes is begun again after it (`copy_process` in kernel/fork.c).
//! SIGSTOP can be neither caught nor blocked. What a program inside had stopped itself goes on with
//! the rest, which a frozen cgroup would not do to it.

use crate::cgroup::Motion;
use crate::step::{Step as _, StepError};
use crate::sys::{self, Cloned};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getppid, pidfd_send_signal, waitpid};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

const STEP: &str = "stop or continue the box's processes";

/// Tells all of them. Whether they have stopped is seen from outside.
pub(super) fn put(pidfd: &OwnedFd, motion: Motion) -> Result<(), StepError> {
    let signal = match motion {
        Motion::Frozen => Signal::STOP,
        Motion::Thawed => Signal::CONT,
    };
    // The first process is not among "all"; from outside it takes SIGSTOP (`pid_namespaces(7)`).
    // Before the others, so that it starts nothing meanwhile.
    match pidfd_send_signal(pidfd, signal) {
        // It has ended, and so has all the rest.
        Err(Errno::SRCH) => return Ok(()),
        sent => sent.step(STEP)?,
    }
    // SAFETY: the spawner is single-threaded from its first instruction to its last.
    match unsafe { sys::clone3(0, None) }.step(STEP)? {
        Cloned::Child => sys::exit_now(code(send_inside(pidfd, signal))),
        Cloned::Parent { pid, .. } => outcome(pid),
    }
}

/// Enters the namespaces; only a child of who did is in the process namespace (`setns(2)`).
fn send_inside(pidfd: &OwnedFd, signal: Signal) -> Result<(), Errno> {
    let spaces = ThreadNameSpaceType::USER | ThreadNameSpaceType::PROCESS_ID;
    move_into_thread_name_spaces(pidfd.as_fd(), spaces)?;
    // SAFETY: a fresh child of the spawner has one thread as well.
    match unsafe { sys::clone3(0, None) }.map_err(|error| errno(&error))? {
        // A process whose parent is outside its namespace has none (`getppid(2)`). In any other "all"
        // would be the machine's.
        Cloned::Child if getppid().is_none() => sys::exit_now(code(sys::signal_all(signal))),
        Cloned::Child => sys::exit_now(code(Err(Errno::PERM))),
        Cloned::Parent { pid, .. } => match outcome(pid) {
            Ok(()) => Ok(()),
            Err(_) => Err(Errno::IO),
        },
    }
}

/// An errno as an exit code; all there are fit.
fn code(result: Result<(), Errno>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(errno) => errno.raw_os_error(),
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn outcome(pid: Pid) -> Result<(), StepError> {
    let ended = waitpid(Some(pid), WaitOptions::empty()).step(STEP)?;
    let code = ended.and_then(|(_, status)| status.exit_status());
    match code {
        Some(0) => Ok(()),
        Some(errno) => Err(StepError::new(STEP, Errno::from_raw_os_error(errno))),
        None => Err(StepError::new(STEP, Errno::IO)),
    }
}
