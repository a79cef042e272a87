//! Circuit breaker: stop calling a target that keeps failing, then try it with care.
//!
//! ```text
//!               tripped, or by hand                cooldown over, next call
//!   ┌────────┐ ────────────────────▶ ┌──────┐ ────────────────────▶ ┌──────────┐
//!   │ Closed │                       │ Open │                       │ HalfOpen │
//!   └────────┘ ◀──────── by hand ─── └──────┘ ◀──────────────────── └──────────┘
//!        ▲                             too few trials can succeed        │
//!        └───────────────────────────────────────────────────────────────┘
//!                          enough trials succeeded, or by hand
//! ```
//!
//! A call asks once to be admitted, makes its attempts, and records one [`Outcome`] for all of them: one that fails and then
//! succeeds on a retry is one success. Each transition starts a new
//! *generation*; an outcome that was admitted in an earlier one is stale and decides nothing.
//!
//! A circuit's state machine (`core`) is pure: every question carries the time. Around it (`circuit`) is one lock, and one
//! atomic word that says "closed, and nothing to count", so that a healthy call takes no lock and writes nothing. With a
//! rolling window it writes one number (`successes`).

mod admission;
mod changes;
mod circuit;
mod cooldown;
mod core;
mod keyed;
mod refusal;
mod settings;
mod shared;
mod successes;
mod tripping;

pub use admission::{Admission, FailureEvidence, Outcome};
pub use changes::{ChangeSink, ChangeSubscription, CircuitChange};
pub use refusal::{CircuitRefusal, RefusalReason};
pub use settings::CircuitBreaker;
pub use shared::{SharedBreaker, SharedTicket};
pub use tripping::Tripping;

use self::{
    admission::{Held, LocalGuard, SharedGuard, Ticket},
    changes::Changes,
    circuit::Circuit,
    keyed::Keyed,
    settings::Rules,
};
use super::answer::Answer;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Whether calls go through.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CircuitState {
    /// Calls go through. While a recovery ramp runs, only a growing share of them.
    Closed,
    /// The cooldown is over and trials decide.
    HalfOpen,
    /// Calls are refused. Also after the cooldown, until the next call asks: it becomes a trial.
    Open,
}

/// A running circuit breaker, made from [`CircuitBreaker`]. Cloning shares it.
///
/// ```
/// use std::time::Duration;
/// use steadfast::resilience::{CircuitBreaker, CircuitState, FailureEvidence, Outcome};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let breaker = CircuitBreaker::consecutive(2).cooldown(Duration::from_secs(10)).build()?;
/// for _ in 0..2 {
///     let admission = breaker.admit("gpt-5-mini").await?;
///     breaker.record(admission, Outcome::Failure(FailureEvidence::new("server_error")));
/// }
/// assert_eq!(breaker.state(), CircuitState::Open);
/// let refusal = breaker.admit("gpt-5-mini").await.expect_err("the circuit is open");
/// assert_eq!((refusal.failures, refusal.last_label), (2, Some("server_error")));
/// # Ok(()) }
/// ```
///
/// # By hand, and by model
///
/// With [`isolate_by_model`](CircuitBreaker::isolate_by_model) there is a circuit for each key (the resolved model). The
/// methods that end in `_for` mean the circuit of that key; without isolation they mean the only one. The plain ones mean
/// all circuits: opened or held open, they are so for models that come later, too; the state is the least healthy of any;
/// the breakdown is their sum.
#[derive(Clone, Debug)]
pub struct Breaker {
    arm: Arm,
    recheck: bool,
    hang_evidence: Option<Duration>,
}

#[derive(Clone, Debug)]
enum Arm {
    Single(Arc<Circuit>),
    ByKey(Arc<Keyed>),
    Shared(Arc<dyn SharedBreaker>),
}

impl Breaker {
    /// A breaker kept elsewhere, for a fleet.
    pub fn shared(breaker: Arc<dyn SharedBreaker>) -> Self {
        let (recheck, hang_evidence) = (breaker.recheck(), breaker.hang_evidence());
        Self { arm: Arm::Shared(breaker), recheck, hang_evidence }
    }

