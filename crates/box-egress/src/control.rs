//! The host's side of box-egress: takes calls, keeps what it is given, tells what happens. One
//! task owns all of it; boxes see it through watch channels.

mod boxes;
mod check;
mod configure;
mod credentials;
mod logins;
mod register;
pub(crate) mod socket;

use crate::context::Holdings;
use crate::control::boxes::Held;
use crate::control::check::Question;
use crate::control::logins::Parked;
use crate::control::socket::{Brought, ControlListener, Packets, Received};
use crate::events::{self, EventQueue, Events};
use crate::limits;
use crate::listen::Gone;
use box_api::BoxId;
use box_api::egress::packet::{self, Encoded};
use box_api::egress::{Answer, BoxState, Event, Message, PROTOCOL, Request, Status, Welcome};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{Semaphore, mpsc, watch};
use zeroize::Zeroizing;

/// An unlimited limit is taken for this.
const FILES_MAX: usize = 1 << 20;
const GONE_WAITING_MAX: usize = 1024;
/// Answers a host has not fetched; past that its calls wait.
const ANSWERS_WAITING_MAX: usize = 64;

/// Everything box-egress holds. Dropping it closes every box's way out.
pub(crate) struct Keeper {
    build: String,
    holdings: Arc<watch::Sender<Holdings>>,
    /// Logins of boxes that are stopped.
    parked: Parked,
    has_ca: bool,
    boxes: HashMap<BoxId, Held>,
    generations: u64,
    events: Events,
    queue: EventQueue,
    gone: (mpsc::Sender<Gone>, mpsc::Receiver<Gone>),
    /// Connections all boxes together can still make.
    room: Arc<Semaphore>,
    /// Set by a call to shut down.
    is_over: bool,
}

/// The connected host, if any, and what it has still to be sent.
#[derive(Default)]
struct Host {
    packets: Option<Packets>,
    waiting: VecDeque<Encoded>,
    has_greeted: bool,
}

impl Keeper {
    /// `files` is how many the process may have open.
    pub(crate) fn new(build: String, files: u64) -> Self {
        let (events, queue) = events::queue();
        Self {
            build,
            holdings: Arc::new(watch::channel(Holdings::default()).0),
            parked: Parked::default(),
            has_ca: false,
            boxes: HashMap::new(),
            generations: 0,
            events,
            queue,
            gone: mpsc::channel(GONE_WAITING_MAX),
            room: Arc::new(Semaphore::new(connections_in_all(files))),
            is_over: false,
        }
    }

    /// Serves hosts, one at a time, the newest first. Returns when a host says so.
    ///
    /// # Errors
    /// When the control socket itself breaks.
    pub(crate) async fn serve(mut self, listener: ControlListener) -> io::Result<()> {
        let mut host = Host::default();
        loop {
            if self.is_over && host.waiting.is_empty() {
                return Ok(());
            }
            let may_call = host.waiting.len() < ANSWERS_WAITING_MAX && !self.is_over;
            let is_idle = host.packets.is_some() && host.waiting.is_empty();
            tokio::select! {
                biased;
                packets = listener.accept() => {
                    host = Host { packets: Some(packets?), ..Host::default() };
                }
                Some(gone) = self.gone.1.recv() => self.on_gone(&gone),
                sent = host.first_sent() => match sent {
                    Ok(()) => drop(host.waiting.pop_front()),
                    Err(_) => host.hang_up(),
                },
                received = host.receive(), if may_call => match received {
                    Ok(Some(received)) => self.on_packet(received, &mut host).await,
                    Ok(None) | Err(_) => host.hang_up(),
                },
                Some(event) = self.queue.next(), if is_idle && host.has_greeted => {
                    host.push(&Message::Event { event });
                }
            }
        }
    }

    fn on_gone(&mut self, gone: &Gone) {
        let held = self.boxes.get(&gone.box_id);
        if held.is_some_and(|held| held.generation == gone.generation) {
            self.forget(&gone.box_id);
            self.events.emit(Event::BoxGone {
                box_id: gone.box_id,
            });
        }
    }

    async fn on_packet(&mut self, received: Received, host: &mut Host) {
        match received.call() {
            Ok(Brought {
                call,
                secret,
                descriptors,
            }) => {
                let is_hello = matches!(call.request, Request::Hello { .. });
                let answer = if host.has_greeted || is_hello {
                    self.on_call(call.request, &secret, descriptors).await
                } else {
                    Err("the first call is hello".into())
                };
                host.has_greeted |= is_hello && answer.is_ok();
                let answer = answer.unwrap_or_else(|why| Answer::Refused { why });
                host.push(&Message::Answer {
                    seq: call.seq,
                    answer,
                });
            }
            // A host that cannot speak is a stranger.
            Err(_) => host.hang_up(),
        }
    }

