//! How often and how patiently to try again.

use crate::record::{ConfigError, Problems, humane};
use serde::Deserialize;
use std::time::Duration;

/// How often and how patiently to try again.
///
/// | setting | default |
/// |---|---|
/// | `max_retries` | 1: retries after the first attempt, so `3` means up to 4 attempts |
/// | `base_delay` | 500 ms |
/// | `max_delay` | 10 s: cap of the computed backoff, whatever the attempt |
/// | `factor` | 2.0 |
/// | `jitter` | [`Jitter::Equal`] |
/// | `non_retryable_status` | none: narrows what is retried |
/// | `retry_status` | none: widens it |
/// | `idempotent` | true |
/// | `respect_retry_after` | true |
/// | `max_retry_after` | 60 s: the longest advised wait worth honouring |
/// | `advised_jitter` | 0: share of the advised wait (at most 1 s) added at random, for fleets |
/// | `min_attempt_time` | 250 ms: an attempt after a wait that would have less left before the deadline is not made |
///
/// ```
/// use std::time::Duration;
/// use steadfast::resilience::Retry;
/// let patient = Retry::new(3).base_delay(Duration::from_millis(200)).max_delay(Duration::from_secs(5));
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_field_names)] // `retry_status` is its name in files
pub struct Retry {
    pub(crate) max_retries: u32,
    #[serde(with = "humane")]
    pub(crate) base_delay: Duration,
    #[serde(with = "humane")]
    pub(crate) max_delay: Duration,
    pub(crate) factor: f64,
    pub(crate) jitter: Jitter,
    pub(crate) non_retryable_status: Vec<u16>,
    #[allow(clippy::struct_field_names)] // what users write
    pub(crate) retry_status: Vec<u16>,
    pub(crate) idempotent: bool,
    pub(crate) respect_retry_after: bool,
    #[serde(with = "humane")]
    pub(crate) max_retry_after: Duration,
    pub(crate) advised_jitter: f64,
    #[serde(with = "humane")]
    pub(crate) min_attempt_time: Duration,
}

/// How chance spreads the computed backoff. An advised wait is never shortened by it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// Exactly the computed value.
    None,
    /// Between half of the value and all of it.
    #[default]
    Equal,
    /// Between nothing and all of the value.
    Full,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_retries: 1,
            base_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(10),
            factor: 2.0,
            jitter: Jitter::Equal,
            non_retryable_status: Vec::new(),
            retry_status: Vec::new(),
            idempotent: true,
            respect_retry_after: true,
            max_retry_after: Duration::from_secs(60),
            advised_jitter: 0.0,
            min_attempt_time: Duration::from_millis(250),
        }
    }
}

impl Retry {
    /// So many retries after the first attempt, with the other defaults.
    pub fn new(max_retries: u32) -> Self {
        Self { max_retries, ..Self::default() }
    }

    /// One attempt and no retry.
    pub fn none() -> Self {
        Self::new(0)
    }

    /// Sets the number of retries after the first attempt.
    #[must_use]
    pub fn max_retries(mut self, max_retries: u32) -> Self {
        self.max_retries = max_retries;
        self
    }

    /// Sets the backoff of the first retry.
    #[must_use]
    pub fn base_delay(mut self, delay: Duration) -> Self {
        self.base_delay = delay;
        self
    }

    /// Sets the cap of the computed backoff.
    #[must_use]
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// Sets how much the backoff grows from one retry to the next.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// Sets how chance spreads the backoff.
    #[must_use]
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Sets HTTP statuses that are not retried although the error table would.
    #[must_use]
    pub fn non_retryable_status(mut self, statuses: impl Into<Vec<u16>>) -> Self {
        self.non_retryable_status = statuses.into();
        self
    }

    /// Sets HTTP statuses that are retried although the error table would not. Evidence of a spent quota and
    /// `x-should-retry: false` still stop.
    #[must_use]
    pub fn retry_status(mut self, statuses: impl Into<Vec<u16>>) -> Self {
        self.retry_status = statuses.into();
        self
    }

    /// Whether the same request may be sent twice. `false`: never, by retry or fallback, unless nothing of the first can
    /// have reached the provider.
    #[must_use]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Whether advised waits are kept to. `false`: they stay in the error, and the computed backoff is used.
    #[must_use]
    pub fn respect_retry_after(mut self, respect: bool) -> Self {
        self.respect_retry_after = respect;
        self
    }

    /// Sets the longest advised wait worth honouring; a longer one ends the target at once.
    #[must_use]
    pub fn max_retry_after(mut self, wait: Duration) -> Self {
        self.max_retry_after = wait;
        self
    }

    /// Sets the share of an advised wait, in [0, 1] and at most 1 s, that is added at random.
    #[must_use]
    pub fn advised_jitter(mut self, share: f64) -> Self {
        self.advised_jitter = share;
        self
    }

    /// Sets the time that an attempt must have left before the deadline to be made: a retry, one that has waited for the
    /// limiter, and the first on a fallback. The first attempt of a call, where it need not wait, is made with whatever
    /// time the caller gave.
    #[must_use]
    pub fn min_attempt_time(mut self, time: Duration) -> Self {
        self.min_attempt_time = time;
        self
    }

    /// What is wrong with the settings.
    ///
    /// # Errors
    ///
    /// Names every setting that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        problems.require(
            self.factor.is_finite() && self.factor >= 1.0,
            "factor",
            self.factor,
            "a finite number of at least 1",
        );
        problems.require(
            self.max_delay >= self.base_delay,
            "max_delay",
            format_args!("{:?}", self.max_delay),
            &format!("at least base_delay ({:?})", self.base_delay),
        );
        problems.require(
            (0.0..=1.0).contains(&self.advised_jitter),
            "advised_jitter",
            self.advised_jitter,
            "a number from 0 to 1",
        );
        for (field, statuses) in
            [("non_retryable_status", &self.non_retryable_status), ("retry_status", &self.retry_status)]
        {
            for status in statuses.iter().filter(|status| !(100..=599).contains(*status)) {
                problems.require(false, field, status, "HTTP statuses from 100 to 599");
            }
        }
        problems.finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
