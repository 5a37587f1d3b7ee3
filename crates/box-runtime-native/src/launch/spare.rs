//! A box begun ahead of its time: its namespaces, its cgroup and its network are there, and nothing
//! that says whose it will be. Its first process waits to be told; when the spawner ends it ends.
//!
//! Taken once, it goes the way of any other box from there on: ids, mounts, names and files, limits,
//! rights, filter, box-guest. What it holds until then is its end of one socket and its listeners.

use super::environment::Environment;
use super::inside::Inside;
use super::newborn::{Newborn, Said, say};
use super::trees::Trees;
use super::{Launched, NAMESPACES, Tools, finish};
use crate::cgroup::Place;
use crate::network::{self, Namespace};
use crate::spawner::FREE_NUMBERS;
use crate::spawner::wire::{self, MESSAGE_BYTES, Request, Start};
use crate::step::{Step as _, StepError};
use crate::sys::{self, Cloned};
use box_api::BoxId;
use box_api::control::Limits;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use std::convert::Infallible;

/// What goes before the mounts of a box that is taken.
const TREES: &[u8] = b"trees";
const TAKE: &str = "take a box that was begun ahead";

/// A box that nobody has taken yet. Dropped, its first process is killed and reaped.
#[derive(Debug)]
pub(crate) struct Spare {
    newborn: Newborn,
    limits: Limits,
}

/// Begins a box. Returns at once: what it sets up by itself it does meanwhile.
pub(crate) fn begin(id: &BoxId, tools: &Tools) -> Result<Spare, StepError> {
    let limits = Limits::default();
    let begun = tools
        .cgroups
        .make(id, &limits)
        .and_then(|mut place| born(&mut place, tools));
    match begun {
        Ok(newborn) => Ok(Spare { newborn, limits }),
        Err(error) => {
            // The first failure is the one worth telling.
            drop(tools.cgroups.remove(id));
            Err(error)
        }
    }
}

fn born(place: &mut Place, tools: &Tools) -> Result<Newborn, StepError> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .step("make the socket the box is set up over")?;
    // SAFETY: the spawner is single-threaded from its first instruction to its last.
    let cloned = unsafe { sys::clone3(NAMESPACES, place.to_clone_into()) };
    match cloned.step("make the box's namespaces")? {
        Cloned::Child => wait(place, &theirs, tools),
        Cloned::Parent { pid, pidfd } => Ok(Newborn::new(pid, pidfd, ours)),
    }
}

impl Spare {
    /// Makes it the box that was asked for; `None` when its process died before, so that nothing of
    /// the box was begun. When it fails, the process is dead.
    pub(crate) fn take(self, start: &Start, tools: &Tools) -> Result<Option<Launched>, StepError> {
        if !self.newborn.waits() {
            return Ok(None);
        }
        let trees = Trees::open(start, tools.privileges)?;
        let (newborn, order) = (self.newborn, start.encode(0).step(TAKE)?);
        let told = newborn
            .tell(&order, &start.descriptors())
            .and_then(|()| newborn.tell(TREES, &trees.descriptors()));
        match told {
            Err(Errno::PIPE | Errno::CONNRESET) => return Ok(None),
            told => told.step(TAKE)?,
        }
        // It waits for one more word before it does anything of the box's own.
        newborn.be_recorded_in(&start.given.record, &tools.boot_id)?;
        if start.limits != self.limits {
            tools.cgroups.set(&start.id, &start.limits)?;
        }
        finish(newborn, start, (&trees, tools)).map(Some)
    }
}

/// Becomes box-guest once it is told whose box this is, or ends. Nothing here is ever dropped: it
/// goes with the process, or with its program.
fn wait(place: &mut Place, parent: &OwnedFd, tools: &Tools) -> ! {
    let Err(error) = be_told(place, parent, tools);
    say(parent, Said::Failed, &error.to_string(), &[]);
    sys::exit_now(1)
}

fn be_told(place: &mut Place, parent: &OwnedFd, tools: &Tools) -> Result<Infallible, StepError> {
    place.enter()?;
    // The spawner's own, and sockets of other boxes. With them closed the spawner's end is seen by
    // everybody who is to see it.
    // SAFETY: the process never returns from `wait`, so no owner of these is dropped, and none but
    // `parent` is used from here on.
    unsafe { sys::close_from_but(FREE_NUMBERS.cast_unsigned(), parent.as_fd()) }
        .step("close what is the spawner's")?;
    let listeners = network::open(Namespace::Fresh)?;
    let start = hear_start(parent)?;
    let (word, trees) = hear(parent)?;
    if word != TREES {
        return Err(StepError::new(TAKE, Errno::BADMSG));
    }
    Inside {
        start: &start,
        trees: &Trees::arrived(trees, &start, tools.privileges)?,
        environment: Environment::read(&start)?,
        tools,
        parent,
    }
    .go_on(place, &listeners)
}

fn hear_start(parent: &OwnedFd) -> Result<Box<Start>, StepError> {
    let (bytes, descriptors) = hear(parent)?;
    let (_, request) = Request::decode(&bytes, descriptors);
    match request.step(TAKE)? {
        Request::Start(start) => Ok(start),
        Request::Spare { .. }
        | Request::Reopen { .. }
        | Request::Forget { .. }
        | Request::Limit { .. }
        | Request::Put { .. }
        | Request::Last { .. } => Err(StepError::new(TAKE, Errno::BADMSG)),
    }
}

/// One datagram of the spawner's; with the spawner this process ends.
fn hear(parent: &OwnedFd) -> Result<(Vec<u8>, Vec<OwnedFd>), StepError> {
    let received = wire::receive(parent, MESSAGE_BYTES, RecvFlags::empty());
    let (bytes, descriptors) = received.step("wait to be taken")?;
    if bytes.is_empty() {
        sys::exit_now(0);
    }
    Ok((bytes, descriptors))
}
