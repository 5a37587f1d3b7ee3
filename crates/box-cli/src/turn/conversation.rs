//! A conversation with a thread as a state machine: what came in goes in, what to do comes out.
//! It reads and writes nothing itself.

mod commands;
mod decide;
mod fill;

use crate::turn::moves::{Action, Answers, Input, Past, Purpose};
use box_api::control::{ClientMessage, Outcome, Reply};
use box_api::thread::{
    Admitted, Cursor, Decision, DecisionState, Item, JournalRow, Position, ThreadUpdate,
    TurnOutcome,
};
use box_api::{BoxName, DecisionId, Problem, ThreadId};
use fill::{Filling, Given};
use std::collections::VecDeque;

/// 128 + `SIGINT`: left by a second Ctrl-C, the turn goes on.
const LEFT_BY_INTERRUPT: u8 = 130;
const SIGNAL_BASE: i32 = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// No prompt was seen yet.
    NotBegun,
    Running,
    /// We asked for its end.
    Cancelling,
    Ended(TurnOutcome),
}

/// What reached the host perhaps, and must reach it once.
#[derive(Debug, Default)]
struct Unconfirmed {
    answer: Option<(DecisionId, Given)>,
    prompt: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Conversation {
    purpose: Purpose,
    answers: Answers,
    past: Past,
    name: Option<BoxName>,
    thread: Option<ThreadId>,
    position: Position,
    /// Updates that wait for `CaughtUp`; none once we live in the present.
    backlog: Option<Vec<ThreadUpdate>>,
    /// Whether the first request is over and we attached again.
    taken_up: bool,
    open: VecDeque<Decision>,
    turn: Turn,
    unconfirmed: Unconfirmed,
    /// The form that is being filled in.
    filling: Option<Filling>,
    /// What the agent offers after a `/`.
    commands: Vec<commands::Command>,
    todo: Vec<Action>,
}

impl Conversation {
    /// A turn that begins now.
    pub(crate) fn run(answers: Answers) -> Self {
        Self {
            purpose: Purpose::Run,
            answers,
            past: Past::Turns(1),
            name: None,
            thread: None,
            position: Position::default(),
            backlog: None,
            taken_up: false,
            open: VecDeque::new(),
            turn: Turn::NotBegun,
            unconfirmed: Unconfirmed::default(),
            filling: None,
            commands: Vec::new(),
            todo: Vec::new(),
        }
    }

    /// A thread that is there already.
    pub(crate) fn attach(
        answers: Answers,
        past: Past,
        name: BoxName,
        thread: Option<ThreadId>,
    ) -> Self {
        Self {
            purpose: Purpose::Attach,
            past,
            name: Some(name),
            thread,
            backlog: Some(Vec::new()),
            ..Self::run(answers)
        }
    }

    pub(crate) fn name(&self) -> Option<&BoxName> {
        self.name.as_ref()
    }

    pub(crate) fn thread(&self) -> Option<ThreadId> {
        self.thread
    }

    /// Whether a person at the terminal answers and types.
    pub(crate) fn asks_a_person(&self) -> bool {
        self.answers == Answers::Person
    }

    /// Takes in what happened.
    pub(crate) fn step(&mut self, input: Input) -> Vec<Action> {
        match input {
            Input::Reply(reply) => self.hear(*reply),
            Input::Line(line) => self.typed(&line),
            Input::Silence => self.input_ended(),
            Input::Interrupt => self.interrupted(),
            Input::Terminate(signal) => {
                self.say_how_to_return();
                let code = u8::try_from(SIGNAL_BASE + signal).unwrap_or(LEFT_BY_INTERRUPT);
                self.todo.push(Action::Finish(code));
            }
            Input::Lost => self.lost(),
        }
        std::mem::take(&mut self.todo)
    }

