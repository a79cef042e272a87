//! A streamed answer on its way from the socket to the draft of a reply.

use crate::chat::Chunk;
use crate::provider::{AnswerFault, Draft, FrameFault, Head, StreamDecoder, TransportFault};
use crate::transport::framing::Framer;
use crate::transport::{Response, TransportError};
use serde::de::IgnoredAny;
use std::task::{Context, Poll, ready};

/// Reads a streamed answer, no faster than it is asked for.
pub(super) struct Reader {
    response: Response,
    framer: Framer,
    decoder: Box<dyn StreamDecoder>,
    pub(super) draft: Draft,
    received: u64,
    cap: u64,
    ended: bool,
    /// The connection broke: it matters only if the answer is not complete without what it lost.
    lost: Option<TransportError>,
    /// Whether bytes have come since this was last asked.
    fresh: bool,
}

/// What a look at the stream gives.
pub(super) enum Step {
    Chunk(Chunk),
    /// The answer is complete.
    Done,
}

/// Why a stream broke.
pub(super) enum Broken {
    /// The body ended before the answer did.
    Cut,
    /// Something is wrong with a frame: its name and its data.
    Frame {
        fault: AnswerFault,
        event: String,
        data: Vec<u8>,
    },
    /// The body cannot be cut into frames.
    Framing(String),
    /// An event or the body is over its bound of this many bytes.
    TooLarge(u64),
    Transport(TransportError),
}

impl Reader {
    pub(super) fn new(
        response: Response,
        framer: Framer,
        decoder: Box<dyn StreamDecoder>,
        draft: Draft,
        cap: u64,
    ) -> Self {
        Self { response, framer, decoder, draft, received: 0, cap, ended: false, lost: None, fresh: true }
    }

    pub(super) fn head(&self) -> &Head {
        &self.response.head
    }

    /// Whether bytes have come since this was last asked. Any byte is a sign of life, a keep-alive too.
    pub(super) fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// The next chunk, or the end.
    pub(super) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<Step, Broken>> {
        loop {
            if let Some(chunk) = self.draft.next_chunk() {
                return Poll::Ready(Ok(Step::Chunk(chunk)));
            }
            if self.draft.is_done() {
                return Poll::Ready(Ok(Step::Done));
            }
            match self.framer.next_frame() {
                Ok(Some(frame)) => {
                    if let Err(fault) = self.decoder.read(&frame, &mut self.draft) {
                        let cut = frame.torn && matches!(fault, AnswerFault::Frame(_)) && breaks_off(frame.data);
                        let (event, data) = (frame.event.to_owned(), frame.data.to_vec());
                        return Poll::Ready(Err(if cut { self.cut() } else { Broken::Frame { fault, event, data } }));
                    }
                }
                Ok(None) if self.ended => {
                    let complete = self.decoder.end(&mut self.draft) && !self.framer.is_mid_frame();
                    if self.draft.has_chunk() {
                        continue;
                    }
                    return Poll::Ready(if complete { Ok(Step::Done) } else { Err(self.cut()) });
                }
                Ok(None) => ready!(self.poll_bytes(cx))?,
                Err(FrameFault::TooLarge(limit)) => return Poll::Ready(Err(Broken::TooLarge(limit as u64))),
                Err(fault) => return Poll::Ready(Err(Broken::Framing(fault.to_string()))),
            }
        }
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(match ready!(self.response.poll_chunk(cx)) {
            Ok(Some(piece)) => {
                self.fresh = true;
                self.received += piece.len() as u64;
                if self.received > self.cap {
                    return Poll::Ready(Err(Broken::TooLarge(self.cap)));
                }
                self.framer.push(piece);
                Ok(())
            }
            Ok(None) => {
                self.end_of_body();
                Ok(())
            }
            // What is whole of what came before counts; a protocol that has said its last word needs no more.
            Err(error) if error.fault() == TransportFault::Interrupted => {
                self.lost = Some(error);
                self.end_of_body();
                Ok(())
            }
            Err(error) => Err(Broken::Transport(error)),
        })
    }

    /// Why the answer is not complete although its body has ended.
    fn cut(&mut self) -> Broken {
        self.lost.take().map_or(Broken::Cut, Broken::Transport)
    }

    fn end_of_body(&mut self) {
        self.ended = true;
        self.framer.end();
    }

    /// After the protocol's own end: takes the end of the body where it has come, so that the connection can be used again.
    pub(super) fn drain(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Ok(Some(_))) = self.response.poll_chunk(cx) {}
    }
}

/// Whether JSON is wrong only in that it goes on. What is no JSON at all was not cut off.
fn breaks_off(data: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(data).is_err_and(|error| error.is_eof())
}
