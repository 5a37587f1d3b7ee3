//! The task of one box: its listening sockets, its resolver, its open connections. It ends when
//! the box does; everything it started ends with it.

use crate::accept::{Stands, close_with, proxy, transparent};
use crate::context::BoxContext;
use crate::dns::{Answerer, QUERY_BYTES_MAX};
use crate::limits::{self, Bucket};
use crate::names::REFUSAL_ADDRESS;
use crate::refuse::{Door, Refused};
use crate::socket::reset;
use box_api::BoxId;
use box_api::egress::{MappedName, Reason};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// A DNS connection that says nothing for so long is closed.
const DNS_TCP_IDLE: Duration = Duration::from_secs(10);
const DNS_TCP_QUERIES_MAX: usize = 200;
const DNS_TCP_CONNECTIONS_MAX: usize = 64;
const FAREWELLS_MAX: usize = 64;
/// Out of descriptors: wait for some to come back rather than spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const MAIL_MAX: usize = 16;
/// How often the host is told what was added up.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// What the host handed over for a box, ready to be served.
pub(crate) struct BoxListeners {
    pub(crate) dns_udp: UdpSocket,
    pub(crate) dns_tcp: TcpListener,
    pub(crate) proxy: TcpListener,
    pub(crate) first: TcpListener,
    /// The https one of two; absent where one listener takes every port.
    pub(crate) second: Option<TcpListener>,
    /// Readable once the box is gone.
    pub(crate) pidfd: AsyncFd<OwnedFd>,
}

/// A question to the box's task.
pub(crate) enum Mail {
    Map(oneshot::Sender<Vec<MappedName>>),
}

/// Told when a box is gone by itself. `generation` tells it apart from one registered since.
pub(crate) struct Gone {
    pub(crate) box_id: BoxId,
    pub(crate) generation: u64,
}

struct TcpQuestion {
    query: Vec<u8>,
    reply: oneshot::Sender<Option<Vec<u8>>>,
}

pub(crate) fn mailbox() -> (mpsc::Sender<Mail>, mpsc::Receiver<Mail>) {
    mpsc::channel(MAIL_MAX)
}

pub(crate) struct BoxTask {
    ctx: Arc<BoxContext>,
    listeners: BoxListeners,
    answerer: Answerer,
    mail: mpsc::Receiver<Mail>,
    questions: (mpsc::Sender<TcpQuestion>, mpsc::Receiver<TcpQuestion>),
    connections: JoinSet<()>,
    dns_connections: JoinSet<()>,
    /// Connections that are being refused.
    farewells: JoinSet<()>,
    bucket: Bucket,
}

impl BoxTask {
    pub(crate) fn new(
        ctx: Arc<BoxContext>,
        listeners: BoxListeners,
        known: &[MappedName],
        mail: mpsc::Receiver<Mail>,
    ) -> Self {
        Self {
            answerer: Answerer::new(Arc::clone(&ctx), known),
            ctx,
            listeners,
            mail,
            questions: mpsc::channel(DNS_TCP_CONNECTIONS_MAX),
            connections: JoinSet::new(),
            dns_connections: JoinSet::new(),
            farewells: JoinSet::new(),
            bucket: Bucket::new(limits::CONNECTIONS_PER_SECOND, limits::CONNECTIONS_BURST),
        }
    }

