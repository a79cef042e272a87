//! What a call holds while it lives, as one value that gives itself back.

use super::breaker::{Admission, Breaker, FailureEvidence, Outcome};
use super::budget::BudgetMark;
use super::limiter::{Settlement, Taken};
use super::operation::TIMED_OUT;
use super::{Advice, Guards, Health, Progress, Verdict};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What a call holds while it lives: the circuit's admission, the limiter's permit, the mark of a retry in the budget.
///
/// The engine fills it and gives it out with a success. Settle it when the use of the output ends: at once for a reply, at
/// its end for a stream. Dropping it settles it by how far the attempt came: if nothing was sent everything comes back and
/// nothing is recorded; otherwise the permit's estimate stays, and the circuit records a failure only if there was no answer
/// for as long as [`hang_evidence`](super::CircuitBreaker::hang_evidence).
#[derive(Debug)]
#[must_use = "a lease that is dropped counts as cut off"]
pub struct Lease {
    pub(super) guards: Arc<Guards>,
    pub(super) admission: Option<Admission>,
    pub(super) permit: Option<Taken>,
    pub(super) mark: Option<BudgetMark>,
    pub(super) progress: Progress,
    pub(super) attempt_started: Instant,
    /// The longest attempt.
    pub(super) timeout: Option<Duration>,
    pub(super) max_advised: Duration,
}

impl Lease {
    /// The output was used to its end. `spent`: the tokens that the other side reported, if it did.
    pub fn succeed(self, spent: Option<u32>) {
        self.succeed_by(Instant::now, spent);
    }

    /// [`succeed`](Self::succeed), with another clock.
    pub(crate) fn succeed_by(mut self, now: impl FnOnce() -> Instant, spent: Option<u32>) {
        self.end_attempt(spent);
        if let Some(limiter) = &self.guards.limiter {
            limiter.succeeded();
        }
        self.record(Outcome::Success, now);
    }

    /// The output turned out to be a failure. `spent`: the tokens that are known to be spent.
    pub fn fail(mut self, verdict: &Verdict, spent: Option<u32>) {
        self.end_attempt(spent);
        self.record_verdict(verdict, Instant::now());
    }

    /// The output was given up before its end. `spent`: the tokens that it is known or counted to have spent. The circuit
    /// learns nothing of it.
    pub fn abandon(mut self, spent: Option<u32>) {
        self.end_attempt(spent);
        self.admission = None;
    }

    /// Whether the call is a trial of a half-open circuit.
    pub(super) fn is_trial(&self) -> bool {
        self.admission.as_ref().is_some_and(Admission::is_trial)
    }

    /// There is an output.
    pub(super) fn answered(mut self) -> Self {
        self.progress.answered();
        self
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

impl Drop for Lease {
    fn drop(&mut self) {
        if self.permit.is_some() || self.mark.is_some() {
            self.end_attempt(None);
        }
        if self.admission.is_some() {
            self.record_cut(Instant::now());
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
