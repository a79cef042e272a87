//! What an admitted call holds, and what it says at its end.

use super::{SharedBreaker, SharedTicket, circuit::Circuit};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How an admitted call ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The target answered.
    Success,
    /// The target failed, in a way that says something about its health.
    Failure(FailureEvidence),
    /// Neither: cancelled, refused locally, or failed in a way that says nothing about the target.
    Released,
}

/// What a failure tells a breaker.
///
/// ```
/// use std::time::Duration;
/// use steadfast::resilience::FailureEvidence;
/// let overloaded = FailureEvidence::new("overloaded").tag(503).advised(Duration::from_secs(60));
/// assert_eq!((overloaded.label, overloaded.tag), ("overloaded", Some(503)));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FailureEvidence {
    /// Its code, by which failures are counted in the breakdown.
    pub label: &'static str,
    /// A number that refusals give back, such as an HTTP status.
    pub tag: Option<u16>,
    /// The wait the target advised. If this failure opens the circuit, the cooldown is at least that long.
    pub advised: Option<Duration>,
}

impl FailureEvidence {
    /// A failure with a code.
    #[must_use]
    pub const fn new(label: &'static str) -> Self {
        Self { label, tag: None, advised: None }
    }

    /// Adds the number that refusals give back.
    #[must_use]
    pub const fn tag(mut self, tag: u16) -> Self {
        self.tag = Some(tag);
        self
    }

    /// Adds the wait the target advised.
    #[must_use]
    pub const fn advised(mut self, wait: Duration) -> Self {
        self.advised = Some(wait);
        self
    }
}

/// Leave to make one call. Give it back with [`Breaker::record`](super::Breaker::record); dropped, it counts as [`Outcome::Released`].
///
/// A trial holds a slot until then. Otherwise it is a number, and costs nothing.
#[must_use = "an admission that is dropped says nothing about the target"]
#[derive(Debug)]
pub struct Admission(pub(super) Held);

impl Admission {
    /// Whether this call decides if the circuit closes. A trial makes one attempt and does not queue.
    pub fn is_trial(&self) -> bool {
        match &self.0 {
            Held::Free(_) => false,
            Held::Local(guard) => guard.ticket.trial,
            Held::Shared(guard) => guard.ticket.trial,
        }
    }
}

#[derive(Debug)]
pub(super) enum Held {
    /// By the closed, only circuit of a breaker, in this generation.
    Free(u64),
    /// For a trial, or by the circuit of one model.
    Local(LocalGuard),
    Shared(Box<SharedGuard>),
}

/// In which generation of a circuit a call was admitted, and whether as a trial.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Ticket {
    pub(super) generation: u64,
    pub(super) trial: bool,
}

#[derive(Debug)]
pub(super) struct LocalGuard {
    circuit: Arc<Circuit>,
    pub(super) ticket: Ticket,
    settled: bool,
}

impl LocalGuard {
    pub(super) fn admission(circuit: Arc<Circuit>, ticket: Ticket) -> Admission {
        Admission(Held::Local(Self { circuit, ticket, settled: false }))
    }

    #[inline(never)]
    pub(super) fn settle(mut self, outcome: Outcome, now: impl FnOnce() -> Instant) {
        self.settled = true;
        self.circuit.settle(self.ticket, outcome, now);
    }
}

impl Drop for LocalGuard {
    fn drop(&mut self) {
        if self.ticket.trial && !self.settled {
            self.circuit.give_back(self.ticket);
        }
    }
}

#[derive(Debug)]
pub(super) struct SharedGuard {
    breaker: Arc<dyn SharedBreaker>,
    key: Box<str>,
    ticket: SharedTicket,
    settled: bool,
}

impl SharedGuard {
    pub(super) fn admission(breaker: Arc<dyn SharedBreaker>, key: &str, ticket: SharedTicket) -> Admission {
        Admission(Held::Shared(Box::new(Self { breaker, key: key.into(), ticket, settled: false })))
    }

    #[inline(never)]
    pub(super) fn settle(mut self, outcome: Outcome) {
        self.settled = true;
        self.breaker.settle(&self.key, self.ticket, outcome);
    }
}

impl Drop for SharedGuard {
    fn drop(&mut self) {
        if !self.settled {
            self.breaker.settle(&self.key, self.ticket, Outcome::Released);
        }
    }
}
