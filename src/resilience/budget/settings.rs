//! The settings of a retry budget.

use super::Budget;
use crate::record::{ConfigError, Problems, humane};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::Instant;

/// How much retrying a target may cost: a retry is refused while at least `min_calls` attempts are in the trailing
/// `window` **and** the share of retries among them has reached `retry_ratio`.
///
/// One budget serves all calls to a target, whatever the model. Two clients share one when they are given the same
/// [`Budget`].
///
/// In files: `{ window = "60s", min_calls = 10, retry_ratio = 0.1 }`; all three are required.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RetryBudget {
    #[serde(with = "humane")]
    pub(super) window: Duration,
    pub(super) min_calls: u32,
    pub(super) retry_ratio: f64,
}

impl RetryBudget {
    /// A budget over a trailing `window` (kept in buckets of 1/64 of it), that allows any retry until `min_calls`
    /// attempts are in the window, and from then on while less than `retry_ratio` of them, in [0, 1], are retries.
    pub fn new(window: Duration, min_calls: u32, retry_ratio: f64) -> Self {
        Self { window, min_calls, retry_ratio }
    }

    /// Starts a budget with an empty window. The error names each setting that cannot be.
    pub fn build(&self) -> Result<Budget, ConfigError> {
        let Self { window, min_calls: _, retry_ratio } = *self;
        let mut problems = Problems::default();
        problems.require(!window.is_zero(), "window", humantime::format_duration(window), "a time longer than 0");
        problems.require((0.0..=1.0).contains(&retry_ratio), "retry_ratio", retry_ratio, "a number from 0 to 1");
        problems.finish()?;
        Ok(Budget::local(self, Instant::now()))
    }
}
