//! The spawner's own half: takes requests one by one, reaps boxes, ends with the host.

use super::reopen;
use super::wire::{self, Answer, MESSAGE_BYTES, Request};
use crate::cgroup::Cgroups;
use crate::launch::{self, Tools, as_descriptors};
use crate::network::Listeners;
use crate::step::{Step as _, StepError};
use crate::{seccomp, sys};
use box_api::BoxId;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Resource, Rlimit, WaitId, WaitIdOptions, getrlimit, setrlimit, waitid};
use std::collections::HashMap;
use std::io;
use std::mem::ManuallyDrop;

/// Token of the host's socket; boxes are counted up from the next.
const HOST: u64 = 0;
/// Descriptors 0 to 3 belong to nobody in this process, so that a box's first process can put there
/// what box-guest expects.
const FREE_NUMBERS: i32 = 4;
/// Exit code after a panic, as Rust programs have it.
const PANICKED: i32 = 101;

/// Never returns: this is what the forked process does.
pub(super) fn run(socket: &OwnedFd, cgroups: Cgroups) -> ! {
    let served = settle(socket).and_then(|socket| {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let boot_id = boot_id.trim_end().to_owned();
        let tools = Tools {
            cgroups,
            filter: seccomp::filter(),
            boot_id,
        };
        Process::new(socket, tools)?.serve()
    });
    sys::exit_now(i32::from(served.is_err()))
}

/// Leaves everything of the host behind but the socket.
fn settle(socket: &OwnedFd) -> io::Result<OwnedFd> {
    // A panic must not unwind into what the host's half of the program would do.
    std::panic::set_hook(Box::new(|_| sys::exit_now(PANICKED)));
    // Signals of the host's terminal are not for us; the host's end is what ends us.
    rustix::process::setsid()?;
    rustix::process::chdir("/")?;
    // Modes are given in full wherever something is made.
    rustix::process::umask(Mode::empty());
    sys::reset_signals()?;
    rustix::thread::set_name(c"box-spawner")?;
    let socket = rustix::io::fcntl_dupfd_cloexec(socket, FREE_NUMBERS)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    // Never dropped: its number is one of the four, or closed with the rest.
    let null = ManuallyDrop::new(null);
    // SAFETY: what else is open belongs to the host's half of the program, which this process never
    // returns to; `null` is used below only, after its copies are placed.
    unsafe {
        for number in 0..FREE_NUMBERS {
            sys::place_at(null.as_fd(), number)?;
        }
        sys::close_from_but(FREE_NUMBERS.cast_unsigned(), socket.as_fd())?;
    }
    // Each box takes six descriptors here.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    )?;
    Ok(socket)
}

struct Process {
    socket: OwnedFd,
    events: OwnedFd,
    tools: Tools,
    boxes: HashMap<u64, Kept>,
    last_token: u64,
}

/// A box this spawner started. Its sockets are kept so that a new box-egress takes over without a
/// connection lost, and so that no program of the box takes their place meanwhile.
struct Kept {
    id: BoxId,
    pidfd: OwnedFd,
    listeners: Listeners,
}

