//! The computed wait before a retry.

use super::{Jitter, Random, Retry};
use std::time::Duration;

/// The wait before retry number `attempt` (0 is the first): `base_delay * factor^attempt`, capped at `max_delay`, spread by
/// the jitter. Any attempt number is fine.
///
/// For a loop of your own; a [`Policy`](super::Policy) and a client use it by themselves. A wait that the other side advised
/// goes before it: see [`RulePack::retry_after`](crate::provider::RulePack::retry_after).
///
/// ```
/// use std::time::Duration;
/// use steadfast::resilience::{Jitter, Random, Retry, backoff};
/// let settings = Retry::new(5).base_delay(Duration::from_millis(100)).jitter(Jitter::None);
/// assert_eq!(backoff(3, &settings, &Random::seeded(1)), Duration::from_millis(800));
/// assert_eq!(backoff(u32::MAX, &settings, &Random::seeded(1)), Duration::from_secs(10));
/// ```
pub fn backoff(attempt: u32, settings: &Retry, random: &Random) -> Duration {
    let power = settings.factor.powi(i32::try_from(attempt).unwrap_or(i32::MAX));
    let max = settings.max_delay.as_secs_f64();
    // `min` also swallows an infinite power, and zero times infinity.
    let exp = (settings.base_delay.as_secs_f64() * power).min(max).max(0.0);
    let secs = match settings.jitter {
        Jitter::None => exp,
        Jitter::Equal => exp / 2.0 + random.unit() * exp / 2.0,
        Jitter::Full => random.unit() * exp,
    };
    Duration::try_from_secs_f64(secs).unwrap_or(settings.max_delay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_stays_within_its_bounds(
            attempt: u32,
            base in 0_u64..100_000,
            cap in 0_u64..100_000,
            factor in 1.0_f64..1e6,
            seed: u64,
        ) {
            let ms = Duration::from_millis;
            let settings = Retry::new(1).base_delay(ms(base)).max_delay(ms(cap)).factor(factor);
            let random = Random::seeded(seed);
            let none = backoff(attempt, &settings.clone().jitter(Jitter::None), &random);
            let equal = backoff(attempt, &settings.clone().jitter(Jitter::Equal), &random);
            let full = backoff(attempt, &settings.jitter(Jitter::Full), &random);
            prop_assert!(none <= ms(cap));
            prop_assert!(attempt > 0 || none == ms(base.min(cap)));
            prop_assert!(equal <= none && equal + Duration::from_nanos(1) >= none / 2, "{equal:?} of {none:?}");
            prop_assert!(full <= none);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_waits() {
        let waits = |seed| {
            let random = Random::seeded(seed);
            (0..5).map(|i| backoff(i, &Retry::default(), &random)).collect::<Vec<_>>()
        };
        assert_eq!(waits(7), waits(7));
        assert_ne!(waits(7), waits(8));
    }
}
