//! A bucket that refills continuously, in exact arithmetic.

use std::time::Duration;
use tokio::time::Instant;

/// Parts of one request or token. A rate of one a minute then adds exactly one part a nanosecond, and no rounding ever
/// lets a request out early, or asks a waiter to come back too soon.
const PARTS: i128 = 60_000_000_000;

/// The longest step of time, about 146 years: times the highest rate it still fits into an `i128`.
const LONGEST: i128 = 1 << 62;

/// What may go out now, what may be saved up, and how fast it comes back.
#[derive(Debug)]
pub(super) struct TokenBucket {
    /// In parts. Negative after more was spent than had been estimated.
    left: i128,
    /// In parts.
    room: i128,
    per_minute: u64,
}

impl TokenBucket {
    /// A full bucket.
    pub(super) fn new(per_minute: u64, room: u64) -> Self {
        let room = parts(room);
        Self { left: room, room, per_minute }
    }

    pub(super) fn refill(&mut self, elapsed: Duration) {
        let nanos = i128::try_from(elapsed.as_nanos()).unwrap_or(LONGEST).min(LONGEST);
        self.left = (self.left + i128::from(self.per_minute) * nanos).min(self.room);
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
        self.left = self.left.saturating_add(i128::from(n) * PARTS).min(self.room);
    }

    /// Leaves at most `n`.
    pub(super) fn lower_to(&mut self, n: u64) {
        self.left = self.left.min(parts(n));
    }

    /// Refills at another rate from now on, into other room.
    pub(super) fn resize(&mut self, per_minute: u64, room: u64) {
        self.per_minute = per_minute;
        self.room = parts(room);
        self.left = self.left.min(self.room);
    }

    /// When it will have `n`, if nothing else is taken.
    pub(super) fn ready_at(&self, n: u64, now: Instant) -> Instant {
        let lacking = parts(n).saturating_sub(self.left).max(0);
        // Rounded up: never sooner than it is true.
        let nanos = (lacking - 1) / i128::from(self.per_minute.max(1)) + 1;
        if lacking == 0 { now } else { after(now, Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))) }
    }

    /// What could go out now, in whole requests or tokens.
    pub(super) fn whole(&self) -> u64 {
        u64::try_from(self.left / PARTS).unwrap_or(0)
    }
}

fn parts(n: u64) -> i128 {
    i128::from(n) * PARTS
}

/// `now + wait`, or as far as time goes.
pub(super) fn after(now: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    now.checked_add(wait).or_else(|| now.checked_add(FAR)).unwrap_or(now)
}