    /// Serves the box until it is gone or the host forgets it.
    pub(crate) async fn run(mut self) {
        let mut datagram = vec![0; QUERY_BYTES_MAX];
        let mut told = interval(TOLD_EVERY);
        told.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = self.listeners.pidfd.readable() => return,
                mail = self.mail.recv() => match mail {
                    Some(mail) => self.reply(mail),
                    None => return,
                },
                got = self.listeners.dns_udp.recv_from(&mut datagram) => {
                    self.on_datagram(got, &datagram).await;
                }
                Some(question) = self.questions.1.recv() => {
                    let answer = self.answerer.answer(&question.query);
                    // The connection may be closed by now.
                    drop(question.reply.send(answer));
                }
                got = self.listeners.dns_tcp.accept() => self.on_dns_connection(got).await,
                got = self.listeners.proxy.accept() => self.on_proxy(got).await,
                got = self.listeners.first.accept() => self.on_transparent(got).await,
                got = accept_if_there(self.listeners.second.as_ref()) => {
                    self.on_transparent(got).await;
                }
                Some(_) = self.connections.join_next() => self.count(),
                _ = told.tick() => self.ctx.catch_up(),
                Some(_) = self.dns_connections.join_next() => {}
                Some(_) = self.farewells.join_next() => {}
            }
        }
    }

    fn reply(&self, mail: Mail) {
        match mail {
            // Whoever asked may have given up.
            Mail::Map(reply) => drop(reply.send(self.answerer.map())),
        }
    }

    async fn on_datagram(&mut self, got: io::Result<(usize, SocketAddr)>, datagram: &[u8]) {
        let Ok((bytes, from)) = got else {
            return sleep(ACCEPT_PAUSE).await;
        };
        let answer = datagram
            .get(..bytes)
            .and_then(|query| self.answerer.answer(query));
        if let Some(answer) = answer {
            // Never waited for: a full buffer loses an answer, as UDP may.
            drop(self.listeners.dns_udp.try_send_to(&answer, from));
        }
    }

    async fn on_dns_connection(&mut self, got: io::Result<(TcpStream, SocketAddr)>) {
        let Ok((stream, _)) = got else {
            return sleep(ACCEPT_PAUSE).await;
        };
        if self.dns_connections.len() < DNS_TCP_CONNECTIONS_MAX {
            let questions = self.questions.0.clone();
            self.dns_connections.spawn(async move {
                // A connection that breaks ends itself.
                drop(serve_dns(stream, questions).await);
            });
        }
    }

    async fn on_proxy(&mut self, got: io::Result<(TcpStream, SocketAddr)>) {
        let Ok((stream, _)) = got else {
            return sleep(ACCEPT_PAUSE).await;
        };
        match self.room() {
            Ok(room) => {
                let ctx = Arc::clone(&self.ctx);
                self.connections.spawn(async move {
                    proxy(ctx, stream).await;
                    drop(room);
                });
                self.count();
            }
            // Told why as long as that costs little; a flood is reset.
            Err(refused) if self.farewells.len() < FAREWELLS_MAX => {
                self.farewells.spawn(async move {
                    close_with(stream, &refused.wire(Door::Proxy)).await;
                });
            }
            Err(_) => reset(stream),
        }
    }

    async fn on_transparent(&mut self, got: io::Result<(TcpStream, SocketAddr)>) {
        let Ok((stream, _)) = got else {
            return sleep(ACCEPT_PAUSE).await;
        };
        let (Ok(room), Ok(local)) = (self.room(), stream.local_addr()) else {
            return reset(stream);
        };
        let (ctx, stands) = (Arc::clone(&self.ctx), self.stands_for(local));
        self.connections.spawn(async move {
            transparent(ctx, stream, stands, local.port()).await;
            drop(room);
        });
        self.count();
    }

    /// What the address a connection was made to stands for: getsockname gives it.
    fn stands_for(&self, local: SocketAddr) -> Stands {
        let name = match local {
            SocketAddr::V4(addr) if *addr.ip() == REFUSAL_ADDRESS => return Stands::ForRefusal,
            SocketAddr::V4(addr) => self.answerer.name_of(*addr.ip()),
            SocketAddr::V6(_) => None,
        };
        let nothing = || Stands::ForNothing {
            addr: local.ip().to_string(),
        };
        name.map_or_else(nothing, |name| Stands::For(name.clone()))
    }

    fn room(&self) -> Result<OwnedSemaphorePermit, Refused> {
        let own = self
            .ctx
            .with_settings(|settings| settings.policy.limits.connections);
        let own = own.and_then(|most| usize::try_from(most).ok());
        let most = own.unwrap_or(usize::MAX).min(limits::CONNECTIONS_MAX);
        let fits = self.connections.len() < most;
        if fits
            && self.bucket.take(Instant::now())
            && let Some(room) = self.ctx.room()
        {
            return Ok(room);
        }
        let refused = Refused::nameless(Reason::TooManyConnections);
        self.ctx.note(&refused);
        Err(refused)
    }

    fn count(&self) {
        let open = u32::try_from(self.connections.len()).unwrap_or(u32::MAX);
        self.ctx.counters.connections.store(open, Ordering::Relaxed);
    }
}

async fn accept_if_there(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// DNS over TCP: two bytes of length before every message (RFC 1035 §4.2.2).
async fn serve_dns(mut stream: TcpStream, questions: mpsc::Sender<TcpQuestion>) -> io::Result<()> {
    for _ in 0..DNS_TCP_QUERIES_MAX {
        let query = async {
            let bytes = usize::from(stream.read_u16().await?);
            let mut query = vec![0; bytes.min(QUERY_BYTES_MAX)];
            stream.read_exact(&mut query).await?;
            Ok::<_, io::Error>((query, bytes))
        };
        let (query, announced) = timeout(DNS_TCP_IDLE, query).await??;
        if announced > QUERY_BYTES_MAX {
            return Ok(());
        }
        let (reply, answer) = oneshot::channel();
        let asked = questions.send(TcpQuestion { query, reply }).await;
        let answer = if asked.is_ok() {
            answer.await.ok().flatten()
        } else {
            None
        };
        let Some(answer) = answer else { return Ok(()) };
        let length = u16::try_from(answer.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        let framed = [length.to_be_bytes().as_slice(), &answer].concat();
        timeout(DNS_TCP_IDLE, stream.write_all(&framed)).await??;
    }
    Ok(())
}
