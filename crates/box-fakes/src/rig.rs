//! The internet, in a network namespace of its own.
//!
//! [`Rig::start`] makes two namespaces joined by a cable. The calling thread moves into the
//! *host* side, and what it starts from then on (threads, processes) is there as well: it has a
//! link, a default route for IPv4 and IPv6, and nothing else. On the far side one thread holds
//! *every* address there is, so that a program under test can dial what it likes, public or
//! private, and is counted there. Both namespaces are unnamed and end with their threads.

mod authority;
mod corporate;
mod dns;
mod forge;
pub(crate) mod internet;
mod namespace;
mod peer;
pub(crate) mod site;
mod web;
mod world;

pub use authority::LeafKind;
pub use corporate::StrictProxy;
pub use dns::Answer;
pub use namespace::private_mounts;
pub use peer::{Handler, Peer, PeerStream};
pub use site::Reply;
pub use world::{Query, Recorded, Traffic};

use crate::model::{Api, Model};
use crate::push::PushService;
use crate::vendors::Vendors;
use anyhow::{Context as _, Result, anyhow};
use internet::{Internet, Job};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;
pub(crate) use web::AnswerBody;
pub(crate) use world::World;

/// The only name server.
pub(crate) const RESOLVER: Ipv4Addr = Ipv4Addr::new(45, 33, 32, 53);
/// Names of a rig that have an address of their own.
const ORIGINS_MAX: u8 = 150;
/// Jobs waiting for the internet's thread.
const JOBS_MAX: usize = 256;
/// How long the internet may take for what needs no waiting.
const JOB_DEADLINE: Duration = Duration::from_secs(10);

/// Both sides. Dropping it ends the internet and takes the thread back to where it came from.
#[derive(Debug)]
pub struct Rig {
    net: Net,
    internet: Option<JoinHandle<()>>,
    /// Keeps the rig on its thread: a namespace belongs to a thread.
    _home: namespace::Home,
}

/// The internet as a test sees it; may go to other threads.
#[derive(Debug, Clone)]
pub struct Net {
    jobs: mpsc::Sender<Job>,
    ca_pem: Arc<str>,
}

/// A name that is served on ports 80 and 443.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub name: String,
    pub address: IpAddr,
}

/// What listens on a port that is neither 80 nor 443.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listener {
    /// Sends back what comes.
    Echo,
    /// Reads and says nothing.
    Sink,
    /// Speaks first, then reads.
    Greeting(Vec<u8>),
}

impl Rig {
    /// Makes both namespaces and moves the calling thread into the host side. Call it before
    /// the thread starts another thread or a process that shall be on the rig.
    ///
    /// # Errors
    /// Without root, or without the `ip` program.
    pub fn start() -> Result<Self> {
        let home = namespace::enter_host_side()?;
        let (ca_pem, authority) = authority::Authority::new()?;
        let (jobs, inbox) = mpsc::channel(JOBS_MAX);
        let host_thread = namespace::this_thread();
        let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
        let internet = std::thread::Builder::new()
            .name("internet".to_owned())
            .spawn(move || internet::run(authority, host_thread, inbox, &ready))
            .context("could not start the internet's thread")?;
        is_ready
            .recv_timeout(JOB_DEADLINE)
            .context("the internet did not come up in time")?
            .context("could not make the internet")?;
        namespace::cable_host_side()?;
        let net = Net {
            jobs,
            ca_pem: ca_pem.into(),
        };
        Ok(Self {
            net,
            internet: Some(internet),
            _home: home,
        })
    }
}

impl Deref for Rig {
    type Target = Net;
    fn deref(&self) -> &Net {
        &self.net
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // Dropping the last sender ends the internet's loop; a clone kept elsewhere does not,
        // so it is told as well.
        let _told = self.net.jobs.try_send(Job::End);
        if let Some(thread) = self.internet.take() {
            let _ended = thread.join();
        }
    }
}

impl Net {
    /// Where the name server answers, UDP and TCP.
    pub fn resolver_addr(&self) -> SocketAddr {
        SocketAddr::new(RESOLVER.into(), 53)
    }

    /// The certificate every server of the internet is signed with.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Answers every query for `name` with `answer`.
    pub fn zone(&self, name: &str, answer: Answer) {
        self.zone_script(name, vec![answer]);
    }

    /// Answers query after query for `name` with the next of `answers`, the last one for ever.
    /// A and AAAA are counted apart.
    pub fn zone_script(&self, name: &str, answers: Vec<Answer>) {
        let name = name.to_ascii_lowercase();
        self.ask(move |world| world.set_zone(name, answers));
    }

