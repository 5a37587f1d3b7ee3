//! `box import`: makes a box of a file `box export` wrote.

use super::{Ended, Print, amount, list, machine};
use crate::archive::{self, SHOUT};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, table, visible};
use box_api::BoxName;
use box_api::control::{BoxInfo, Import, Outcome, Request};
use std::fs::File;
use std::io::{IsTerminal as _, Read};
use std::path::{Path, PathBuf};

/// Make a box of a file that `box export` wrote
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box import demo.box.tar.zst\n  \
    box import demo.box.tar.zst --name demo2 --no-start\n  \
    box import demo.box.tar.zst --image debian:trixie\n  \
    ssh elsewhere box export demo - | box import -\n\n\
    The whole archive is checked before anything is made of it. The box has everything it had, its \
    snapshots\nincluded, and is another machine: new id, new machine-id, no credential of this host.")]
pub(super) struct Args {
    /// The file; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What to call it; as it is called in the archive if not said
    #[arg(long, value_name = "NAME", value_parser = BoxName::parse)]
    name: Option<BoxName>,
    /// An image to stand on, instead of the one it stood on
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Only make it
    #[arg(long)]
    no_start: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let from = open(&args.file)?;
    let image = args.image.as_deref().map(machine::image).transpose()?;
    let request = Request::Import(Import {
        name: args.name,
        image,
        start: !args.no_start,
    });
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let carried = archive::carry(client, &mut output, &request, |pipe| {
        archive::give(from, pipe)
    });
    let (outcome, _) = carried?;
    let Outcome::Info(made) = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&made)?;
    } else {
        output.note(&format!(
            "box `{}` is {} ({})",
            made.name,
            list::state(made.state),
            kind(&made)
        ));
        let limits = made.limits;
        output.note(&format!(
            "the archive set its limits: {} CPUs, {} memory, {} disk, {} processes; `box policy show {}` \
             shows what it may reach",
            amount::shown_cpus(limits.cpu_milli),
            table::binary_bytes(limits.memory_bytes),
            table::binary_bytes(limits.disk_bytes),
            limits.pids,
            made.name
        ));
        output.note(&format!(
            "it may use no credential of yours: `box set {} credential=default` lets it",
            made.name
        ));
        output.note(&format!("hint: `box shell {}` goes in", made.name));
    }
    output.shout(&format!("the archive is still there: {SHOUT}"));
    Ok(0)
}

fn kind(made: &BoxInfo) -> String {
    format!(
        "profile {}, net {}",
        list::profile(made.profile),
        list::net(made.net)
    )
}

fn open(file: &Path) -> Result<Box<dyn Read + Send>, Complaint> {
    if file.as_os_str() == "-" {
        if std::io::stdin().is_terminal() {
            return Err(Complaint::usage("no-pipe", "nobody types an archive")
                .hinted("give it on standard input: `… | box import -`, or name a file"));
        }
        return Ok(Box::new(std::io::stdin()));
    }
    let shown = file.display().to_string();
    let shown = visible(&shown);
    let opened = File::open(file).and_then(|opened| Ok((opened.metadata()?, opened)));
    let (meta, opened) = opened.map_err(|error| {
        Complaint::failed("archive-file", format!("could not read `{shown}`")).caused_by(error)
    })?;
    if meta.is_dir() {
        return Err(
            Complaint::failed("archive-file", format!("`{shown}` is a folder"))
                .hinted("name a file that `box export` wrote"),
        );
    }
    Ok(Box::new(opened))
}
