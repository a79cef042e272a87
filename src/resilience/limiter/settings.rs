//! What a limiter may be told.

use super::{Aimd, Limiter};
use crate::record::{ConfigError, Problems};
use serde::Deserialize;
use std::time::Duration;

/// Limits to stay under: requests and tokens per minute, and attempts at the same time.
///
/// | setting | default | |
/// |---|---|---|
/// | [`requests_per_minute`](Self::requests_per_minute) | unlimited | attempts, retries included |
/// | [`tokens_per_minute`](Self::tokens_per_minute) | unlimited | estimated before, corrected after |
/// | [`max_concurrent`](Self::max_concurrent) | unlimited | attempts at the same time; a stream counts until it ends |
/// | [`burst`](Self::burst) | a minute's worth | requests that an idle limiter saves up |
/// | [`token_burst`](Self::token_burst) | a minute's worth | tokens that an idle limiter saves up |
/// | [`max_queue_time`](Self::max_queue_time) | 30 s | `None`: as long as the deadline allows |
/// | [`max_queue_len`](Self::max_queue_len) | unbounded | |
/// | [`estimate_fraction`](Self::estimate_fraction) | 1.0 | share of the estimated tokens to reserve |
/// | [`aimd`](Self::aimd) | off | find the provider's real limit |
/// | [`follow_provider`](Self::follow_provider) | off | pace by the provider's headers |
///
/// Buckets start full and refill continuously: in any time t at most `limit × t + burst` goes out, and what an attempt
/// gives back (tokens it did not spend, a request that was never sent) may go out again from then on. A burst of a full
/// minute's worth therefore lets up to twice the limit out within one minute, which a provider that counts in sliding
/// windows answers with 429. Lower the burst for such a provider, down to 1 for even pacing.
///
/// Whoever has to wait queues, first come first served: a large request is not starved by small ones behind it.
///
/// In a file, durations are text (`max_queue_time = "10s"`), and unknown settings are an error.
///
/// ```
/// # use std::time::Duration;
/// use steadfast::resilience::RateLimit;
///
/// let limits = RateLimit::new()
///     .requests_per_minute(500)
///     .burst(50)
///     .tokens_per_minute(200_000)
///     .max_concurrent(20)
///     .max_queue_time(Duration::from_secs(10));
/// let limiter = limits.build()?;
/// assert_eq!(limiter.state().tokens_remaining, Some(200_000));
///
/// let error = limits.burst(0).build().unwrap_err();
/// assert_eq!(error.problems()[0].field, "burst");
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[must_use = "settings do nothing until they are built or given to a target"]
pub struct RateLimit {
    pub(super) requests_per_minute: Option<u32>,
    pub(super) tokens_per_minute: Option<u64>,
    pub(super) max_concurrent: Option<u32>,
    pub(super) burst: Option<u32>,
    pub(super) token_burst: Option<u64>,
    #[serde(with = "crate::record::humane::optional")]
    pub(super) max_queue_time: Option<Duration>,
    pub(super) max_queue_len: Option<usize>,
    pub(super) estimate_fraction: f64,
    pub(super) aimd: Option<Aimd>,
    pub(super) follow_provider: bool,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self {
            requests_per_minute: None,
            tokens_per_minute: None,
            max_concurrent: None,
            burst: None,
            token_burst: None,
            max_queue_time: Some(Duration::from_secs(30)),
            max_queue_len: None,
            estimate_fraction: 1.0,
            aimd: None,
            follow_provider: false,
        }
    }
}

impl RateLimit {
    /// No limit at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many attempts a minute may go out. Retries count.
    pub fn requests_per_minute(mut self, requests: u32) -> Self {
        self.requests_per_minute = Some(requests);
        self
    }

    /// Sets how many tokens a minute may go out, in and out together.
    pub fn tokens_per_minute(mut self, tokens: u64) -> Self {
        self.tokens_per_minute = Some(tokens);
        self
    }

    /// Sets how many attempts may run at the same time.
    pub fn max_concurrent(mut self, attempts: u32) -> Self {
        self.max_concurrent = Some(attempts);
        self
    }