impl Process {
    fn new(socket: OwnedFd, tools: Tools) -> io::Result<Self> {
        let events = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&events, &socket, EventData::new_u64(HOST), EventFlags::IN)?;
        Ok(Self {
            socket,
            events,
            tools,
            boxes: HashMap::new(),
            last_token: HOST,
        })
    }

    /// Until the host closes its end.
    fn serve(mut self) -> io::Result<()> {
        loop {
            let mut ready = [Event {
                flags: EventFlags::empty(),
                data: EventData::new_u64(0),
            }; 16];
            let count = match epoll::wait(&self.events, &mut ready, None) {
                Err(Errno::INTR) => continue,
                result => result?,
            };
            for event in &ready[..count] {
                match event.data.u64() {
                    HOST => match self.answer_one() {
                        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                        result => result?,
                    },
                    token => self.bury(token),
                }
            }
        }
    }

    /// # Errors
    /// `BrokenPipe` when the host is gone.
    fn answer_one(&mut self) -> io::Result<()> {
        let (bytes, descriptors) = wire::receive(&self.socket, MESSAGE_BYTES, RecvFlags::empty())?;
        if bytes.is_empty() {
            return Err(Errno::PIPE.into());
        }
        let (serial, request) = Request::decode(&bytes, descriptors);
        let result = request
            .step("read the request")
            .and_then(|request| self.act(request));
        let (answer, kept) = match result {
            Ok((answer, token)) => (answer, token.and_then(|token| self.boxes.get(&token))),
            Err(error) => (
                Answer::Failed {
                    text: error.to_string(),
                },
                None,
            ),
        };
        let mut descriptors: Vec<BorrowedFd<'_>> = Vec::new();
        if let Some(kept) = kept {
            descriptors.push(kept.pidfd.as_fd());
            descriptors.extend(as_descriptors(&kept.listeners));
        }
        wire::send(&self.socket, &answer.encode(serial)?, &descriptors)?;
        Ok(())
    }

    /// The answer, and the box whose sockets go with it.
    fn act(&mut self, request: Request) -> Result<(Answer, Option<u64>), StepError> {
        match request {
            Request::Start(start) => {
                self.bury_dead(&start.id)?;
                let launched = launch::launch(&start, &self.tools)?;
                let kept = Kept {
                    id: start.id,
                    pidfd: launched.pidfd,
                    listeners: launched.listeners,
                };
                let token = self.keep(kept)?;
                Ok((Answer::Started { pid: launched.pid }, Some(token)))
            }
            Request::Reopen { id, pidfd } => {
                let known = self.boxes.iter().find(|(_, kept)| kept.id == id);
                let token = if let Some((token, _)) = known {
                    *token
                } else {
                    let listeners = reopen::in_box(&pidfd)?;
                    self.keep(Kept {
                        id,
                        pidfd,
                        listeners,
                    })?
                };
                Ok((Answer::Reopened, Some(token)))
            }
            Request::Forget { id } => {
                self.bury_dead(&id)?;
                self.tools.cgroups.remove(&id)?;
                Ok((Answer::Forgotten, None))
            }
        }
    }

    fn keep(&mut self, kept: Kept) -> Result<u64, StepError> {
        self.last_token += 1;
        let token = self.last_token;
        epoll::add(
            &self.events,
            &kept.pidfd,
            EventData::new_u64(token),
            EventFlags::IN,
        )
        .step("watch the box's first process")?;
        self.boxes.insert(token, kept);
        Ok(token)
    }

    /// The death of a box may not have been noticed yet when its next start is asked for.
    fn bury_dead(&mut self, id: &BoxId) -> Result<(), StepError> {
        let known = self.boxes.iter().find(|(_, kept)| kept.id == *id);
        let Some((token, kept)) = known else {
            return Ok(());
        };
        let token = *token;
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut polled = [PollFd::new(&kept.pidfd, PollFlags::IN)];
        if poll(&mut polled, Some(&now)) == Ok(0) {
            return Err(StepError::new("do this while the box runs", Errno::BUSY));
        }
        self.bury(token);
        Ok(())
    }

    /// A box died: reaps it, if it is ours to reap, and lets go of what was kept for it.
    fn bury(&mut self, token: u64) {
        if let Some(kept) = self.boxes.remove(&token) {
            // The host holds the same open file, so closing ours would not end the watch.
            let _ = epoll::delete(&self.events, &kept.pidfd);
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            // A box that an earlier spawner started is not our child: ECHILD.
            let _ = waitid(WaitId::PidFd(kept.pidfd.as_fd()), options);
            // What cannot be removed now is removed when the host says `Forget`.
            drop(self.tools.cgroups.remove(&kept.id));
        }
    }
}
