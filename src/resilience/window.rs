//! A trailing window in constant memory: 64 buckets of time, each at most 1/64 (1.6 %) of the window coarse.
//!
//! What is counted at one instant leaves with its whole bucket, when it is at most as old as the window and at least
//! 63/64 of it. Instants may come slightly out of order, as threads read the clock before they take a lock: what is late is
//! counted in the newest bucket.

use std::time::Duration;
use tokio::time::Instant;

const BUCKETS: usize = 64;

/// How many were counted, and how many of those were marked: retries among attempts, failures among calls.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Tally {
    pub(crate) all: u64,
    pub(crate) marked: u64,
}

impl Tally {
    /// The share of the marked, 0 when nothing was counted.
    ///
    /// A division and not a product, because it is rounded correctly: 3 of 30 is exactly the number written `0.1`.
    #[allow(clippy::cast_precision_loss)] // exact up to 2^53 calls in one window
    pub(crate) fn ratio(self) -> f64 {
        if self.all == 0 { 0.0 } else { self.marked as f64 / self.all as f64 }
    }
}

/// Which bucket something was counted in, to take it back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Bucket(u64);

/// Counts over a trailing window. Each method but [`turn`](Self::turn) works on the window as it was last turned.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    start: Instant,
    /// Length of a bucket in nanoseconds.
    width: u64,
    newest: u64,
    ring: [Tally; BUCKETS],
    total: Tally,
}

impl Window {
    pub(crate) fn new(length: Duration, start: Instant) -> Self {
        let width = (nanos(length) / BUCKETS as u64).max(1);
        Self { start, width, newest: 0, ring: [Tally::default(); BUCKETS], total: Tally::default() }
    }

    /// Forgets what is out of the window at `now`.
    pub(crate) fn turn(&mut self, now: Instant) {
        let newest = nanos(now.saturating_duration_since(self.start)) / self.width;
        if newest <= self.newest {
            return;
        }
        if newest - self.newest >= BUCKETS as u64 {
            self.clear();
        } else {
            for bucket in self.newest + 1..=newest {
                let old = std::mem::take(&mut self.ring[slot(bucket)]);
                self.total.all -= old.all;
                self.total.marked -= old.marked;
            }
        }
        self.newest = newest;
    }

    /// Counts `n`, unmarked, in the newest bucket.
    pub(crate) fn add(&mut self, n: u64) {
        self.ring[slot(self.newest)].all += n;
        self.total.all += n;
    }

    /// Counts one, marked, in the newest bucket.
    pub(crate) fn add_marked(&mut self) -> Bucket {
        self.add(1);
        self.ring[slot(self.newest)].marked += 1;
        self.total.marked += 1;
        Bucket(self.newest)
    }

    /// Takes back one that was counted with [`add_marked`](Self::add_marked), unless its bucket has left the window.
    pub(crate) fn take_back(&mut self, Bucket(bucket): Bucket) {
        let tally = &mut self.ring[slot(bucket)];
        if self.newest - bucket < BUCKETS as u64 && tally.marked > 0 {
            tally.all -= 1;
            tally.marked -= 1;
            self.total.all -= 1;
            self.total.marked -= 1;
        }
    }

    /// What is in the window.
    pub(crate) fn total(&self) -> Tally {
        self.total
    }

    /// Counts nothing any more.
    pub(crate) fn clear(&mut self) {
        self.ring = [Tally::default(); BUCKETS];
        self.total = Tally::default();
    }

    /// When the newest bucket ends, in nanoseconds since the window was made.
    pub(crate) fn newest_ends(&self) -> u64 {
        (self.newest + 1).saturating_mul(self.width)
    }
}

/// A duration in nanoseconds; 584 years stand for all that is longer.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[allow(clippy::cast_possible_truncation)] // less than 64
fn slot(bucket: u64) -> usize {
    (bucket % BUCKETS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tally(all: u64, marked: u64) -> Tally {
        Tally { all, marked }
    }

    #[test]
    fn what_was_counted_leaves_when_it_is_as_old_as_the_window() {
        let start = Instant::now();
        let length = Duration::from_secs(64);
        let mut window = Window::new(length, start);
        window.add(2);
        window.turn(start + Duration::from_millis(1_500));
        window.add_marked();
        window.turn(start + Duration::from_millis(63_999));
        assert_eq!(window.total(), tally(3, 1));
        window.turn(start + length);
        assert_eq!(window.total(), tally(1, 1));
        window.turn(start + Duration::from_secs(65));
        assert_eq!(window.total(), tally(0, 0));
    }

    #[test]
    fn what_comes_late_is_counted_in_the_newest_bucket() {
        let start = Instant::now();
        let mut window = Window::new(Duration::from_secs(64), start);
        window.turn(start + Duration::from_secs(10));
        window.turn(start + Duration::from_secs(3));
        window.add(1);
        window.turn(start + Duration::from_secs(73));
        assert_eq!(window.total(), tally(1, 0));
        window.turn(start + Duration::from_secs(74));
        assert_eq!(window.total(), tally(0, 0));
    }

    #[test]
    fn what_has_left_the_window_is_not_taken_back_from_what_is_in_it() {
        let start = Instant::now();
        let mut window = Window::new(Duration::from_secs(64), start);
        let old = window.add_marked();
        window.turn(start + Duration::from_secs(64));
        let new = window.add_marked();
        window.take_back(old);
        assert_eq!(window.total(), tally(1, 1));
        window.take_back(new);
        assert_eq!(window.total(), tally(0, 0));
    }

    #[test]
    fn a_bucket_forgotten_by_clear_has_nothing_to_take_back() {
        let mut window = Window::new(Duration::from_secs(64), Instant::now());
        let bucket = window.add_marked();
        window.clear();
        window.take_back(bucket);
        assert_eq!(window.total(), tally(0, 0));
    }

    #[test]
    fn the_shortest_and_the_longest_window_work() {
        let start = Instant::now();
        for length in [Duration::from_nanos(1), Duration::MAX] {
            let mut window = Window::new(length, start);
            window.add(1);
            assert_eq!(window.total(), tally(1, 0));
            window.turn(start + Duration::from_secs(3_600));
            assert_eq!(window.total().all, u64::from(length == Duration::MAX));
        }
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_list_of_instants(steps in prop::collection::vec((0u64..40, any::<bool>()), 1..200)) {
            let start = Instant::now();
            let mut window = Window::new(Duration::from_secs(64), start);
            let mut list: Vec<(u64, bool)> = Vec::new();
            let mut second = 0;
            for (wait, marked) in steps {
                second += wait;
                window.turn(start + Duration::from_secs(second));
                if marked { window.add_marked(); } else { window.add(1); }
                list.push((second, marked));
                list.retain(|(at, _)| at + 64 > second);
                let marked = list.iter().filter(|(_, marked)| *marked).count() as u64;
                prop_assert_eq!(window.total(), tally(list.len() as u64, marked));
            }
        }
    }
}
