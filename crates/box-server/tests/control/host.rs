//! A host in a folder of its own, and clients that speak with it frame by frame.

use crate::fake_runtime::FakeRuntime;
use box_api::control::{Hello, NewBox, Outcome, Reply, Request, Welcome};
use box_api::{BoxName, PROTOCOL, Problem};
use box_server::paths::Paths;
use box_server::settings::page::Listen;
use box_server::{Place, Program, Runtimes, ServeOptions};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde::Serialize;
use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longest a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct TestHost {
    pub(crate) folder: Arc<tempfile::TempDir>,
    pub(crate) runtime: FakeRuntime,
    pub(crate) task: JoinHandle<Result<(), Problem>>,
    pub(crate) place: Place,
}

impl TestHost {
    pub(crate) async fn start() -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self::start_at(folder, FakeRuntime::default()).await
    }

    /// A host on a deployment that may have been there before. Its last host's locks go with the
    /// last of its tasks, in a program that goes on.
    pub(crate) async fn start_at(folder: Arc<tempfile::TempDir>, runtime: FakeRuntime) -> Self {
        Self::start_with(folder, runtime, Listen::Off).await
    }

    /// As [`Self::start_at`], with a page.
    pub(crate) async fn start_with(
        folder: Arc<tempfile::TempDir>,
        runtime: FakeRuntime,
        page: Listen,
    ) -> Self {
        let starting = async {
            let mut started = Self::try_start(&folder, &runtime, page).await;
            while let Err(problem) = &started {
                assert_eq!(problem.slug, "host-runs", "{problem:?}");
                tokio::task::yield_now().await;
                started = Self::try_start(&folder, &runtime, page).await;
            }
            started
        };
        let (task, place) = tokio::time::timeout(PATIENCE, starting)
            .await
            .unwrap()
            .unwrap();
        Self {
            folder,
            runtime,
            task,
            place,
        }
    }

    async fn try_start(
        folder: &tempfile::TempDir,
        runtime: &FakeRuntime,
        page: Listen,
    ) -> Result<(JoinHandle<Result<(), Problem>>, Place), Problem> {
        let (ready, is_ready) = oneshot::channel();
        let options = ServeOptions {
            page: Some(page),
            ..options(folder, runtime)
        };
        let told = move |place: &Place| ready.send(place.clone()).unwrap();
        let task = tokio::spawn(box_server::run(options, told));
        match is_ready.await {
            Ok(place) => Ok((task, place)),
            Err(_) => Err(task.await.unwrap().unwrap_err()),
        }
    }

    pub(crate) fn paths(&self) -> Paths {
        Paths::below(self.folder.path()).unwrap()
    }

    /// A connection on which nothing was said yet.
    pub(crate) async fn connect(&self) -> Client {
        let stream = UnixStream::connect(self.paths().control_socket())
            .await
            .unwrap();
        Client {
            stream,
            inbox: Vec::new(),
            descriptors: VecDeque::new(),
        }
    }

    pub(crate) async fn greeted(&self) -> Client {
        let mut client = self.connect().await;
        client.greet(PROTOCOL).await;
        client
    }

    /// One request and how it ended; progress is passed over.
    pub(crate) async fn ask(&self, request: Request) -> Result<Outcome, Problem> {
        let mut client = self.greeted().await;
        client.send(&request).await;
        client.end().await
    }

    pub(crate) async fn refusal(&self, request: Request) -> Problem {
        self.ask(request).await.unwrap_err()
    }

    /// Ends it as a client does, and waits for it.
    pub(crate) async fn stop(self) -> (Arc<tempfile::TempDir>, FakeRuntime) {
        assert_ne!(self.place, Place::Opening);
        assert_eq!(self.ask(Request::StopHost).await, Ok(Outcome::Nothing));
        tokio::time::timeout(PATIENCE, self.task)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        (self.folder, self.runtime)
    }
}

