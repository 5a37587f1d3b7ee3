//! The hidden verb box-egress runs under. The host starts it; see `box_egress` for what it gets.

use super::Ended;
use crate::complaint::Complaint;
use crate::identity::{self, OWN_EXECUTABLE};
use box_egress::Options;
use box_runtime_native::Privileges;
use box_server::Program;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;

pub(super) const VERB: &str = "egress";

/// Be the way out of every box; the host starts it
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The user that may give it orders
    #[arg(long)]
    host_uid: u32,
}

/// How the host starts it: as somebody else than itself where it can.
pub(super) fn program(privileges: Privileges) -> Program {
    // The kernel tells box-egress who calls by the numbers of the namespace both are in.
    let host_uid = rustix::process::geteuid().as_raw().to_string();
    let user = match privileges {
        Privileges::Root => Some(box_egress::UID),
        Privileges::Ranges | Privileges::SingleUid { .. } => privileges.egress_id(),
    };
    Program {
        program: OWN_EXECUTABLE.into(),
        arguments: [VERB, "--host-uid", &host_uid].map(Into::into).to_vec(),
        user: user.filter(|_| anybody_may_run(OWN_EXECUTABLE)),
    }
}

/// Root needs no leave to run a program, and whom it runs it as then does not either.
fn anybody_may_run(program: &str) -> bool {
    const OTHERS_EXECUTE: u32 = 0o001;
    rustix::process::geteuid().is_root()
        || std::fs::metadata(program).is_ok_and(|found| found.mode() & OTHERS_EXECUTE != 0)
}

pub(super) fn run(args: &Args) -> Ended {
    let could_not = || Complaint::engine("egress", "box-egress could not go on");
    let control = std::io::stdin().as_fd().try_clone_to_owned();
    let control = control.map_err(|error| could_not().caused_by(error))?;
    let options = Options {
        control,
        host_uid: args.host_uid,
        build: identity::build(),
    };
    box_egress::run(options).map_err(|error| could_not().caused_by(error))?;
    Ok(0)
}
