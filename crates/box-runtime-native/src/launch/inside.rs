//! The half of a start that runs in the new namespaces, as their first process.

use super::environment::Environment;
use super::newborn::{Said, as_descriptors, await_go, say};
use super::places::Places;
use super::trees::Trees;
use super::{Tools, privileges, proc, root};
use crate::cgroup::Place;
use crate::network::{self, Listeners, Namespace};
use crate::spawner::wire::Start;
use crate::step::{Step as _, StepError};
use crate::sys;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::convert::Infallible;

/// Where box-guest expects the socket it accepts on.
pub(crate) const GUEST_SOCKET: i32 = 3;
const GUEST_NAME: &std::ffi::CStr = c"box-guest";

/// What the first process of a box needs; all of it was made before it was born.
pub(super) struct Inside<'a> {
    pub(super) start: &'a Start,
    pub(super) trees: &'a Trees,
    pub(super) environment: Environment,
    pub(super) tools: &'a Tools,
    pub(super) parent: OwnedFd,
}

impl Inside<'_> {
    /// Becomes box-guest, or says why not and ends.
    pub(super) fn run(&self, place: &mut Place) -> ! {
        let Err(error) = self
            .set_up(place)
            .and_then(|listeners| self.become_guest(place, &listeners));
        say(&self.parent, Said::Failed, &error.to_string(), &[]);
        sys::exit_now(1)
    }

    fn set_up(&self, place: &mut Place) -> Result<Listeners, StepError> {
        place.enter()?;
        // The spawner maps our ids meanwhile; the network needs none.
        let listeners = network::open(Namespace::Fresh)?;
        let overlay = await_go(&self.parent).step("hear from the spawner")?;
        let ids = self.tools.privileges;
        privileges::become_root(ids).step("become root of the box")?;
        rustix::system::sethostname(self.start.host_name.as_bytes()).step("set the host name")?;
        if !matches!(place, Place::Nowhere) {
            sys::new_cgroup_namespace().step("make the box's cgroup namespace")?;
        }
        let image = overlay.as_ref().unwrap_or(&self.trees.image);
        let parts = root::Parts::open(&self.trees.scratch)?;
        if matches!(place, Place::Nowhere) {
            proc::limit_shared_memory(&parts.proc, self.start.limits.memory_bytes);
        }
        root::change_to(image)?;
        Places {
            start: self.start,
            trees: self.trees,
            parts: &parts,
            has_ranges: ids.has_ranges(),
        }
        .fill()?;
        Ok(listeners)
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
        privileges::give_up(self.start.profile, ids).step("give up privileges")?;
        rustix::process::umask(Mode::from_raw_mode(0o022));
        // A stop that comes before box-guest is ready waits for it: for the first process of a pid
        // namespace the kernel drops a signal that is neither handled nor blocked.
        sys::set_blocked(&[libc::SIGTERM]).step("block SIGTERM until box-guest reads it")?;
        rustix::thread::set_no_new_privs(true).step("set no_new_privs")?;
        let filter = self.tools.filters.of(self.start.profile);
        sys::seccomp(filter).step("load the seccomp filter")?;
        say(&self.parent, Said::Ready, "", &as_descriptors(listeners));
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
