//! `box image prune`: removes what no box uses, after a yes.

use super::super::confirm::{self, Answer, Question};
use super::super::{Ended, Print};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table};
use crate::terminal;
use box_api::control::{ImageAsk, Outcome, Request, UnusedImages};

/// Remove the images no box uses, and what interrupted downloads left
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  box image prune\n  box image prune --force\n\n\
    Boxes in the trash and snapshots count as users. Asks first; without a terminal it needs \
    --force (else exit code 2)."
)]
pub(super) struct Args {
    /// Do not ask
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    if !args.force {
        let unused = ask(&mut output, ImageAsk::Prune { remove: false })?;
        if unused.images.is_empty() && unused.downloads_bytes == 0 {
            return told(&mut output, &unused);
        }
        if !agreed(&mut output, &unused)? {
            output.note("nothing was removed");
            return Ok(1);
        }
    }
    let gone = ask(&mut output, ImageAsk::Prune { remove: true })?;
    told(&mut output, &gone)
}

fn ask(output: &mut Output, ask: ImageAsk) -> Result<UnusedImages, Complaint> {
    let request = Request::Image(ask);
    let outcome = host::reach(output, OtherBuild::Bear)?.ask(output, &request)?;
    let Outcome::UnusedImages(unused) = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(unused)
}

fn agreed(output: &mut Output, unused: &UnusedImages) -> Result<bool, Complaint> {
    let what = spoken(unused);
    if !terminal::can_ask() || output.format() == Format::Json {
        let title = format!("removing {what} needs a yes");
        return Err(Complaint::usage("not-confirmed", title).hinted("add `--force`"));
    }
    for image in &unused.images {
        output.note(&format!("  {}", image.image));
    }
    let question = Question {
        text: &format!("Remove {what}"),
        default: Answer::No,
    };
    Ok(confirm::ask(output, &question)? == Answer::Yes)
}

fn told(output: &mut Output, unused: &UnusedImages) -> Ended {
    match output.format() {
        Format::Json => output.object(unused)?,
        Format::Text if unused.images.is_empty() && unused.downloads_bytes == 0 => {
            output.note("every image is used by a box, and no download was left");
        }
        Format::Text => output.note(&format!("removed {}", spoken(unused))),
    }
    Ok(0)
}

fn spoken(unused: &UnusedImages) -> String {
    let bytes = unused.images.iter().map(|image| image.bytes).sum();
    let images = match unused.images.len() {
        1 => "1 image".to_owned(),
        count => format!("{count} images"),
    };
    let downloads = match unused.downloads_bytes {
        0 => String::new(),
        bytes => format!(" and {} of downloads", table::bytes(bytes)),
    };
    format!("{images} ({}){downloads}", table::bytes(bytes))
}
