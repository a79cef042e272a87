//! The AWS event stream: messages with a length, headers and two checksums.
//!
//! AWS' own crate reads a message; this finds where one ends, in pieces that end anywhere. The checksum over the length is
//! checked first, by itself: whoever waits for as many bytes as a damaged length says waits for ever.

use super::body::Body;
use super::held::empty;
use crate::provider::{Frame, FrameFault};
use aws_smithy_eventstream::frame::read_message_from;
use aws_smithy_types::event_stream::Message;

/// Length of the message, length of its headers, checksum of both.
const PRELUDE: usize = 12;
/// A message without headers and payload: the prelude and the checksum of all.
const SHORTEST: usize = PRELUDE + 4;

#[derive(Default)]
pub(super) struct EventStream {
    /// The beginning of a message that goes on in the next piece.
    carried: Vec<u8>,
    /// The message that was given. It stays until the next one is asked for.
    given: Option<Message>,
}

impl EventStream {
    /// Reads on to the end of a message. False if there is none in what was pushed.
    pub(super) fn advance(&mut self, body: &mut Body, max: usize) -> Result<bool, FrameFault> {
        self.given = None;
        loop {
            let rest = body.rest();
            if self.carried.is_empty()
                && let Some(length) = length(rest, max)?
                && let Some(whole) = rest.get(..length)
            {
                self.given = Some(message(whole)?);
                body.read_to(body.at() + length);
                return Ok(true);
            }
            let known = length(&self.carried, max)?;
            let missing = known.unwrap_or(PRELUDE) - self.carried.len();
            let more = &rest[..rest.len().min(missing)];
            self.carried.extend_from_slice(more);
            let enough = more.len() == missing;
            body.read_to(body.at() + more.len());
            if enough && known.is_some() {
                self.given = Some(message(&self.carried)?);
                empty(&mut self.carried);
                return Ok(true);
            }
            if !enough && !body.turn() {
                return Ok(false);
            }
        }
    }

    /// The message that was given.
    pub(super) fn frame(&self) -> Frame<'_> {
        let Some(message) = &self.given else {
            return Frame { event: "", data: &[], exception: false, torn: false };
        };
        let header = |name| text(message, name).unwrap_or_default();
        let (event, data, exception) = match header(":message-type") {
            "error" => (header(":error-code"), header(":error-message").as_bytes(), true),
            "exception" => (header(":exception-type"), &message.payload()[..], true),
            _ => (header(":event-type"), &message.payload()[..], false),
        };
        Frame { event, data, exception, torn: false }
    }

    pub(super) fn is_mid_frame(&self) -> bool {
        !self.carried.is_empty()
    }
}

/// The length of the message that starts here, if its prelude is there.
#[allow(clippy::many_single_char_names)] // bytes
fn length(bytes: &[u8], max: usize) -> Result<Option<usize>, FrameFault> {
    let Some(prelude) = bytes.first_chunk::<PRELUDE>() else { return Ok(None) };
    let [a, b, c, d, .., p, q, r, s] = *prelude;
    if crc32fast::hash(&prelude[..8]) != u32::from_be_bytes([p, q, r, s]) {
        return Err(FrameFault::Invalid("the length of a message does not match its checksum".into()));
    }
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    if length < SHORTEST {
        return Err(FrameFault::Invalid("a message is shorter than any can be".into()));
    }
    if length > max { Err(FrameFault::TooLarge(max)) } else { Ok(Some(length)) }
}

/// Reads a whole message, and checks it.
fn message(bytes: &[u8]) -> Result<Message, FrameFault> {
    // Its errors tell of checksums, lengths and types, and of no content.
    let message =
        read_message_from(bytes).map_err(|error| FrameFault::Invalid(format!("a message is damaged: {error}")))?;
    match text(&message, ":message-type") {
        Some("event" | "exception" | "error") => Ok(message),
        Some(_) => Err(FrameFault::Invalid("a message is neither an event nor an exception nor an error".into())),
        None => Err(FrameFault::Invalid("a message does not say what it is".into())),
    }
}

/// A header that is a string.
fn text<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    let header = message.headers().iter().find(|header| header.name().as_str() == name)?;
    Some(header.value().as_string().ok()?.as_str())
}
