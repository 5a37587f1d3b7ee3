//! The page's door: HTTP/1.1 and 2 on loopback, and one WebSocket.
//!
//! A request meets, in this order: `listen` (where), `guard` (`Host`, `Origin`), `gate` (whose
//! cookie), `routes` (the one table of endpoints), the endpoint's own file, and `control`, which
//! does what is asked as for any other client. Nothing without a cookie but the page's own files,
//! `/healthz` and pairing.

mod agents;
mod answer;
mod assets;
mod boxes;
mod call;
mod checklist;
mod clone;
mod decisions;
mod doctor;
mod files;
mod gate;
mod guard;
mod health;
mod journal;
mod listen;
mod me;
mod metrics;
mod network;
mod new_box;
mod openapi;
mod pair;
mod plain;
mod policy;
mod power;
mod programs;
mod push;
mod remove;
mod rename;
mod routes;
mod run;
mod search;
mod seats;
mod shell;
mod sign_ins;
mod snapshots;
mod socket;
mod statics;
mod thread;
mod thread_commands;
mod thread_log;
mod threads;
mod tokens;
mod trash;
mod tries;
mod usage;
mod workspace;

pub(crate) use listen::{Listening, listen};

use crate::control::{Door, told_to_stop};
use guard::Guard;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use seats::{Seat, Seats};
use socket::Sockets;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tries::{Rates, Tries};

/// Longest a client may take over the head of a request.
const HEAD_DEADLINE: Duration = Duration::from_secs(20);
/// Largest head of a request, bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a connection has to end by itself when the host ends.
const END_GRACE: Duration = Duration::from_millis(500);

/// What every request needs.
#[derive(Debug)]
pub(crate) struct Web {
    door: Door,
    guard: Guard,
    sockets: Sockets,
    pairing: Tries,
    /// Tokens that do not stand for anybody, and how often those that do are shown.
    tokens: (Tries, Rates),
    seats: Seats,
    plain: plain::Readers,
    /// What `/metrics` counts.
    counts: metrics::Counts,
}

/// Where a connection came in.
#[derive(Debug, Clone)]
struct Ends {
    local: SocketAddr,
    peer: SocketAddr,
    seat: Arc<Seat>,
}

/// Serves the page until the host is to end.
pub(crate) async fn serve(door: Door, listening: Listening) {
    let settings = &door.host.settings.page;
    let guard = Guard::new(settings, listening.port);
    let web = Arc::new(Web {
        sockets: Sockets::default(),
        pairing: Tries::default(),
        tokens: (Tries::default(), Rates::default()),
        seats: Seats::default(),
        plain: plain::Readers::default(),
        counts: metrics::Counts::default(),
        guard,
        door,
    });
    let mut accepting = JoinSet::new();
    for listener in listening.listeners {
        accepting.spawn(accept(Arc::clone(&web), listener));
    }
    accepting.join_all().await;
}

async fn accept(web: Arc<Web>, listener: TcpListener) {
    let mut stop = web.door.stop.subscribe();
    let mut connections = JoinSet::new();
    let graceful = GracefulShutdown::new();
    loop {
        while connections.try_join_next().is_some() {}
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let Ok(local) = stream.local_addr() else { continue };
                    let seat = web.seats.take().await;
                    let ends = Ends { local, peer, seat: Arc::clone(&seat) };
                    let watched = connection(&web, stream, ends, &graceful);
                    let web = Arc::clone(&web);
                    connections.spawn(async move {
                        tokio::select! {
                            () = watched => {}
                            () = seat.needed() => {}
                        }
                        web.seats.leave(&seat);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a browser was not let in");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            () = told_to_stop(&mut stop) => break,
        }
    }
    drop(listener);
    drop(tokio::time::timeout(END_GRACE, graceful.shutdown()).await);
    connections.shutdown().await;
}

fn connection(
    web: &Arc<Web>,
    stream: TcpStream,
    ends: Ends,
    graceful: &GracefulShutdown,
) -> impl Future<Output = ()> + Send + 'static {
    let web = Arc::clone(web);
    // Frames are whole when they are written; waiting for more only makes a page slow.
    drop(stream.set_nodelay(true));
    let service = service_fn(move |request: Request<Incoming>| {
        let (web, ends) = (Arc::clone(&web), ends.clone());
        async move {
            Ok::<Response<answer::Body>, std::convert::Infallible>(
                gate::pass(&web, ends, request).await,
            )
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .max_buf_size(HEAD_BYTES_MAX);
    builder.http2().timer(TokioTimer::new());
    let served = builder
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .into_owned();
    let served = graceful.watch(served);
    async move {
        if let Err(error) = served.await {
            tracing::debug!(error = %error, "a browser went away");
        }
    }
}
