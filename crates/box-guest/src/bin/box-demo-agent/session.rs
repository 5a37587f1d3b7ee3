//! What a client may ask of the demo agent, and what it remembers of each session.

use crate::LABEL;
use crate::client::{
    Client, Gone, INVALID_PARAMS, Incoming, METHOD_NOT_FOUND, NO_SESSION, PARSE_ERROR,
};
use crate::turn;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const PROTOCOL_VERSION: u32 = 1;
const SESSIONS_MAX: usize = 64;
const PROMPTS_WAITING_MAX: usize = 16;
/// How much of a prompt is repeated in answers.
const PROMPT_CHARS_SHOWN: usize = 200;

/// A conversation.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) folder: PathBuf,
    pub(crate) mode: Mode,
    /// A person said *always* once.
    pub(crate) allowed_always: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Asks a person.
    Default,
    /// Asks nothing.
    Bypass,
}

impl Mode {
    const ALL: [(Self, &'static str, &'static str); 2] = [
        (
            Self::Default,
            "default",
            "Asks before it changes what is there",
        ),
        (Self::Bypass, "bypassPermissions", "Asks nothing"),
    ];

    fn parse(id: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(_, known, _)| *known == id)
            .map(|(mode, _, _)| mode)
    }

    fn shown(self) -> Value {
        let id = Self::ALL
            .into_iter()
            .find(|(mode, _, _)| *mode == self)
            .map(|(_, id, _)| id);
        let all: Vec<Value> = Self::ALL
            .into_iter()
            .map(|(_, id, text)| json!({ "id": id, "name": id, "description": text }))
            .collect();
        json!({ "currentModeId": id, "availableModes": all })
    }
}

#[derive(Debug)]
struct Prompt {
    id: Value,
    session: String,
    text: String,
}

/// Why a turn does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Cancelled,
    Gone,
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) client: Client,
    sessions: BTreeMap<String, Session>,
    sessions_made: u32,
    prompts: VecDeque<Prompt>,
    /// Session of the turn that runs, and whether it was cancelled.
    running: Option<(String, bool)>,
    /// Answers to our requests that nobody took yet: at most the one that is waited for.
    answer: Option<(i64, Result<Value, Value>)>,
    pause: Duration,
    calls_made: u32,
}

impl Agent {
    pub(crate) fn new(client: Client, pause: Duration) -> Self {
        Self {
            client,
            sessions: BTreeMap::new(),
            sessions_made: 0,
            prompts: VecDeque::new(),
            running: None,
            answer: None,
            pause,
            calls_made: 0,
        }
    }

    /// Until the client is gone.
    pub(crate) fn run(mut self) {
        loop {
            let done = match self.prompts.pop_front() {
                Some(prompt) => self.turn(prompt),
                None => self.client.next().map(|message| self.take(message)),
            };
            if done.is_err() {
                return;
            }
        }
    }

    fn turn(&mut self, prompt: Prompt) -> Result<(), Gone> {
        let Prompt { id, session, text } = prompt;
        self.running = Some((session.clone(), false));
        let outcome = turn::run(self, &session, &text);
        self.running = None;
        let reason = match outcome {
            Ok(()) => "end_turn",
            Err(Stop::Cancelled) => "cancelled",
            Err(Stop::Gone) => return Err(Gone),
        };
        self.client.result(&id, &json!({ "stopReason": reason }));
        Ok(())
    }

    fn take(&mut self, message: Incoming) {
        match message {
            Incoming::Request { id, method, params } => self.request(&id, &method, &params),
            Incoming::Notification { method, params } => {
                if method == "session/cancel" {
                    self.cancel(params["sessionId"].as_str().unwrap_or_default());
                }
            }
            Incoming::Response { id, outcome } => self.answer = Some((id, outcome)),
            Incoming::Garbage => {
                self.client
                    .error(&Value::Null, PARSE_ERROR, "a line that is not a message");
            }
        }
    }

    fn cancel(&mut self, session: &str) {
        if let Some((running, cancelled)) = &mut self.running
            && running == session
        {
            *cancelled = true;
        }
        let prompts = std::mem::take(&mut self.prompts);
        for prompt in prompts {
            if prompt.session == session {
                self.client
                    .result(&prompt.id, &json!({ "stopReason": "cancelled" }));
            } else {
                self.prompts.push_back(prompt);
            }
        }
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) {
        let answer = match method {
            "initialize" => Ok(initialized()),
            "session/new" => self.new_session(params),
            "session/set_mode" => self.set_mode(params),
            "session/prompt" => match self.queue(id, params) {
                // Answered when the turn is over.
                Ok(()) => return,
                Err(error) => Err(error),
            },
            _ => Err((
                METHOD_NOT_FOUND,
                format!("the demo agent does not know `{method}`"),
            )),
        };
        match answer {
            Ok(result) => self.client.result(id, &result),
            Err((code, message)) => self.client.error(id, code, &message),
        }
    }

