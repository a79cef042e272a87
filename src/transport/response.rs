//! A response whose body is still to be read, within bounds.

use super::TransportError;
use crate::provider::{Head, TransportFault};
use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use http::header::CONTENT_LENGTH;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
#[cfg(feature = "reqwest")]
use std::pin::pin;
use std::task::{Context, Poll};
use url::Url;

/// A body as it comes.
pub type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// The head of a response, and its body as it comes. Dropping it ends the exchange.
pub struct Response {
    /// The head.
    pub(crate) head: Head,
    body: Body,
}

#[allow(clippy::large_enum_variant)] // the large one is the usual one, and lives in the attempt's future
enum Body {
    #[cfg(feature = "reqwest")]
    Reqwest(reqwest::Response),
    Stream(BodyStream),
}

impl Response {
    /// A response whose body is a stream of pieces.
    pub fn new(head: Head, body: BodyStream) -> Self {
        Self { head, body: Body::Stream(body) }
    }

    #[cfg(feature = "reqwest")]
    pub(super) fn reqwest(head: Head, response: reqwest::Response) -> Self {
        Self { head, body: Body::Reqwest(response) }
    }

    /// Where the answer came from, if the transport can have followed a redirect.
    pub(crate) fn url(&self) -> Option<&Url> {
        match &self.body {
            #[cfg(feature = "reqwest")]
            Body::Reqwest(response) => Some(response.url()),
            Body::Stream(_) => None,
        }
    }

    /// Polls for the next piece of the body; none at its end.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, TransportError>> {
        match &mut self.body {
            // A future of one frame: nothing is lost with it.
            #[cfg(feature = "reqwest")]
            Body::Reqwest(response) => pin!(response.chunk()).poll(cx).map_err(super::over_reqwest::fault),
            Body::Stream(stream) => stream.as_mut().poll_next(cx).map(Option::transpose),
        }
    }

    /// The next piece of the body; none at its end.
    pub(crate) fn chunk(&mut self) -> impl Future<Output = Result<Option<Bytes>, TransportError>> + Send {
        poll_fn(|cx| self.poll_chunk(cx))
    }

    /// The length that the head announces.
    fn announced(&self) -> Option<u64> {
        match &self.body {
            #[cfg(feature = "reqwest")]
            Body::Reqwest(response) => response.content_length(),
            Body::Stream(_) => self.head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok(),
        }
    }

    /// The whole body, of at most `cap` bytes. Reads no further than that.
    pub(crate) async fn read(&mut self, cap: u64) -> Result<Bytes, TransportError> {
        let too_large = || TransportError::new(TransportFault::TooLarge(cap), format!("the body is over {cap} bytes"));
        if self.announced().is_some_and(|length| length > cap) {
            return Err(too_large());
        }
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        self.read_after(first, cap).await
    }

    /// The whole body, of at most `cap` bytes, whose first piece was taken already.
    pub(crate) async fn read_after(&mut self, first: Bytes, cap: u64) -> Result<Bytes, TransportError> {
        let too_large = || TransportError::new(TransportFault::TooLarge(cap), format!("the body is over {cap} bytes"));
        if first.len() as u64 > cap {
            return Err(too_large());
        }
        let mut whole = BytesMut::new();
        while let Some(piece) = self.chunk().await? {
            if whole.is_empty() {
                whole.reserve((first.len() + piece.len()) * 2);
                whole.extend_from_slice(&first);
            }
            if (whole.len() + piece.len()) as u64 > cap {
                return Err(too_large());
            }
            whole.extend_from_slice(&piece);
        }
        // The usual answer comes in one piece, and is not copied.
        Ok(if whole.is_empty() { first } else { whole.freeze() })
    }

    /// As much of the body as comes within `cap` bytes into `into`, however it ends: for the body of a failure, whose status
    /// says enough.
    pub(crate) async fn read_some(&mut self, cap: usize, into: &mut BytesMut) {
        while let Ok(Some(piece)) = self.chunk().await {
            let room = cap - into.len();
            into.extend_from_slice(&piece[..piece.len().min(room)]);
            if into.len() == cap {
                return;
            }
        }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("status", &self.head.status).finish_non_exhaustive()
    }
}
