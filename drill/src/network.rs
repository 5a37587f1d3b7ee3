//! Two network namespaces and the cable between them, so that nothing of a drill leaves the machine.
//!
//! The machine's side is where host, way out and boxes run; the internet's side answers at every
//! address there is. Both go when the drill ends.

use rustix::thread::UnshareFlags;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

/// The address of the machine in the drill's network; no box may reach it.
pub(crate) const HOST_V4: &str = "192.0.2.2";
/// Public-looking addresses the internet answers at, and where its name server listens.
pub(crate) const INTERNET_V4: &str = "45.33.32.156";
pub(crate) const INTERNET_V6: &str = "2606:4700::1111";
pub(crate) const RESOLVER_V4: &str = "45.33.32.53";

const MACHINE_SIDE: &str = "\
link set lo up
addr add 192.0.2.2/30 dev drill0
addr add 2001:db8:d111::2/126 dev drill0 nodad
link set drill0 up
route add default via 192.0.2.1
route add ::/0 via 2001:db8:d111::1
";

/// A `local` default route makes every address one of its own (ip-route(8)).
const INTERNET_SIDE: &str = "\
link set lo up
addr add 192.0.2.1/30 dev net0
addr add 2001:db8:d111::1/126 dev net0 nodad
addr add 45.33.32.156/32 dev lo
addr add 45.33.32.53/32 dev lo
addr add 2606:4700::1111/128 dev lo nodad
link set net0 up
route add local default dev lo table main
route add local ::/0 dev lo table main
";

/// Moves the calling thread, and whatever it starts, into a network of its own.
///
/// # Errors
/// Without root.
pub(crate) fn enter_machine_side() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)
}

/// Moves the calling thread into the internet's side and joins it to the machine's by a cable whose
/// other end goes to thread `machine`.
pub(crate) fn enter_internet_side(machine: rustix::thread::Pid) -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)?;
    let cable = format!(
        "link add net0 type veth peer name drill0 netns {}\n",
        machine.as_raw_nonzero()
    );
    ip(&(cable + INTERNET_SIDE))
}

/// Sets up the machine's end; once the internet's side is there.
pub(crate) fn cable_machine_side() -> io::Result<()> {
    ip(MACHINE_SIDE)
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    #[expect(
        deprecated,
        reason = "only CLONE_FILES is unsound, and nobody asks for it here"
    )]
    rustix::thread::unshare(flags).map_err(io::Error::from)
}

fn ip(batch: &str) -> io::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "`ip` sets up the drill's own network"
    )]
    let mut ip = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = ip.stdin.take() {
        stdin.write_all(batch.as_bytes())?;
    }
    let end = ip.wait_with_output()?;
    if end.status.success() {
        Ok(())
    } else {
        Err(io::Error::other(
            String::from_utf8_lossy(&end.stderr).trim().to_owned(),
        ))
    }
}