    fn new_session(&mut self, params: &Value) -> Result<Value, (i64, String)> {
        let folder = PathBuf::from(params["cwd"].as_str().unwrap_or_default());
        if !folder.is_absolute() || !folder.is_dir() {
            return Err((
                INVALID_PARAMS,
                "`cwd` is not an absolute path of a folder".to_owned(),
            ));
        }
        if self.sessions.len() >= SESSIONS_MAX {
            return Err((
                INVALID_PARAMS,
                format!("{SESSIONS_MAX} sessions are enough for a demo"),
            ));
        }
        self.sessions_made += 1;
        let id = format!("demo-{}-{}", std::process::id(), self.sessions_made);
        let session = Session {
            folder,
            mode: Mode::Default,
            allowed_always: false,
        };
        let modes = session.mode.shown();
        self.sessions.insert(id.clone(), session);
        Ok(json!({ "sessionId": id, "modes": modes }))
    }

    fn set_mode(&mut self, params: &Value) -> Result<Value, (i64, String)> {
        let wanted = params["modeId"].as_str().unwrap_or_default();
        let session = params["sessionId"]
            .as_str()
            .and_then(|id| self.sessions.get_mut(id));
        let session = session.ok_or((NO_SESSION, "no such session".to_owned()))?;
        session.mode = Mode::parse(wanted).ok_or((
            INVALID_PARAMS,
            format!("the demo agent has no mode `{wanted}`"),
        ))?;
        Ok(json!({}))
    }

    fn queue(&mut self, id: &Value, params: &Value) -> Result<(), (i64, String)> {
        let session = params["sessionId"].as_str().unwrap_or_default();
        if !self.sessions.contains_key(session) {
            return Err((NO_SESSION, "no such session".to_owned()));
        }
        if self.prompts.len() >= PROMPTS_WAITING_MAX {
            return Err((
                INVALID_PARAMS,
                format!("{PROMPTS_WAITING_MAX} prompts wait already"),
            ));
        }
        let blocks = params["prompt"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let text = blocks
            .iter()
            .find_map(|block| block["text"].as_str())
            .unwrap_or_default();
        let text = text.chars().take(PROMPT_CHARS_SHOWN).collect();
        self.prompts.push_back(Prompt {
            id: id.clone(),
            session: session.to_owned(),
            text,
        });
        Ok(())
    }

    // What a turn needs of the agent.

    /// The session as it is now; a mode may change in mid-turn.
    pub(crate) fn session(&self, id: &str) -> Session {
        let nothing = Session {
            folder: "/".into(),
            mode: Mode::Default,
            allowed_always: false,
        };
        // A turn's session exists: it was checked when its prompt came, and none is ever dropped.
        self.sessions.get(id).cloned().unwrap_or(nothing)
    }

    pub(crate) fn allow_always(&mut self, id: &str) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.allowed_always = true;
        }
    }

    /// An id for a tool call, used once.
    pub(crate) fn new_call(&mut self) -> String {
        self.calls_made += 1;
        format!("demo-call-{}", self.calls_made)
    }

    pub(crate) fn update(&mut self, session: &str, update: &Value) {
        let params = json!({ "sessionId": session, "update": update });
        self.client.notify("session/update", &params);
    }

    /// Lets a person see the last thing before the next comes.
    pub(crate) fn pause(&mut self) -> Result<(), Stop> {
        self.listen_for(self.pause)
    }

    /// Takes what comes from the client for so long.
    pub(crate) fn listen_for(&mut self, wait: Duration) -> Result<(), Stop> {
        let until = Instant::now() + wait;
        loop {
            if self
                .running
                .as_ref()
                .is_some_and(|(_, cancelled)| *cancelled)
            {
                return Err(Stop::Cancelled);
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.client.next_within(left)? {
                Some(message) => self.take(message),
                None => return Ok(()),
            }
        }
    }

    /// Asks the client and waits for its answer as long as it takes; a cancel ends the wait.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<Result<Value, Value>, Stop> {
        /// Only so that the wait is a loop; nothing happens when it passes.
        const LOOK_AGAIN: Duration = Duration::from_mins(1);
        self.answer = None;
        let id = self.client.request(method, params);
        loop {
            match self.answer.take() {
                Some((answered, outcome)) if answered == id => return Ok(outcome),
                // A late answer to a request of an earlier turn.
                Some(_) | None => {}
            }
            if self
                .running
                .as_ref()
                .is_some_and(|(_, cancelled)| *cancelled)
            {
                self.client
                    .notify("$/cancel_request", &json!({ "requestId": id }));
                return Err(Stop::Cancelled);
            }
            if let Some(message) = self.client.next_within(LOOK_AGAIN)? {
                self.take(message);
            }
        }
    }
}

fn initialized() -> Value {
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "agentInfo": {
            "name": "box-demo-agent",
            "title": LABEL,
            "version": env!("CARGO_PKG_VERSION"),
        },
        "agentCapabilities": {
            "loadSession": false,
            "promptCapabilities": { "image": false, "audio": false, "embeddedContext": false },
        },
        "authMethods": [],
    })
}
