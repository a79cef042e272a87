//! What a provider's dialect has to say here. One file a dialect implements it.

use super::answer::{Called, Failure, Reply};
use super::delivery::{Ending, Piece};
use super::http1::Request;
use bytes::Bytes;
use std::fmt;

/// A provider's dialect, as its servers speak it.
pub(super) trait Protocol: fmt::Debug + Send + Sync {
    /// The path of the base URL that its clients take.
    fn base_path(&self) -> &'static str;
    /// Reads a request, or refuses it as the provider does. `id` is unique to the request.
    fn read(&self, request: &Request, id: &str) -> Result<Asked, Rendered>;
    /// Gives a success its shape.
    fn reply(&self, reply: &Reply, asked: &Asked, id: &str) -> Rendered;
    /// Gives a failure its shape. `model` is the one asked for, if any.
    fn failure(&self, failure: &Failure, model: Option<&str>, id: &str) -> Rendered;

    /// A failure in the middle of a stream.
    fn failure_event(&self, failure: &Failure, id: &str) -> Piece {
        match self.failure(failure, None, id).body {
            Body::Whole(body) => self.event(&String::from_utf8_lossy(&body)),
            Body::Stream(_) | Body::Ended(..) => Piece::bytes(""),
        }
    }

    /// An event with this data.
    fn event(&self, data: &str) -> Piece {
        Piece::from(format!("data: {data}\n\n"))
    }

    /// A keep-alive.
    fn ping(&self) -> Piece {
        Piece::from(": keep-alive\n\n")
    }
}

/// What of a request an answer depends on.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // each is an answer of its own
pub(super) struct Asked {
    pub(super) model: String,
    /// The last message of the user.
    pub(super) prompt: String,
    pub(super) input_tokens: u64,
    /// Whether the answer is wanted as a stream.
    pub(super) stream: bool,
    /// Whether a stream is to report what it spent, where the protocol reports it only when asked.
    pub(super) stream_usage: bool,
    /// Whether reasoning comes sealed, to be sent back, where the protocol does so when asked.
    pub(super) encrypted_reasoning: bool,
    /// The tool that the answer has to call, where the request names one and the fake plays along.
    pub(super) forced: Option<Forced>,
    /// Whether a stream comes as a JSON list, where the protocol has that too.
    pub(super) stream_list: bool,
    /// The one tool that is to be called, where a dialect tells.
    pub(super) forced_tool: Option<String>,
}

/// A tool that an answer has to call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Forced {
    pub(super) name: String,
    /// The only argument, where the schema has one alone.
    pub(super) only: Option<String>,
}

impl Asked {
    /// The text of a reply.
    pub(super) fn text<'a>(&'a self, reply: &'a Reply) -> &'a str {
        reply.text.as_deref().unwrap_or(&self.prompt)
    }

    /// A reply in words, as a model gives it that is made to call a tool: the words are the arguments.
    pub(super) fn forced_call(&self, reply: &Reply) -> Option<Reply> {
        let name = self.forced_tool.clone().filter(|_| reply.tool_calls.is_empty())?;
        let called = Called { id: None, name, arguments: self.text(reply).to_owned() };
        let (text, text_chunks) = (Some(String::new()), None);
        Some(Reply { text, text_chunks, tool_calls: vec![called], ..reply.clone() })
    }

    /// The model that a reply reports.
    pub(super) fn model<'a>(&'a self, reply: &'a Reply) -> &'a str {
        reply.model.as_deref().unwrap_or(&self.model)
    }

    /// The tokens that a reply reports: input and output.
    pub(super) fn usage(&self, reply: &Reply) -> (u64, u64) {
        reply.usage.unwrap_or_else(|| (self.input_tokens, count_tokens(self.text(reply))))
    }
}

/// Roughly: four characters each.
pub(super) fn count_tokens(text: &str) -> u64 {
    u64::try_from(text.chars().count().div_ceil(4)).unwrap_or(u64::MAX)
}

/// The text of a message, given as a string or in parts.
pub(super) fn text_of(content: &serde_json::Value) -> String {
    match content {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

/// An answer in its final shape, but for its delivery.
#[derive(Clone, Debug)]
pub(super) struct Rendered {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Body,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    /// A stream that ends in a way of its own.
    Ended(Vec<Piece>, Ending),
    /// A stream: chunked, and each piece, which is an event, written by itself.
    Stream(Vec<Piece>),
    Whole(Bytes),
}

impl Rendered {
    pub(super) fn json(status: u16, body: &serde_json::Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status, headers, body: Body::Whole(body.to_string().into()) }
    }

    /// A stream of these pieces.
    pub(super) fn stream(content_type: &'static str, pieces: Vec<Piece>) -> Self {
        let headers = vec![("content-type", content_type.to_owned()), ("cache-control", "no-cache".to_owned())];
        Self { status: 200, headers, body: Body::Stream(pieces) }
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// No dialect: texts are the body, failures their status.
#[derive(Debug)]
pub(super) struct Plain;

impl Protocol for Plain {
    fn base_path(&self) -> &'static str {
        ""
    }

    fn read(&self, request: &Request, _: &str) -> Result<Asked, Rendered> {
        let prompt = String::from_utf8_lossy(&request.body).into_owned();
        Ok(Asked { input_tokens: count_tokens(&prompt), prompt, ..Asked::default() })
    }

    fn reply(&self, reply: &Reply, asked: &Asked, _: &str) -> Rendered {
        Self::text(200, asked.text(reply).to_owned())
    }

    fn failure(&self, failure: &Failure, _: Option<&str>, _: &str) -> Rendered {
        let status = match failure {
            Failure::BadRequest(_) => 400,
            Failure::InSuccess { .. } => 200,
            Failure::Overloaded => 503,
            Failure::QuotaExhausted | Failure::RateLimited(_) => 429,
            Failure::Status(status) => *status,
            Failure::Unauthorized => 401,
        };
        let rendered = Self::text(status, failure.to_string());
        match failure {
            Failure::RateLimited(wait) => rendered.header("retry-after", seconds(*wait)),
            _ => rendered,
        }
    }
}

impl Plain {
    fn text(status: u16, text: String) -> Rendered {
        Rendered {
            status,
            headers: vec![("content-type", "text/plain; charset=utf-8".to_owned())],
            body: Body::Whole(text.into()),
        }
    }
}

/// Whole seconds, as `retry-after` wants them: never less than the wait.
pub(super) fn seconds(wait: std::time::Duration) -> String {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).to_string()
}