    fn hear(&mut self, reply: Reply) {
        match reply {
            Reply::Progress { text } | Reply::Note { text } => {
                self.todo.push(Action::Progress(text));
            }
            Reply::Thread { name, thread, .. } => {
                if self.thread.is_none() && self.purpose == Purpose::Run {
                    self.todo.push(Action::Note(format!("box `{name}`")));
                }
                self.name = Some(name);
                self.thread = Some(thread);
                if self.purpose == Purpose::Run && self.turn == Turn::NotBegun {
                    self.turn = Turn::Running;
                }
            }
            Reply::Update(update) => self.update(update),
            Reply::Decision(waiting) => self.aside(waiting.decision),
            Reply::AnswerRefused { decision, why } => {
                self.todo.push(Action::Note(why));
                self.over(decision);
            }
            Reply::Done(outcome) => self.done(&outcome),
            Reply::Problem(problem) => self.todo.push(Action::Complain(problem)),
            // Not part of a conversation; a newer host may know why.
            Reply::Streams | Reply::Output { .. } | Reply::Net(_) => {}
        }
    }

    /// A decision that is no row of the journal: it was opened, told again, or is over.
    fn aside(&mut self, decision: Decision) {
        let number = decision.decision;
        let known = self.open.iter().any(|open| open.decision == number);
        match &decision.state {
            DecisionState::Open if known => {}
            DecisionState::Open => {
                let item = Item::DecisionOpened(decision.clone());
                self.todo.push(Action::Aside(item));
                self.open.push_back(decision);
                if self.open.len() == 1 {
                    self.decide_next();
                }
            }
            DecisionState::Answered { .. }
            | DecisionState::Cancelled
            | DecisionState::Lost { .. }
                if known =>
            {
                let item = Item::DecisionClosed {
                    decision: number,
                    state: decision.state,
                    by: None,
                    note: None,
                };
                self.todo.push(Action::Aside(item));
                self.over(number);
            }
            DecisionState::Answered { .. }
            | DecisionState::Cancelled
            | DecisionState::Lost { .. } => {}
        }
    }

    fn update(&mut self, update: ThreadUpdate) {
        let ThreadUpdate::CaughtUp { cursor } = update else {
            match &mut self.backlog {
                Some(backlog) => backlog.push(update),
                None => self.live(update),
            }
            return;
        };
        if let Some(backlog) = self.backlog.take() {
            self.catch_up(backlog, cursor);
        }
        self.position.admit(ThreadUpdate::CaughtUp { cursor });
    }

    /// Whether we are done when a turn is.
    fn ends_with_turn(&self) -> bool {
        match (self.purpose, self.answers) {
            (Purpose::Run, _) | (Purpose::Attach, Answers::AllowAll | Answers::Nobody) => true,
            (Purpose::Attach, Answers::Person | Answers::Elsewhere) => false,
        }
    }

    /// Shows what was missed, then sees what it means.
    fn catch_up(&mut self, backlog: Vec<ThreadUpdate>, cursor: Cursor) {
        let rebuilt = self.position.cursor().is_some() && self.position.epoch() != cursor.epoch;
        if rebuilt {
            self.todo.push(Action::Note(
                "the journal was rebuilt; this is the turn from its beginning".to_owned(),
            ));
        }
        let afresh = rebuilt || self.position.cursor().is_none();
        if afresh {
            self.position.begin_epoch(cursor.epoch);
            self.open.clear();
        }
        let shown_from = match self.past {
            Past::Turns(turns) if afresh && !rebuilt => nth_last_prompt(&backlog, turns),
            Past::Turns(_) | Past::All if rebuilt => nth_last_prompt(&backlog, 1),
            Past::Turns(_) | Past::All => 0,
        };
        for (index, update) in backlog.into_iter().enumerate() {
            let update = match self.position.admit(update) {
                Admitted::New(update) => update,
                Admitted::Seen => continue,
                Admitted::Gap => {
                    let note = "part of what the agent said could not be brought back";
                    self.todo.push(Action::Note(note.to_owned()));
                    continue;
                }
            };
            self.learn(&update);
            if index >= shown_from {
                self.show(update);
            }
        }
        self.say_again();
        self.after_catching_up();
    }

    fn after_catching_up(&mut self) {
        let over = match self.turn {
            Turn::Ended(outcome) if self.ends_with_turn() => Some(outcome.exit_code()),
            // An empty thread never does anything by itself.
            Turn::NotBegun if self.ends_with_turn() && self.purpose == Purpose::Attach => Some(0),
            Turn::Ended(_) | Turn::NotBegun | Turn::Running | Turn::Cancelling => None,
        };
        match over {
            Some(code) => self.todo.push(Action::Finish(code)),
            None => self.decide_next(),
        }
    }

