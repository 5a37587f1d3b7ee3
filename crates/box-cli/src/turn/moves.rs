//! What goes into a conversation and what comes out.

use box_api::Problem;
use box_api::control::{ClientMessage, Reply};
use box_api::thread::{Cursor, Decision, Item, ThreadUpdate, TurnOutcome};

/// What this conversation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// One turn, then the end.
    Run,
    /// Whatever comes, until the person leaves.
    Attach,
}

/// Who answers when something must be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The person at the terminal.
    Person,
    /// We do: allow once, or the first choice.
    AllowAll,
    /// Somebody, but not here: the turn is waited for.
    Elsewhere,
    /// Nobody here: the turn is left waiting.
    Nobody,
}

/// How much of what was before is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Past {
    /// So many turns.
    Turns(usize),
    All,
}

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Input {
    Reply(Box<Reply>),
    /// The person typed a line.
    Line(String),
    /// Nothing more can be typed.
    Silence,
    Interrupt,
    /// A signal that ends us.
    Terminate(i32),
    /// The host went away.
    Lost,
}

/// Something to do, in this order.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// New in the journal.
    Show(ThreadUpdate),
    /// Something the host says that is no row of the journal.
    Aside(Item),
    /// A line for the person, not part of the journal.
    Note(String),
    /// A turn is over; how, where that is worth a word.
    Ended {
        outcome: TurnOutcome,
        note: Option<String>,
    },
    Progress(String),
    /// The person must decide; nothing typed before counts.
    Ask(Decision),
    Say(ClientMessage),
    /// Run this in the box, for the person.
    Shell(String),
    /// Connect again and attach from here.
    TakeUp(Option<Cursor>),
    Complain(Problem),
    Finish(u8),
}
