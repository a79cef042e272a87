//! Streamed answers as an adapter reads them: one frame after the other, into a draft of the reply.

mod cut;
mod draft;
mod stencil;
#[cfg(test)]
pub(crate) mod testing;

pub use cut::{CustomFraming, Cut, CutFrames};
pub use draft::Draft;
pub(super) use draft::{arguments, malformed};
pub(super) use stencil::Stencil;

use super::AnswerFault;

/// How a body is cut into frames.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Framing {
    /// Binary messages with checksums, as Amazon Bedrock streams them.
    #[cfg(feature = "bedrock")]
    AwsEventStream,
    /// In a way of your own.
    Custom(CustomFraming),
    /// One JSON value a line, as Ollama sends it. Lines end in LF; white space around a value is dropped, and so are blank
    /// lines. A last line needs no LF.
    Ndjson,
    /// Server-sent events, as [WHATWG](https://html.spec.whatwg.org/multipage/server-sent-events.html) defines them, with two
    /// exceptions: an event at the end of the body needs no blank line, since many servers leave it out; and lines of bare JSON
    /// are data, since servers write errors so.
    #[default]
    Sse,
}

/// One frame, borrowed from its [`Framer`](crate::transport::framing::Framer).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Frame<'a> {
    /// The name of an event, empty if it has none: of server-sent events the last `event` field, of an AWS event stream
    /// `:event-type`, `:exception-type` or `:error-code`.
    pub event: &'a str,
    /// What the frame carries. Nothing is promised of its bytes: not that it is UTF-8, not that it is JSON.
    pub data: &'a [u8],
    /// Whether the framing itself marks it as a failure: in an AWS event stream a `:message-type` of `exception` or `error`.
    pub exception: bool,
    /// The body ended inside this frame: without the blank line of an event, without the end of a line. It may be whole all
    /// the same. If it cannot be parsed, it was cut off.
    pub torn: bool,
}

/// Why a body cannot be cut into frames. What follows in the body cannot be trusted, so the fault is final.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// The bytes are not of this framing. Says why, and quotes nothing of the body.
    #[error("the stream cannot be cut into events: {0}")]
    Invalid(String),
    /// An event is larger than so many bytes, which is the bound.
    #[error("an event of the stream is larger than {0} bytes")]
    TooLarge(usize),
}

impl<'a> Frame<'a> {
    /// A frame with this data and no name.
    pub fn new(data: &'a [u8]) -> Self {
        Self { data, ..Self::default() }
    }

    /// With a name.
    #[must_use]
    pub fn event(mut self, event: &'a str) -> Self {
        self.event = event;
        self
    }

    /// Marked as a failure.
    #[must_use]
    pub fn exception(mut self) -> Self {
        self.exception = true;
        self
    }
}

/// Reads the frames of one streamed answer. A pure function of its inputs, as the adapter that makes it is.
pub trait StreamDecoder: Send {
    /// Reads one frame into the draft. Frames that say nothing (pings, roles) leave it as it is; the protocol's own end is
    /// told by [`Draft::done`].
    ///
    /// # Errors
    ///
    /// What is wrong with the frame: [`AnswerFault::Error`] for an error of the provider, whose words the rules then read
    /// from the frame's data; [`AnswerFault::Frame`] for what is not the protocol.
    fn read(&mut self, frame: &Frame<'_>, draft: &mut Draft) -> Result<(), AnswerFault>;

    /// The body has ended, without the protocol's own end: whether the answer is complete nevertheless. What was held back
    /// goes into the draft.
    fn end(&mut self, draft: &mut Draft) -> bool;
}
