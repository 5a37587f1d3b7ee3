//! A thread's journal as a person reads it: text as it comes, reasoning folded, tool calls as lines
//! with a mark, changes as diffs, questions with numbered answers.

mod aside;
mod command;
mod decision;
mod diff;
mod screen;
mod thought;
mod tools;

use crate::output::{Ink, Paint, visible};
use crate::turn::how_ended;
use box_api::DecisionId;
use box_api::thread::{
    Decision, DecisionKind, DecisionState, Item, JournalRow, PlanEntry, ThreadUpdate,
};
pub(crate) use decision::text as decision_text;
use screen::Screen;
use std::collections::{HashMap, VecDeque};
use thought::Thought;
use tools::Call;

/// What is said about a turn, such as why it failed.
const REMARK_LINES_MAX: usize = 20;
const REMARK_CHARS_MAX: usize = 400;

/// How it is shown.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    /// Who looks, as decisions name whoever answered.
    pub(crate) owner: String,
    pub(crate) paint: Paint,
    /// Columns of the terminal; none when it is not one.
    pub(crate) columns: Option<usize>,
    pub(crate) thoughts: Thoughts,
    pub(crate) prompts: Prompts,
}

/// How reasoning is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thoughts {
    Folded,
    Full,
}

/// Whether prompts are shown; who just typed one needs no echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prompts {
    Shown,
    Hidden,
}

/// What the last printed piece was, so that different things stand apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Start,
    Prompt,
    Text(u64),
    Thought(u64),
    Tools,
    Plan,
    Decision,
    Remark,
}

/// Turns updates into text for standard output.
#[derive(Debug)]
pub(crate) struct Transcript {
    look: Look,
    screen: Screen,
    section: Section,
    thought: Option<Thought>,
    calls: HashMap<String, Call>,
    call_order: VecDeque<String>,
    plan: Vec<PlanEntry>,
    /// The newest prompt that waited.
    queued: u64,
    decisions: HashMap<DecisionId, Decision>,
}

impl Transcript {
    pub(crate) fn new(look: Look) -> Self {
        Self {
            screen: Screen::new(look.columns),
            look,
            section: Section::Start,
            thought: None,
            calls: HashMap::new(),
            call_order: VecDeque::new(),
            plan: Vec::new(),
            queued: 0,
            decisions: HashMap::new(),
        }
    }

    /// What is to be printed since the last time.
    pub(crate) fn take(&mut self) -> String {
        self.screen.take()
    }

    /// Somebody else prints: what comes next begins on a line of its own.
    pub(crate) fn break_line(&mut self) {
        self.screen.break_line();
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self) {
        self.end_thought();
        self.screen.break_line();
    }

    pub(crate) fn show(&mut self, update: &ThreadUpdate) {
        match update {
            ThreadUpdate::Row(row) => self.row(row),
            ThreadUpdate::Grew { seq, text, .. } => self.grew(*seq, text),
            ThreadUpdate::CaughtUp { .. } => {}
        }
    }

    fn row(&mut self, row: &JournalRow) {
        if !matches!(row.item, Item::Thought { .. }) {
            self.end_thought();
        }
        match &row.item {
            Item::Prompt { text } | Item::Steered { text } => self.prompt(text),
            Item::Text { text } => {
                self.enter(Section::Text(row.seq));
                self.grew(row.seq, text);
            }
            Item::Thought { text } => self.thought_begins(row.seq, text),
            Item::ToolCall {
                call,
                title,
                tool,
                status,
                content,
            } => {
                let title = if title.trim().is_empty() { tool } else { title };
                self.tool_call(call, title, *status);
                self.tool_content(call, content);
            }
            Item::ToolUpdate {
                call,
                title,
                status,
                content,
            } => {
                self.tool_update(call, title.as_deref(), *status);
                self.tool_content(call, content);
            }
            Item::Plan { entries } => self.plan(entries),
            Item::DecisionOpened(decision) => self.decision_opened(decision),
            Item::DecisionClosed {
                decision,
                state,
                by,
                note,
            } => {
                self.decision_closed(*decision, state, by.as_deref(), note.as_deref());
            }
            // How it ended is told beside the transcript.
            Item::TurnEnded { .. } => self.screen.break_line(),
            Item::Mode { .. }
            | Item::Usage { .. }
            | Item::Background { .. }
            | Item::Detail { .. } => {}
            Item::Command {
                command,
                output,
                exit,
                note,
            } => {
                let how = how_ended(*exit, note.as_deref());
                self.command(command, output, &how);
            }
            Item::Queue { waiting } => self.queue(waiting),
            Item::OptionSet {
                option,
                value,
                refused,
            } => self.option_set(option, value, refused.as_deref()),
            Item::Woke { summary, said, .. } => self.woke(summary, said.as_deref()),
            Item::Forked { from } => self.forked(*from),
            Item::WentBack { snapshot, .. } => self.went_back(snapshot),
            Item::Notice { text } => self.remark(Ink::Dim, "·", text),
            Item::Unknown { raw } => self.unknown(raw),
        }
    }

    fn thought_begins(&mut self, seq: u64, text: &str) {
        self.end_thought();
        self.enter(Section::Thought(seq));
        self.thought = Some(Thought::new(seq));
        self.grew(seq, text);
    }

