//! When a closed circuit opens.

use crate::record::{Problems, humane};
use crate::resilience::window::Window;
use serde::Deserialize;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A rule of your own for when a closed circuit opens. Use it with [`CircuitBreaker::tripping`].
///
/// It is told of the outcomes that count while a circuit is closed; those of trials and stale ones are not among them.
/// `key` is the model with isolation by model, and empty without. Calls for one key come one at a time and in order, under
/// the circuit's lock: return at once, and do not use the breaker from inside, or it deadlocks. A panic is caught and counts
/// as "do not open".
///
/// [`CircuitBreaker::tripping`]: super::CircuitBreaker::tripping
pub trait Tripping: Debug + Send + Sync {
    /// A call succeeded.
    fn on_success(&self, key: &str);
    /// A call failed. `true` opens the circuit.
    fn on_failure(&self, key: &str) -> bool;
    /// The circuit closed: counting starts anew.
    fn reset(&self, key: &str);
    /// The circuit of an idle model is forgotten: drop what is kept for it.
    fn forget(&self, key: &str);
}

/// The setting.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Rule {
    Consecutive(u32),
    Rolling {
        #[serde(with = "humane")]
        window: Duration,
        min_calls: u32,
        failure_ratio: f64,
    },
    #[serde(skip)]
    Custom(Arc<dyn Tripping>),
}

impl Rule {
    pub(super) fn check(&self, problems: &mut Problems) {
        match *self {
            Self::Consecutive(n) => problems.require(n > 0, "tripping.consecutive", n, "a count of at least 1"),
            Self::Rolling { window, min_calls, failure_ratio } => {
                let shown = humantime::format_duration(window);
                problems.require(!window.is_zero(), "tripping.rolling.window", shown, "a time longer than 0");
                problems.require(min_calls > 0, "tripping.rolling.min_calls", min_calls, "a count of at least 1");
                let share = failure_ratio > 0.0 && failure_ratio <= 1.0;
                let allowed = "a number greater than 0 and at most 1";
                problems.require(share, "tripping.rolling.failure_ratio", failure_ratio, allowed);
            }
            Self::Custom(_) => {}
        }
    }

    pub(super) fn counter(&self, now: Instant) -> Counter {
        match self {
            Self::Consecutive(limit) => Counter::Consecutive { limit: *limit, failures: 0 },
            Self::Rolling { window, min_calls, failure_ratio } => Counter::Rolling {
                window: Box::new(Window::new(*window, now)),
                min_calls: (*min_calls).into(),
                failure_ratio: *failure_ratio,
            },
            Self::Custom(rule) => Counter::Custom { rule: Arc::clone(rule), failures: 0 },
        }
    }

    /// Lets a custom rule drop what it keeps for `key`.
    pub(super) fn forget(&self, key: &str) {
        if let Self::Custom(rule) = self {
            let _ = catch_unwind(AssertUnwindSafe(|| rule.forget(key)));
        }
    }
}

/// What a closed circuit counts.
#[derive(Debug)]
pub(super) enum Counter {
    Consecutive {
        limit: u32,
        failures: u32,
    },
    Rolling {
        window: Box<Window>,
        min_calls: u64,
        failure_ratio: f64,
    },
    /// `failures`: since it was reset.
    Custom {
        rule: Arc<dyn Tripping>,
        failures: u32,
    },
}

impl Counter {
    pub(super) fn on_success(&mut self, key: &str, now: Instant) {
        match self {
            Self::Consecutive { failures, .. } => *failures = 0,
            Self::Rolling { window, .. } => {
                window.turn(now);
                window.add(1);
            }
            Self::Custom { rule, .. } => {
                let _ = catch_unwind(AssertUnwindSafe(|| rule.on_success(key)));
            }
        }
    }

    /// Counts so many successes that came before the window's newest bucket was over.
    pub(super) fn absorb(&mut self, successes: u64) {
        if let Self::Rolling { window, .. } = self {
            window.add(successes);
        }
    }

    /// When the newest bucket of a rolling window ends.
    pub(super) fn newest_ends(&self) -> Option<u64> {
        if let Self::Rolling { window, .. } = self { Some(window.newest_ends()) } else { None }
    }

    /// Counts a failure. `true`: the circuit opens.
    pub(super) fn on_failure(&mut self, key: &str, now: Instant) -> bool {
        match self {
            Self::Consecutive { limit, failures } => {
                *failures = failures.saturating_add(1);
                *failures >= *limit
            }
            Self::Rolling { window, min_calls, failure_ratio } => {
                window.turn(now);
                window.add_marked();
                let tally = window.total();
                tally.all >= *min_calls && tally.ratio() >= *failure_ratio
            }
            Self::Custom { rule, failures } => {
                *failures = failures.saturating_add(1);
                catch_unwind(AssertUnwindSafe(|| rule.on_failure(key))).unwrap_or(false)
            }
        }
    }

    pub(super) fn reset(&mut self, key: &str) {
        match self {
            Self::Consecutive { failures, .. } => *failures = 0,
            Self::Rolling { window, .. } => window.clear(),
            Self::Custom { rule, failures } => {
                *failures = 0;
                let _ = catch_unwind(AssertUnwindSafe(|| rule.reset(key)));
            }
        }
    }

    /// The failures that count now.
    pub(super) fn failures(&self) -> u32 {
        match self {
            Self::Consecutive { failures, .. } | Self::Custom { failures, .. } => *failures,
            Self::Rolling { window, .. } => u32::try_from(window.total().marked).unwrap_or(u32::MAX),
        }
    }

    /// Whether a success would change nothing.
    pub(super) fn ignores_success(&self) -> bool {
        matches!(self, Self::Consecutive { failures: 0, .. })
    }

    /// Whether forgetting the calls that are counted changes nothing at `now`.
    pub(super) fn is_idle(&mut self, now: Instant) -> bool {
        let Self::Rolling { window, .. } = self else { return true };
        window.turn(now);
        window.total().all == 0
    }
}
