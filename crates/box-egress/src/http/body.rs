//! The bodies that pass through: whole pages of our own, and streams that are relayed as they
//! come, scrubbed where a credential could be in them.

use crate::intercept::scrub::Scrub;
use crate::limits::{BODY_IDLE, DRAIN_WAIT, DRAINED_BYTES_MAX};
use crate::usage::Meter;
use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep, sleep, timeout};

/// Any body box-egress sends.
pub(crate) enum Flow {
    /// Sent at once; `None` once it is sent, or when there is none.
    Whole(Option<Bytes>),
    Relayed(Box<Relayed>),
    HeldBack(HeldBack),
}

/// A body whose beginning was kept back until it was judged.
pub(crate) struct HeldBack {
    first: Option<Bytes>,
    rest: Option<Box<Relayed>>,
    /// Held as long as the beginning is.
    room: Option<Box<dyn Send + Sync>>,
}

/// A body on its way from one side to the other.
pub(crate) struct Relayed {
    incoming: Incoming,
    scrub: Option<Scrub>,
    /// Reads what passes; told its end by being let go.
    meter: Option<Meter>,
    /// What may be said behind the body; without it nothing is.
    clean: Option<CleanTrailers>,
    trailers: Option<HeaderMap>,
    idle: Pin<Box<Sleep>>,
}

/// Takes out of trailers what may not pass.
pub(crate) type CleanTrailers = Box<dyn Fn(&mut HeaderMap) + Send + Sync>;

/// Why a body broke off; the receiving side is reset.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FlowError {
    #[error("the body broke off")]
    Broken(#[from] hyper::Error),
    #[error("nothing came for too long")]
    Idle,
    #[error("the credential came back where it cannot be replaced")]
    Echoed,
}

/// Reads what still comes of a request that is refused, and throws it away.
pub(crate) async fn drain(mut body: Incoming) {
    let read = async {
        let mut left = DRAINED_BYTES_MAX;
        while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    // Whoever sends on has had its time.
    drop(timeout(DRAIN_WAIT, read).await);
}

impl Flow {
    pub(crate) fn page(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes))
    }

    pub(crate) fn empty() -> Self {
        Self::Whole(None)
    }

    /// Passes a request's body on, without trailers: they could carry what the headers may not
    /// (catalogue E24).
    pub(crate) fn relay(incoming: Incoming) -> Self {
        Self::Relayed(Box::new(Relayed::new(incoming, None, None)))
    }

    /// Passes an answer's body on, with the trailers that gRPC ends with.
    pub(crate) fn hand_back(
        incoming: Incoming,
        scrub: Option<Scrub>,
        clean: CleanTrailers,
        meter: Option<Meter>,
    ) -> Self {
        let mut relayed = Relayed::new(incoming, scrub, Some(clean));
        relayed.meter = meter;
        Self::Relayed(Box::new(relayed))
    }

    /// Lets a body go on whose beginning was kept back. `room` is let go once that went out.
    pub(crate) fn held(first: Bytes, rest: Option<Incoming>, room: Box<dyn Send + Sync>) -> Self {
        let rest = rest.map(|rest| Box::new(Relayed::new(rest, None, None)));
        Self::HeldBack(HeldBack {
            first: Some(first).filter(|first| !first.is_empty()),
            rest,
            room: Some(room),
        })
    }
}

impl Relayed {
    fn new(incoming: Incoming, scrub: Option<Scrub>, clean: Option<CleanTrailers>) -> Self {
        Self {
            incoming,
            scrub,
            meter: None,
            clean,
            trailers: None,
            idle: Box::pin(sleep(BODY_IDLE)),
        }
    }

    fn is_end(&self) -> bool {
        self.incoming.is_end_stream()
            && self.trailers.is_none()
            && self.scrub.as_ref().is_none_or(Scrub::is_idle)
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, FlowError>>> {
        loop {
            let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) else {
                ready!(self.idle.as_mut().poll(cx));
                return Poll::Ready(Some(Err(FlowError::Idle)));
            };
            self.idle.as_mut().reset(Instant::now() + BODY_IDLE);
            let data = match frame {
                Some(Ok(frame)) => self.let_through(frame),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => return Poll::Ready(self.rest().map(Ok)),
            };
            if self.scrub.as_ref().is_some_and(Scrub::is_broken) {
                return Poll::Ready(Some(Err(FlowError::Echoed)));
            }
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
    }

    /// The data of a frame, as far as it may pass now. Trailers are kept for the end.
    fn let_through(&mut self, frame: Frame<Bytes>) -> Bytes {
        match frame.into_data() {
            Ok(data) => {
                if let Some(meter) = &mut self.meter {
                    meter.read(&data);
                }
                match &mut self.scrub {
                    Some(scrub) => scrub.pass(data),
                    None => data,
                }
            }
            Err(frame) => {
                if let (Some(clean), Ok(mut trailers)) = (&self.clean, frame.into_trailers()) {
                    clean(&mut trailers);
                    self.trailers = Some(trailers).filter(|trailers| !trailers.is_empty());
                }
                Bytes::new()
            }
        }
    }

    /// What is left once the body is over: bytes that were held back, then the trailers.
    fn rest(&mut self) -> Option<Frame<Bytes>> {
        let held = self.scrub.as_mut().map(Scrub::finish).unwrap_or_default();
        if held.is_empty() {
            self.trailers.take().map(Frame::trailers)
        } else {
            Some(Frame::data(held))
        }
    }
}

impl Body for Flow {
    type Data = Bytes;
    type Error = FlowError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, FlowError>>> {
        match self.get_mut() {
            Self::Whole(page) => Poll::Ready(page.take().map(|page| Ok(Frame::data(page)))),
            Self::Relayed(relayed) => relayed.poll_data(cx),
            Self::HeldBack(held) => match (held.first.take(), &mut held.rest) {
                (Some(first), _) => {
                    held.room = None;
                    Poll::Ready(Some(Ok(Frame::data(first))))
                }
                (None, Some(rest)) => rest.poll_data(cx),
                (None, None) => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(page) => page.is_none(),
            Self::Relayed(relayed) => relayed.is_end(),
            Self::HeldBack(held) => {
                held.first.is_none() && held.rest.as_ref().is_none_or(|rest| rest.is_end())
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(page) => {
                SizeHint::with_exact(page.as_ref().map_or(0, |page| page.len() as u64))
            }
            Self::Relayed(relayed) if relayed.scrub.as_ref().is_none_or(Scrub::keeps_length) => {
                relayed.incoming.size_hint()
            }
            Self::Relayed(_) => SizeHint::new(),
            Self::HeldBack(held) => {
                let first = held.first.as_ref().map_or(0, |first| first.len() as u64);
                let rest = held.rest.as_ref();
                let rest = rest.map_or(Some(0), |rest| rest.incoming.size_hint().exact());
                rest.map_or_else(SizeHint::new, |rest| SizeHint::with_exact(first + rest))
            }
        }
    }
}
