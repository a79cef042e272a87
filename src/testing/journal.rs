//! What arrived.

use bytes::Bytes;
use http::{HeaderMap, Method};
use std::time::Duration;

/// One request that a [`FakeProvider`](super::FakeProvider) or a [`MemoryTransport`](super::MemoryTransport) read, and what
/// it did about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Received {
    /// When the request was read, since the start of the server, by tokio's clock.
    pub at: Duration,
    /// The connection it came on, counted from 1. Two requests with the same number shared one; in memory, none do.
    pub connection: u64,
    /// Whether another request came on that connection before.
    pub reused: bool,
    /// Its method.
    pub method: Method,
    /// Its path and query, as sent.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, without the transfer coding.
    pub body: Bytes,
    /// What was answered, for people: `503`, `200 "Hello"`, `reset before the head`.
    pub answered: String,
}

impl Received {
    /// The first value of a header, when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body, as JSON.
    ///
    /// # Errors
    ///
    /// When it is not JSON.
    pub fn json(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::from_slice(&self.body)
    }
}