    /// What the host that died may not have heard.
    fn say_again(&mut self) {
        if self.turn == Turn::Cancelling {
            self.todo.push(Action::Say(ClientMessage::CancelTurn));
        }
        if let Some((decision, given)) = self.unconfirmed.answer.clone() {
            self.todo.push(Action::Say(given.message(decision)));
        }
        if let Some(text) = self.unconfirmed.prompt.clone() {
            self.todo.push(Action::Say(ClientMessage::Prompt { text }));
        }
    }

    fn live(&mut self, update: ThreadUpdate) {
        let update = match self.position.admit(update) {
            Admitted::New(update) => update,
            Admitted::Seen => return,
            Admitted::Gap => return self.take_up(),
        };
        let asked_before = self.open.front().map(|decision| decision.decision);
        self.learn(&update);
        self.show(update);
        let asked_now = self.open.front().map(|decision| decision.decision);
        if asked_now.is_some() && asked_now != asked_before {
            self.decide_next();
        }
        if let Turn::Ended(outcome) = self.turn
            && self.ends_with_turn()
            && (self.taken_up || self.purpose == Purpose::Attach)
        {
            self.todo.push(Action::Finish(outcome.exit_code()));
        }
    }

    fn show(&mut self, update: ThreadUpdate) {
        let ended = match &update {
            ThreadUpdate::Row(JournalRow {
                item: Item::TurnEnded { outcome, note },
                ..
            }) => Some(Action::Ended {
                outcome: *outcome,
                note: note.clone(),
            }),
            ThreadUpdate::Row(_) | ThreadUpdate::Grew { .. } | ThreadUpdate::CaughtUp { .. } => {
                None
            }
        };
        self.todo.push(Action::Show(update));
        self.todo.extend(ended);
    }

    /// What an update says about the state of the turn.
    fn learn(&mut self, update: &ThreadUpdate) {
        let ThreadUpdate::Row(row) = update else {
            return;
        };
        match &row.item {
            Item::Prompt { text } => {
                if self.unconfirmed.prompt.as_ref() == Some(text) {
                    self.unconfirmed.prompt = None;
                }
                if self.turn != Turn::Cancelling {
                    self.turn = Turn::Running;
                }
            }
            Item::TurnEnded { outcome, .. } => {
                self.turn = Turn::Ended(*outcome);
                self.open.clear();
                self.unconfirmed.answer = None;
            }
            Item::DecisionOpened(decision) if decision.state == DecisionState::Open => {
                self.open.push_back(decision.clone());
            }
            Item::Detail { raw } => self.learn_commands(raw),
            Item::DecisionClosed { decision, .. } => {
                self.open.retain(|open| open.decision != *decision);
                self.unconfirmed
                    .answer
                    .take_if(|(answered, _)| answered == decision);
            }
            Item::DecisionOpened(_)
            | Item::Text { .. }
            | Item::Thought { .. }
            | Item::ToolCall { .. }
            | Item::ToolUpdate { .. }
            | Item::Plan { .. }
            | Item::Steered { .. }
            | Item::Queue { .. }
            | Item::OptionSet { .. }
            | Item::Background { .. }
            | Item::Woke { .. }
            | Item::Forked { .. }
            | Item::WentBack { .. }
            | Item::Command { .. }
            | Item::Notice { .. }
            | Item::Mode { .. }
            | Item::Usage { .. }
            | Item::Unknown { .. } => {}
        }
    }

    fn done(&mut self, outcome: &Outcome) {
        let code = match (outcome, self.turn) {
            (Outcome::Turn { outcome }, _) => outcome.exit_code(),
            (Outcome::Detached { open }, _) if !open.is_empty() => return self.leave_waiting(),
            (_, Turn::Ended(outcome)) if self.purpose == Purpose::Run => outcome.exit_code(),
            _ => 0,
        };
        self.todo.push(Action::Finish(code));
    }

