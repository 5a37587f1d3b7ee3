//! The hidden verb box-egress runs under. The host starts it; see `box_egress` for what it gets.

use super::Ended;
use crate::complaint::Complaint;
use crate::identity::{self, OWN_EXECUTABLE};
use box_egress::Options;
use box_server::Program;
use std::os::fd::AsFd as _;

pub(super) const VERB: &str = "egress";

/// Be the way out of every box; the host starts it
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The user, beside root, that may give it orders
    #[arg(long)]
    host_uid: u32,
}

/// How the host starts it.
pub(super) fn program(host_uid: u32) -> Program {
    let arguments = [VERB, "--host-uid", &host_uid.to_string()]
        .map(Into::into)
        .to_vec();
    Program {
        program: OWN_EXECUTABLE.into(),
        arguments,
    }
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
