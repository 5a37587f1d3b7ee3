//! `box thread`: one thread of a box, looked at and told things.

mod archive;
mod cancel;
mod export;
mod fork;
mod import;
mod named;
mod new;
mod options;
mod queue;
mod rename;
mod send;
mod set;
mod show;
mod steer;
mod tasks;

pub(super) use named::Named;

use super::Ended;
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::Output;
use box_api::control::{Outcome, Request, ThreadAct, ThreadAsk};
use box_api::thread::ThreadShown;

/// Look at one thread of a box, or tell it something
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box thread new demo \"write the tests\"\n  \
    box thread set demo/2tq5 model=opus mode=plan\n  \
    box thread steer demo \"only the parser, please\"\n  \
    box thread fork demo\n  \
    box thread export demo > demo.md\n\n\
    A thread is named <box>/<id>; the first characters of the id are enough, and without any the\n\
    newest thread of the box is meant.")]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Show(show::Args),
    New(new::Args),
    Rename(rename::Args),
    Archive(archive::Args),
    Unarchive(archive::Args),
    Send(send::Args),
    Steer(steer::Args),
    Queue(queue::Args),
    Cancel(cancel::Args),
    Options(options::Args),
    Set(set::Args),
    Fork(fork::Args),
    Tasks(tasks::Args),
    Export(export::Args),
    Import(import::Args),
}

impl Args {
    pub(super) fn json(&self) -> bool {
        match &self.what {
            What::Show(args) => args.print.json,
            What::New(args) => args.print.json,
            What::Rename(args) => args.print.json,
            What::Archive(args) | What::Unarchive(args) => args.print.json,
            What::Send(args) => args.print.json,
            What::Steer(args) => args.print.json,
            What::Queue(args) => args.print.json,
            What::Cancel(args) => args.print.json,
            What::Options(args) => args.print.json,
            What::Set(args) => args.print.json,
            What::Fork(args) => args.print.json,
            What::Tasks(args) => args.print.json,
            What::Import(args) => args.print.json,
            What::Export(_) => false,
        }
    }
}

pub(super) fn run(args: Args) -> Ended {
    match args.what {
        What::Show(args) => show::run(&args),
        What::New(args) => new::run(args),
        What::Rename(args) => rename::run(args),
        What::Archive(args) => archive::run(&args, ThreadAct::Archive),
        What::Unarchive(args) => archive::run(&args, ThreadAct::Unarchive),
        What::Send(args) => send::run(args),
        What::Steer(args) => steer::run(args),
        What::Queue(args) => queue::run(args),
        What::Cancel(args) => cancel::run(&args),
        What::Options(args) => options::run(&args),
        What::Set(args) => set::run(args),
        What::Fork(args) => fork::run(&args),
        What::Tasks(args) => tasks::run(args),
        What::Export(args) => export::run(&args),
        What::Import(args) => import::run(args),
    }
}

/// Does something with a thread and answers how it stands then.
fn act(output: &mut Output, named: &Named, act: ThreadAct) -> Result<ThreadShown, Complaint> {
    let (name, thread) = named.resolve(output)?;
    let client = host::reach(output, OtherBuild::Bear)?;
    let ask = ThreadAsk { name, thread, act };
    let outcome = client.ask(output, &Request::Thread(ask))?;
    let Outcome::ThreadShown(shown) = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(*shown)
}

/// How a person names it.
fn name_of(shown: &ThreadShown) -> String {
    format!("{}/{}", shown.name, shown.info.thread)
}
