//! Frames of the WebSocket `GET /ws`: JSON texts, one frame each.
//!
//! The host greets with [`ServerFrame::Hello`]. The page subscribes to topics under numbers of its
//! own choice; each topic is answered with its whole state and then with what changes. Nothing is
//! queued for a page: the host reads from where the page stands whenever the page has taken in
//! what was sent, so that a slow page gets fewer, fatter frames. A page that comes back subscribes
//! with the cursor it had and loses nothing.

use super::{BoxCard, LogUpdate, Start, ThreadHead};
use crate::control::ThreadAct;
use crate::decision::FormAnswer;
use crate::network::Waiting;
use crate::thread::{Cursor, ThreadInBox, ThreadShown};
use crate::{BoxId, DecisionId, Problem, ThreadId};
use serde::{Deserialize, Serialize};

/// Longest frame a page may send.
pub const INBOUND_BYTES_MAX: usize = 1 << 20;
/// Subscriptions of one socket.
pub const SUBSCRIPTIONS_MAX: usize = 32;
/// After so long without a frame the host sends a ping; a page that hears nothing for twice as
/// long connects again.
pub const PING_MS: u64 = 20_000;

/// How often a page that is in front says so, milliseconds; thrice as long is believed.
pub const FRONT_MS: u64 = 10_000;

/// What the host sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "frame", rename_all = "snake_case")]
pub enum ServerFrame {
    /// The first frame.
    Hello {
        protocol: u32,
        /// A page of another build offers to load itself again.
        build: String,
        /// Another one than before: the host was started again. Cursors stay good.
        started_at_ms: i64,
        now_ms: i64,
    },
    /// Of topic `boxes`: what is new or has changed, and what is gone.
    Boxes {
        sub: u32,
        /// Counts up with each frame of the subscription, from 1.
        version: u64,
        /// These are all; else the others are as they were.
        whole: bool,
        boxes: Vec<BoxCard>,
        gone: Vec<BoxId>,
    },
    /// Of topic `threads`: the caller's threads, newest first when `whole`.
    Threads {
        sub: u32,
        version: u64,
        whole: bool,
        threads: Vec<ThreadInBox>,
        gone: Vec<ThreadId>,
    },
    /// Of topic `decisions`: what waits for the caller. `gone`: answered or over.
    Decisions {
        sub: u32,
        version: u64,
        whole: bool,
        decisions: Vec<Waiting>,
        gone: Vec<DecisionId>,
    },
    /// Of topic `thread`. The page checks that `from` is the `to` it has, unless `start` is
    /// `tail`; where it is not, it subscribes again without a cursor.
    Log {
        sub: u32,
        start: Start,
        from: Cursor,
        to: Cursor,
        updates: Vec<LogUpdate>,
        /// Whether there are rows before the first one (of a tail).
        older: bool,
        /// Present when it has changed since the last frame.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<Box<ThreadHead>>,
    },
    /// What became of a command. Without `problem` it was done; `thread` is the thread as it stands
    /// then, of a fork the new one.
    Result {
        cid: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<Problem>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<Box<ThreadShown>>,
    },
    /// The subscription is over: the thread is gone, or was never the caller's.
    Over { sub: u32, problem: Problem },
    /// Nothing else was to be said for a while, or the page asked.
    Ping { now_ms: i64 },
    /// The last frame: the sign-in was revoked, or the host ends.
    Bye { why: String },
}

/// What the page sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "frame", rename_all = "snake_case", deny_unknown_fields)]
pub enum ClientFrame {
    /// `sub` is the page's own number; one that is in use is replaced.
    Sub {
        sub: u32,
        topic: Topic,
    },
    Unsub {
        sub: u32,
    },
    /// `cid` is a number of the page's own making, unique for the sign-in: a command that is sent
    /// again with the same one is not done again, and is answered as before.
    Cmd {
        cid: String,
        command: Command,
    },
    /// Answered by a ping at once.
    Ping,
    /// The page is in front of a person (seen, with the keyboard's focus, used a moment ago), who
    /// looks at this thread, or at none. Said anew at least every [`FRONT_MS`]; a page that does
    /// not say it is not in front. What happens in front of somebody is told to no device (C111).
    Front {
        #[serde(default)]
        #[cfg_attr(test, ts(optional))]
        thread: Option<ThreadId>,
    },
}

/// What can be subscribed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "topic", rename_all = "snake_case", deny_unknown_fields)]
pub enum Topic {
    Boxes,
    Threads,
    /// Whoever subscribes is taken for a person who looks: connections of boxes that nobody
    /// allowed wait for an answer meanwhile.
    Decisions,
    Thread {
        thread: ThreadId,
        /// Where the page stands; absent: it has nothing.
        #[serde(default)]
        #[cfg_attr(test, ts(optional))]
        after: Option<Cursor>,
    },
}

/// What a page wants done quickly; everything else goes by REST.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Prompts, steers, cancels, sets options, edits the queue, ….
    Thread { thread: ThreadId, act: ThreadAct },
    /// Chooses an option; the first answer wins.
    Answer {
        decision: DecisionId,
        option: String,
    },
    /// Fills in a form, declines it, or takes a request away; the first answer wins.
    AnswerForm {
        decision: DecisionId,
        answer: FormAnswer,
    },
}
