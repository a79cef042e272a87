//! A bucket that refills continuously, in exact arithmetic.

use crate::resilience::clock::later;
use std::{num::NonZeroU64, time::Duration};
use tokio::time::Instant;

/// Parts of one request or token. A rate of one a minute then adds exactly one part a nanosecond, and no rounding ever
/// lets a request out early, or asks a waiter to come back too soon.
const PARTS: i128 = 60_000_000_000;

/// The longest step of time in nanoseconds, about 146 years: times the highest rate it still fits into an `i128`.
const LONGEST: u64 = 1 << 62;

/// What may go out now, what may be saved up, and how fast it comes back.
#[derive(Debug)]
pub(super) struct TokenBucket {
    /// In parts. Negative after more was spent than had been estimated.
    left: i128,
    room: u64,
    /// Not zero: one that never refills would never serve who waits. It also keeps `Option<TokenBucket>` small, so that
    /// both buckets of a limiter share a cache line.
    per_minute: NonZeroU64,
}

impl TokenBucket {
    /// A full bucket.
    pub(super) fn new(per_minute: u64, room: u64) -> Self {
        Self { left: parts(room), room, per_minute: at_least_one(per_minute) }
    }

    /// So many nanoseconds have gone by.
    #[inline]
    pub(super) fn refill(&mut self, nanos: u64) {
        let nanos = nanos.min(LONGEST);
        self.left = (self.left + i128::from(self.per_minute.get()) * i128::from(nanos)).min(parts(self.room));
    }

    pub(super) fn has(&self, n: u64) -> bool {
        self.left >= parts(n)
    }

    /// Takes without asking.
    pub(super) fn take(&mut self, n: u64) {
        self.left = self.left.saturating_sub(parts(n));
    }

    /// Puts back what was not spent, or takes what was spent in addition.
    pub(super) fn give(&mut self, n: i64) {
        self.left = self.left.saturating_add(i128::from(n) * PARTS).min(parts(self.room));
    }

    /// Leaves at most `n`.
    pub(super) fn lower_to(&mut self, n: u64) {
        self.left = self.left.min(parts(n));
    }

    /// Refills at another rate from now on, into other room.
    pub(super) fn resize(&mut self, per_minute: u64, room: u64) {
        self.per_minute = at_least_one(per_minute);
        self.room = room;
        self.lower_to(room);
    }

    /// When it will have `n`, if nothing else is taken.
    pub(super) fn ready_at(&self, n: u64, now: Instant) -> Instant {
        let lacking = parts(n).saturating_sub(self.left).max(0);
        // Rounded up: never sooner than it is true.
        let nanos = (lacking - 1) / i128::from(self.per_minute.get()) + 1;
        if lacking == 0 { now } else { later(now, Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))) }
    }

    /// What could go out now, in whole requests or tokens.
    pub(super) fn whole(&self) -> u64 {
        u64::try_from(self.left / PARTS).unwrap_or(0)
    }
}

fn at_least_one(per_minute: u64) -> NonZeroU64 {
    NonZeroU64::new(per_minute).unwrap_or(NonZeroU64::MIN)
}

fn parts(n: u64) -> i128 {
    i128::from(n) * PARTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resilience::window::nanos;

    #[test]
    fn comes_back_neither_too_soon_nor_too_late() {
        let now = Instant::now();
        for (per_minute, n) in [(1, 1), (3, 1), (7, 2), (59, 10), (61, 61), (4_000_000_007, 1), (u64::MAX, u64::MAX)] {
            let mut bucket = TokenBucket::new(per_minute, n);
            bucket.take(n);
            let wait = bucket.ready_at(n, now) - now;
            bucket.refill(nanos(wait).saturating_sub(1));
            assert!(!bucket.has(n), "{n} at {per_minute} a minute were there before {wait:?}");
            bucket.refill(1);
            assert!(bucket.has(n), "{n} at {per_minute} a minute after {wait:?}");
        }
    }

    #[test]
    fn many_small_steps_add_up_to_a_large_one() {
        let (mut small, mut large) = (TokenBucket::new(7, 100), TokenBucket::new(7, 100));
        for bucket in [&mut small, &mut large] {
            bucket.take(100);
        }
        for _ in 0..1_000 {
            small.refill(333_333_337);
        }
        large.refill(333_333_337_000);
        assert_eq!((small.left, small.whole()), (large.left, 38));
    }

    #[test]
    fn holds_at_most_its_room() {
        let mut bucket = TokenBucket::new(60, 10);
        bucket.refill(u64::MAX);
        bucket.give(i64::MAX);
        assert_eq!(bucket.whole(), 10);
        bucket.resize(30, 5);
        assert_eq!(bucket.whole(), 5);
        bucket.resize(60, 10);
        assert_eq!(bucket.whole(), 5, "room is not content");
    }

    #[test]
    fn a_debt_is_paid_by_refilling() {
        let now = Instant::now();
        let mut bucket = TokenBucket::new(60, 10);
        bucket.give(-30);
        assert_eq!(bucket.whole(), 0);
        assert_eq!(bucket.ready_at(1, now), now + Duration::from_secs(21));
    }

    #[test]
    fn far_is_as_far_as_time_goes() {
        let now = Instant::now();
        let mut never = TokenBucket::new(1, 1);
        never.take(u64::MAX);
        never.take(u64::MAX);
        assert!(never.ready_at(u64::MAX, now) > now);
    }
}
