//! A client of the demo agent. The agent runs in a network namespace without any network.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct Client {
    agent: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    next_id: i64,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) session: String,
}

/// What a person says to each kind of question.
#[derive(Clone, Copy)]
pub(crate) struct Answers {
    /// Kind of the permission option to choose.
    pub(crate) permission: &'static str,
    /// A choice of the form, or nothing: the client does not know forms.
    pub(crate) form: Option<&'static str>,
}

/// A turn as it was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) updates: Vec<Value>,
    pub(crate) requests: Vec<Value>,
    pub(crate) stop_reason: String,
}

impl Client {
    /// A session in the given mode.
    pub(crate) fn start(mode: &str) -> Self {
        Self::start_with(&["env"], mode)
    }

    pub(crate) fn start_with(before: &[&str], mode: &str) -> Self {
        let mut agent = command("unshare")
            .args(["--net", "--pid", "--fork", "--kill-child", "--"])
            .args(before)
            .args([env!("CARGO_BIN_EXE_box-demo-agent"), "--pause-ms", "0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(agent.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let messages = stdout
                .lines()
                .map(|line| serde_json::from_str(&line.unwrap()).unwrap());
            // Until the test is over and nobody listens.
            messages
                .take_while(|message: &Value| send.send(message.clone()).is_ok())
                .for_each(drop);
        });
        let stdin = agent.stdin.take();
        let folder = tempfile::tempdir().unwrap();
        let mut client = Self {
            agent,
            stdin,
            lines,
            next_id: 0,
            folder,
            session: String::new(),
        };
        let initialized = client
            .call("initialize", &json!({ "protocolVersion": 1 }))
            .unwrap();
        assert_eq!(initialized["agentInfo"]["title"], "Demo – no model");
        let cwd = json!({ "cwd": client.folder.path(), "mcpServers": [] });
        let session = client.call("session/new", &cwd).unwrap();
        session["sessionId"]
            .as_str()
            .unwrap()
            .clone_into(&mut client.session);
        let set = json!({ "sessionId": client.session, "modeId": mode });
        client.call("session/set_mode", &set).unwrap();
        client
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn next(&mut self) -> Value {
        self.lines
            .recv_timeout(DEADLINE)
            .expect("the agent said nothing in time")
    }

    /// Closes the agent's stdin and waits for its end.
    pub(crate) fn hang_up(&mut self) -> i32 {
        self.stdin = None;
        while self.lines.recv_timeout(DEADLINE).is_ok() {}
        self.agent.wait().unwrap().code().unwrap()
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> i64 {
        self.next_id += 1;
        self.send(&json!({
            "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params,
        }));
        self.next_id
    }

    /// A request whose answer comes next.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        let answer = self.next();
        assert_eq!(answer["id"], id, "{answer}");
        if answer["error"].is_null() {
            Ok(answer["result"].clone())
        } else {
            Err(answer["error"].clone())
        }
    }

    pub(crate) fn prompt(&mut self) -> i64 {
        let prompt = json!({
            "sessionId": self.session,
            "prompt": [{ "type": "text", "text": "fix my calculator" }],
        });
        self.request("session/prompt", &prompt)
    }

    pub(crate) fn cancel(&mut self) {
        let params = json!({ "sessionId": self.session });
        self.send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }));
    }

    /// A whole turn with these answers. `interfere` sees every message first and may act on it.
    pub(crate) fn turn(
        &mut self,
        answers: Answers,
        mut interfere: impl FnMut(&mut Self, &Value) -> Handled,
    ) -> Seen {
        let id = self.prompt();
        let mut seen = Seen::default();
        loop {
            let message = self.next();
            let handled = interfere(self, &message);
            if message["id"] == id && message["method"].is_null() {
                message["result"]["stopReason"]
                    .as_str()
                    .unwrap()
                    .clone_into(&mut seen.stop_reason);
                return seen;
            }
            match (message["method"].as_str(), handled) {
                (Some("session/update"), _) => {
                    assert_eq!(message["params"]["sessionId"], self.session);
                    seen.updates.push(message["params"]["update"].clone());
                }
                (Some("$/cancel_request"), _) => {}
                (Some(_), Handled::No) => {
                    let answer = answers.to(&message);
                    seen.requests.push(message);
                    self.send(&answer);
                }
                (Some(_), Handled::Yes) => seen.requests.push(message),
                (None, _) => panic!("unexpected: {message}"),
            }
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("demo-calculator").join(name)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.agent.kill());
        drop(self.agent.wait());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handled {
    No,
    Yes,
}

impl Answers {
    fn to(self, request: &Value) -> Value {
        let id = &request["id"];
        let params = &request["params"];
        match (request["method"].as_str().unwrap(), self.form) {
            ("session/request_permission", _) => {
                let options = params["options"].as_array().unwrap();
                let option = options
                    .iter()
                    .find(|option| option["kind"] == self.permission)
                    .unwrap();
                let outcome = json!({ "outcome": "selected", "optionId": option["optionId"] });
                json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": outcome } })
            }
            ("elicitation/create", Some(choice)) => {
                let field = &params["requestedSchema"]["properties"]["by_zero"];
                let known = field["oneOf"].as_array().unwrap();
                assert!(known.iter().any(|one| one["const"] == choice), "{field}");
                let result = json!({ "action": "accept", "content": { "by_zero": choice } });
                json!({ "jsonrpc": "2.0", "id": id, "result": result })
            }
            _ => {
                let error = json!({ "code": -32601, "message": "method not found" });
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            }
        }
    }
}

impl Seen {
    /// All text of one kind of chunk.
    pub(crate) fn text(&self, kind: &str) -> String {
        let chunks = self
            .updates
            .iter()
            .filter(|update| update["sessionUpdate"] == kind);
        chunks
            .map(|update| update["content"]["text"].as_str().unwrap())
            .collect()
    }

    /// Title, last status and last text of every tool call, in order.
    pub(crate) fn calls(&self) -> Vec<(String, String, String)> {
        let mut calls: Vec<(Value, String, String, String)> = Vec::new();
        for update in &self.updates {
            let status = update["status"].as_str().unwrap_or_default().to_owned();
            let id = &update["toolCallId"];
            match update["sessionUpdate"].as_str().unwrap() {
                "tool_call" => {
                    let title = update["title"].as_str().unwrap().to_owned();
                    calls.push((id.clone(), title, status, String::new()));
                }
                "tool_call_update" => {
                    let call = calls.iter_mut().find(|call| call.0 == *id).unwrap();
                    call.2 = status;
                    let text = update["content"][0]["content"]["text"].as_str();
                    text.unwrap_or_default().clone_into(&mut call.3);
                }
                _ => {}
            }
        }
        calls
            .into_iter()
            .map(|(_, title, status, text)| (title, status, text))
            .collect()
    }

    pub(crate) fn methods(&self) -> Vec<&str> {
        self.requests
            .iter()
            .map(|request| request["method"].as_str().unwrap())
            .collect()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one home of processes in these tests"
)]
fn command(program: &str) -> Command {
    Command::new(program)
}
