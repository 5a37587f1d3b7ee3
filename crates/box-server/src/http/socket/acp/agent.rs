//! The agent a client speaks to: its sessions are threads, each followed by a request of its own.

use super::Whom;
use crate::acp::content::{Part, parts};
use crate::acp::message::{
    INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Message, NOT_FOUND, error, result,
};
use crate::acp::session::{Act, Session};
use crate::acp::{SESSIONS_MAX, abilities};
use crate::control::client::{PageWire, Spoken};
use crate::http::Web;
use crate::http::call::{ask, ask_speaking, thread_of};
use box_api::control::{
    ATTACHMENTS_MAX, Attach, AttachFile, Attached, ClientMessage, Outcome, PIECE_BYTES_MAX, Reply,
    Request, ThreadOpen, envelope,
};
use box_api::thread::Cursor;
use box_api::{Problem, ThreadId};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Replies of all threads that wait to be sent on. Whoever fills it waits.
const REPLIES_MAX: usize = 16;
/// What is said to a thread and not heard yet.
const SAID_MAX: usize = 32;
/// Attachments that lose their request one after the other.
const TAKE_UPS_MAX: u32 = 5;

/// A thread that is open.
struct Open {
    session: Session,
    say: mpsc::Sender<ClientMessage>,
    /// How the manyth following of it this is; what an older one said last counts no more.
    number: u64,
    follows: AbortHandle,
    take_ups: u32,
}

/// What a thread told: which following of it, and `None` at its end.
type Told = (ThreadId, u64, Option<Reply>);

pub(super) struct Agent {
    web: Arc<Web>,
    whom: Whom,
    sessions: Vec<Open>,
    tell: mpsc::Sender<Told>,
    hear: mpsc::Receiver<Told>,
    /// Of our requests to the client.
    number: i64,
    followings: u64,
}

impl Drop for Agent {
    fn drop(&mut self) {
        for open in &self.sessions {
            open.follows.abort();
        }
    }
}

impl Agent {
    pub(super) fn new(web: &Arc<Web>, whom: Whom) -> Self {
        let (tell, hear) = mpsc::channel(REPLIES_MAX);
        Self {
            web: Arc::clone(web),
            whom,
            sessions: Vec::new(),
            tell,
            hear,
            number: 0,
            followings: 0,
        }
    }

    /// What the client said; the lines that answer it.
    pub(super) async fn hear(&mut self, text: &str) -> Vec<Value> {
        match Message::parse(text.as_bytes()) {
            Message::Request { id, method, params } => self.request(&id, &method, &params).await,
            Message::Notification { method, params } => {
                let known = self.find(&params).filter(|_| method == "session/cancel");
                let Some(at) = known else { return Vec::new() };
                self.sessions[at].session.cancel();
                self.act(at)
            }
            Message::Response { id, result } => {
                let mut sessions = self.sessions.iter_mut();
                match sessions.position(|open| open.session.answered(id, &result)) {
                    Some(at) => self.act(at),
                    // It came too late.
                    None => Vec::new(),
                }
            }
            Message::Garbage(answer) => answer.into_iter().collect(),
        }
    }

    /// Until a thread tells something; the lines that follow. May be cancelled while it waits.
    pub(super) async fn told(&mut self) -> Vec<Value> {
        let Some((thread, number, reply)) = self.hear.recv().await else {
            // This holds a sender itself.
            return std::future::pending().await;
        };
        let mut sessions = self.sessions.iter();
        let at = sessions.position(|open| open.session.thread() == thread && open.number == number);
        let Some(at) = at else { return Vec::new() };
        let open = &mut self.sessions[at];
        match reply {
            Some(Reply::Update(update)) => {
                open.take_ups = 0;
                open.session.update(update);
            }
            Some(Reply::Decision(waiting)) => open.session.aside(waiting.decision),
            None => open.session.lost(),
            Some(
                Reply::Problem(_)
                | Reply::Progress { .. }
                | Reply::Note { .. }
                | Reply::Streams
                | Reply::Output { .. }
                | Reply::Thread { .. }
                | Reply::Net(_)
                | Reply::AnswerRefused { .. }
                | Reply::Done(_),
            ) => {}
        }
        self.act(at)
    }

