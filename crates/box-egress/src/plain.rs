//! Plain HTTP: one request a connection, whose head was read and judged, then passed on.

use crate::context::BoxContext;
use crate::http::head::Head;
use crate::http::leash::Leash;
use crate::http::relay::{Credentials, Relay};
use crate::http::serve::{Life, serve};
use crate::http::upstream::{Security, Upstream, Way};
use crate::policy::Allowed;
use crate::refuse::Refused;
use crate::socket::{self, Rewound};
use crate::tally::Tally;
use box_api::egress::Reason;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// Serves the request that begins with `head` on `stream`.
pub(crate) async fn plain(
    ctx: Arc<BoxContext>,
    allowed: Allowed,
    head: Head,
    (stream, tally): (TcpStream, Tally),
    seed: Option<TcpStream>,
) -> Result<(), Refused> {
    let refuse = |reason| Refused::new(allowed.host().as_str(), allowed.port(), reason);
    let configured = ctx.configured().ok_or_else(|| refuse(Reason::NoPolicy))?;
    let second = socket::second(&stream);
    let client = Rewound::counted(head.bytes(), stream, tally);
    let leash = Leash::new();
    let (busy, mut rest) = mpsc::channel(1);
    let way = Way {
        ctx: Arc::clone(&ctx),
        configured,
        allowed,
        security: Security::Plain,
        seed,
    };
    let relay = Arc::new(Relay {
        ctx,
        upstream: Upstream::new(way, leash.end()),
        credentials: Credentials::NotHere,
        leash: leash.end(),
        busy,
    });
    let handler = move |request| Arc::clone(&relay).handle(request);
    serve(client, Life::OneRequest, leash.end(), handler).await;
    let _: Option<()> = rest.recv().await;
    // A client may have sent its next request already, which nobody reads.
    socket::drain_second(second).await;
    Ok(())
}