    /// Every query the name server got, in order.
    pub fn queries(&self) -> Vec<Query> {
        self.ask(|world| world.queries.clone())
    }

    /// How many queries for `name` there were, of whatever type.
    pub fn queries_for(&self, name: &str) -> usize {
        self.queries()
            .iter()
            .filter(|query| query.name == name)
            .count()
    }

    /// Gives `name` an address of its own and serves it: `hello from <name>`, `/bytes/<n>`,
    /// `/echo`, `/headers`. The same name twice is the same origin.
    pub fn origin(&self, name: &str) -> Origin {
        let wanted = name.to_ascii_lowercase();
        let found = self.ask(move |world| {
            let number = world.origin_number(&wanted, ORIGINS_MAX)?;
            let address = IpAddr::from(Ipv4Addr::new(45, 33, 32, 100 + number));
            world.set_zone(wanted.clone(), vec![Answer::addresses([address])]);
            Some(Origin {
                name: wanted,
                address,
            })
        });
        // A test that asks for more has made a mistake it must see.
        assert!(found.is_some(), "a rig has room for {ORIGINS_MAX} origins");
        found.unwrap_or_else(|| Origin {
            name: String::new(),
            address: RESOLVER.into(),
        })
    }

    /// From now on `name` answers every request with `reply`.
    pub fn reply(&self, name: &str, reply: Reply) {
        let name = name.to_ascii_lowercase();
        self.ask(move |world| world.replies.insert(name, reply));
    }

    /// Serves the bare repositories below `folder` at `name`, to whoever has `token`: whatever
    /// `git http-backend` answers, but for replies that were set.
    pub fn forge(&self, name: &str, folder: &std::path::Path, token: &str) {
        self.origin(name);
        let name = name.to_ascii_lowercase();
        let (folder, token) = (folder.to_owned(), token.to_owned());
        self.ask(move |world| world.forges.insert(name, forge::Forge { folder, token }));
    }

    /// From now on `name` shows a certificate of this kind.
    pub fn certificate(&self, name: &str, kind: LeafKind) {
        let name = name.to_ascii_lowercase();
        self.ask(move |world| world.leaves.insert(name, kind));
    }

