//! A box-egress that moves no traffic: keeps what it is told, strictly, and can die.
//!
//! It lives in a thread of the test ([`FakeEgress`]), or as a process of its own: this test program
//! started with a listening socket as its standard input ([`as_a_process`]).

use box_api::BoxId;
use box_api::egress::packet::{self, PACKET_BYTES_MAX};
use box_api::egress::{
    Answer, Binding, BoxState, Call, CredentialSpec, CredentialState, Event, Listeners, LoginState,
    Message, PROTOCOL, Policy, Request, Status, Welcome,
};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, Shutdown,
    SocketAddrUnix, SocketType, accept, bind, listen, recvmsg, send, shutdown, socket,
};
use std::collections::BTreeMap;
use std::io::{IoSliceMut, Read as _, Seek as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{Mutex, watch};

/// What it was told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) resolvers: Vec<std::net::SocketAddr>,
    pub(crate) ca_cert: Option<String>,
    pub(crate) ca_key: Vec<u8>,
    pub(crate) boxes: BTreeMap<BoxId, (Policy, Vec<Binding>, usize)>,
    pub(crate) credentials: BTreeMap<String, (CredentialSpec, Option<Vec<u8>>)>,
    pub(crate) names: usize,
    pub(crate) login_key: Vec<u8>,
    pub(crate) logins: BTreeMap<BoxId, Vec<LoginState>>,
    /// What it says it is, where that is not what this test program is.
    pub(crate) build: Option<&'static str>,
    pub(crate) protocol: Option<u32>,
    /// Whether it is a process, which ends when it is told to.
    is_process: bool,
    is_over: bool,
    /// Requests so far, by their name.
    pub(crate) asked: Vec<&'static str>,
}

/// Box-egress in a thread.
#[derive(Clone)]
pub(crate) struct FakeEgress {
    pub(crate) told: Arc<Mutex<Told>>,
    /// Counts requests; tests wait on it.
    pub(crate) turns: watch::Sender<usize>,
    open: Arc<Mutex<Vec<OwnedFd>>>,
}

impl FakeEgress {
    pub(crate) fn listen(path: &Path) -> Self {
        let fake = Self {
            told: Arc::default(),
            turns: watch::channel(0).0,
            open: Arc::default(),
        };
        fake.listen_again(path);
        fake
    }

    /// Comes back empty, as a new process does.
    pub(crate) fn listen_again(&self, path: &Path) {
        drop(std::fs::remove_file(path));
        let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(path).unwrap()).unwrap();
        listen(&listener, 4).unwrap();
        self.open
            .blocking_lock_in_place()
            .push(listener.try_clone().unwrap());
        let fake = self.clone();
        std::thread::spawn(move || serve(&listener, &fake));
    }

    /// Dies: nothing it knew is left.
    pub(crate) async fn die(&self) {
        for socket in self.open.lock().await.drain(..) {
            // A listener knows no end of its own: closing it is enough.
            shutdown(&socket, Shutdown::Both).unwrap_or_default();
        }
        *self.told.lock().await = Told::default();
    }

    /// Tells the host that something happened.
    pub(crate) async fn tell(&self, event: Event) {
        let message = packet::encode(&Message::Event { event }, &[]).unwrap();
        let open = self.open.lock().await;
        send(open.last().unwrap(), &message.packet, SendFlags::NOSIGNAL).unwrap();
    }

    /// Waits until what it was told is as `wanted` says.
    pub(crate) async fn until(&self, wanted: impl Fn(&Told) -> bool) {
        let mut turns = self.turns.subscribe();
        let patient = async {
            while !wanted(&*self.told.lock().await) {
                turns.changed().await.unwrap();
            }
        };
        let came = tokio::time::timeout(crate::rig::PATIENCE, patient).await;
        assert!(
            came.is_ok(),
            "it never came to that: {:?}",
            self.told.lock().await
        );
    }
}

/// `blocking_lock` that may be called inside a runtime: nobody holds these locks for long.
trait LockInPlace<T> {
    fn blocking_lock_in_place(&self) -> tokio::sync::MutexGuard<'_, T>;
}

impl<T> LockInPlace<T> for Mutex<T> {
    fn blocking_lock_in_place(&self) -> tokio::sync::MutexGuard<'_, T> {
        loop {
            match self.try_lock() {
                Ok(guard) => return guard,
                Err(_) => std::thread::yield_now(),
            }
        }
    }
}

