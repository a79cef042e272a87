//! One circuit: its core behind a lock, and one word of it that can be read without.

use super::{
    CircuitChange, CircuitRefusal, CircuitState, Hand, Outcome,
    admission::Ticket,
    changes::Changes,
    core::{Core, Word},
    settings::Rules,
    successes::Successes,
};
use crate::resilience::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
    lock,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tokio::time::Instant;

/// The word is stored under the lock after each step of the core, so it is at most one step behind: a call that reads it
/// just before a step has happened before that step.
pub(super) struct Circuit {
    word: AtomicU64,
    /// With a rolling window.
    successes: Option<Successes>,
    core: Mutex<Core>,
    key: Option<Arc<str>>,
    changes: Arc<Changes>,
}

impl Circuit {
    pub(super) fn new(rules: Arc<Rules>, changes: Arc<Changes>, key: Option<Arc<str>>, now: Instant) -> Self {
        let core = Core::new(rules, key.clone(), now);
        let successes = core.newest_ends().map(|ends| Successes::new(now, ends));
        Self { word: AtomicU64::new(core.word().0), successes, core: Mutex::new(core), key, changes }
    }

    /// Admission by a circuit that admits all, in this generation: no lock, no clock.
    #[inline]
    pub(super) fn admit_freely(&self) -> Option<u64> {
        let word = self.word();
        word.admits_all().then(|| word.generation())
    }

    pub(super) fn admit(&self, now: Instant) -> Result<Ticket, CircuitRefusal> {
        match self.admit_freely() {
            Some(generation) => Ok(Ticket { generation, trial: false }),
            None => self.step(|core| core.admit(now)),
        }
    }

    /// The refusal of a circuit that is open and stays so.
    #[inline]
    pub(super) fn shut(&self, now: impl FnOnce() -> Instant) -> Option<CircuitRefusal> {
        if self.word().admits_all() { None } else { lock(&self.core).shut(now()) }
    }

    /// The clock is read only where the time matters: most successes change nothing.
    #[inline]
    pub(super) fn settle(&self, ticket: Ticket, outcome: Outcome, now: impl FnOnce() -> Instant) {
        let word = self.word();
        let is_stale = ticket.generation != word.generation();
        let says_nothing = match outcome {
            Outcome::Success => word.ignores_success(),
            Outcome::Failure(_) => false,
            Outcome::Released => !ticket.trial,
        };
        if is_stale || says_nothing {
            return;
        }
        let now = now();
        let is_counted = matches!(outcome, Outcome::Success) && !ticket.trial && self.count_success(ticket, now);
        if !is_counted {
            self.step(|core| core.settle(ticket, outcome, now));
        }
    }

    /// A call ends without an outcome: only its slot comes back, which takes no clock.
    pub(super) fn give_back(&self, ticket: Ticket) {
        self.step(|core| core.give_back(ticket));
    }

    pub(super) fn by_hand(&self, hand: Hand, now: Instant) {
        self.step(|core| core.by_hand(hand, now));
    }

    pub(super) fn state(&self) -> CircuitState {
        lock(&self.core).state()
    }

    pub(super) fn breakdown(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.core).breakdown().clone()
    }

    /// Whether it is as good as new, so that it need not be kept.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        self.step(|core| core.is_idle(now))
    }

    pub(super) fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    #[inline]
    fn word(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    #[inline]
    fn count_success(&self, ticket: Ticket, now: Instant) -> bool {
        self.successes.as_ref().is_some_and(|successes| successes.count(ticket.generation, now))
    }

    /// One step of the core, and the event of its transition, if it made one.
    #[cold]
    fn step<R>(&self, step: impl FnOnce(&mut Core) -> R) -> R {
        let (answer, changed) = self.quiet_step(step);
        if changed {
            self.changes.tell();
        }
        answer
    }

    /// One step of the core. Whether it made a transition, which is queued but not told.
    fn quiet_step<R>(&self, step: impl FnOnce(&mut Core) -> R) -> (R, bool) {
        let mut core = lock(&self.core);
        if let Some(successes) = &self.successes {
            let ahead = successes.take(core.word().generation());
            core.absorb(ahead);
        }
        let answer = step(&mut core);
        self.word.store(core.word().0, Ordering::Release);
        if let (Some(successes), Some(ends)) = (&self.successes, core.newest_ends()) {
            successes.go_on(core.word().generation(), ends);
        }
        let change = core.take_change();
        let changed = change.is_some();
        if let Some(change) = change {
            self.changes.push(CircuitChange { key: self.key.clone(), ..change });
        }
        (answer, changed)
    }

    /// [`by_hand`](Self::by_hand), for one who holds a lock and tells later.
    pub(super) fn by_hand_quietly(&self, hand: Hand, now: Instant) {
        self.quiet_step(|core| core.by_hand(hand, now));
    }
}

impl fmt::Debug for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Circuit").field("key", &self.key).field("state", &self.state()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