    fn local(settings: &CircuitBreaker, rules: Rules, now: Instant) -> Self {
        let (rules, changes) = (Arc::new(rules), Arc::new(Changes::default()));
        let arm = if settings.isolate_by_model {
            Arm::ByKey(Arc::new(Keyed::new(rules, changes)))
        } else {
            Arm::Single(Arc::new(Circuit::new(rules, changes, None, now)))
        };
        Self { arm, recheck: settings.recheck, hang_evidence: settings.hang_evidence }
    }

    /// Asks to make a call to the model `key`, which is ignored without isolation by model.
    ///
    /// The answer is given back with [`record`](Self::record), once, after the call's retries; dropped, it counts as
    /// [`Outcome::Released`]. Only a shared breaker waits.
    pub async fn admit(&self, key: &str) -> Result<Admission, CircuitRefusal> {
        if let Some(admission) = self.admit_freely() {
            return Ok(admission);
        }
        self.ask(key, Instant::now()).get().await
    }

    /// [`admit`](Self::admit), as of `now`.
    #[inline]
    pub(crate) fn admit_at<'a>(&'a self, key: &'a str, now: Instant) -> Answer<'a, Result<Admission, CircuitRefusal>> {
        match self.admit_freely() {
            Some(admission) => Answer::Now(Ok(admission)),
            None => self.ask(key, now),
        }
    }

    /// Admission by a circuit that admits all.
    #[inline]
    pub(crate) fn admit_freely(&self) -> Option<Admission> {
        let Arm::Single(circuit) = &self.arm else { return None };
        circuit.admit_freely().map(|generation| Admission(Held::Free(generation)))
    }

    /// Admission where it takes a lock, a look-up or a wait.
    #[inline(never)]
    pub(crate) fn ask<'a>(&'a self, key: &'a str, now: Instant) -> Answer<'a, Result<Admission, CircuitRefusal>> {
        match &self.arm {
            Arm::Single(circuit) => Answer::Now(circuit.admit(now).map(|ticket| {
                if ticket.trial {
                    LocalGuard::admission(Arc::clone(circuit), ticket)
                } else {
                    Admission(Held::Free(ticket.generation))
                }
            })),
            Arm::ByKey(circuits) => {
                let circuit = circuits.circuit(key, now);
                Answer::Now(circuit.admit(now).map(|ticket| LocalGuard::admission(circuit, ticket)))
            }
            Arm::Shared(breaker) => Answer::Later(Box::pin(async move {
                let ticket = breaker.admit(key).await?;
                Ok(SharedGuard::admission(Arc::clone(breaker), key, ticket))
            })),
        }
    }

    /// The refusal of a circuit that is open and stays so: who is going to ask can spare the trouble of getting ready. A shared
    /// breaker says nothing until it is asked.
    #[inline]
    pub(crate) fn shut(&self, key: &str, now: impl FnOnce() -> Instant) -> Option<CircuitRefusal> {
        match &self.arm {
            Arm::Single(circuit) => circuit.shut(now),
            Arm::ByKey(circuits) => circuits.find(key)?.shut(now),
            Arm::Shared(_) => None,
        }
    }

    /// Records how an admitted call ended. The admission must come from this breaker.
    pub fn record(&self, admission: Admission, outcome: Outcome) {
        self.record_by(admission, outcome, Instant::now);
    }

    #[cfg(test)]
    pub(crate) fn record_at(&self, admission: Admission, outcome: Outcome, now: Instant) {
        self.record_by(admission, outcome, || now);
    }

    /// [`record`](Self::record), with another clock.
    #[inline]
    pub(crate) fn record_by(&self, admission: Admission, outcome: Outcome, now: impl FnOnce() -> Instant) {
        match (admission.0, &self.arm) {
            (Held::Free(generation), Arm::Single(circuit)) => {
                circuit.settle(Ticket { generation, trial: false }, outcome, now);
            }
            (Held::Free(_), _) => {} // of another breaker
            (Held::Local(guard), _) => guard.settle(outcome, now),
            (Held::Shared(guard), _) => guard.settle(outcome),
        }
    }

    /// Whether a call that has waited, for the limiter or for a retry, asks again before it sends.
    pub fn recheck(&self) -> bool {
        self.recheck
    }

    /// How long without a response head makes an attempt that was cut off a failure. `None`: half of the attempt's timeout,
    /// at most 10 s.
    pub fn hang_evidence(&self) -> Option<Duration> {
        self.hang_evidence
    }

