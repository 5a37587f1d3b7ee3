//! Full text search over what was said and done.

use crate::{BoxId, BoxName, ThreadId};
use serde::{Deserialize, Serialize};

/// Longest question, in bytes.
pub const WORDS_BYTES_MAX: usize = 1000;
/// Most hits of one answer.
pub const HITS_MAX: u32 = 200;

/// What is looked for, among what the caller owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct SearchAsk {
    /// All of these words; the last may be the beginning of one. Those between double quotes stand
    /// side by side.
    pub words: String,
    #[serde(default)]
    pub name: Option<BoxName>,
    #[serde(default)]
    pub thread: Option<ThreadId>,
    #[serde(default)]
    pub kind: Option<SearchKind>,
    #[serde(default)]
    pub order: SearchOrder,
    /// At most [`HITS_MAX`].
    pub limit: u32,
}

/// Who said it, or what was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    /// What a person asked.
    Prompt,
    /// What an agent said.
    Text,
    /// What its tools were called and gave back.
    Tool,
    /// Commands, and what they printed.
    Command,
}

impl SearchKind {
    pub const ALL: [Self; 4] = [Self::Prompt, Self::Text, Self::Tool, Self::Command];

    pub fn word(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Text => "text",
            Self::Tool => "tool",
            Self::Command => "command",
        }
    }

    /// # Errors
    /// What it should be.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.word() == text);
        found.ok_or_else(|| "`prompt`, `text`, `tool` or `command`".to_owned())
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchOrder {
    /// Rare words in short rows first.
    #[default]
    Relevance,
    Newest,
}

/// A row that has the words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Hit {
    pub box_id: BoxId,
    pub name: BoxName,
    pub thread: ThreadId,
    /// Of the thread.
    pub title: String,
    pub agent: String,
    pub epoch: u32,
    pub seq: u64,
    /// UTC, milliseconds since 1970.
    pub at_ms: i64,
    pub kind: SearchKind,
    /// The text around the words.
    pub snippet: Vec<SnippetPart>,
}

/// A piece of a snippet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct SnippetPart {
    pub text: String,
    /// It is one of the words looked for.
    #[serde(default)]
    pub found: bool,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Found {
    pub hits: Vec<Hit>,
    /// There are more than the answer may have.
    #[serde(default)]
    pub more: bool,
    /// Threads from before there was a search that are not taken in yet.
    #[serde(default)]
    pub threads_left: u32,
}
