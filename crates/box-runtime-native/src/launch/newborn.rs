//! A box between its first instruction and its first program, as the spawner sees it.

use super::{Launched, late};
use crate::network::Listeners;
use crate::spawner::wire;
use crate::step::{Step as _, StepError};
use box_runtime::Transparent;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use std::io;

/// How long the inside may take for all of its set-up.
const SET_UP_SECONDS: i64 = 10;
/// Longest message from inside.
pub(super) const MESSAGE_BYTES_MAX: usize = 1 << 10;
/// Where out-of-memory kills go first (`proc_pid_oom_score_adj(5)`).
const OOM_SCORE: &[u8] = b"500";

/// First byte of what the inside says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// All is set up, exec is next; the listeners are beside it.
    Ready = b'r' as isize,
    /// The rest is why it failed.
    Failed = b'f' as isize,
}

/// Kills and reaps what it holds unless the box arrived.
#[derive(Debug)]
pub(super) struct Newborn {
    pid: Pid,
    /// Taken when the box arrived.
    pidfd: Option<OwnedFd>,
    socket: OwnedFd,
}

impl Newborn {
    pub(super) fn new(pid: Pid, pidfd: OwnedFd, socket: OwnedFd) -> Self {
        Self {
            pid,
            pidfd: Some(pidfd),
            socket,
        }
    }

    /// Writes down who the box's pid 1 is, before it can do anything: a host that dies now finds it.
    pub(super) fn be_recorded_in(&self, record: &OwnedFd, boot: &str) -> Result<(), StepError> {
        let write = || -> io::Result<()> {
            let text = describe(self.pid.as_raw_nonzero().get().unsigned_abs(), boot)?;
            rustix::io::write(record, text.as_bytes())?;
            Ok(())
        };
        write().step("record the box's first process")
    }

    /// Gives the box its ids, and the namespace that has it for idmapped mounts.
    pub(super) fn map_ids(&self, [users, groups]: &[String; 2]) -> Result<OwnedFd, StepError> {
        self.write("uid_map", users.as_bytes())
            .step("map the box's user ids")?;
        self.write("gid_map", groups.as_bytes())
            .step("map the box's group ids")?;
        let namespace = format!("/proc/{}/ns/user", self.pid.as_raw_nonzero());
        rustix::fs::open(namespace, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .step("open the box's user namespace")
    }

    pub(super) fn be_killed_first_when_memory_is_short(&self) -> Result<(), StepError> {
        self.write("oom_score_adj", OOM_SCORE)
            .step("mark the box for out-of-memory kills")
    }

    fn write(&self, file: &str, bytes: &[u8]) -> io::Result<()> {
        let path = format!("/proc/{}/{file}", self.pid.as_raw_nonzero());
        let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::io::write(&file, bytes)?;
        Ok(())
    }

    /// Whether it waits still: it has neither said anything nor ended.
    pub(super) fn waits(&self) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // The end of its side of the socket is told as well.
        poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&now)) == Ok(0)
    }

    /// One datagram to the inside, with descriptors beside it.
    pub(super) fn tell(&self, bytes: &[u8], beside: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        wire::send(&self.socket, bytes, beside)
    }

    /// Everything outside is ready; `overlay` is the root of a box that may write to it.
    pub(super) fn go(&self, overlay: Option<&OwnedFd>) -> Result<(), StepError> {
        let overlay: Vec<BorrowedFd<'_>> = overlay.into_iter().map(|fd| fd.as_fd()).collect();
        match wire::send(&self.socket, b"go", &overlay) {
            // It is dead, and has said why.
            Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            result => result.step("let the box go on"),
        }
    }

    /// Waits until box-guest runs, which closes the inside's end of the socket; what was said until
    /// then is read in one go, so that the spawner wakes up once.
    pub(super) fn arrive(self) -> Result<Launched, StepError> {
        self.arrive_within(SET_UP_SECONDS)
    }

    fn arrive_within(mut self, seconds: i64) -> Result<Launched, StepError> {
        const STEP: &str = "hear from the box while it is set up";
        match await_event(&self.socket, PollFlags::empty(), seconds) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(late::told(self.pid, seconds));
            }
            result => result.step(STEP)?,
        }
        let mut listeners = None;
        loop {
            let (message, descriptors) = self.hear().step(STEP)?;
            match message.split_first() {
                Some((said, _)) if *said == Said::Ready as u8 => {
                    listeners = Some(as_listeners(descriptors)?);
                }
                Some((_, text)) => return Err(StepError::told(&String::from_utf8_lossy(text))),
                None => break,
            }
        }
        let died = || StepError::told("set up the box: its first process died");
        Ok(Launched {
            pid: self.pid.as_raw_nonzero().get().unsigned_abs(),
            listeners: listeners.ok_or_else(died)?,
            pidfd: self.pidfd.take().ok_or_else(died)?,
        })
    }

    fn hear(&self) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        let receive = || wire::receive(&self.socket, MESSAGE_BYTES_MAX, RecvFlags::DONTWAIT);
        match receive() {
            // It ended without reading all we said; what it said itself comes after that.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => receive(),
            result => result,
        }
    }
}

