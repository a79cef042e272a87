//! Server-sent events.
//!
//! Line by line: a field adds to the event, a blank line gives it. Of the fields only `data` and `event` matter here; `id` and
//! `retry` are for a client that reconnects by itself, which a `POST` that costs money must never do.
//!
//! A line that is no field is ignored, unless it begins as JSON does: servers write an error without `data:` before it, over
//! one line or several (Google documents it, gateways do it). Such lines are data until the blank line.

use super::body::Body;
use super::held::{Held, empty};
use crate::provider::{Frame, FrameFault};
use memchr::memchr2;
use std::mem;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // each is a state of its own
pub(super) struct Sse {
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    data: Held,
    /// The name of the event.
    event: String,
    event_is_invalid: bool,
    /// The data is lines of JSON that are no fields.
    bare: bool,
    /// Bytes of the event before the current line.
    size: usize,
    /// The first line, which may start with a byte order mark, was read.
    begun: bool,
    /// The last line ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    given: Given,
}

#[derive(Clone, Copy, Default, Eq, PartialEq)]
enum Given {
    /// The event is still being read.
    #[default]
    Not,
    /// It stays until the next one is asked for.
    Whole,
    /// As above, and the body ended before it did.
    Torn,
}

/// What a line that is not blank means. A value by where it starts.
enum Field {
    /// JSON that is no field.
    Bare,
    Data(usize),
    Event(usize),
    Ignored,
}

impl Sse {
    /// Reads on to the end of an event. False if there is none in what was pushed.
    pub(super) fn advance(&mut self, body: &mut Body, max: usize) -> Result<bool, FrameFault> {
        if self.given != Given::Not {
            self.forget();
        }
        while !self.read(body, max)? {
            self.data.keep(body.piece());
            if !body.turn() {
                return if body.is_ended() { self.finish() } else { Ok(false) };
            }
        }
        self.give(Given::Whole)
    }

    /// Reads the piece to the end of an event. False if the piece ends first.
    fn read(&mut self, body: &mut Body, max: usize) -> Result<bool, FrameFault> {
        let piece = body.piece();
        let mut at = body.at();
        if self.after_cr && at < piece.len() {
            self.after_cr = false;
            at += usize::from(piece[at] == b'\n');
        }
        let mut is_complete = false;
        while !is_complete && at < piece.len() {
            if self.line.is_empty() && matches!(piece[at], b'\n' | b'\r') {
                at = self.after_end(piece, at);
                is_complete = self.blank_line();
                continue;
            }
            let found = memchr2(b'\n', b'\r', &piece[at..]);
            let end = found.map_or(piece.len(), |length| at + length);
            if self.size + self.line.len() + (end - at) > max {
                return Err(FrameFault::TooLarge(max));
            }
            if found.is_none() {
                self.line.extend_from_slice(&piece[at..]);
                at = end;
                break;
            }
            if self.line.is_empty() {
                self.take(piece, at, end);
            } else {
                self.line.extend_from_slice(&piece[at..end]);
                self.take_gathered(piece);
            }
            at = self.after_end(piece, end);
        }
        body.read_to(at);
        Ok(is_complete)
    }

    /// What follows the end of a line. An LF in the next piece may be part of it.
    #[inline]
    fn after_end(&mut self, piece: &[u8], end: usize) -> usize {
        if piece[end] == b'\n' {
            return end + 1;
        }
        let Some(next) = piece.get(end + 1) else {
            self.after_cr = true;
            return end + 1;
        };
        end + 1 + usize::from(*next == b'\n')
    }

    /// True if it ends an event. Without data, there was none.
    #[inline]
    fn blank_line(&mut self) -> bool {
        self.begun = true;
        let is_event = self.data.is_some();
        if !is_event {
            self.forget();
        }
        is_event
    }

    /// Takes in a line that lies in the piece.
    #[inline]
    fn take(&mut self, piece: &[u8], start: usize, end: usize) {
        let line = &piece[start..end];
        match self.field(line) {
            Field::Bare => {
                self.bare = true;
                self.data.add_from_piece(piece, start, end);
            }
            Field::Data(value) => self.data.add_from_piece(piece, start + value, end),
            Field::Event(value) => self.name(&line[value..]),
            Field::Ignored => {}
        }
        self.count(line.len());
    }

