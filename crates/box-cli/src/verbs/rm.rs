//! `box rm`: puts a box into the trash or removes it at once, after a yes.

use super::confirm::{self, Answer, Question};
use super::{Ended, Print, target};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output};
use crate::terminal;
use box_api::control::{KeepWorkspace, Outcome, Removal, Remove, Request, Target, Unpushed};

/// Remove a box; its files stay in the trash for a while
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box rm demo\n  \
    box rm all --force\n  \
    box rm demo --now\n  \
    box rm demo --keep-workspace\n\n\
    Asks first. Without a terminal it needs --force (else exit code 2). A box with commits that \
    were pushed nowhere is refused without --force (exit code 3).\n\
    The name is free at once. `box undelete` brings the box back for `[trash] days` (7); when the \
    disk is short, what lies in the trash goes first.")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(super) struct Args {
    /// A box, or `all`
    #[arg(value_name = "NAME", value_parser = target::parse)]
    target: Target,
    /// Do not ask, and do not look for unpushed commits
    #[arg(long, short)]
    force: bool,
    /// Remove its files at once, without the trash
    #[arg(long)]
    now: bool,
    /// Keep the workspace for the next box of that name
    #[arg(long, conflicts_with = "now")]
    keep_workspace: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    if !args.force {
        let names = named(&mut output, &args.target)?;
        if names.is_empty() {
            output.note("there is no box to remove");
            return Ok(0);
        }
        if !agreed(&mut output, args, &names)? {
            output.note("nothing was removed");
            return Ok(1);
        }
    }
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let spoken = target::spoken(&args.target);
    let outcome = client.ask(&mut output, &request(args))?;
    if output.format() == Format::Json {
        output.object(&outcome)?;
        return Ok(0);
    }
    output.note(&format!("{spoken} is removed"));
    if !args.now {
        let which = match &args.target {
            Target::All => "<name>".to_owned(),
            Target::Box(name) => name.to_string(),
        };
        output.note(&format!("hint: `box undelete {which}` brings it back"));
    }
    Ok(0)
}

fn request(args: &Args) -> Request {
    Request::Remove(Remove {
        target: args.target.clone(),
        how: if args.now {
            Removal::Now
        } else {
            Removal::Trash
        },
        workspace: if args.keep_workspace {
            KeepWorkspace::Yes
        } else {
            KeepWorkspace::No
        },
        unpushed: if args.force {
            Unpushed::Ignore
        } else {
            Unpushed::Refuse
        },
    })
}

/// The boxes it is about; a box that is not there is told before anything is asked.
fn named(output: &mut Output, target: &Target) -> Result<Vec<String>, Complaint> {
    let request = match target {
        Target::All => Request::List,
        Target::Box(name) => Request::Info { name: name.clone() },
    };
    let outcome = host::reach(output, OtherBuild::Bear)?.ask(output, &request)?;
    if let Outcome::Info(one) = &outcome {
        return Ok(vec![one.name.to_string()]);
    }
    let Outcome::Boxes { boxes } = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(boxes.iter().map(|one| one.name.to_string()).collect())
}

fn agreed(output: &mut Output, args: &Args, names: &[String]) -> Result<bool, Complaint> {
    let target = &args.target;
    let all = names.join("`, `");
    let what = match names.len() {
        1 => format!("box `{all}` and everything in it"),
        count => format!("{count} boxes (`{all}`) and everything in them"),
    };
    if !terminal::can_ask() || output.format() == Format::Json {
        let word = match target {
            Target::All => "all".to_owned(),
            Target::Box(name) => name.to_string(),
        };
        return Err(
            Complaint::usage("needs-yes", format!("removing {what} needs a yes"))
                .caused_by("there is no terminal to ask at")
                .hinted(format!("`box rm {word} --force` does not ask")),
        );
    }
    let for_good = if args.now { " for good" } else { "" };
    let question = Question {
        text: &format!("remove {what}{for_good}"),
        default: Answer::No,
    };
    Ok(confirm::ask(output, &question)? == Answer::Yes)
}
