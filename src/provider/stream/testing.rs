//! A decoder tried on a body, without a client.

use super::{Draft, Framing, StreamDecoder};
use crate::chat::{Chunk, Reply};
use crate::provider::AnswerFault;
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
    /// Reads a body with what `decoder` makes: whole, a byte at a time, and cut in two at every place. All have to give the
    /// same.
    pub(crate) fn of<D: StreamDecoder>(framing: &Framing, body: &str, decoder: impl Fn() -> D) -> Self {
        let read = |pieces: &mut dyn Iterator<Item = &[u8]>| Self::of_pieces(framing.clone(), pieces, &mut decoder());
        let body = body.as_bytes();
        let whole = read(&mut [body].into_iter());
        let bytes = read(&mut body.chunks(1));
        assert_eq!((&bytes.chunks, &bytes.fault), (&whole.chunks, &whole.fault), "a byte at a time");
        for at in 1..body.len() {
            let cut = read(&mut [&body[..at], &body[at..]].into_iter());
            assert_eq!((&cut.chunks, &cut.fault), (&whole.chunks, &whole.fault), "cut at {at}");
            assert_eq!(cut.complete, whole.complete, "cut at {at}");
        }
        whole
    }

    /// Reads a body whole: where ids are made up, each reading has its own.
    pub(crate) fn once(framing: Framing, body: &str, mut decoder: impl StreamDecoder) -> Self {
        Self::of_pieces(framing, &mut [body.as_bytes()].into_iter(), &mut decoder)
    }

    fn of_pieces(framing: Framing, pieces: &mut dyn Iterator<Item = &[u8]>, decoder: &mut dyn StreamDecoder) -> Self {
        let mut framer = Framer::new(framing);
        let mut read = Self { chunks: Vec::new(), fault: None, complete: false, draft: Draft::new() };
        for piece in pieces {
            framer.push(Bytes::copy_from_slice(piece));
            read.drain(&mut framer, decoder);
        }
        framer.end();
        read.drain(&mut framer, decoder);
        read.complete = read.fault.is_none() && (read.draft.is_done() || decoder.end(&mut read.draft));
        read.take();
        read
    }

    fn drain(&mut self, framer: &mut Framer, decoder: &mut dyn StreamDecoder) {
        while self.fault.is_none()
            && !self.draft.is_done()
            && let Some(frame) = framer.next_frame().unwrap()
        {
            self.fault = decoder.read(&frame, &mut self.draft).err();
            self.take();
        }
    }

    fn take(&mut self) {
        self.chunks.extend(std::iter::from_fn(|| self.draft.next_chunk()));
    }

    /// The reply that came of it.
    #[allow(clippy::result_large_err)] // asked once a test
    pub(crate) fn reply(mut self) -> Result<Reply, (AnswerFault, Reply)> {
        self.draft.finished()
    }
}