    async fn request(&mut self, id: &Value, method: &str, params: &Value) -> Vec<Value> {
        match method {
            "initialize" => vec![result(id, &abilities(env!("CARGO_PKG_VERSION")))],
            "session/new" => vec![self.new_session(id).await],
            "session/load" => self.load(id, params).await,
            "session/prompt" => self.prompt(id, params).await,
            "authenticate" => vec![result(id, &json!({}))],
            other => {
                let other: String = other.chars().take(100).collect();
                let text = format!("this agent does not serve `{other}`");
                vec![error(id, METHOD_NOT_FOUND, &text)]
            }
        }
    }

    /// The folder the client names is one of its machine; the agent works in the box's workspace.
    async fn new_session(&mut self, id: &Value) -> Value {
        if self.sessions.len() >= SESSIONS_MAX {
            return full(id);
        }
        let request = Request::ThreadOpen(ThreadOpen {
            name: self.whom.name.clone(),
            agent: self.whom.agent.clone(),
            allow_all: false,
        });
        match self.ask(request, PageWire::default()).await {
            Ok(Outcome::Thread { thread }) => {
                self.open(thread, None);
                result(id, &json!({"sessionId": thread}))
            }
            Ok(_) => error(id, INTERNAL_ERROR, "the host answered something else"),
            Err(problem) => refusal(id, &problem),
        }
    }

    async fn load(&mut self, id: &Value, params: &Value) -> Vec<Value> {
        let named = params["sessionId"].as_str().unwrap_or_default();
        let there = match ThreadId::parse(named) {
            Ok(thread) => self.own(thread).await.then_some(thread),
            Err(_) => None,
        };
        let Some(thread) = there else {
            return vec![error(id, NOT_FOUND, "there is no such session")];
        };
        if let Some(at) = self.at(thread) {
            self.sessions.remove(at).follows.abort();
        }
        if self.sessions.len() >= SESSIONS_MAX {
            return vec![full(id)];
        }
        self.open(thread, Some(id.clone()));
        Vec::new()
    }

    /// Whether it is a thread of the box the token is for.
    async fn own(&self, thread: ThreadId) -> bool {
        let found = thread_of(&self.web.door.host, &self.whom.caller, thread).await;
        found.is_ok_and(|(_, record)| record.id == self.whom.box_id)
    }

    async fn prompt(&mut self, id: &Value, params: &Value) -> Vec<Value> {
        let Some(at) = self.find(params) else {
            return vec![error(id, NOT_FOUND, "there is no such session")];
        };
        match self.text(&params["prompt"]).await {
            Ok(text) if text.trim().is_empty() => {
                vec![error(id, INVALID_PARAMS, "a prompt needs a text")]
            }
            Ok(text) => {
                self.sessions[at].session.prompt(id.clone(), text);
                self.act(at)
            }
            Err(why) => vec![error(id, INVALID_PARAMS, &why)],
        }
    }

    /// A prompt as one text; its images go into the box first.
    async fn text(&self, prompt: &Value) -> Result<String, String> {
        let (mut texts, mut attached) = (Vec::new(), Vec::new());
        for part in parts(prompt)? {
            match part {
                Part::Text(text) => texts.push(text),
                Part::Image { .. } if attached.len() >= ATTACHMENTS_MAX => {
                    return Err(format!("a prompt has at most {ATTACHMENTS_MAX} images"));
                }
                Part::Image { file, content } => attached.push(self.image(file, content).await?),
            }
        }
        Ok(envelope(&attached, &texts.join("\n")))
    }

    async fn image(&self, file: String, content: Vec<u8>) -> Result<Attached, String> {
        let request = Request::AttachFile(AttachFile {
            name: self.whom.name.clone(),
            file,
            bytes: content.len() as u64,
        });
        let (give, pieces) = mpsc::channel(1);
        let wire = PageWire {
            begun: None,
            pieces: Some(pieces),
        };
        let giving = give_pieces(give, content);
        match tokio::join!(self.ask(request, wire), giving).0 {
            Ok(Outcome::Attached(attached)) => Ok(attached),
            Ok(_) => Err("the host answered something else".to_owned()),
            Err(problem) => Err(problem.title),
        }
    }

