//! `box exec`: runs one command in a box.

use super::Ended;
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output};
use crate::pump::{self, Feed};
use crate::terminal;
use box_api::BoxName;
use box_api::control::{Exec, Outcome, Request, Spawn};
use std::io::IsTerminal as _;

/// Run a command in a box
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box exec demo -- ls -l\n  \
    tar c . | box exec demo -- tar x\n  \
    box exec demo --env CI=1 --cwd /tmp -- make test\n  \
    box exec --detach --name server demo -- python3 -m http.server\n\n\
    Exit codes: the command's own; 126 it cannot be run, 127 it is not there, 128+n signal n ended \
    it,\n125 it was us.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// Where it runs; the workspace if not said
    #[arg(long, value_name = "PATH")]
    cwd: Option<String>,
    /// A variable for it; may be given again
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Give it a terminal even if ours is none
    #[arg(long, short)]
    tty: bool,
    /// Give it nothing to read, as inside a `while read` loop
    #[arg(long)]
    no_stdin: bool,
    #[command(flatten)]
    leave: Leave,
    /// Program and arguments; no shell reads them
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<String>,
}

/// A command that is left to itself.
#[derive(Debug, clap::Args)]
#[group(skip)]
struct Leave {
    /// Start it and leave it: it outlives this command and the host (`box ps`, `box logs`)
    #[arg(long, short, conflicts_with_all = ["tty", "no_stdin"])]
    detach: bool,
    /// What to call it then; its program's name if not said
    #[arg(long = "name", value_name = "PROCESS", requires = "detach")]
    process: Option<String>,
}

pub(super) fn run(args: Args) -> Ended {
    if args.leave.detach {
        return detach(args);
    }
    let at_a_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let feed = if args.no_stdin {
        Feed::Nothing
    } else {
        Feed::Stdin
    };
    let wants_terminal = args.tty || (at_a_terminal && !args.no_stdin);
    let mut env = args.env;
    if wants_terminal {
        env.splice(0..0, terminal_env());
    }
    let request = Exec {
        name: args.name,
        command: args.command,
        cwd: args.cwd,
        env,
        terminal: wants_terminal.then(terminal::size),
    };
    carry_out(request, feed)
}

/// Starts it; the value printed is what to call it from now on.
fn detach(args: Args) -> Ended {
    let mut output = Output::new(Format::Text);
    let name = args.name.clone();
    let request = Request::Spawn(Spawn {
        process: args.leave.process,
        exec: Exec {
            name: args.name,
            command: args.command,
            cwd: args.cwd,
            env: args.env,
            terminal: None,
        },
    });
    let outcome = host::reach(&mut output, OtherBuild::Bear)?.ask(&mut output, &request)?;
    let Outcome::Process(begun) = outcome else {
        return Err(unexpected(&outcome));
    };
    let process = begun.process;
    output.data(format!("{process}\n").as_bytes())?;
    output.note(&format!(
        "hint: `box logs -f {name} {process}` follows it, `box kill {name} {process}` ends it"
    ));
    Ok(0)
}

/// Asks for the command and carries its bytes.
pub(super) fn carry_out(exec: Exec, feed: Feed) -> Ended {
    let mut output = Output::new(Format::Text);
    let mut client = host::reach(&mut output, OtherBuild::Bear)?;
    client.request(&Request::Exec(exec))?;
    pump::carry(client, feed, output)
}

/// What a program needs to know of our terminal.
pub(super) fn terminal_env() -> Vec<(String, String)> {
    let known = ["TERM", "COLORTERM"].into_iter();
    known
        .filter_map(|name| {
            std::env::var(name)
                .ok()
                .map(|value| (name.to_owned(), value))
        })
        .collect()
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a variable is given as `NAME=VALUE`".to_owned()),
    }
}
