//! A strict host: greets, takes the requests the test expects, in that order and no other, and
//! answers as told. What a test writes as JSON is checked against the wire types.

use super::program::{Program, Said};
use box_api::PROTOCOL;
use box_api::control::{ClientMessage, Hello, Reply, Request, Welcome};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What nothing in a test may take longer than.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

type Play = Box<dyn FnOnce(&mut Talk) + Send>;

/// One connection the test expects.
struct Act {
    request: Value,
    matched: Match,
    play: Play,
}

/// How much of a request a test says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    Whole,
    /// Fields it does not say may be anything.
    Part,
}

/// What the host says of itself.
#[derive(Debug, Clone)]
pub(crate) struct Face {
    /// Absent: the client's own.
    pub(crate) build: Option<String>,
    pub(crate) protocol: u32,
    pub(crate) data_dir: String,
}

/// Dropping it fails the test unless every expected request came.
pub(crate) struct FakeHost {
    folder: tempfile::TempDir,
    acts: Arc<Mutex<VecDeque<Act>>>,
    server: Option<JoinHandle<()>>,
}

/// A greeted connection with its request taken.
pub(crate) struct Talk {
    stream: UnixStream,
}

impl FakeHost {
    pub(crate) fn new() -> Self {
        Self::with(Face {
            build: None,
            protocol: PROTOCOL,
            data_dir: "/data".to_owned(),
        })
    }

    pub(crate) fn with(face: Face) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("run")).unwrap();
        // Should a client ever start a real host, that refuses to begin.
        std::fs::write(folder.path().join("no-real-host.toml"), "no_real_host = 1").unwrap();
        let listener = UnixListener::bind(folder.path().join("run/control.sock")).unwrap();
        let acts = Arc::new(Mutex::new(VecDeque::new()));
        let queue = Arc::clone(&acts);
        let server = std::thread::spawn(move || serve(&listener, &face, &queue));
        Self {
            folder,
            acts,
            server: Some(server),
        }
    }

    /// The next request must be this one, field by field; `play` answers it.
    pub(crate) fn on(
        &self,
        request: Value,
        play: impl FnOnce(&mut Talk) + Send + 'static,
    ) -> &Self {
        self.expect((request, Match::Whole), play)
    }

    /// As [`FakeHost::on`]; fields that are not said may be anything.
    pub(crate) fn on_part(
        &self,
        request: Value,
        play: impl FnOnce(&mut Talk) + Send + 'static,
    ) -> &Self {
        self.expect((request, Match::Part), play)
    }

    fn expect(
        &self,
        (request, matched): (Value, Match),
        play: impl FnOnce(&mut Talk) + Send + 'static,
    ) -> &Self {
        let known = serde_json::from_value::<Request>(request.clone());
        if let (Match::Whole, Err(error)) = (matched, known) {
            panic!("no such request: {error} in {request}");
        }
        self.acts.lock().unwrap().push_back(Act {
            request,
            matched,
            play: Box::new(play),
        });
        self
    }

    /// The next request must be this one, and is done with this result.
    pub(crate) fn done(&self, request: Value, result: Value) -> &Self {
        self.on(request, move |talk| talk.done(result))
    }

    /// The next request must be this one, and is refused.
    pub(crate) fn problem(&self, request: Value, problem: Value) -> &Self {
        self.on(request, move |talk| {
            let mut reply = problem;
            reply["reply"] = json!("problem");
            talk.reply(reply);
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("run/control.sock")
    }

    /// `box` talking to this host, in this host's folder.
    pub(crate) fn program(&self, arguments: &[&str]) -> Program {
        let mut program = Program::new(arguments);
        program
            .command
            .env("BOX_RUN_DIR", self.folder.path().join("run"))
            .env("BOX_CONFIG", self.folder.path().join("no-real-host.toml"));
        program.command.current_dir(self.folder.path());
        program
    }

    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        self.program(arguments).run()
    }
}

impl Drop for FakeHost {
    fn drop(&mut self) {
        // A connection without a greeting ends it.
        drop(UnixStream::connect(self.socket()));
        let served = self.server.take().unwrap().join();
        if !std::thread::panicking() {
            served.expect("the host was asked something else than expected");
            let left: Vec<Value> = self
                .acts
                .lock()
                .unwrap()
                .iter()
                .map(|act| act.request.clone())
                .collect();
            assert!(left.is_empty(), "never asked: {left:#?}");
        }
    }
}

fn serve(listener: &UnixListener, face: &Face, acts: &Mutex<VecDeque<Act>>) {
    loop {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        let Some(hello) = receive::<Hello>(&mut stream) else {
            return;
        };
        assert_eq!(hello.protocol, PROTOCOL);
        let welcome = Welcome {
            build: face.build.clone().unwrap_or(hello.build),
            protocol: face.protocol,
            pid: std::process::id(),
            data_dir: face.data_dir.clone(),
            started_at_ms: 0,
            defaults: box_api::control::Defaults::default(),
        };
        send(&stream, &welcome, &[]);
        // A client may look and go.
        let Some(mut request) = receive::<Value>(&mut stream) else {
            continue;
        };
        let act = acts.lock().unwrap().pop_front();
        let act = act.unwrap_or_else(|| panic!("one request too many: {request}"));
        if let (Match::Part, Some(fields), Some(said)) = (
            act.matched,
            request.as_object_mut(),
            act.request.as_object(),
        ) {
            fields.retain(|name, _| said.contains_key(name));
        }
        assert_eq!(request, act.request, "another request than expected");
        (act.play)(&mut Talk { stream });
    }
}

impl Talk {
    /// The connection, for a play that is over before its client is.
    pub(crate) fn keep(&self) -> UnixStream {
        self.stream.try_clone().unwrap()
    }

