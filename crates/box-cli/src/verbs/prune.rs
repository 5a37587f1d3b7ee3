//! `box prune`: removes what nobody will use any more.

use super::confirm::{self, Answer, Question};
use super::{Ended, Print};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output};
use crate::terminal;
use box_api::control::{Outcome, PruneDepth, Pruned, Request, Trash};

/// Remove what nobody will use any more
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box prune\n  box prune --all\n\n\
    Without --all: boxes that are in the trash for longer than `[trash] days` (7), and agents of \
    earlier builds. With --all the whole trash, kept workspaces included, and boxes of an engine \
    that nobody owns; that asks first, and needs --force without a terminal (else exit code 2).")]
pub(super) struct Args {
    /// Empty the whole trash
    #[arg(long)]
    all: bool,
    /// Do not ask
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    if args.all && !args.force && !agreed(&mut output)? {
        output.note("nothing was removed");
        return Ok(1);
    }
    let depth = if args.all {
        PruneDepth::All
    } else {
        PruneDepth::Expired
    };
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let outcome = client.ask(&mut output, &Request::Trash(Trash::Prune { depth }))?;
    let Outcome::Pruned(pruned) = outcome else {
        return Err(unexpected(&outcome));
    };
    match output.format() {
        Format::Json => output.object(&pruned)?,
        Format::Text => tell(&mut output, &pruned),
    }
    Ok(u8::from(!pruned.left.is_empty()))
}

fn tell(output: &mut Output, pruned: &Pruned) {
    let trash = pruned.trash.iter().map(|name| format!("box `{name}`"));
    let strangers = pruned.strangers.iter();
    let strangers = strangers.map(|id| format!("box {id}, which nobody owned"));
    let packs = pruned.packs.iter().map(|pack| format!("agent `{pack}`"));
    let mut removed = 0;
    for what in trash.chain(strangers).chain(packs) {
        output.note(&format!("removed {what}"));
        removed += 1;
    }
    for why in &pruned.left {
        output.note(why);
    }
    if removed == 0 && pruned.left.is_empty() {
        output.note("there is nothing to remove");
    }
}

fn agreed(output: &mut Output) -> Result<bool, Complaint> {
    if !terminal::can_ask() || output.format() == Format::Json {
        return Err(
            Complaint::usage("needs-yes", "emptying the trash needs a yes")
                .caused_by("there is no terminal to ask at")
                .hinted("`box prune --all --force` does not ask"),
        );
    }
    let question = Question {
        text: "empty the trash; nothing in it comes back",
        default: Answer::No,
    };
    Ok(confirm::ask(output, &question)? == Answer::Yes)
}
