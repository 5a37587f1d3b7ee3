//! `box attach`: takes up a thread with what was missed, then follows it.

use super::{Ended, Print, run};
use crate::host::{self, OtherBuild};
use crate::output::{Format, Ink};
use crate::transcript::{Prompts, Thoughts};
use crate::turn;
use crate::turn::conversation::Conversation;
use crate::turn::moves::{Answers, Past};
use box_api::control::Request;
use box_api::{BoxName, ThreadId};

/// Take up what an agent is doing
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box attach demo\n  \
    box attach demo --all\n\n\
    Shows the last turn, then follows. A number answers a question, a line is the next prompt,\n\
    Ctrl-C cancels the turn, Ctrl-D leaves. Exit codes without a terminal: as `box run`.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// Which thread; the newest if not said (`box info` lists them)
    #[arg(long, value_name = "ID", value_parser = ThreadId::parse)]
    thread: Option<ThreadId>,
    /// Show the thread from its beginning
    #[arg(long)]
    all: bool,
    /// Show all of the agent's reasoning
    #[arg(long)]
    thoughts: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let mut client = host::reach(&mut output, OtherBuild::Bear)?;
    let answers = turn::answers(output.format());
    if answers == Answers::Person {
        let keys = "a line is the next prompt, Ctrl-C cancels the turn, Ctrl-D leaves";
        let note = output
            .err_paint()
            .with(Ink::Dim, &format!("box `{}`: {keys}", args.name));
        output.note(&note);
    }
    client.request(&Request::Attach(box_api::control::Attach {
        name: args.name.clone(),
        thread: args.thread,
        after: None,
        follow: true,
    }))?;
    // A program gets the whole journal and cuts it itself.
    let past = if args.all || output.format() == Format::Json {
        Past::All
    } else {
        Past::LastTurn
    };
    let conversation = Conversation::attach(answers, past, args.name, args.thread);
    let thoughts = if args.thoughts {
        Thoughts::Full
    } else {
        Thoughts::Folded
    };
    let transcript = run::transcript(&output, thoughts, Prompts::Shown);
    turn::drive(&mut output, client, conversation, transcript)
}
