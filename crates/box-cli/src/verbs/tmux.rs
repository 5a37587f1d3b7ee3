//! `box tmux`: a terminal session in a box that goes on when nobody looks.

use super::{Ended, exec};
use crate::complaint::Complaint;
use crate::pump::Feed;
use crate::terminal;
use box_api::BoxName;
use box_api::control::Exec;
use std::io::IsTerminal as _;

/// The name is its argument, never part of it.
const CREATE_OR_ATTACH: &str = "command -v tmux >/dev/null 2>&1 || \
    { echo 'there is no tmux in this box; in one of profile `root`: apt-get install tmux' >&2; exit 127; }
exec tmux new-session -A -s \"$1\"";
const SESSION_BYTES_MAX: usize = 64;

/// Open a terminal session that outlives this terminal, or go back to it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box tmux demo\n  box tmux demo build\n\n\
    Leave it with Ctrl-B D; what runs in it goes on, and the same command leads back. It ends when\n\
    the box stops. The box needs tmux.\n\
    Exit codes: those of tmux; 127 the box has none; 125 it was us.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// Letters, digits, `-` and `_`
    #[arg(value_name = "SESSION", default_value = "main", value_parser = session)]
    session: String,
}

/// What tmux takes for a name as it is: `.` and `:` have a meaning there (tmux(1)).
fn session(text: &str) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if text.is_empty() || text.len() > SESSION_BYTES_MAX || !text.bytes().all(good) {
        return Err(format!(
            "a session is named by at most {SESSION_BYTES_MAX} letters, digits, `-` and `_`"
        ));
    }
    Ok(text.to_owned())
}

pub(super) fn run(args: Args) -> Ended {
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        return Err(
            Complaint::usage("no-terminal", "a session needs a terminal").hinted(format!(
                "without one, `box exec --detach {} -- …` starts what goes on",
                args.name
            )),
        );
    }
    let words = ["/bin/sh", "-c", CREATE_OR_ATTACH, "tmux", &args.session];
    let exec = Exec {
        name: args.name,
        command: words.map(str::to_owned).to_vec(),
        cwd: None,
        env: exec::terminal_env(),
        terminal: Some(terminal::size()),
    };
    exec::carry_out(exec, Feed::Stdin)
}

#[cfg(test)]
mod tests {
    use super::session;

    #[test]
    fn a_session_has_a_name_tmux_takes_as_it_is() {
        for good in ["main", "a-b_C9"] {
            assert_eq!(session(good).as_deref(), Ok(good));
        }
        for bad in ["", "a b", "a.b", "a:b", "$(x)", "ä", &"x".repeat(65)] {
            assert!(session(bad).is_err(), "{bad}");
        }
    }
}
