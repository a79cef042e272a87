//! One call as its observers see it: who it is, and what is told of it.

use super::target::ReadyTarget;
use crate::LlmError;
use crate::observe::{CallOutcome, Event, EventKind, Observers};
use crate::resilience::Random;
use crate::resilience::clock::wall_now;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tokio::time::Instant;

/// What is told of one call. Empty, and free, where nobody listens when the call begins.
pub(super) struct Scope(Option<Told>);

struct Told {
    observers: Arc<Observers>,
    request_id: Arc<str>,
    started: Instant,
    attempts: AtomicU32,
    finished: bool,
}

impl Scope {
    /// Begins to tell of a call.
    pub(super) fn begin(observers: &Arc<Observers>, random: &Random, own_id: Option<&str>, started: Instant) -> Self {
        if !observers.any() {
            return Self(None);
        }
        let request_id = own_id.map_or_else(|| format!("{:016x}", random.bits()).into(), Arc::from);
        let observers = Arc::clone(observers);
        let scope = Self(Some(Told { observers, request_id, started, attempts: AtomicU32::new(0), finished: false }));
        scope.tell(None, || EventKind::CallStarted);
        scope
    }

    /// Whether anyone listens.
    pub(super) fn is_observed(&self) -> bool {
        self.0.is_some()
    }

    /// Tells what `kind` makes, of a target and a model.
    pub(super) fn tell(&self, about: Option<(&ReadyTarget, &str)>, kind: impl FnOnce() -> EventKind) {
        let Some(told) = &self.0 else { return };
        let kind = kind();
        if matches!(kind, EventKind::AttemptStarted { .. }) {
            told.attempts.fetch_add(1, Relaxed);
        }
        told.observers.tell(event(Some(told.request_id.clone()), about, kind));
    }

    /// The call ended.
    pub(super) fn finish(mut self, answered: Option<(&ReadyTarget, &str)>, error: Option<&LlmError>) {
        let outcome = if error.is_none() { CallOutcome::Answered } else { CallOutcome::Failed };
        self.end(answered, outcome, error);
    }

    fn end(&mut self, about: Option<(&ReadyTarget, &str)>, outcome: CallOutcome, error: Option<&LlmError>) {
        let Some(told) = &mut self.0 else { return };
        if !std::mem::replace(&mut told.finished, true) {
            let attempts = *told.attempts.get_mut();
            let kind =
                EventKind::CallFinished { outcome, attempts, elapsed: told.started.elapsed(), error: error.cloned() };
            told.observers.tell(event(Some(told.request_id.clone()), about, kind));
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.end(None, CallOutcome::Dropped, None);
    }
}

/// An event about a target.
pub(super) fn event(request_id: Option<Arc<str>>, about: Option<(&ReadyTarget, &str)>, kind: EventKind) -> Event {
    Event {
        at: wall_now(),
        request_id,
        target: about.map(|(target, _)| target.name.clone()),
        provider: about.map(|(target, _)| target.provider_name.clone()),
        model: about.map(|(_, model)| model.into()),
        kind,
    }
}

/// Why a retry is made, in a word.
pub(super) fn reason(error: &LlmError) -> String {
    match error.status() {
        Some(status) if error.kind() == crate::ErrorKind::Api => format!("HTTP {status}"),
        _ => error.kind().to_string(),
    }
}
