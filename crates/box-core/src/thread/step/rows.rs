//! What becomes a row of the journal.

use super::Step;
use crate::acp::extension::Extension;
use crate::acp::options;
use crate::acp::update::{CallUpdate, Update, Voice, reports_system_error};
use crate::thread::state::{Action, Health, Tail, TitledBy};
use box_api::thread::{Item, JournalRow, ToolStatus};
use serde_json::Value;

/// A row of text that has grown to this is followed by a new one.
const ROW_TEXT_BYTES_MAX: usize = 256 << 10;
/// Tool calls that are remembered; beyond, finished ones are forgotten.
const CALLS_MAX: usize = 1000;
/// How much of what the agent said is remembered for lists.
const SAID_BYTES_MAX: usize = 800;
/// Longest title of a thread.
const TITLE_CHARS_MAX: usize = 100;

impl Step<'_> {
    pub(super) fn append(&mut self, item: Item) {
        let (seq, at_ms) = (self.next_seq(), self.now_ms);
        self.actions
            .push(Action::Append(JournalRow { seq, at_ms, item }));
    }

    pub(super) fn notice(&mut self, text: impl Into<String>) {
        self.append(Item::Notice { text: text.into() });
    }

    /// The number of a new row; the one before grows no more.
    pub(super) fn next_seq(&mut self) -> u64 {
        self.state.tail = None;
        self.state.next_seq += 1;
        self.state.next_seq - 1
    }

    pub(super) fn update(&mut self, params: Value) {
        if self.is_repeated(&params) {
            return;
        }
        if let Some(options) = options::offered(&params["update"]) {
            self.state.offer.told(options);
        }
        if let Some(turn) = self.state.turn.as_mut().filter(|turn| turn.rpc.is_some()) {
            turn.prompt = None;
            if reports_system_error(&params) {
                turn.health = Health::SystemError;
            }
        }
        match Update::parse(params) {
            Some(Update::Say {
                voice,
                text,
                message,
            }) => self.say(voice, &text, message),
            Some(Update::Call(call)) => self.call(call),
            Some(Update::Title { title, item }) => {
                if let Some(title) = title.filter(|_| self.state.titled_by == TitledBy::Agent) {
                    self.retitle(&title);
                }
                self.append(item);
            }
            Some(Update::Row(Item::Mode { mode })) => {
                self.state.offer.mode_is(&mode);
                self.mode(mode);
            }
            Some(Update::Row(item)) => self.append(item),
            None => {}
        }
    }

    pub(super) fn extension(&mut self, meaning: &Extension, item: Item) {
        match meaning {
            Extension::LimitReached { resets_at_ms } => {
                self.state.limit_resets_at_ms = *resets_at_ms;
            }
            Extension::Background { tasks } => return self.background(tasks.clone()),
            Extension::Woke(woke) => return self.woke(woke.clone()),
            Extension::Works if self.state.turn.is_none() => self.state.background.wakes(),
            Extension::Rests => self.state.background.rests(),
            Extension::Works | Extension::Other => {}
        }
        self.append(item);
    }

    /// The thread's title: the first line that is not empty, bounded. Files that come with a prompt are
    /// named before it and are not what it is about.
    pub(super) fn retitle(&mut self, text: &str) {
        let own = text
            .strip_prefix("<attachments>\n")
            .and_then(|rest| rest.split_once("</attachments>\n"));
        let text = own.map_or(text, |(_, own)| own);
        let line = text
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default();
        let title: String = line
            .chars()
            .filter(|c| !c.is_control())
            .take(TITLE_CHARS_MAX)
            .collect();
        if !title.is_empty() {
            self.state.title = title;
        }
    }

    pub(super) fn mode(&mut self, mode: String) {
        if self.state.mode.as_deref() != Some(mode.as_str()) {
            self.state.mode = Some(mode.clone());
            self.append(Item::Mode { mode });
        }
    }

    fn say(&mut self, voice: Voice, text: &str, message: Option<String>) {
        if voice == Voice::Text {
            self.remember_said(text);
        }
        let mut rest = text;
        while !rest.is_empty() {
            let same = |tail: &&Tail| {
                let room = tail.bytes + (rest.len() as u64) <= ROW_TEXT_BYTES_MAX as u64;
                tail.voice == voice && tail.message == message && room
            };
            if let Some(tail) = self.state.tail.as_ref().filter(same) {
                let (seq, from_byte) = (tail.seq, tail.bytes);
                let text = rest.to_owned();
                let bytes = from_byte + text.len() as u64;
                self.actions.push(Action::Grow {
                    seq,
                    from_byte,
                    text,
                });
                self.state.tail = Some(Tail {
                    seq,
                    bytes,
                    voice,
                    message,
                });
                return;
            }
            let (head, tail) = rest.split_at(rest.floor_char_boundary(ROW_TEXT_BYTES_MAX));
            self.say_anew(voice, head, message.clone());
            rest = tail;
        }
    }

    /// The end of what it said, for lists.
    fn remember_said(&mut self, text: &str) {
        let said = &mut self.state.said;
        let from = text.ceil_char_boundary(text.len().saturating_sub(SAID_BYTES_MAX));
        said.push_str(&text[from..]);
        let surplus = said.len().saturating_sub(SAID_BYTES_MAX);
        let surplus = said.ceil_char_boundary(surplus);
        said.drain(..surplus);
    }

    fn say_anew(&mut self, voice: Voice, text: &str, message: Option<String>) {
        let bytes = text.len() as u64;
        let text = text.to_owned();
        self.append(match voice {
            Voice::Text => Item::Text { text },
            Voice::Thought => Item::Thought { text },
        });
        self.state.tail = Some(Tail {
            seq: self.state.last_seq(),
            bytes,
            voice,
            message,
        });
    }

    /// Some agents tell a call first in an update or in the request that asks for it.
    pub(super) fn call(&mut self, update: CallUpdate) {
        if let Some(raw) = update.only_detail {
            return self.append(Item::Detail { raw });
        }
        let known = self.state.calls.get(&update.call).copied();
        let status = update.status.or(known).unwrap_or(ToolStatus::Pending);
        let CallUpdate {
            call,
            title,
            tool,
            content,
            ..
        } = update;
        self.remember(&call, status);
        self.append(match known {
            Some(_) => Item::ToolUpdate {
                call,
                title,
                status: update.status,
                content,
            },
            None => Item::ToolCall {
                title: title.unwrap_or_else(|| call.clone()),
                tool: tool.unwrap_or_else(|| "other".to_owned()),
                call,
                status,
                content,
            },
        });
    }

    /// Whether the call has been told already.
    pub(super) fn knows_call(&self, call: &str) -> bool {
        self.state.calls.contains_key(call)
    }

    fn remember(&mut self, call: &str, status: ToolStatus) {
        if self.state.calls.len() >= CALLS_MAX {
            self.forget_finished_calls();
        }
        if self.state.calls.len() < CALLS_MAX || self.knows_call(call) {
            self.state.calls.insert(call.to_owned(), status);
        }
    }

    pub(super) fn forget_finished_calls(&mut self) {
        self.state.calls.retain(|_, status| is_open(*status));
    }

    /// Closes the calls nobody will close any more.
    pub(super) fn interrupt_calls(&mut self) {
        for (call, status) in std::mem::take(&mut self.state.calls) {
            if is_open(status) {
                let status = Some(ToolStatus::Interrupted);
                self.append(Item::ToolUpdate {
                    call,
                    title: None,
                    status,
                    content: Vec::new(),
                });
            }
        }
    }
}

fn is_open(status: ToolStatus) -> bool {
    matches!(status, ToolStatus::Pending | ToolStatus::Running)
}
