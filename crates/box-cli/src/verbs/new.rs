//! `box new`: makes a box.

use super::{Ended, Print, list, machine};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::control::{NewBox, Outcome, Request};
use box_api::{BoxName, BoxTitle};

/// Make a box and start it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box new demo\n  \
    box new ci --image debian:trixie --profile root --net open")]
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
    /// Only make it
    #[arg(long)]
    no_start: bool,
    #[command(flatten)]
    pub(super) print: Print,
    #[command(flatten)]
    machine: machine::Args,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let Some(name) = args.name.or(args.named) else {
        return Err(Complaint::usage("usage", "the box needs a name").hinted("`box new <NAME>`"));
    };
    let client = host::reach(&mut output, OtherBuild::Bear)?;
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
    });
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::Info(made) = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&made)?;
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
