//! A decoder tried on a body, without a client.

use super::{Draft, Frame, StreamDecoder};
use crate::chat::{Chunk, Reply};
use crate::provider::{AnswerFault, Framing};
use crate::transport::framing::Framer;
use bytes::Bytes;

/// What a decoder made of a body.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) chunks: Vec<Chunk>,
    /// What was wrong with a frame; those behind it were not read.
    pub(crate) fault: Option<AnswerFault>,
    /// Whether the answer came to its end.
    pub(crate) complete: bool,
    draft: Draft,
}

impl Read {
    /// Reads frames, each a name and data.
    pub(crate) fn of(decoder: &mut dyn StreamDecoder, frames: &[(String, String)]) -> Self {
        let (mut draft, mut chunks, mut fault) = (Draft::new(), Vec::new(), None);
        for (event, data) in frames {
            fault = decoder.read(&Frame::new(data.as_bytes()).event(event), &mut draft).err();
            chunks.extend(std::iter::from_fn(|| draft.next_chunk()));
            if fault.is_some() || draft.is_done() {
                break;
            }
        }
        let complete = fault.is_none() && (draft.is_done() || decoder.end(&mut draft));
        chunks.extend(std::iter::from_fn(|| draft.next_chunk()));
        Self { chunks, fault, complete, draft }
    }

    /// The reply that came of it.
    pub(crate) fn reply(mut self) -> Result<Reply, (AnswerFault, Reply)> {
        self.draft.finished()
    }
}

/// The events of a body of server-sent events, each a name and data of one line.
pub(crate) fn frames(sse: &str) -> Vec<(String, String)> {
    let field = |event: &str, name: &str| {
        let line = event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned()).unwrap_or_default()
    };
    sse.split("\n\n")
        .filter(|event| !event.is_empty())
        .map(|event| (field(event, "event"), field(event, "data")))
        .collect()
}

/// The lines of a body, each data without a name.
pub(crate) fn lines(ndjson: &str) -> Vec<(String, String)> {
    ndjson.lines().map(|line| (String::new(), line.to_owned())).collect()
}

/// Reads a body of server-sent events whole, and cut in two at every byte: it has to come to the same each time.
pub(crate) fn everywhere(start: impl Fn() -> Box<dyn StreamDecoder>, body: &[u8]) -> Read {
    let whole = Read::of_pieces(&mut *start(), &[body]);
    for at in 1..body.len() {
        let cut = Read::of_pieces(&mut *start(), &[&body[..at], &body[at..]]);
        let [whole, cut] = [&whole, &cut].map(|read| (&read.chunks, &read.fault, read.complete));
        assert_eq!(cut, whole, "cut at {at}");
    }
    whole
}

impl Read {
    /// Reads a body of server-sent events that comes in these pieces.
    fn of_pieces(decoder: &mut dyn StreamDecoder, pieces: &[&[u8]]) -> Self {
        let mut framer = Framer::new(Framing::Sse);
        let mut frames = Vec::new();
        let mut take = |framer: &mut Framer| {
            while let Some(frame) = framer.next_frame().unwrap() {
                let data = String::from_utf8(frame.data.to_vec()).unwrap();
                frames.push((frame.event.to_owned(), data));
            }
        };
        for piece in pieces {
            framer.push(Bytes::copy_from_slice(piece));
            take(&mut framer);
        }
        framer.end();
        take(&mut framer);
        Self::of(decoder, &frames)
    }
}
