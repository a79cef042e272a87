//! Telling observers of transitions: once each, in order, outside any lock.

use super::CircuitState;
use crate::resilience::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// One transition of a circuit.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CircuitChange {
    /// The model, with isolation by model.
    pub key: Option<Arc<str>>,
    /// The state it left.
    pub from: CircuitState,
    /// The state it entered.
    pub to: CircuitState,
    /// The failures counted by then: those in a row, or in the window, and the trials that have failed since it opened.
    pub failures: u32,
    /// The label of the last counted failure.
    pub last_label: Option<&'static str>,
}

impl CircuitChange {
    /// A transition, for a shared breaker to tell.
    pub fn new(from: CircuitState, to: CircuitState) -> Self {
        Self { key: None, from, to, failures: 0, last_label: None }
    }
}

/// What is called for each transition.
pub type ChangeSink = Arc<dyn Fn(&CircuitChange) + Send + Sync>;

/// Keeps an observer registered. Dropping it ends that; a call that has begun elsewhere may still finish.
#[must_use = "dropping the subscription ends it"]
pub struct ChangeSubscription {
    end: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl ChangeSubscription {
    /// A subscription to a shared breaker, which `end` ends.
    pub fn new(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { end: Some(Box::new(end)) }
    }
}

impl Drop for ChangeSubscription {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}

impl fmt::Debug for ChangeSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeSubscription").finish_non_exhaustive()
    }
}

/// The transitions of all circuits of one breaker, on their way to its observers.
///
/// A circuit pushes under its own lock, which fixes the order, and tells after it has let go of it.
#[derive(Default)]
pub(super) struct Changes(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    pending: VecDeque<CircuitChange>,
    sinks: Vec<(u64, ChangeSink)>,
    next_id: u64,
    /// One thread is telling, and will tell what the others push.
    telling: bool,
}

impl Changes {
    pub(super) fn observe(self: &Arc<Self>, sink: ChangeSink) -> ChangeSubscription {
        let mut queue = lock(&self.0);
        let id = queue.next_id;
        queue.next_id += 1;
        queue.sinks.push((id, sink));
        let changes: Weak<Self> = Arc::downgrade(self);
        ChangeSubscription::new(move || {
            if let Some(changes) = changes.upgrade() {
                let mut queue = lock(&changes.0);
                let ended = queue.sinks.iter().position(|(other, _)| *other == id).map(|at| queue.sinks.remove(at));
                drop(queue); // the sink's own drop may use the breaker
                drop(ended);
            }
        })
    }

    /// Queues a transition, if anybody wants to know. It is told by the next [`tell`](Self::tell).
    pub(super) fn push(&self, change: CircuitChange) {
        let mut queue = lock(&self.0);
        if !queue.sinks.is_empty() {
            queue.pending.push_back(change);
        }
    }

    /// Tells what is queued, unless another thread is doing so, which then tells this, too. Call it without a lock.
    pub(super) fn tell(&self) {
        let mut queue = lock(&self.0);
        if queue.telling {
            return;
        }
        queue.telling = true;
        while let Some(change) = queue.pending.pop_front() {
            let sinks: Vec<ChangeSink> = queue.sinks.iter().map(|(_, sink)| Arc::clone(sink)).collect();
            drop(queue);
            for sink in sinks {
                // An observer's panic is its own; the call that happened to tell it must not suffer.
                let _ = catch_unwind(AssertUnwindSafe(|| sink(&change)));
            }
            queue = lock(&self.0);
        }
        queue.telling = false;
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("observers", &lock(&self.0).sinks.len()).finish_non_exhaustive()
    }
}
