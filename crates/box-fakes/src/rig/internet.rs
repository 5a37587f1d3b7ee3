//! The internet's thread: owns all state, serves every port.

use super::authority::Authority;
use super::{Listener, RESOLVER, World, dns, namespace, peer, web};
use anyhow::{Context as _, Result};
use rustix::thread::Pid;
use std::cell::RefCell;
use std::net::{Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::mpsc::SyncSender;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::sync::{Notify, mpsc};

/// Runs on the internet's thread.
pub(crate) type Work = Box<dyn FnOnce(&Rc<Internet>) + Send>;

/// What a test wants of the internet.
pub(crate) enum Job {
    Run(Work),
    End,
}

/// State and what belongs to it. Lives on one thread, so nothing in it is locked.
#[derive(Debug)]
pub(crate) struct Internet {
    world: RefCell<World>,
    changed: Notify,
    pub(crate) authority: Authority,
}

impl Internet {
    /// Changes the world and wakes whoever waits for a change. `f` must not await.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut World) -> R) -> R {
        let result = f(&mut self.world.borrow_mut());
        self.changed.notify_waiters();
        result
    }

    /// Looks again at every change until `look` finds something.
    pub(crate) async fn until<R>(&self, mut look: impl FnMut(&World) -> Option<R>) -> R {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // Before looking: a change between the two would be lost.
            changed.as_mut().enable();
            if let Some(found) = look(&self.world.borrow()) {
                return found;
            }
            changed.await;
        }
    }

    pub(crate) fn note(&self, line: String) {
        self.with(|world| world.note(line));
    }
}

/// Runs until it is told to end or nobody is left who could tell it.
pub(crate) fn run(
    authority: Authority,
    host_thread: Pid,
    inbox: mpsc::Receiver<Job>,
    ready: &SyncSender<Result<()>>,
) {
    let set_up = || {
        namespace::enter_internet_side(host_thread)?;
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("could not start the internet's runtime")
    };
    match set_up() {
        Ok(runtime) => {
            let internet = Rc::new(Internet {
                world: RefCell::new(World::default()),
                changed: Notify::new(),
                authority,
            });
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, serve(internet, inbox, ready));
        }
        Err(error) => {
            let _told = ready.send(Err(error));
        }
    }
}

async fn serve(
    internet: Rc<Internet>,
    mut inbox: mpsc::Receiver<Job>,
    ready: &SyncSender<Result<()>>,
) {
    let started = start_servers(&internet).await;
    let failed = started.is_err();
    let _told = ready.send(started);
    if failed {
        return;
    }
    while let Some(Job::Run(work)) = inbox.recv().await {
        work(&internet);
    }
}

async fn start_servers(internet: &Rc<Internet>) -> Result<()> {
    let resolver = SocketAddr::new(RESOLVER.into(), 53);
    let udp = UdpSocket::bind(resolver)
        .await
        .context("could not open the name server")?;
    let tcp = TcpListener::bind(resolver)
        .await
        .context("could not open the name server")?;
    tokio::task::spawn_local(dns::serve_udp(Rc::clone(internet), udp));
    tokio::task::spawn_local(dns::serve_tcp(Rc::clone(internet), tcp));
    for (port, scheme) in [(80, web::Scheme::Http), (443, web::Scheme::Https)] {
        let listener = everywhere(port)?;
        let internet = Rc::clone(internet);
        tokio::task::spawn_local(async move {
            while let Some((stream, at)) = accept(&internet, &listener).await {
                let internet = Rc::clone(&internet);
                match internet.with(|world| world.peers.get(&at).cloned()) {
                    Some(own) => tokio::task::spawn_local(peer::serve(internet, stream, own)),
                    None => tokio::task::spawn_local(web::serve(internet, stream, at, scheme)),
                };
            }
        });
    }
    Ok(())
}

/// Opens one more port of every address.
pub(crate) fn listen(internet: &Rc<Internet>, port: u16, kind: Listener) -> Result<()> {
    let listener = everywhere(port)?;
    let internet = Rc::clone(internet);
    tokio::task::spawn_local(async move {
        while let Some((stream, _)) = accept(&internet, &listener).await {
            tokio::task::spawn_local(talk(stream, kind.clone()));
        }
    });
    Ok(())
}

/// A listener for IPv4 and IPv6 on every address.
pub(crate) fn everywhere(port: u16) -> Result<TcpListener> {
    let open = || {
        let socket = TcpSocket::new_v6()?;
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port))?;
        socket.listen(1024)
    };
    open().with_context(|| format!("could not listen on port {port}"))
}

/// The next connection and the address that was dialled, counted.
pub(crate) async fn accept(
    internet: &Internet,
    listener: &TcpListener,
) -> Option<(TcpStream, SocketAddr)> {
    let (stream, _) = listener.accept().await.ok()?;
    let at = stream.local_addr().ok()?;
    let at = SocketAddr::new(at.ip().to_canonical(), at.port());
    internet.with(|world| {
        *world.accepts.entry(at).or_default() += 1;
        world.note(format!("accept {at}"));
    });
    Some((stream, at))
}

async fn talk(mut stream: TcpStream, kind: Listener) -> Option<()> {
    if let Listener::Greeting(greeting) = &kind {
        stream.write_all(greeting).await.ok()?;
    }
    let mut piece = [0; 4096];
    loop {
        let count = stream
            .read(&mut piece)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        if kind == Listener::Echo {
            stream.write_all(piece.get(..count)?).await.ok()?;
        }
    }
}
