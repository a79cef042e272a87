//! The successes of a rolling window, counted ahead of the circuit's lock.

use crate::resilience::sync::{
    OwnLines,
    atomic::{AtomicU64, Ordering},
};
use crate::resilience::window::nanos;
use tokio::time::Instant;

const COUNT_BITS: u32 = 40;
const MOST: u64 = (1 << COUNT_BITS) - 1;

/// A healthy call adds 1 to `ahead` while the clock is in the window's newest bucket. Whoever has the lock next moves it into
/// the window. `ahead` carries the generation (its low 24 bits), so that a success that is overtaken by a transition cannot
/// count in the next cycle.
pub(super) struct Successes {
    start: Instant,
    /// The end of the window's newest bucket, in nanoseconds since `start`.
    newest_ends: AtomicU64,
    ahead: OwnLines<AtomicU64>,
}

impl Successes {
    /// For a window that began at `start`, in generation 0.
    pub(super) fn new(start: Instant, newest_ends: u64) -> Self {
        Self { start, newest_ends: AtomicU64::new(newest_ends), ahead: OwnLines(AtomicU64::new(0)) }
    }

    /// Counts a success of this generation. `false`: it takes the lock to know what it is.
    #[inline]
    pub(super) fn count(&self, generation: u64, now: Instant) -> bool {
        let counted = |ahead| (ahead & !MOST == tag(generation) && ahead & MOST < MOST).then_some(ahead + 1);
        nanos(now.saturating_duration_since(self.start)) < self.newest_ends.load(Ordering::Relaxed)
            && self.ahead.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted).is_ok()
    }

    /// What was counted in this generation, to be moved into the window. With the lock.
    pub(super) fn take(&self, generation: u64) -> u64 {
        self.ahead.swap(tag(generation), Ordering::Relaxed) & MOST
    }

    /// Goes on after a step of the core, which may have turned the window. With the lock.
    pub(super) fn go_on(&self, generation: u64, newest_ends: u64) {
        self.newest_ends.store(newest_ends, Ordering::Relaxed);
        if self.ahead.load(Ordering::Relaxed) & !MOST != tag(generation) {
            self.take(generation); // those of the generation before came too late
        }
    }
}

fn tag(generation: u64) -> u64 {
    generation << COUNT_BITS
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn counts_its_own_generation_in_its_own_bucket() {
        let start = Instant::now();
        let successes = Successes::new(start, 1_000);
        let (early, late) = (start + Duration::from_nanos(999), start + Duration::from_micros(1));
        assert!(successes.count(0, early) && successes.count(0, early));
        assert!(!successes.count(0, late), "the window must be turned first");
        assert!(!successes.count(1, early), "not known yet");
        assert_eq!(successes.take(0), 2);
        assert_eq!(successes.take(0), 0);
        successes.count(0, early);
        successes.go_on(0, 2_000);
        assert!(successes.count(0, late));
        assert_eq!(successes.take(0), 2, "those of the bucket before are kept");
        successes.count(0, late);
        successes.go_on(1, 3_000);
        assert!(!successes.count(0, late), "stale");
        assert!(successes.count(1, late));
        assert_eq!(successes.take(1), 1, "those of the generation before are not among them");
    }

    #[test]
    fn more_than_can_be_counted_ahead_takes_the_lock() {
        let start = Instant::now();
        let successes = Successes::new(start, 1_000);
        successes.ahead.store(tag(3) | (MOST - 1), Ordering::Relaxed);
        assert!(successes.count(3, start));
        assert!(!successes.count(3, start), "it would run into the generation");
        assert_eq!(successes.take(3), MOST);
        assert!(successes.count(3, start));
    }
}
