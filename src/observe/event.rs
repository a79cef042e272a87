//! What can happen.

use crate::LlmError;
use crate::chat::Usage;
use crate::record::{millis, timestamp};
use crate::resilience::{Bucket, CircuitState};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Something that happened in a client. Holds no secret and no body; serialized, its `kind` is in `snake_case`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// When, by the client's clock.
    #[serde(with = "timestamp")]
    pub at: SystemTime,
    /// The call's id: its own, or one that was made up for it. Absent where no call is behind it (a circuit may change when
    /// an abandoned call is cleaned up).
    #[serde(serialize_with = "text")]
    pub request_id: Option<Arc<str>>,
    /// The target's name.
    #[serde(serialize_with = "text")]
    pub target: Option<Arc<str>>,
    /// The adapter's name.
    #[serde(serialize_with = "text")]
    pub provider: Option<Arc<str>>,
    /// The model that was asked for.
    #[serde(serialize_with = "text")]
    pub model: Option<Arc<str>>,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

// `with` and `serialize_with` hand out a reference to the field, whatever it is.
#[allow(clippy::ref_option)]
fn text<S: serde::Serializer>(text: &Option<Arc<str>>, to: S) -> Result<S::Ok, S::Error> {
    match text {
        Some(text) => to.serialize_str(text),
        None => to.serialize_none(),
    }
}

/// What happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A call began.
    CallStarted,
    /// An attempt is about to be sent.
    AttemptStarted {
        /// Its number on its target, from 0.
        attempt: u32,
    },
    /// An attempt failed.
    AttemptFailed {
        /// Its number on its target, from 0.
        attempt: u32,
        /// The failure.
        error: LlmError,
    },
    /// The same target will be tried again after a wait.
    RetryScheduled {
        /// Number of the retry; 1 is the first.
        attempt: u32,
        /// How many there may be.
        max_retries: u32,
        /// The wait.
        #[serde(rename = "delay_ms", with = "millis")]
        delay: Duration,
        /// Whether the provider advised it.
        advised: bool,
        /// Why, in a word: `HTTP 503`, `network`, `timeout`.
        reason: String,
        /// The failure that caused it.
        error: LlmError,
    },
    /// An attempt had to wait in the limiter's queue.
    RateLimited {
        /// How long it waited.
        #[serde(rename = "waited_ms", with = "millis")]
        waited: Duration,
        /// For which bucket.
        bucket: Bucket,
    },
    /// A circuit changed.
    CircuitChanged {
        /// The state before.
        from: CircuitState,
        /// The state now.
        to: CircuitState,
        /// The failures that led to it.
        failures: u32,
        /// The code of the last of them.
        last_code: Option<&'static str>,
    },
    /// A retry was wanted and the target's budget refused it.
    BudgetExhausted {
        /// The failure that wanted it.
        error: LlmError,
    },
    /// A target was given up and the next one is asked.
    Fallback {
        /// The name of the target that failed.
        #[serde(serialize_with = "name")]
        from: Arc<str>,
        /// The name of the target that is asked now.
        #[serde(serialize_with = "name")]
        to: Arc<str>,
        /// Why.
        error: LlmError,
        /// Since the call began.
        #[serde(rename = "elapsed_ms", with = "millis")]
        elapsed: Duration,
    },
    /// A call was answered, and the provider said what it cost.
    Usage {
        /// The tokens.
        usage: Usage,
    },
    /// Tokens were spent on an answer that does not keep to what was asked, or on a stream that broke or was dropped.
    UsageFailure {
        /// The tokens.
        usage: Usage,
        /// Whether more may have been spent than is counted here.
        partial: bool,
        /// Whether they are estimated by the length of the texts, because the provider had not reported any.
        estimated: bool,
    },
    /// An answer came from another origin than the one that was asked: your own HTTP client has followed a redirect, and may
    /// have taken a key along.
    Redirected {
        /// The origin that answered.
        to: String,
    },
    /// An observer panicked. Told once for each observer.
    ObserverPanicked {
        /// Its number, in the order in which they were added.
        observer: usize,
    },
    /// A call ended.
    CallFinished {
        /// How.
        outcome: CallOutcome,
        /// How many attempts were made, on all targets.
        attempts: u32,
        /// Since the call began.
        #[serde(rename = "elapsed_ms", with = "millis")]
        elapsed: Duration,
        /// The error, if it failed.
        error: Option<LlmError>,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn name<S: serde::Serializer>(name: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(name)
}

/// How a call ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallOutcome {
    /// With a reply.
    Answered,
    /// With an error.
    Failed,
    /// Its caller dropped it.
    Dropped,
}
