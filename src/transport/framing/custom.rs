//! A framing of the caller's own.

use super::body::Body;
use super::held::empty;
use crate::provider::{Cut, CutFrames, Frame, FrameFault};
use std::ops::Range;

pub(super) struct Custom {
    cut: Box<dyn CutFrames>,
    /// What began in an earlier piece and is unread, and then a copy of how the current piece goes on. Empty if all that is
    /// unread lies in the current piece.
    carried: Vec<u8>,
    /// How much of it comes from earlier pieces.
    earlier: usize,
    /// The frame that was given. It stays until the next one is asked for.
    given: Option<Given>,
}

struct Given {
    event: Range<usize>,
    data: Range<usize>,
    consumed: usize,
}

impl Custom {
    pub(super) fn new(cut: Box<dyn CutFrames>) -> Self {
        Self { cut, carried: Vec::new(), earlier: 0, given: None }
    }

    /// Reads on to the end of a frame. False if there is none in what was pushed.
    pub(super) fn advance(&mut self, body: &mut Body, max: usize) -> Result<bool, FrameFault> {
        if let Some(given) = self.given.take() {
            self.consume(body, given.consumed);
        }
        loop {
            let all = self.carry_on(body, max);
            let unread = unread(&self.carried, body);
            if unread.is_empty() {
                if body.turn() {
                    continue;
                }
                return Ok(false);
            }
            match self.cut.cut(unread, all && body.is_last_piece())? {
                Cut::Frame { consumed, .. } if consumed > max => return Err(FrameFault::TooLarge(max)),
                Cut::Frame { event, data, consumed } => {
                    let name = unread.get(event.clone()).map(std::str::from_utf8);
                    if !matches!(name, Some(Ok(_))) || unread.get(data.clone()).is_none() {
                        return Err(misplaced());
                    }
                    if consumed == 0 || consumed > unread.len() {
                        return Err(misplaced());
                    }
                    self.given = Some(Given { event, data, consumed });
                    return Ok(true);
                }
                Cut::Skip(bytes) if bytes == 0 || bytes > unread.len() => return Err(misplaced()),
                Cut::Skip(bytes) => self.consume(body, bytes),
                Cut::More if unread.len() > max => return Err(FrameFault::TooLarge(max)),
                Cut::More => {
                    if self.carried.is_empty() {
                        self.carried.extend_from_slice(body.rest());
                    }
                    self.earlier = self.carried.len();
                    if !body.turn() {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Copies the current piece behind what is carried, if anything is, but no more than tells that a frame is too large.
    /// Whether all that was pushed of the piece can be seen now.
    fn carry_on(&mut self, body: &Body, max: usize) -> bool {
        if self.carried.is_empty() {
            return true;
        }
        let rest = &body.rest()[self.carried.len() - self.earlier..];
        let room = max.saturating_add(1).saturating_sub(self.carried.len());
        self.carried.extend_from_slice(&rest[..rest.len().min(room)]);
        rest.len() <= room
    }

    fn consume(&mut self, body: &mut Body, bytes: usize) {
        if bytes < self.earlier {
            self.carried.drain(..bytes);
            self.earlier -= bytes;
        } else {
            // From here on the piece itself is read again.
            body.read_to(body.at() + bytes - self.earlier);
            empty(&mut self.carried);
            self.earlier = 0;
        }
    }

    /// The frame that was given.
    pub(super) fn frame<'a>(&'a self, body: &'a Body) -> Frame<'a> {
        let unread = unread(&self.carried, body);
        let part = |range: &Range<usize>| unread.get(range.clone()).unwrap_or_default();
        let (event, data) = self.given.as_ref().map_or_else(Default::default, |g| (part(&g.event), part(&g.data)));
        Frame { event: std::str::from_utf8(event).unwrap_or_default(), data, exception: false, torn: false }
    }

    pub(super) fn is_mid_frame(&self, body: &Body) -> bool {
        unread(&self.carried, body).len() > self.given.as_ref().map_or(0, |given| given.consumed)
    }
}

fn unread<'a>(carried: &'a [u8], body: &'a Body) -> &'a [u8] {
    if carried.is_empty() { body.rest() } else { carried }
}

fn misplaced() -> FrameFault {
    FrameFault::Invalid("a custom framing found a frame outside of what it was shown".into())
}
