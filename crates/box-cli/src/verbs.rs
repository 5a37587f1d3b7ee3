//! The one table of verbs: dispatch, help and did-you-mean all come from it (spec B46).

mod agent;
mod attach;
mod confirm;
mod credential;
mod drill;
mod egress;
mod exec;
mod image;
mod info;
mod list;
mod logs;
mod machine;
mod new;
mod rm;
mod run;
mod serve;
mod shell;
mod start;
mod status;
mod stop;
mod target;
mod up;
mod usage;

use crate::complaint::{Complaint, WE_FAILED};
use crate::identity;
use crate::output::{Format, Output};
use clap::Parser as _;
use std::process::ExitCode;

/// How a verb ends: an exit code, or a complaint with one.
type Ended = Result<u8, Complaint>;

/// Gives a coding agent a machine of its own.
#[derive(Debug, clap::Parser)]
#[command(
    name = "box",
    bin_name = "box",
    version = identity::VERSION,
    disable_help_subcommand = true,
    subcommand_value_name = "VERB",
    subcommand_help_heading = "Verbs",
    max_term_width = 100,
    after_help = "Begin with `box up`. `box <verb> --help` shows examples.\n\
        Exit codes: 0 done, 1 went wrong, 2 asked wrong, 3 refused, 125 engine."
)]
struct Line {
    #[command(subcommand)]
    verb: Verb,
}

/// Every verb there is, in the order of `box --help`.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    Up(up::Args),
    Run(run::Args),
    Attach(attach::Args),
    New(new::Args),
    List(list::Args),
    Info(info::Args),
    Exec(exec::Args),
    Shell(shell::Args),
    Start(start::Args),
    #[command(visible_alias = "down")]
    Stop(stop::Args),
    Rm(rm::Args),
    Logs(logs::Args),
    Image(image::Args),
    Credential(credential::Args),
    Agent(agent::Args),
    Drill(drill::Args),
    Serve(serve::Args),
    Status(status::Args),
    #[command(name = egress::VERB, hide = true)]
    Egress(egress::Args),
}

impl Verb {
    fn run(self) -> Ended {
        match self {
            Self::Up(args) => up::run(&args),
            Self::Run(args) => run::run(args),
            Self::Attach(args) => attach::run(args),
            Self::New(args) => new::run(args),
            Self::List(args) => list::run(&args),
            Self::Info(args) => info::run(args),
            Self::Exec(args) => exec::run(args),
            Self::Shell(args) => shell::run(args),
            Self::Start(args) => start::run(&args),
            Self::Stop(args) => stop::run(args),
            Self::Rm(args) => rm::run(args),
            Self::Logs(args) => logs::run(args),
            Self::Image(args) => image::run(args),
            Self::Credential(args) => credential::run(args),
            Self::Agent(args) => agent::run(args),
            Self::Drill(args) => drill::run(args),
            Self::Serve(args) => serve::run(&args),
            Self::Status(args) => status::run(&args),
            Self::Egress(args) => egress::run(&args),
        }
    }

    fn format(&self) -> Format {
        let json = match self {
            Self::Run(args) => args.print.json,
            Self::Attach(args) => args.print.json,
            Self::New(args) => args.print.json,
            Self::List(args) => args.print.json,
            Self::Info(args) => args.print.json,
            Self::Start(args) => args.print.json,
            Self::Stop(args) => args.print.json,
            Self::Rm(args) => args.print.json,
            Self::Logs(args) => args.print.json,
            Self::Image(args) => args.json(),
            Self::Credential(args) => args.json(),
            Self::Agent(args) => args.json(),
            Self::Drill(args) => args.print.json,
            Self::Status(args) => args.print.json,
            Self::Up(_) | Self::Exec(_) | Self::Shell(_) | Self::Serve(_) | Self::Egress(_) => {
                false
            }
        };
        if json { Format::Json } else { Format::Text }
    }

    /// `exec` and `shell` answer with the command's code, so ours must be told from it.
    fn answers_for_a_command(&self) -> bool {
        matches!(self, Self::Exec(_) | Self::Shell(_))
    }
}

/// How a verb that prints data prints it.
#[derive(Debug, Clone, Copy, clap::Args)]
struct Print {
    /// Print the objects of the wire as JSON, for programs
    #[arg(long)]
    json: bool,
}

impl Print {
    fn output(self) -> Output {
        Output::new(if self.json {
            Format::Json
        } else {
            Format::Text
        })
    }
}

/// Parses the command line, runs the verb, tells how it went.
pub(crate) fn main() -> ExitCode {
    let line = match Line::try_parse() {
        Ok(line) => line,
        Err(error) => return usage::tell(&error).into(),
    };
    let format = line.verb.format();
    let for_a_command = line.verb.answers_for_a_command();
    match line.verb.run() {
        Ok(code) => code.into(),
        Err(complaint) => {
            Output::new(format).complain(&complaint);
            let code = if for_a_command {
                WE_FAILED
            } else {
                complaint.code()
            };
            code.into()
        }
    }
}

#[cfg(test)]
mod tests;
