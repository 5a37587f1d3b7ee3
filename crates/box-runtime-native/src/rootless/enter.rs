//! Moves an ordinary user's process into a user namespace of its own, with all it may have there.
//!
//! Boxes outlive their host, and only who stands in the namespace they were made from, or outside it
//! as its owner, may act on them. So a later host enters the namespace of the boxes that run, and
//! only where none does it makes a new one.

use super::forbidden::forbidden;
use super::ranges::Ranges;
use super::{EGRESS_ID, OWN_ID, Privileges};
use crate::launch::IDS;
use crate::record::Record;
use crate::sys;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, WaitOptions, getegid, geteuid, waitpid};
use rustix::thread::{
    CapabilitySets, LinkNameSpaceType, UnshareFlags, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, move_into_link_name_space, set_capabilities,
};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// How the helper that maps our ids ends.
const MAPPED: i32 = 0;
const NOTHING_MAPPED: i32 = 1;
const HALF_MAPPED: i32 = 2;

/// Why an ordinary user cannot have boxes here.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    #[error("could not {what}")]
    System {
        what: &'static str,
        source: io::Error,
    },
    #[error("this process has {0} threads; namespaces are entered with one")]
    Threads(usize),
    #[error("`newgidmap` mapped this user's groups and `newuidmap` failed to map its ids")]
    HalfMapped,
}

impl EnterError {
    /// The setting of the machine that is in the way, if one is, with its fix.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::System { .. } => forbidden().map(|found| format!("{}: {}", found.why, found.fix)),
            Self::Threads(_) => None,
            Self::HalfMapped => Some("`newuidmap` must be set-uid root".to_owned()),
        }
    }
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> EnterError {
    move |source| EnterError::System { what, source }
}

/// Gets this process what it needs to make boxes, and says what that is. Root has it already; who
/// entered before gets a mount namespace of its own. Called before the process has a second thread; `run` is the host's run
/// folder, where boxes that run are found.
///
/// # Errors
/// [`EnterError`]; the process is not to go on then.
pub fn enter(run: &Path) -> Result<Privileges, EnterError> {
    let current = Privileges::current();
    if let Ok(Privileges::Root) = current {
        return Ok(Privileges::Root);
    }
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if threads != 1 {
        return Err(EnterError::Threads(threads));
    }
    match namespace_of_boxes(run) {
        _ if current.is_ok() => {
            // What was lent to this program is not lent on.
            clear_ambient_capability_set()
                .map_err(|errno| failed("keep its rights to itself")(errno.into()))?;
        }
        Some(namespace) => {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::User))
                .map_err(|errno| failed("enter the user namespace of boxes")(errno.into()))?;
        }
        None => make_namespace()?,
    }
    sys::new_mount_namespace().map_err(failed("make a mount namespace"))?;
    Privileges::current().map_err(failed("use a user namespace of its own"))
}

/// Hands what this process may do in its namespace to the programs it starts (capabilities(7),
/// "ambient"): for the drill, whose host and tools shall share its namespaces.
///
/// # Errors
/// What the kernel says.
pub fn lend_to_children() -> io::Result<()> {
    let sets = capabilities(None)?;
    let lent = CapabilitySets {
        inheritable: sets.permitted,
        ..sets
    };
    set_capabilities(None, lent)?;
    for capability in sets.permitted.iter() {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// The namespace the boxes that run were made from.
fn namespace_of_boxes(run: &Path) -> Option<OwnedFd> {
    let boxes = std::fs::read_dir(run.join("boxes")).ok()?;
    boxes.filter_map(Result::ok).find_map(|entry| {
        let (pid, _pidfd) = Record::read(&entry.path())?.find()?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let own = rustix::fs::open(format!("/proc/{pid}/ns/user"), flags, Mode::empty()).ok()?;
        let parent = sys::parent_namespace(own.as_fd()).ok()?;
        // Somebody else's would not let us in, and a box's record is not to lead anywhere else.
        (sys::namespace_owner(parent.as_fd()).ok()? == geteuid().as_raw()).then_some(parent)
    })
}

fn make_namespace() -> Result<(), EnterError> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let helper = Ranges::of_user(uid).map(|ranges| Helper::start(ranges, uid, gid));
    let helper = helper
        .transpose()
        .map_err(failed("start a helper that maps ids"))?;
    // SAFETY: the flag touches no descriptor table.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }
        .map_err(|errno| failed("make a user namespace")(errno.into()))?;
    let mapped = helper.map_or(Ok(NOTHING_MAPPED), Helper::map);
    match mapped.map_err(failed("wait for the helper that maps ids"))? {
        MAPPED => Ok(()),
        HALF_MAPPED => Err(EnterError::HalfMapped),
        _ => map_own_id(uid, gid).map_err(failed("map its own id into its user namespace")),
    }
}

/// A namespace whose groups cannot be dropped is the only one an ordinary user may map by itself
/// (`user_namespaces(7)`, "setgroups").
fn map_own_id(uid: u32, gid: u32) -> io::Result<()> {
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("gid_map", format!("{gid} {gid} 1\n")),
        ("uid_map", format!("{uid} {uid} 1\n")),
    ] {
        std::fs::write(Path::new("/proc/self").join(file), text)?;
    }
    Ok(())
}

/// A child outside the new namespace, where newuidmap(1) has its rights.
struct Helper {
    pid: Pid,
    /// One byte lets it go on, its closing ends it.
    go: OwnedFd,
}

impl Helper {
    fn start(ranges: Ranges, uid: u32, gid: u32) -> io::Result<Self> {
        let (wait, go) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let parent = std::process::id();
        // SAFETY: `enter` has seen that there is one thread.
        match unsafe { sys::fork() }? {
            None => {
                drop(go);
                let told = matches!(rustix::io::read(&wait, &mut [0; 1]), Ok(1));
                sys::exit_now(if told {
                    map(parent, ranges, uid, gid)
                } else {
                    NOTHING_MAPPED
                })
            }
            Some(pid) => Ok(Self { pid, go }),
        }
    }

    /// Lets it work, and says how it ended.
    fn map(self) -> io::Result<i32> {
        rustix::io::write(&self.go, b"g")?;
        let ended = waitpid(Some(self.pid), WaitOptions::empty())?;
        let code = ended.and_then(|(_, status)| status.exit_status());
        Ok(code.unwrap_or(HALF_MAPPED))
    }
}

fn map(pid: u32, ranges: Ranges, uid: u32, gid: u32) -> i32 {
    if !helped("newgidmap", pid, ranges.gids, gid) {
        NOTHING_MAPPED
    } else if helped("newuidmap", pid, ranges.uids, uid) {
        MAPPED
    } else {
        HALF_MAPPED
    }
}

/// The subordinate ids are 0–65535, the user's own is the next.
#[expect(
    clippy::disallowed_methods,
    reason = "the setuid programs that alone may map ids for an ordinary user"
)]
fn helped(program: &str, pid: u32, first: u32, own: u32) -> bool {
    let numbers = [pid, 0, first, IDS, OWN_ID, own, 1].map(|number| number.to_string());
    let mut command = Command::new(program);
    command
        .args(numbers)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

// The last subordinate id is no box's.
const _: () = assert!(EGRESS_ID + 1 == IDS);
