//! A failure as plain, serializable data.

use super::{Attempt, ErrorCode, ErrorKind, Issues, RequestSnapshot, TargetAttempt};
use std::time::Duration;

/// A failure as plain data: everything that an [`LlmError`](crate::LlmError) knows, except its source and the partial
/// reply. Safe to log and to store: it holds no secret.
///
/// Its JSON form leaves absent fields out, and writes a body that occurs more than once in the tree only at its first
/// place; `body_same_as` elsewhere is a JSON pointer to it, from the root of the snapshot. Reading the JSON gives an equal value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ErrorSnapshot {
    /// What sort of failure.
    pub kind: ErrorKind,
    /// The stable reason within the kind.
    pub code: Option<ErrorCode>,
    /// One line that a person can act on.
    pub message: String,
    /// The HTTP status that arrived.
    pub status: Option<u16>,
    /// The provider's advised wait, or the remaining cooldown of a circuit.
    pub retry_after: Option<Duration>,
    /// Whether making the same call again would possibly succeed.
    pub retryable: bool,
    /// The provider's own code.
    pub provider_code: Option<String>,
    /// The provider's own error type.
    pub provider_type: Option<String>,
    /// The provider's own words, redacted and capped.
    pub provider_message: Option<String>,
    /// The provider's request id.
    pub request_id: Option<String>,
    /// Structured detail.
    pub issues: Option<Issues>,
    /// The last request that was sent.
    pub request: Option<RequestSnapshot>,
    /// The attempts, in order.
    pub attempts: Vec<Attempt>,
    /// The targets, in order.
    pub targets: Vec<TargetAttempt>,
}

impl ErrorSnapshot {
    /// A failure of `kind`, without a code.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: None,
            message: message.into(),
            status: None,
            retry_after: None,
            retryable: kind == ErrorKind::Unknown,
            provider_code: None,
            provider_type: None,
            provider_message: None,
            request_id: None,
            issues: None,
            request: None,
            attempts: Vec::new(),
            targets: Vec::new(),
        }
    }
}

impl std::fmt::Display for ErrorSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}
