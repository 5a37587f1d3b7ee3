//! A box as an agent for an editor: the Agent Client Protocol on standard input and output.
//!
//! A session is a thread. The editor is one of those who look on: what it says goes to the host,
//! what the journal says comes back, and the thread lives on when the editor is closed.

mod content;

use crate::client::{Client, unexpected};
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::Output;
use box_api::control::{Attach, ClientMessage, Outcome, Reply, Request, ThreadOpen};
use box_api::thread::Cursor;
use box_api::{BoxName, ThreadId};
use box_server::acp::message::{
    INTERNAL_ERROR, INVALID_PARAMS, Lines, METHOD_NOT_FOUND, Message, NOT_FOUND, error, result,
};
use box_server::acp::session::{Act, Session};
use box_server::acp::{SESSIONS_MAX, abilities};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::io::stdin;

/// Hosts that go away one after the other.
const TAKE_UPS_MAX: u32 = 5;
const READ_BYTES: usize = 64 << 10;

/// Whom the editor speaks to.
#[derive(Debug)]
pub(crate) struct Whom {
    pub(crate) name: BoxName,
    pub(crate) agent: String,
    pub(crate) allow_all: bool,
}

/// Serves the editor until it closes its end.
///
/// # Errors
/// A host that stays away, or an editor that reads no more.
pub(crate) fn serve(output: &mut Output, whom: Whom) -> Result<(), Complaint> {
    let mut agent = Agent {
        output,
        whom,
        sessions: Vec::new(),
        lines: Lines::default(),
        number: 0,
    };
    while agent.turn()? == Editor::There {}
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Editor {
    There,
    Gone,
}

/// A thread that is open, and the connection it is read from.
struct Open {
    session: Session,
    client: Client,
    take_ups: u32,
}

struct Agent<'a> {
    output: &'a mut Output,
    whom: Whom,
    sessions: Vec<Open>,
    lines: Lines,
    /// Of our requests.
    number: i64,
}

