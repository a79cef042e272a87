//! One call: what is asked, and how this time.

mod expected;

pub(super) use expected::Expected;

use super::target::TargetRef;
use crate::chat::{Content, JsonSchema, Output, Reasoning, Request, Sampling, Setting, Tool, ToolChoice, Turn};
use crate::error::is_secret_header;
use crate::resilience::Retry;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What is asked ([`Request`], plain data), and how this time ([`CallOptions`]).
///
/// `&str` and `String` turn into a call with the user's words alone.
///
/// ```
/// use std::time::Duration;
/// use steadfast::{Call, chat::Turn};
/// let call = Call::user("Which of these invoices are overdue?")
///     .system("You are an accountant.")
///     .history([Turn::user("Hello"), Turn::assistant("How can I help?")])
///     .max_tokens(800)
///     .deadline(Duration::from_secs(20))
///     .request_id("inv-42");
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a call does nothing until a client makes it"]
pub struct Call {
    pub(crate) request: Request,
    pub(crate) options: CallOptions,
}

/// How one call is made. What is not set is the target's, or the client's.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions {
    pub(crate) retry: Option<Box<Retry>>,
    pub(crate) max_retries: Option<u32>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) timeout: Option<Option<Duration>>,
    pub(crate) idle_timeout: Option<Option<Duration>>,
    pub(crate) stall_timeout: Option<Option<Duration>>,
    pub(crate) deadline: Option<Option<Duration>>,
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) request_id: Option<String>,
    pub(crate) headers: Option<Box<HeaderMap>>,
    pub(crate) invalid_header: Option<String>,
    pub(crate) models: Vec<(TargetRef, String)>,
    pub(crate) without: Vec<Setting>,
    pub(crate) keep_raw: bool,
    /// Whether a stream only passes its chunks on.
    pub(crate) pass_through: bool,
    pub(crate) merge_turns: bool,
    pub(crate) expected: Expected,
    pub(crate) estimated_tokens: Option<u32>,
}

impl CallOptions {
    /// Whether the call brings a header of this name.
    pub(super) fn has_header(&self, name: &HeaderName) -> bool {
        self.headers.as_ref().is_some_and(|headers| headers.contains_key(name))
    }

    /// Whether the call adds any header.
    pub(super) fn adds_headers(&self) -> bool {
        self.headers.is_some() || self.request_id.is_some()
    }
}

