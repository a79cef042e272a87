//! JSON values, one a line.

use super::body::Body;
use super::held::{Held, empty};
use crate::provider::{Frame, FrameFault};
use memchr::memchr;

#[derive(Default)]
pub(super) struct Ndjson {
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// The line that was given. It stays until the next one is asked for.
    given: Held,
    /// It was given because the body ended.
    torn: bool,
}

impl Ndjson {
    /// Reads on to the end of a line that is not blank. False if there is none in what was pushed.
    pub(super) fn advance(&mut self, body: &mut Body, max: usize) -> Result<bool, FrameFault> {
        self.given.forget();
        loop {
            let rest = body.rest();
            let found = memchr(b'\n', rest);
            let length = found.unwrap_or(rest.len());
            if self.line.len() + length > max {
                return Err(FrameFault::TooLarge(max));
            }
            let (start, end) = (body.at(), body.at() + length);
            if found.is_some() && self.line.is_empty() {
                self.give(body.piece(), start, end);
            } else {
                self.line.extend_from_slice(&rest[..length]);
                if found.is_some() {
                    self.give_gathered();
                }
            }
            body.read_to(end + 1);
            if self.given.is_some() {
                return Ok(true);
            }
            if found.is_none() && !body.turn() {
                self.torn = body.is_ended();
                if self.torn {
                    self.give_gathered();
                }
                return Ok(self.given.is_some());
            }
        }
    }

    /// Gives a line that lies in the piece, unless it is blank.
    #[inline]
    fn give(&mut self, piece: &[u8], start: usize, end: usize) {
        let line = piece[start..end].trim_ascii_end();
        let value = line.trim_ascii_start();
        if !value.is_empty() {
            let end = start + line.len();
            self.given.add_from_piece(piece, end - value.len(), end);
        }
    }

    /// Gives a line that was gathered, unless it is blank.
    fn give_gathered(&mut self) {
        self.line.truncate(self.line.trim_ascii_end().len());
        let start = self.line.len() - self.line.trim_ascii_start().len();
        if start < self.line.len() {
            self.given.add_from_buffer(&[], &mut self.line, start);
        }
        empty(&mut self.line);
    }

    /// The line that was given.
    pub(super) fn frame<'a>(&'a self, body: &'a Body) -> Frame<'a> {
        Frame { event: "", data: self.given.bytes(body.piece()), exception: false, torn: self.torn }
    }

    pub(super) fn is_mid_frame(&self) -> bool {
        !self.line.trim_ascii().is_empty()
    }
}