/// The program box-egress is in some tests. Does nothing when it is run as a test.
#[test]
fn as_a_process() {
    serve_as(Told::default());
}

/// As [`as_a_process`], of another build.
#[test]
fn as_another_build() {
    serve_as(Told {
        build: Some("another"),
        ..Told::default()
    });
}

/// As [`as_a_process`], of a time when the protocol was another one.
#[test]
fn as_an_older_protocol() {
    serve_as(Told {
        build: Some("older"),
        protocol: Some(1),
        ..Told::default()
    });
}

fn serve_as(told: Told) {
    let stdin = std::io::stdin();
    if rustix::net::sockopt::socket_type(&stdin).ok() != Some(SocketType::SEQPACKET) {
        return;
    }
    let told = Told {
        is_process: true,
        ..told
    };
    let fake = FakeEgress {
        told: Arc::new(Mutex::new(told)),
        turns: watch::channel(0).0,
        open: Arc::default(),
    };
    serve(&stdin.as_fd().try_clone_to_owned().unwrap(), &fake);
}

/// Starts this test program as the box-egress one of the tests above is; gives its process id.
pub(crate) fn process(path: &Path, test: &str) -> u32 {
    let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&listener, &SocketAddrUnix::new(path).unwrap()).unwrap();
    listen(&listener, 4).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the left-over of another host")]
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let child = command
        .args(["--exact", test])
        .stdin(listener)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn();
    let mut child = child.unwrap();
    let pid = child.id();
    // Reaped when it ends, so that its end can be told from its presence.
    std::thread::spawn(move || child.wait());
    pid
}

fn serve(listener: &OwnedFd, fake: &FakeEgress) {
    while let Ok(connection) = accept(listener) {
        fake.open
            .blocking_lock_in_place()
            .push(connection.try_clone().unwrap());
        while let Some((call, secret, descriptors)) = receive(&connection) {
            let answer = answer(
                &mut fake.told.blocking_lock_in_place(),
                call.request,
                secret,
                descriptors,
            );
            let message = Message::Answer {
                seq: call.seq,
                answer,
            };
            let encoded = packet::encode(&message, &[]).unwrap();
            if send(&connection, &encoded.packet, SendFlags::NOSIGNAL).is_err() {
                break;
            }
            if fake.told.blocking_lock_in_place().is_over {
                #[expect(clippy::exit, reason = "it plays a process, which is over")]
                std::process::exit(0);
            }
            fake.turns.send_modify(|count| *count += 1);
        }
    }
}

fn receive(connection: &OwnedFd) -> Option<(Call, Vec<u8>, usize)> {
    let mut bytes = vec![0; PACKET_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg(connection, &mut parts, &mut ancillary, RecvFlags::empty()).ok()?;
    let mut descriptors: Vec<OwnedFd> = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            descriptors.extend(fds);
        }
    }
    if received.bytes == 0 {
        return None;
    }
    bytes.truncate(received.bytes);
    let parts = packet::split(&bytes).unwrap();
    let secret = parts.secret.to_vec();
    if parts.json.is_empty() {
        let mut text = Vec::new();
        let mut file = std::fs::File::from(descriptors.remove(0));
        file.rewind().unwrap();
        file.read_to_end(&mut text).unwrap();
        return Some((packet::decode(&text).unwrap(), secret, descriptors.len()));
    }
    Some((
        packet::decode(parts.json).unwrap(),
        secret,
        descriptors.len(),
    ))
}

