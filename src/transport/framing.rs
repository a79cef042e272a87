//! Framing: a body, cut anywhere by the network, becomes the frames that its protocol is made of.
//!
//! This layer knows no provider and parses no JSON. Bytes go in with [`Framer::push`], frames come out of
//! [`Framer::next_frame`], borrowed:
//!
//! ```
//! use bytes::Bytes;
//! use steadfast::provider::Framing;
//! use steadfast::transport::framing::Framer;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut framer = Framer::new(Framing::Sse);
//! let mut texts = Vec::new();
//! for piece in ["data: one\n\nda", "ta: two\r", "\n\r\n: a comment\n\ndata: [DONE]"] {
//!     framer.push(Bytes::from_static(piece.as_bytes()));
//!     while let Some(frame) = framer.next_frame()? {
//!         texts.push(String::from_utf8_lossy(frame.data).into_owned());
//!     }
//! }
//! framer.end();
//! let last = framer.next_frame()?.ok_or("the end of the body ends the last event")?;
//! assert_eq!((last.data, last.torn), (&b"[DONE]"[..], true));
//! assert_eq!(texts, ["one", "two"]);
//! # Ok(()) }
//! ```
//!
//! An event that lies whole in one piece is given as a slice of that piece. Only what straddles two pieces is copied, once,
//! and data of several lines is joined; both into buffers that are used again. What the frames are does not depend on where
//! the body was cut.
//!
//! # Why not `eventsource-stream`
//!
//! It is what most clients use, it is tested here against this module, over random documents, and on those the two agree. It
//! falls short in what this crate promises:
//!
//! - It panics if a body begins with a byte order mark.
//! - An event that never ends is buffered until memory does. A byte that is not UTF-8 has the same effect: nothing that comes
//!   after it is given.
//! - An event whose blank line is missing at the end of the body is lost, the end marker of some servers with it.
//! - Comments cannot be told from silence. Here whoever pushes the bytes sees them.
//!
//! For these reasons it fails three of the streams that public issue trackers tell of (`tests/framing/corpus.rs` names them). And
//! it does more work: it copies each event three times, and what is left of its buffer once for each line. By
//! `cargo bench --bench framing`, for an event of 313 bytes, beside a reader of lines that knows nothing of the standard:
//!
//! | pieces | | ns | MB/s | instructions | allocations |
//! |---|---|---|---|---|---|
//! | one event | this | 35 | 8,900 | 611 | 0 |
//! | | `eventsource-stream` | 543 | 580 | 9,909 | 6 |
//! | | lines | 18 | 17,300 | 330 | 0 |
//! | 16 KiB | this | 25 | 12,500 | 432 | 0 |
//! | | `eventsource-stream` | 944 | 330 | 23,141 | 5 |
//! | | lines | 19 | 16,700 | 523 | 0 |
//! | 128 bytes | this | 78 | 4,000 | 1,281 | 0 |
//! | | `eventsource-stream` | 1,206 | 260 | 20,243 | 9.9 |
//! | | lines | 40 | 7,900 | 602 | 0 |
//!
//! # The AWS event stream
//!
//! Its messages are read by AWS' own crate, behind the feature `bedrock`. That crate copies what it reads: a message costs
//! eight allocations and some 400 ns. This module finds where a message ends, and checks its length against its bound and its
//! checksum before it waits for so many bytes.

mod body;
mod custom;
#[cfg(feature = "bedrock")]
mod event_stream;
mod held;
mod ndjson;
mod sse;

use crate::provider::{CutFrames, Frame, FrameFault, Framing};
use body::Body;
use bytes::Bytes;
use custom::Custom;
#[cfg(feature = "bedrock")]
use event_stream::EventStream;
use ndjson::Ndjson;
use sse::Sse;
use std::fmt;

/// The bound of an event, unless another is set: 16 MiB.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// Room that a buffer keeps between two events. What a larger event needed is given back.
const KEPT_ROOM: usize = 2 << 10;

/// Cuts one body into frames.
///
/// Feed it with [`push`](Self::push), then take frames until there is none, and so on; at the end of the body call
/// [`end`](Self::end) and take what is left. Pieces that are pushed before the earlier ones are read wait in line.
pub struct Framer {
    body: Body,
    cutter: Cutter,
    max_event_bytes: usize,
    fault: Option<FrameFault>,
}