    /// Sets how many requests an idle limiter saves up: from 1 (even pacing) to a minute's worth (the default).
    pub fn burst(mut self, requests: u32) -> Self {
        self.burst = Some(requests);
        self
    }

    /// Sets how many tokens an idle limiter saves up, at most and by default a minute's worth.
    ///
    /// It must be at least the largest estimate: a request that needs more is refused with
    /// [`LimitReason::Capacity`](super::LimitReason::Capacity).
    pub fn token_burst(mut self, tokens: u64) -> Self {
        self.token_burst = Some(tokens);
        self
    }

    /// Sets how long a request may wait in the queue. `None`: as long as the deadline of its call allows.
    pub fn max_queue_time(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.max_queue_time = time.into();
        self
    }

    /// Sets how many requests may wait. 0: none, whoever would have to wait is refused.
    pub fn max_queue_len(mut self, waiters: usize) -> Self {
        self.max_queue_len = Some(waiters);
        self
    }

    /// Sets the share of an estimate that is reserved, above 0 and at most 1.
    ///
    /// Estimates are worst cases (the whole token limit of the answer); reserving less of them keeps few long requests
    /// from starving all others. What was really spent is corrected after either way.
    pub fn estimate_fraction(mut self, share: f64) -> Self {
        self.estimate_fraction = share;
        self
    }

    /// Moves the request limit with what the provider answers: up on success, down on a 429.
    pub fn aimd(mut self, aimd: Aimd) -> Self {
        self.aimd = Some(aimd);
        self
    }

    /// Sets whether the provider's own word paces this limiter: its remaining and reset headers lower the buckets to
    /// what is left there and hold new requests until the reset when nothing is, and the wait advised with a 429 holds
    /// the requests that are not sent yet. It never lets out more than the limits set here.
    pub fn follow_provider(mut self, follow: bool) -> Self {
        self.follow_provider = follow;
        self
    }

    /// Makes a limiter of these settings, its buckets full.
    ///
    /// # Errors
    /// Names every setting that makes no sense.
    pub fn build(&self) -> Result<Limiter, ConfigError> {
        self.check()?;
        Ok(Limiter::local(self))
    }

