//! A circuit breaker that a fleet shares.

use super::{ChangeSink, ChangeSubscription, CircuitRefusal, CircuitState, Outcome};
use futures_core::future::BoxFuture;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

/// The circuits of a breaker kept outside this process. Run it with [`Breaker::shared`](super::Breaker::shared).
///
/// Only asking to be admitted may wait. The rest is called from hot paths and from `Drop`: it must return at once, and queue
/// what has to travel. `key` is the model of a call; a breaker without isolation ignores it. Where it is an `Option`,
/// `None` means all circuits.
pub trait SharedBreaker: Debug + Send + Sync {
    /// Asks to make a call. A caller may drop the future at any await; a slot that was already taken must then come back.
    fn admit<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<SharedTicket, CircuitRefusal>>;

    /// The admitted call has ended. Called once for each ticket.
    fn settle(&self, key: &str, ticket: SharedTicket, outcome: Outcome);

    /// The state as this process last knew it.
    fn state(&self, key: Option<&str>) -> CircuitState;

    /// Failures by label since last closed, as this process last knew them.
    fn failure_breakdown(&self, key: Option<&str>) -> BTreeMap<&'static str, u64>;

    /// Opens for one cooldown.
    fn open(&self, key: Option<&str>);

    /// Opens until closed.
    fn hold_open(&self, key: Option<&str>);

    /// Closes.
    fn close(&self, key: Option<&str>);

    /// Calls `sink` for each transition that this process sees.
    fn observe(&self, sink: ChangeSink) -> ChangeSubscription;

    /// As [`CircuitBreaker::recheck`](super::CircuitBreaker::recheck). Read once.
    fn recheck(&self) -> bool {
        false
    }

    /// As [`CircuitBreaker::hang_evidence`](super::CircuitBreaker::hang_evidence). Read once.
    fn hang_evidence(&self) -> Option<Duration> {
        None
    }
}

/// A shared breaker's note of one admitted call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SharedTicket {
    /// Whatever the breaker finds it again by: a generation, or a slot.
    pub id: u64,
    /// Whether the call is a trial.
    pub trial: bool,
}
