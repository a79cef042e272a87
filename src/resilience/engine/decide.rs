//! What follows from a failed attempt: what it gives back, and whether another is made.

use super::Engine;
use crate::resilience::clock::later;
use crate::resilience::holding::Holding;
use crate::resilience::{Advice, Decision, End, Guards, Interrupt, Operation, Signal, Stop, Verdict, backoff};
use std::ops::Deref;
use std::time::Duration;
use tokio::time::Instant;

impl Engine<'_> {
    /// Whether the attempt was cut off for want of time or interest rather than by its own timeout: that says something
    /// about the target only where it was silent for long.
    pub(super) fn was_cut_short(&self, by: Option<Interrupt>, cut: Option<(Instant, Interrupt)>) -> bool {
        match by {
            None => false,
            Some(Interrupt::Cancelled | Interrupt::Deadline) => true,
            Some(Interrupt::Timeout(_)) => {
                matches!(self.run.end, Some(End::Reserve(at)) if cut.is_some_and(|cut| cut.0 == at))
            }
        }
    }

    /// Gives back what a failed attempt held, before any wait, and lets the limiter learn from it.
    pub(super) fn settle_failed<O: Operation, G: Deref<Target = Guards>>(
        &self,
        holding: &mut Holding<G>,
        op: &mut O,
        error: &O::Error,
        verdict: &Verdict,
        end: Instant,
    ) {
        holding.end_attempt(op.spent(error));
        let Some(limiter) = &holding.guards.limiter else { return };
        if verdict.throttled {
            limiter.throttled_at(end);
        }
        if limiter.follows() {
            if let Some(hint) = op.limits(error) {
                limiter.follow_at(&hint, end);
            }
            if let (true, Advice::After(wait)) = (verdict.throttled, verdict.retry)
                && wait <= self.retry.max_retry_after
            {
                limiter.hold_until(later(end, wait));
            }
        }
    }

    /// Tells what was decided.
    pub(super) fn tell<O: Operation>(&self, op: &O, index: u32, error: &O::Error, next: Decision) {
        match next {
            Decision::Retry { after: delay, advised } => {
                let (retry, max_retries) = (index.saturating_add(1), self.retry.max_retries);
                op.observe(Signal::RetryScheduled { retry, max_retries, delay, advised, error });
            }
            Decision::Stop(Stop::Budget) => op.observe(Signal::BudgetExhausted { error }),
            Decision::Stop(_) => {}
        }
    }

    /// Whether to try again, and after which wait.
    pub(super) fn decide(
        &self,
        verdict: &Verdict,
        by: Option<Interrupt>,
        index: u32,
        trial: bool,
        sent: bool,
        now: Instant,
    ) -> Result<(Duration, bool), Stop> {
        let retry = self.retry;
        if self.run.cancel.is_cancelled() || by == Some(Interrupt::Cancelled) {
            return Err(Stop::Cancelled);
        }
        if by == Some(Interrupt::Deadline) {
            return Err(Stop::Deadline);
        }
        if verdict.retry == Advice::Never || (sent && !retry.idempotent) {
            return Err(Stop::NotRetryable);
        }
        if trial || index >= retry.max_retries {
            return Err(Stop::UsedUp);
        }
        let (wait, advised) = match verdict.retry {
            Advice::After(wait) if retry.respect_retry_after => {
                if wait > retry.max_retry_after {
                    return Err(Stop::WaitTooLong);
                }
                // In seconds, and checked as a number: neither the longest wait nor a share that is none may panic.
                let most = wait.as_secs_f64() * retry.advised_jitter;
                let more = if most > 0.0 {
                    Duration::from_secs_f64(most.min(1.0) * self.random.unit())
                } else {
                    Duration::ZERO
                };
                (wait.saturating_add(more), !wait.is_zero())
            }
            _ => (backoff(index, retry, self.random), false),
        };
        match self.run.end {
            Some(end) if later(now, wait.saturating_add(retry.min_attempt_time)) > end.at() => Err(Stop::Deadline),
            _ => Ok((wait, advised)),
        }
    }
}