    pub(crate) fn reply(&mut self, reply: Value) {
        let reply: Reply = serde_json::from_value(reply).expect("a reply of the wire");
        send(&self.stream, &reply, &[]);
    }

    pub(crate) fn done(&mut self, result: Value) {
        let mut reply = result;
        reply["reply"] = json!("done");
        self.reply(reply);
    }

    /// A row of the journal, without its common fields.
    pub(crate) fn row(&mut self, seq: u64, item: Value) {
        let mut row = item;
        row["reply"] = json!("update");
        row["event"] = json!("row");
        row["seq"] = json!(seq);
        row["at_ms"] = json!(0);
        self.reply(row);
    }

    pub(crate) fn text(&mut self, seq: u64, text: &str) {
        self.row(seq, json!({"kind": "text", "text": text}));
    }

    pub(crate) fn grew(&mut self, seq: u64, from_byte: u64, text: &str) {
        self.reply(json!({"reply": "update", "event": "grew", "seq": seq, "from_byte": from_byte, "text": text}));
    }

    pub(crate) fn caught_up(&mut self, epoch: u32, seq: u64, bytes: u64) {
        let cursor = json!({"epoch": epoch, "seq": seq, "bytes": bytes});
        self.reply(json!({"reply": "update", "event": "caught_up", "cursor": cursor}));
    }

    /// A turn that began: thread, prompt, nothing missed.
    pub(crate) fn begin(&mut self, name: &str) {
        self.reply(json!({
            "reply": "thread", "box_id": "aaaaaaaaaaaaaaaa", "name": name, "thread": "tttttttttttttttt",
        }));
        self.row(1, json!({"kind": "prompt", "text": "go"}));
        self.caught_up(3, 1, 0);
    }

    /// The end of a turn, as `run` gets it.
    pub(crate) fn end(&mut self, seq: u64, outcome: &str, note: Option<&str>) {
        self.row(
            seq,
            json!({"kind": "turn_ended", "outcome": outcome, "note": note}),
        );
        self.done(json!({"result": "turn", "outcome": outcome}));
    }

    /// A permission with three answers; the number is 40 + `seq`.
    pub(crate) fn ask(&mut self, seq: u64) {
        self.row(seq, json!({
            "kind": "decision_opened", "decision": 40 + seq, "box_id": "aaaaaaaaaaaaaaaa",
            "thread": "tttttttttttttttt", "about": "permission", "title": "Run `make`", "state": {"state": "open"},
            "options": [
                {"id": "no", "label": "Reject", "kind": "reject_once"},
                {"id": "ever", "label": "Always allow", "kind": "allow_always"},
                {"id": "once", "label": "Allow once", "kind": "allow_once"},
            ],
        }));
    }

    pub(crate) fn answered(&mut self, seq: u64, decision: u64, option: &str) {
        let state = json!({"state": "answered", "option": option});
        self.row(seq, json!({"kind": "decision_closed", "decision": decision, "state": state, "by": null, "note": null}));
    }

    /// The client must say next that a person looks and answers.
    #[track_caller]
    pub(crate) fn person(&mut self) {
        self.hears(&json!({"say": "person"}));
    }

    /// A host that box `name` wants to reach is asked about; or that is over.
    pub(crate) fn network(&mut self, number: u64, name: &str, state: &Value) {
        self.reply(json!({
            "reply": "decision", "name": name,
            "decision": {
                "decision": number, "box_id": "aaaaaaaaaaaaaaaa", "about": "network", "state": state,
                "title": format!("box `{name}` wants to reach new.test:443, which is not on its list"),
                "options": [
                    {"id": "once", "label": "allow once", "kind": "allow_once"},
                    {"id": "block", "label": "keep blocked", "kind": "reject_always"},
                ],
            },
        }));
    }

    /// The client must say this next.
    #[track_caller]
    pub(crate) fn hears(&mut self, message: &Value) {
        let said: ClientMessage =
            receive(&mut self.stream).expect("the client went away without a word");
        assert_eq!(&serde_json::to_value(&said).unwrap(), message);
    }

    /// The client must go away without another word.
    #[track_caller]
    pub(crate) fn is_left(&mut self) {
        let said = receive::<Value>(&mut self.stream);
        assert_eq!(said, None, "the client said something instead of going");
    }

    /// The descriptors of a command.
    pub(crate) fn streams(&mut self, descriptors: &[OwnedFd]) {
        let descriptors: Vec<BorrowedFd<'_>> = descriptors
            .iter()
            .map(|descriptor| descriptor.as_fd())
            .collect();
        send(&self.stream, &Reply::Streams, &descriptors);
    }

    pub(crate) fn garbage(&mut self) {
        self.stream.write_all(b"\x03\0\0\0{!}").unwrap();
    }
}

/// One frame; descriptors go beside its first byte.
fn send(stream: &UnixStream, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) {
    let body = serde_json::to_vec(message).unwrap();
    let mut frame = u32::try_from(body.len()).unwrap().to_le_bytes().to_vec();
    frame.extend(body);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
    }
    let sent = sendmsg(
        stream,
        &[IoSlice::new(&frame)],
        &mut control,
        SendFlags::NOSIGNAL,
    );
    // A client that has gone is told by what it did last.
    if let Ok(sent) = sent {
        let mut stream = stream;
        drop(stream.write_all(&frame[sent..]));
    }
}

/// The next frame, or none at the end.
fn receive<T: DeserializeOwned>(stream: &mut UnixStream) -> Option<T> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut body = vec![0; usize::try_from(u32::from_le_bytes(length)).unwrap()];
    stream.read_exact(&mut body).unwrap();
    let value = serde_json::from_slice(&body);
    Some(value.unwrap_or_else(|error| panic!("{error} in {}", String::from_utf8_lossy(&body))))
}
