//! Opens the sockets of a box that runs already, by a helper that enters its namespaces.

use super::wire;
use crate::launch::{as_descriptors, as_listeners, await_readable};
use crate::network::{self, Listeners, Namespace};
use crate::step::{Step as _, StepError};
use crate::sys::{self, Cloned};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

const STEP: &str = "open the box's sockets anew";
const MESSAGE_BYTES_MAX: usize = 1 << 10;

/// The sockets, made inside the network namespace of the process behind `pidfd`. Works as root and
/// as the owner of the box's user namespace (setns(2)).
pub(super) fn in_box(pidfd: &OwnedFd) -> Result<Listeners, StepError> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).step(STEP)?;
    // SAFETY: the spawner is single-threaded from its first instruction to its last.
    match unsafe { sys::clone3(0, None) }.step(STEP)? {
        Cloned::Child => {
            let text = match open(pidfd) {
                Ok(listeners) => {
                    let _ = wire::send(&theirs, b"o", &as_descriptors(&listeners));
                    sys::exit_now(0)
                }
                Err(error) => error.to_string(),
            };
            let _ = wire::send(&theirs, text.as_bytes(), &[]);
            sys::exit_now(1)
        }
        Cloned::Parent { pid, .. } => {
            drop(theirs);
            let helper = Helper(pid);
            await_readable(&ours).step(STEP)?;
            let (text, descriptors) =
                wire::receive(&ours, MESSAGE_BYTES_MAX, RecvFlags::DONTWAIT).step(STEP)?;
            drop(helper);
            if text == b"o" {
                as_listeners(descriptors)
            } else {
                Err(StepError::told(&String::from_utf8_lossy(&text)))
            }
        }
    }
}

fn open(pidfd: &OwnedFd) -> Result<Listeners, StepError> {
    let spaces = ThreadNameSpaceType::USER | ThreadNameSpaceType::NETWORK;
    move_into_thread_name_spaces(pidfd.as_fd(), spaces).step("enter the box's network")?;
    network::open(Namespace::SetUp)
}

/// Killed if it still runs, and reaped.
struct Helper(Pid);

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}
