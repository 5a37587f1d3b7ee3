//! `box new`: makes a box, of an image or of another box.

mod setup;
mod source;

use super::{Ended, Print, furnish, list, machine};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output};
use box_api::control::{BoxInfo, CloneBox, NewBox, Outcome, Request, Snapshots};
use box_api::{BoxName, BoxTitle};
use source::Source;
use std::path::PathBuf;

/// Make a box and start it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box new demo\n  \
    box new ci --image debian:trixie --profile root --net open\n  \
    box new shop --setup prepare.sh\n  \
    box new shop --here\n  \
    box new copy --from demo\n  \
    box new fresh --from demo/pristine --memory 8G\n\n\
    A new box is kept as `pristine`, and as `bootstrapped` once its set-up has succeeded; \
    BOX_SNAPSHOT_PRISTINE=0 and BOX_SNAPSHOT_BOOTSTRAPPED=0 leave that out.")]
pub(super) struct Args {
    /// The box's name: letters, digits and `-`
    #[arg(value_name = "NAME", value_parser = BoxName::parse, required_unless_present = "named")]
    name: Option<BoxName>,
    /// The same, as an option
    #[arg(long = "name", id = "named", value_name = "NAME", value_parser = BoxName::parse, conflicts_with = "name")]
    named: Option<BoxName>,
    /// A title to show beside the name
    #[arg(long, value_parser = BoxTitle::parse)]
    title: Option<BoxTitle>,
    /// A host it may reach besides, such as `api.example.com`, `*.example.com` or `db.example.com:5432`
    #[arg(long, value_name = "HOST")]
    allow: Vec<String>,
    /// Copy that box as it is, or one of its snapshots
    #[arg(long, value_name = "BOX[/LABEL]", value_parser = Source::parse,
        conflicts_with_all = ["image", "profile", "net", "allow", "setup", "here"])]
    from: Option<Source>,
    /// A script to run inside once the box is up; its output is shown
    #[arg(long, value_name = "FILE", conflicts_with = "no_start")]
    setup: Option<PathBuf>,
    /// Only make it
    #[arg(long, conflicts_with = "here")]
    no_start: bool,
    #[command(flatten)]
    pub(super) print: Print,
    #[command(flatten)]
    furnish: furnish::Args,
    #[command(flatten)]
    machine: machine::Args,
}

pub(super) fn run(mut args: Args) -> Ended {
    let mut output = args.print.output();
    let Some(name) = args.name.take().or(args.named.take()) else {
        return Err(Complaint::usage("usage", "the box needs a name").hinted("`box new <NAME>`"));
    };
    match args.from.take() {
        Some(source) => clone(&mut output, args, (name, source)),
        None => mint(&mut output, args, name),
    }
}

fn mint(output: &mut Output, args: Args, name: BoxName) -> Ended {
    let script = args.setup.as_deref().map(setup::read).transpose()?;
    let here = args.furnish.prepare(output)?;
    let client = host::reach(output, OtherBuild::Bear)?;
    let machine = args.machine.with(client.welcome.defaults)?;
    let request = Request::New(NewBox {
        name,
        title: args.title,
        image: machine.image,
        profile: machine.profile,
        net: machine.net,
        limits: machine.limits,
        allow: args.allow,
        start: !args.no_start,
        settings: machine.settings,
        setup: script,
        marks: setup::marks(&|name| std::env::var_os(name)),
    });
    let outcome = client.ask(output, &request)?;
    let Outcome::Info(made) = outcome else {
        return Err(unexpected(&outcome));
    };
    if let Some(here) = here {
        furnish::furnish(output, &made.name, &here)?;
    }
    tell(output, &made)
}

fn clone(output: &mut Output, args: Args, (name, source): (BoxName, Source)) -> Ended {
    let client = host::reach(output, OtherBuild::Bear)?;
    let request = Request::Clone(CloneBox {
        name,
        title: args.title,
        source: source.name.clone(),
        label: source.label.clone(),
        sizes: args.machine.sizes(),
        start: !args.no_start,
    });
    let outcome = client.ask(output, &request)?;
    let Outcome::Info(made) = outcome else {
        return Err(unexpected(&outcome));
    };
    let done = tell(output, &made)?;
    if output.format() == Format::Text {
        tell_snapshots(output, &made, &source)?;
    }
    Ok(done)
}

fn tell(output: &mut Output, made: &BoxInfo) -> Ended {
    if output.format() == Format::Json {
        output.object(made)?;
        return Ok(0);
    }
    output.note(&format!(
        "box `{}` is {}",
        made.name,
        list::state(made.state)
    ));
    output.note(&format!("hint: `box shell {}` goes in", made.name));
    Ok(0)
}

/// Which of the two cases of B16 it was, by what is there.
fn tell_snapshots(output: &mut Output, made: &BoxInfo, source: &Source) -> Result<(), Complaint> {
    let name = made.name.clone();
    let request = Request::Snapshots(Snapshots::List { name });
    let outcome = host::reach(output, OtherBuild::Bear)?.ask(output, &request)?;
    let Outcome::Snapshots { snapshots } = outcome else {
        return Err(unexpected(&outcome));
    };
    let labels: Vec<String> = snapshots
        .iter()
        .map(|one| format!("`{}`", one.label))
        .collect();
    let copied = match &source.label {
        Some(label) => format!("snapshot `{label}` of box `{}`", source.name),
        None => format!("box `{}`", source.name),
    };
    if labels.is_empty() {
        output.note(&format!("it is a copy of {copied}, without snapshots yet"));
    } else {
        output.note(&format!(
            "it is a copy of {copied}, its snapshots included: {}",
            labels.join(", ")
        ));
    }
    Ok(())
}
