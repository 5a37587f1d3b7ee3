//! `box expose`: a port of a box on this machine's loopback.

use super::{Ended, Print};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::table::columns;
use crate::output::{Format, Output};
use box_api::BoxName;
use box_api::control::{Exposed, Outcome, Request};

/// Show a port of a box at 127.0.0.1 of this machine
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box expose demo 3000\n  \
    box expose demo 3000 8080\n  \
    box expose --list\n  \
    box expose --remove demo 3000\n\n\
    Only programs of this machine can connect, but all of them, whoever's they are. The port stays\n\
    until it is taken away or the box is removed.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse, required_unless_present = "list")]
    name: Option<BoxName>,
    /// The port inside
    #[arg(
        value_name = "PORT",
        value_parser = clap::value_parser!(u16).range(1..),
        required_unless_present = "list",
        conflicts_with = "list"
    )]
    port: Option<u16>,
    /// The port here; the same, or one that is free, if not said
    #[arg(
        value_name = "HOST-PORT",
        value_parser = clap::value_parser!(u16).range(1..),
        conflicts_with_all = ["list", "remove"]
    )]
    host_port: Option<u16>,
    /// Show which ports are shown
    #[arg(long, conflicts_with = "remove")]
    list: bool,
    /// Take it away
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let (name, port) = match (args.list, args.name, args.port) {
        (false, Some(name), Some(port)) => (name, port),
        (_, name, _) => {
            let listed = client.ask(&mut output, &Request::ExposedList { name })?;
            list(&mut output, &listed)?;
            return Ok(0);
        }
    };
    if args.remove {
        let request = Request::ExposedRemove {
            name: name.clone(),
            port,
        };
        let outcome = client.ask(&mut output, &request)?;
        match output.format() {
            Format::Json => output.object(&outcome)?,
            Format::Text => {
                output.note(&format!(
                    "port {port} of box `{name}` is not shown any more"
                ));
            }
        }
        return Ok(0);
    }
    let request = Request::Expose {
        name,
        port,
        host_port: args.host_port,
    };
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::Exposed { ports } = &outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&outcome)?;
        return Ok(0);
    }
    for Exposed {
        name,
        port,
        host_port,
        ..
    } in ports
    {
        output.data(format!("127.0.0.1:{host_port}\n").as_bytes())?;
        output.note(&format!(
            "port {port} of box `{name}` is there for every program of this machine"
        ));
    }
    Ok(0)
}

fn list(output: &mut Output, outcome: &Outcome) -> Result<(), Complaint> {
    let Outcome::Exposed { ports } = outcome else {
        return Err(unexpected(outcome));
    };
    if output.format() == Format::Json {
        return output.object(outcome);
    }
    if ports.is_empty() {
        output.note("no port of a box is shown");
        return Ok(());
    }
    let mut rows = vec![["BOX", "PORT", "HERE", ""].map(str::to_owned).to_vec()];
    rows.extend(ports.iter().map(|one| {
        let problem = one.problem.clone().unwrap_or_default();
        let here = format!("127.0.0.1:{}", one.host_port);
        vec![one.name.to_string(), one.port.to_string(), here, problem]
    }));
    output.data(columns(&rows).as_bytes())
}
