//! Server-sent events.
//!
//! Line by line: a field adds to the event, a blank line gives it. Of the fields only `data` and `event` matter here; `id` and
//! `retry` are for a client that reconnects by itself, which a `POST` that costs money must never do.

use super::body::Body;
use super::held::Held;
use super::lines::{Line, Lines};
use super::{Frame, FrameFault};
use memchr::memchr2;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Default)]
pub(super) struct Sse {
    lines: Lines,
    data: Held,
    /// The name of the event.
    event: String,
    event_is_invalid: bool,
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

/// What a line means. A value by where it starts.
enum Field {
    Blank,
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
        while !is_complete {
            let Some(line) = self.lines.read(piece, at, self.size, max, line_end)? else {
                at = piece.len();
                break;
            };
            at = line.end + 1;
            if piece[line.end] == b'\r' {
                match piece.get(at) {
                    Some(next) => at += usize::from(*next == b'\n'),
                    None => self.after_cr = true,
                }
            }
            is_complete = self.take(line, piece);
        }
        body.read_to(at);
        Ok(is_complete)
    }

    /// Takes in a line. True if it ends an event that has data; without data, there was none.
    #[inline]
    fn take(&mut self, line: Line, piece: &[u8]) -> bool {
        let text = line.start.map_or(self.lines.gathered(), |start| &piece[start..line.end]);
        let size = text.len() + 1;
        match field(text, !std::mem::replace(&mut self.begun, true)) {
            Field::Blank if self.data.is_some() => return true,
            Field::Blank => self.forget(),
            Field::Data(value) => match line.start {
                Some(start) => self.data.add_from_piece(piece, start + value, line.end),
                None => self.data.add_from_buffer(piece, self.lines.buffer(), value),
            },
            Field::Event(value) => {
                let name = std::str::from_utf8(&text[value..]);
                self.event_is_invalid = name.is_err();
                self.event.clear();
                self.event.push_str(name.unwrap_or_default());
            }
            Field::Ignored => {}
        }
        if line.start.is_none() {
            self.lines.forget();
        }
        // Only what is kept counts, or the comments that keep a connection alive would add up for ever.
        let is_empty = !self.data.is_some() && self.event.is_empty();
        self.size = if is_empty { 0 } else { self.size + size };
        false
    }

    fn give(&mut self, given: Given) -> Result<bool, FrameFault> {
        if self.event_is_invalid {
            return Err(FrameFault::Invalid("the name of an event is not UTF-8".into()));
        }
        self.given = given;
        Ok(true)
    }

    /// The body ended. If the event has data it is given, whether or not its lines had an end; if not, it stays as it is.
    fn finish(&mut self) -> Result<bool, FrameFault> {
        let last = self.lines.gathered();
        if !last.is_empty() && (self.data.is_some() || matches!(field(last, !self.begun), Field::Data(_))) {
            self.take(Line { start: None, end: 0 }, &[]);
        }
        if self.data.is_some() { self.give(Given::Torn) } else { Ok(false) }
    }

    fn forget(&mut self) {
        self.data.forget();
        self.event.clear();
        self.event_is_invalid = false;
        self.size = 0;
        self.given = Given::Not;
    }

    /// The event that was given.
    pub(super) fn frame<'a>(&'a self, body: &'a Body) -> Frame<'a> {
        Frame {
            event: &self.event,
            data: self.data.bytes(body.piece()),
            exception: false,
            torn: self.given == Given::Torn,
        }
    }

    pub(super) fn is_mid_frame(&self) -> bool {
        let last = self.lines.gathered();
        let line = &last[mark(last, !self.begun)..];
        let is_held = self.data.is_some() || !self.event.is_empty();
        (is_held && self.given == Given::Not) || line.first().is_some_and(|byte| *byte != b':')
    }
}

/// Where a line ends: CR, LF, or both, of which this finds the first.
fn line_end(bytes: &[u8]) -> Option<usize> {
    match bytes.first() {
        Some(b'\n' | b'\r') => Some(0), // the blank line of every event, without a search
        _ => memchr2(b'\n', b'\r', bytes),
    }
}

/// The length of the byte order mark of the first line.
fn mark(line: &[u8], is_first: bool) -> usize {
    if is_first && line.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
}

fn field(line: &[u8], is_first: bool) -> Field {
    let start = mark(line, is_first);
    let line = &line[start..];
    let value = |name: &str| Some(start + value(line, name)?);
    if line.is_empty() {
        Field::Blank
    } else if let Some(at) = value("data") {
        Field::Data(at)
    } else if let Some(at) = value("event") {
        Field::Event(at)
    } else {
        Field::Ignored
    }
}

/// Where the value of the field of this name starts: after the colon and one space. A line without a colon is a field without
/// a value.
fn value(line: &[u8], name: &str) -> Option<usize> {
    let at = name.len();
    match line.strip_prefix(name.as_bytes())? {
        [] => Some(at),
        [b':', b' ', ..] => Some(at + 2),
        [b':', ..] => Some(at + 1),
        _ => None,
    }
}
