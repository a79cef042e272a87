//! The settings of a circuit breaker.

use super::{
    Breaker, Tripping,
    cooldown::{Cooldown, Exponential, Growth},
    tripping::Rule,
};
use crate::record::{ConfigError, Problems, humane};
use crate::resilience::Random;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// When to stop calling a target, for how long, and how to start again.
///
/// What it counts are calls, not attempts: each is admitted once and recorded once, after its retries.
///
/// # Defaults
///
/// | setting | default | |
/// |---|---|---|
/// | tripping | 5 consecutive failures | or [`rolling`](Self::rolling), or [your own](Self::tripping) |
/// | [`cooldown`](Self::cooldown) | 30 s | open time before a trial |
/// | [`cooldown_backoff`](Self::cooldown_backoff) | none | how it grows with each reopening in a row |
/// | [`half_open_probes`](Self::half_open_probes) | 1 | trials of a half-open cycle |
/// | [`half_open_success_ratio`](Self::half_open_success_ratio) | 1.0 | share of them that must succeed |
/// | [`recovery_ramp`](Self::recovery_ramp) | none | time from one call to all, after closing |
/// | [`isolate_by_model`](Self::isolate_by_model) | false | a circuit for each model |
/// | [`recheck`](Self::recheck) | false | ask again after a wait |
/// | [`hang_evidence`](Self::hang_evidence) | half of the timeout, at most 10 s | when an attempt cut off is a failure |
///
/// In files: `{ tripping = { consecutive = 5 }, cooldown = "30s", cooldown_backoff = { multiplier = 2.0, max = "5m" } }` or
/// `{ tripping = { rolling = { window = "60s", min_calls = 20, failure_ratio = 0.5 } } }`, each setting by its name here.
///
/// ```
/// use std::time::Duration;
/// use steadfast::resilience::CircuitBreaker;
///
/// let breaker = CircuitBreaker::rolling(Duration::from_secs(60), 20, 0.5)
///     .cooldown(Duration::from_secs(10))
///     .cooldown_backoff(2.0, Duration::from_secs(300))
///     .half_open_probes(3)
///     .half_open_success_ratio(0.6)
///     .build()?;
/// # let _ = breaker;
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
#[must_use = "settings do nothing until a breaker is built from them"]
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CircuitBreaker {
    tripping: Rule,
    #[serde(with = "humane")]
    cooldown: Duration,
    cooldown_backoff: Option<Growth>,
    half_open_probes: u32,
    half_open_success_ratio: f64,
    #[serde(with = "humane::optional")]
    recovery_ramp: Option<Duration>,
    pub(super) isolate_by_model: bool,
    pub(super) recheck: bool,
    #[serde(with = "humane::optional")]
    pub(super) hang_evidence: Option<Duration>,
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self::consecutive(5)
    }
}

impl CircuitBreaker {
    /// Opens after so many calls in a row have failed, each with all of its retries.
    pub fn consecutive(failures: u32) -> Self {
        Self::by(Rule::Consecutive(failures))
    }

    /// Opens at a failure that finds at least `min_calls` calls in the trailing `window` and the share of failures among
    /// them at `failure_ratio`, in (0, 1], or above. The window is kept in buckets of 1/64 of it.
    pub fn rolling(window: Duration, min_calls: u32, failure_ratio: f64) -> Self {
        Self::by(Rule::Rolling { window, min_calls, failure_ratio })
    }

    /// Opens by a rule of your own. Breakers built from the same settings share the rule.
    pub fn tripping(rule: impl Tripping + 'static) -> Self {
        Self::by(Rule::Custom(Arc::new(rule)))
    }

    fn by(tripping: Rule) -> Self {
        Self {
            tripping,
            cooldown: Duration::from_secs(30),
            cooldown_backoff: None,
            half_open_probes: 1,
            half_open_success_ratio: 1.0,
            recovery_ramp: None,
            isolate_by_model: false,
            recheck: false,
            hang_evidence: None,
        }
    }

    /// How long it stays open before a trial; longer if the failure that opened it advised a longer wait. Zero: the next
    /// call is a trial.
    pub fn cooldown(mut self, cooldown: Duration) -> Self {
        self.cooldown = cooldown;
        self
    }

    /// Lets the cooldown grow: the nth reopening in a row lasts `multiplier^n` times the cooldown plus up to 10 % at random,
    /// at most `max` in all. The first opening lasts exactly the cooldown, and so does the first after a closing.
    pub fn cooldown_backoff(mut self, multiplier: f64, max: Duration) -> Self {
        self.cooldown_backoff = Some(Growth::Exponential(Exponential { multiplier, max }));
        self
    }

