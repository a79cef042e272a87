//! Bytes that stay where they are for as long as they can.

use super::KEPT_ROOM;
use std::mem;

/// Bytes of the current piece, until they must outlive it or be joined with others.
#[derive(Default)]
pub(super) struct Held {
    place: Place,
    kept: Vec<u8>,
}

#[derive(Clone, Copy, Default)]
enum Place {
    /// There are none.
    #[default]
    Nowhere,
    /// In the piece, from here to there.
    InPiece(usize, usize),
    /// In `kept`, from here on.
    Kept(usize),
}

impl Held {
    #[inline]
    pub(super) fn is_some(&self) -> bool {
        !matches!(self.place, Place::Nowhere)
    }

    /// The bytes; empty if there are none.
    #[inline]
    pub(super) fn bytes<'a>(&'a self, piece: &'a [u8]) -> &'a [u8] {
        match self.place {
            Place::Nowhere => &[],
            Place::InPiece(from, to) => piece.get(from..to).unwrap_or_default(),
            Place::Kept(from) => self.kept.get(from..).unwrap_or_default(),
        }
    }

    /// Adds a line that lies in the piece.
    #[inline]
    pub(super) fn add_from_piece(&mut self, piece: &[u8], from: usize, to: usize) {
        if self.is_some() {
            self.join(piece, piece.get(from..to).unwrap_or_default());
        } else {
            self.place = Place::InPiece(from, to);
        }
    }

    /// Adds a line that lies in a buffer, from `from` on. If it is the first, the buffers change places and nothing is copied.
    pub(super) fn add_from_buffer(&mut self, piece: &[u8], buffer: &mut Vec<u8>, from: usize) {
        if self.is_some() {
            self.join(piece, buffer.get(from..).unwrap_or_default());
        } else {
            mem::swap(&mut self.kept, buffer);
            self.place = Place::Kept(from);
        }
    }

    fn join(&mut self, piece: &[u8], line: &[u8]) {
        self.keep(piece);
        self.kept.push(b'\n');
        self.kept.extend_from_slice(line);
    }

    /// The piece is about to go: what lies in it moves into the buffer.
    #[inline]
    pub(super) fn keep(&mut self, piece: &[u8]) {
        if let Place::InPiece(from, to) = self.place {
            self.kept.clear();
            self.kept.extend_from_slice(piece.get(from..to).unwrap_or_default());
            self.place = Place::Kept(0);
        }
    }

    #[inline]
    pub(super) fn forget(&mut self) {
        self.place = Place::Nowhere;
        empty(&mut self.kept);
    }
}

/// Empties a buffer, and gives back what an unusually large event made it take.
#[inline]
pub(super) fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEPT_ROOM {
        buffer.shrink_to(KEPT_ROOM);
    }
}