pub(crate) fn options(folder: &tempfile::TempDir, runtime: &FakeRuntime) -> ServeOptions {
    ServeOptions {
        paths: Paths::below(folder.path()).unwrap(),
        runtimes: Runtimes::new(Arc::new(runtime.clone()), Vec::new()),
        // Ends at once: these tests are about what works without box-egress, and what is said.
        egress: Program {
            program: "/bin/false".into(),
            arguments: Vec::new(),
            user: None,
        },
        build: "build-of-the-test".to_owned(),
        uid: rustix::process::getuid().as_raw(),
        outside: |uid| uid,
        page: Some(Listen::Off),
    }
}

pub(crate) struct Client {
    stream: UnixStream,
    inbox: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
}

impl Client {
    pub(crate) async fn greet(&mut self, protocol: u32) -> Welcome {
        self.send(&Hello {
            build: "client".to_owned(),
            protocol,
        })
        .await;
        serde_json::from_slice(&self.frame().await.unwrap()).unwrap()
    }

    pub(crate) async fn send(&mut self, message: &impl Serialize) {
        let json = serde_json::to_vec(message).unwrap();
        self.send_raw(u32::try_from(json.len()).unwrap(), &json)
            .await;
    }

    pub(crate) async fn send_raw(&mut self, length: u32, bytes: &[u8]) {
        self.stream.write_all(&length.to_le_bytes()).await.unwrap();
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next frame; `None` when the host closed.
    pub(crate) async fn frame(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(frame) = self.take() {
                return Some(frame);
            }
            let more = tokio::time::timeout(PATIENCE, self.receive())
                .await
                .unwrap();
            if more.is_empty() {
                return None;
            }
            self.inbox.extend(more);
        }
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let (length, rest) = self.inbox.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let frame = rest.get(..length)?.to_vec();
        self.inbox.drain(..4 + length);
        Some(frame)
    }

    async fn receive(&mut self) -> Vec<u8> {
        let received = self.stream.async_io(Interest::READABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut bytes = vec![0; 64 << 10];
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            let count = recvmsg(&self.stream, &mut parts, &mut ancillary, flags)?.bytes;
            bytes.truncate(count);
            let descriptors = rights(&mut ancillary);
            Ok((bytes, descriptors))
        });
        let Ok((bytes, descriptors)) = received.await else {
            return Vec::new();
        };
        self.descriptors.extend(descriptors);
        bytes
    }

    pub(crate) async fn reply(&mut self) -> Option<Reply> {
        let frame = self.frame().await?;
        Some(serde_json::from_slice(&frame).unwrap())
    }

    pub(crate) fn descriptors(&mut self) -> Vec<OwnedFd> {
        self.descriptors.drain(..).collect()
    }

    /// The last word of a request.
    pub(crate) async fn end(&mut self) -> Result<Outcome, Problem> {
        loop {
            match self.reply().await.unwrap() {
                Reply::Done(outcome) => return Ok(outcome),
                Reply::Problem(problem) => return Err(problem),
                Reply::Progress { .. }
                | Reply::Note { .. }
                | Reply::Decision(_)
                | Reply::Net(_)
                | Reply::Streams
                | Reply::Output { .. }
                | Reply::Thread { .. }
                | Reply::Update(_)
                | Reply::AnswerRefused { .. } => {}
            }
        }
    }
}

fn rights(ancillary: &mut RecvAncillaryBuffer<'_>) -> Vec<OwnedFd> {
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            descriptors.extend(fds);
        }
    }
    descriptors
}

pub(crate) fn name(text: &str) -> BoxName {
    BoxName::parse(text).unwrap()
}

pub(crate) fn new_box(text: &str, defaults: box_api::control::Defaults) -> NewBox {
    NewBox {
        name: name(text),
        title: None,
        image: None,
        profile: defaults.profile,
        net: defaults.net,
        limits: defaults.limits,
        allow: Vec::new(),
        start: true,
        settings: box_api::control::BoxSettings::default(),
        setup: None,
        marks: box_api::control::Marks::default(),
    }
}
