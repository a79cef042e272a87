//! What one run is given beside its operation.

use super::Retry;
use super::race::Cancel;
use std::time::Duration;
use tokio::time::Instant;

/// What one run is given beside the operation. A setting here replaces the policy's, it never multiplies with it.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Run<'a> {
    /// How often to try again, instead of the policy's.
    pub retry: Option<&'a Retry>,
    /// The longest attempt, instead of the policy's; `Some(None)` is no limit.
    pub timeout: Option<Option<Duration>>,
    /// The instant to end by.
    pub end: Option<End>,
    /// What cancels the run.
    pub cancel: Cancel<'a>,
    /// The estimate of tokens for the limiter.
    pub cost: u32,
    /// The model, for a circuit that is isolated by it.
    pub key: &'a str,
}

/// The instant that a run ends by, and what that means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum End {
    /// The deadline of all: an attempt that it cuts off was interrupted by [`Interrupt::Deadline`](super::Interrupt::Deadline).
    Deadline(Instant),
    /// This run's share of the time, so that another has time left: it cuts off like a timeout.
    Reserve(Instant),
}

impl End {
    /// The instant.
    pub fn at(self) -> Instant {
        match self {
            Self::Deadline(at) | Self::Reserve(at) => at,
        }
    }
}