    async fn ask(&self, request: Request, wire: PageWire) -> Result<Outcome, Problem> {
        self.whom.is_still_there(&self.web).await?;
        ask(&self.web, self.whom.caller, request, wire).await
    }

    /// Begins to follow a thread.
    fn open(&mut self, thread: ThreadId, loading: Option<Value>) {
        let (say, number, follows) = self.follow(thread, None);
        self.sessions.push(Open {
            session: Session::new(thread, loading),
            say,
            number,
            follows,
            take_ups: 0,
        });
    }

    fn follow(
        &mut self,
        thread: ThreadId,
        after: Option<Cursor>,
    ) -> (mpsc::Sender<ClientMessage>, u64, AbortHandle) {
        self.followings += 1;
        let number = self.followings;
        let (say, heard) = mpsc::channel(SAID_MAX);
        let (said, mut replies) = mpsc::channel(1);
        let request = Request::Attach(Attach {
            name: self.whom.name.clone(),
            thread: Some(thread),
            after,
            follow: true,
        });
        let (web, whom, tell) = (Arc::clone(&self.web), self.whom.clone(), self.tell.clone());
        // Who sits at the client is asked about the network too.
        drop(say.try_send(ClientMessage::Person));
        let task = tokio::spawn(async move {
            let asking = async {
                whom.is_still_there(&web).await?;
                ask_speaking(&web, whom.caller, request, Spoken { said, heard }).await
            };
            let passing = pass_on(&mut replies, &tell, (thread, number));
            if let (Err(problem), ()) = tokio::join!(asking, passing) {
                tracing::debug!(%thread, why = problem.title, "a thread is followed no more");
            }
            drop(tell.send((thread, number, None)).await);
        });
        (say, number, task.abort_handle())
    }

    /// Does what a session says; the lines for the client.
    fn act(&mut self, at: usize) -> Vec<Value> {
        let mut lines = Vec::new();
        for act in self.sessions[at].session.take(&mut self.number) {
            match act {
                Act::Line(line) => lines.push(line),
                // Whom nobody hears is taken up again.
                Act::Say(message) => drop(self.sessions[at].say.try_send(message)),
                Act::TakeUp(after) => self.take_up(at, after),
            }
        }
        lines
    }

    fn take_up(&mut self, at: usize, after: Option<Cursor>) {
        self.sessions[at].take_ups += 1;
        if self.sessions[at].take_ups > TAKE_UPS_MAX {
            return;
        }
        let thread = self.sessions[at].session.thread();
        let (say, number, follows) = self.follow(thread, after);
        let open = &mut self.sessions[at];
        open.follows.abort();
        (open.say, open.number, open.follows) = (say, number, follows);
    }

    fn find(&self, params: &Value) -> Option<usize> {
        let named = params["sessionId"].as_str()?;
        self.at(ThreadId::parse(named).ok()?)
    }

    fn at(&self, thread: ThreadId) -> Option<usize> {
        let mut sessions = self.sessions.iter();
        sessions.position(|open| open.session.thread() == thread)
    }
}

/// Until all was given, or nobody takes it any more.
async fn give_pieces(give: mpsc::Sender<Vec<u8>>, content: Vec<u8>) {
    for piece in content.chunks(PIECE_BYTES_MAX) {
        if give.send(piece.to_vec()).await.is_err() {
            break;
        }
    }
}

/// What a thread tells, with which following of it that is.
async fn pass_on(
    replies: &mut mpsc::Receiver<Reply>,
    tell: &mpsc::Sender<Told>,
    (thread, number): (ThreadId, u64),
) {
    while let Some(reply) = replies.recv().await {
        if tell.send((thread, number, Some(reply))).await.is_err() {
            break;
        }
    }
}

fn full(id: &Value) -> Value {
    let text = format!("more than {SESSIONS_MAX} threads are open");
    error(id, INTERNAL_ERROR, &text)
}

fn refusal(id: &Value, problem: &Problem) -> Value {
    let text = match &problem.hint {
        Some(hint) => format!("{} ({hint})", problem.title),
        None => problem.title.clone(),
    };
    error(id, INTERNAL_ERROR, &text)
}