    fn typed(&mut self, line: &str) {
        let line = line.trim();
        if let Some(decision) = self.asked().cloned() {
            return self.typed_answer(&decision, line);
        }
        if line.is_empty() || self.purpose == Purpose::Run {
            return;
        }
        if let Some(command) = line.strip_prefix('!') {
            return self.todo.push(Action::Shell(command.trim().to_owned()));
        }
        if line == "/" {
            return self.list_commands();
        }
        // One that must reach the host once is said again to the next; those that wait are not, for
        // nobody can tell whether they did.
        if !matches!(self.turn, Turn::Running | Turn::Cancelling) {
            self.unconfirmed.prompt = Some(line.to_owned());
        }
        self.todo.push(Action::Say(ClientMessage::Prompt {
            text: line.to_owned(),
        }));
    }

    fn input_ended(&mut self) {
        if self.answers != Answers::Person {
            return;
        }
        if !self.open.is_empty() {
            return self.leave_waiting();
        }
        match self.purpose {
            // Whatever is asked later, nobody will answer.
            Purpose::Run => self.answers = Answers::Nobody,
            Purpose::Attach => {
                self.say_how_to_return();
                self.todo.push(Action::Finish(0));
            }
        }
    }

    fn interrupted(&mut self) {
        match self.turn {
            Turn::Running => {
                self.turn = Turn::Cancelling;
                self.todo.push(Action::Say(ClientMessage::CancelTurn));
                let note = "cancelling the turn; Ctrl-C again leaves without waiting";
                self.todo.push(Action::Note(note.to_owned()));
            }
            Turn::Cancelling => {
                self.say_how_to_return();
                self.todo.push(Action::Finish(LEFT_BY_INTERRUPT));
            }
            Turn::NotBegun if self.purpose == Purpose::Run => {
                self.say_how_to_return();
                self.todo.push(Action::Finish(LEFT_BY_INTERRUPT));
            }
            Turn::NotBegun | Turn::Ended(_) => self.todo.push(Action::Finish(0)),
        }
    }

    fn lost(&mut self) {
        if let (Purpose::Run, Turn::Ended(outcome)) = (self.purpose, self.turn) {
            return self.todo.push(Action::Finish(outcome.exit_code()));
        }
        if self.name.is_none() || (self.purpose == Purpose::Run && self.thread.is_none()) {
            let problem = Problem::new(
                box_api::ProblemKind::Engine,
                "host-lost",
                "the host went away before the turn began",
            );
            let problem =
                problem.hinted("`box list` shows what was made of it; then type it again");
            return self.todo.push(Action::Complain(problem));
        }
        self.take_up();
    }

    fn take_up(&mut self) {
        self.backlog = Some(Vec::new());
        self.taken_up = true;
        self.todo.push(Action::TakeUp(self.position.cursor()));
    }

    fn say_how_to_return(&mut self) {
        let name = self.shown_name();
        let note = match self.turn {
            Turn::Running => {
                format!("the turn goes on; `box attach {name}` takes it up again")
            }
            Turn::Cancelling => {
                format!("left while the turn is being cancelled; `box attach {name}` shows its end")
            }
            Turn::NotBegun if self.purpose == Purpose::Run => {
                "left before the turn began; `box list` shows what was made".to_owned()
            }
            Turn::NotBegun | Turn::Ended(_) => return,
        };
        self.todo.push(Action::Note(note));
    }

    fn shown_name(&self) -> String {
        self.name
            .as_ref()
            .map_or_else(|| "<box>".to_owned(), ToString::to_string)
    }
}

/// Where the last `turns` turns begin.
fn nth_last_prompt(backlog: &[ThreadUpdate], turns: usize) -> usize {
    let is_prompt = |update: &ThreadUpdate| matches!(update, ThreadUpdate::Row(row) if matches!(row.item, Item::Prompt { .. }));
    let prompts = backlog.iter().enumerate().rev();
    let mut prompts = prompts.filter(|(_, update)| is_prompt(update));
    let found = prompts.by_ref().take(turns).last();
    match found {
        Some((at, _)) if prompts.next().is_some() => at,
        // All of it, with what comes before the first prompt.
        Some(_) | None => 0,
    }
}

#[cfg(test)]
mod tests;