impl Call {
    /// A call with the user's words.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::from(Request::user(content))
    }

    /// Sets the instructions that stand above the conversation.
    pub fn system(mut self, system: impl Into<String>) -> Self {
        self.request.system = Some(system.into());
        self
    }

    /// Sets the turns so far.
    pub fn history(mut self, turns: impl IntoIterator<Item = Turn>) -> Self {
        self.request.history = turns.into_iter().collect();
        self
    }

    /// Adds a turn after everything so far; see [`Request::then`].
    pub fn then(mut self, turn: Turn) -> Self {
        self.request = self.request.then(turn);
        self
    }

    /// Whether the current words of the user are joined to a history that ends with the user, for callers whose
    /// history is not theirs to order. Default: no, such a history is `invalid_history`.
    pub fn merge_turns(mut self, merge: bool) -> Self {
        self.options.merge_turns = merge;
        self
    }

    /// Adds a tool that the model may call.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.request.tools.push(tool);
        self
    }

    /// Adds tools that the model may call.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.request.tools.extend(tools);
        self
    }

    /// Sets whether the model calls tools, and which. Default: as it sees fit.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.request.tool_choice = choice;
        self
    }

    /// Sets whether the model may call several tools at once. Default: the provider's own.
    pub fn parallel_tool_calls(mut self, parallel: bool) -> Self {
        self.request.parallel_tool_calls = Some(parallel);
        self
    }

    /// Sets the form of the answer. Default: text.
    pub fn output(mut self, output: Output) -> Self {
        self.request.output = output;
        self
    }

    /// Asks for JSON of any form. The reply is parsed, once: [`Reply::json`](crate::chat::Reply::json) reads what is kept.
    /// An answer that is no JSON is `json_parse_failed`. Some providers want the word JSON in the prompt too.
    pub fn json(self) -> Self {
        self.output(Output::Json)
    }

    /// Asks for JSON of this schema, and validates the reply against it, whatever the provider promises. An answer that
    /// does not fit is `schema_mismatch`, with the places. `name` is told to providers that want one: letters, digits, `_`
    /// and `-`.
    pub fn schema(self, name: impl Into<String>, schema: impl Into<Value>) -> Self {
        self.output(Output::Schema(JsonSchema::new(name, schema)))
    }

    /// Sets how much the model is to think before it answers: a [`Reasoning`], or an [`Effort`](crate::chat::Effort).
    /// Default: the provider's own.
    pub fn reasoning(mut self, reasoning: impl Into<Reasoning>) -> Self {
        self.request.reasoning = Some(reasoning.into());
        self
    }

    /// Sets how to sample, all settings at once.
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.request.sampling = sampling;
        self
    }

    /// Sets the randomness. Its range is the protocol's.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.request.sampling.temperature = Some(temperature);
        self
    }

    /// Sets nucleus sampling, in (0, 1].
    pub fn top_p(mut self, top_p: f64) -> Self {
        self.request.sampling.top_p = Some(top_p);
        self
    }

    /// Sets the longest answer, in tokens, reasoning included.
    pub fn max_tokens(mut self, max_tokens: u32) -> Self {
        self.request.sampling.max_tokens = Some(max_tokens);
        self
    }

    /// Sets the texts that end the answer.
    pub fn stop(mut self, stop: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.request.sampling.stop = stop.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the seed of the sampling, for providers that take one.
    pub fn seed(mut self, seed: u64) -> Self {
        self.request.sampling.seed = Some(seed);
        self
    }

    /// Sends none of this setting, although the client or the target has a default for it.
    pub fn without(mut self, setting: Setting) -> Self {
        self.options.without.push(setting);
        self
    }

    /// Adds fields of the provider's own protocol. They are merged into the body last, and replace what stands there.
    /// What is not an object is `invalid_call`.
    pub fn extra(mut self, fields: Value) -> Self {
        match fields {
            Value::Object(fields) => self.request.extra.extend(fields),
            other => {
                // Kept under a name that no field can have, and refused when the call is checked.
                self.request.extra.insert(NOT_AN_OBJECT.to_owned(), other);
            }
        }
        self
    }

    /// Adds a header to every request of the call. A name or value that HTTP does not allow is `invalid_call`.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        let (name, value) = (name.as_ref(), value.as_ref());
        match (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(is_secret_header(name.as_str()));
                self.options.headers.get_or_insert_default().insert(name, value);
            }
            _ => self.options.invalid_header = Some(name.to_owned()),
        }
        self
    }

    /// Asks another model of the primary than its own. Fallback targets keep theirs: an id of one provider must not be sent
    /// to another.
    pub fn model(self, model: impl Into<String>) -> Self {
        self.model_on(0, model)
    }

    /// Asks another model of this target than its own.
    pub fn model_on(mut self, target: impl Into<TargetRef>, model: impl Into<String>) -> Self {
        self.options.models.push((target.into(), model.into()));
        self
    }

    /// Sets how often and how patiently to try again, in place of every target's own.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.options.retry = Some(Box::new(retry));
        self
    }

    /// Sets the number of retries on each target.
    pub fn max_retries(mut self, max_retries: u32) -> Self {
        self.options.max_retries = Some(max_retries);
        self
    }

    /// Whether the call may be sent twice. `false`: never, by retry or fallback, unless nothing of it can have arrived.
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.options.idempotent = Some(idempotent);
        self
    }

    /// Sets the longest attempt, from sending to the complete body, or to the first chunk with content of a stream; `None`
    /// is no limit.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.options.timeout = Some(timeout.into());
        self
    }

    /// Sets the longest silence of a stream in bytes; keep-alives count as life. `None` is no limit.
    pub fn idle_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.options.idle_timeout = Some(timeout.into());
        self
    }

    /// Sets the longest gap between chunks with content of a stream; keep-alives do not count. `None` is no limit.
    pub fn stall_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.options.stall_timeout = Some(timeout.into());
        self
    }

    /// Whether a stream puts the reply together while it passes its chunks on. Default: yes. Without, its memory does not grow
    /// with its length, and [`ReplyStream::into_reply`](crate::ReplyStream::into_reply) is `invalid_call`.
    pub fn accumulate(mut self, accumulate: bool) -> Self {
        self.options.pass_through = !accumulate;
        self
    }

    /// Sets the longest call: queueing, retries, waits, every target. It counts from the moment the call starts. `None`
    /// is no limit; zero fails at once with `deadline_exceeded`, which is what a spent budget of time computes to.
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.options.deadline = Some(deadline.into());
        self
    }

    /// Cancels the call when the token is cancelled: it then returns `aborted`.
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.options.cancel = Some(token);
        self
    }

    /// Sets your own id of the call. It is sent as `x-client-request-id` and stands in events.
    pub fn request_id(mut self, id: impl Into<String>) -> Self {
        self.options.request_id = Some(id.into());
        self
    }

    /// Sets how many tokens the call is taken to spend, for the limiter, in place of the target's estimate.
    pub fn estimated_tokens(mut self, tokens: u32) -> Self {
        self.options.estimated_tokens = Some(tokens);
        self
    }

    /// Keeps the provider's body in [`Reply::raw`](crate::chat::Reply::raw); of a stream it is not kept.
    pub fn keep_raw(mut self, keep: bool) -> Self {
        self.options.keep_raw = keep;
        self
    }

    /// What is asked.
    pub fn request(&self) -> &Request {
        &self.request
    }
}

/// The name under which [`Call::extra`] keeps what is not an object.
pub(super) const NOT_AN_OBJECT: &str = "\0extra";

/// Whether the extra fields are fields.
pub(super) fn extra_is_object(extra: &Map<String, Value>) -> bool {
    extra.is_empty() || !extra.contains_key(NOT_AN_OBJECT)
}

impl From<Request> for Call {
    fn from(request: Request) -> Self {
        Self { request, options: CallOptions::default() }
    }
}

impl From<&str> for Call {
    fn from(words: &str) -> Self {
        Self::user(words)
    }
}

impl From<String> for Call {
    fn from(words: String) -> Self {
        Self::user(words)
    }
}
