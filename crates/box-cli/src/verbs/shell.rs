//! `box shell`: a login shell in a box.

use super::{Ended, exec};
use crate::pump::Feed;
use crate::terminal;
use box_api::BoxName;
use box_api::control::Exec;
use std::io::IsTerminal as _;

/// The box's bash if it has one, else its sh. Constant text: nothing typed is part of it.
const LOGIN_SHELL: &str =
    "if command -v bash >/dev/null 2>&1; then exec bash -l; else exec sh -l; fi";

/// Open a shell in a box
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  box shell demo\n\n\
    Exit codes: the shell's own; 125 it was us.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
}

pub(super) fn run(args: Args) -> Ended {
    let at_a_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let exec = Exec {
        name: args.name,
        command: ["/bin/sh", "-c", LOGIN_SHELL].map(str::to_owned).to_vec(),
        cwd: None,
        env: if at_a_terminal {
            exec::terminal_env()
        } else {
            Vec::new()
        },
        terminal: at_a_terminal.then(terminal::size),
    };
    exec::carry_out(exec, Feed::Stdin)
}
