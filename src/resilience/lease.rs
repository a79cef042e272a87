//! What a call holds of a target, for one who uses its output.

use super::holding::Holding;
use super::{Guards, Verdict};
use std::sync::Arc;
use tokio::time::Instant;

/// What a call holds while it lives: the circuit's admission, the limiter's permit, the mark of a retry in the budget.
///
/// It comes with a success. Settle it when the use of the output ends: at once for a reply, at its end for a stream. Dropping
/// it settles it by how far the attempt came: if nothing was sent everything comes back and nothing is recorded; otherwise
/// the permit's estimate stays, and the circuit records a failure only if there was no answer for as long as
/// [`hang_evidence`](super::CircuitBreaker::hang_evidence).
#[derive(Debug)]
#[must_use = "a lease that is dropped counts as cut off"]
pub struct Lease(Holding<Arc<Guards>>);

impl Lease {
    /// Nothing yet, for the engine to fill in a run that starts at `now`.
    pub(crate) fn new(guards: &Arc<Guards>, now: Instant) -> Self {
        Self(Holding::new(Arc::clone(guards), now))
    }

    /// What the engine fills.
    pub(crate) fn holding(&mut self) -> &mut Holding<Arc<Guards>> {
        &mut self.0
    }

    /// The output was used to its end. `spent`: the tokens that the other side reported, if it did.
    pub fn succeed(self, spent: Option<u32>) {
        self.succeed_by(Instant::now, spent);
    }

    /// [`succeed`](Self::succeed), with another clock.
    pub(crate) fn succeed_by(mut self, now: impl FnOnce() -> Instant, spent: Option<u32>) {
        self.0.succeed(now, spent);
    }

    /// The output turned out to be a failure. `spent`: the tokens that are known to be spent.
    pub fn fail(mut self, verdict: &Verdict, spent: Option<u32>) {
        self.0.end_attempt(spent);
        self.0.record_verdict(verdict, Instant::now());
    }

    /// The output was given up before its end. `spent`: the tokens that it is known or counted to have spent. The circuit
    /// learns nothing of it.
    pub fn abandon(mut self, spent: Option<u32>) {
        self.0.end_attempt(spent);
        self.0.admission = None;
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
