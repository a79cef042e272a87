//! How long a circuit stays open.

use crate::record::Problems;
use crate::resilience::Random;
use serde::Deserialize;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// At most this share is added to a grown cooldown at random, so that a fleet does not try again in step.
const JITTER: f64 = 0.1;

/// How the cooldown grows while trials keep failing.
#[derive(Clone, Deserialize)]
#[serde(from = "Exponential")]
pub(super) enum Growth {
    Exponential(Exponential),
    Custom(Arc<dyn Fn(u32) -> Duration + Send + Sync>),
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct Exponential {
    pub(super) multiplier: f64,
    #[serde(with = "crate::record::humane")]
    pub(super) max: Duration,
}

impl From<Exponential> for Growth {
    fn from(exponential: Exponential) -> Self {
        Self::Exponential(exponential)
    }
}

impl Growth {
    pub(super) fn check(&self, base: Duration, problems: &mut Problems) {
        let Self::Exponential(Exponential { multiplier, max }) = *self else { return };
        let at_least_one = multiplier.is_finite() && multiplier >= 1.0;
        problems.require(at_least_one, "cooldown_backoff.multiplier", multiplier, "a finite number of at least 1");
        let shown = humantime::format_duration(max);
        problems.require(max >= base, "cooldown_backoff.max", shown, "a time not shorter than the cooldown");
    }

    /// The cooldown after so many reopenings in a row: never less than `base`. `chance` is in [0, 1).
    fn cooldown(&self, base: Duration, reopenings: u32, chance: f64) -> Duration {
        match self {
            Self::Exponential(Exponential { multiplier, max }) => {
                let grown = base.as_secs_f64() * multiplier.powf(f64::from(reopenings));
                let jittered = grown * (1.0 + JITTER * chance);
                Duration::try_from_secs_f64(jittered).map_or(*max, |d| d.clamp(base, *max))
            }
            // Called under the circuit's lock, from `Drop` too: a panic must not get out.
            Self::Custom(grow) => catch_unwind(AssertUnwindSafe(|| grow(reopenings))).map_or(base, |d| d.max(base)),
        }
    }
}

impl fmt::Debug for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exponential(exponential) => exponential.fmt(f),
            Self::Custom(_) => f.write_str("Custom(..)"),
        }
    }
}

/// The settings that make a cooldown.
#[derive(Debug)]
pub(super) struct Cooldown {
    pub(super) base: Duration,
    pub(super) growth: Option<Growth>,
    pub(super) random: Random,
}

impl Cooldown {
    /// How long to stay open after `reopenings` in a row, when the deciding failure advised a wait.
    pub(super) fn after(&self, reopenings: u32, advised: Option<Duration>) -> Duration {
        let own = match &self.growth {
            Some(growth) if reopenings > 0 => growth.cooldown(self.base, reopenings, self.random.unit()),
            _ => self.base,
        };
        own.max(advised.unwrap_or_default())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn doubling(max: Duration) -> Cooldown {
        let growth = Growth::Exponential(Exponential { multiplier: 2.0, max });
        Cooldown { base: SECOND, growth: Some(growth), random: Random::seeded(7) }
    }

    #[test]
    fn the_first_cooldown_is_exact_and_each_reopening_doubles_it_with_jitter_upwards_up_to_max() {
        let cooldown = doubling(10 * SECOND);
        assert_eq!(cooldown.after(0, None), SECOND);
        for (reopenings, least) in [(1, 2), (2, 4), (3, 8)] {
            let wait = cooldown.after(reopenings, None);
            assert!(wait >= least * SECOND && wait <= (least * SECOND).mul_f64(1.1), "{reopenings}: {wait:?}");
        }
        assert_eq!(cooldown.after(4, None), 10 * SECOND);
        assert_eq!(cooldown.after(u32::MAX, None), 10 * SECOND);
    }

    #[test]
    fn jitter_comes_from_the_seed() {
        let runs = [doubling(10 * SECOND), doubling(10 * SECOND)].map(|c| [1, 1, 2].map(|n| c.after(n, None)));
        assert_eq!(runs[0], runs[1]);
        assert_ne!(runs[0][0], runs[0][1]);
    }

    #[test]
    fn a_longer_advised_wait_is_the_cooldown_and_a_shorter_one_is_not() {
        let cooldown = doubling(10 * SECOND);
        assert_eq!(cooldown.after(0, Some(30 * SECOND)), 30 * SECOND);
        assert_eq!(cooldown.after(0, Some(SECOND / 2)), SECOND);
    }

    #[test]
    fn a_function_that_gives_less_than_the_base_or_panics_gives_the_base() {
        let growth = |f: fn(u32) -> Duration| Cooldown {
            base: SECOND,
            growth: Some(Growth::Custom(Arc::new(f))),
            random: Random::seeded(0),
        };
        assert_eq!(growth(|n| n * SECOND).after(7, None), 7 * SECOND);
        assert_eq!(growth(|_| Duration::ZERO).after(1, None), SECOND);
        assert_eq!(growth(|_| panic!("on purpose")).after(1, None), SECOND);
    }

    #[test]
    fn growth_shows_its_numbers_and_no_function() {
        let growth = Growth::Exponential(Exponential { multiplier: 2.0, max: SECOND });
        assert_eq!(format!("{growth:?}"), "Exponential { multiplier: 2.0, max: 1s }");
        assert_eq!(format!("{:?}", Growth::Custom(Arc::new(|_| SECOND))), "Custom(..)");
    }

    proptest! {
        #[test]
        fn never_shorter_than_the_base_nor_longer_than_max(
            base in 0u64..100_000, more in 0u64..1_000_000, multiplier in 1.0f64..50.0, reopenings: u32, seed: u64,
        ) {
            let (base, max) = (Duration::from_millis(base), Duration::from_millis(base + more));
            let growth = Growth::Exponential(Exponential { multiplier, max });
            let wait = Cooldown { base, growth: Some(growth), random: Random::seeded(seed) }.after(reopenings, None);
            prop_assert!(base <= wait && wait <= max);
        }
    }
}
