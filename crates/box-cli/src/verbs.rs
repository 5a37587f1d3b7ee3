//! The one table of verbs: dispatch, help and did-you-mean all come from it (spec B46).

mod acp;
mod agent;
mod amount;
mod answer;
mod ask;
mod attach;
mod completion;
mod config;
mod confirm;
mod cp;
mod credential;
mod decisions;
mod diff;
mod doctor;
mod drill;
mod du;
mod egress;
mod events;
mod exec;
mod export;
mod expose;
mod freeze;
mod furnish;
mod github;
mod image;
mod import;
mod info;
mod install;
mod kill;
mod list;
mod logs;
mod machine;
mod man;
mod misuse;
mod net;
mod new;
mod park;
mod policy;
mod prune;
mod ps;
mod pull;
mod rename;
mod restart;
mod restore;
mod resume;
mod rm;
mod run;
mod search;
mod serve;
mod set;
mod shell;
mod snapshot;
mod snapshots;
mod start;
mod status;
mod stop;
mod target;
mod thaw;
mod thread;
mod threads;
mod tmux;
mod top;
mod ui;
mod undelete;
mod undo;
mod uninstall;
mod up;
mod usage;
mod wait;

use crate::complaint::{Complaint, WE_FAILED};
use crate::identity;
use crate::output::{Format, Output};
use clap::{CommandFactory as _, Parser as _};
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
    Ask(ask::Args),
    Attach(attach::Args),
    Acp(acp::Args),
    Threads(threads::Args),
    Thread(thread::Args),
    New(new::Args),
    List(list::Args),
    Info(info::Args),
    Top(top::Args),
    Usage(usage::Args),
    Events(events::Args),
    Set(set::Args),
    Exec(exec::Args),
    Shell(shell::Args),
    Tmux(tmux::Args),
    Cp(cp::Args),
    Diff(diff::Args),
    Pull(pull::Args),
    Ps(ps::Args),
    Kill(kill::Args),
    Expose(expose::Args),
    Start(start::Args),
    #[command(visible_alias = "down")]
    Stop(stop::Args),
    Freeze(freeze::Args),
    Thaw(thaw::Args),
    Restart(restart::Args),
    Rename(rename::Args),
    Snapshot(snapshot::Args),
    Snapshots(snapshots::Args),
    Restore(restore::Args),
    Undo(undo::Args),
    Export(export::Args),
    Import(import::Args),
    Rm(rm::Args),
    Undelete(undelete::Args),
    Prune(prune::Args),
    Du(du::Args),
    Wait(wait::Args),
    Logs(logs::Args),
    Search(search::Args),
    Decisions(decisions::Args),
    Answer(answer::Args),
    Park(park::Args),
    Resume(resume::Args),
    Net(net::Args),
    Policy(policy::Args),
    Image(image::Args),
    Credential(credential::Args),
    Agent(agent::Args),
    Doctor(doctor::Args),
    Drill(drill::Args),
    Ui(ui::Args),
    Serve(serve::Args),
    Status(status::Args),
    Config(config::Args),
    Install(install::Args),
    Uninstall(uninstall::Args),
    Completion(completion::Args),
    Man(man::Args),
    #[command(name = egress::VERB, hide = true)]
    Egress(egress::Args),
}

impl Verb {
    fn run(self) -> Ended {
        match self {
            Self::Up(args) => up::run(&args),
            Self::Run(args) => run::run(args),
            Self::Ask(args) => ask::run(args),
            Self::Attach(args) => attach::run(&args),
            Self::Acp(args) => acp::run(args),
            Self::Threads(args) => threads::run(&args),
            Self::Thread(args) => thread::run(args),
            Self::New(args) => new::run(args),
            Self::List(args) => list::run(&args),
            Self::Info(args) => info::run(args),
            Self::Top(args) => top::run(&args),
            Self::Usage(args) => usage::run(args),
            Self::Events(args) => events::run(&args),
            Self::Set(args) => set::run(args),
            Self::Exec(args) => exec::run(args),
            Self::Shell(args) => shell::run(args),
            Self::Tmux(args) => tmux::run(args),
            Self::Cp(args) => cp::run(&args),
            Self::Diff(args) => diff::run(&args),
            Self::Pull(args) => pull::run(&args),
            Self::Ps(args) => ps::run(&args),
            Self::Kill(args) => kill::run(args),
            Self::Expose(args) => expose::run(args),
            Self::Start(args) => start::run(&args),
            Self::Stop(args) => stop::run(args),
            Self::Freeze(args) => freeze::run(args),
            Self::Thaw(args) => thaw::run(args),
            Self::Restart(args) => restart::run(args),
            Self::Rename(args) => rename::run(args),
            Self::Snapshot(args) => snapshot::run(args),
            Self::Snapshots(args) => snapshots::run(&args),
            Self::Restore(args) => restore::run(args),
            Self::Undo(args) => undo::run(&args),
            Self::Export(args) => export::run(&args),
            Self::Import(args) => import::run(args),
            Self::Rm(args) => rm::run(&args),
            Self::Undelete(args) => undelete::run(args),
            Self::Prune(args) => prune::run(&args),
            Self::Du(args) => du::run(args),
            Self::Wait(args) => wait::run(&args),
            Self::Logs(args) => logs::run(args),
            Self::Search(args) => search::run(args),
            Self::Decisions(args) => decisions::run(&args),
            Self::Answer(args) => answer::run(args),
            Self::Park(args) => park::run(args),
            Self::Resume(args) => resume::run(args),
            Self::Net(args) => net::run(&args),
            Self::Policy(args) => policy::run(args),
            Self::Image(args) => image::run(args),
            Self::Credential(args) => credential::run(args),
            Self::Agent(args) => agent::run(args),
            Self::Doctor(args) => doctor::run(args),
            Self::Drill(args) => drill::run(args),
            Self::Ui(args) => ui::run(&args),
            Self::Serve(args) => serve::run(&args),
            Self::Status(args) => status::run(&args),
            Self::Config(args) => config::run(&args),
            Self::Install(args) => install::run(&args),
            Self::Uninstall(args) => uninstall::run(&args),
            Self::Completion(args) => completion::run(&args),
            Self::Man(args) => man::run(&args),
            Self::Egress(args) => egress::run(&args),
        }
    }

