//! The half of a start that runs in the new namespaces, as their first process.

use super::environment::Environment;
use super::newborn::{Said, as_descriptors, await_go, say};
use super::places::Places;
use super::trees::Trees;
use super::{Tools, nested, privileges, proc, root};
use crate::cgroup::Place;
use crate::network::{self, Listeners, Namespace};
use crate::spawner::wire::Start;
use crate::step::{Step as _, StepError};
use crate::sys;
use box_runtime::Nesting;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::convert::Infallible;

/// Where box-guest expects the socket it accepts on.
pub(crate) const GUEST_SOCKET: i32 = 3;
const GUEST_NAME: &std::ffi::CStr = c"box-guest";

/// What the first process of a box needs; all of it was made by the spawner.
pub(super) struct Inside<'a> {
    pub(super) start: &'a Start,
    pub(super) trees: &'a Trees,
    pub(super) environment: Environment,
    pub(super) tools: &'a Tools,
    pub(super) parent: &'a OwnedFd,
}

impl Inside<'_> {
    /// Becomes box-guest, or says why not and ends.
    pub(super) fn run(&self, place: &mut Place) -> ! {
        // The spawner maps our ids meanwhile; the network needs none.
        let Err(error) = place
            .enter()
            .and_then(|()| network::open(Namespace::Fresh))
            .and_then(|listeners| self.go_on(place, &listeners));
        say(self.parent, Said::Failed, &error.to_string(), &[]);
        sys::exit_now(1)
    }

    /// From where a box has its cgroup and its network to where it is box-guest.
    pub(super) fn go_on(
        &self,
        place: &Place,
        listeners: &Listeners,
    ) -> Result<Infallible, StepError> {
        self.set_up(place)?;
        self.become_guest(place, listeners)
    }

    fn set_up(&self, place: &Place) -> Result<(), StepError> {
        let overlay = await_go(self.parent).step("hear from the spawner")?;
        let ids = self.tools.privileges;
        privileges::become_root(ids).step("become root of the box")?;
        rustix::system::sethostname(self.start.host_name.as_bytes()).step("set the host name")?;
        if !matches!(place, Place::Nowhere) {
            sys::new_cgroup_namespace().step("make the box's cgroup namespace")?;
        }
        let image = overlay.as_ref().unwrap_or(&self.trees.image);
        let parts = root::Parts::open(&self.trees.scratch, self.start.nesting)?;
        if matches!(place, Place::Nowhere) {
            proc::limit_shared_memory(&parts.proc, self.start.limits.memory_bytes);
        }
        if self.start.nesting == Nesting::Allowed {
            nested::limit_namespaces(&parts.proc).step("limit the namespaces of the box")?;
        }
        root::change_to(image)?;
        Places {
            start: self.start,
            trees: self.trees,
            parts: &parts,
            ids,
        }
        .fill()
    }

    fn limit(&self, place: &Place) -> Result<(), StepError> {
        let limits = &self.start.limits;
        let instead = match place {
            Place::Nowhere => privileges::limit_without_cgroup(limits),
            Place::Into(_) | Place::Tasks(_) => Ok(()),
        };
        instead
            .and_then(|()| privileges::limit(limits))
            .step("set the box's resource limits")
    }

    /// Gives up every privilege and runs box-guest. Nothing is told after `Ready` unless exec fails.
    fn become_guest(&self, place: &Place, listeners: &Listeners) -> Result<Infallible, StepError> {
        self.limit(place)?;
        self.descriptors().step("arrange the guest's descriptors")?;
        let ids = self.tools.privileges;
        let (profile, nesting) = (self.start.profile, self.start.nesting);
        privileges::give_up(profile, nesting, ids).step("give up privileges")?;
        rustix::process::umask(Mode::from_raw_mode(0o022));
        // A stop that comes before box-guest is ready waits for it: for the first process of a pid
        // namespace the kernel drops a signal that is neither handled nor blocked.
        sys::set_blocked(&[libc::SIGTERM]).step("block SIGTERM until box-guest reads it")?;
        rustix::thread::set_no_new_privs(true).step("set no_new_privs")?;
        let filter = self.tools.filters.of(profile, nesting);
        sys::seccomp(filter).step("load the seccomp filter")?;
        say(self.parent, Said::Ready, "", &as_descriptors(listeners));
        let guest = self.start.given.guest.as_fd();
        let error = sys::exec(guest, &[GUEST_NAME], self.environment.variables());
        Err(StepError::new("run box-guest", error))
    }

    /// The guest gets the box's own /dev/null three times and its socket; all else closes at exec.
    fn descriptors(&self) -> std::io::Result<()> {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let socket = self.start.given.guest_socket.as_fd();
        let placed = [
            (null.as_fd(), 0),
            (null.as_fd(), 1),
            (null.as_fd(), 2),
            (socket, GUEST_SOCKET),
        ];
        for (descriptor, number) in placed {
            // SAFETY: the spawner keeps these four numbers free of owners (`spawner::process`).
            unsafe { sys::place_at(descriptor, number) }?;
        }
        sys::close_on_exec_from(GUEST_SOCKET.cast_unsigned() + 1)
    }
}
