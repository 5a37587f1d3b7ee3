//! The bodies that pass through: whole pages of our own, and streams that are relayed as they
//! come, scrubbed where a credential could be in them.

use crate::intercept::scrub::Scrub;
use crate::limits::BODY_IDLE;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep, sleep};

/// Any body box-egress sends.
pub(crate) enum Flow {
    /// Sent at once; `None` once it is sent, or when there is none.
    Whole(Option<Bytes>),
    Relayed(Relayed),
}

/// A body on its way from one side to the other.
pub(crate) struct Relayed {
    incoming: Incoming,
    scrub: Option<Scrub>,
    idle: Pin<Box<Sleep>>,
}

/// Why a body broke off; the receiving side is reset.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FlowError {
    #[error("the body broke off")]
    Broken(#[from] hyper::Error),
    #[error("nothing came for too long")]
    Idle,
}

impl Flow {
    pub(crate) fn page(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes))
    }

    pub(crate) fn empty() -> Self {
        Self::Whole(None)
    }

    /// Passes a body on, without trailers: they could carry what the headers may not.
    pub(crate) fn relay(incoming: Incoming, scrub: Option<Scrub>) -> Self {
        Self::Relayed(Relayed {
            incoming,
            scrub,
            idle: Box::pin(sleep(BODY_IDLE)),
        })
    }
}

impl Relayed {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, FlowError>>> {
        loop {
            let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) else {
                ready!(self.idle.as_mut().poll(cx));
                return Poll::Ready(Some(Err(FlowError::Idle)));
            };
            self.idle.as_mut().reset(Instant::now() + BODY_IDLE);
            let data = match frame {
                Some(Ok(frame)) => self.scrubbed(frame),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => {
                    let rest = self.scrub.as_mut().map(Scrub::finish).unwrap_or_default();
                    let rest = Some(rest).filter(|rest| !rest.is_empty());
                    return Poll::Ready(rest.map(|rest| Ok(Frame::data(rest))));
                }
            };
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
    }

    /// The data of a frame, as far as it may pass now. Trailers have none.
    fn scrubbed(&mut self, frame: Frame<Bytes>) -> Bytes {
        let data = frame.into_data().unwrap_or_default();
        match &mut self.scrub {
            Some(scrub) => scrub.pass(data),
            None => data,
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
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(page) => page.is_none(),
            Self::Relayed(relayed) => {
                relayed.incoming.is_end_stream()
                    && relayed.scrub.as_ref().is_none_or(Scrub::is_idle)
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
        }
    }
}