    /// Lets the cooldown of the nth reopening in a row (1, 2, ..) be `grow(n)`, or the plain cooldown where that is longer. It
    /// is called under the circuit's lock: it should only compute.
    pub fn cooldown_backoff_with(mut self, grow: impl Fn(u32) -> Duration + Send + Sync + 'static) -> Self {
        self.cooldown_backoff = Some(Growth::Custom(Arc::new(grow)));
        self
    }

    /// How many trials a half-open cycle has.
    pub fn half_open_probes(mut self, probes: u32) -> Self {
        self.half_open_probes = probes;
        self
    }

    /// The share of the trials, in (0, 1], that must succeed. It closes as soon as they have, and reopens as soon as they no
    /// longer can.
    pub fn half_open_success_ratio(mut self, ratio: f64) -> Self {
        self.half_open_success_ratio = ratio;
        self
    }

    /// After closing, admits a share of the calls that grows evenly from the first call to all of them over this time. The
    /// others are refused as during a cooldown.
    pub fn recovery_ramp(mut self, time: Duration) -> Self {
        self.recovery_ramp = Some(time);
        self
    }

    /// Gives each model a circuit of its own. Closed circuits that no call holds are forgotten if they have not failed since they
    /// closed, or not for an hour (and, with a rolling window, have seen no call in it), so memory is bounded by the models in use
    /// and those that are open.
    pub fn isolate_by_model(mut self, isolate: bool) -> Self {
        self.isolate_by_model = isolate;
        self
    }

    /// Lets a call that has waited, for the limiter or for a retry, ask again before it sends.
    pub fn recheck(mut self, recheck: bool) -> Self {
        self.recheck = recheck;
        self
    }

    /// How long an attempt must have waited for a response head in vain to count as a failure when it is cut off by a
    /// deadline, a cancel or a drop. One that is cut off sooner counts as nothing. In the breakdown it is a `request_timeout`,
    /// whoever cut it off: the target had not answered.
    ///
    /// Not zero: any impatient caller could then open the circuit for all.
    pub fn hang_evidence(mut self, time: Duration) -> Self {
        self.hang_evidence = Some(time);
        self
    }

    /// Starts a closed breaker. The error names each setting that cannot be.
    pub fn build(&self) -> Result<Breaker, ConfigError> {
        self.build_with(Random::from_entropy())
    }

    /// [`build`](Self::build), with jitter from `random`.
    pub fn build_with(&self, random: Random) -> Result<Breaker, ConfigError> {
        self.build_at(random, Instant::now())
    }

    pub(super) fn build_at(&self, random: Random, now: Instant) -> Result<Breaker, ConfigError> {
        Ok(Breaker::local(self, self.rules(random)?, now))
    }

    pub(super) fn rules(&self, random: Random) -> Result<Rules, ConfigError> {
        self.check()?;
        Ok(Rules {
            tripping: self.tripping.clone(),
            cooldown: Cooldown { base: self.cooldown, growth: self.cooldown_backoff.clone(), random },
            probes: self.half_open_probes,
            needed: needed(self.half_open_probes, self.half_open_success_ratio),
            ramp: self.recovery_ramp,
        })
    }

    fn check(&self) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        self.tripping.check(&mut problems);
        if let Some(growth) = &self.cooldown_backoff {
            growth.check(self.cooldown, &mut problems);
        }
        let (probes, ratio) = (self.half_open_probes, self.half_open_success_ratio);
        problems.require(probes > 0, "half_open_probes", probes, "a count of at least 1");
        let share = ratio > 0.0 && ratio <= 1.0;
        problems.require(share, "half_open_success_ratio", ratio, "a number greater than 0 and at most 1");
        if let Some(ramp) = self.recovery_ramp {
            let shown = humantime::format_duration(ramp);
            problems.require(!ramp.is_zero(), "recovery_ramp", shown, "a time longer than 0, or none");
        }
        if let Some(time) = self.hang_evidence {
            let shown = humantime::format_duration(time);
            problems.require(!time.is_zero(), "hang_evidence", shown, "a time longer than 0, or none");
        }
        problems.finish()
    }
}

/// Checked settings, as the circuits of a breaker use them.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) tripping: Rule,
    pub(super) cooldown: Cooldown,
    /// Trials of a half-open cycle.
    pub(super) probes: u32,
    /// How many of them must succeed.
    pub(super) needed: u32,
    pub(super) ramp: Option<Duration>,
}

/// The least number of `probes` that is at least the share `ratio` of them.
fn needed(probes: u32, ratio: f64) -> u32 {
    let reached = |n: u32| f64::from(n) / f64::from(probes) >= ratio;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 0 to `probes`
    let about = (f64::from(probes) * ratio) as u32;
    // The product is rounded, so look on both sides of it.
    (about.saturating_sub(1).max(1)..probes).find(|&n| reached(n)).unwrap_or(probes)
}

#[cfg(all(test, not(loom)))]
mod tests;
