//! How the bytes of an answer are put on the wire.

use super::mishap::Mishap;
use bytes::Bytes;
use std::time::Duration;

/// A part of a body that is written by itself.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Piece {
    /// These bytes, in one TCP write; in a chunked body, as one chunk.
    Bytes(Bytes),
    /// Nothing, for so long.
    Pause(Duration),
}

impl Piece {
    /// Bytes to write.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// A time of silence.
    pub const fn pause(duration: Duration) -> Self {
        Self::Pause(duration)
    }

    /// How many bytes it has.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Pause(_) => 0,
        }
    }
}

impl From<&'static str> for Piece {
    fn from(text: &'static str) -> Self {
        Self::bytes(text)
    }
}

impl From<String> for Piece {
    fn from(text: String) -> Self {
        Self::bytes(text)
    }
}

impl From<Duration> for Piece {
    fn from(duration: Duration) -> Self {
        Self::Pause(duration)
    }
}

/// What happens to the connection when the last bytes are out.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Ending {
    Close,
    CloseWithoutTerminator,
    Hang,
    #[default]
    KeepAlive,
    Reset,
}

impl Ending {
    /// Whether a chunked body gets the chunk that ends it.
    pub(super) const fn terminates(self) -> bool {
        matches!(self, Self::Close | Self::KeepAlive)
    }
}

/// How much of the body is sent. The length announced is that of the whole.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Extent {
    First(usize),
    Half,
    #[default]
    Whole,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    pub(super) announced: Option<u64>,
    pub(super) chunked: bool,
    pub(super) delay: Duration,
    pub(super) drip: Option<(usize, Duration)>,
    pub(super) ending: Ending,
    pub(super) extent: Extent,
    pub(super) pieces: Option<Vec<Piece>>,
    /// What goes wrong in a stream, after so many events.
    pub(super) mishaps: Vec<(usize, Mishap)>,
    /// How many bytes a stream sends at a time, instead of an event.
    pub(super) split: Option<usize>,
}
