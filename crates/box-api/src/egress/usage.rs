//! What an answer of a model cost, as box-egress reads it in the answers it opens up.

use super::HostName;
use crate::BoxId;
use serde::{Deserialize, Serialize};

/// Longest name of a model that is told; the rest is cut off.
pub const MODEL_BYTES_MAX: usize = 100;
/// Longest name of a conversation that is told; a longer one is none.
pub const CONVERSATION_BYTES_MAX: usize = 128;

/// Tokens, each kind counted once: what was read from a cache is no input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl Tokens {
    /// What a budget in tokens counts: everything but what came out of a cache.
    pub fn counted(&self) -> u64 {
        let written = self.output.saturating_add(self.cache_write);
        self.input.saturating_add(written)
    }

    pub fn add(&mut self, more: &Self) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cache_read = self.cache_read.saturating_add(more.cache_read);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
    }
}

/// Answers of a model to one box: of one conversation, by one model, with one credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUse {
    pub box_id: BoxId,
    pub host: HostName,
    /// The kind of the credential that was used, such as `claude`.
    pub credential: String,
    /// As the answer names it, visible ASCII; empty where it names none.
    pub model: String,
    /// What the agent calls the conversation, where its requests say. Written by the box: it is
    /// only ever looked up among the box's own threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    pub tokens: Tokens,
    /// Answers this is about.
    pub answers: u64,
    /// Answers among them without figures that could be read.
    #[serde(default)]
    pub unread: u64,
    pub at_ms: i64,
}
