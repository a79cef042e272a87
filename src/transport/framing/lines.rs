//! The lines of a body: each in its piece, or gathered from several.

use super::body::Body;
use super::held::empty;
use crate::provider::FrameFault;

/// The beginning of a line whose end has not come.
#[derive(Default)]
pub(super) struct Lines {
    gathered: Vec<u8>,
}

/// Where a line lies, without its end.
#[derive(Clone, Copy)]
pub(super) enum Line {
    InPiece(usize, usize),
    /// In [`Lines::gathered`].
    Gathered,
}

impl Lines {
    /// Reads a line, and one byte that ends it, which `find` finds. None if the piece ends first: then all of it is read.
    /// If the line and the `before` bytes before it are more than `max`, it is not gathered.
    pub(super) fn read(
        &mut self,
        body: &mut Body,
        before: usize,
        max: usize,
        find: impl FnOnce(&[u8]) -> Option<usize>,
    ) -> Result<Option<Line>, FrameFault> {
        let rest = body.rest();
        let found = find(rest);
        let length = found.unwrap_or(rest.len());
        if before + self.gathered.len() + length > max {
            return Err(FrameFault::TooLarge(max));
        }
        let from = body.at();
        let line = match found {
            Some(_) if self.gathered.is_empty() => Some(Line::InPiece(from, from + length)),
            _ => {
                self.gathered.extend_from_slice(&rest[..length]);
                found.map(|_| Line::Gathered)
            }
        };
        body.read(length + usize::from(found.is_some()));
        Ok(line)
    }

    /// What is gathered of a line.
    pub(super) fn gathered(&self) -> &[u8] {
        &self.gathered
    }

    /// The buffer of what is gathered, to be taken over.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.gathered
    }

    /// A gathered line was used.
    pub(super) fn forget(&mut self) {
        empty(&mut self.gathered);
    }
}
