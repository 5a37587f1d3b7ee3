//! Opens up TLS to the hosts a placeholder of the box is for: the box talks to a leaf of the
//! deployment's CA, box-egress to the host, and the placeholder becomes the credential between.

pub(crate) mod grant;
pub(crate) mod leaf;
pub(crate) mod login;
pub(crate) mod scope;
pub(crate) mod scrub;
pub(crate) mod verdict;

use crate::context::BoxContext;
use crate::http::leash::Leash;
use crate::http::relay::{Credentials, Relay};
use crate::http::serve::{Life, Speaks, serve};
use crate::http::upstream::{Security, Upstream, Way};
use crate::intercept::leaf::Purpose;
use crate::limits::HANDSHAKE_WAIT;
use crate::policy::Allowed;
use crate::refuse::Refused;
use crate::socket::Rewound;
use box_api::egress::Reason;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Serves a connection whose `ClientHello` was read and names the host. `seed` is a connection to
/// the host that was made already, on the proxy port.
pub(crate) async fn intercept(
    ctx: Arc<BoxContext>,
    allowed: Allowed,
    client: Rewound,
    seed: Option<TcpStream>,
) -> Result<(), Refused> {
    let refuse = |reason| Refused::new(allowed.host().as_str(), allowed.port(), reason);
    let configured = ctx.configured().ok_or_else(|| refuse(Reason::NoPolicy))?;
    let minter = configured
        .minter
        .clone()
        .ok_or_else(|| refuse(Reason::NoCa))?;
    let config = minter.config(allowed.host(), Purpose::Host).await;
    let config = config.map_err(|_| refuse(Reason::NoCa))?;
    let handshake = timeout(HANDSHAKE_WAIT, TlsAcceptor::from(config).accept(client)).await;
    let Ok(Ok(client)) = handshake else {
        return Err(refuse(Reason::ClientTls));
    };
    let leash = Leash::new();
    let (busy, mut rest) = mpsc::channel(1);
    let way = Way {
        ctx: Arc::clone(&ctx),
        configured,
        allowed,
        security: Security::Tls,
        seed,
    };
    let relay = Arc::new(Relay {
        ctx,
        upstream: Upstream::new(way, leash.end()),
        credentials: Credentials::Judged,
        leash: leash.end(),
        busy,
    });
    let speaks = Speaks::agreed(client.get_ref().1.alpn_protocol());
    let handler = move |request| Arc::clone(&relay).handle(request);
    serve(client, Life::KeepAlive(speaks), leash.end(), handler).await;
    // A WebSocket goes on after its request; nothing is ever sent here, only closed.
    let _: Option<()> = rest.recv().await;
    Ok(())
}

#[cfg(test)]
mod tests;
