//! Talks to the host as any client may: the control socket of `box_api::control`.

use box_api::control::{Hello, Outcome, Reply, Request, Welcome};
use box_api::thread::{Decision, DecisionState, Item, JournalRow, ThreadUpdate};
use box_api::{BoxName, PROTOCOL, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(crate) struct Control {
    stream: UnixStream,
}

/// The rows of a thread as a client has put them together.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Journal {
    pub(crate) rows: BTreeMap<u64, JournalRow>,
}

impl Control {
    pub(crate) fn connect(socket: &Path) -> Self {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        send(
            &mut stream,
            &Hello {
                build: "e2e".to_owned(),
                protocol: PROTOCOL,
            },
        );
        let _welcome: Welcome = receive(&mut stream);
        Self { stream }
    }

    pub(crate) fn send(&mut self, message: &impl Serialize) {
        send(&mut self.stream, message);
    }

    pub(crate) fn next(&mut self) -> Reply {
        receive(&mut self.stream)
    }

    /// Asks and waits for the end.
    pub(crate) fn ask(mut self, request: &Request) -> Result<Outcome, Problem> {
        self.send(request);
        loop {
            match self.next() {
                Reply::Done(outcome) => return Ok(outcome),
                Reply::Problem(problem) => return Err(problem),
                Reply::AnswerRefused { why, .. } => {
                    let kind = box_api::ProblemKind::Refused;
                    return Err(Problem::new(kind, "answer-refused", why));
                }
                _ => {}
            }
        }
    }

    /// Everything in the journal of a box's thread so far.
    pub(crate) fn journal(mut self, name: &str) -> Journal {
        self.attach(name);
        let mut journal = Journal::default();
        loop {
            match self.next() {
                Reply::Update(ThreadUpdate::CaughtUp { .. }) | Reply::Done(_) => return journal,
                Reply::Update(update) => journal.take(update),
                Reply::Problem(problem) => panic!("no journal of {name}: {problem:?}"),
                _ => {}
            }
        }
    }

    /// Follows a thread until its journal holds what is looked for.
    #[track_caller]
    pub(crate) fn follow_until<R>(
        mut self,
        name: &str,
        look: impl Fn(&Journal) -> Option<R>,
    ) -> (R, Journal) {
        self.attach(name);
        let mut journal = Journal::default();
        loop {
            match self.next() {
                Reply::Update(update) => journal.take(update),
                Reply::Done(outcome) => panic!("the thread of {name} ended: {outcome:?}"),
                Reply::Problem(problem) => panic!("lost the thread of {name}: {problem:?}"),
                _ => {}
            }
            if let Some(found) = look(&journal) {
                return (found, journal);
            }
        }
    }

    fn attach(&mut self, name: &str) {
        let name = BoxName::parse(name).unwrap();
        self.send(&Request::Attach(box_api::control::Attach {
            name,
            thread: None,
            after: None,
            follow: true,
        }));
    }
}

impl Journal {
    pub(crate) fn take(&mut self, update: ThreadUpdate) {
        match update {
            ThreadUpdate::Row(row) => {
                self.rows.insert(row.seq, row);
            }
            ThreadUpdate::Grew {
                seq,
                from_byte,
                text,
            } => {
                let row = self
                    .rows
                    .get_mut(&seq)
                    .expect("a row that grew was there before");
                let (Item::Text { text: old } | Item::Thought { text: old }) = &mut row.item else {
                    panic!("only texts grow: {row:?}");
                };
                let from = usize::try_from(from_byte).unwrap();
                assert!(
                    from <= old.len(),
                    "a gap in row {seq}: {} to {from}",
                    old.len()
                );
                old.truncate(from);
                old.push_str(&text);
            }
            ThreadUpdate::CaughtUp { .. } => {}
        }
    }

    /// What the agent said, in one.
    pub(crate) fn text(&self) -> String {
        let texts = self.rows.values().filter_map(|row| match &row.item {
            Item::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Decisions that were opened and not closed.
    pub(crate) fn open_decisions(&self) -> Vec<Decision> {
        let mut open = Vec::new();
        for row in self.rows.values() {
            match &row.item {
                Item::DecisionOpened(decision) if decision.state == DecisionState::Open => {
                    open.push(decision.clone());
                }
                Item::DecisionClosed { decision, .. } => {
                    open.retain(|other| other.decision != *decision);
                }
                _ => {}
            }
        }
        open
    }

    /// How the last turn ended, if it did.
    pub(crate) fn ended(&self) -> Option<(box_api::thread::TurnOutcome, Option<String>)> {
        self.rows.values().rev().find_map(|row| match &row.item {
            Item::TurnEnded { outcome, note } => Some((*outcome, note.clone())),
            _ => None,
        })
    }
}

fn send(stream: &mut UnixStream, message: &impl Serialize) {
    let body = serde_json::to_vec(message).unwrap();
    let mut frame = u32::try_from(body.len()).unwrap().to_le_bytes().to_vec();
    frame.extend_from_slice(&body);
    stream.write_all(&frame).unwrap();
}

fn receive<T: DeserializeOwned>(stream: &mut UnixStream) -> T {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut body = vec![0; usize::try_from(u32::from_le_bytes(length)).unwrap()];
    stream.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body)
        .unwrap_or_else(|error| panic!("{error} in {}", String::from_utf8_lossy(&body)))
}