    /// What one request may need at most.
    pub(super) fn most_tokens(&self) -> Option<u64> {
        self.token_burst.or(self.tokens_per_minute)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        let mut at_least_one = |field, value: Option<u64>| {
            problems.require(value != Some(0), field, 0, "at least 1, or unset for no limit");
        };
        at_least_one("requests_per_minute", self.requests_per_minute.map(u64::from));
        at_least_one("tokens_per_minute", self.tokens_per_minute);
        at_least_one("max_concurrent", self.max_concurrent.map(u64::from));

        let mut within = |field, burst: Option<u64>, limit: Option<u64>, allowed| {
            if let Some(burst) = burst {
                problems.require(limit.is_some_and(|limit| (1..=limit).contains(&burst)), field, burst, allowed);
            }
        };
        let requests = self.requests_per_minute.map(u64::from);
        within("burst", self.burst.map(u64::from), requests, "1 to requests_per_minute, which must be set");
        within("token_burst", self.token_burst, self.tokens_per_minute, "1 to tokens_per_minute, which must be set");

        problems.require(
            self.max_queue_time != Some(Duration::ZERO),
            "max_queue_time",
            "0s",
            "more than zero, or none",
        );
        let share = self.estimate_fraction;
        problems.require(share > 0.0 && share <= 1.0, "estimate_fraction", share, "above 0 and at most 1");
        if let Some(aimd) = &self.aimd {
            aimd.check(self.requests_per_minute, &mut problems);
        }
        problems.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(settings: &RateLimit) -> Vec<String> {
        let error = settings.build().err();
        error.iter().flat_map(ConfigError::problems).map(|problem| problem.field.clone()).collect()
    }

    #[test]
    fn names_every_problem() {
        let settings = RateLimit::new()
            .requests_per_minute(0)
            .tokens_per_minute(0)
            .max_concurrent(0)
            .burst(0)
            .token_burst(0)
            .max_queue_time(Duration::ZERO)
            .estimate_fraction(f64::NAN)
            .aimd(Aimd::new(f64::INFINITY, 1.0, 0, 0).proactive_floor(-0.1));
        let fields = [
            "requests_per_minute",
            "tokens_per_minute",
            "max_concurrent",
            "burst",
            "token_burst",
            "max_queue_time",
            "estimate_fraction",
            "aimd.increase_by",
            "aimd.decrease_factor",
            "aimd.min",
            "aimd.proactive_floor",
        ];
        assert_eq!(problems(&settings), fields);
    }

    #[test]
    fn refuses_what_has_no_meaning() {
        let limited = RateLimit::new().requests_per_minute(60).tokens_per_minute(600);
        let aimd = |min, max| Aimd::new(1.0, 0.5, min, max);
        for (settings, field) in [
            (RateLimit::new().burst(1), "burst"),
            (RateLimit::new().token_burst(1), "token_burst"),
            (limited.clone().burst(61), "burst"),
            (limited.clone().token_burst(601), "token_burst"),
            (limited.clone().estimate_fraction(0.0), "estimate_fraction"),
            (limited.clone().estimate_fraction(1.01), "estimate_fraction"),
            (limited.clone().estimate_fraction(-1.0), "estimate_fraction"),
            (RateLimit::new().aimd(aimd(1, 10)), "requests_per_minute"),
            (limited.clone().aimd(aimd(70, 69)), "aimd.max"),
            (limited.clone().aimd(aimd(1, 59)), "requests_per_minute"),
            (limited.clone().aimd(aimd(61, 80)), "requests_per_minute"),
            (limited.clone().aimd(Aimd::new(0.0, 0.5, 1, 60)), "aimd.increase_by"),
            (limited.clone().aimd(Aimd::new(1.0, 0.0, 1, 60)), "aimd.decrease_factor"),
            (limited.clone().aimd(Aimd::new(1.0, f64::NAN, 1, 60)), "aimd.decrease_factor"),
            (limited.clone().aimd(aimd(1, 60).proactive_floor(1.0)), "aimd.proactive_floor"),
        ] {
            assert_eq!(problems(&settings), [field], "{settings:?}");
        }
        for settings in [
            RateLimit::new(),
            RateLimit::new().max_queue_len(0).max_queue_time(None),
            limited.clone().burst(60).token_burst(600),
            limited.burst(1).aimd(aimd(1, 1_000)),
        ] {
            assert_eq!(problems(&settings), [""; 0], "{settings:?}");
        }
    }

    #[test]
    fn reads_files_and_rejects_the_unknown() -> Result<(), serde_json::Error> {
        let text = r#"{
            "requests_per_minute": 500, "max_queue_time": "1m 30s", "follow_provider": true,
            "aimd": { "increase_by": 1, "decrease_factor": 0.5, "min": 10, "max": 600, "proactive_floor": 0.1 }
        }"#;
        let expected = RateLimit::new()
            .requests_per_minute(500)
            .max_queue_time(Duration::from_secs(90))
            .follow_provider(true)
            .aimd(Aimd::new(1.0, 0.5, 10, 600).proactive_floor(0.1));
        assert_eq!(serde_json::from_str::<RateLimit>(text)?, expected);
        assert_eq!(serde_json::from_str::<RateLimit>("{}")?, RateLimit::new());
        let endless = serde_json::from_str::<RateLimit>(r#"{ "max_queue_time": null }"#)?;
        assert_eq!(endless, RateLimit::new().max_queue_time(None));
        for wrong in [r#"{ "rpm": 1 }"#, r#"{ "max_queue_time": 5 }"#, r#"{ "burst": -1 }"#, r#"{ "aimd": {} }"#] {
            assert!(serde_json::from_str::<RateLimit>(wrong).is_err(), "{wrong}");
        }
        Ok(())
    }
}
