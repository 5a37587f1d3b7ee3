//! What a request must be like; the real API is as strict.

use crate::rig::Recorded;
use flate2::read::GzDecoder;
use http::StatusCode;
use serde_json::Value;
use std::collections::HashSet;
use std::io::Read as _;

const API_VERSION: &str = "2023-06-01";
const JSON_BYTES_MAX: u64 = 64 << 20;

/// A request the model server did not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    /// `<method> <path>`
    pub request: String,
    pub why: String,
}

impl Refusal {
    pub(crate) fn of(head: &Recorded, status: StatusCode, why: impl Into<String>) -> Self {
        Self {
            status,
            request: format!("{} {}", head.method, head.path),
            why: why.into(),
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        if self.status == StatusCode::UNAUTHORIZED {
            "authentication_error"
        } else {
            "invalid_request_error"
        }
    }
}

/// A JSON body of a request to Anthropic's API.
pub(crate) fn json(head: &Recorded, body: &[u8]) -> Result<Value, Refusal> {
    if head.header("anthropic-version") != Some(API_VERSION) {
        let why = format!("no `anthropic-version: {API_VERSION}`");
        return Err(Refusal::of(head, StatusCode::BAD_REQUEST, why));
    }
    any_json(head, body)
}

/// A JSON body in one of the encodings agents use.
pub(crate) fn any_json(head: &Recorded, body: &[u8]) -> Result<Value, Refusal> {
    let refuse = |why: String| Refusal::of(head, StatusCode::BAD_REQUEST, why);
    let kind = head.header("content-type").unwrap_or_default();
    if !kind.starts_with("application/json") {
        return Err(refuse(format!("content type `{kind}`")));
    }
    let plain = match head.header("content-encoding") {
        None | Some("identity") => body.to_vec(),
        Some("gzip") => unpacked(GzDecoder::new(body)).map_err(refuse)?,
        Some("zstd") => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(body);
            unpacked(decoder.map_err(|error| refuse(format!("zstd: {error}")))?).map_err(refuse)?
        }
        Some(other) => {
            let why = format!("content encoding `{other}`");
            return Err(Refusal::of(head, StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
    };
    serde_json::from_slice(&plain).map_err(|error| refuse(format!("not JSON: {error}")))
}

fn unpacked(packed: impl std::io::Read) -> Result<Vec<u8>, String> {
    let mut plain = Vec::new();
    let read = packed.take(JSON_BYTES_MAX).read_to_end(&mut plain);
    read.map_err(|error| format!("it cannot be unpacked: {error}"))?;
    Ok(plain)
}

/// The body of `POST /v1/messages`.
pub(crate) fn messages(head: &Recorded, body: &[u8]) -> Result<Value, Refusal> {
    let body = json(head, body)?;
    let refuse = |why: String| Refusal::of(head, StatusCode::BAD_REQUEST, why);
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err(refuse("`model` is missing".to_owned()));
    }
    if body["max_tokens"].as_u64().is_none_or(|tokens| tokens == 0) {
        return Err(refuse("`max_tokens` is missing".to_owned()));
    }
    let messages = body["messages"]
        .as_array()
        .filter(|messages| !messages.is_empty());
    let messages = messages.ok_or_else(|| refuse("`messages` is missing or empty".to_owned()))?;
    conversation(messages).map_err(refuse)?;
    Ok(body)
}

/// Roles in order, and every tool call answered in the message after it.
fn conversation(messages: &[Value]) -> Result<(), String> {
    let role = |message: &Value| message["role"].as_str().unwrap_or_default().to_owned();
    if messages.first().map(role).as_deref() != Some("user") {
        return Err("the first message is not the user's".to_owned());
    }
    if messages.last().map(role).as_deref() == Some("assistant") {
        return Err("the last message is the assistant's".to_owned());
    }
    let mut open: HashSet<String> = HashSet::new();
    for (place, message) in messages.iter().enumerate() {
        let role = role(message);
        if !["user", "assistant", "system"].contains(&role.as_str()) {
            return Err(format!("message {place} has role `{role}`"));
        }
        let content = &message["content"];
        if !content.is_string() && content.as_array().is_none_or(Vec::is_empty) {
            return Err(format!("message {place} has no content"));
        }
        if role == "system" {
            continue;
        }
        let answered: HashSet<String> = ids(content, "tool_result", "tool_use_id");
        if let Some(stray) = answered.iter().find(|id| !open.contains(*id)) {
            return Err(format!(
                "message {place}: `tool_result` {stray} without its `tool_use`"
            ));
        }
        if role == "user" && open.iter().any(|id| !answered.contains(id)) {
            return Err(format!(
                "message {place}: a `tool_use` has no `tool_result`"
            ));
        }
        if role == "user" {
            open.clear();
        }
        open.extend(ids(content, "tool_use", "id"));
    }
    Ok(())
}

fn ids(content: &Value, kind: &str, key: &str) -> HashSet<String> {
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let of_kind = blocks.iter().filter(|block| block["type"] == kind);
    of_kind
        .filter_map(|block| block[key].as_str())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    fn head(headers: &[(&str, &str)]) -> Recorded {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Recorded {
            name: "api.anthropic.com".to_owned(),
            at: "45.33.32.100:443".parse().unwrap(),
            sni: None,
            version: "HTTP/1.1".to_owned(),
            method: "POST".to_owned(),
            path: "/v1/messages?beta=true".to_owned(),
            headers: headers.iter().map(pair).collect(),
            body_bytes: 0,
            complete: true,
        }
    }

    pub(crate) fn json_head() -> Recorded {
        head(&[
            ("content-type", "application/json"),
            ("anthropic-version", "2023-06-01"),
        ])
    }

    fn body(messages: &Value) -> Vec<u8> {
        json!({"model": "m", "max_tokens": 1, "messages": messages})
            .to_string()
            .into_bytes()
    }

    #[test]
    fn a_conversation_in_order_is_taken() {
        let good = json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Bash"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
        ]);
        assert!(messages(&json_head(), &body(&good)).is_ok());
    }

    #[test]
    fn a_broken_conversation_is_refused_with_the_reason() {
        let why = |value: Value| messages(&json_head(), &body(&value)).unwrap_err().why;
        let call =
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "B"}]});
        let user = json!({"role": "user", "content": "x"});
        assert_eq!(why(json!([])), "`messages` is missing or empty");
        assert_eq!(
            why(json!([call, user])),
            "the first message is not the user's"
        );
        assert_eq!(
            why(json!([user, call])),
            "the last message is the assistant's"
        );
        assert_eq!(
            why(json!([user, call, user])),
            "message 2: a `tool_use` has no `tool_result`"
        );
        let stray = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "zz"}]});
        assert_eq!(
            why(json!([user, call, stray])),
            "message 2: `tool_result` zz without its `tool_use`"
        );
        assert_eq!(
            why(json!([{"role": "user", "content": "x"}, {"role": "robot", "content": "x"}])),
            "message 1 has role `robot`"
        );
    }

    #[test]
    fn encodings_are_undone_or_refused_aloud() {
        let plain = body(&json!([{"role": "user", "content": "go"}]));
        let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut zipped, &plain).unwrap();
        let zipped = zipped.finish().unwrap();
        let mut with = json_head();
        with.headers
            .push(("content-encoding".to_owned(), "gzip".to_owned()));
        assert!(messages(&with, &zipped).is_ok());
        with.headers.last_mut().unwrap().1 = "br".to_owned();
        assert_eq!(messages(&with, &zipped).unwrap_err().status, 415);
    }
}
