//! Makes a box: from checked request to a running box-guest. Read as a recipe.
//!
//! The spawner's half is here and in `trees`, `overlay`, `newborn`; the half that runs in the new
//! namespaces is `inside` and what it names, in order: `crate::network`, `root`, `places`, `proc`,
//! `nested`, `privileges`.

mod environment;
mod inside;
mod late;
mod nested;
mod newborn;
mod overlay;
mod places;
mod privileges;
mod proc;
mod root;
mod spare;
mod trees;
mod trust;
mod within;

pub(crate) use environment::BYTES_MAX as ENVIRONMENT_BYTES_MAX;
pub(crate) use newborn::{as_descriptors, as_listeners, await_readable, started_ticks};
pub(crate) use overlay::overlay_by_helper;
pub(crate) use spare::{Spare, begin};

use crate::cgroup::{Cgroups, Place};
use crate::network::Listeners;
use crate::rootless::Privileges;
use crate::seccomp::Filters;
use crate::spawner::wire::Start;
use crate::step::{Step as _, StepError};
use crate::sys::{self, Cloned};
use environment::Environment;
use inside::Inside;
use newborn::Newborn;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use trees::Trees;

/// Ids of a box: 0–65535 inside, the same above the box's offset outside.
pub(crate) const IDS: u32 = 65_536;
/// Who a `locked` box's programs are.
pub(crate) const AGENT_ID: u32 = 1020;

/// Every namespace but the cgroup one, which is made once the box is where it belongs.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWTIME;

/// What the spawner keeps ready for every start.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) cgroups: Cgroups,
    pub(crate) privileges: Privileges,
    pub(crate) filters: Filters,
    /// Part of a process's identity across restarts of the machine.
    pub(crate) boot_id: String,
}

/// A box that runs.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) pid: u32,
    pub(crate) pidfd: OwnedFd,
    pub(crate) listeners: Listeners,
}

/// Starts a box. When it fails, nothing of it is left.
pub(crate) fn launch(start: &Start, tools: &Tools) -> Result<Launched, StepError> {
    let place = tools.cgroups.make(&start.id, &start.limits);
    let launched = place.and_then(|mut place| launch_at(start, tools, &mut place));
    if launched.is_err() {
        // The first failure is the one worth telling.
        drop(tools.cgroups.remove(&start.id));
    }
    launched
}

fn launch_at(start: &Start, tools: &Tools, place: &mut Place) -> Result<Launched, StepError> {
    let environment = Environment::read(start)?;
    let trees = Trees::open(start, tools.privileges)?;
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .step("make the socket the box is set up over")?;
    // SAFETY: the spawner is single-threaded from its first instruction to its last.
    let cloned = unsafe { sys::clone3(NAMESPACES, place.to_clone_into()) };
    match cloned.step("make the box's namespaces")? {
        Cloned::Child => {
            drop(ours);
            Inside {
                start,
                trees: &trees,
                environment,
                tools,
                parent: &theirs,
            }
            .run(place)
        }
        Cloned::Parent { pid, pidfd } => {
            drop(theirs);
            let newborn = Newborn::new(pid, pidfd, ours);
            newborn.be_recorded_in(&start.given.record, &tools.boot_id)?;
            finish(newborn, start, (&trees, tools))
        }
    }
}

/// The spawner's part from where the box's first process is there. It is recorded by now, and waits.
fn finish(
    newborn: Newborn,
    start: &Start,
    (trees, tools): (&Trees, &Tools),
) -> Result<Launched, StepError> {
    let maps = tools.privileges.maps(start.id_offset, start.profile);
    let ids = newborn.map_ids(&maps)?;
    let overlay = trees.finish(start, &ids)?;
    if matches!(tools.cgroups, Cgroups::BestEffort) {
        newborn.be_killed_first_when_memory_is_short()?;
    }
    newborn.go(overlay.as_ref())?;
    newborn.arrive()
}
