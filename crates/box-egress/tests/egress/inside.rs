//! A box, as far as its network goes: a namespace with nothing but `lo`, the sockets its engine
//! would open there, and a thread that acts as the programs in it.

use crate::client::Client;
use box_api::BoxId;
use box_api::egress::Listeners;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::UnshareFlags;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;

const DEADLINE: Duration = Duration::from_secs(30);
const SET_UP: &str = "\
link set lo up
addr add 198.18.0.2/32 dev lo
route add local 198.18.0.0/15 dev lo src 198.18.0.2
";

type Job = Box<dyn FnOnce(&Runtime, &Client) + Send>;

pub(crate) struct Inside {
    pub(crate) id: BoxId,
    jobs: Option<mpsc::SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    sockets: Vec<OwnedFd>,
    /// Stands for pid 1 of the box.
    life: Child,
}

impl Inside {
    /// Programs in it trust the deployment's CA and the internet's, as the bundle in a box does.
    pub(crate) fn start(id: BoxId, ca_pem: &str, internet_ca_pem: &str) -> Self {
        let bundle = format!("{ca_pem}\n{internet_ca_pem}");
        let (jobs, inbox) = mpsc::sync_channel::<Job>(1);
        let (ready, sockets) = mpsc::sync_channel(1);
        let thread = std::thread::spawn(move || {
            enter();
            ready.send(listen()).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let client = Client::new(&bundle);
            for job in inbox {
                job(&runtime, &client);
            }
        });
        let sockets = sockets.recv_timeout(DEADLINE).unwrap();
        let life = Command::new("sleep").arg("1000").spawn().unwrap();
        Self {
            id,
            jobs: Some(jobs),
            thread: Some(thread),
            sockets,
            life,
        }
    }

    pub(crate) fn listeners(&self) -> Listeners {
        if self.sockets.len() == 4 {
            Listeners::AllPorts
        } else {
            Listeners::Two
        }
    }

    /// Keeps the https listener's place for one that takes `port` as an engine's would take all.
    pub(crate) fn only_transparent_port(&mut self, port: u16) {
        self.sockets.truncate(3);
        let socket = self.run(move |_| async move { listener(Ipv4Addr::UNSPECIFIED, port) });
        self.sockets.push(socket);
    }

    /// Copies, so that the box can be registered again, in the order the protocol wants them.
    pub(crate) fn descriptors(&self) -> Vec<OwnedFd> {
        let pid = Pid::from_child(&self.life);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let copies = self
            .sockets
            .iter()
            .map(|socket| socket.try_clone().unwrap());
        copies.chain([pidfd]).collect()
    }

    /// Ends the box as its pid 1 would.
    pub(crate) fn die(&mut self) {
        self.life.kill().unwrap();
        self.life.wait().unwrap();
    }

    /// Does something as a program of the box.
    pub(crate) fn run<T, F, Doing>(&self, doing: F) -> T
    where
        T: Send + 'static,
        F: FnOnce(Client) -> Doing + Send + 'static,
        Doing: Future<Output = T>,
    {
        let heard = self.begin(doing);
        Self::outcome(&heard)
    }

    /// What came of [`Inside::begin`].
    pub(crate) fn outcome<T>(heard: &mpsc::Receiver<Option<T>>) -> T {
        let outcome = heard.recv_timeout(2 * DEADLINE).unwrap();
        outcome.expect("the program in the box took too long")
    }

    /// Begins something as a program of the box; one thing at a time.
    pub(crate) fn begin<T, F, Doing>(&self, doing: F) -> mpsc::Receiver<Option<T>>
    where
        T: Send + 'static,
        F: FnOnce(Client) -> Doing + Send + 'static,
        Doing: Future<Output = T>,
    {
        let (say, heard) = mpsc::sync_channel(1);
        let job: Job = Box::new(move |runtime, client| {
            let outcome = runtime
                .block_on(async { tokio::time::timeout(DEADLINE, doing(client.clone())).await });
            drop(say.send(outcome.ok()));
        });
        self.jobs.as_ref().unwrap().send(job).unwrap();
        heard
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        drop(self.life.kill());
        drop(self.life.wait());
    }
}

#[expect(
    deprecated,
    reason = "the successor is unsafe, for flags that are not used here"
)]
fn enter() {
    rustix::thread::unshare(UnshareFlags::NEWNET).unwrap();
    let mut ip = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    ip.stdin
        .take()
        .unwrap()
        .write_all(SET_UP.as_bytes())
        .unwrap();
    assert!(ip.wait().unwrap().success());
}

/// What an engine without TPROXY opens.
fn listen() -> Vec<OwnedFd> {
    let dns = Ipv4Addr::new(198, 18, 0, 1);
    vec![
        UdpSocket::bind((dns, 53)).unwrap().into(),
        listener(dns, 53),
        listener(Ipv4Addr::LOCALHOST, 3128),
        listener(Ipv4Addr::UNSPECIFIED, 80),
        listener(Ipv4Addr::UNSPECIFIED, 443),
    ]
}

fn listener(addr: Ipv4Addr, port: u16) -> OwnedFd {
    let listener = TcpListener::bind(SocketAddr::from((addr, port))).unwrap();
    // As long a queue as an engine asks for; the standard library's is 128.
    rustix::net::listen(&listener, 1024).unwrap();
    listener.into()
}
