//! JSON-RPC 2.0 as the editor speaks it: one message a line, lines bounded.

use serde_json::{Value, json};

/// Longest line an editor may send; a prompt may carry images.
pub const LINE_BYTES_MAX: usize = 32 << 20;

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
pub const NOT_FOUND: i64 = -32002;

/// One message of the editor.
#[derive(Debug, PartialEq)]
pub enum Message {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// To a request of ours.
    Response {
        id: i64,
        result: Value,
    },
    /// What is none, and what to answer, if anything.
    Garbage(Option<Value>),
}

impl Message {
    pub fn parse(line: &[u8]) -> Self {
        let Ok(mut message) = serde_json::from_slice::<Value>(line) else {
            return Self::Garbage(Some(error(&Value::Null, PARSE_ERROR, "this is no JSON")));
        };
        let id = message.get_mut("id").map(Value::take);
        let method = message["method"].as_str().map(str::to_owned);
        let params = message
            .get_mut("params")
            .map(Value::take)
            .unwrap_or_default();
        match (id, method) {
            (Some(id), Some(method)) => Self::Request { id, method, params },
            (None, Some(method)) => Self::Notification { method, params },
            (Some(id), None) => match (id.as_i64(), message.get_mut("result")) {
                (Some(id), Some(result)) => Self::Response {
                    id,
                    result: result.take(),
                },
                // An error, or to nothing we asked.
                (Some(_) | None, _) => Self::Garbage(None),
            },
            (None, None) => Self::Garbage(Some(error(
                &Value::Null,
                INVALID_REQUEST,
                "this is no message",
            ))),
        }
    }
}

pub fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub fn error(id: &Value, code: i64, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})
}

pub fn request(id: i64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Puts lines together.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    too_long: bool,
}

impl Lines {
    /// The messages that are whole now.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Message> {
        let mut messages = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, whole) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            if self.begun.len() + text.len() > LINE_BYTES_MAX {
                self.begun.clear();
                self.too_long = true;
            }
            if !self.too_long {
                self.begun.extend_from_slice(text);
            }
            if whole {
                messages.extend(self.end());
            }
        }
        messages
    }

    fn end(&mut self) -> Option<Message> {
        let line = std::mem::take(&mut self.begun);
        if std::mem::take(&mut self.too_long) {
            let text = "a line is longer than 32 MiB";
            return Some(Message::Garbage(Some(error(
                &Value::Null,
                INVALID_REQUEST,
                text,
            ))));
        }
        (!line.trim_ascii().is_empty()).then(|| Message::parse(&line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_any_pieces() {
        let mut lines = Lines::default();
        assert_eq!(lines.take(b"{\"id\":1,\"meth"), []);
        let messages =
            lines.take(b"od\":\"a\"}\n\n{\"method\":\"b\"}\n{\"id\":7,\"result\":{}}\n{");
        assert_eq!(
            messages,
            [
                Message::Request {
                    id: json!(1),
                    method: "a".into(),
                    params: Value::Null
                },
                Message::Notification {
                    method: "b".into(),
                    params: Value::Null
                },
                Message::Response {
                    id: 7,
                    result: json!({})
                },
            ]
        );
    }

    #[test]
    fn garbage_is_answered_and_the_next_line_is_heard() {
        let mut lines = Lines::default();
        let [Message::Garbage(Some(told)), Message::Notification { .. }] =
            &lines.take(b"nonsense\n{\"method\":\"b\"}\n")[..]
        else {
            panic!("not one error and one notification");
        };
        assert_eq!(told["error"]["code"], PARSE_ERROR);
        assert_eq!(lines.take(&vec![b'x'; LINE_BYTES_MAX + 1]), []);
        let [Message::Garbage(Some(told)), Message::Notification { .. }] =
            &lines.take(b"xx\n{\"method\":\"b\"}\n")[..]
        else {
            panic!("not one error and one notification");
        };
        assert_eq!(told["error"]["code"], INVALID_REQUEST);
    }
}
