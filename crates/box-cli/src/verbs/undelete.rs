//! `box undelete`: takes a box out of the trash.

use super::{Ended, Print};
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::BoxName;
use box_api::control::{Outcome, Request, Trash};

/// Take a removed box out of the trash
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box undelete demo\n  \
    box undelete demo --as demo-2\n  \
    box undelete k3v7p2x4q6a5m2ne\n\n\
    `box list --trash` shows what is there. Of several of one name the newest comes back.")]
pub(super) struct Args {
    /// The name it had, or its id
    #[arg(value_name = "NAME|ID")]
    what: String,
    /// What to call it from now on
    #[arg(long = "as", value_name = "NAME", value_parser = BoxName::parse)]
    name: Option<BoxName>,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let request = Request::Trash(Trash::Undelete {
        what: args.what,
        name: args.name,
    });
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::Info(info) = &outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&outcome)?;
        return Ok(0);
    }
    output.note(&format!("box `{}` is back, stopped", info.name));
    output.note(&format!("hint: `box start {}` starts it", info.name));
    Ok(0)
}
