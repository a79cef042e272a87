//! What the fake sends back: a success in the provider's words, a failure in its words, or plain HTTP.

use super::delivery::{Delivery, Ending, Extent, Piece};
use super::mishap::Mishap;
use bytes::Bytes;
use std::fmt;
use std::time::Duration;

/// One answer of a [`FakeProvider`](super::FakeProvider): what it says, and how it is delivered.
///
/// Without delivery options the body goes out in one write with its length, and the connection is kept alive.
///
/// ```
/// use std::time::Duration;
/// use steadfast::testing::{Answer, Piece};
///
/// // In the provider's words: the model comes from the request, usage is counted from the texts.
/// let plain = Answer::text("Hello there.");
/// let cut = Answer::text("Hello th").finish_reason("length").usage(12, 3);
///
/// // Plain HTTP, and a connection that breaks.
/// let maintenance = Answer::raw(503).header("retry-after", "30").body("down for maintenance");
/// let broken = Answer::raw(200)
///     .header("content-type", "text/event-stream")
///     .pieces(["data: one\n\n".into(), Piece::pause(Duration::from_millis(20)), "data: tw".into()])
///     .chunked()
///     .then_reset();
/// ```
#[derive(Clone, Debug)]
#[must_use = "an answer does nothing until it is part of a script"]
pub struct Answer {
    pub(super) content: Content,
    /// Sent beside the content's own, and in place of those of the same name.
    pub(super) headers: Vec<(String, Bytes)>,
    /// In place of the content's own.
    pub(super) body: Option<Bytes>,
    pub(super) delivery: Delivery,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    CloseOnReuse,
    ConnectionRefused,
    Failure(Failure),
    Hang,
    Raw(u16),
    Reply(Reply),
    ResetBeforeHead,
}

/// A success, before a protocol gave it a shape.
#[derive(Clone, Debug, Default)]
pub(super) struct Reply {
    /// `None`: an echo of what was asked.
    pub(super) text: Option<String>,
    /// In the protocol's words; `None`: that of a complete answer.
    pub(super) finish_reason: Option<String>,
    pub(super) usage: Option<(u64, u64)>,
    pub(super) model: Option<String>,
    /// What the model thinks aloud before it answers.
    pub(super) reasoning: Option<String>,
    pub(super) tool_calls: Vec<Called>,
    /// How the text is cut when it is streamed; `None`: a word at a time.
    pub(super) text_chunks: Option<Vec<String>>,
}

/// A tool that the fake model calls.
#[derive(Clone, Debug)]
pub(super) struct Called {
    /// `None`: one is made up, where the protocol has ids.
    pub(super) id: Option<String>,
    pub(super) name: String,
    /// JSON, or what is to pass for it.
    pub(super) arguments: String,
}

impl Reply {
    /// The text as a stream sends it: as it was given, or a word at a time, with the space before it.
    pub(super) fn chunks<'a>(&'a self, text: &'a str) -> Vec<&'a str> {
        if let Some(chunks) = &self.text_chunks {
            return chunks.iter().map(String::as_str).collect();
        }
        words(text)
    }
}

/// A text word by word, each with the space before it.
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().skip(1).find(|(_, c)| c.is_whitespace()).map_or(rest.len(), |(at, _)| at);
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
    words
}

/// A failure, before a protocol gave it a shape.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    BadRequest(String),
    InSuccess { code: String, message: String },
    Overloaded,
    QuotaExhausted,
    RateLimited(Duration),
    Status(u16),
    Unauthorized,
}

/// What it says.
impl Answer {
    pub(super) fn new(content: Content) -> Self {
        Self { content, headers: Vec::new(), body: None, delivery: Delivery::default() }
    }