    async fn on_call(
        &mut self,
        request: Request,
        secret: &Zeroizing<Vec<u8>>,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Answer, String> {
        match request {
            Request::Hello { protocol, .. } => self.hello(protocol),
            Request::Configure(configuration) => self.configure(&configuration, secret),
            Request::Register(registration) => self.register(registration, descriptors).await,
            Request::SetPolicy { box_id, policy } => self.set_policy(&box_id, policy),
            Request::Unregister { box_id } => self.unregister(&box_id).await,
            Request::AddCredential(spec) => self.add_credential(spec, secret),
            Request::RemoveCredential { credential } => self.remove_credential(&credential),
            Request::ListCredentials => Ok(Answer::Credentials {
                credentials: self.credential_states(),
            }),
            Request::Bind { box_id, binding } => self.bind(&box_id, binding),
            Request::Unbind {
                box_id,
                placeholder,
            } => self.unbind(&box_id, &placeholder),
            Request::Check {
                box_id,
                host,
                port,
                asked,
                address,
            } => {
                let question = Question {
                    host,
                    port,
                    asked,
                    address,
                };
                self.check(&box_id, &question)
            }
            Request::AllowOnce { box_id, host, port } => self.allow_once(&box_id, host, port),
            Request::LoginKey => self.login_key(secret),
            Request::RestoreLogins { box_id, logins } => self.restore_logins(&box_id, &logins),
            Request::ForgetLogins { box_id, kind } => {
                self.forget_logins(&box_id, kind.as_deref());
                Ok(Answer::Done)
            }
            Request::Status => Ok(Answer::Status(self.status())),
            Request::Map { box_id } => self.map(&box_id).await,
            Request::Shutdown => {
                self.is_over = true;
                Ok(Answer::Done)
            }
        }
    }

    fn hello(&self, protocol: u32) -> Result<Answer, String> {
        if protocol != PROTOCOL {
            return Err(format!(
                "this box-egress speaks protocol {PROTOCOL}, not {protocol}"
            ));
        }
        Ok(Answer::Welcome(Welcome {
            build: self.build.clone(),
            protocol: PROTOCOL,
            pid: std::process::id(),
            configured: self.holdings.borrow().configured.is_some(),
        }))
    }

    fn status(&self) -> Status {
        let state = |(box_id, held): (&BoxId, &Held)| {
            let settings = held.settings.borrow();
            BoxState {
                box_id: *box_id,
                policy: settings.policy.clone(),
                bindings: settings.bindings.clone(),
                connections: held.counters.connections.load(Ordering::Relaxed),
                names: held.counters.names.load(Ordering::Relaxed),
                refused: held.counters.refused.load(Ordering::Relaxed),
                logins: settings.logins.states(),
            }
        };
        let mut boxes: Vec<BoxState> = self.boxes.iter().map(state).collect();
        boxes.sort_by_key(|state| state.box_id);
        Status {
            build: self.build.clone(),
            pid: std::process::id(),
            configured: self.holdings.borrow().configured.is_some(),
            has_ca: self.has_ca,
            boxes,
            credentials: self.credential_states(),
            parked: self.parked.ids(),
            events_lost: self.queue.lost(),
        }
    }
}

/// What the limit of open files leaves room for.
fn connections_in_all(files: u64) -> usize {
    let files = usize::try_from(files).unwrap_or(usize::MAX).min(FILES_MAX);
    files.saturating_sub(limits::DESCRIPTORS_KEPT) / limits::DESCRIPTORS_PER_CONNECTION
}

impl Host {
    fn hang_up(&mut self) {
        *self = Self::default();
    }

    fn push(&mut self, message: &Message) {
        match packet::encode(message, &[]) {
            Ok(encoded) => self.waiting.push_back(encoded),
            // Longer than any message may be: the host learns that its call has no answer.
            Err(_) => self.hang_up(),
        }
    }

    /// Sends what has waited longest; never returns when there is nothing to send.
    async fn first_sent(&self) -> io::Result<()> {
        match (&self.packets, self.waiting.front()) {
            (Some(packets), Some(first)) => packets.send(first).await,
            _ => std::future::pending().await,
        }
    }

    /// The next packet; never returns when no host is there.
    async fn receive(&self) -> io::Result<Option<Received>> {
        match &self.packets {
            Some(packets) => packets.receive().await,
            None => std::future::pending().await,
        }
    }
}
