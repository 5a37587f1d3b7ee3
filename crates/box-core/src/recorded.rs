//! Conversations that agents recorded on a machine: Claude Code's
//! `~/.claude/projects/<folder>/<id>.jsonl` and Codex's `~/.codex/sessions/…/rollout-….jsonl`, read
//! line by line into rows of a journal. What is none of a conversation is passed over, what is
//! damaged is told with the number of its line, and nothing in it is believed but its words.

mod claude;
mod codex;
mod rows;

use box_api::control::{DAMAGED_TOLD_MAX, DamagedLine};
use box_api::thread::Item;
use rows::Rows;
use serde_json::Value;

/// A longer line is damaged.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Lines that are looked at to find out whose the file is.
const FIRST_LINES_MAX: usize = 50;
/// What an agent calls a conversation: it becomes part of a file's name.
const ID_CHARS_MAX: usize = 64;

/// A conversation, as it becomes a thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    pub agent: Recorder,
    /// What the agent calls it, if that can be a file's name.
    pub known_as: Option<String>,
    pub title: String,
    /// With their times, UTC milliseconds.
    pub rows: Vec<(i64, Item)>,
    /// The first of the damaged lines.
    pub damaged: Vec<DamagedLine>,
    pub damaged_count: u64,
    /// When it began, UTC milliseconds.
    pub began_at_ms: i64,
}

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorder {
    Claude,
    Codex,
}

impl Recorder {
    /// The name of its profile.
    pub fn agent(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

/// Why a file does not become a thread.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordedError {
    #[error("`{0}` is no conversation of Claude Code or Codex")]
    Foreign(String),
    #[error("`{file}` has no prompt in it{}", besides(*.damaged))]
    Empty { file: String, damaged: u64 },
}

fn besides(count: u64) -> String {
    match count {
        0 => String::new(),
        1 => "; one line of it is damaged".to_owned(),
        count => format!("; {count} lines of it are damaged"),
    }
}

/// Reads a file whose name is `file`. `now_ms` stands where a line has no time.
///
/// # Errors
/// [`RecordedError`]
pub fn read(file: &str, content: &[u8], now_ms: i64) -> Result<Recorded, RecordedError> {
    let recorder = recorder(content).ok_or_else(|| RecordedError::Foreign(file.to_owned()))?;
    let mut rows = Rows::new(now_ms);
    let mut bad = Damaged::default();
    let mut known_as = None;
    for (number, line) in (1..).zip(content.split(|byte| *byte == b'\n')) {
        let value = match parsed(line) {
            Ok(Some(value)) => value,
            Ok(None) => continue,
            Err(why) => {
                bad.note(number, why);
                continue;
            }
        };
        let told = match recorder {
            Recorder::Claude => claude::take(&value, &mut rows),
            Recorder::Codex => codex::take(&value, &mut rows),
        };
        known_as = known_as.or(told);
    }
    rows.finish();
    if !rows.has_prompt() {
        return Err(RecordedError::Empty {
            file: file.to_owned(),
            damaged: bad.count,
        });
    }
    Ok(Recorded {
        agent: recorder,
        known_as: known_as.filter(|id| is_a_name(id)),
        title: rows.title(),
        began_at_ms: rows.began_at_ms(),
        rows: rows.into_rows(),
        damaged: bad.told,
        damaged_count: bad.count,
    })
}

#[derive(Default)]
struct Damaged {
    told: Vec<DamagedLine>,
    count: u64,
}

impl Damaged {
    fn note(&mut self, line: u64, why: String) {
        self.count += 1;
        if self.told.len() < DAMAGED_TOLD_MAX {
            self.told.push(DamagedLine { line, why });
        }
    }
}

/// An object, nothing for an empty line, or what is wrong with it.
fn parsed(line: &[u8]) -> Result<Option<Value>, String> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("it is longer than {} MiB", LINE_BYTES_MAX >> 20));
    }
    match serde_json::from_slice(line) {
        Ok(value @ Value::Object(_)) => Ok(Some(value)),
        Ok(_) => Err("it is no JSON object".to_owned()),
        Err(error) => Err(format!("it is no JSON: {error}")),
    }
}

fn recorder(content: &[u8]) -> Option<Recorder> {
    let lines = content.split(|byte| *byte == b'\n').take(FIRST_LINES_MAX);
    let mut values = lines.filter_map(|line| parsed(line).ok().flatten());
    values.find_map(|value| {
        let kind = value["type"].as_str()?;
        if kind == "session_meta" || value["payload"].is_object() {
            return Some(Recorder::Codex);
        }
        let is_claude = value["sessionId"].is_string() || value["leafUuid"].is_string();
        is_claude.then_some(Recorder::Claude)
    })
}

fn is_a_name(id: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !id.is_empty() && id.len() <= ID_CHARS_MAX && id.chars().all(known) && !id.starts_with('-')
}

#[cfg(test)]
mod tests;
