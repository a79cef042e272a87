//! The limiter of one process: the core under a lock that is held for one decision, and atomics for giving back.
//!
//! **No wake-up is lost.** The slots given back and the mark *somebody waits* are one atomic word. A waiter sets the mark
//! before it looks for room; who gives back counts its slot in the same word and reads the mark with it. Whichever of the
//! two comes first, the other sees it: either the waiter finds the room, or the giver finds the mark, waits for the lock
//! behind the waiter, and wakes the head of the queue. What else is given back is written before the slot is.

use super::{
    Bucket, LimitReason, LimitRefusal, RateLimit, RateLimitState, Settlement,
    core::{Core, Moment, Obstacle, Totals},
    queue::Place,
};
use crate::resilience::{
    LimitHint,
    sync::{
        Mutex, MutexGuard, OwnLines,
        atomic::{
            AtomicBool, AtomicI64, AtomicU32, AtomicU64,
            Ordering::{AcqRel, Acquire, Relaxed},
        },
    },
};
use std::{
    fmt,
    sync::{OnceLock, PoisonError},
    task::Waker,
    time::Duration,
};
use tokio::time::Instant;

/// The mark *somebody waits*, below the count of slots given back.
const WAITING: u64 = 1;
const SLOT: u64 = 2;

/// In this order, so that the core's lines part what each attempt writes from what it only reads.
#[repr(C)]
pub(super) struct Local {
    /// Slots ever given back, and the mark [`WAITING`]. This and the next three are totals that wrap: giving back is an
    /// addition, and whoever takes next collects the difference to what the core has seen by a load.
    gate: AtomicU64,
    tokens_back: AtomicI64,
    requests_back: AtomicU32,
    successes: AtomicU32,
    /// Whether a success means anything.
    can_rise: AtomicBool,
    core: OwnLines<Mutex<Core>>,
    /// The first instant that it was asked at.
    start: OnceLock<Instant>,
    /// The most that one request may need; `u64::MAX` where tokens are not limited.
    most_tokens: u64,
    /// Whether what is left of an estimate goes anywhere.
    counts_tokens: bool,
    settings: RateLimit,
}

/// A request on its way through the queue.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) tokens: u32,
    /// What it waits for, or has waited for.
    pub(super) bucket: Bucket,
    /// When it has waited long enough.
    give_up_at: Option<Instant>,
    /// Whether it may join the queue at all.
    may_wait: bool,
    place: Option<Place>,
}

impl Local {
    pub(super) fn new(settings: &RateLimit) -> Self {
        let core = Core::new(settings);
        Self {
            gate: AtomicU64::new(0),
            tokens_back: AtomicI64::new(0),
            requests_back: AtomicU32::new(0),
            successes: AtomicU32::new(0),
            can_rise: AtomicBool::new(core.can_rise()),
            core: OwnLines(Mutex::new(core)),
            start: OnceLock::new(),
            most_tokens: settings.most_tokens().unwrap_or(u64::MAX),
            counts_tokens: settings.tokens_per_minute.is_some() || settings.follow_provider,
            settings: settings.clone(),
        }
    }

    pub(super) fn settings(&self) -> &RateLimit {
        &self.settings
    }

    /// Takes at once, if nobody waits and there is room. `None`: it would have to wait.
    pub(super) fn try_now(&self, tokens: u32, now: Instant) -> Option<Result<(), LimitRefusal>> {
        if let Err(refusal) = self.fits_at_all(tokens) {
            return Some(Err(refusal));
        }
        let now = self.moment(now);
        self.take(&mut self.lock(), None, tokens, now).ok().map(Ok)
    }

    pub(super) fn waiter(&self, tokens: u32, may_wait: bool, now: Instant) -> Waiter {
        let give_up_at = self.settings.max_queue_time.and_then(|time| now.checked_add(time));
        Waiter { tokens, bucket: Bucket::Requests, give_up_at, may_wait, place: None }
    }