    /// A complete answer with this text, in the provider's words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Content::Reply(Reply { text: Some(text.into()), ..Reply::default() }))
    }

    /// A complete answer with this text; a stream sends it in these pieces.
    pub fn text_chunks(chunks: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let chunks: Vec<String> = chunks.into_iter().map(Into::into).collect();
        Self::new(Content::Reply(Reply { text: Some(chunks.concat()), text_chunks: Some(chunks), ..Reply::default() }))
    }

    /// A complete answer that calls this tool and says nothing. Add more with [`and_tool_call`](Self::and_tool_call).
    pub fn tool_call(name: impl Into<String>, arguments: impl fmt::Display) -> Self {
        Self::text("").and_tool_call(name, arguments)
    }

    /// A complete answer that repeats the last message of the user.
    pub fn echo() -> Self {
        Self::new(Content::Reply(Reply::default()))
    }

    /// Plain HTTP with this status, no headers but the length, and an empty body. It is sent whatever was asked.
    pub fn raw(status: u16) -> Self {
        Self::new(Content::Raw(status))
    }

    /// Why the answer ends, in the provider's own word (`"length"`). Only for [`text`](Self::text) and
    /// [`echo`](Self::echo), like the next two.
    pub fn finish_reason(mut self, reason: impl Into<String>) -> Self {
        if let Content::Reply(reply) = &mut self.content {
            reply.finish_reason = Some(reason.into());
        }
        self
    }

    /// Calls another tool. `arguments` is JSON, or what is to pass for it; the id is made up where the protocol has one.
    pub fn and_tool_call(mut self, name: impl Into<String>, arguments: impl fmt::Display) -> Self {
        if let Content::Reply(reply) = &mut self.content {
            reply.tool_calls.push(Called { id: None, name: name.into(), arguments: arguments.to_string() });
        }
        self
    }

    /// Gives the last tool call this id.
    pub fn tool_call_id(mut self, id: impl Into<String>) -> Self {
        if let Content::Reply(reply) = &mut self.content
            && let Some(call) = reply.tool_calls.last_mut()
        {
            call.id = Some(id.into());
        }
        self
    }

    /// What the model thinks aloud before it answers.
    pub fn reasoning(mut self, words: impl Into<String>) -> Self {
        if let Content::Reply(reply) = &mut self.content {
            reply.reasoning = Some(words.into());
        }
        self
    }

    /// The tokens that the answer reports. Default: a rough count of the texts.
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        if let Content::Reply(reply) = &mut self.content {
            reply.usage = Some((input, output));
        }
        self
    }

    /// The model that the answer reports. Default: the one asked for.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        if let Content::Reply(reply) = &mut self.content {
            reply.model = Some(model.into());
        }
        self
    }

    /// Adds a header, as it is. It replaces one that the answer would have by itself, the length included.
    pub fn header(mut self, name: impl Into<String>, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.into(), Bytes::copy_from_slice(value.as_ref())));
        self
    }

    /// Sets the body, in place of what the answer would say by itself.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sets the body to JSON, with its content type.
    #[allow(clippy::needless_pass_by_value)] // reads better with `json!` at the call site
    pub fn json(self, value: serde_json::Value) -> Self {
        self.header("content-type", "application/json").body(value.to_string())
    }
}

/// How it is delivered.
impl Answer {
    /// Waits before anything is sent.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delivery.delay = delay;
        self
    }

    /// Lets something go wrong after so many events of a stream; 0 is before the first. Nothing happens to an answer that is
    /// not streamed.
    pub fn after_events(mut self, events: usize, mishap: Mishap) -> Self {
        self.delivery.mishaps.push((events, mishap));
        self
    }

    /// Sends a stream so many bytes at a time, wherever its events end.
    pub fn split_every(mut self, bytes: usize) -> Self {
        self.delivery.split = Some(bytes.max(1));
        self
    }

    /// Announces a length that is not that of the body.
    pub fn announce_length(mut self, length: u64) -> Self {
        self.delivery.announced = Some(length);
        self
    }

    /// Sends the body in chunks, without a length: one chunk, or one a piece.
    pub fn chunked(mut self) -> Self {
        self.delivery.chunked = true;
        self
    }

    /// Sets the body to these pieces: one TCP write each, about 1 ms apart (without a gap beyond 300 pieces).
    pub fn pieces(mut self, pieces: impl IntoIterator<Item = Piece>) -> Self {
        self.delivery.pieces = Some(pieces.into_iter().collect());
        self
    }

    /// Sends the body so many bytes at a time, and waits a `tick` after each.
    pub fn drip(mut self, bytes_per_tick: usize, tick: Duration) -> Self {
        self.delivery.drip = Some((bytes_per_tick.max(1), tick));
        self
    }

    /// Sends only the first bytes of the body, having announced the whole, and then closes the connection unless
    /// another ending is chosen.
    pub fn cut_after(self, bytes: usize) -> Self {
        self.cut(Extent::First(bytes))
    }

    pub(super) fn cut(mut self, extent: Extent) -> Self {
        self.delivery.extent = extent;
        if self.delivery.ending == Ending::KeepAlive {
            self.delivery.ending = Ending::CloseWithoutTerminator;
        }
        self
    }

    /// Closes the connection after the answer.
    pub fn then_close(self) -> Self {
        self.ending(Ending::Close)
    }

    /// Resets the connection about 20 ms after the last bytes, so that they arrive first. A chunked body is not ended.
    pub fn then_reset(self) -> Self {
        self.ending(Ending::Reset)
    }

    /// Says nothing more after the last bytes, and keeps the connection open. A chunked body is not ended.
    pub fn then_hang(self) -> Self {
        self.ending(Ending::Hang)
    }

    /// Closes the connection after the last bytes. A chunked body is not ended.
    pub fn close_without_terminator(self) -> Self {
        self.ending(Ending::CloseWithoutTerminator)
    }

    fn ending(mut self, ending: Ending) -> Self {
        self.delivery.ending = ending;
        self
    }
}