    /// Text and thoughts that get longer.
    fn grew(&mut self, seq: u64, text: &str) {
        let text = visible(text);
        if let Some(thought) = self.thought.as_mut().filter(|thought| thought.seq == seq) {
            let lead = if thought.is_new() { "∴ " } else { "" };
            thought.grow(&text);
            if self.look.thoughts == Thoughts::Full {
                self.screen.stream(
                    &text,
                    &self.look.paint.with(Ink::Dim, &format!("{lead}{text}")),
                );
                return;
            }
            if self.screen.can_rewrite() {
                self.redraw_thought();
            }
            return;
        }
        if self.section != Section::Text(seq) {
            self.enter(Section::Text(seq));
        }
        self.screen.stream(&text, &text);
    }

    fn redraw_thought(&mut self) {
        let Some(thought) = &self.thought else { return };
        let key = format!("thought {}", thought.seq);
        let line = thought.folded(self.screen.columns());
        let line = self.look.paint.with(Ink::Dim, &line);
        if !self.screen.rewrite(&key, &line) {
            self.screen.changing_line(&key, &line);
        }
    }

    /// Prints a folded thought where it could not be shown while it grew.
    fn end_thought(&mut self) {
        if self.look.thoughts == Thoughts::Folded
            && !self.screen.can_rewrite()
            && let Some(thought) = &self.thought
        {
            let line = self
                .look
                .paint
                .with(Ink::Dim, &thought.folded(self.screen.columns()));
            self.screen.line(&line);
        }
        self.thought = None;
    }

    /// Text and questions stand apart from what is around them.
    fn enter(&mut self, section: Section) {
        let airy = |section| {
            matches!(
                section,
                Section::Text(_) | Section::Prompt | Section::Decision
            )
        };
        let before = std::mem::replace(&mut self.section, section);
        if before == section || before == Section::Start {
            return;
        }
        if airy(section) || airy(before) {
            self.screen.space();
        } else if matches!(before, Section::Thought(_)) && self.look.thoughts == Thoughts::Full {
            self.screen.break_line();
        }
    }

    fn prompt(&mut self, text: &str) {
        if self.look.prompts == Prompts::Hidden {
            return;
        }
        self.enter(Section::Prompt);
        for line in visible(text).lines() {
            self.screen
                .line(&self.look.paint.with(Ink::Bold, &format!("> {line}")));
        }
    }

    fn remark(&mut self, ink: Ink, mark: &str, text: &str) {
        self.enter(Section::Remark);
        let text = visible(text);
        for (index, line) in text.lines().take(REMARK_LINES_MAX).enumerate() {
            let mark = if index == 0 { mark } else { " " };
            let line: String = line.chars().take(REMARK_CHARS_MAX).collect();
            self.screen
                .line(&self.look.paint.with(ink, &format!("{mark} {line}")));
        }
    }

    /// The whole plan at first, later what changed of it.
    fn plan(&mut self, entries: &[PlanEntry]) {
        let before = std::mem::replace(&mut self.plan, entries.to_vec());
        let same_steps = before
            .iter()
            .map(|entry| &entry.text)
            .eq(entries.iter().map(|entry| &entry.text));
        let news: Vec<&PlanEntry> = if same_steps {
            let changed = entries
                .iter()
                .zip(&before)
                .filter(|(now, before)| now != before);
            changed.map(|(now, _)| now).collect()
        } else {
            entries.iter().collect()
        };
        if news.is_empty() {
            return;
        }
        self.enter(Section::Plan);
        for (index, entry) in news.into_iter().enumerate() {
            let (mark, ink) = match entry.status.as_str() {
                "completed" => ("✓", Ink::Green),
                "in_progress" => ("⟳", Ink::Cyan),
                _ => ("○", Ink::Dim),
            };
            let lead = if index == 0 { "plan" } else { "    " };
            let text = self.screen.fitting(&visible(&entry.text), 7);
            self.screen.line(&format!(
                "{lead} {} {text}",
                self.look.paint.with(ink, mark)
            ));
        }
    }

    fn decision_opened(&mut self, decision: &Decision) {
        self.decisions.insert(decision.decision, decision.clone());
        self.enter(Section::Decision);
        let mark = match decision.about {
            DecisionKind::Question => "?",
            DecisionKind::Plan => "☰",
            DecisionKind::Permission
            | DecisionKind::Network
            | DecisionKind::Push
            | DecisionKind::Budget => "⚠",
        };
        let mark = self.look.paint.with(Ink::Yellow, mark);
        self.screen
            .line(&format!("{mark} {}", visible(&decision.title)));
        for line in decision::text(decision) {
            self.screen.line(&self.look.paint.with(Ink::Dim, &line));
        }
        for line in decision::choices(decision) {
            self.screen.line(&line);
        }
    }

    fn decision_closed(
        &mut self,
        decision: DecisionId,
        state: &DecisionState,
        by: Option<&str>,
        note: Option<&str>,
    ) {
        let known = self.decisions.remove(&decision);
        let label = |option: &str| {
            let options = known.iter().flat_map(|decision| &decision.options);
            let mut found = options
                .filter(|known| known.id == option)
                .map(|known| known.label.clone());
            found.next().unwrap_or_else(|| option.to_owned())
        };
        let (ink, mut text) = match state {
            DecisionState::Answered { option } => (Ink::Green, label(option)),
            DecisionState::Cancelled => (Ink::Yellow, "withdrawn".to_owned()),
            DecisionState::Lost { reason } => (Ink::Yellow, format!("lost: {reason}")),
            DecisionState::Open => return,
        };
        if let Some(by) = by.filter(|by| *by != self.look.owner) {
            text = format!("{text} (by {by})");
        }
        if let Some(note) = note {
            text = format!("{text} – {note}");
        }
        self.section = Section::Decision;
        self.screen.line(
            &self
                .look
                .paint
                .with(ink, &format!("  → {}", visible(&text))),
        );
    }
}

#[cfg(test)]
mod tests;
