//! `box attach`: takes up a thread with what was missed, then follows it.

use super::thread::Named;
use super::{Ended, Print, run};
use crate::host::{self, OtherBuild};
use crate::json;
use crate::output::{Format, Ink};
use crate::transcript::{Prompts, Thoughts};
use crate::turn::conversation::Conversation;
use crate::turn::moves::{Answers, Past};
use crate::turn::{self, Shown, View};
use box_api::ThreadId;
use box_api::control::Request;

/// Take up what an agent is doing
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box attach demo\n  \
    box attach demo/2tq5\n  \
    box attach demo --all\n  \
    box attach demo --last 3\n  \
    box attach demo --follow > work.log\n\n\
    Shows the last turn, then follows. A number answers a question, a line is the next prompt, a `!`\n\
    before it runs it in the box instead, `/` lists what the agent offers. Ctrl-C cancels the turn,\n\
    a second one and Ctrl-D leave. Exit codes without a terminal: as `box run`.")]
#[expect(clippy::struct_excessive_bools, reason = "a flag is a bool to clap")]
pub(super) struct Args {
    /// A box, whose newest thread is meant, or one thread of it (`box threads` lists them)
    #[arg(value_name = "NAME[/THREAD]", value_parser = Named::parse)]
    named: Named,
    /// Which thread, as `NAME/THREAD` says it too
    #[arg(long, value_name = "ID", value_parser = ThreadId::parse)]
    thread: Option<ThreadId>,
    /// Show the thread from its beginning
    #[arg(long)]
    all: bool,
    /// Show the last N turns
    #[arg(long, value_name = "N", conflicts_with = "all", value_parser = clap::value_parser!(u16).range(1..))]
    last: Option<u16>,
    /// Only look on: whoever answers and prompts is elsewhere, and the end of a turn is not ours
    #[arg(long, short)]
    follow: bool,
    /// Show all of the agent's reasoning
    #[arg(long)]
    thoughts: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let (name, thread) = args.named.resolve(&mut output)?;
    let thread = args.thread.or(thread);
    let mut client = host::reach(&mut output, OtherBuild::Bear)?;
    let answers = if args.follow {
        Answers::Elsewhere
    } else {
        turn::answers(output.format())
    };
    if answers == Answers::Person {
        let keys =
            "a line is the next prompt, `!` runs one, Ctrl-C cancels the turn, Ctrl-D leaves";
        let note = output
            .err_paint()
            .with(Ink::Dim, &format!("box `{name}`: {keys}"));
        output.note(&note);
    }
    client.request(&Request::Attach(box_api::control::Attach {
        name: name.clone(),
        thread,
        after: None,
        follow: true,
    }))?;
    // A program gets the whole journal and cuts it itself.
    let past = match args.last {
        Some(turns) => Past::Turns(turns.into()),
        None if args.all || output.format() == Format::Json => Past::All,
        None => Past::Turns(1),
    };
    let conversation = Conversation::attach(answers, past, name, thread);
    let thoughts = if args.thoughts {
        Thoughts::Full
    } else {
        Thoughts::Folded
    };
    let view = View {
        transcript: run::transcript(&output, thoughts, Prompts::Shown),
        shown: Shown::Everything,
    };
    let ended = turn::drive(&mut output, client, conversation, view);
    json::or_result(&mut output, ended)
}
