//! `box export`: writes a box into one file that any host can make it again from.

use super::{Ended, Print};
use crate::age;
use crate::archive::{self, SHOUT};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table, visible};
use box_api::BoxName;
use box_api::control::{Along, Export, Exported, Outcome, Request};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

/// Write a box into one file that can be imported anywhere
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box export demo\n  \
    box export demo demo.box.tar.zst --force\n  \
    box export demo --instance-only --no-image\n  \
    box export demo - | ssh elsewhere box import -\n\n\
    Without a file it is `<name>-<UTC time>.box.tar.zst` in the current folder. A running box stands\n\
    still while its files are taken hold of, and goes on while they are written. Threads and their\n\
    journals stay.\n\
    Whoever has the file has every login inside the box: keep it as a password.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// The file; `-` is standard output
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    stays: Stays,
    #[command(flatten)]
    pub(super) print: Print,
}

/// What stays here.
#[derive(Debug, clap::Args)]
struct Stays {
    /// Leave its snapshots out
    #[arg(long, visible_alias = "no-snapshots")]
    instance_only: bool,
    /// Leave its image out: smaller, and for hosts that have the same image
    #[arg(long)]
    no_image: bool,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let along = |stays| if stays { Along::Stays } else { Along::Comes };
    let request = Request::Export(Export {
        name: args.name.clone(),
        snapshots: along(args.stays.instance_only),
        image: along(args.stays.no_image),
    });
    match &args.file {
        Some(file) if file.as_os_str() == "-" => to_stdout(&mut output, &request),
        file => {
            let made_up = || {
                let stamp = age::stamp(age::now_ms());
                PathBuf::from(format!("{}-{stamp}.box.tar.zst", args.name))
            };
            let file = file.clone().unwrap_or_else(made_up);
            let old = if args.force { Old::Replaced } else { Old::Kept };
            to_file(&mut output, &request, &file, old)
        }
    }
}

/// What becomes of a file that has the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Old {
    Kept,
    Replaced,
}

fn to_stdout(output: &mut Output, request: &Request) -> Ended {
    if std::io::stdout().is_terminal() {
        return Err(
            Complaint::usage("no-pipe", "an archive is nothing for a terminal")
                .hinted("send it on: `box export … - | …`, or name a file"),
        );
    }
    if output.format() == Format::Json {
        return Err(Complaint::usage(
            "usage",
            "standard output cannot have both the archive and JSON",
        ));
    }
    let client = host::reach(output, OtherBuild::Bear)?;
    let taken = archive::carry(client, output, request, |pipe| {
        archive::take(pipe, std::io::stdout())
    });
    let (outcome, bytes) = taken?;
    let exported = exported(outcome)?;
    tell(
        output,
        &exported,
        &format!("written ({})", table::bytes(bytes)),
    );
    output.shout(&format!("whatever became of it, {SHOUT}"));
    Ok(0)
}

fn to_file(output: &mut Output, request: &Request, file: &Path, old: Old) -> Ended {
    let shown = file.display().to_string();
    let shown = visible(&shown);
    let there = file.symlink_metadata().is_ok();
    if there && (old == Old::Kept || file.is_dir()) {
        return Err(is_there(&shown, file));
    }
    let cannot = |error| {
        Complaint::failed("archive-file", format!("could not write `{shown}`")).caused_by(error)
    };
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Only its owner may read it, from the first byte on.
    let part = tempfile::Builder::new()
        .prefix(".box-export-")
        .tempfile_in(folder)
        .map_err(cannot)?;
    let into = part.reopen().map_err(cannot)?;
    let client = host::reach(output, OtherBuild::Bear)?;
    let carried = archive::carry(client, output, request, |pipe| archive::take(pipe, into));
    let (outcome, bytes) = carried?;
    let exported = exported(outcome)?;
    part.as_file().sync_all().map_err(cannot)?;
    let placed = match old {
        Old::Kept => part.persist_noclobber(file),
        Old::Replaced => part.persist(file),
    };
    placed.map_err(|failed| {
        if failed.error.kind() == std::io::ErrorKind::AlreadyExists {
            is_there(&shown, file)
        } else {
            cannot(failed.error)
        }
    })?;
    if output.format() == Format::Json {
        output.object(&Written {
            file: file.display().to_string(),
            bytes,
            exported: exported.clone(),
        })?;
    } else {
        // The path alone, for scripts.
        output.data(format!("{}\n", file.display()).as_bytes())?;
    }
    tell(
        output,
        &exported,
        &format!("in `{shown}` ({})", table::bytes(bytes)),
    );
    output.shout(&format!("keep `{shown}` safe: {SHOUT}"));
    Ok(0)
}

/// What a program reads: the answer of the host, and where it is.
#[derive(Debug, serde::Serialize)]
struct Written {
    file: String,
    bytes: u64,
    #[serde(flatten)]
    exported: Exported,
}

fn is_there(shown: &str, file: &Path) -> Complaint {
    let complaint = Complaint::failed("file-there", format!("`{shown}` is there already"));
    if file.is_dir() {
        complaint.hinted("name a file, not a folder")
    } else {
        complaint.hinted("`--force` replaces it")
    }
}

fn exported(outcome: Outcome) -> Result<Exported, Complaint> {
    let Outcome::Exported(exported) = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(exported)
}

fn tell(output: &mut Output, exported: &Exported, where_to: &str) {
    let snapshots = match exported.snapshots {
        0 => String::new(),
        1 => ", one snapshot".to_owned(),
        count => format!(", {count} snapshots"),
    };
    let image = if exported.image { ", its image" } else { "" };
    let name = &exported.name;
    output.note(&format!("box `{name}`{snapshots}{image}: {where_to}"));
    for line in &exported.left_out {
        output.note(&format!("left out: {}", visible(line)));
    }
    let told = exported.left_out.len() as u64;
    if exported.left_out_count > told {
        let more = exported.left_out_count - told;
        output.note(&format!("left out: {more} more"));
    }
}
