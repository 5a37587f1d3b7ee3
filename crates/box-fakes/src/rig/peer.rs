//! Servers that a test brings along, in the place of the ordinary web server of one address.

use super::internet::Internet;
use super::{LeafKind, Net};
use anyhow::{Context as _, Result};
use rustls::ServerConfig;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::process::{Child, Command};
use std::rc::Rc;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// What a [`Peer`] talks over.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

pub type PeerStream = Box<dyn Duplex>;
type Served = Pin<Box<dyn Future<Output = ()>>>;

/// Serves one connection, on the internet's thread.
#[derive(Clone)]
pub struct Handler(Arc<dyn Fn(PeerStream) -> Served + Send + Sync>);

impl Handler {
    pub fn new<F, Doing>(serve: F) -> Self
    where
        F: Fn(PeerStream) -> Doing + Send + Sync + 'static,
        Doing: Future<Output = ()> + 'static,
    {
        Self(Arc::new(move |stream| Box::pin(serve(stream))))
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

/// Who answers at an address and port.
#[derive(Debug, Clone)]
pub enum Peer {
    /// Speaks TLS as `name`, and one of these protocols.
    Tls {
        name: String,
        alpn: Vec<Vec<u8>>,
        serve: Handler,
    },
    /// Takes the bare connection.
    Tcp(Handler),
    /// A program that listens on this port of 127.0.0.1; see [`Net::start`].
    Program { port: u16 },
}

impl Peer {
    pub fn tls(name: &str, alpn: &[&str], serve: Handler) -> Self {
        Self::Tls {
            name: name.to_owned(),
            alpn: alpn
                .iter()
                .map(|protocol| protocol.as_bytes().to_vec())
                .collect(),
            serve,
        }
    }
}

impl Net {
    /// From now on `peer` answers connections to `at`, which has port 80 or 443.
    pub fn peer(&self, at: SocketAddr, peer: Peer) {
        self.ask(move |world| world.peers.insert(at, peer));
    }

    /// Starts a program on the internet's side. Whoever gets the child ends it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, mut command: Command) -> Result<Child> {
        // A child lives in the namespace of the thread that starts it.
        self.run(move |_| command.spawn())?
            .context("could not start a program on the internet's side")
    }
}

pub(crate) async fn serve(internet: Rc<Internet>, stream: TcpStream, peer: Peer) {
    let _no_delay = stream.set_nodelay(true);
    match peer {
        Peer::Tcp(handler) => (handler.0)(Box::new(stream)).await,
        Peer::Program { port } => hand_over(stream, port).await,
        Peer::Tls { name, alpn, serve } => {
            let Ok(config) = internet.authority.server(&name, LeafKind::Good) else {
                return;
            };
            let mut config = ServerConfig::clone(&config);
            config.alpn_protocols = alpn;
            match TlsAcceptor::from(Arc::new(config)).accept(stream).await {
                Ok(stream) => (serve.0)(Box::new(stream)).await,
                Err(why) => internet.note(format!("tls as {name}: {why}")),
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the other end is a test's own program"
)]
async fn hand_over(mut stream: TcpStream, port: u16) {
    if let Ok(mut program) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
        // How either end leaves is its own affair.
        let _end = tokio::io::copy_bidirectional(&mut stream, &mut program).await;
    }
}
