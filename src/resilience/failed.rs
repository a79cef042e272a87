//! How a run ended without success.

use super::breaker::CircuitRefusal;
use super::limiter::LimitRefusal;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// Why the engine gave up.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Stop {
    /// The last failure could not be cured by trying again.
    NotRetryable,
    /// Every retry was used up.
    UsedUp,
    /// The retry budget was spent.
    Budget,
    /// The deadline left no time, or passed.
    Deadline,
    /// The advised wait was longer than is worth honouring.
    WaitTooLong,
    /// The caller cancelled.
    Cancelled,
    /// The circuit refused.
    Circuit(CircuitRefusal),
    /// The limiter refused.
    Limit(LimitRefusal),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRetryable => f.write_str("not retryable"),
            Self::UsedUp => f.write_str("retries used up"),
            Self::Budget => f.write_str("retry budget exhausted"),
            Self::Deadline => f.write_str("deadline exceeded"),
            Self::WaitTooLong => f.write_str("the advised wait is too long"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Circuit(refusal) => refusal.fmt(f),
            Self::Limit(refusal) => refusal.fmt(f),
        }
    }
}

/// What was decided after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// It was tried again after this wait.
    Retry {
        /// The wait.
        after: Duration,
        /// Whether the other side had advised it.
        advised: bool,
    },
    /// The engine gave up.
    Stop(Stop),
}

/// One failed attempt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tried<E> {
    /// Its number, from 0.
    pub index: u32,
    /// The failure.
    pub error: E,
    /// When it began, the limiter's queue included.
    pub started: Instant,
    /// From sending to the failure.
    pub took: Duration,
    /// Time in the limiter's queue before it.
    pub queued: Duration,
    /// What was decided.
    pub next: Decision,
}

/// How a run ended without success: why, and every failed attempt, the last one last.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failed<E> {
    /// Why the engine gave up.
    pub stop: Stop,
    /// The failed attempts, in order.
    pub tried: Vec<Tried<E>>,
    /// Whether anything may have reached the other side.
    pub sent: bool,
}

/// What a run has been through.
#[derive(Debug)]
pub(crate) struct Course<E> {
    /// The failed attempts, in order.
    pub(crate) tried: Vec<Tried<E>>,
    /// Whether anything may have reached the other side in one of them.
    pub(super) sent: bool,
}

impl<E> Default for Course<E> {
    fn default() -> Self {
        Self { tried: Vec::new(), sent: false }
    }
}

impl<E> Course<E> {
    /// The end of a run that gave up.
    pub(crate) fn failed(self, stop: Stop) -> Failed<E> {
        Failed { stop, tried: self.tried, sent: self.sent }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
