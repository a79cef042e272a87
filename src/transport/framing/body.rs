//! A body as it was pushed, and how far it is read.

use bytes::Bytes;
use std::collections::VecDeque;

#[derive(Default)]
pub(super) struct Body {
    /// The piece that is being read.
    piece: Bytes,
    /// How much of it is read.
    at: usize,
    /// Pushed, and not yet reached.
    waiting: VecDeque<Bytes>,
    ended: bool,
}

impl Body {
    #[inline]
    pub(super) fn push(&mut self, piece: Bytes) {
        if piece.is_empty() || self.ended {
            return;
        }
        // As long as there is a piece, a frame that was given may lie in it.
        if self.piece.is_empty() {
            self.piece = piece;
        } else {
            self.waiting.push_back(piece);
        }
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// The piece that is being read, from its beginning.
    #[inline]
    pub(super) fn piece(&self) -> &[u8] {
        &self.piece
    }

    /// Where in the piece reading goes on.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// What is left of the piece.
    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        self.piece.get(self.at..).unwrap_or_default()
    }

    /// The piece is read up to there, or to its end.
    #[inline]
    pub(super) fn read_to(&mut self, at: usize) {
        self.at = self.piece.len().min(at);
    }

    /// Goes on to the next piece, if there is one. The one that was read is released, so that its buffer can be used again.
    #[inline]
    pub(super) fn turn(&mut self) -> bool {
        self.at = 0;
        self.piece = self.waiting.pop_front().unwrap_or_default();
        !self.piece.is_empty()
    }

    /// Whether nothing comes after what has been pushed.
    #[inline]
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Whether nothing comes after the current piece.
    pub(super) fn is_last_piece(&self) -> bool {
        self.ended && self.waiting.is_empty()
    }
}
