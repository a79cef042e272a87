//! State and control of one target.

use super::target::ReadyTarget;
use crate::resilience::{Breaker, CircuitState, Limiter, RateLimitState, RetryBudgetState};
use std::collections::BTreeMap;

/// One target of a client: its state, and its circuit by hand. Cheap to copy; borrows the client.
#[derive(Clone, Copy, Debug)]
pub struct TargetHandle<'a>(&'a ReadyTarget);

impl<'a> TargetHandle<'a> {
    pub(super) fn new(target: &'a ReadyTarget) -> Self {
        Self(target)
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.0.name
    }

    /// Its adapter's name.
    pub fn provider(&self) -> &'a str {
        &self.0.provider_name
    }

    /// Its model.
    pub fn model(&self) -> &'a str {
        &self.0.model
    }

    /// What its retry budget counts; none where it has no budget.
    pub fn retry_budget(&self) -> Option<RetryBudgetState> {
        self.0.guards.budget.as_ref().map(crate::resilience::Budget::state)
    }

    /// How its rate limiter stands; none where it has none.
    pub fn rate_limit(&self) -> Option<RateLimitState> {
        self.0.guards.limiter.as_ref().map(Limiter::state)
    }

    /// How its circuit stands; none where it has no breaker. With
    /// [`isolate_by_model`](crate::resilience::CircuitBreaker::isolate_by_model): the least healthy of its circuits.
    pub fn circuit(&self) -> Option<CircuitState> {
        self.breaker().map(Breaker::state)
    }

    /// How the circuit of one model stands.
    pub fn circuit_for(&self, model: &str) -> Option<CircuitState> {
        self.breaker().map(|breaker| breaker.state_for(model))
    }

    /// How many failures there were by code since the circuit last closed; empty where it has no breaker.
    pub fn failure_breakdown(&self) -> BTreeMap<&'static str, u64> {
        self.breaker().map(Breaker::failure_breakdown).unwrap_or_default()
    }

    /// The same for the circuit of one model.
    pub fn failure_breakdown_for(&self, model: &str) -> BTreeMap<&'static str, u64> {
        self.breaker().map(|breaker| breaker.failure_breakdown_for(model)).unwrap_or_default()
    }

    /// Opens the circuit for one cooldown. Whether there is one.
    pub fn open_circuit(&self) -> bool {
        self.breaker().map(Breaker::open).is_some()
    }

    /// Opens the circuit of one model for one cooldown. Whether there is a breaker.
    pub fn open_circuit_for(&self, model: &str) -> bool {
        self.breaker().map(|breaker| breaker.open_for(model)).is_some()
    }

    /// Holds the circuit open until it is closed by hand. Whether there is one.
    pub fn hold_circuit_open(&self) -> bool {
        self.breaker().map(Breaker::hold_open).is_some()
    }

    /// Holds the circuit of one model open until it is closed by hand. Whether there is a breaker.
    pub fn hold_circuit_open_for(&self, model: &str) -> bool {
        self.breaker().map(|breaker| breaker.hold_open_for(model)).is_some()
    }

    /// Closes the circuit. Whether there is one.
    pub fn close_circuit(&self) -> bool {
        self.breaker().map(Breaker::close).is_some()
    }

    /// Closes the circuit of one model. Whether there is a breaker.
    pub fn close_circuit_for(&self, model: &str) -> bool {
        self.breaker().map(|breaker| breaker.close_for(model)).is_some()
    }

    fn breaker(self) -> Option<&'a Breaker> {
        self.0.guards.breaker.as_ref()
    }
}
