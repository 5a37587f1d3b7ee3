//! One line to one JSON-RPC 2.0 message.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How much of a line that is no message is shown.
const GARBAGE_CHARS_MAX: usize = 120;
/// How much of an error's text is kept.
const ERROR_CHARS_MAX: usize = 1000;
/// Longest id of a request, bytes. It is saved as long as the request is open.
const ID_BYTES_MAX: usize = 256;
/// Most values of one message: an object of seven bytes takes hundreds once it is parsed.
const VALUES_MAX: usize = 200_000;

/// A request's id as its sender wrote it: a number, a string or null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RpcId(pub Value);

/// What the agent answered instead of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

/// What a line from the agent is.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    Request {
        id: RpcId,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// `id` is absent when it is none that this side gives out (they are whole numbers).
    Response {
        id: Option<i64>,
        outcome: Result<Value, RpcError>,
    },
    /// No JSON-RPC message; its beginning, made printable.
    Garbage {
        text: String,
    },
}

impl Incoming {
    /// `None` for an empty line, which means nothing.
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let parsed = (!has_too_many_values(line)).then(|| serde_json::from_slice(line));
        let message = match parsed {
            Some(Ok(Value::Object(message))) => classify(message),
            Some(Ok(_) | Err(_)) | None => None,
        };
        Some(message.unwrap_or_else(|| Self::Garbage {
            text: printable(line),
        }))
    }
}

fn classify(mut message: Map<String, Value>) -> Option<Incoming> {
    let id = message.remove("id");
    let params = message.remove("params").unwrap_or_default();
    match (message.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) if is_id(&id) => Some(Incoming::Request {
            id: RpcId(id),
            method,
            params,
        }),
        (Some(Value::String(method)), None) => Some(Incoming::Notification { method, params }),
        (None, Some(id)) => {
            let outcome = match (message.remove("error"), message.remove("result")) {
                (Some(error), _) if !error.is_null() => Err(RpcError::from(error)),
                (_, Some(result)) => Ok(result),
                (_, None) => return None,
            };
            Some(Incoming::Response {
                id: id.as_i64(),
                outcome,
            })
        }
        (_, _) => None,
    }
}

fn is_id(id: &Value) -> bool {
    match id {
        Value::String(text) => text.len() <= ID_BYTES_MAX,
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// Counts what begins or separates values, outside texts and without building anything.
fn has_too_many_values(line: &[u8]) -> bool {
    if line.len() <= VALUES_MAX {
        return false;
    }
    let (mut values, mut in_text, mut escaped) = (0, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    values > VALUES_MAX
}

impl From<Value> for RpcError {
    fn from(mut error: Value) -> Self {
        let text = error["message"]
            .as_str()
            .unwrap_or("an error without a text");
        Self {
            code: error["code"].as_i64().unwrap_or_default(),
            message: text.chars().take(ERROR_CHARS_MAX).collect(),
            data: error.get_mut("data").map(Value::take).unwrap_or_default(),
        }
    }
}

fn printable(line: &[u8]) -> String {
    // A character has at most four bytes, so no more of the line is looked at than is shown.
    let head = line.get(..GARBAGE_CHARS_MAX * 4).unwrap_or(line);
    let text = String::from_utf8_lossy(head);
    let mut shown: String = text
        .chars()
        .take(GARBAGE_CHARS_MAX)
        .map(|c| if c.is_control() { '·' } else { c })
        .collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(line: &str) -> Incoming {
        Incoming::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn every_kind_of_message_is_told_apart() {
        assert_eq!(
            parse(r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}"#),
            Incoming::Request {
                id: RpcId(json!("a")),
                method: "m".into(),
                params: json!({"x":1})
            }
        );
        assert_eq!(
            parse(r#"{"jsonrpc":"2.0","method":"m"}"#),
            Incoming::Notification {
                method: "m".into(),
                params: Value::Null
            }
        );
        assert_eq!(
            parse(r#"{"id":3,"result":null}"#),
            Incoming::Response {
                id: Some(3),
                outcome: Ok(Value::Null)
            }
        );
        assert_eq!(
            parse(r#"{"id":"3","error":{"code":-32000,"message":"log in","data":{"a":1}}}"#),
            Incoming::Response {
                id: None,
                outcome: Err(RpcError {
                    code: -32000,
                    message: "log in".into(),
                    data: json!({"a":1})
                })
            }
        );
        assert_eq!(Incoming::parse(b"  \t"), None);
    }

    #[test]
    fn a_message_has_a_bound_on_its_values_and_none_on_its_texts() {
        let with = |params: &str| {
            let line = format!(r#"{{"method":"m","params":{params}}}"#);
            matches!(
                Incoming::parse(line.as_bytes()),
                Some(Incoming::Notification { .. })
            )
        };
        let objects = |count: usize| format!("[{}0]", r#"{"":0},"#.repeat(count));
        assert!(with(&objects(VALUES_MAX / 3)));
        assert!(!with(&objects(VALUES_MAX)));
        let text = r#"[{,\"\\"#.repeat(VALUES_MAX);
        assert!(
            with(&format!("\"{text}\"")),
            "separators in a text are none"
        );
        assert!(!with(&format!("[\"{text}\",{}]", objects(VALUES_MAX))));
    }

    #[test]
    fn a_request_is_known_by_a_short_id() {
        let request = |id: &str| {
            let line = format!(r#"{{"id":"{id}","method":"m"}}"#);
            matches!(
                Incoming::parse(line.as_bytes()),
                Some(Incoming::Request { .. })
            )
        };
        assert!(request(&"x".repeat(ID_BYTES_MAX)));
        assert!(!request(&"x".repeat(ID_BYTES_MAX + 1)));
    }

    #[test]
    fn what_is_no_message_is_garbage_and_printable() {
        let deep = "[".repeat(100_000);
        for line in [
            "hello",
            "[]",
            "12",
            "{}",
            r#"{"id":1}"#,
            r#"{"method":7}"#,
            r#"{"id":[],"method":"m"}"#,
            &deep,
        ] {
            assert!(
                matches!(parse(line), Incoming::Garbage { .. }),
                "{line:.20}"
            );
        }
        let Some(Incoming::Garbage { text }) = Incoming::parse(b"\x1b[31mred\xff") else {
            panic!("escape codes are no message")
        };
        assert_eq!(text, "·[31mred\u{fffd}");
        let Some(Incoming::Garbage { text }) = Incoming::parse(&vec![b'x'; 1 << 20]) else {
            panic!("a megabyte of x is no message")
        };
        assert_eq!(text.chars().count(), GARBAGE_CHARS_MAX + 1);
    }
}
