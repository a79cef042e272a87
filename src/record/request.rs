//! What was sent, without its secrets.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

/// The request of a failed attempt as it was actually sent, with every secret removed when the snapshot was built.
///
/// Built only when an attempt failed. `Debug` never prints the body; `Serialize` emits it, as JSON where it is JSON.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RequestSnapshot {
    /// The adapter's name, such as `openai`.
    pub provider: String,
    /// The target's name.
    pub name: String,
    /// The model that was asked for.
    pub model: String,
    /// The HTTP method.
    pub method: String,
    /// The URL; user info and secret query values read `REDACTED`.
    pub url: String,
    /// Headers by name. Secret ones are absent; values outside the allow-list read `REDACTED`.
    pub headers: BTreeMap<String, String>,
    /// The body, unless bodies are not captured.
    pub body: Option<Body>,
    /// When the attempt was sent, by the client's clock.
    pub started_at: SystemTime,
}

impl RequestSnapshot {
    /// A snapshot without headers or body, to fill in.
    pub fn new(method: impl Into<String>, url: impl Into<String>, started_at: SystemTime) -> Self {
        Self {
            provider: String::new(),
            name: String::new(),
            model: String::new(),
            method: method.into(),
            url: url.into(),
            headers: BTreeMap::new(),
            body: None,
            started_at,
        }
    }

    /// The body as JSON, where it was kept whole and is JSON. Parsed on each call.
    pub fn body_json(&self) -> Option<serde_json::Value> {
        self.body.as_ref()?.json()
    }
}

/// The bytes of a request body, shared by reference count. `Debug` prints only how many there are.
#[derive(Clone)]
pub struct Body {
    bytes: Bytes,
    truncated: bool,
}

impl Body {
    /// A body that was kept whole.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), truncated: false }
    }

    /// The beginning of a body that was too long to keep.
    pub fn truncated(head: impl Into<Bytes>) -> Self {
        Self { bytes: head.into(), truncated: true }
    }

    /// The bytes that were kept.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Whether the end is missing.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// The body as JSON, where it was kept whole and is JSON. Parsed on each call.
    pub fn json(&self) -> Option<serde_json::Value> {
        if self.truncated { None } else { serde_json::from_slice(&self.bytes).ok() }
    }
}

/// Equal bytes, or equal JSON: a body that went through JSON keeps its meaning, not its white space.
impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.truncated == other.truncated
            && (self.bytes == other.bytes || matches!((self.json(), other.json()), (Some(a), Some(b)) if a == b))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = if self.truncated { ", truncated" } else { "" };
        write!(f, "Body({} bytes{cut})", self.bytes.len())
    }
}
