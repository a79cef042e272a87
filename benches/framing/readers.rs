//! The readers that are compared.

use bytes::Bytes;
use eventsource_stream::Eventsource;
use futures_core::Stream;
use std::convert::Infallible;
use std::hint::black_box;
use std::iter::Sum;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use steadfast::provider::Framing;
use steadfast::transport::framing::Framer;

/// A way to read a body that comes in pieces.
pub(crate) struct Reader {
    pub(crate) name: &'static str,
    pub(crate) framing: Framing,
    /// Whether it finds every event there is.
    pub(crate) is_whole: bool,
    pub(crate) read: fn(&[Bytes]) -> Read,
}

/// What was read. Both sums are checked, so that nobody is fast by missing some.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Read {
    pub(crate) events: usize,
    /// Bytes of data in them.
    pub(crate) bytes: usize,
}

impl Read {
    fn add(&mut self, event: &str, data: &[u8]) {
        black_box((event, data));
        self.events += 1;
        self.bytes += data.len();
    }
}

impl Sum for Read {
    fn sum<I: Iterator<Item = Self>>(reads: I) -> Self {
        reads.fold(Self::default(), |a, b| Self { events: a.events + b.events, bytes: a.bytes + b.bytes })
    }
}

pub(crate) const READERS: &[Reader] = &[
    Reader { name: "steadfast", framing: Framing::Sse, is_whole: true, read: |pieces| steadfast(Framing::Sse, pieces) },
    Reader { name: "eventsource-stream", framing: Framing::Sse, is_whole: false, read: eventsource_stream },
    Reader { name: "line reader", framing: Framing::Sse, is_whole: false, read: line_reader },
    Reader {
        name: "steadfast",
        framing: Framing::Ndjson,
        is_whole: true,
        read: |pieces| steadfast(Framing::Ndjson, pieces),
    },
    #[cfg(feature = "bedrock")]
    Reader {
        name: "steadfast",
        framing: Framing::AwsEventStream,
        is_whole: true,
        read: |pieces| steadfast(Framing::AwsEventStream, pieces),
    },
];

pub(crate) fn steadfast(framing: Framing, pieces: &[Bytes]) -> Read {
    let mut framer = Framer::new(framing);
    let mut read = Read::default();
    for piece in pieces {
        framer.push(piece.clone());
        while let Some(frame) = framer.next_frame().expect("the bodies are sound") {
            read.add(frame.event, frame.data);
        }
    }
    framer.end();
    while let Some(frame) = framer.next_frame().expect("the bodies are sound") {
        read.add(frame.event, frame.data);
    }
    read
}

/// Pieces as a stream that is always ready.
struct Pieces<'a>(std::slice::Iter<'a, Bytes>);

impl<'a> Stream for Pieces<'a> {
    type Item = Result<&'a Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}

fn eventsource_stream(pieces: &[Bytes]) -> Read {
    let mut events = pin!(Pieces(pieces.iter()).eventsource());
    let mut context = Context::from_waker(Waker::noop());
    let mut read = Read::default();
    while let Poll::Ready(Some(event)) = events.as_mut().poll_next(&mut context) {
        let event = event.expect("the bodies are UTF-8");
        read.add(&event.event, event.data.as_bytes());
    }
    read
}

/// Lines that begin with `data: `, and nothing else of the standard: as far as some API needs it.
fn line_reader(pieces: &[Bytes]) -> Read {
    let mut read = Read::default();
    let mut buffer: Vec<u8> = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        let mut at = 0;
        while let Some(length) = memchr::memchr(b'\n', &buffer[at..]) {
            let line = &buffer[at..at + length];
            at += length + 1;
            if let Some(data) = line.strip_prefix(b"data: ") {
                read.add("", data);
            }
        }
        buffer.drain(..at);
    }
    read
}
