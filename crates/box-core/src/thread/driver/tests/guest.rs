//! A guest in the test's own process, with agents that are functions: each line they are sent leads
//! to what they print. It speaks `box_api::guest`, keeps output until it is acknowledged, and can
//! be told to break connections.

use crate::thread::machine::{Machine, MachineError};
use async_trait::async_trait;
use box_api::BoxId;
use box_api::guest::{
    Attached, Command, Frame, FrameKind, FrameReader, INPUT_QUEUE_BYTES_MAX, InputState, Message,
    PIECE_BYTES_MAX, Piece, ProcessName, Refusal, Reply, Request, Stream,
};
use box_runtime::RuntimeError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::{Mutex, Notify, watch};

/// What an agent does.
#[derive(Debug, Clone)]
pub(super) enum Does {
    Print(Value),
    PrintRaw(Vec<u8>),
    Complain(&'static str),
    Exit(i32),
}

/// An agent: what it does when it starts (`None`) and for each line it reads.
pub(super) type Script = Box<dyn FnMut(Option<&Value>) -> Vec<Does> + Send>;
type MakeScript = dyn Fn() -> Script + Send + Sync;

#[derive(Default)]
struct Process {
    script: Option<Script>,
    input: Vec<u8>,
    /// Input before this was given to the script.
    read: usize,
    stdout: Output,
    stderr: Output,
    code: Option<i32>,
    /// Counts the attachments; only the last one is served.
    attachment: u64,
}

#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    acked: u64,
}

/// Counts what passes between host and guest, and rings when a number is reached.
#[derive(Debug)]
pub(super) struct Bell {
    count: AtomicU64,
    at: AtomicU64,
    rung: watch::Sender<bool>,
}

impl Default for Bell {
    fn default() -> Self {
        let (rung, _) = watch::channel(false);
        Self {
            count: AtomicU64::new(0),
            at: AtomicU64::new(u64::MAX),
            rung,
        }
    }
}

impl Bell {
    /// Rings after `events` more.
    pub(super) fn set(&self, events: u64) {
        self.rung.send_replace(false);
        self.at
            .store(self.count.load(Ordering::SeqCst) + events, Ordering::SeqCst);
    }

    pub(super) fn tick(&self) {
        if self.count.fetch_add(1, Ordering::SeqCst) + 1 >= self.at.load(Ordering::SeqCst) {
            self.rung.send_replace(true);
        }
    }

    pub(super) async fn wait(&self) {
        let mut rung = self.rung.subscribe();
        rung.wait_for(|rung| *rung).await.unwrap();
    }
}

#[derive(Default)]
struct Inside {
    processes: BTreeMap<String, Process>,
    /// Everything that was ever forgotten.
    forgotten: Vec<String>,
    stopped: bool,
    log: Vec<u8>,
}

/// The guest, and the machine that reaches it.
#[derive(Clone)]
pub(super) struct Guest {
    inside: Arc<Mutex<Inside>>,
    changed: Arc<Notify>,
    make: Arc<MakeScript>,
    /// Every frame and every call.
    pub(super) traffic: Arc<Bell>,
    /// When it rings the connection at hand breaks.
    pub(super) breaks: Arc<Bell>,
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guest")
    }
}

impl Guest {
    pub(super) fn new(make: impl Fn() -> Script + Send + Sync + 'static) -> Self {
        Self {
            inside: Arc::default(),
            changed: Arc::default(),
            make: Arc::new(make),
            traffic: Arc::default(),
            breaks: Arc::default(),
        }
    }

    /// Everything a process was ever sent.
    pub(super) async fn input(&self, process: &str) -> String {
        let inside = self.inside.lock().await;
        let input = inside
            .processes
            .get(process)
            .map(|process| process.input.clone());
        String::from_utf8(input.unwrap_or_default()).unwrap()
    }

    pub(super) async fn processes(&self) -> Vec<String> {
        self.inside.lock().await.processes.keys().cloned().collect()
    }

