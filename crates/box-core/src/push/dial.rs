//! A connection to a push service: an address that was vetted here, or the proxy of the network;
//! then TLS for the name.

use super::endpoint::{Endpoint, PORT, is_public};
use crate::egress::roots;
use crate::settings::Settings;
use crate::settings::upstream::ProxySetting;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::egress::upstream::{Direct, ProxyHost, Told};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;
/// Longest answer of a proxy to `CONNECT`.
const ANSWER_BYTES_MAX: usize = 8 << 10;

/// Why there is no connection, as a person reads it.
type Why = String;

/// Connects. Whoever calls has a deadline.
pub(super) async fn dial(
    settings: &Settings,
    endpoint: &Endpoint,
) -> Result<TlsStream<TcpStream>, Why> {
    let stream = match way(settings, endpoint).await? {
        Way::Straight(addresses) => any_of(&addresses).await?,
        Way::Through(proxy, target) => tunnel(proxy, &target).await?,
    };
    let config = tls(settings)?;
    let name = ServerName::try_from(endpoint.host().to_owned())
        .map_err(|_| "it has no name that a certificate could have".to_owned())?;
    let connected = TlsConnector::from(config).connect(name, stream).await;
    connected.map_err(|error| format!("no TLS with it: {error}"))
}

enum Way<'s> {
    Straight(Vec<SocketAddr>),
    /// With what the proxy is told to connect to.
    Through(&'s ProxySetting, String),
}

async fn way<'s>(settings: &'s Settings, endpoint: &Endpoint) -> Result<Way<'s>, Why> {
    let upstream = &settings.upstream;
    let direct = &upstream.no_proxy.value;
    let named = |entry: &Direct| entry.is_for(endpoint.name(), PORT);
    let proxy = upstream.proxy.value.as_ref();
    let Some(proxy) = proxy.filter(|_| !direct.iter().any(named)) else {
        return Ok(Way::Straight(vetted(endpoint).await?));
    };
    if upstream.told.value == Told::Name {
        return Ok(Way::Through(proxy, format!("{}:{PORT}", endpoint.host())));
    }
    let addresses = vetted(endpoint).await?;
    let held = |address: &SocketAddr| direct.iter().any(|entry| entry.holds(address.ip()));
    match addresses.first() {
        Some(first) if !held(first) => Ok(Way::Through(proxy, first.to_string())),
        Some(_) | None => Ok(Way::Straight(addresses)),
    }
}

/// The addresses of its name, all of them public and none this machine's own. They are dialled as
/// they are: the name is not asked for again.
async fn vetted(endpoint: &Endpoint) -> Result<Vec<SocketAddr>, Why> {
    let host = endpoint.host();
    let found = lookup_host((host, PORT)).await;
    let found = found.map_err(|error| format!("`{host}` is not found: {error}"))?;
    let found: Vec<SocketAddr> = found.take(ADDRESSES_MAX).collect();
    if found.is_empty() {
        return Err(format!("`{host}` has no address"));
    }
    match found.iter().find(|address| !is_elsewhere(address.ip())) {
        Some(_) => Err(format!("`{host}` leads to an address that is not public")),
        None => Ok(found),
    }
}

fn is_elsewhere(address: IpAddr) -> bool {
    is_public(address) && !is_own(address)
}

/// Whether a packet to this address would stay here: the kernel then sends it from the address
/// itself. Nothing is sent by connecting a datagram socket.
fn is_own(address: IpAddr) -> bool {
    let any: SocketAddr = match address {
        IpAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let asked = UdpSocket::bind(any).and_then(|socket| {
        socket.connect((address, PORT))?;
        socket.local_addr()
    });
    // Without a way there nothing is its own either; connecting fails later.
    asked.is_ok_and(|from| from.ip() == address)
}

async fn any_of(addresses: &[SocketAddr]) -> Result<TcpStream, Why> {
    let mut last = "it has no address".to_owned();
    for address in addresses {
        match connect(*address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = format!("no connection to it: {error}"),
        }
    }
    Err(last)
}

async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.connect(address).await
}

/// RFC 9110 §9.3.6.
async fn tunnel(proxy: &ProxySetting, target: &str) -> Result<TcpStream, Why> {
    let fail = |error: std::io::Error| format!("the proxy of this network: {error}");
    let addresses: Vec<SocketAddr> = match &proxy.host {
        ProxyHost::Address(address) => vec![SocketAddr::new(*address, proxy.port)],
        ProxyHost::Name(name) => {
            let found = lookup_host((name.as_str(), proxy.port)).await;
            found.map_err(fail)?.take(ADDRESSES_MAX).collect()
        }
    };
    let mut stream = any_of(&addresses).await?;
    let login = match proxy.login.bytes() {
        [] => String::new(),
        login => format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(login)),
    };
    let asked = zeroize::Zeroizing::new(format!(
        "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{login}\r\n"
    ));
    stream.write_all(asked.as_bytes()).await.map_err(fail)?;
    let head = head(&mut stream).await.map_err(fail)?;
    let status = head.split_whitespace().nth(1).unwrap_or_default();
    if status == "200" {
        Ok(stream)
    } else {
        Err(format!("the proxy of this network answered `{status}`"))
    }
}

/// Byte by byte: what comes after the head is the tunnel's already.
async fn head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= ANSWER_BYTES_MAX {
            return Err(std::io::Error::other("its answer is too long"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn tls(settings: &Settings) -> Result<Arc<ClientConfig>, Why> {
    let read = roots::read(settings).map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    for pem in [&read.system_pem, &read.extra_pem] {
        let certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
        roots.add_parsable_certificates(certificates.filter_map(Result::ok));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
