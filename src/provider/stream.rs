//! Streamed answers as an adapter reads them: one frame after the other, into a draft of the reply.

mod draft;
#[cfg(test)]
pub(crate) mod testing;

pub use draft::Draft;

use super::AnswerFault;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// How the body of a stream is cut into frames.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Framing {
    /// AWS event stream: binary frames with checksums.
    #[cfg(feature = "bedrock")]
    AwsEventStream,
    /// In a way of your own; called once a stream.
    Custom(CustomFraming),
    /// One JSON value a line.
    Ndjson,
    /// Server-sent events.
    #[default]
    Sse,
}

/// Makes a [`CutFrames`] for each stream.
#[derive(Clone)]
pub struct CustomFraming(Arc<dyn Fn() -> Box<dyn CutFrames> + Send + Sync>);

impl CustomFraming {
    /// A framing that starts each stream with what `start` makes.
    pub fn new<C: CutFrames + 'static>(start: impl Fn() -> C + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || Box::new(start())))
    }

    /// The cutter of one stream.
    pub fn start(&self) -> Box<dyn CutFrames> {
        (self.0)()
    }
}

impl fmt::Debug for CustomFraming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomFraming")
    }
}

/// Cuts a body into frames in a way of its own.
pub trait CutFrames: Send {
    /// Finds the first frame in what is buffered. `ended` says that nothing follows.
    ///
    /// # Errors
    ///
    /// Why this cannot be a body of this form. The text must quote nothing of it.
    fn next_frame(&mut self, buffered: &[u8], ended: bool) -> Result<Option<Cut>, String>;
}

/// A frame that was found.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Cut {
    /// How many bytes of the buffer are done with, the frame's own included.
    pub consumed: usize,
    /// Where in the buffer its data is; within what is consumed.
    pub data: Range<usize>,
}

impl Cut {
    /// A frame with its data in this range, after which so many bytes are done with.
    pub fn new(consumed: usize, data: Range<usize>) -> Self {
        Self { consumed, data }
    }
}

/// One frame of a stream, borrowed from what was read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Frame<'a> {
    /// The event's name: of SSE the field `event`, of AWS the event's or exception's type; else empty.
    pub event: &'a str,
    /// The data.
    pub data: &'a [u8],
    /// Whether the frame says of itself that it is an error (AWS).
    pub exception: bool,
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

    /// Marked as an error.
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
