//! The internet of a drill: answers at every address, knows three names, and checks a credential.

mod names;
mod tls;
mod web;

use crate::network;
use std::fs::File;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;
use tls::Authority;

pub(crate) const ALLOWED_NAME: &str = "allowed.example";
pub(crate) const REFUSED_NAME: &str = "refused.example";
/// The one host a Claude credential belongs to.
pub(crate) const CREDENTIAL_NAME: &str = "api.anthropic.com";
/// Names the boxes may reach whose owner points them at what nobody may: the machine, its loopback,
/// a cloud's metadata, the machine in the clothes of IPv6.
pub(crate) const INWARD_NAMES: [&str; 4] = [
    "machine.example",
    "loopback.example",
    "metadata.example",
    "mapped.example",
];

/// Where the machine itself listens, as something a box must not reach.
const MACHINE_PORTS: [u16; 2] = [80, 7777];
const LOOPBACK_PORT: u16 = 7778;
/// A socket of the machine without a file; in the drill's network, so it is this drill's alone.
pub(crate) const ABSTRACT_NAME: &str = "box-drill-machine";
const SET_UP_TIME_MAX: Duration = Duration::from_secs(20);

/// It runs until the process ends.
pub(crate) struct Internet {
    /// Certificate of the authority that signed every leaf.
    pub(crate) authority_pem: String,
}

impl Internet {
    /// Puts an internet behind the calling thread, which is on the machine's side. Names asked for
    /// are written to `asked`, a line each.
    ///
    /// # Errors
    /// Without `ip`, or when a port cannot be bound.
    pub(crate) fn start(credential: &str, asked: File) -> io::Result<Self> {
        let machine = rustix::thread::gettid();
        let (authority_pem, authority) = Authority::new().map_err(io::Error::other)?;
        let credential: Arc<str> = format!("Bearer {credential}").into();
        let (told, told_rx) = sync_channel(1);
        let authority = Arc::new(authority);
        thread::Builder::new()
            .name("internet".to_owned())
            .spawn(move || {
                let ready = network::enter_internet_side(machine)
                    .and_then(|()| serve(&authority, &credential, asked));
                tell(&told, ready);
                // Namespaces go with their last thread, so this one stays until the program ends.
                loop {
                    thread::park();
                }
            })?;
        told_rx
            .recv_timeout(SET_UP_TIME_MAX)
            .map_err(io::Error::other)??;
        network::cable_machine_side()?;
        serve_on_the_machine()?;
        Ok(Self { authority_pem })
    }
}

/// What runs on a machine beside boxes, and is none of their business.
fn serve_on_the_machine() -> io::Result<()> {
    let mut listeners = Vec::new();
    for port in MACHINE_PORTS {
        listeners.push(TcpListener::bind((network::HOST_V4, port))?);
    }
    for loopback in ["127.0.0.1", "::1"] {
        listeners.push(TcpListener::bind((loopback, LOOPBACK_PORT))?);
    }
    for listener in listeners {
        thread::spawn(move || web::serve_plain(&listener));
    }
    let address = SocketAddr::from_abstract_name(ABSTRACT_NAME)?;
    let listener = UnixListener::bind_addr(&address)?;
    thread::spawn(move || listener.incoming().for_each(drop));
    Ok(())
}

fn tell(told: &SyncSender<io::Result<()>>, ready: io::Result<()>) {
    if told.send(ready).is_err() {
        // Who asked gave up waiting and has said so.
    }
}

/// Binds everything; each listener then has a thread of its own, all in this namespace.
fn serve(authority: &Arc<Authority>, credential: &Arc<str>, asked: File) -> io::Result<()> {
    for port in [80, 8443] {
        let listener = TcpListener::bind(("::", port))?;
        thread::spawn(move || web::serve_plain(&listener));
    }
    let listener = TcpListener::bind(("::", 443))?;
    let (authority, credential) = (Arc::clone(authority), Arc::clone(credential));
    thread::spawn(move || web::serve_tls(&listener, &authority, &credential));
    let questions = UdpSocket::bind((network::RESOLVER_V4, 53))?;
    thread::spawn(move || names::serve(&questions, &asked));
    // Two sockets for each port: a wildcard would answer from another address than it was asked at.
    for (address, port) in [
        (network::INTERNET_V4, 53),
        (network::INTERNET_V4, 443),
        (network::INTERNET_V6, 53),
        (network::INTERNET_V6, 443),
    ] {
        let socket = UdpSocket::bind((address, port))?;
        thread::spawn(move || names::echo(&socket));
    }
    Ok(())
}