    /// Takes in a line that was gathered.
    fn take_gathered(&mut self, piece: &[u8]) {
        let mut line = mem::take(&mut self.line);
        let length = line.len();
        match self.field(&line) {
            Field::Bare => {
                self.bare = true;
                self.data.add_from_buffer(piece, &mut line, 0);
            }
            Field::Data(value) => self.data.add_from_buffer(piece, &mut line, value),
            Field::Event(value) => self.name(&line[value..]),
            Field::Ignored => {}
        }
        empty(&mut line);
        self.line = line; // its room, for the next
        self.count(length);
    }

    #[inline]
    fn field(&mut self, line: &[u8]) -> Field {
        let start = self.mark(line);
        self.begun = true;
        let value = |name: &str| Some(start + value(&line[start..], name)?);
        match value("data") {
            Some(value) => Field::Data(value),
            None => match value("event") {
                Some(value) => Field::Event(value),
                None if self.is_bare(line) => Field::Bare,
                None => Field::Ignored,
            },
        }
    }

    /// Whether a line that is no field is JSON, or goes on with it.
    fn is_bare(&self, line: &[u8]) -> bool {
        match line.first() {
            Some(b'{' | b'[') => self.bare || !self.data.is_some(),
            None | Some(b':') => false,
            Some(_) => self.bare,
        }
    }

    /// The length of the byte order mark, which only the first line may have.
    #[inline]
    fn mark(&self, line: &[u8]) -> usize {
        if !self.begun && line.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
    }

    fn name(&mut self, name: &[u8]) {
        let name = std::str::from_utf8(name);
        self.event_is_invalid = name.is_err();
        self.event.clear();
        self.event.push_str(name.unwrap_or_default());
    }

    /// Counts a line and its end. Only what is kept counts, or the comments that keep a connection alive would add up for ever.
    #[inline]
    fn count(&mut self, length: usize) {
        let is_empty = !self.data.is_some() && self.event.is_empty();
        self.size = if is_empty { 0 } else { self.size + length + 1 };
    }

    #[inline]
    fn give(&mut self, given: Given) -> Result<bool, FrameFault> {
        if self.event_is_invalid {
            return Err(FrameFault::Invalid("the name of an event is not UTF-8".into()));
        }
        self.given = given;
        Ok(true)
    }

    /// The body ended. If the event has data it is given, whether or not its lines had an end; if not, it stays as it is.
    fn finish(&mut self) -> Result<bool, FrameFault> {
        let mark = self.mark(&self.line);
        if self.data.is_some() || value(&self.line[mark..], "data").is_some() || self.is_bare(&self.line) {
            self.take_gathered(&[]);
            return self.give(Given::Torn);
        }
        Ok(false)
    }

    #[inline]
    fn forget(&mut self) {
        self.data.forget();
        self.event.clear();
        self.event_is_invalid = false;
        self.bare = false;
        self.size = 0;
        self.given = Given::Not;
    }

    /// The event that was given.
    #[inline]
    pub(super) fn frame<'a>(&'a self, body: &'a Body) -> Frame<'a> {
        let torn = self.given == Given::Torn;
        Frame { event: &self.event, data: self.data.bytes(body.piece()), exception: false, torn }
    }

    pub(super) fn is_mid_frame(&self) -> bool {
        let line = &self.line[self.mark(&self.line)..];
        let is_held = self.data.is_some() || !self.event.is_empty();
        (is_held && self.given == Given::Not) || line.first().is_some_and(|byte| *byte != b':')
    }
}

/// Where the value of the field of this name starts, if the line is one: after the colon and one space. A line without a colon
/// is a field without a value.
#[inline]
fn value(line: &[u8], name: &str) -> Option<usize> {
    match line.strip_prefix(name.as_bytes())? {
        [] => Some(name.len()),
        [b':', b' ', ..] => Some(name.len() + 2),
        [b':', ..] => Some(name.len() + 1),
        _ => None,
    }
}