    fn format(&self) -> Format {
        let json = match self {
            Self::Run(args) => args.print.json,
            Self::Ask(args) => args.print.json,
            Self::Attach(args) => args.print.json,
            Self::Threads(args) => args.print.json,
            Self::Thread(args) => args.json(),
            Self::New(args) => args.print.json,
            Self::List(args) => args.print.json,
            Self::Info(args) => args.print.json,
            Self::Top(args) => args.print.json,
            Self::Usage(args) => args.print.json,
            Self::Events(args) => args.print.json,
            Self::Ui(args) => args.json(),
            Self::Set(args) => args.print.json,
            Self::Cp(args) => args.print.json,
            Self::Diff(args) => args.print.json,
            Self::Pull(args) => args.print.json,
            Self::Ps(args) => args.print.json,
            Self::Kill(args) => args.print.json,
            Self::Expose(args) => args.print.json,
            Self::Start(args) => args.print.json,
            Self::Stop(args) => args.print.json,
            Self::Freeze(args) => args.print.json,
            Self::Thaw(args) => args.print.json,
            Self::Restart(args) => args.print.json,
            Self::Rename(args) => args.print.json,
            Self::Snapshot(args) => args.print.json,
            Self::Snapshots(args) => args.print.json,
            Self::Restore(args) => args.print.json,
            Self::Undo(args) => args.print.json,
            Self::Export(args) => args.print.json,
            Self::Import(args) => args.print.json,
            Self::Rm(args) => args.print.json,
            Self::Undelete(args) => args.print.json,
            Self::Prune(args) => args.print.json,
            Self::Du(args) => args.print.json,
            Self::Wait(args) => args.print.json,
            Self::Logs(args) => args.print.json,
            Self::Search(args) => args.print.json,
            Self::Decisions(args) => args.print.json,
            Self::Answer(args) => args.print.json,
            Self::Park(args) => args.print.json,
            Self::Resume(args) => args.print.json,
            Self::Net(args) => args.print.json,
            Self::Policy(args) => args.json(),
            Self::Image(args) => args.json(),
            Self::Credential(args) => args.json(),
            Self::Agent(args) => args.json(),
            Self::Doctor(args) => args.print.json,
            Self::Drill(args) => args.print.json,
            Self::Status(args) => args.print.json,
            Self::Config(args) => args.print.json,
            Self::Up(_)
            | Self::Acp(_)
            | Self::Exec(_)
            | Self::Shell(_)
            | Self::Tmux(_)
            | Self::Serve(_)
            | Self::Install(_)
            | Self::Uninstall(_)
            | Self::Completion(_)
            | Self::Man(_)
            | Self::Egress(_) => false,
        };
        if json { Format::Json } else { Format::Text }
    }

    /// `exec` and `shell` answer with the command's code, so ours must be told from it.
    fn answers_for_a_command(&self) -> bool {
        matches!(self, Self::Exec(_) | Self::Shell(_) | Self::Tmux(_))
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

/// The table as other programs read it, for completions and the manual: without what is hidden.
fn table() -> clap::Command {
    let mut table = without_hidden(&Line::command());
    table.build();
    table
}

fn without_hidden(command: &clap::Command) -> clap::Command {
    let arguments = command.get_arguments().filter(|one| !one.is_hide_set());
    let verbs = command.get_subcommands().filter(|one| !one.is_hide_set());
    let aliases = command.get_visible_aliases().map(str::to_owned);
    let mut shown = clap::Command::new(command.get_name().to_owned())
        .disable_help_subcommand(true)
        .visible_aliases(aliases.collect::<Vec<_>>())
        .args(arguments.cloned())
        .subcommands(verbs.map(without_hidden));
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(examples) = command.get_after_help() {
        shown = shown.after_help(examples.clone());
    }
    match command.get_version() {
        Some(version) => shown.version(version.to_owned()),
        None => shown,
    }
}

/// Parses the command line, runs the verb, tells how it went.
pub(crate) fn main() -> ExitCode {
    let line = match Line::try_parse() {
        Ok(line) => line,
        Err(error) => return misuse::tell(&error).into(),
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
