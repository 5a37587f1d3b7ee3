//! `box snapshots`: the snapshots of a box.

use super::{Ended, Print};
use crate::age;
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, table};
use box_api::BoxName;
use box_api::control::{Outcome, Request, Snapshots};
use box_api::snapshot::{SnapshotInfo, SnapshotKind};

/// List the snapshots of a box
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  box snapshots demo\n  box snapshots demo --all\n  \
    box snapshots demo --json\n\n\
    `box undo --list` says more of those that were taken before turns."
)]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// Those taken before turns too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let name = args.name.clone();
    let outcome = client.ask(&mut output, &Request::Snapshots(Snapshots::List { name }))?;
    let Outcome::Snapshots { mut snapshots } = outcome else {
        return Err(unexpected(&outcome));
    };
    let before = snapshots.len();
    snapshots.retain(|one| args.all || one.kind != SnapshotKind::BeforeTurn);
    let hidden = before - snapshots.len();
    if output.format() == Format::Json {
        output.object(&snapshots)?;
    } else if snapshots.is_empty() {
        output.note(&format!(
            "box `{0}` has no snapshots; `box snapshot {0}` takes one",
            args.name
        ));
    } else {
        output.data(shown(&snapshots, age::now_ms()).as_bytes())?;
    }
    if hidden > 0 && output.format() == Format::Text {
        output.note(&format!(
            "and {hidden} taken before turns: `--all` shows them"
        ));
    }
    Ok(0)
}

fn shown(snapshots: &[SnapshotInfo], now_ms: i64) -> String {
    let heading = ["LABEL", "TAKEN", "AGE", "SIZE"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(snapshots.iter().map(|one| {
        vec![
            one.label.to_string(),
            why(one.kind).to_owned(),
            age::short(one.created_at_ms, now_ms),
            table::bytes(one.bytes),
        ]
    }));
    table::columns(&rows)
}

fn why(kind: SnapshotKind) -> &'static str {
    match kind {
        SnapshotKind::Manual => "by hand",
        SnapshotKind::Pristine => "when it was new",
        SnapshotKind::Bootstrapped => "after its set-up",
        SnapshotKind::BeforeRestore => "before a restore",
        SnapshotKind::BeforeTurn => "before a turn",
    }
}
