//! `box du`: how much disk boxes use.

use super::{Ended, Print, target};
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, table};
use box_api::control::{BoxDisk, Outcome, Request, Target};

/// Show how much disk a box uses
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box du\n  box du demo --json\n\n\
    What snapshots share with the box and with each other is counted in full.")]
pub(super) struct Args {
    /// A box, or `all`
    #[arg(value_name = "NAME", value_parser = target::parse, default_value = "all")]
    target: Target,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let request = Request::DiskUsage {
        target: args.target,
    };
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::DiskUsage { boxes } = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&boxes)?;
    } else if boxes.is_empty() {
        output.note("no boxes yet; `box new demo` makes one");
    } else {
        output.data(shown(&boxes).as_bytes())?;
    }
    Ok(0)
}

fn shown(boxes: &[BoxDisk]) -> String {
    let heading = [
        "NAME",
        "USED",
        "OF",
        "WORKSPACE",
        "HOME",
        "ROOT",
        "SNAPSHOTS",
        "OF TURNS",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(boxes.iter().map(|one| {
        let used = one.workspace_bytes + one.home_bytes + one.root_bytes;
        vec![
            one.name.to_string(),
            table::bytes(used),
            table::binary_bytes(one.limit_bytes),
            table::bytes(one.workspace_bytes),
            table::bytes(one.home_bytes),
            table::bytes(one.root_bytes),
            table::bytes(one.snapshots_bytes),
            table::bytes(one.restore_points_bytes),
        ]
    }));
    table::columns(&rows)
}