    /// Listens on `port` of every address.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn listen(&self, port: u16, listener: Listener) -> Result<()> {
        self.run(move |internet| internet::listen(internet, port, listener))?
    }

    /// A proxy at every address.
    ///
    /// # Errors
    /// When its port is taken.
    pub fn proxy(&self, proxy: StrictProxy) -> Result<()> {
        self.run(move |internet| corporate::proxy(internet, proxy))?
    }

    /// What proxies were asked to connect to, in order.
    pub fn tunnels(&self) -> Vec<String> {
        self.ask(|world| world.tunnels.clone())
    }

    /// Name servers at every address that show a certificate for `name`: over TLS at the first
    /// port, over HTTPS at the second.
    ///
    /// # Errors
    /// When a port is taken.
    pub fn secure_dns(&self, name: &str, ports: (u16, u16)) -> Result<()> {
        let name = name.to_owned();
        self.run(move |internet| corporate::secure_dns(internet, &name, ports))?
    }

    /// Names that were asked for over TLS or HTTPS, in order.
    pub fn asked_secretly(&self) -> Vec<String> {
        self.ask(|world| world.asked_secretly.clone())
    }

    /// A model server at `api.anthropic.com` that takes `token` and nothing else.
    pub fn model(&self, token: &str) -> Model {
        self.model_of(Api::Anthropic, token)
    }

    /// A model server at the host of an API that takes `token` and nothing else. Several share
    /// their scripts.
    pub fn model_of(&self, api: Api, token: &str) -> Model {
        for host in api.hosts() {
            self.origin(host);
        }
        let token = token.to_owned();
        self.ask(move |world| world.model.open_for(api, token));
        Model::new(self.clone(), api)
    }

    /// A push service at `name`.
    pub fn push_service(&self, name: &str) -> PushService {
        PushService::new(self.clone(), name)
    }

    /// The vendors' token endpoints and a few paths that take their tokens.
    pub fn vendors(&self) -> Vendors {
        Vendors::new(self.clone())
    }

    /// The requests whose `Host` (or authority) was `name`, in order of their heads.
    pub fn requests(&self, name: &str) -> Vec<Recorded> {
        let name = name.to_ascii_lowercase();
        self.ask(move |world| {
            world
                .requests
                .iter()
                .filter(|request| request.name == name)
                .cloned()
                .collect()
        })
    }

    /// Every request of every name.
    pub fn all_requests(&self) -> Vec<Recorded> {
        self.ask(|world| world.requests.clone())
    }

    /// How many connections to `addr` were accepted.
    pub fn accepts(&self, addr: SocketAddr) -> u64 {
        self.ask(move |world| world.accepts.get(&addr).copied().unwrap_or(0))
    }

    /// Waits until connection number `count` to `addr` was accepted. A client sees its
    /// connection before the internet has counted it, so waiting is the way to ask.
    ///
    /// # Errors
    /// When `deadline` has passed.
    pub fn wait_for_accepts(&self, addr: SocketAddr, count: u64, deadline: Duration) -> Result<()> {
        self.wait_for(
            &format!("{count} connections to {addr}"),
            deadline,
            move |world| {
                world
                    .accepts
                    .get(&addr)
                    .filter(|seen| **seen >= count)
                    .map(|_| ())
            },
        )
    }

    /// Connections accepted on all addresses and ports, the name server's left out.
    pub fn accepts_in_all(&self) -> u64 {
        self.ask(|world| world.accepts.values().sum())
    }

    /// What reached the internet's network card so far.
    ///
    /// # Errors
    /// When the kernel's counters cannot be read.
    pub fn traffic(&self) -> Result<Traffic> {
        self.run(|_| Traffic::of_this_thread())?
    }

    /// What happened on the internet, a line each; for a failed test's output.
    pub fn diary(&self) -> Vec<String> {
        self.ask(|world| world.diary.iter().cloned().collect())
    }

    /// Waits until `look` finds something; `what` names it in the error.
    ///
    /// # Errors
    /// When `deadline` has passed, with the end of the diary.
    pub fn wait_for<R: Send + 'static>(
        &self,
        what: &str,
        deadline: Duration,
        look: impl FnMut(&World) -> Option<R> + Send + 'static,
    ) -> Result<R> {
        let (say, heard) = std::sync::mpsc::sync_channel(1);
        let job: Job = Job::Run(Box::new(move |internet: &Rc<Internet>| {
            let internet = Rc::clone(internet);
            tokio::task::spawn_local(async move {
                let found = tokio::time::timeout(deadline, internet.until(look))
                    .await
                    .ok();
                // The asker may have given up.
                let _sent = say.send(found);
            });
        }));
        self.send(job)?;
        let found = heard.recv_timeout(deadline + JOB_DEADLINE).ok().flatten();
        found.ok_or_else(|| {
            let diary = self.diary();
            let tail = diary
                .get(diary.len().saturating_sub(40)..)
                .unwrap_or_default();
            anyhow!(
                "waited {deadline:?} for {what}; the internet saw:\n{}",
                tail.join("\n")
            )
        })
    }

    /// Waits for the request number `count` to `name`.
    ///
    /// # Errors
    /// When `deadline` has passed.
    pub fn wait_for_requests(
        &self,
        name: &str,
        count: usize,
        deadline: Duration,
    ) -> Result<Vec<Recorded>> {
        let wanted = name.to_ascii_lowercase();
        self.wait_for(
            &format!("{count} requests to {name}"),
            deadline,
            move |world| {
                let of_name: Vec<Recorded> = world
                    .requests
                    .iter()
                    .filter(|request| request.name == wanted)
                    .cloned()
                    .collect();
                (of_name.len() >= count).then_some(of_name)
            },
        )
    }

    /// Looks at, or changes, the internet's state.
    pub(crate) fn ask<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut World) -> R + Send + 'static,
    ) -> R {
        let answer = self.run(move |internet| internet.with(f));
        match answer {
            Ok(answer) => answer,
            // The internet's thread is gone: it panicked, and so shall the test.
            Err(error) => std::panic::panic_any(format!("{error:#}")),
        }
    }

    fn run<R: Send + 'static>(
        &self,
        f: impl FnOnce(&Rc<Internet>) -> R + Send + 'static,
    ) -> Result<R> {
        let (say, heard) = std::sync::mpsc::sync_channel(1);
        self.send(Job::Run(Box::new(move |internet: &Rc<Internet>| {
            let _sent = say.send(f(internet));
        })))?;
        heard
            .recv_timeout(JOB_DEADLINE)
            .context("the internet did not answer")
    }

    fn send(&self, job: Job) -> Result<()> {
        self.jobs
            .try_send(job)
            .map_err(|error| anyhow!("the internet takes no job: {error}"))
    }
}
