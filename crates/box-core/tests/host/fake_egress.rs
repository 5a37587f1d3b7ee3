//! A box-egress that moves no traffic: keeps what it is told, strictly, and can die.
//!
//! It lives in a thread of the test ([`FakeEgress`]), or as a process of its own: this test program
//! started with a listening socket as its standard input ([`as_a_process`]).

use box_api::BoxId;
use box_api::egress::packet::{self, PACKET_BYTES_MAX};
use box_api::egress::{
    Answer, Binding, BoxState, Call, CredentialSpec, CredentialState, Event, Listeners, Message,
    PROTOCOL, Policy, Request, Status, Welcome,
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
    let stdin = std::io::stdin();
    if rustix::net::sockopt::socket_type(&stdin).ok() != Some(SocketType::SEQPACKET) {
        return;
    }
    let fake = FakeEgress {
        told: Arc::default(),
        turns: watch::channel(0).0,
        open: Arc::default(),
    };
    serve(&stdin.as_fd().try_clone_to_owned().unwrap(), &fake);
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

fn answer(told: &mut Told, request: Request, secret: Vec<u8>, descriptors: usize) -> Answer {
    let (name, answer) = match request {
        Request::Hello { protocol, .. } => {
            assert_eq!(protocol, PROTOCOL);
            ("hello", welcome(told))
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
        Request::Status => ("status", status(told)),
        Request::Check { .. } | Request::Map { .. } | Request::Shutdown => (
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
        build: "test".to_owned(),
        protocol: PROTOCOL,
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
        });
    Answer::Status(Status {
        build: "test".to_owned(),
        pid: std::process::id(),
        configured: told.ca_cert.is_some(),
        has_ca: told.ca_cert.is_some(),
        boxes: boxes.collect(),
        credentials: credential_states(told),
        events_lost: 0,
    })
}
