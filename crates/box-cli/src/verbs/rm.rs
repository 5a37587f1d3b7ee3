//! `box rm`: removes a box with everything in it, after a yes.

use super::confirm::{self, Answer, Question};
use super::{Ended, Print, target};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output};
use crate::terminal;
use box_api::control::{Outcome, Request, Target};

/// Remove a box and everything in it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box rm demo\n  box rm all --force\n\n\
    Asks first. Without a terminal it needs --force (else exit code 2).")]
pub(super) struct Args {
    /// A box, or `all`
    #[arg(value_name = "NAME", value_parser = target::parse)]
    target: Target,
    /// Do not ask
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    if !args.force {
        let names = named(&mut output, &args.target)?;
        if names.is_empty() {
            output.note("there is no box to remove");
            return Ok(0);
        }
        if !agreed(&mut output, &args.target, &names)? {
            output.note("nothing was removed");
            return Ok(1);
        }
    }
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let spoken = target::spoken(&args.target);
    let outcome = client.ask(
        &mut output,
        &Request::Remove {
            target: args.target,
        },
    )?;
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => output.note(&format!("{spoken} is removed")),
    }
    Ok(0)
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

fn agreed(output: &mut Output, target: &Target, names: &[String]) -> Result<bool, Complaint> {
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
    let question = Question {
        text: &format!("remove {what}"),
        default: Answer::No,
    };
    Ok(confirm::ask(output, &question)? == Answer::Yes)
}