    pub(super) async fn forgotten(&self) -> Vec<String> {
        self.inside.lock().await.forgotten.clone()
    }

    pub(super) async fn log_text(&self) -> String {
        String::from_utf8(self.inside.lock().await.log.clone()).unwrap()
    }

    /// Output of a process nobody acknowledged yet.
    pub(super) async fn unacked(&self, process: &str) -> u64 {
        let inside = self.inside.lock().await;
        let output = &inside.processes[process].stdout;
        output.bytes.len() as u64 - output.acked
    }

    /// An agent does something nobody asked for.
    pub(super) async fn make_do(&self, process: &str, what: Vec<Does>) {
        let mut inside = self.inside.lock().await;
        perform(inside.processes.get_mut(process).unwrap(), what);
        drop(inside);
        self.changed.notify_waiters();
    }

    /// Every process is gone, and with them every connection.
    pub(super) async fn stop(&self) {
        let mut inside = self.inside.lock().await;
        inside.stopped = true;
        inside.processes.clear();
        drop(inside);
        self.changed.notify_waiters();
    }

    async fn serve(self, socket: UnixStream) {
        let (mut read, write) = socket.into_split();
        let mut wire = Wire {
            write,
            guest: self.clone(),
            ended: false,
        };
        let mut frames = FrameReader::default();
        let Some(frame) = next_frame(&mut read, &mut frames).await else {
            return;
        };
        self.traffic.tick();
        let request: Request = frame.decode(FrameKind::Request).unwrap();
        match request {
            Request::Spawn { process, command } => {
                assert!(command.check().is_ok());
                let reply = self.spawn(&process).await;
                wire.reply(&reply).await;
            }
            Request::Kill { process, .. } => {
                let reply = self.kill(&process).await;
                wire.reply(&reply).await;
            }
            Request::Forget { process } => {
                let reply = self.forget(&process).await;
                wire.reply(&reply).await;
            }
            Request::Attach {
                process,
                stdout_from,
                stderr_from,
            } => {
                self.attach(
                    &mut wire,
                    (read, frames),
                    &process,
                    [stdout_from, stderr_from],
                )
                .await;
            }
            Request::Exec { .. } | Request::Dial { .. } | Request::List | Request::Ping => {
                panic!("not asked here")
            }
        }
    }

    async fn spawn(&self, name: &ProcessName) -> Reply {
        let mut inside = self.inside.lock().await;
        if inside.processes.contains_key(name.as_str()) {
            return refused(Refusal::Exists);
        }
        let mut process = Process {
            script: Some((self.make)()),
            ..Process::default()
        };
        run(&mut process, None);
        inside.processes.insert(name.to_string(), process);
        Reply::Started { pid: 7 }
    }

    async fn kill(&self, name: &ProcessName) -> Reply {
        let mut inside = self.inside.lock().await;
        let Some(process) = inside.processes.get_mut(name.as_str()) else {
            return refused(Refusal::NotFound);
        };
        process.script = None;
        process.code.get_or_insert(128 + 9);
        drop(inside);
        self.changed.notify_waiters();
        Reply::Done
    }

    async fn forget(&self, name: &ProcessName) -> Reply {
        let mut inside = self.inside.lock().await;
        match inside.processes.get(name.as_str()) {
            None => refused(Refusal::NotFound),
            Some(Process { code: None, .. }) => refused(Refusal::Running),
            Some(_) => {
                inside.processes.remove(name.as_str());
                inside.forgotten.push(name.to_string());
                Reply::Done
            }
        }
    }

