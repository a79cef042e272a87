//! The three guards of one target, and how a setting becomes one.

use super::{Breaker, Budget, CircuitBreaker, Limiter, Random, RateLimit, RetryBudget};
use crate::record::ConfigError;

/// What guards one target: any of breaker, budget and limiter. Each may be shared with other targets.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
#[repr(align(128))] // not in the cache lines of the count of those who hold it, which each call writes
pub struct Guards {
    /// The circuit breaker.
    pub breaker: Option<Breaker>,
    /// The retry budget.
    pub budget: Option<Budget>,
    /// The rate limiter.
    pub limiter: Option<Limiter>,
}

/// A guard, or the settings to make one of. Where a setting is taken, a running guard is too, so that two targets can share
/// one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Guard<S, G> {
    /// Settings: a guard of its own is made of them.
    Settings(S),
    /// A guard that already runs, and may be shared.
    Running(G),
}

macro_rules! guard {
    ($settings:ty, $guard:ty, |$s:ident, $random:ident| $build:expr) => {
        impl From<$settings> for Guard<$settings, $guard> {
            fn from(settings: $settings) -> Self {
                Self::Settings(settings)
            }
        }

        impl From<$guard> for Guard<$settings, $guard> {
            fn from(guard: $guard) -> Self {
                Self::Running(guard)
            }
        }

        impl Guard<$settings, $guard> {
            /// The running guard.
            pub(crate) fn build(&self, $random: &Random) -> Result<$guard, ConfigError> {
                match self {
                    Self::Settings($s) => $build,
                    Self::Running(guard) => Ok(guard.clone()),
                }
            }
        }
    };
}
guard!(CircuitBreaker, Breaker, |settings, random| settings.build_with(random.clone()));
guard!(RetryBudget, Budget, |settings, _random| settings.build());
guard!(RateLimit, Limiter, |settings, _random| settings.build());

#[cfg(all(test, not(loom)))]
mod tests;
