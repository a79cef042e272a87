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
    // Finite, for a base of zero stays zero whatever the power.
    let power = settings.factor.powi(i32::try_from(attempt).unwrap_or(i32::MAX)).min(f64::MAX);
    let max = settings.max_delay.as_secs_f64();
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
    fn it_grows_by_its_factor_up_to_its_cap() {
        let settings = Retry::new(9).base_delay(Duration::from_millis(250)).factor(3.0).jitter(Jitter::None);
        let waits = [0, 1, 2, 3, 4, u32::MAX].map(|attempt| backoff(attempt, &settings, &Random::seeded(1)));
        assert_eq!(waits, [250, 750, 2_250, 6_750, 10_000, 10_000].map(Duration::from_millis));
    }

    #[test]
    fn no_base_is_no_wait_whatever_the_attempt() {
        let settings = Retry::new(9).base_delay(Duration::ZERO).jitter(Jitter::None);
        for attempt in [0, 1, 1_023, 1_024, u32::MAX] {
            assert_eq!(backoff(attempt, &settings, &Random::seeded(1)), Duration::ZERO, "{attempt}");
        }
    }

    #[test]
    fn jitter_reaches_all_of_its_range() {
        let range = |jitter| {
            let random = Random::seeded(1);
            let settings = Retry::default().jitter(jitter);
            let waits = (0..1_000).map(|_| backoff(0, &settings, &random).as_millis());
            waits.fold((u128::MAX, 0), |(least, most), wait| (least.min(wait), most.max(wait)))
        };
        let (least, most) = range(Jitter::Equal);
        assert!((250..255).contains(&least) && (495..=500).contains(&most), "{least} to {most}");
        let (least, most) = range(Jitter::Full);
        assert!(least < 5 && (495..=500).contains(&most), "{least} to {most}");
    }

    #[test]
    fn settings_that_make_no_sense_give_a_wait_within_the_cap() {
        for factor in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -2.0, 0.0] {
            for attempt in [0, 1, 2, u32::MAX] {
                let wait = backoff(attempt, &Retry::default().factor(factor), &Random::seeded(1));
                assert!(wait <= Duration::from_secs(10), "{factor} {attempt}: {wait:?}");
            }
        }
        let longest = Retry::default().base_delay(Duration::MAX).max_delay(Duration::MAX).jitter(Jitter::None);
        assert_eq!(backoff(7, &longest, &Random::seeded(1)), Duration::MAX);
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