/// What the journal says of it, such as `429 rate limited, delayed by 50ms`.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::CloseOnReuse => f.write_str("closed on reuse"),
            Content::ConnectionRefused => f.write_str("connection refused"),
            Content::Failure(failure) => write!(f, "{failure}"),
            Content::Hang => f.write_str("hang"),
            Content::Raw(status) => write!(f, "{status}"),
            Content::Reply(Reply { text: Some(text), .. }) => write!(f, "200 {:?}", Short(text)),
            Content::Reply(Reply { text: None, .. }) => f.write_str("200 echo"),
            Content::ResetBeforeHead => f.write_str("reset before the head"),
        }?;
        let Delivery { announced, chunked: _, delay, drip, ending, extent, pieces, mishaps, split } = &self.delivery;
        if !delay.is_zero() {
            write!(f, ", delayed by {delay:?}")?;
        }
        for (events, mishap) in mishaps {
            write!(f, ", {mishap} after event {events}")?;
        }
        if let Some(step) = split {
            write!(f, ", {step} bytes at a time")?;
        }
        if let Some(length) = announced {
            write!(f, ", {length} bytes announced")?;
        }
        if let Some(pieces) = pieces {
            write!(f, ", in {} pieces", pieces.len())?;
        }
        if let Some((bytes, tick)) = drip {
            write!(f, ", {bytes} bytes every {tick:?}")?;
        }
        match extent {
            Extent::First(bytes) => write!(f, ", cut after {bytes} bytes"),
            Extent::Half => f.write_str(", cut half way"),
            Extent::Whole => Ok(()),
        }?;
        f.write_str(match ending {
            Ending::Close => ", then closed",
            Ending::CloseWithoutTerminator => ", then closed without an end",
            Ending::Hang => ", then silence",
            Ending::KeepAlive => "",
            Ending::Reset => ", then reset",
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadRequest(message) => write!(f, "400 {:?}", Short(message)),
            Self::InSuccess { code, .. } => write!(f, "200 with the error {:?}", Short(code)),
            Self::Overloaded => f.write_str("overloaded"),
            Self::QuotaExhausted => f.write_str("quota exhausted"),
            Self::RateLimited(wait) => write!(f, "rate limited for {wait:?}"),
            Self::Status(status) => write!(f, "{status}"),
            Self::Unauthorized => f.write_str("401"),
        }
    }
}

/// The beginning of a text, for a summary.
struct Short<'a>(&'a str);

impl fmt::Debug for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(40) {
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_says_what_and_how() {
        let delayed = Answer::text("Hello").delay(Duration::from_millis(50)).chunked().then_reset();
        assert_eq!(delayed.to_string(), "200 \"Hello\", delayed by 50ms, then reset");
        let long = Answer::text("é".repeat(50)).to_string();
        assert_eq!(long, format!("200 \"{}\"…", "é".repeat(40)));
    }

    #[test]
    fn an_ending_chosen_before_a_cut_is_kept() {
        assert_eq!(Answer::raw(200).then_reset().cut_after(1).delivery.ending, Ending::Reset);
        assert_eq!(Answer::raw(200).cut_after(1).then_hang().delivery.ending, Ending::Hang);
        assert_eq!(Answer::raw(200).cut_after(1).delivery.ending, Ending::CloseWithoutTerminator);
    }
}
