//! The proxy between this machine and the internet (RFC 9110 §9.3.6): it is told the address that
//! was found and judged here, so that DNS of its own leads nowhere else; or, by setting, the name.

use super::race;
use crate::limits::DIAL_WAIT;
use crate::policy::Allowed;
use crate::refuse::Refused;
use crate::resolve::{Pinned, Resolver};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::egress::upstream::{Direct, ProxyHost, Told};
use box_api::egress::{HostName, Reason, UpstreamProxy};
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use zeroize::Zeroizing;

/// Longest head of the proxy's answer.
const ANSWER_BYTES_MAX: usize = 16 << 10;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// The proxy, with what it wants to know.
pub(crate) struct Proxy {
    spec: UpstreamProxy,
    /// `user:password` in the form of a header (RFC 7617); empty when it wants none.
    authorization: Zeroizing<String>,
}

/// Why there is no tunnel.
enum Failure {
    /// No address, or nobody listens there.
    Away,
    /// It answered something else than 2xx.
    Answered(u16),
    Broke,
}

impl Proxy {
    /// # Errors
    /// When the login holds what cannot stand in a header.
    pub(crate) fn new(spec: UpstreamProxy, login: &[u8]) -> Result<Self, &'static str> {
        if login.iter().any(u8::is_ascii_control) {
            return Err("the login for the proxy holds control characters");
        }
        let mut authorization = Zeroizing::new(String::new());
        if !login.is_empty() {
            // With the whole capacity from the start the secret is never copied by growing.
            authorization.reserve_exact(login.len() * 2 + 64);
            authorization.push_str("Proxy-Authorization: Basic ");
            STANDARD.encode_string(login, &mut authorization);
            authorization.push_str("\r\n");
        }
        Ok(Self {
            spec,
            authorization,
        })
    }

    pub(crate) fn told(&self) -> Told {
        self.spec.told
    }

    /// Whether a host is reached without it, by its name.
    pub(crate) fn is_direct(&self, host: &HostName, port: u16) -> bool {
        self.spec
            .direct
            .iter()
            .any(|direct| direct.is_for(host, port))
    }

    fn holds(&self, addr: IpAddr) -> bool {
        self.spec
            .direct
            .iter()
            .any(|direct: &Direct| direct.holds(addr))
    }

    /// A tunnel to one of the pinned addresses, the first that the proxy reaches. Addresses of
    /// networks that are reached without it are dialled.
    pub(crate) async fn dial(
        &self,
        resolver: &Resolver,
        pinned: &Pinned,
    ) -> Result<(TcpStream, IpAddr), Refused> {
        let allowed = pinned.allowed();
        if pinned.addrs().iter().any(|addr| self.holds(addr.ip())) {
            return super::dial(pinned).await;
        }
        let attempts = async {
            let mut last = Failure::Away;
            for addr in pinned.addrs() {
                match self.tunnel(resolver, &addr.to_string()).await {
                    Ok(stream) => return Ok((stream, addr.ip())),
                    // Another address would not make it answer.
                    Err(Failure::Away) => return Err(Failure::Away),
                    Err(failure) => last = failure,
                }
            }
            Err(last)
        };
        outcome(allowed, timeout(DIAL_WAIT, attempts).await)
    }

    /// A tunnel to a name that the proxy resolves.
    pub(crate) async fn connect_by_name(
        &self,
        resolver: &Resolver,
        allowed: &Allowed,
    ) -> Result<TcpStream, Refused> {
        let target = format!("{}:{}", allowed.host(), allowed.port());
        outcome(
            allowed,
            timeout(DIAL_WAIT, self.tunnel(resolver, &target)).await,
        )
    }

    async fn tunnel(&self, resolver: &Resolver, target: &str) -> Result<TcpStream, Failure> {
        let addrs = match &self.spec.host {
            ProxyHost::Address(addr) => vec![*addr],
            ProxyHost::Name(name) => resolver.addresses_of_proxy(name).await,
        };
        let addrs: Vec<SocketAddr> = addrs
            .into_iter()
            .map(|addr| SocketAddr::new(addr, self.spec.port))
            .collect();
        let (mut stream, _) = race(&addrs).await.ok_or(Failure::Away)?;
        let mut head = Zeroizing::new(String::new());
        head.reserve_exact(2 * target.len() + self.authorization.len() + 64);
        for part in ["CONNECT ", target, " HTTP/1.1\r\nHost: ", target, "\r\n"] {
            head.push_str(part);
        }
        head.push_str(&self.authorization);
        head.push_str("\r\n");
        let asked = stream.write_all(head.as_bytes()).await;
        asked.map_err(|_| Failure::Broke)?;
        match read_status(&mut stream).await {
            Ok(200..300) => Ok(stream),
            Ok(status) => Err(Failure::Answered(status)),
            Err(_) => Err(Failure::Broke),
        }
    }
}

fn outcome<T>(
    allowed: &Allowed,
    outcome: Result<Result<T, Failure>, tokio::time::error::Elapsed>,
) -> Result<T, Refused> {
    let why = match outcome {
        Ok(Ok(found)) => return Ok(found),
        Ok(Err(Failure::Away)) => "the proxy does not answer".to_owned(),
        Ok(Err(Failure::Answered(status))) => format!("the proxy answered {status}"),
        Ok(Err(Failure::Broke)) => "the proxy broke off".to_owned(),
        Err(_) => "the proxy took too long".to_owned(),
    };
    Err(Refused {
        rule: Some(why),
        ..allowed.refuse(Reason::UpstreamProxy)
    })
}

/// Reads the head of the answer and not one byte more: what follows is the host's.
async fn read_status(stream: &mut TcpStream) -> io::Result<u16> {
    let odd = || io::Error::from(io::ErrorKind::InvalidData);
    let mut head: Vec<u8> = Vec::new();
    let mut seen = [0; 1024];
    while !head.ends_with(HEAD_END) {
        let bytes = stream.peek(&mut seen).await?;
        if bytes == 0 || head.len() + bytes > ANSWER_BYTES_MAX {
            return Err(odd());
        }
        let before = head.len();
        head.extend_from_slice(&seen[..bytes]);
        let from = before.saturating_sub(HEAD_END.len() - 1);
        let end = head[from..]
            .windows(HEAD_END.len())
            .position(|window| window == HEAD_END);
        if let Some(at) = end {
            head.truncate(from + at + HEAD_END.len());
        }
        let taken = head.len() - before;
        stream.read_exact(&mut seen[..taken]).await?;
    }
    let line = std::str::from_utf8(&head).map_err(|_| odd())?;
    let rest = line.strip_prefix("HTTP/1.").ok_or_else(odd)?;
    let status = rest.split(' ').nth(1).and_then(|word| word.get(..3));
    let status = status.and_then(|word| word.parse().ok());
    status.ok_or_else(odd)
}
