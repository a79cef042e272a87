//! JSON values, one a line.

use super::body::Body;
use super::held::Held;
use super::lines::{Line, Lines};
use crate::provider::{Frame, FrameFault};
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
            let found = self.lines.read(body, 0, max, |bytes| memchr(b'\n', bytes))?;
            if let Some(line) = found {
                if self.give(line, body.piece(), false) {
                    return Ok(true);
                }
            } else if !body.turn() {
                return Ok(body.is_ended() && self.give(Line::Gathered, &[], true));
            }
        }
    }

    fn give(&mut self, line: Line, piece: &[u8], torn: bool) -> bool {
        match line {
            Line::Gathered => {
                let lines = self.lines.buffer();
                lines.truncate(lines.trim_ascii_end().len());
                let from = lines.len() - lines.trim_ascii_start().len();
                if from < lines.len() {
                    self.given.add_from_buffer(piece, lines, from);
                }
                self.lines.forget();
            }
            Line::InPiece(from, to) => {
                let line = piece[from..to].trim_ascii_end();
                let value = line.trim_ascii_start();
                if !value.is_empty() {
                    self.given.add_from_piece(piece, from + line.len() - value.len(), from + line.len());
                }
            }
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