#[expect(clippy::too_many_lines, reason = "one arm for each request there is")]
fn answer(told: &mut Told, request: Request, secret: Vec<u8>, descriptors: usize) -> Answer {
    let (name, answer) = match request {
        Request::Hello { protocol, .. } => {
            let mine = told.protocol.unwrap_or(PROTOCOL);
            let why = format!("this box-egress speaks protocol {mine}, not {protocol}");
            if protocol == mine {
                ("hello", welcome(told))
            } else {
                ("hello", Answer::Refused { why })
            }
        }
        Request::Configure(configuration) => {
            told.resolvers = configuration.resolvers;
            told.ca_cert = configuration.ca_cert_pem;
            told.ca_key = secret;
            ("configure", Answer::Done)
        }
        Request::Register(registration) => {
            assert_eq!(descriptors, registration.listeners.descriptors());
            assert_eq!(registration.listeners, Listeners::AllPorts);
            told.names += registration.map.len();
            let state = (registration.policy, registration.bindings, descriptors);
            told.boxes.insert(registration.box_id, state);
            told.logins.insert(registration.box_id, registration.logins);
            ("register", Answer::Done)
        }
        Request::SetPolicy { box_id, policy } => {
            told.boxes.get_mut(&box_id).expect("a box it knows").0 = policy;
            ("set_policy", Answer::Done)
        }
        Request::Unregister { box_id } => {
            told.boxes.remove(&box_id);
            ("unregister", Answer::Done)
        }
        Request::AddCredential(spec) => {
            assert!(!secret.is_empty());
            told.credentials
                .insert(spec.id.clone(), (spec, Some(secret)));
            ("add_credential", Answer::Done)
        }
        Request::RemoveCredential { credential } => {
            told.credentials.remove(&credential);
            ("remove_credential", Answer::Done)
        }
        Request::ListCredentials => ("list_credentials", credentials(told)),
        Request::Bind { box_id, binding } => ("bind", bound(told, &box_id, binding)),
        Request::Unbind {
            box_id,
            placeholder,
        } => {
            if let Some((_, bindings, _)) = told.boxes.get_mut(&box_id) {
                bindings.retain(|binding| binding.placeholder != placeholder);
            }
            ("unbind", Answer::Done)
        }
        Request::AllowOnce { box_id, .. } => {
            assert!(told.boxes.contains_key(&box_id));
            ("allow_once", Answer::Done)
        }
        Request::Shutdown if told.is_process => {
            told.is_over = true;
            ("shutdown", Answer::Done)
        }
        Request::Shutdown => {
            let why = "it is a thread of the test".to_owned();
            ("shutdown", Answer::Refused { why })
        }
        Request::LoginKey => {
            told.login_key = secret;
            ("login_key", Answer::Done)
        }
        Request::RestoreLogins { box_id, logins } => {
            told.logins.insert(box_id, logins);
            ("restore_logins", Answer::Done)
        }
        Request::ForgetLogins { box_id, kind } => {
            assert_eq!(kind, None);
            told.logins.remove(&box_id);
            ("forget_logins", Answer::Done)
        }
        Request::Status => ("status", status(told)),
        Request::Check { .. } | Request::Map { .. } => (
            "other",
            Answer::Refused {
                why: "it does not know that".to_owned(),
            },
        ),
    };
    told.asked.push(name);
    answer
}

fn bound(told: &mut Told, box_id: &BoxId, binding: Binding) -> Answer {
    let Some((_, bindings, _)) = told.boxes.get_mut(box_id) else {
        return Answer::Refused {
            why: "no such box".to_owned(),
        };
    };
    bindings.retain(|other| other.placeholder != binding.placeholder);
    bindings.push(binding);
    Answer::Done
}

fn welcome(told: &Told) -> Answer {
    Answer::Welcome(Welcome {
        build: told.build.unwrap_or("test").to_owned(),
        protocol: told.protocol.unwrap_or(PROTOCOL),
        pid: std::process::id(),
        configured: told.ca_cert.is_some(),
    })
}

fn credential_states(told: &Told) -> Vec<CredentialState> {
    let all = told.credentials.values();
    all.map(|(spec, secret)| CredentialState {
        spec: spec.clone(),
        present: secret.is_some(),
        bound: 0,
    })
    .collect()
}

fn credentials(told: &Told) -> Answer {
    Answer::Credentials {
        credentials: credential_states(told),
    }
}

fn status(told: &Told) -> Answer {
    let boxes = told
        .boxes
        .iter()
        .map(|(box_id, (policy, bindings, _))| BoxState {
            box_id: *box_id,
            policy: policy.clone(),
            bindings: bindings.clone(),
            connections: 0,
            names: 0,
            refused: 0,
            logins: told.logins.get(box_id).cloned().unwrap_or_default(),
        });
    Answer::Status(Status {
        build: "test".to_owned(),
        pid: std::process::id(),
        configured: told.ca_cert.is_some(),
        has_ca: told.ca_cert.is_some(),
        boxes: boxes.collect(),
        credentials: credential_states(told),
        parked: Vec::new(),
        events_lost: 0,
    })
}
