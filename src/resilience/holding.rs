//! What a call holds while it lives.

use super::breaker::{Admission, Breaker, FailureEvidence, Outcome};
use super::budget::BudgetMark;
use super::limiter::{Settlement, Taken};
use super::operation::TIMED_OUT;
use super::{Advice, Guards, Health, Progress, Verdict};
use std::ops::Deref;
use std::time::Duration;
use tokio::time::Instant;

/// What a call holds while it lives: the circuit's admission, the limiter's permit, the mark of a retry in the budget. `G`:
/// how it has the target's guards.
///
/// The engine fills it where it is: it is large, and would be moved with each future and answer on its way. Dropping it gives
/// back what it still holds, as a [`Lease`](super::Lease) does.
#[derive(Debug)]
pub(crate) struct Holding<G: Deref<Target = Guards>> {
    pub(super) guards: G,
    pub(super) admission: Option<Admission>,
    pub(super) permit: Option<Taken>,
    pub(super) mark: Option<BudgetMark>,
    pub(super) progress: Progress,
    /// When the attempt that runs began; before the first, when the run did.
    pub(super) attempt_started: Instant,
    /// The longest attempt.
    pub(super) timeout: Option<Duration>,
    pub(super) max_advised: Duration,
}

impl<G: Deref<Target = Guards>> Holding<G> {
    /// Nothing yet, for a run that starts at `now`.
    #[inline]
    pub(crate) fn new(guards: G, now: Instant) -> Self {
        Self {
            guards,
            admission: None,
            permit: None,
            mark: None,
            progress: Progress::default(),
            attempt_started: now,
            timeout: None,
            max_advised: Duration::MAX,
        }
    }

    /// The output was used to its end. `spent`: the tokens that the other side reported, if it did.
    #[inline]
    pub(super) fn succeed(&mut self, now: impl FnOnce() -> Instant, spent: Option<u32>) {
        self.end_attempt(spent);
        if let Some(limiter) = &self.guards.limiter {
            limiter.succeeded();
        }
        self.record(Outcome::Success, now);
    }

    /// Whether the call is a trial of a half-open circuit.
    pub(super) fn is_trial(&self) -> bool {
        self.admission.as_ref().is_some_and(Admission::is_trial)
    }

    /// The marked retry was made.
    pub(super) fn keep_mark(&mut self) {
        if let Some(mark) = self.mark.take() {
            mark.sent();
        }
    }

    /// Gives back what the attempt held.
    pub(super) fn end_attempt(&mut self, spent: Option<u32>) {
        let may_have_arrived = self.progress.is_sent();
        if let (Some(taken), Some(limiter)) = (self.permit.take(), &self.guards.limiter) {
            let settlement = if may_have_arrived { Settlement::of(spent) } else { Settlement::Unsent };
            limiter.give_back(taken, settlement);
        }
        if may_have_arrived {
            self.keep_mark();
        } else {
            self.mark = None;
        }
    }

    /// Records the failure that ended the call.
    pub(super) fn record_verdict(&mut self, verdict: &Verdict, now: Instant) {
        let outcome = match verdict.health {
            Health::Neutral => Outcome::Released,
            Health::Bad => {
                let mut evidence = FailureEvidence::new(verdict.label);
                evidence.tag = verdict.tag;
                if let Advice::After(wait) = verdict.retry {
                    evidence.advised = Some(wait.min(self.max_advised));
                }
                Outcome::Failure(evidence)
            }
        };
        self.record(outcome, || now);
    }

    /// Records an attempt that was cut off: evidence only if there was no answer for long enough.
    pub(super) fn record_cut(&mut self, now: Instant) {
        let silent = now.saturating_duration_since(self.attempt_started);
        let hung = self.progress.is_sent() && !self.progress.has_head() && silent >= self.hang_evidence();
        self.record(if hung { Outcome::Failure(FailureEvidence::new(TIMED_OUT)) } else { Outcome::Released }, || now);
    }

    /// How long without an answer makes an attempt that was cut off a failure.
    fn hang_evidence(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(10);
        let set = self.guards.breaker.as_ref().and_then(Breaker::hang_evidence);
        set.unwrap_or_else(|| self.timeout.map_or(LONGEST, |timeout| LONGEST.min(timeout / 2)))
    }

    fn record(&mut self, outcome: Outcome, now: impl FnOnce() -> Instant) {
        if let (Some(admission), Some(breaker)) = (self.admission.take(), &self.guards.breaker) {
            breaker.record_by(admission, outcome, now);
        }
    }
}

impl<G: Deref<Target = Guards>> Drop for Holding<G> {
    fn drop(&mut self) {
        if self.permit.is_some() || self.mark.is_some() {
            self.end_attempt(None);
        }
        if self.admission.is_some() {
            self.record_cut(Instant::now());
        }
    }
}
