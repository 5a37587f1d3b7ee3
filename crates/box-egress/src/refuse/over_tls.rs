//! Tells a client that expects a host's TLS why it does not get it: under a leaf for that host,
//! every request is answered with the refusal.

use super::{Door, Refused};
use crate::context::BoxContext;
use crate::http::body::Flow;
use crate::http::leash::Leash;
use crate::http::serve::{Life, Speaks, serve};
use crate::intercept::leaf::Purpose;
use crate::limits::REFUSAL_WAIT;
use crate::socket::Rewound;
use crate::tunnel::hello;
use box_api::egress::HostName;
use std::sync::Arc;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Notes the refusal and answers it. Without a CA the handshake is refused.
pub(crate) async fn refuse(ctx: &BoxContext, host: &HostName, refused: Refused, client: Rewound) {
    ctx.note(&refused);
    let minter = ctx
        .configured()
        .and_then(|configured| configured.minter.clone());
    let Some(minter) = minter else {
        return hello::alert(client).await;
    };
    let Ok(config) = minter.config(host, Purpose::Refusal).await else {
        return;
    };
    let leash = Leash::new();
    let answer = async {
        let Ok(client) = TlsAcceptor::from(config).accept(client).await else {
            return;
        };
        let refused = Arc::new(refused);
        let speaks = Speaks::agreed(client.get_ref().1.alpn_protocol());
        let handler = move |_| {
            let refused = Arc::clone(&refused);
            async move { refused.page(Door::Host).map(Flow::page) }
        };
        serve(client, Life::KeepAlive(speaks), leash.end(), handler).await;
    };
    // A client that trusts no CA of ours, or waits, is not waited for.
    drop(timeout(REFUSAL_WAIT, answer).await);
}