impl Drop for Newborn {
    fn drop(&mut self) {
        if let Some(pidfd) = self.pidfd.take() {
            // Neither can fail for a child that was not reaped yet.
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
        }
    }
}

/// Waits for something to read, for as long as a set-up may take.
pub(crate) fn await_readable(socket: &OwnedFd) -> io::Result<()> {
    await_event(socket, PollFlags::IN, SET_UP_SECONDS)
}

/// Waits for one of the flags or for the other end to be closed, which poll(2) always tells.
fn await_event(socket: &OwnedFd, flags: PollFlags, seconds: i64) -> io::Result<()> {
    let deadline = Timespec {
        tv_sec: seconds,
        tv_nsec: 0,
    };
    loop {
        match poll(&mut [PollFd::new(socket, flags)], Some(&deadline)) {
            Ok(0) => return Err(Errno::TIMEDOUT.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Sockets as they travel: DNS over UDP and TCP, the proxy, then one or two transparent ones.
pub(crate) fn as_listeners(descriptors: Vec<OwnedFd>) -> Result<Listeners, StepError> {
    let mut descriptors = descriptors.into_iter();
    let mut next = || {
        descriptors
            .next()
            .ok_or(Errno::BADMSG)
            .step("take the box's sockets")
    };
    let (dns_udp, dns_tcp, proxy, first) = (next()?, next()?, next()?, next()?);
    let transparent = match descriptors.next() {
        Some(https) => Transparent::Two { http: first, https },
        None => Transparent::AllPorts(first),
    };
    Ok(Listeners {
        dns_udp,
        dns_tcp,
        proxy,
        transparent,
    })
}

/// The reverse of [`as_listeners`].
pub(crate) fn as_descriptors(listeners: &Listeners) -> Vec<BorrowedFd<'_>> {
    let Listeners {
        dns_udp,
        dns_tcp,
        proxy,
        transparent,
    } = listeners;
    let mut descriptors = vec![dns_udp.as_fd(), dns_tcp.as_fd(), proxy.as_fd()];
    match transparent {
        Transparent::AllPorts(listener) => descriptors.push(listener.as_fd()),
        Transparent::Two { http, https } => descriptors.extend([http.as_fd(), https.as_fd()]),
    }
    descriptors
}

/// Says something from inside; that the spawner does not listen any more changes nothing there.
pub(super) fn say(parent: &OwnedFd, said: Said, text: &str, beside: &[BorrowedFd<'_>]) {
    let mut message = vec![said as u8];
    message.extend(&text.as_bytes()[..text.floor_char_boundary(MESSAGE_BYTES_MAX - 1)]);
    let _ = wire::send(parent, &message, beside);
}

/// Waits inside for [`Newborn::go`]; the overlay comes beside it.
pub(super) fn await_go(parent: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let (message, descriptors) = wire::receive(parent, MESSAGE_BYTES_MAX, RecvFlags::empty())?;
    if message == b"go" {
        Ok(descriptors.into_iter().next())
    } else {
        Err(Errno::PIPE.into())
    }
}

/// Who a process is: its pid, when it started, and in which run of the kernel. One line of JSON.
pub(crate) fn describe(pid: u32, boot: &str) -> io::Result<String> {
    let started = started_ticks(pid)?;
    Ok(format!(
        "{{\"pid\":{pid},\"started_ticks\":{started},\"boot\":\"{boot}\"}}\n"
    ))
}

/// When a process started, in clock ticks since the machine did (`proc_pid_stat(5)`, field 22).
pub(crate) fn started_ticks(pid: u32) -> io::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is a name in parentheses that may itself hold any character.
    let after_name = stat.rsplit_once(')').map(|(_, rest)| rest);
    let ticks = after_name.and_then(|rest| rest.split_whitespace().nth(19));
    ticks
        .and_then(|ticks| ticks.parse().ok())
        .ok_or_else(|| Errno::BADMSG.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::process::{PidfdFlags, pidfd_open};

    #[test]
    fn a_start_that_hangs_ends_at_its_deadline_and_says_what_it_hangs_in() {
        #[expect(
            clippy::disallowed_methods,
            clippy::zombie_processes,
            reason = "a first process that never says anything; whoever it is handed to collects it"
        )]
        let hung = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&hung);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        pidfd_send_signal(&pidfd, Signal::STOP).unwrap();
        waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::STOPPED).unwrap();
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let newborn = Newborn::new(pid, pidfd, ours);
        let error = newborn.arrive_within(1).unwrap_err().to_string();
        drop(theirs);
        let expected = "could not start the box within 1 s: it was stopped; something sent it \
                        SIGSTOP or traces it (load ";
        assert!(error.starts_with(expected), "{error}");
        let gone = rustix::process::test_kill_process(pid);
        assert_eq!(gone, Err(Errno::SRCH), "nothing is left of it");
    }
}
