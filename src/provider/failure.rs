//! What went wrong, as evidence for the rules; not yet an error.

use super::Head;
use crate::record::ToolProblem;
use http::HeaderMap;
use std::fmt;
use std::time::SystemTime;

/// Evidence of one failure. A [`RulePack`](super::RulePack) turns it into a classification; it borrows, so that nothing is
/// copied before it is known what is worth keeping. `Debug` shows how much came, and nothing that was in it.
///
/// Usable with any HTTP client:
///
/// ```
/// use steadfast::provider::{Failure, RulePack};
/// use steadfast::{ErrorCode, http::HeaderMap};
///
/// let headers = HeaderMap::new();
/// let body = br#"{"error":{"type":"insufficient_quota","message":"no credit"}}"#;
/// let seen = RulePack::openai().classify(&Failure::answer(429, &headers, body));
/// assert_eq!(seen.code, Some(ErrorCode::ProviderQuotaExhausted));
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Failure<'a> {
    /// The HTTP status that arrived, if any did.
    pub status: Option<u16>,
    /// The headers that arrived.
    pub headers: Option<&'a HeaderMap>,
    /// The body that arrived, at most the first MiB of it; for an error in a stream, the event's data.
    pub body: &'a [u8],
    /// What broke below HTTP, if that is what happened.
    pub transport: Option<TransportFault>,
    /// What an adapter found wrong in an answer whose status is a success.
    pub fault: Option<AnswerFault>,
    /// Whether output had already been delivered to the caller.
    pub delivered: bool,
    /// The name of the event in the stream that told of it, if one did.
    pub event: Option<&'a str>,
    /// When it happened. HTTP dates and resets at a point in time are measured from here; without it they are not read.
    pub at: Option<SystemTime>,
}

/// What broke below HTTP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TransportFault {
    /// No connection: DNS, connect, TLS, connect timeout. Nothing was sent.
    Connect,
    /// The connection broke before or within the answer.
    Interrupted,
    /// The time for the answer ran out below the engine.
    Timeout,
    /// The body was over the client's cap of this many bytes.
    TooLarge(u64),
    /// The request could not be built or sent as it is. Nothing was sent.
    Request,
}

/// What an adapter found wrong in an answer whose status is a success.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AnswerFault {
    /// There is an error object in it.
    Error,
    /// There is nothing usable in it.
    Empty,
    /// A filter withheld it; the categories that the provider names.
    Filtered(Vec<String>),
    /// It is not the protocol. The text says why, and quotes nothing of the body.
    Invalid(String),
    /// An event of its stream is not the protocol. The text says why, and quotes nothing of it.
    Frame(String),
    /// The arguments of these tool calls are no JSON.
    ToolArguments(Vec<ToolProblem>),
}

impl<'a> Failure<'a> {
    /// An answer with this status, these headers and this body.
    pub fn answer(status: u16, headers: &'a HeaderMap, body: &'a [u8]) -> Self {
        Self { status: Some(status), headers: Some(headers), body, ..Self::default() }
    }

    /// An answer with this head and this body.
    pub fn of(head: &'a Head, body: &'a [u8]) -> Self {
        Self::answer(head.status.as_u16(), &head.headers, body)
    }

    /// A break below HTTP.
    pub fn transport(fault: TransportFault) -> Self {
        Self { transport: Some(fault), ..Self::default() }
    }

    /// With what is wrong in the answer.
    #[must_use]
    pub fn fault(mut self, fault: AnswerFault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// With the name of the event that told of it.
    #[must_use]
    pub fn event(mut self, event: &'a str) -> Self {
        self.event = Some(event).filter(|event| !event.is_empty());
        self
    }

    /// With the time at which it happened.
    #[must_use]
    pub fn at(mut self, at: SystemTime) -> Self {
        self.at = Some(at);
        self
    }

    /// With the mark that output had been delivered.
    #[must_use]
    pub fn delivered(mut self, delivered: bool) -> Self {
        self.delivered = delivered;
        self
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers?.get(name)?.to_str().ok()
    }

    /// The body as JSON, where it is JSON (a byte order mark and white space before it are passed over).
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(self.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.body)).ok()
    }
}

impl fmt::Debug for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names of headers are left out too: a provider's may say whose account it is.
        f.debug_struct("Failure")
            .field("status", &self.status)
            .field("headers", &format_args!("{} headers", self.headers.map_or(0, HeaderMap::len)))
            .field("body", &format_args!("{} bytes", self.body.len()))
            .field("transport", &self.transport)
            .field("fault", &self.fault)
            .field("delivered", &self.delivered)
            .field("at", &self.at)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn debug_tells_how_much_came_and_nothing_that_was_in_it() {
        let mut headers = HeaderMap::new();
        headers.insert("set-cookie", HeaderValue::from_static("session=sk-secret"));
        headers.insert("x-sk-secret", HeaderValue::from_static("sk-secret"));
        let failure = Failure::answer(401, &headers, b"no such key: sk-secret").fault(AnswerFault::Empty);
        let shown = format!("{failure:?} {failure:#?}");
        assert!(!shown.contains("secret") && !shown.contains("cookie") && !shown.contains("no such key"), "{shown}");
        for part in ["Some(401)", "2 headers", "22 bytes", "transport: None", "fault: Some(Empty)", "delivered: false"]
        {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        let broken = format!("{:?}", Failure::transport(TransportFault::Connect).delivered(true));
        for part in ["status: None", "0 headers", "0 bytes", "Some(Connect)", "delivered: true"] {
            assert!(broken.contains(part), "{part} in {broken}");
        }
    }
}
