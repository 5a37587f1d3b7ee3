//! The other side of stdin and stdout: JSON-RPC 2.0, one message a line.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Longest line taken; longer ones are answered with an error and passed over.
const LINE_BYTES_MAX: u64 = 32 << 20;
/// Messages read ahead.
const MESSAGES_MAX: usize = 16;

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const NO_SESSION: i64 = -32002;

/// What came from the client.
#[derive(Debug)]
pub(crate) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// An answer to a request of ours: a result, or an error object.
    Response {
        id: i64,
        outcome: Result<Value, Value>,
    },
    /// A line that is no message.
    Garbage,
}

/// The client closed our stdin or does not read our stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

#[derive(Debug)]
pub(crate) struct Client {
    incoming: Receiver<Incoming>,
    next_id: i64,
    gone: bool,
}

impl Client {
    pub(crate) fn on_stdio() -> Self {
        let (messages, incoming) = sync_channel(MESSAGES_MAX);
        std::thread::spawn(move || read_lines(&messages));
        Self {
            incoming,
            next_id: 0,
            gone: false,
        }
    }

    /// The next message; waits for it.
    pub(crate) fn next(&mut self) -> Result<Incoming, Gone> {
        if self.gone {
            Err(Gone)
        } else {
            self.incoming.recv().map_err(|_| Gone)
        }
    }

    /// The next message if one comes within `wait`.
    pub(crate) fn next_within(&mut self, wait: Duration) -> Result<Option<Incoming>, Gone> {
        if self.gone {
            return Err(Gone);
        }
        match self.incoming.recv_timeout(wait) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Gone),
        }
    }

    /// Sends a request and gives its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    pub(crate) fn result(&mut self, id: &Value, result: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    pub(crate) fn error(&mut self, id: &Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }

    fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        let mut stdout = std::io::stdout().lock();
        if stdout
            .write_all(line.as_bytes())
            .and_then(|()| stdout.flush())
            .is_err()
        {
            self.gone = true;
        }
    }
}

/// A line for whoever started us.
pub(crate) fn complain(what: &str) {
    // If nobody reads it, nobody misses it.
    drop(writeln!(std::io::stderr(), "box-demo-agent: {what}"));
}

fn read_lines(messages: &SyncSender<Incoming>) {
    let mut stdin = BufReader::new(std::io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stdin)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
        {
            Ok(0) | Err(_) => return,
            Ok(_) if line.ends_with(b"\n") => {}
            // Cut off, by the end of input or by being too long.
            Ok(_) => {
                if pass_over_line(&mut stdin).is_err() {
                    return;
                }
                line.clear();
            }
        }
        if line.trim_ascii().is_empty() && line.ends_with(b"\n") {
            continue;
        }
        if messages.send(parse(&line)).is_err() {
            return;
        }
    }
}

fn pass_over_line(stdin: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = stdin.fill_buf()?;
        if buffer.is_empty() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(buffer.len(), |at| at + 1);
        stdin.consume(count);
        if end.is_some() {
            return Ok(());
        }
    }
}

fn parse(line: &[u8]) -> Incoming {
    let Ok(mut message) = serde_json::from_slice::<Value>(line) else {
        return Incoming::Garbage;
    };
    let method = message["method"].as_str().map(str::to_owned);
    let params = message
        .get_mut("params")
        .map(Value::take)
        .unwrap_or_default();
    let id = message.get("id").filter(|id| !id.is_null()).cloned();
    match (method, id) {
        (Some(method), Some(id)) => Incoming::Request { id, method, params },
        (Some(method), None) => Incoming::Notification { method, params },
        (None, Some(id)) => match (id.as_i64(), message.get_mut("error").map(Value::take)) {
            (Some(id), Some(error)) => Incoming::Response {
                id,
                outcome: Err(error),
            },
            (Some(id), None) => {
                let result = message
                    .get_mut("result")
                    .map(Value::take)
                    .unwrap_or_default();
                Incoming::Response {
                    id,
                    outcome: Ok(result),
                }
            }
            (None, _) => Incoming::Garbage,
        },
        (None, None) => Incoming::Garbage,
    }
}

#[cfg(test)]
mod tests {
    use super::{Incoming, parse};
    use serde_json::json;

    #[test]
    fn every_kind_of_message_is_told_apart() {
        let shown = |line: &str| format!("{:?}", parse(line.as_bytes()));
        assert!(
            matches!(parse(br#"{"id":"a","method":"x"}"#), Incoming::Request { id, .. } if id == json!("a"))
        );
        assert!(matches!(
            parse(br#"{"method":"x","params":{}}"#),
            Incoming::Notification { .. }
        ));
        assert!(matches!(
            parse(br#"{"id":3,"result":null}"#),
            Incoming::Response {
                id: 3,
                outcome: Ok(_)
            }
        ));
        assert!(matches!(
            parse(br#"{"id":3,"error":{}}"#),
            Incoming::Response {
                outcome: Err(_),
                ..
            }
        ));
        for garbage in [
            "",
            "{",
            "[]",
            "3",
            r#"{"id":"a","result":1}"#,
            r#"{"params":1}"#,
        ] {
            assert_eq!(shown(garbage), "Garbage", "{garbage}");
        }
    }
}