    /// Takes if it is this waiter's turn, and lets it join the queue otherwise. `Err`: ask again when woken, and at this
    /// instant at the latest.
    pub(super) fn poll(
        &self,
        waiter: &mut Waiter,
        waker: &Waker,
        now: Instant,
    ) -> Result<Result<(), LimitRefusal>, Option<Instant>> {
        if let Err(refusal) = self.fits_at_all(waiter.tokens) {
            return Ok(Err(refusal));
        }
        // Cloned before and dropped after the lock is held, like every waker: that may run anybody's code.
        let (waker, moment) = (waker.clone(), self.moment(now));
        let mut core = self.lock();
        self.gate.fetch_or(WAITING, AcqRel);
        let answer = match self.take(&mut core, waiter.place.as_ref(), waiter.tokens, moment) {
            Ok(()) => Ok(Ok(())),
            Err(obstacle) => {
                waiter.bucket = obstacle.bucket;
                match self.why_not_wait(waiter, core.queue.len(), now) {
                    Some(reason) => Ok(Err(self.refusal(reason, obstacle.bucket))),
                    None => Err(earlier(obstacle.until, waiter.give_up_at)),
                }
            }
        };
        let wakers = match (&answer, &waiter.place) {
            (Ok(_), _) => self.depart(&mut core, waiter),
            (Err(_), Some(place)) => Wakers { next: None, unused: core.queue.set_waker(place, waker) },
            (Err(_), None) => {
                waiter.place = Some(core.queue.join(waiter.tokens, waker));
                Wakers { next: None, unused: None }
            }
        };
        drop(core);
        wakers.wake();
        answer
    }

    /// Gives up a waiter's place, if it has one.
    pub(super) fn leave(&self, waiter: &mut Waiter) {
        if waiter.place.is_some() {
            let wakers = self.depart(&mut self.lock(), waiter);
            wakers.wake();
        }
    }

    /// Ends an attempt: the slot comes back, and what `settlement` says.
    pub(super) fn settle(&self, tokens: u32, settlement: Settlement) {
        let tokens = i64::from(tokens);
        let unspent = match settlement {
            Settlement::Spent(spent) => tokens - i64::from(spent),
            Settlement::Estimate => 0,
            Settlement::Unsent => {
                self.requests_back.fetch_add(1, Relaxed);
                tokens
            }
        };
        if unspent != 0 && self.counts_tokens {
            self.tokens_back.fetch_add(unspent, Relaxed);
        }
        if self.gate.fetch_add(SLOT, AcqRel) & WAITING != 0 {
            self.wake_first();
        }
    }

    pub(super) fn succeeded(&self) {
        if self.can_rise.load(Relaxed) {
            self.successes.fetch_add(1, Relaxed);
            // Not a load: that could miss the mark of a waiter that has missed this success.
            if self.gate.fetch_or(0, AcqRel) & WAITING != 0 {
                self.wake_first();
            }
        }
    }

    pub(super) fn throttled(&self, now: Instant) {
        if self.settings.aimd.is_some() {
            self.with(now, Core::throttled);
        }
    }

    pub(super) fn follows(&self) -> bool {
        self.settings.follow_provider || self.settings.aimd.is_some_and(|aimd| aimd.wants_hints())
    }

    pub(super) fn follow(&self, hint: &LimitHint, now: Instant) {
        if self.follows() {
            self.with(now, |core, now| core.follow(hint, now));
        }
    }

    pub(super) fn hold_until(&self, until: Instant) {
        if self.settings.follow_provider {
            self.lock().hold_until(until);
        }
    }

    pub(super) fn predicted_wait(&self, tokens: u32, now: Instant) -> Duration {
        match self.fits_at_all(tokens) {
            Ok(()) => self.with(now, |core, now| core.predicted_wait(tokens, now)),
            Err(_) => Duration::MAX,
        }
    }

