//! `box snapshot`: takes a named copy of a box's files, or removes one.

use super::{Ended, Print, target};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table};
use box_api::Label;
use box_api::control::{Outcome, Request, Snapshots, Target};

/// Keep a box's files as they are now, under a label
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box snapshot demo\n  \
    box snapshot demo logged-in\n  \
    box snapshot all nightly\n  \
    box snapshot --remove demo logged-in\n\n\
    A running box stands still meanwhile. `box restore` comes back to it, `box new --from` makes \
    another box of it.")]
pub(super) struct Args {
    /// A box, or `all`
    #[arg(value_name = "NAME", value_parser = target::parse)]
    target: Target,
    /// What to call it; `manual-<seconds>` if not said
    #[arg(value_name = "LABEL", value_parser = Label::parse, required_if_eq("remove", "true"))]
    label: Option<Label>,
    /// Remove that snapshot instead
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    match (args.remove, args.target, args.label) {
        (true, Target::Box(name), Some(label)) => {
            remove(&mut output, Snapshots::Remove { name, label })
        }
        (true, Target::All, _) | (true, _, None) => Err(Complaint::usage(
            "usage",
            "a snapshot is removed from one box, by its label",
        )
        .hinted("`box snapshot --remove <NAME> <LABEL>`")),
        (false, target, label) => take(&mut output, Snapshots::Take { target, label }),
    }
}

fn remove(output: &mut Output, asked: Snapshots) -> Ended {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::Snapshots(asked))?;
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => output.note("the snapshot is removed"),
    }
    Ok(0)
}

fn take(output: &mut Output, asked: Snapshots) -> Ended {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::Snapshots(asked))?;
    let Outcome::Taken { taken } = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&taken)?;
        return Ok(0);
    }
    for one in &taken {
        // The label alone, for scripts (B9).
        output.data(format!("{}\n", one.snapshot.label).as_bytes())?;
        let (name, label) = (&one.name, &one.snapshot.label);
        output.note(&format!(
            "box `{name}` is kept as `{label}` ({}); `box restore {name} {label}` comes back to it",
            table::bytes(one.snapshot.bytes)
        ));
    }
    if taken.is_empty() {
        output.note("no boxes yet; `box new demo` makes one");
    }
    Ok(0)
}
