//! First come, first served, with a way out from anywhere in the line.
//!
//! A doubly linked list in a slab: joining, leaving and looking at the first cost the same however long the queue is.
//! Free slots are a second list through the same slab, reused oldest first: the slab's end empties and is cut off, so a
//! burst of waiters does not keep its memory.

use std::{mem, task::Waker};

/// The end of a list.
const NONE: usize = usize::MAX;

/// Slots that are kept, however empty.
const KEPT: usize = 64;

/// A waiter's own slot. Not `Clone`: whoever holds it is in the queue.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Place(usize);

#[derive(Debug)]
pub(super) struct Queue {
    slots: Vec<Slot>,
    waiting: List,
    free: List,
    len: usize,
    tokens: u64,
}

#[derive(Debug)]
struct Slot {
    prev: usize,
    next: usize,
    /// `None`: free.
    waiter: Option<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    tokens: u32,
    /// Taken when woken; the next poll brings another.
    waker: Option<Waker>,
}

#[derive(Debug)]
struct List {
    first: usize,
    last: usize,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), waiting: List::EMPTY, free: List::EMPTY, len: 0, tokens: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The tokens that all who wait have asked for.
    pub(super) const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Whether it is this one's turn. Who has no place yet is first when nobody waits.
    pub(super) fn is_first(&self, place: Option<&Place>) -> bool {
        self.waiting.first == place.map_or(NONE, |place| place.0)
    }

    /// Joins at the end.
    pub(super) fn join(&mut self, tokens: u32, waker: Waker) -> Place {
        let waiter = Some(Waiting { tokens, waker: Some(waker) });
        let at = if self.free.first == NONE {
            self.slots.push(Slot { prev: NONE, next: NONE, waiter });
            self.slots.len() - 1
        } else {
            let at = self.free.first;
            self.free.unlink(&mut self.slots, at);
            self.slots[at].waiter = waiter;
            at
        };
        self.waiting.push(&mut self.slots, at);
        self.len += 1;
        self.tokens += u64::from(tokens);
        Place(at)
    }

    /// Leaves. The waker comes back so that it is dropped outside the lock.
    pub(super) fn leave(&mut self, Place(at): Place) -> Option<Waker> {
        self.waiting.unlink(&mut self.slots, at);
        self.free.push(&mut self.slots, at);
        let waiter = self.slots[at].waiter.take()?;
        self.len -= 1;
        self.tokens -= u64::from(waiter.tokens);
        self.cut_off_the_end();
        waiter.waker
    }

    /// Notes whom to wake. The old waker comes back so that it is dropped outside the lock.
    pub(super) fn set_waker(&mut self, place: &Place, waker: Waker) -> Option<Waker> {
        self.slots[place.0].waiter.as_mut()?.waker.replace(waker)
    }

    /// The first one's waker, to wake outside the lock. `None` as well when it has been woken and has not asked since.
    pub(super) fn call_first(&mut self) -> Option<Waker> {
        self.slots.get_mut(self.waiting.first)?.waiter.as_mut()?.waker.take()
    }

    fn cut_off_the_end(&mut self) {
        while self.slots.last().is_some_and(|slot| slot.waiter.is_none()) {
            let at = self.slots.len() - 1;
            self.free.unlink(&mut self.slots, at);
            self.slots.pop();
        }
        let spare = self.slots.capacity() / 4;
        if spare > KEPT && self.slots.len() < spare {
            self.slots.shrink_to(spare * 2);
        }
    }
}

impl List {
    const EMPTY: Self = Self { first: NONE, last: NONE };

    fn push(&mut self, slots: &mut [Slot], at: usize) {
        let before = mem::replace(&mut self.last, at);
        slots[at].prev = before;
        slots[at].next = NONE;
        match slots.get_mut(before) {
            Some(before) => before.next = at,
            None => self.first = at,
        }
    }

    fn unlink(&mut self, slots: &mut [Slot], at: usize) {
        let Slot { prev, next, .. } = slots[at];
        match slots.get_mut(prev) {
            Some(before) => before.next = next,
            None => self.first = next,
        }
        match slots.get_mut(next) {
            Some(behind) => behind.prev = prev,
            None => self.last = prev,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn join(queue: &mut Queue, tokens: u32) -> Place {
        queue.join(tokens, Waker::noop().clone())
    }

    #[test]
    fn gives_memory_back_after_a_burst() {
        let mut queue = Queue::new();
        let mut places: VecDeque<_> = (0..10_000).map(|_| join(&mut queue, 1)).collect();
        // The crowd is served, while a few always wait.
        for _ in 0..9_990 {
            let first = places.pop_front().map(|place| queue.leave(place));
            assert!(first.is_some());
        }
        for _ in 0..20 {
            places.push_back(join(&mut queue, 1));
            places.pop_front().and_then(|place| queue.leave(place));
        }
        assert_eq!(queue.len(), 10);
        assert!(queue.slots.capacity() <= 8 * KEPT, "{} slots for 10", queue.slots.capacity());
    }

    #[test]
    fn the_first_is_called_once_until_it_asks_again() {
        let mut queue = Queue::new();
        let first = join(&mut queue, 1);
        assert!(queue.call_first().is_some());
        assert!(queue.call_first().is_none());
        assert!(queue.set_waker(&first, Waker::noop().clone()).is_none());
        assert!(queue.call_first().is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn behaves_like_a_line_of_people(steps in proptest::collection::vec((any::<bool>(), any::<usize>()), 0..400)) {
            let mut queue = Queue::new();
            let mut line: VecDeque<(Place, u32)> = VecDeque::new();
            for (joins, n) in steps {
                if joins || line.is_empty() {
                    let tokens = u32::try_from(n % 1_000).unwrap_or(0);
                    line.push_back((join(&mut queue, tokens), tokens));
                } else if let Some((place, _)) = line.remove(n % line.len()) {
                    prop_assert!(queue.leave(place).is_some());
                }
                prop_assert_eq!((queue.len(), queue.is_empty()), (line.len(), line.is_empty()));
                prop_assert_eq!(queue.tokens(), line.iter().map(|(_, tokens)| u64::from(*tokens)).sum::<u64>());
                for (i, (place, _)) in line.iter().enumerate() {
                    prop_assert_eq!(queue.is_first(Some(place)), i == 0);
                }
                prop_assert_eq!(queue.is_first(None), line.is_empty());
                prop_assert!(!line.is_empty() || queue.slots.is_empty());
            }
        }
    }
}
