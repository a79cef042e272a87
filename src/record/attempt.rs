//! What was tried: the attempts of a target, and the targets of a chain.

use super::kind::stable_names;
use super::{ErrorSnapshot, RequestSnapshot};
use std::time::{Duration, SystemTime};

/// One failed attempt: what was sent, what came of it, and what was decided.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Attempt {
    /// Number of the attempt on its target, from 0.
    pub index: u32,
    /// The failure.
    pub error: ErrorSnapshot,
    /// What was sent, unless nothing was.
    pub request: Option<RequestSnapshot>,
    /// When the attempt began, its time in the limiter's queue included.
    pub started_at: SystemTime,
    /// From sending to the failure.
    pub duration: Duration,
    /// Time in the limiter's queue before it.
    pub queued: Duration,
    /// What was decided after it.
    pub next: Next,
}

impl Attempt {
    /// A record of the attempt number `index`.
    pub fn new(index: u32, error: ErrorSnapshot, started_at: SystemTime, next: Next) -> Self {
        Self { index, error, request: None, started_at, duration: Duration::ZERO, queued: Duration::ZERO, next }
    }
}

/// What was decided after a failed attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Next {
    /// It was tried again.
    Retried {
        /// The wait before the next attempt.
        after: Duration,
        /// Whether the provider had advised the wait.
        advised: bool,
    },
    /// The target was given up.
    Stopped(StopReason),
}

stable_names! {
    /// Why a target was given up after a failed attempt.
    StopReason {
        /// The same request could not have succeeded.
        NotRetryable => "not_retryable",
        /// Every retry was used up.
        UsedUp => "used_up",
        /// The target's retry budget was spent.
        Budget => "budget",
        /// The call's deadline, or the target's share of it, left no time.
        Deadline => "deadline",
        /// The provider advised a longer wait than is worth honouring.
        WaitTooLong => "wait_too_long",
        /// The caller cancelled.
        Cancelled => "cancelled",
        /// The circuit, the limiter or another local guard refused the next attempt.
        Refused => "refused",
    }
}

/// One target that was tried, and failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TargetAttempt {
    /// Its place in the chain; 0 is the primary.
    pub target: usize,
    /// Its name.
    pub name: String,
    /// The adapter's name.
    pub provider: String,
    /// The model that was asked for.
    pub model: String,
    /// The failure that ended it.
    pub error: ErrorSnapshot,
    /// The last request that was sent to it, if any.
    pub request: Option<RequestSnapshot>,
    /// All of its attempts, in order; empty when only one was made.
    pub attempts: Vec<Attempt>,
}

impl TargetAttempt {
    /// A record of the target at place `target` of the chain.
    pub fn new(target: usize, name: impl Into<String>, error: ErrorSnapshot) -> Self {
        Self {
            target,
            name: name.into(),
            provider: String::new(),
            model: String::new(),
            error,
            request: None,
            attempts: Vec::new(),
        }
    }
}