enum Cutter {
    #[cfg(feature = "bedrock")]
    AwsEventStream(EventStream),
    Custom(Custom),
    Ndjson(Ndjson),
    Sse(Sse),
}

impl Framer {
    /// A framer of a body that has not begun. An event may have up to 16 MiB.
    pub fn new(framing: Framing) -> Self {
        Self::with(match framing {
            #[cfg(feature = "bedrock")]
            Framing::AwsEventStream => Cutter::AwsEventStream(EventStream::default()),
            Framing::Custom(custom) => return Self::custom(custom.start()),
            Framing::Ndjson => Cutter::Ndjson(Ndjson::default()),
            Framing::Sse => Cutter::Sse(Sse::default()),
        })
    }

    /// A framer for a framing of your own.
    pub fn custom(cut: Box<dyn CutFrames>) -> Self {
        Self::with(Cutter::Custom(Custom::new(cut)))
    }

    fn with(cutter: Cutter) -> Self {
        Self { body: Body::default(), cutter, max_event_bytes: MAX_EVENT_BYTES, fault: None }
    }

    /// Sets how many bytes an event may have on the wire, from its first to its last: names of fields and comments inside it
    /// count, and so do the ends of its lines, as one byte each. One byte more, and it is [`FrameFault::TooLarge`], before
    /// more than that of it is buffered. What comes between events is bounded line by line.
    #[must_use]
    pub fn max_event_bytes(mut self, bytes: usize) -> Self {
        self.max_event_bytes = bytes;
        self
    }

    /// Adds the next piece of the body. It may be cut anywhere, and be empty.
    pub fn push(&mut self, piece: Bytes) {
        if self.fault.is_none() {
            self.body.push(piece);
        }
    }

    /// The body ended. What is pushed later is dropped.
    pub fn end(&mut self) {
        self.body.end();
    }

    /// The next frame; none if the body has to go on first, or has ended.
    ///
    /// # Errors
    ///
    /// The body is not of this framing, or an event is too large. From then on every call gives that same fault.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let (body, max) = (&mut self.body, self.max_event_bytes);
        let found = match &mut self.cutter {
            #[cfg(feature = "bedrock")]
            Cutter::AwsEventStream(stream) => stream.advance(body, max),
            Cutter::Custom(custom) => custom.advance(body, max),
            Cutter::Ndjson(ndjson) => ndjson.advance(body, max),
            Cutter::Sse(sse) => sse.advance(body, max),
        };
        match found {
            Ok(true) => Ok(Some(match &self.cutter {
                #[cfg(feature = "bedrock")]
                Cutter::AwsEventStream(stream) => stream.frame(),
                Cutter::Custom(custom) => custom.frame(&self.body),
                Cutter::Ndjson(ndjson) => ndjson.frame(&self.body),
                Cutter::Sse(sse) => sse.frame(&self.body),
            })),
            Ok(false) => Ok(None),
            Err(fault) => {
                self.body = Body::default();
                self.fault = Some(fault.clone());
                Err(fault)
            }
        }
    }

    /// Whether something of a frame was read that is in no frame given so far. After the end, when no frame is left: whether
    /// the body broke off inside one. A [torn](Frame::torn) frame that was given is not counted.
    pub fn is_mid_frame(&self) -> bool {
        match &self.cutter {
            #[cfg(feature = "bedrock")]
            Cutter::AwsEventStream(stream) => stream.is_mid_frame(),
            Cutter::Custom(custom) => custom.is_mid_frame(&self.body),
            Cutter::Ndjson(ndjson) => ndjson.is_mid_frame(),
            Cutter::Sse(sse) => sse.is_mid_frame(),
        }
    }
}

/// Shows nothing of the body.
impl fmt::Debug for Framer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let framing = match &self.cutter {
            #[cfg(feature = "bedrock")]
            Cutter::AwsEventStream(_) => "AwsEventStream",
            Cutter::Custom(_) => "Custom",
            Cutter::Ndjson(_) => "Ndjson",
            Cutter::Sse(_) => "Sse",
        };
        f.debug_struct("Framer")
            .field("framing", &format_args!("{framing}"))
            .field("max_event_bytes", &self.max_event_bytes)
            .field("fault", &self.fault)
            .finish_non_exhaustive()
    }
}
