//! Reads what an answer of a model cost while it passes through. Nothing is held back and nothing
//! is kept but a few numbers: a scanner looks at every byte once.
//!
//! What is an answer of a model is seen by the path of its request ([`Meter::for_request`]), at
//! hosts that are opened up for a credential. Answers come as JSON or as a stream of events
//! (`text/event-stream`), of three families:
//!
//! | | figures |
//! | --- | --- |
//! | Anthropic Messages | `usage` of the message, or of `message_start` and `message_delta`; what is read from and written to the cache is beside `input_tokens` |
//! | `OpenAI` Responses, Chat Completions | `usage`, in a stream with `response.completed` or the last chunk; what was cached is part of the input |
//! | Gemini | `usageMetadata` of the answer or of each chunk; what was cached is part of the prompt, thoughts are beside the candidates |
//!
//! Each figure counts for the whole of its answer, so that of several the largest holds.

mod scan;

use crate::clock;
use crate::context::BoxContext;
use box_api::egress::usage::{CONVERSATION_BYTES_MAX, MODEL_BYTES_MAX, ModelUse, Tokens};
use box_api::egress::{Event, HostName};
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, StatusCode};
use scan::{Lines, Scanner, Value};
use std::sync::Arc;

/// A figure that is larger was not meant.
const TOKENS_MAX: u64 = 1 << 40;

/// Headers that say which conversation a request belongs to: Claude Code, Codex.
const CONVERSATIONS: [&str; 4] = [
    "x-claude-code-session-id",
    "session_id",
    "session-id",
    "conversation_id",
];

/// Reads one answer. Tells what it cost when it is over, or cut off.
pub(crate) struct Meter {
    ctx: Arc<BoxContext>,
    host: HostName,
    credential: String,
    conversation: Option<String>,
    reading: Option<Reading>,
}

/// An answer as far as it was read.
enum Reading {
    Json(Scanner, Seen),
    Events(Lines, Seen),
    /// Of a kind that is not read.
    Unread,
}

impl Meter {
    /// A meter for a request that asks a model something, which from now on asks for an answer
    /// that can be read.
    pub(crate) fn for_request(
        ctx: &Arc<BoxContext>,
        host: &HostName,
        credential: &str,
        parts: &mut Parts,
    ) -> Option<Self> {
        if parts.method != Method::POST || !asks_a_model(parts.uri.path()) {
            return None;
        }
        let conversation = conversation(&parts.headers);
        let identity = HeaderValue::from_static("identity");
        parts.headers.insert(header::ACCEPT_ENCODING, identity);
        Some(Self {
            ctx: Arc::clone(ctx),
            host: host.clone(),
            credential: credential.to_owned(),
            conversation,
            reading: None,
        })
    }

    /// The answer has begun; one that failed costs nothing.
    pub(crate) fn begins(mut self, status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        if !status.is_success() {
            return None;
        }
        self.reading = Some(reading(headers));
        Some(self)
    }

    /// The next of the answer.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        match &mut self.reading {
            Some(Reading::Json(scanner, seen)) => {
                scanner.feed(bytes, &mut |path, value| seen.take(path, &value));
            }
            Some(Reading::Events(lines, seen)) => {
                lines.feed(bytes, &mut |path, value| seen.take(path, &value));
            }
            Some(Reading::Unread) | None => {}
        }
    }
}

impl Drop for Meter {
    /// Over, or cut off: what was read until then was paid for.
    fn drop(&mut self) {
        let seen = match self.reading.take() {
            Some(Reading::Json(_, seen) | Reading::Events(_, seen)) => seen,
            Some(Reading::Unread) => Seen::default(),
            None => return,
        };
        self.ctx.tell(Event::Used(ModelUse {
            box_id: self.ctx.id,
            host: self.host.clone(),
            credential: std::mem::take(&mut self.credential),
            tokens: seen.tokens(),
            unread: u64::from(!seen.any),
            model: seen.model,
            conversation: self.conversation.take(),
            answers: 1,
            at_ms: clock::now_ms(),
        }));
    }
}

/// Whether a path is one at which models answer, whatever stands before it: gateways put their own
/// there.
fn asks_a_model(path: &str) -> bool {
    let tails = ["/v1/messages", "/responses", "/chat/completions"];
    tails.iter().any(|tail| path.ends_with(tail))
        || path.ends_with(":generateContent")
        || path.ends_with(":streamGenerateContent")
}

fn conversation(headers: &HeaderMap) -> Option<String> {
    let mut found = CONVERSATIONS.iter().filter_map(|name| headers.get(*name));
    let text = found.next()?.to_str().ok()?;
    let is_sound = !text.is_empty() && text.len() <= CONVERSATION_BYTES_MAX;
    is_sound.then(|| text.to_owned())
}

fn reading(headers: &HeaderMap) -> Reading {
    let is_packed = headers
        .get(header::CONTENT_ENCODING)
        .is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    if is_packed {
        return Reading::Unread;
    }
    if kind.starts_with("text/event-stream") {
        return Reading::Events(Lines::default(), Seen::default());
    }
    if kind.starts_with("application/json") {
        return Reading::Json(Scanner::default(), Seen::default());
    }
    Reading::Unread
}

/// Figures of one answer, by the names of the vendors.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    any: bool,
    model: String,
    /// Without what came from the cache.
    input: u64,
    /// With what came from the cache.
    prompt: u64,
    /// Part of `prompt`.
    cached: u64,
    output: u64,
    thoughts: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Seen {
    /// A value of the answer, by the names that lead to it.
    fn take(&mut self, path: &[&str], value: &Value<'_>) {
        // A message inside an event, an answer inside a gateway's.
        let path = match path {
            ["message" | "response", rest @ ..] => rest,
            all => all,
        };
        match (path, value) {
            (["model" | "modelVersion"], Value::Text(name)) => self.name(name),
            (["usage" | "usageMetadata", names @ ..], Value::Number(number)) => {
                self.figure(names, (*number).min(TOKENS_MAX));
            }
            (_, Value::Text(_) | Value::Number(_)) => {}
        }
    }

    fn name(&mut self, name: &str) {
        let shown = name.chars().filter(char::is_ascii_graphic);
        let shown: String = shown.take(MODEL_BYTES_MAX).collect();
        if !shown.is_empty() {
            self.model = shown;
        }
    }

    fn figure(&mut self, names: &[&str], number: u64) {
        let figure = match names {
            ["input_tokens"] => {
                // Both families call it so; which one it is, what stands beside it says.
                &mut self.input
            }
            ["cache_read_input_tokens"] => &mut self.cache_read,
            ["cache_creation_input_tokens"] => &mut self.cache_write,
            ["output_tokens" | "completion_tokens" | "candidatesTokenCount"] => &mut self.output,
            ["prompt_tokens" | "promptTokenCount"] => &mut self.prompt,
            [
                "input_tokens_details" | "prompt_tokens_details",
                "cached_tokens",
            ]
            | ["cachedContentTokenCount"] => &mut self.cached,
            ["thoughtsTokenCount"] => &mut self.thoughts,
            _ => return,
        };
        *figure = number.max(*figure);
        self.any = true;
    }

    fn tokens(&self) -> Tokens {
        let all = self.input.saturating_add(self.prompt);
        Tokens {
            input: all.saturating_sub(self.cached),
            output: self.output.saturating_add(self.thoughts),
            cache_read: self.cache_read.saturating_add(self.cached),
            cache_write: self.cache_write,
        }
    }
}

#[cfg(test)]
mod tests;
