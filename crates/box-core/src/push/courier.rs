//! Hands a message to a push service (RFC 8030 §5), and reads what became of it.

use super::dial::dial;
use super::endpoint::Endpoint;
use crate::host::Host;
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER,
};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::fmt::Debug;
use std::time::Duration;
use tokio::time::timeout;

/// Longest everything about one message takes (C113).
const DEADLINE: Duration = Duration::from_secs(10);
/// What is read of an answer, for its connection's sake.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// A message, sealed and signed.
#[derive(Clone)]
#[expect(
    missing_debug_implementations,
    reason = "it holds a signature that opens a door"
)]
pub struct Letter {
    pub endpoint: String,
    pub body: Vec<u8>,
    /// `vapid t=…, k=…`
    pub authorization: String,
    /// How long the push service keeps it, seconds.
    pub ttl_s: u32,
    /// Takes the place of an earlier one that was not delivered yet (RFC 8030 §5.4).
    pub topic: String,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The push service has it.
    Taken(u16),
    /// It knows the browser no more.
    Gone(u16),
    /// It may be taken later.
    Later { why: String, after_s: Option<u32> },
    /// It is never taken.
    Refused { why: String },
}

/// Brings messages to push services.
#[async_trait]
pub trait Courier: Debug + Send + Sync {
    async fn carry(&self, host: &Host, letter: Letter) -> Delivery;
}

/// Over the internet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Internet;

#[async_trait]
impl Courier for Internet {
    async fn carry(&self, host: &Host, letter: Letter) -> Delivery {
        match timeout(DEADLINE, post(host, letter)).await {
            Ok(Ok(delivery)) => delivery,
            Ok(Err(why)) => Delivery::Later { why, after_s: None },
            Err(_) => Delivery::Later {
                why: format!("it did not answer in {} seconds", DEADLINE.as_secs()),
                after_s: None,
            },
        }
    }
}

async fn post(host: &Host, letter: Letter) -> Result<Delivery, String> {
    let endpoint = match Endpoint::parse(&letter.endpoint) {
        Ok(endpoint) => endpoint,
        Err(error) => {
            return Ok(Delivery::Refused {
                why: error.to_string(),
            });
        }
    };
    let stream = dial(&host.current.now(), &endpoint).await?;
    let request = request(&endpoint, letter).map_err(|error| error.to_string())?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let exchange = async {
        let answer = sender.send_request(request).await?;
        let delivery = read(&answer);
        // Its words are nobody's business; read only so that it can end in peace.
        drop(
            Limited::new(answer.into_body(), ANSWER_BYTES_MAX)
                .collect()
                .await,
        );
        Ok::<Delivery, hyper::Error>(delivery)
    };
    // The connection works only while it is polled.
    tokio::select! {
        delivery = exchange => delivery.map_err(|error| error.to_string()),
        ended = connection => Err(match ended {
            Ok(()) => "it hung up".to_owned(),
            Err(error) => error.to_string(),
        }),
    }
}

fn request(endpoint: &Endpoint, letter: Letter) -> hyper::http::Result<Request<Full<Bytes>>> {
    let mut authorization = HeaderValue::try_from(&letter.authorization)?;
    authorization.set_sensitive(true);
    Request::post(endpoint.target())
        .header(HOST, endpoint.host())
        .header(AUTHORIZATION, authorization)
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(CONTENT_ENCODING, "aes128gcm")
        .header("ttl", letter.ttl_s)
        .header("urgency", "high")
        .header("topic", letter.topic)
        .body(Full::new(letter.body.into()))
}

/// RFC 8030 §5, §7.3; RFC 8292 §4.2. Redirections are not followed: they are refused.
fn read<B>(answer: &Response<B>) -> Delivery {
    let status = answer.status();
    let why = format!("the push service answered {status}");
    if status.is_success() {
        return Delivery::Taken(status.as_u16());
    }
    if status == StatusCode::NOT_FOUND || status == StatusCode::GONE {
        return Delivery::Gone(status.as_u16());
    }
    let is_busy = status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::REQUEST_TIMEOUT;
    if is_busy || status.is_server_error() {
        let after = answer.headers().get(RETRY_AFTER);
        let after_s = after
            .and_then(|value| value.to_str().ok())
            .and_then(|seconds| seconds.parse().ok());
        return Delivery::Later { why, after_s };
    }
    Delivery::Refused { why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, retry: Option<&str>) -> Delivery {
        let mut answer = Response::builder().status(status);
        if let Some(retry) = retry {
            answer = answer.header(RETRY_AFTER, retry);
        }
        read(&answer.body(()).unwrap())
    }

    #[test]
    fn answers_say_whether_it_is_tried_again() {
        assert_eq!(answered(201, None), Delivery::Taken(201));
        assert_eq!(answered(410, None), Delivery::Gone(410));
        assert_eq!(answered(404, None), Delivery::Gone(404));
        let later = |delivery: Delivery| match delivery {
            Delivery::Later { after_s, .. } => Some(after_s),
            Delivery::Taken(_) | Delivery::Gone(_) | Delivery::Refused { .. } => None,
        };
        assert_eq!(later(answered(429, Some("120"))), Some(Some(120)));
        assert_eq!(later(answered(503, Some("Wed, 21 Oct"))), Some(None));
        for never in [302, 400, 401, 403, 413] {
            assert!(
                matches!(answered(never, None), Delivery::Refused { .. }),
                "{never}"
            );
        }
    }
}