impl Agent<'_> {
    /// Waits until something happens, and does what follows.
    fn turn(&mut self) -> Result<Editor, Complaint> {
        let input = stdin();
        let (typed, came) = {
            let mut waited = vec![PollFd::new(&input, PollFlags::IN)];
            let clients = self.sessions.iter().map(|open| &open.client);
            waited.extend(clients.map(|client| PollFd::new(client, PollFlags::IN)));
            match rustix::event::poll(&mut waited, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => {
                    let title = "could not wait for the editor";
                    return Err(Complaint::engine("poll", title).caused_by(errno));
                }
            }
            let mut ready = waited.iter().map(|one| !one.revents().is_empty());
            (ready.next().unwrap_or(false), ready.collect::<Vec<bool>>())
        };
        for (at, _) in came.into_iter().enumerate().filter(|(_, came)| *came) {
            self.read_host(at)?;
        }
        if typed {
            return self.read_editor();
        }
        Ok(Editor::There)
    }

    fn read_editor(&mut self) -> Result<Editor, Complaint> {
        let mut piece = vec![0; READ_BYTES];
        let read = match rustix::io::read(stdin(), &mut piece) {
            Ok(read) => read,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(Editor::There),
            Err(_) => 0,
        };
        if read == 0 {
            return Ok(Editor::Gone);
        }
        for message in self.lines.take(&piece[..read]) {
            self.hear(message)?;
        }
        Ok(Editor::There)
    }

    fn read_host(&mut self, at: usize) -> Result<(), Complaint> {
        let open = &mut self.sessions[at];
        let filled = open.client.fill();
        while let Some(reply) = open.client.ready()? {
            match reply {
                Reply::Update(update) => {
                    open.take_ups = 0;
                    open.session.update(update);
                }
                Reply::Decision(waiting) => open.session.aside(waiting.decision),
                Reply::Problem(problem) => self.output.note(&problem.title),
                Reply::Progress { .. }
                | Reply::Note { .. }
                | Reply::Streams
                | Reply::Output { .. }
                | Reply::Thread { .. }
                | Reply::Net(_)
                | Reply::AnswerRefused { .. }
                | Reply::Done(_) => {}
            }
        }
        match filled {
            Ok(()) => {}
            Err(error) if error.is_gone() => open.session.lost(),
            Err(error) => return Err(error.into()),
        }
        self.act(at)
    }

    fn hear(&mut self, message: Message) -> Result<(), Complaint> {
        match message {
            Message::Request { id, method, params } => self.request(&id, &method, &params),
            Message::Notification { method, params } => {
                let known = self.find(&params).filter(|_| method == "session/cancel");
                let Some(at) = known else { return Ok(()) };
                self.sessions[at].session.cancel();
                self.act(at)
            }
            Message::Response { id, result } => {
                let mut sessions = self.sessions.iter_mut();
                match sessions.position(|open| open.session.answered(id, &result)) {
                    Some(at) => self.act(at),
                    // It came too late.
                    None => Ok(()),
                }
            }
            Message::Garbage(Some(answer)) => self.line(&answer),
            Message::Garbage(None) => Ok(()),
        }
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) -> Result<(), Complaint> {
        match method {
            "initialize" => self.line(&result(id, &abilities(crate::identity::VERSION))),
            "session/new" => self.new_session(id),
            "session/load" => self.load(id, params),
            "session/prompt" => self.prompt(id, params),
            "authenticate" => self.line(&result(id, &json!({}))),
            other => {
                let other: String = other.chars().take(100).collect();
                let text = format!("this agent does not serve `{other}`");
                self.line(&error(id, METHOD_NOT_FOUND, &text))
            }
        }
    }

    /// The folder the editor names is one of its machine; the agent works in the box's workspace.
    fn new_session(&mut self, id: &Value) -> Result<(), Complaint> {
        let request = Request::ThreadOpen(ThreadOpen {
            name: self.whom.name.clone(),
            agent: self.whom.agent.clone(),
            allow_all: self.whom.allow_all,
        });
        let asked = host::reach(self.output, OtherBuild::Bear)
            .and_then(|client| client.ask(self.output, &request));
        let thread = match asked {
            Ok(Outcome::Thread { thread }) => thread,
            Ok(other) => return Err(unexpected(&other)),
            Err(complaint) => return self.refuse(id, &complaint),
        };
        match self.open(thread, None) {
            Ok(_) => self.line(&result(id, &json!({"sessionId": thread}))),
            Err(complaint) => self.refuse(id, &complaint),
        }
    }

    fn load(&mut self, id: &Value, params: &Value) -> Result<(), Complaint> {
        let named = params["sessionId"].as_str().unwrap_or_default();
        let Ok(thread) = ThreadId::parse(named) else {
            return self.line(&error(id, NOT_FOUND, "there is no such session"));
        };
        // Whether there is one is asked first: what is read from a thread has no end.
        let asked = Request::Attach(Attach {
            follow: false,
            ..self.attach(thread, None)
        });
        let mut looked = host::reach(self.output, OtherBuild::Bear)?;
        looked.request(&asked)?;
        if let Reply::Problem(problem) = looked.next(None)? {
            return self.line(&error(id, NOT_FOUND, &problem.title));
        }
        self.sessions.retain(|open| open.session.thread() != thread);
        match self.open(thread, Some(id.clone())) {
            Ok(at) => self.act(at),
            Err(complaint) => self.refuse(id, &complaint),
        }
    }

    fn prompt(&mut self, id: &Value, params: &Value) -> Result<(), Complaint> {
        let Some(at) = self.find(params) else {
            return self.line(&error(id, NOT_FOUND, "there is no such session"));
        };
        match content::text(self.output, &self.whom.name, &params["prompt"]) {
            Ok(text) if text.trim().is_empty() => {
                self.line(&error(id, INVALID_PARAMS, "a prompt needs a text"))
            }
            Ok(text) => {
                self.sessions[at].session.prompt(id.clone(), text);
                self.act(at)
            }
            Err(complaint) => {
                let title = complaint.problem().map_or("", |problem| &problem.title);
                self.line(&error(id, INVALID_PARAMS, title))
            }
        }
    }

    /// Begins to read a thread.
    fn open(&mut self, thread: ThreadId, loading: Option<Value>) -> Result<usize, Complaint> {
        if self.sessions.len() >= SESSIONS_MAX {
            let title = format!("more than {SESSIONS_MAX} threads are open");
            return Err(Complaint::failed("too-many-threads", title));
        }
        let client = self.follow(thread, None)?;
        self.sessions.push(Open {
            session: Session::new(thread, loading),
            client,
            take_ups: 0,
        });
        Ok(self.sessions.len() - 1)
    }

    /// Follows a thread, from a cursor or from its beginning.
    fn attach(&self, thread: ThreadId, after: Option<Cursor>) -> Attach {
        Attach {
            name: self.whom.name.clone(),
            thread: Some(thread),
            after,
            follow: true,
        }
    }

    /// Goes on where the host was lost.
    fn take_up(&mut self, at: usize, after: Option<Cursor>) -> Result<(), Complaint> {
        let open = &mut self.sessions[at];
        open.take_ups += 1;
        if open.take_ups > TAKE_UPS_MAX {
            let title = "the host goes away again and again";
            return Err(Complaint::engine("host-lost", title));
        }
        let thread = open.session.thread();
        self.sessions[at].client = self.follow(thread, after)?;
        Ok(())
    }

    /// A connection that follows a thread; who sits at the editor is asked about the network too.
    fn follow(&mut self, thread: ThreadId, after: Option<Cursor>) -> Result<Client, Complaint> {
        let mut client = host::reach(self.output, OtherBuild::Bear)?;
        client.request(&Request::Attach(self.attach(thread, after)))?;
        match client.say(&ClientMessage::Person) {
            Err(error) if !error.is_gone() => Err(error.into()),
            // It went away again; reading notices.
            Ok(()) | Err(_) => Ok(client),
        }
    }

    /// Does what a session says.
    fn act(&mut self, at: usize) -> Result<(), Complaint> {
        for act in self.sessions[at].session.take(&mut self.number) {
            match act {
                Act::Line(line) => self.line(&line)?,
                Act::Say(message) => match self.sessions[at].client.say(&message) {
                    Ok(()) => {}
                    Err(error) if error.is_gone() => {}
                    Err(error) => return Err(error.into()),
                },
                Act::TakeUp(after) => self.take_up(at, after)?,
            }
        }
        Ok(())
    }

    fn find(&self, params: &Value) -> Option<usize> {
        let named = params["sessionId"].as_str()?;
        self.sessions
            .iter()
            .position(|open| open.session.thread().as_str() == named)
    }

    fn refuse(&mut self, id: &Value, complaint: &Complaint) -> Result<(), Complaint> {
        let problem = complaint.problem();
        let text = match problem.map(|one| (&one.title, &one.hint)) {
            Some((title, Some(hint))) => format!("{title} ({hint})"),
            Some((title, None)) => title.clone(),
            None => "it did not work".to_owned(),
        };
        self.line(&error(id, INTERNAL_ERROR, &text))
    }

    fn line(&mut self, line: &Value) -> Result<(), Complaint> {
        self.output.object(line)
    }
}
