//! What happens after a target has failed.

use crate::LlmError;
use crate::chat::Sampling;
use crate::record::{ErrorCode, ErrorKind};
use crate::resilience::Retry;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Settings of the client that yield to a target's, and those to a call's.
#[derive(Debug, Default)]
pub(super) struct SoftSettings {
    pub(super) retry: Retry,
    pub(super) timeout: Option<Duration>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) stall_timeout: Option<Duration>,
    pub(super) sampling: Sampling,
}

/// Where a chain stands when a target has failed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FallbackContext {
    /// Place of the target that failed; 0 is the primary.
    pub target: usize,
    /// Whether there is no other target after it.
    pub is_last: bool,
    /// Since the call started.
    pub elapsed: Duration,
    /// Until the call's deadline, if it has one.
    pub remaining_deadline: Option<Duration>,
}

/// Whether the next target is tried.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FallbackDecision {
    /// Try the next target, if there is one.
    Next,
    /// Give up.
    Stop,
}

/// The default policy: what cannot be better elsewhere stops, everything else goes on.
///
/// It stops on `aborted`, `quota_exceeded`, `deadline_exceeded`, `json_parse_failed`, the tool codes, `schema_mismatch`, and
/// `invalid_params` except `unsupported_capability`. It goes on for everything else, a lying gateway (`response_invalid`,
/// `response_too_large`) and every soft failure among it.
///
/// ```
/// use steadfast::{ErrorCode, FallbackDecision, default_fallback};
/// # use steadfast::{Client, Target, provider::OpenAi};
/// # let target = Target::new(OpenAi::new("sk-..."), "gpt-5-mini");
/// // A bad key should be loud here, not papered over by the fallback.
/// let client = Client::builder(target).fallback_on(|error, cx| match error.code() {
///     Some(ErrorCode::Authentication) => FallbackDecision::Stop,
///     _ => default_fallback(error, cx),
/// });
/// ```
pub fn default_fallback(error: &LlmError, _cx: &FallbackContext) -> FallbackDecision {
    let stop = match error.kind() {
        ErrorKind::Aborted | ErrorKind::QuotaExceeded => true,
        ErrorKind::InvalidParams => error.code() != Some(ErrorCode::UnsupportedCapability),
        _ => matches!(
            error.code(),
            Some(
                ErrorCode::DeadlineExceeded
                    | ErrorCode::JsonParseFailed
                    | ErrorCode::ToolArgumentsParseFailed
                    | ErrorCode::SchemaMismatch
                    | ErrorCode::UnknownTool
                    | ErrorCode::DuplicateToolCallId
                    | ErrorCode::ToolChoiceNoneViolated
                    | ErrorCode::UnexpectedToolCalls
            )
        ),
    };
    if stop { FallbackDecision::Stop } else { FallbackDecision::Next }
}

type Decide = dyn Fn(&LlmError, &FallbackContext) -> FallbackDecision + Send + Sync;

/// How a chain decides, and how much time it keeps for the targets that are left.
#[derive(Clone)]
pub(crate) struct FallbackPolicy {
    pub(crate) decide: Arc<Decide>,
    /// The share of the deadline that a target which is not the last leaves to the others.
    pub(crate) reserve: f64,
}

impl Default for FallbackPolicy {
    fn default() -> Self {
        Self { decide: Arc::new(default_fallback), reserve: 0.25 }
    }
}

impl fmt::Debug for FallbackPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FallbackPolicy").field("reserve", &self.reserve).finish_non_exhaustive()
    }
}