    async fn attach(
        &self,
        wire: &mut Wire,
        (mut read, mut frames): (tokio::net::unix::OwnedReadHalf, FrameReader),
        name: &ProcessName,
        mut from: [u64; 2],
    ) {
        let Some((mine, begin)) = self.begin(name, &mut from).await else {
            return wire.reply(&refused(Refusal::NotFound)).await;
        };
        if matches!(
            wire.reply_and_go_on(&Reply::Attached(begin)).await,
            Next::Over
        ) {
            return;
        }
        let mut told = begin.input.taken;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.output(wire, name, mine, (&mut from, &mut told)).await {
                Next::Wait => {}
                Next::Again => continue,
                Next::Over => return,
            }
            tokio::select! {
                () = changed => {}
                frame = next_frame(&mut read, &mut frames) => {
                    let Some(frame) = frame else { return };
                    self.traffic.tick();
                    self.heard(name, &frame).await;
                }
            }
        }
    }

    async fn begin(&self, name: &ProcessName, from: &mut [u64; 2]) -> Option<(u64, Attached)> {
        let mut inside = self.inside.lock().await;
        let process = inside.processes.get_mut(name.as_str())?;
        process.attachment += 1;
        from[0] = from[0].max(process.stdout.acked);
        from[1] = from[1].max(process.stderr.acked);
        let begin = Attached {
            input: input_state(process),
            stdout_from: from[0],
            stderr_from: from[1],
            running: process.code.is_none(),
        };
        let mine = process.attachment;
        drop(inside);
        self.changed.notify_waiters();
        Some((mine, begin))
    }

    /// Sends one thing that is to be sent, if there is one.
    async fn output(
        &self,
        wire: &mut Wire,
        name: &ProcessName,
        mine: u64,
        (from, told): (&mut [u64; 2], &mut u64),
    ) -> Next {
        let inside = self.inside.lock().await;
        let Some(process) = inside.processes.get(name.as_str()) else {
            return Next::Over;
        };
        if process.attachment != mine {
            drop(inside);
            wire.reply(&Reply::Displaced).await;
            return Next::Over;
        }
        let input = input_state(process);
        if input.taken != *told {
            *told = input.taken;
            drop(inside);
            return wire.reply_and_go_on(&Reply::Input(input)).await;
        }
        let outputs = [(Stream::Stderr, 1), (Stream::Stdout, 0)];
        for (stream, at) in outputs {
            let output = if at == 0 {
                &process.stdout
            } else {
                &process.stderr
            };
            let start = usize::try_from(from[at]).unwrap();
            if start < output.bytes.len() {
                let end = output.bytes.len().min(start + PIECE_BYTES_MAX);
                let mut bytes = Vec::new();
                Piece::write(
                    &mut bytes,
                    stream,
                    from[at],
                    [&output.bytes[start..end], &[]],
                );
                from[at] = end as u64;
                drop(inside);
                return wire.send_and_go_on(&bytes).await;
            }
        }
        let ended = process.code.map(|code| Reply::Ended {
            code,
            stdout_end: process.stdout.bytes.len() as u64,
            stderr_end: process.stderr.bytes.len() as u64,
        });
        drop(inside);
        match ended {
            // Stays until the host lets go, as the real one does.
            Some(ended) if !wire.ended => {
                wire.ended = true;
                wire.reply_and_go_on(&ended).await
            }
            Some(_) | None => Next::Wait,
        }
    }

    async fn heard(&self, name: &ProcessName, frame: &Frame) {
        let mut inside = self.inside.lock().await;
        let Some(process) = inside.processes.get_mut(name.as_str()) else {
            return;
        };
        match frame.kind {
            FrameKind::Piece => {
                let piece = Piece::parse(&frame.payload).unwrap();
                let taken = process.input.len() as u64;
                assert!(piece.offset <= taken, "a hole in the input");
                let known = usize::try_from(taken - piece.offset).unwrap();
                if let Some(fresh) = piece.bytes.get(known..) {
                    process.input.extend_from_slice(fresh);
                }
                read_lines(process);
            }
            FrameKind::Message => match frame.decode(FrameKind::Message).unwrap() {
                Message::Ack {
                    stream: Stream::Stdout,
                    offset,
                } => {
                    assert!(offset <= process.stdout.bytes.len() as u64);
                    process.stdout.acked = offset.max(process.stdout.acked);
                }
                Message::Ack { offset, .. } => {
                    assert!(offset <= process.stderr.bytes.len() as u64);
                    process.stderr.acked = offset.max(process.stderr.acked);
                }
                Message::Signal { .. } | Message::CloseInput { .. } => panic!("not said here"),
            },
            FrameKind::Request | FrameKind::Reply => panic!("out of place"),
        }
        drop(inside);
        self.changed.notify_waiters();
    }
}

