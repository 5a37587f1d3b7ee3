//! `box restore`: brings a box back to a snapshot, after a yes.

use super::confirm::{self, Answer, Question};
use super::{Ended, Print, list};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output};
use crate::terminal;
use box_api::control::{BoxState, Outcome, Request, Restored, Snapshots};
use box_api::{BoxName, Label};

/// Bring a box back to one of its snapshots
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box restore demo pristine\n  \
    box restore demo logged-in --force\n\n\
    Asks first. Without a terminal it needs --force (else exit code 2).\n\
    What the box is now is kept as `before-restore-…` first, so that this can be undone. A running \
    box is stopped and started again.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// Which snapshot; `box snapshots` lists them
    #[arg(value_name = "LABEL", value_parser = Label::parse)]
    label: Label,
    /// Do not ask
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    if !args.force && !agreed(&mut output, &args)? {
        output.note("nothing was restored");
        return Ok(1);
    }
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let asked = Snapshots::Restore {
        name: args.name,
        label: args.label.clone(),
    };
    let outcome = client.ask(&mut output, &Request::Snapshots(asked))?;
    let Outcome::Restored(restored) = outcome else {
        return Err(unexpected(&outcome));
    };
    match output.format() {
        Format::Json => output.object(&restored)?,
        Format::Text => tell(&mut output, &restored, &args.label),
    }
    Ok(0)
}

fn tell(output: &mut Output, restored: &Restored, label: &Label) {
    let info = &restored.info;
    let name = &info.name;
    output.note(&format!(
        "box `{name}` is as `{label}` has it, and {}",
        list::state(info.state)
    ));
    if !info.threads.is_empty() {
        output.note(
            "its conversations stay to be read; an agent goes on with what it knew then, or begins \
             anew and says so",
        );
    }
    output.note(&format!(
        "hint: `box restore {name} {}` undoes this",
        restored.undo
    ));
}

/// A box or a snapshot that is not there is told before anything is asked.
fn agreed(output: &mut Output, args: &Args) -> Result<bool, Complaint> {
    let (name, label) = (&args.name, &args.label);
    if !terminal::can_ask() || output.format() == Format::Json {
        return Err(
            Complaint::usage("needs-yes", format!("restoring box `{name}` needs a yes"))
                .caused_by("there is no terminal to ask at")
                .hinted(format!("`box restore {name} {label} --force` does not ask")),
        );
    }
    let running = is_running(output, name)?;
    let stop = if running { "stop box" } else { "box" };
    let text = if running {
        format!("{stop} `{name}` and bring it back to `{label}`")
    } else {
        format!("bring {stop} `{name}` back to `{label}`")
    };
    let question = Question {
        text: &text,
        default: Answer::No,
    };
    Ok(confirm::ask(output, &question)? == Answer::Yes)
}

pub(super) fn is_running(output: &mut Output, name: &BoxName) -> Result<bool, Complaint> {
    let request = Request::Info { name: name.clone() };
    let outcome = host::reach(output, OtherBuild::Bear)?.ask(output, &request)?;
    let Outcome::Info(info) = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(info.state == BoxState::Running)
}
