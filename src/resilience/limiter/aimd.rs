//! Additive increase, multiplicative decrease: feel for the limit that the provider really keeps.

use crate::record::Problems;
use serde::Deserialize;
use std::time::Duration;
use tokio::time::Instant;

/// One burst of 429s lowers the ceiling once in this time: the provider's own window, in which the requests that went
/// out too fast still count, is a minute.
const WINDOW: Duration = Duration::from_secs(60);

/// A request limit that moves: up by a little with each success, down by a share when the provider answers 429.
///
/// It starts at [`RateLimit::requests_per_minute`](super::RateLimit::requests_per_minute) and stays within `min` and
/// `max`, all in requests per minute. A burst of 429s lowers it once a minute, however many they are. What an idle
/// limiter saves up never exceeds a minute's worth of the lowered limit.
///
/// ```
/// use steadfast::resilience::{Aimd, RateLimit};
/// let limiter = RateLimit::new().requests_per_minute(600).aimd(Aimd::new(1.0, 0.5, 60, 1_000)).build()?;
/// limiter.throttled();
/// assert_eq!(limiter.state().requests_remaining, Some(300));
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Aimd {
    increase_by: f64,
    decrease_factor: f64,
    min: u32,
    max: u32,
    proactive_floor: Option<f64>,
}

impl Aimd {
    /// Adds `increase_by` requests per minute with each success, multiplies by `decrease_factor` (above 0, below 1) on a
    /// 429, and stays within `min` and `max`.
    pub const fn new(increase_by: f64, decrease_factor: f64, min: u32, max: u32) -> Self {
        Self { increase_by, decrease_factor, min, max, proactive_floor: None }
    }

    /// Lowers the limit before a 429 comes: when the provider's headers say that less than this share of its requests of
    /// the minute is left (above 0, below 1). Default: none. It works without
    /// [`follow_provider`](super::RateLimit::follow_provider) too.
    #[must_use]
    pub const fn proactive_floor(mut self, share: f64) -> Self {
        self.proactive_floor = Some(share);
        self
    }

    /// Notes what is wrong, given the limit to start at.
    pub(super) fn check(&self, start: Option<u32>, problems: &mut Problems) {
        let share = |value: f64| value > 0.0 && value < 1.0;
        let Self { increase_by, decrease_factor, min, max, proactive_floor } = *self;
        let finite = increase_by.is_finite() && increase_by > 0.0;
        problems.require(finite, "aimd.increase_by", increase_by, "a finite number above 0");
        problems.require(share(decrease_factor), "aimd.decrease_factor", decrease_factor, "above 0 and below 1");
        problems.require(min >= 1, "aimd.min", min, "at least 1");
        problems.require(max >= min, "aimd.max", max, "at least aimd.min");
        match start {
            None => problems.require(false, "requests_per_minute", "unset", "a limit for aimd to start at"),
            Some(start) if min <= max => problems.require(
                (min..=max).contains(&start),
                "requests_per_minute",
                start,
                "within aimd.min and aimd.max",
            ),
            Some(_) => {}
        }
        if let Some(floor) = proactive_floor {
            problems.require(share(floor), "aimd.proactive_floor", floor, "above 0 and below 1");
        }
    }

    pub(super) fn wants_hints(&self) -> bool {
        self.proactive_floor.is_some()
    }
}

/// The moving limit.
#[derive(Debug)]
pub(super) struct Ceiling {
    aimd: Aimd,
    now: f64,
    /// Until then, further 429s belong to the burst that has lowered it already.
    answered_until: Option<Instant>,
}

impl Ceiling {
    pub(super) fn new(aimd: Aimd, start: u32) -> Self {
        Self { aimd, now: f64::from(start), answered_until: None }
    }

    /// Requests per minute, at least 1.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within min and max, both u32")]
    pub(super) fn per_minute(&self) -> u32 {
        self.now as u32
    }

    pub(super) fn is_at_max(&self) -> bool {
        self.now >= f64::from(self.aimd.max)
    }

    pub(super) fn rise(&mut self, successes: u32) {
        self.now = (self.now + f64::from(successes) * self.aimd.increase_by).min(f64::from(self.aimd.max));
    }

    pub(super) fn lower(&mut self, now: Instant) {
        if self.answered_until.is_none_or(|until| now >= until) {
            self.answered_until = now.checked_add(WINDOW);
            self.now = (self.now * self.aimd.decrease_factor).max(f64::from(self.aimd.min));
        }
    }

    /// Whether so few requests are left at the provider that it is time to slow down.
    pub(super) fn is_short(&self, remaining: Option<u64>, limit: Option<u64>, window: Option<Duration>) -> bool {
        let (Some(floor), Some(remaining), Some(limit)) = (self.aimd.proactive_floor, remaining, limit) else {
            return false;
        };
        // Little left of a day says nothing about this minute.
        window.is_none_or(|window| window <= WINDOW) && as_f64(remaining) < floor * as_f64(limit)
    }
}

fn as_f64(n: u64) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}
