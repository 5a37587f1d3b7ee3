//! Rows of a journal as they are put together: turns end where the next begins, calls that were
//! never answered are interrupted.

use box_api::thread::{Item, ToolContent, ToolStatus, TurnOutcome};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::UNIX_EPOCH;

/// Longest text of one row; the rest is cut off and said to be.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// Longest title, characters.
const TITLE_CHARS_MAX: usize = 100;
/// Longest line that says what a tool was called with, characters.
const CALL_CHARS_MAX: usize = 200;

#[derive(Debug)]
pub(super) struct Rows {
    items: Vec<(i64, Item)>,
    at_ms: i64,
    in_turn: bool,
    open: BTreeSet<String>,
    title: Option<String>,
    last_prompt: Option<String>,
}

impl Rows {
    pub(super) fn new(now_ms: i64) -> Self {
        Self {
            items: Vec::new(),
            at_ms: now_ms,
            in_turn: false,
            open: BTreeSet::new(),
            title: None,
            last_prompt: None,
        }
    }

    /// What follows happened then; a line without a time happened with the one before.
    pub(super) fn at(&mut self, time: &Value) {
        let at = time
            .as_str()
            .and_then(|text| humantime::parse_rfc3339(text).ok());
        let since = at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        if let Some(at_ms) = since.and_then(|since| i64::try_from(since.as_millis()).ok()) {
            self.at_ms = at_ms;
        }
    }

    pub(super) fn call_it(&mut self, title: &str) {
        let title = one_line(title, TITLE_CHARS_MAX);
        if !title.is_empty() {
            self.title = Some(title);
        }
    }

    /// A prompt; the same twice in a row is one that was recorded twice.
    pub(super) fn prompt(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if self.last_prompt.as_deref() == Some(text) && self.in_turn {
            return;
        }
        self.end_turn();
        self.last_prompt = Some(text.to_owned());
        self.push(Item::Prompt { text: cut(text) });
        self.in_turn = true;
    }

    pub(super) fn text(&mut self, text: &str) {
        if !text.trim().is_empty() {
            // What was said since is no repetition of the prompt.
            self.last_prompt = None;
            self.push(Item::Text { text: cut(text) });
        }
    }

    pub(super) fn thought(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.push(Item::Thought { text: cut(text) });
        }
    }

    /// A tool is called: by its name there, with what.
    pub(super) fn call(&mut self, call: &str, name: &str, input: &Value) {
        self.open.insert(call.to_owned());
        self.push(Item::ToolCall {
            call: call.to_owned(),
            title: called(name, input),
            tool: kind(name).to_owned(),
            status: ToolStatus::Running,
            content: Vec::new(),
        });
    }

    /// What a call gave.
    pub(super) fn called(&mut self, call: &str, status: ToolStatus, output: &str) {
        if !self.open.remove(call) {
            return;
        }
        let content = (!output.is_empty()).then(|| ToolContent::Text { text: cut(output) });
        self.push(Item::ToolUpdate {
            call: call.to_owned(),
            title: None,
            status: Some(status),
            content: content.into_iter().collect(),
        });
    }

    fn push(&mut self, item: Item) {
        self.items.push((self.at_ms, item));
    }

    fn end_turn(&mut self) {
        for call in std::mem::take(&mut self.open) {
            self.push(Item::ToolUpdate {
                call,
                title: None,
                status: Some(ToolStatus::Interrupted),
                content: Vec::new(),
            });
        }
        if self.in_turn {
            self.in_turn = false;
            self.push(Item::TurnEnded {
                outcome: TurnOutcome::Done,
                note: None,
            });
        }
    }

    pub(super) fn finish(&mut self) {
        self.end_turn();
    }

    pub(super) fn has_prompt(&self) -> bool {
        self.first_prompt().is_some()
    }

    fn first_prompt(&self) -> Option<&str> {
        self.items.iter().find_map(|(_, item)| {
            if let Item::Prompt { text, .. } = item {
                Some(text.as_str())
            } else {
                None
            }
        })
    }

    pub(super) fn title(&self) -> String {
        let first = || one_line(self.first_prompt().unwrap_or_default(), TITLE_CHARS_MAX);
        self.title.clone().unwrap_or_else(first)
    }

    pub(super) fn began_at_ms(&self) -> i64 {
        self.items.first().map_or(self.at_ms, |(at_ms, _)| *at_ms)
    }

    pub(super) fn into_rows(self) -> Vec<(i64, Item)> {
        self.items
    }
}

fn one_line(text: &str, chars_max: usize) -> String {
    let mut lines = text.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    line.chars()
        .filter(|c| !c.is_control())
        .take(chars_max)
        .collect()
}

fn cut(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    format!("{kept}\n… ({} bytes more)", text.len() - kept.len())
}

/// A tool and what it was called with, in a line.
fn called(name: &str, input: &Value) -> String {
    let keys = [
        "command",
        "cmd",
        "file_path",
        "path",
        "pattern",
        "query",
        "url",
        "description",
    ];
    let with = keys.iter().find_map(|key| match &input[*key] {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(words.join(" "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    });
    let name = one_line(name, CALL_CHARS_MAX);
    match with.map(|with| one_line(&with, CALL_CHARS_MAX)) {
        Some(with) if !with.is_empty() => format!("{name}: {with}"),
        Some(_) | None => name,
    }
}

/// ACP's kind of a tool, by the names Claude Code and Codex have.
fn kind(name: &str) -> &'static str {
    match name {
        "Bash" | "shell" | "exec_command" | "local_shell" | "write_stdin" => "execute",
        "Read" | "NotebookRead" | "view_image" => "read",
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" | "apply_patch" => "edit",
        "Grep" | "Glob" | "LS" => "search",
        "WebFetch" | "WebSearch" | "web_search" => "fetch",
        _ => "other",
    }
}
