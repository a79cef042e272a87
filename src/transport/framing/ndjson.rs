//! JSON values, one a line.

use super::body::Body;
use super::held::Held;
use super::lines::{Line, Lines};
use super::{Frame, FrameFault};
use memchr::memchr;

#[derive(Default)]
pub(super) struct Ndjson {
    lines: Lines,
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
            let piece = body.piece();
            let at = body.at();
            if let Some(line) = self.lines.read(piece, at, 0, max, |bytes| memchr(b'\n', bytes))? {
                let is_given = self.give(line, piece, false);
                body.read_to(line.end + 1);
                if is_given {
                    return Ok(true);
                }
            } else if !body.turn() {
                return Ok(body.is_ended() && self.give(Line { start: None, end: 0 }, &[], true));
            }
        }
    }

    /// Gives a line, unless it is blank.
    fn give(&mut self, line: Line, piece: &[u8], torn: bool) -> bool {
        if let Some(start) = line.start {
            let line = piece[start..line.end].trim_ascii_end();
            let value = line.trim_ascii_start();
            if !value.is_empty() {
                self.given.add_from_piece(piece, start + line.len() - value.len(), start + line.len());
            }
        } else {
            let line = self.lines.buffer();
            line.truncate(line.trim_ascii_end().len());
            let from = line.len() - line.trim_ascii_start().len();
            if from < line.len() {
                self.given.add_from_buffer(piece, line, from);
            }
            self.lines.forget();
        }
        self.torn = torn;
        self.given.is_some()
    }

    /// The line that was given.
    pub(super) fn frame<'a>(&'a self, body: &'a Body) -> Frame<'a> {
        Frame { event: "", data: self.given.bytes(body.piece()), exception: false, torn: self.torn }
    }

    pub(super) fn is_mid_frame(&self) -> bool {
        !self.lines.gathered().trim_ascii().is_empty()
    }
}
