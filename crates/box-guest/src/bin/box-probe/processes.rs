//! Other processes.

use crate::outcome::Outcome;
use crate::words::{Usage, Words};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::AsRawFd as _;

/// Attaches without stopping it, and lets go.
pub(crate) fn ptrace(words: &Words) -> Result<Outcome, Usage> {
    let pid: libc::pid_t = words.number(0)?;
    // SAFETY: PTRACE_SEIZE and PTRACE_DETACH take a pid and numbers and touch no memory of ours.
    unsafe {
        let seized = libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0);
        let outcome = Outcome::of_call(seized);
        if seized == 0 {
            libc::ptrace(libc::PTRACE_INTERRUPT, pid, 0, 0);
            libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL);
            libc::ptrace(libc::PTRACE_DETACH, pid, 0, 0);
        }
        Ok(outcome)
    }
}

pub(crate) fn kill(words: &Words) -> Result<Outcome, Usage> {
    // SAFETY: numbers only.
    let sent = unsafe { libc::kill(words.number(0)?, words.number(1)?) };
    Ok(Outcome::of_call(sent.into()))
}

/// Reads another process's memory by address; `EFAULT` would mean that it was allowed to look.
pub(crate) fn vm_readv(words: &Words) -> Result<Outcome, Usage> {
    let mut byte = 0_u8;
    let local = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let address = usize::try_from(words.hex(1)?).map_err(|_| Usage)?;
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address),
        iov_len: 1,
    };
    // SAFETY: one byte of ours is written; the other address is never used in this process.
    let read = unsafe {
        libc::process_vm_readv(
            words.number(0)?,
            &raw const local,
            1,
            &raw const remote,
            1,
            0,
        )
    };
    Ok(Outcome::of_call(read as i64))
}

pub(crate) fn pidfd_getfd(words: &Words) -> Result<Outcome, Usage> {
    let pid: libc::pid_t = words.number(0)?;
    let fd: i32 = words.number(1)?;
    // SAFETY: numbers only; what is opened closes with this process.
    let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if pidfd < 0 {
        return Ok(Outcome::of_call(pidfd).with("pidfd_open"));
    }
    // SAFETY: as above.
    let got = unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd, fd, 0) };
    Ok(Outcome::of_call(got))
}

pub(crate) fn proc_exe(words: &Words) -> Result<Outcome, Usage> {
    let pid: u32 = words.number(0)?;
    Ok(Outcome::of(
        std::fs::read_link(format!("/proc/{pid}/exe")).map(drop),
    ))
}

pub(crate) fn proc_environ(words: &Words) -> Result<Outcome, Usage> {
    let pid: u32 = words.number(0)?;
    Ok(match std::fs::read(format!("/proc/{pid}/environ")) {
        Ok(bytes) => Outcome::ok().with(format!("{} bytes", bytes.len())),
        Err(error) => Outcome::of(Err(error)),
    })
}

/// Reads a byte of the first readable page.
pub(crate) fn proc_mem(words: &Words) -> Result<Outcome, Usage> {
    let pid: u32 = words.number(0)?;
    Ok(Outcome::of(read_mem(pid)))
}

fn read_mem(pid: u32) -> io::Result<()> {
    // Opened first: this is what is refused; the map only says where to look.
    let mut memory = File::open(format!("/proc/{pid}/mem"))?;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let start = maps
        .split('-')
        .next()
        .and_then(|start| u64::from_str_radix(start, 16).ok());
    memory.seek(SeekFrom::Start(start.ok_or(io::ErrorKind::InvalidData)?))?;
    memory.read_exact(&mut [0])
}

/// Puts a character into a terminal as if it had been typed, on a terminal of its own.
pub(crate) fn tiocsti() -> Outcome {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let opened = openpt(flags)
        .and_then(|outer| unlockpt(&outer).map(|()| outer))
        .and_then(|outer| ioctl_tiocgptpeer(&outer, flags).map(|inner| (outer, inner)));
    let Ok((_outer, inner)) = opened else {
        return Outcome::not_tried("no terminal could be opened");
    };
    // SAFETY: this process has one thread; the child only makes system calls and ends.
    match unsafe { libc::fork() } {
        0 => {
            let typed = c"x";
            // SAFETY: a descriptor that is open, and one readable byte.
            unsafe {
                libc::setsid();
                libc::ioctl(inner.as_raw_fd(), libc::TIOCSCTTY, 0);
                let done = libc::ioctl(inner.as_raw_fd(), libc::TIOCSTI, typed.as_ptr());
                let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
                libc::_exit(if done == 0 { 0 } else { errno });
            }
        }
        child if child > 0 => {
            let mut status = 0;
            // SAFETY: `status` takes an int.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            match libc::WEXITSTATUS(status) {
                0 if libc::WIFEXITED(status) => Outcome::ok(),
                errno => Outcome::of_errno(errno),
            }
        }
        _ => Outcome::not_tried("no process could be started"),
    }
}
