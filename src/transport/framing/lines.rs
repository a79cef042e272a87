//! The lines of a body: each in its piece, or gathered from several.

use super::FrameFault;
use super::held::empty;

/// The beginning of a line whose end has not come.
#[derive(Default)]
pub(super) struct Lines {
    gathered: Vec<u8>,
}

/// A line without its end.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// Where it starts in the piece, unless it started before the piece and is gathered.
    pub(super) start: Option<usize>,
    /// Where it ends in the piece.
    pub(super) end: usize,
}

impl Lines {
    /// Finds the line that goes on at `at`. None if the piece ends first: then the rest of it is gathered.
    /// If the line and the `before` bytes before it are more than `max`, it is not gathered.
    #[inline]
    pub(super) fn read(
        &mut self,
        piece: &[u8],
        at: usize,
        before: usize,
        max: usize,
        find: impl FnOnce(&[u8]) -> Option<usize>,
    ) -> Result<Option<Line>, FrameFault> {
        let rest = &piece[at..];
        let found = find(rest);
        let length = found.unwrap_or(rest.len());
        if before + self.gathered.len() + length > max {
            return Err(FrameFault::TooLarge(max));
        }
        if found.is_some() && self.gathered.is_empty() {
            return Ok(Some(Line { start: Some(at), end: at + length }));
        }
        self.gathered.extend_from_slice(&rest[..length]);
        Ok(found.map(|length| Line { start: None, end: at + length }))
    }

    /// What is gathered of a line.
    #[inline]
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