    /// Whether calls go through.
    pub fn state(&self) -> CircuitState {
        match &self.arm {
            Arm::Single(circuit) => circuit.state(),
            Arm::ByKey(circuits) => circuits.worst_state(Instant::now()),
            Arm::Shared(breaker) => breaker.state(None),
        }
    }

    /// Whether calls to the model `key` go through.
    pub fn state_for(&self, key: &str) -> CircuitState {
        match &self.arm {
            Arm::Single(circuit) => circuit.state(),
            Arm::ByKey(circuits) => circuits.state_of(key, Instant::now()),
            Arm::Shared(breaker) => breaker.state(Some(key)),
        }
    }

    /// How many failures were counted since the circuit was last closed, by label.
    pub fn failure_breakdown(&self) -> BTreeMap<&'static str, u64> {
        match &self.arm {
            Arm::Single(circuit) => circuit.breakdown(),
            Arm::ByKey(circuits) => circuits.all().iter().flat_map(|circuit| circuit.breakdown()).fold(
                BTreeMap::new(),
                |mut sum, (label, n)| {
                    *sum.entry(label).or_default() += n;
                    sum
                },
            ),
            Arm::Shared(breaker) => breaker.failure_breakdown(None),
        }
    }

    /// [`failure_breakdown`](Self::failure_breakdown) of the model `key`.
    pub fn failure_breakdown_for(&self, key: &str) -> BTreeMap<&'static str, u64> {
        match &self.arm {
            Arm::Single(circuit) => circuit.breakdown(),
            Arm::ByKey(circuits) => circuits.find(key).map(|circuit| circuit.breakdown()).unwrap_or_default(),
            Arm::Shared(breaker) => breaker.failure_breakdown(Some(key)),
        }
    }

    /// Opens for one cooldown, after which a trial decides. A circuit that is open already stays so at least that long; one
    /// held open stays held.
    pub fn open(&self) {
        self.by_hand(None, Hand::Open, Instant::now());
    }

    /// [`open`](Self::open), for the model `key`.
    pub fn open_for(&self, key: &str) {
        self.by_hand(Some(key), Hand::Open, Instant::now());
    }

    /// Opens until it is [closed](Self::close).
    pub fn hold_open(&self) {
        self.by_hand(None, Hand::Hold, Instant::now());
    }

    /// [`hold_open`](Self::hold_open), for the model `key`.
    pub fn hold_open_for(&self, key: &str) {
        self.by_hand(Some(key), Hand::Hold, Instant::now());
    }

    /// Closes, and forgets all that was counted. A recovery ramp, if configured, follows as after any closing; closing a
    /// circuit that is closed already ends its ramp.
    pub fn close(&self) {
        self.by_hand(None, Hand::Close, Instant::now());
    }

    /// [`close`](Self::close), for the model `key`.
    pub fn close_for(&self, key: &str) {
        self.by_hand(Some(key), Hand::Close, Instant::now());
    }

    fn by_hand(&self, key: Option<&str>, hand: Hand, now: Instant) {
        match &self.arm {
            Arm::Single(circuit) => circuit.by_hand(hand, now),
            Arm::ByKey(circuits) => match key {
                Some(key) => circuits.circuit(key, now).by_hand(hand, now),
                None => circuits.all_by_hand(hand, now),
            },
            Arm::Shared(breaker) => match hand {
                Hand::Open => breaker.open(key),
                Hand::Hold => breaker.hold_open(key),
                Hand::Close => breaker.close(key),
            },
        }
    }

    /// Calls `sink` for each transition from now on, until the subscription is dropped.
    ///
    /// Each real transition is told once and in order, outside any lock, by one thread at a time: a slow sink delays only
    /// the thread that tells, a panic in it is caught. It may use the breaker.
    pub fn observe(&self, sink: ChangeSink) -> ChangeSubscription {
        match &self.arm {
            Arm::Single(circuit) => circuit.changes().observe(sink),
            Arm::ByKey(circuits) => circuits.changes().observe(sink),
            Arm::Shared(breaker) => breaker.observe(sink),
        }
    }
}

/// What an operator does to a circuit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Hand {
    Open,
    Hold,
    Close,
}

#[cfg(all(test, loom))]
mod interleavings;
#[cfg(all(test, not(loom)))]
mod tests;
