//! The spawner's own half: takes requests one by one, reaps boxes, ends with the host.

use super::wire::{self, Answer, MESSAGE_BYTES, Request, Start};
use super::{halt, reopen};
use crate::cgroup::Cgroups;
use crate::launch::{self, Launched, Spare, Tools, as_descriptors};
use crate::network::Listeners;
use crate::rootless::Privileges;
use crate::step::{Step as _, StepError};
use crate::{seccomp, sys};
use box_api::BoxId;
use box_runtime::Ended;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{
    Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitIdStatus, getrlimit, setrlimit, waitid,
};
use std::collections::HashMap;
use std::io;
use std::mem::ManuallyDrop;

/// Token of the host's socket; boxes are counted up from the next.
const HOST: u64 = 0;
/// Descriptors 0 to 3 belong to nobody in this process, so that a box's first process can put there
/// what box-guest expects.
pub(crate) const FREE_NUMBERS: i32 = 4;
/// Ends that are remembered until their boxes are forgotten or started again.
const ENDED_MAX: usize = 4096;
/// Exit code after a panic, as Rust programs have it.
const PANICKED: i32 = 101;

/// Never returns: this is what the forked process does.
pub(super) fn run(socket: &OwnedFd, cgroups: Cgroups, privileges: Privileges) -> ! {
    let served = settle(socket).and_then(|socket| {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let boot_id = boot_id.trim_end().to_owned();
        let tools = Tools {
            cgroups,
            privileges,
            filters: seccomp::Filters::new(privileges),
            boot_id,
        };
        let mut process = Process::new(socket, tools)?;
        let served = process.serve();
        process.let_go_of_spares();
        served
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
    // Kept from the first time on. Before Linux 6.4 it is read from /proc, which a box that is being
    // made does not see.
    let _ = rustix::param::page_size();
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
    /// Boxes begun ahead that nobody has taken.
    spares: HashMap<BoxId, Spare>,
    /// How boxes ended that nobody has asked to be forgotten yet.
    ended: HashMap<BoxId, Ended>,
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
            spares: HashMap::new(),
            ended: HashMap::new(),
            last_token: HOST,
        })
    }

    /// Until the host closes its end.
    fn serve(&mut self) -> io::Result<()> {
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
                self.ended.remove(&start.id);
                let launched = self.launch(&start)?;
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
            Request::Spare { id } => {
                let spare = launch::begin(&id, &self.tools)?;
                self.spares.insert(id, spare);
                Ok((Answer::Done, None))
            }
            Request::Forget { id } => {
                // Killed and reaped with it.
                drop(self.spares.remove(&id));
                self.bury_dead(&id)?;
                self.tools.cgroups.remove(&id)?;
                self.ended.remove(&id);
                Ok((Answer::Forgotten, None))
            }
            Request::Limit { id, limits } => {
                self.tools.cgroups.set(&id, &limits)?;
                Ok((Answer::Done, None))
            }
            Request::Put { id, motion, pidfd } => {
                if self.tools.cgroups.freezes() {
                    self.tools.cgroups.put(&id, motion)?;
                } else {
                    halt::put(&pidfd, motion)?;
                }
                Ok((Answer::Done, None))
            }
            Request::Last { id } => {
                // Its death may not have been noticed yet; one that lives has not ended.
                drop(self.bury_dead(&id));
                let ended = self.ended.get(&id).copied();
                Ok((Answer::Last { ended }, None))
            }
        }
    }

    /// With what was begun ahead under this id, if that lives.
    fn launch(&mut self, start: &Start) -> Result<Launched, StepError> {
        if let Some(spare) = self.spares.remove(&start.id) {
            match spare.take(start, &self.tools) {
                Ok(Some(launched)) => return Ok(launched),
                Ok(None) => {}
                Err(error) => {
                    // The first failure is the one worth telling.
                    drop(self.tools.cgroups.remove(&start.id));
                    return Err(error);
                }
            }
        }
        launch::launch(start, &self.tools)
    }

    /// Nobody can take them any more, and nobody else knows of their cgroups.
    fn let_go_of_spares(&mut self) {
        for (id, spare) in self.spares.drain() {
            drop(spare);
            drop(self.tools.cgroups.remove(&id));
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
            let status = waitid(WaitId::PidFd(kept.pidfd.as_fd()), options);
            self.remember(kept.id, status.ok().flatten().as_ref());
            // What cannot be removed now is removed when the host says `Forget`.
            drop(self.tools.cgroups.remove(&kept.id));
        }
    }

    /// How it ended, for whoever asks; read before its cgroup goes. There is no status where its
    /// first process was not ours to wait for.
    fn remember(&mut self, id: BoxId, status: Option<&WaitIdStatus>) {
        let Ok(usage) = self.tools.cgroups.usage(&id) else {
            return;
        };
        let ended = Ended {
            out_of_memory: usage.out_of_memory,
            out_of_processes: usage.out_of_processes,
            killed: status
                .is_none_or(|status| status.terminating_signal() == Some(Signal::KILL.as_raw())),
        };
        if self.ended.len() < ENDED_MAX {
            self.ended.insert(id, ended);
        }
    }
}
