//! `WebSockets` of a host that speaks HTTP/2 alone: extended CONNECT (RFC 8441), on a connection of
//! its own.

use super::{Upstream, path_of};
use crate::context::Room;
use crate::http::body::Flow;
use crate::limits::{HANDSHAKE_WAIT, RESPONSE_WAIT};
use crate::refuse::Refused;
use box_api::egress::Reason;
use http::{HeaderName, Method, Request, Response, header};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::ext::Protocol;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often it is looked whether the host's settings have come: the library tells nobody.
const SETTINGS_EVERY: Duration = Duration::from_millis(2);
/// What a handshake over HTTP/1.1 says and one over HTTP/2 must not (RFC 8441 §5).
const OF_HTTP1: [HeaderName; 4] = [
    header::CONNECTION,
    header::UPGRADE,
    header::HOST,
    HeaderName::from_static("sec-websocket-key"),
];

/// Whether a host refused a handshake because HTTP/1.1 was all it was offered.
pub(super) fn speaks_no_http1(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref());
    let no_protocol = rustls::AlertDescription::NoApplicationProtocol;
    matches!(error, Some(rustls::Error::AlertReceived(alert)) if *alert == no_protocol)
}

impl Upstream {
    /// Sends a handshake that was made for HTTP/1.1. An answer 200 is a WebSocket.
    pub(super) async fn send_extended(
        &self,
        mut request: Request<Flow>,
        room: Arc<Room>,
    ) -> Result<(Response<Incoming>, Arc<Room>), Refused> {
        let failed = || self.refuse(Reason::UpstreamFailed);
        let stream = self.stream().await?;
        let config = Arc::clone(&self.configured.upstream_tls.any);
        let stream = self.handshake(stream, config).await?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(failed());
        }
        let handshake = http2::Builder::new(self.leash.clone())
            .timer(TokioTimer::new())
            .handshake(TokioIo::new(stream))
            .await;
        let (mut sender, connection) = handshake.map_err(|_| failed())?;
        // A host that does not say so in its first settings knows no extended CONNECT (RFC 8441 §3).
        let told = async {
            while !connection.is_extended_connect_protocol_enabled() && !sender.is_closed() {
                sleep(SETTINGS_EVERY).await;
            }
            connection.is_extended_connect_protocol_enabled()
        };
        if timeout(HANDSHAKE_WAIT, told).await != Ok(true) {
            return Err(failed());
        }
        let held = Arc::clone(&room);
        self.leash.spawn(async move {
            drop(connection.await);
            drop(held);
        });
        for name in &OF_HTTP1 {
            request.headers_mut().remove(name);
        }
        *request.uri_mut() = self.absolute(path_of(&request))?;
        *request.method_mut() = Method::CONNECT;
        let websocket = Protocol::from_static("websocket");
        request.extensions_mut().insert(websocket);
        match timeout(RESPONSE_WAIT, sender.send_request(request)).await {
            Ok(Ok(response)) => Ok((response, room)),
            Ok(Err(_)) => Err(failed()),
            Err(_) => Err(self.refuse(Reason::Timeout)),
        }
    }
}
