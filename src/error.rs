//! The one error type of a call.

mod redact;

pub(crate) use redact::{Redactor, is_secret_header};

use crate::chat::Reply;
use crate::record::{
    Attempt, ConfigError, ErrorCode, ErrorKind, ErrorSnapshot, Issues, RequestSnapshot, TargetAttempt,
};
use serde::{Serialize, Serializer};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why a call failed: one stable kind and code, the provider's own words, and the history of everything that was tried.
///
/// One pointer wide and cheap to clone. `Display` is one line that a person can act on; neither it nor `Debug` nor the
/// serialized form holds a secret. [`source`](Error::source) leads to the cause.
///
/// ```
/// use steadfast::{ErrorCode, ErrorKind, LlmError};
///
/// fn worth_queueing(error: &LlmError) -> bool {
///     match error.code() {
///         Some(ErrorCode::ProviderQuotaExhausted) => false, // someone has to pay
///         _ => error.is_retryable(),
///     }
/// }
///
/// let error = LlmError::new(ErrorKind::Api, "the model is busy").with_code(ErrorCode::Overloaded).with_status(529);
/// assert!(worth_queueing(&error));
/// ```
#[derive(Clone)]
pub struct LlmError(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    record: ErrorSnapshot,
    counts: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
    partial: Option<Box<Reply>>,
}

impl LlmError {
    /// An error of `kind`, without a code. For custom adapters, hooks and tests.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::from_record(ErrorSnapshot::new(kind, message), kind == ErrorKind::Unknown)
    }

    /// An error with `code`, its kind, and what the table says of it.
    pub(crate) fn of(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::new(code.kind(), message).with_code(code)
    }

    /// An error made of a record.
    pub(crate) fn from_record(record: ErrorSnapshot, counts: bool) -> Self {
        Self(Arc::new(Inner { record, counts, source: None, partial: None }))
    }

    /// Changes an error that is not yet shared; copies it first where it is.
    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Changes the record of an error that is not yet shared.
    pub(crate) fn change_record(self, change: impl FnOnce(&mut ErrorSnapshot)) -> Self {
        self.change(|inner| change(&mut inner.record))
    }

    /// With a code; retryability and the weight for the breaker follow its row of the table.
    #[must_use]
    pub fn with_code(self, code: ErrorCode) -> Self {
        self.change(|inner| {
            inner.record.code = Some(code);
            inner.record.retryable = code.is_retryable();
            inner.counts = code.counts_toward_breaker();
        })
    }

    /// With the HTTP status that arrived.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        self.change(|inner| inner.record.status = Some(status))
    }

    /// With the provider's advised wait.
    #[must_use]
    pub fn with_retry_after(self, wait: Duration) -> Self {
        self.change(|inner| inner.record.retry_after = Some(wait))
    }

    /// With another answer to [`is_retryable`](Self::is_retryable) than the table's.
    #[must_use]
    pub fn with_retryable(self, retryable: bool) -> Self {
        self.change(|inner| inner.record.retryable = retryable)
    }

    /// With another answer to [`counts_toward_breaker`](Self::counts_toward_breaker) than the table's.
    #[must_use]
    pub fn with_counts_toward_breaker(self, counts: bool) -> Self {
        self.change(|inner| inner.counts = counts)
    }

    /// With the provider's own words. They are printed: they must not hold secrets.
    #[must_use]
    pub fn with_provider_message(self, message: impl Into<String>) -> Self {
        self.change(|inner| inner.record.provider_message = Some(message.into()))
    }

    /// With structured detail.
    #[must_use]
    pub fn with_issues(self, issues: Issues) -> Self {
        self.change(|inner| inner.record.issues = Some(issues))
    }

    /// With the cause. Its text is printed by whoever walks the chain: it must not hold secrets.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source: Box<dyn Error + Send + Sync> = source.into();
        self.with_shared_source(source.into())
    }

    /// With a cause that others hold too.
    pub(crate) fn with_shared_source(self, source: Arc<dyn Error + Send + Sync>) -> Self {
        self.change(|inner| inner.source = Some(source))
    }

    /// With what had arrived when a stream broke.
    #[must_use]
    pub fn with_partial(self, reply: Reply) -> Self {
        self.change(|inner| inner.partial = Some(Box::new(reply)))
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.record.kind
    }

    /// The stable, machine-readable reason within the kind.
    pub fn code(&self) -> Option<ErrorCode> {
        self.0.record.code
    }

    /// The HTTP status that arrived: 200 for an error object in a 200, whose own status is
    /// [`provider_code`](Self::provider_code).
    pub fn status(&self) -> Option<u16> {
        self.0.record.status
    }

    /// The provider's advised wait, or the remaining cooldown of a circuit. Of a chain: the smallest that any target has.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.record.retry_after
    }

    /// Whether making the same call again would possibly succeed: the verdict that the engine acted on, before counts and
    /// clocks. False once output was delivered.
    pub fn is_retryable(&self) -> bool {
        self.0.record.retryable
    }

    /// Whether the failure is evidence about the health of the target.
    pub fn counts_toward_breaker(&self) -> bool {
        self.0.counts
    }

    /// The provider's own words as sent, redacted, at most 2,000 characters.
    pub fn provider_message(&self) -> Option<&str> {
        self.0.record.provider_message.as_deref()
    }

    /// The provider's own code.
    pub fn provider_code(&self) -> Option<&str> {
        self.0.record.provider_code.as_deref()
    }

    /// The provider's own error type.
    pub fn provider_type(&self) -> Option<&str> {
        self.0.record.provider_type.as_deref()
    }

    /// The provider's request id, for support tickets.
    pub fn request_id(&self) -> Option<&str> {
        self.0.record.request_id.as_deref()
    }

    /// Structured detail, typed per code.
    pub fn issues(&self) -> Option<&Issues> {
        self.0.record.issues.as_ref()
    }

    /// The last request that this error's target sent, without its secrets.
    pub fn request(&self) -> Option<&RequestSnapshot> {
        self.0.record.request.as_ref()
    }

    /// All attempts of this target in order, the one that ended it included; empty when only one was made.
    pub fn attempts(&self) -> &[Attempt] {
        &self.0.record.attempts
    }

    /// One entry per target tried, each with its own attempts; empty when only one target was tried.
    pub fn targets(&self) -> &[TargetAttempt] {
        &self.0.record.targets
    }

    /// What had arrived when a stream broke, or the whole reply that does not keep to what was asked: no JSON, another schema,
    /// a tool that there is not. Never serialized.
    pub fn partial(&self) -> Option<&Reply> {
        self.0.partial.as_deref()
    }

    /// Everything except the source and the partial reply, as plain data.
    pub fn to_snapshot(&self) -> ErrorSnapshot {
        self.0.record.clone()
    }

    /// The same, without a copy where nobody else holds the error.
    pub(crate) fn into_snapshot(self) -> ErrorSnapshot {
        Arc::try_unwrap(self.0).map_or_else(|shared| shared.record.clone(), |inner| inner.record)
    }
}

impl fmt::Display for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.record.fmt(f)
    }
}

impl fmt::Debug for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("LlmError");
        out.field("record", &self.0.record);
        if let Some(source) = &self.0.source {
            out.field("source", &format_args!("{source}"));
        }
        if self.0.partial.is_some() {
            out.field("partial", &format_args!("(kept)"));
        }
        out.finish()
    }
}

impl Error for LlmError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl Serialize for LlmError {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.record.serialize(to)
    }
}

impl From<ConfigError> for LlmError {
    fn from(error: ConfigError) -> Self {
        Self::of(ErrorCode::InvalidConfig, error.to_string()).with_source(error)
    }
}