enum Next {
    Again,
    Wait,
    Over,
}

struct Wire {
    write: tokio::net::unix::OwnedWriteHalf,
    guest: Guest,
    /// Whether the end of the process was told.
    ended: bool,
}

impl Wire {
    async fn reply(&mut self, reply: &Reply) {
        self.reply_and_go_on(reply).await;
    }

    async fn reply_and_go_on(&mut self, reply: &Reply) -> Next {
        let bytes = Frame::encode(FrameKind::Reply, reply).unwrap();
        self.send_and_go_on(&bytes).await
    }

    async fn send_and_go_on(&mut self, bytes: &[u8]) -> Next {
        self.guest.traffic.tick();
        self.guest.breaks.tick();
        if *self.guest.breaks.rung.borrow() {
            self.guest.breaks.set(u64::from(u32::MAX));
            return Next::Over;
        }
        if self.write.write_all(bytes).await.is_ok() {
            Next::Again
        } else {
            Next::Over
        }
    }
}

async fn next_frame(
    read: &mut tokio::net::unix::OwnedReadHalf,
    frames: &mut FrameReader,
) -> Option<Frame> {
    let mut scratch = vec![0; 64 << 10];
    loop {
        if let Some(frame) = frames.next_frame().unwrap() {
            return Some(frame);
        }
        match read.read(&mut scratch).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => frames.push(&scratch[..count]),
        }
    }
}

fn refused(why: Refusal) -> Reply {
    Reply::Refused {
        why,
        text: format!("{why:?}"),
    }
}

fn input_state(process: &Process) -> InputState {
    let taken = process.input.len() as u64;
    InputState {
        taken,
        window: taken + INPUT_QUEUE_BYTES_MAX as u64,
        closed: process.code.is_some(),
    }
}

fn read_lines(process: &mut Process) {
    while let Some(length) = process.input[process.read..]
        .iter()
        .position(|byte| *byte == b'\n')
    {
        let line = process.input[process.read..process.read + length].to_vec();
        process.read += length + 1;
        let line: Value = serde_json::from_slice(&line).unwrap();
        run(process, Some(&line));
    }
}

fn run(process: &mut Process, line: Option<&Value>) {
    if let Some(mut script) = process.script.take() {
        let does = script(line);
        process.script = Some(script);
        perform(process, does);
    }
}

fn perform(process: &mut Process, does: Vec<Does>) {
    for what in does {
        if process.code.is_some() {
            return;
        }
        match what {
            Does::Print(value) => {
                process
                    .stdout
                    .bytes
                    .extend_from_slice(value.to_string().as_bytes());
                process.stdout.bytes.push(b'\n');
            }
            Does::PrintRaw(bytes) => process.stdout.bytes.extend_from_slice(&bytes),
            Does::Complain(text) => process.stderr.bytes.extend_from_slice(text.as_bytes()),
            Does::Exit(code) => process.code = Some(code),
        }
    }
}

#[async_trait]
impl Machine for Guest {
    async fn connect(&self) -> Result<OwnedFd, MachineError> {
        self.traffic.tick();
        if self.inside.lock().await.stopped {
            return Err(RuntimeError::NotRunning(BoxId::from_random([1; 10])).into());
        }
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        tokio::spawn(self.clone().serve(UnixStream::from_std(theirs).unwrap()));
        Ok(ours.into())
    }

    async fn command(&self) -> Result<Command, MachineError> {
        self.traffic.tick();
        Ok(Command {
            arguments: vec!["/opt/box/bin/agent".to_owned()],
            folder: "/workspace".to_owned(),
            variables: Vec::new(),
        })
    }

    async fn log(&self, _process: &ProcessName, text: Vec<u8>) {
        self.inside.lock().await.log.extend(text);
    }
}