    /// The refusal of a request for which this limiter's queue is too long.
    pub(super) fn too_long(&self, tokens: u32, now: Instant) -> LimitRefusal {
        let obstacle = self.with(now, |core, now| core.predicted_obstacle(tokens, now));
        self.refusal(LimitReason::QueueTimeout, obstacle.map_or(Bucket::Requests, |obstacle| obstacle.bucket))
    }

    pub(super) fn state(&self, now: Instant) -> RateLimitState {
        self.with(now, |core, now| core.state(now))
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn moment(&self, now: Instant) -> Moment {
        Moment::new(now, *self.start.get_or_init(|| now))
    }

    /// Asks or tells the core something, as of `now`.
    fn with<R>(&self, now: Instant, f: impl FnOnce(&mut Core, Instant) -> R) -> R {
        let now = self.moment(now);
        let mut core = self.lock();
        let now = self.refresh(&mut core, now);
        let result = f(&mut core, now);
        self.can_rise.store(core.can_rise(), Relaxed);
        result
    }

    /// All buckets and the slot in one step, or nothing.
    #[inline]
    fn take(&self, core: &mut Core, place: Option<&Place>, tokens: u32, now: Moment) -> Result<(), Obstacle> {
        let now = self.refresh(core, now);
        core.admit(place, tokens, now)
    }

    #[inline]
    fn refresh(&self, core: &mut Core, now: Moment) -> Instant {
        // The slots first: what came back with one is then seen too.
        let totals = Totals {
            slots: self.gate.load(Acquire) / SLOT,
            tokens: self.tokens_back.load(Relaxed),
            requests: self.requests_back.load(Relaxed),
            successes: self.successes.load(Relaxed),
        };
        let (now, moved) = core.refresh(totals, now);
        if moved {
            self.can_rise.store(core.can_rise(), Relaxed);
        }
        now
    }

    /// Takes the waiter out of the queue, if it is in it, and says whom to wake.
    fn depart(&self, core: &mut Core, waiter: &mut Waiter) -> Wakers {
        let was_first = core.queue.is_first(waiter.place.as_ref());
        let unused = waiter.place.take().and_then(|place| core.queue.leave(place));
        if core.queue.is_empty() {
            self.gate.fetch_and(!WAITING, AcqRel);
        }
        Wakers { next: if was_first { core.queue.call_first() } else { None }, unused }
    }

    fn wake_first(&self) {
        let first = self.lock().queue.call_first();
        if let Some(waker) = first {
            waker.wake();
        }
    }

    fn why_not_wait(&self, waiter: &Waiter, queued: usize, now: Instant) -> Option<LimitReason> {
        let full = || self.settings.max_queue_len.is_some_and(|most| queued >= most);
        if !waiter.may_wait || waiter.place.is_none() && full() {
            Some(LimitReason::QueueFull)
        } else if waiter.give_up_at.is_some_and(|at| now >= at) {
            Some(LimitReason::QueueTimeout)
        } else {
            None
        }
    }

    fn fits_at_all(&self, tokens: u32) -> Result<(), LimitRefusal> {
        if u64::from(tokens) <= self.most_tokens {
            return Ok(());
        }
        Err(self.refusal(LimitReason::Capacity, Bucket::Tokens))
    }

    fn refusal(&self, reason: LimitReason, bucket: Bucket) -> LimitRefusal {
        let limit = match bucket {
            Bucket::Requests => self.settings.requests_per_minute.map_or(0, u64::from),
            Bucket::Tokens => self.settings.most_tokens().unwrap_or(0),
            Bucket::Concurrency => self.settings.max_concurrent.map_or(0, u64::from),
        };
        LimitRefusal::new(reason, bucket, limit)
    }
}

/// What is left to do once the lock is free.
#[must_use]
struct Wakers {
    next: Option<Waker>,
    /// To be dropped.
    unused: Option<Waker>,
}

impl Wakers {
    fn wake(self) {
        drop(self.unused);
        if let Some(waker) = self.next {
            waker.wake();
        }
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.into_iter().chain(b).min()
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
