//! A decoder tried on a body, without a client.

use super::{Draft, Frame, StreamDecoder};
use crate::chat::{Chunk, Reply};
use crate::provider::AnswerFault;

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
