//! A response body that may have been read before.

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The body of a response that passed a policy. Read as a [`Body`], it gives what was sent, whoever has read it before.
///
/// It is a `Body` for every `B` that is `Unpin`, as those of the usual clients are. Box another one under the layer
/// (`ServiceBuilder::map_response(|response| response.map(Box::pin))`).
pub enum Replayed<B: Body> {
    /// Of a success: untouched, as it comes.
    Live(B),
    /// Of a failure that was read to its end.
    Read(Bytes),
    /// Of a failure that was read in part, for its length or its slowness, or that ended in trailers or an error.
    Begun(Begun<B>),
}

/// The beginning of a body, and what comes after it.
pub struct Begun<B: Body> {
    read: Bytes,
    then: Then<B>,
}

/// What comes after the bytes that were read.
enum Then<B: Body> {
    End,
    Trailers(HeaderMap),
    Broken(B::Error),
    Rest(Pin<Box<B>>),
}

/// Nothing in it is ever pinned in place: the rest of the body has a place of its own.
impl<B: Body> Unpin for Begun<B> {}

impl<B: Body> Begun<B> {
    /// The bytes that were read; those that the reader has had already are not among them.
    pub fn read(&self) -> &Bytes {
        &self.read
    }
}

impl<B: Body + Unpin> Body for Replayed<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let (read, then) = match self.get_mut() {
            Self::Live(body) => return poll_live(Pin::new(body), cx),
            Self::Read(bytes) => (bytes, None),
            Self::Begun(Begun { read, then }) => (read, Some(then)),
        };
        if !read.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(mem::take(read)))));
        }
        let Some(then) = then else { return Poll::Ready(None) };
        if let Then::Rest(rest) = then {
            return poll_live(rest.as_mut(), cx);
        }
        Poll::Ready(match mem::replace(then, Then::End) {
            Then::Trailers(trailers) => Some(Ok(Frame::trailers(trailers))),
            Then::Broken(error) => Some(Err(error)),
            Then::End | Then::Rest(_) => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Live(body) => body.is_end_stream(),
            Self::Read(bytes) => bytes.is_empty(),
            Self::Begun(Begun { read, then }) => {
                read.is_empty()
                    && match then {
                        Then::End => true,
                        Then::Rest(rest) => rest.is_end_stream(),
                        Then::Trailers(_) | Then::Broken(_) => false,
                    }
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        let (read, rest) = match self {
            Self::Live(body) => return body.size_hint(),
            Self::Read(bytes) => (bytes, None),
            Self::Begun(Begun { read, then: Then::Rest(rest) }) => (read, Some(rest.size_hint())),
            Self::Begun(Begun { read, .. }) => (read, None),
        };
        let read = read.len() as u64;
        let Some(rest) = rest else { return SizeHint::with_exact(read) };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(read)) {
            hint.set_upper(upper);
        }
        hint
    }
}

type NextFrame<B> = Option<Result<Frame<Bytes>, <B as Body>::Error>>;

fn poll_live<B: Body>(body: Pin<&mut B>, cx: &mut Context<'_>) -> Poll<NextFrame<B>> {
    body.poll_frame(cx).map(|next| next.map(|frame| frame.map(bytes)))
}

/// Copies nothing where the data is `Bytes` already.
fn bytes<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
    frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))
}

impl<B: Body> fmt::Debug for Replayed<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live(_) => f.write_str("Live(..)"),
            Self::Read(bytes) => write!(f, "Read({} bytes)", bytes.len()),
            Self::Begun(begun) => begun.fmt(f),
        }
    }
}

impl<B: Body> fmt::Debug for Begun<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let then = match &self.then {
            Then::End => "the end",
            Then::Trailers(_) => "trailers",
            Then::Broken(_) => "an error",
            Then::Rest(_) => "the rest",
        };
        f.debug_struct("Begun").field("read", &self.read.len()).field("then", &then).finish()
    }
}

/// A body on its way from live to read. It may be left at any moment, with what was read until then.
pub(super) struct Reading<B: Body> {
    read: BytesMut,
    then: Then<B>,
}

impl<B: Body> Reading<B> {
    pub(super) fn new(body: B) -> Self {
        Self { read: BytesMut::new(), then: Then::Rest(Box::pin(body)) }
    }

    /// Ready once the body has ended, or at least `most` bytes of it were read.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<()> {
        while self.read.len() < most
            && let Then::Rest(rest) = &mut self.then
        {
            match ready!(poll_live(rest.as_mut(), cx)) {
                None => self.then = Then::End,
                Some(Err(error)) => self.then = Then::Broken(error),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.read.extend_from_slice(&data),
                    Err(frame) => self.then = frame.into_trailers().map_or(Then::End, Then::Trailers),
                },
            }
        }
        Poll::Ready(())
    }

    /// The body, to be read again. It borrows the bytes for whoever wants to know what they say.
    pub(super) fn replay(self) -> (Bytes, Replayed<B>) {
        let read = self.read.freeze();
        let body = match self.then {
            Then::End => Replayed::Read(read.clone()),
            then => Replayed::Begun(Begun { read: read.clone(), then }),
        };
        (read, body)
    }
}
