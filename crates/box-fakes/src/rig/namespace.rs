//! Two network namespaces and the cable between them.

use anyhow::{Context as _, Result, bail};
use rustix::thread::{LinkNameSpaceType, Pid, UnshareFlags};
use std::fs::File;
use std::io::Write as _;
use std::marker::PhantomData;
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};

/// The cable's addresses are never dialled by a program under test (documentation ranges).
const HOST_LINK: &str = "\
link set lo up
addr add 192.0.2.2/30 dev host0
addr add 2001:db8:ffff::2/126 dev host0 nodad
link set host0 up
route add default via 192.0.2.1
route add ::/0 via 2001:db8:ffff::1
";
/// `local default` makes every address the internet's own (ip-route(8), type `local`).
const INTERNET_LINK: &str = "\
link set lo up
addr add 192.0.2.1/30 dev inet0
addr add 2001:db8:ffff::1/126 dev inet0 nodad
addr add 45.33.32.53/32 dev lo
link set inet0 up
route add local default dev lo table main
route add local ::/0 dev lo table main
";

/// Where a thread came from; dropping it goes back there.
#[derive(Debug)]
pub(crate) struct Home {
    namespace: File,
    /// Namespaces belong to threads, so this must stay on its own.
    _stays: PhantomData<*const ()>,
}

impl Drop for Home {
    fn drop(&mut self) {
        let kind = Some(LinkNameSpaceType::Network);
        let _back = rustix::thread::move_into_link_name_space(self.namespace.as_fd(), kind);
    }
}

/// Moves the calling thread into a new, empty network namespace.
pub(crate) fn enter_host_side() -> Result<Home> {
    let namespace =
        File::open("/proc/thread-self/ns/net").context("could not open this network namespace")?;
    unshare(UnshareFlags::NEWNET)?;
    Ok(Home {
        namespace,
        _stays: PhantomData,
    })
}

/// Moves the calling thread into a new namespace and joins it to that of `host_thread`.
pub(crate) fn enter_internet_side(host_thread: Pid) -> Result<()> {
    unshare(UnshareFlags::NEWNET)?;
    let cable = format!(
        "link add inet0 type veth peer name host0 netns {}\n",
        host_thread.as_raw_nonzero()
    );
    ip(&(cable + INTERNET_LINK))
}

/// Sets up the host's end of the cable; called on the host side.
pub(crate) fn cable_host_side() -> Result<()> {
    ip(HOST_LINK)
}

pub(crate) fn this_thread() -> Pid {
    rustix::thread::gettid()
}

/// Gives the calling thread mounts of its own: what it mounts nobody else sees, and it goes
/// with the thread and the processes it starts.
///
/// # Errors
/// Without root.
pub fn private_mounts() -> Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    let flags =
        rustix::mount::MountPropagationFlags::PRIVATE | rustix::mount::MountPropagationFlags::REC;
    rustix::mount::mount_change("/", flags).context("could not make the mounts private")
}

fn unshare(flags: UnshareFlags) -> Result<()> {
    #[expect(
        deprecated,
        reason = "only CLONE_FILES is unsound, and nobody asks for it here"
    )]
    rustix::thread::unshare(flags).with_context(|| format!("could not unshare {flags:?}; root?"))
}

/// One `ip` process for the whole set-up.
fn ip(batch: &str) -> Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one home for processes in this crate"
    )]
    let mut ip = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("could not start `ip` (package iproute2)")?;
    if let Some(mut stdin) = ip.stdin.take() {
        stdin
            .write_all(batch.as_bytes())
            .context("could not write to `ip`")?;
    }
    let end = ip.wait_with_output().context("could not wait for `ip`")?;
    if !end.status.success() {
        bail!(
            "`ip` refused the set-up: {}",
            String::from_utf8_lossy(&end.stderr)
        );
    }
    Ok(())
}
