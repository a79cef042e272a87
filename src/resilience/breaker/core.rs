//! The state machine of one circuit. Pure: every question carries the time.

use super::{
    CircuitChange, CircuitRefusal, CircuitState, FailureEvidence, Hand, Outcome, RefusalReason, admission::Ticket,
    settings::Rules, tripping::Counter,
};
use crate::resilience::clock::later;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A closed circuit whose last failure is this old is idle, even if it has counted some.
const FORGET_AFTER: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub(super) struct Core {
    rules: Arc<Rules>,
    key: Option<Arc<str>>,
    phase: Phase,
    /// How many transitions there were. What was admitted before the last one is stale.
    generation: u64,
    counter: Counter,
    /// While not closed: the failures that opened it, and the trials that have failed since.
    failures: u32,
    reopenings: u32,
    opened_at: Instant,
    last: Option<Last>,
    /// By label, since last closed.
    breakdown: BTreeMap<&'static str, u64>,
    change: Option<CircuitChange>,
}

#[derive(Debug)]
enum Phase {
    Closed {
        ramp: Option<Ramp>,
    },
    /// `until` is `None` when held open by hand.
    Open {
        until: Option<Instant>,
    },
    HalfOpen(Trials),
}

/// The last failure that was counted.
#[derive(Clone, Copy, Debug)]
struct Last {
    label: &'static str,
    tag: Option<u16>,
    at: Instant,
}

impl Core {
    pub(super) fn new(rules: Arc<Rules>, key: Option<Arc<str>>, now: Instant) -> Self {
        let counter = rules.tripping.counter(now);
        Self {
            rules,
            key,
            phase: Phase::Closed { ramp: None },
            generation: 0,
            counter,
            failures: 0,
            reopenings: 0,
            opened_at: now,
            last: None,
            breakdown: BTreeMap::new(),
            change: None,
        }
    }

    pub(super) fn admit(&mut self, now: Instant) -> Result<Ticket, CircuitRefusal> {
        match &mut self.phase {
            Phase::Closed { ramp: None } => {}
            Phase::Closed { ramp: Some(ramp) } => match ramp.ask(now) {
                Step::Refuse { wait } => return Err(self.refusal(RefusalReason::CoolingDown { remaining: wait })),
                Step::Admit => {}
                Step::Over => self.phase = Phase::Closed { ramp: None },
            },
            Phase::Open { .. } => match self.shut(now) {
                Some(refusal) => return Err(refusal),
                None => self.turn(Phase::HalfOpen(Trials { out: 1, ..Trials::default() })),
            },
            Phase::HalfOpen(trials) if trials.started() < self.rules.probes => trials.out += 1,
            Phase::HalfOpen(_) => return Err(self.refusal(RefusalReason::TrialInFlight)),
        }
        Ok(Ticket { generation: self.generation, trial: matches!(self.phase, Phase::HalfOpen(_)) })
    }

    /// The refusal of a circuit that is open and stays so. To be told of it changes nothing.
    pub(super) fn shut(&self, now: Instant) -> Option<CircuitRefusal> {
        match self.phase {
            Phase::Open { until: None } => Some(self.refusal(RefusalReason::HeldOpen)),
            Phase::Open { until: Some(until) } if now < until => {
                Some(self.refusal(RefusalReason::CoolingDown { remaining: until - now }))
            }
            _ => None,
        }
    }

    pub(super) fn settle(&mut self, ticket: Ticket, outcome: Outcome, now: Instant) {
        if self.is_stale(ticket) {
            return;
        }
        match outcome {
            Outcome::Success => self.on_success(now),
            Outcome::Failure(evidence) => self.on_failure(evidence, now),
            Outcome::Released => self.give_back(ticket),
        }
    }

    /// Counts successes of this generation that were not worth a step each.
    pub(super) fn absorb(&mut self, successes: u64) {
        self.counter.absorb(successes);
    }

    /// Until when successes need not be steps, for a rolling window.
    pub(super) fn newest_ends(&self) -> Option<u64> {
        self.counter.newest_ends()
    }

    /// A trial has ended without an outcome.
    pub(super) fn give_back(&mut self, ticket: Ticket) {
        if !self.is_stale(ticket)
            && let Phase::HalfOpen(trials) = &mut self.phase
        {
            trials.out -= 1;
        }
    }

    pub(super) fn by_hand(&mut self, hand: Hand, now: Instant) {
        match (hand, &mut self.phase) {
            (Hand::Open, Phase::Open { until: None }) => {}
            (Hand::Open, Phase::Open { until: Some(until) }) => {
                *until = later(now, self.rules.cooldown.after(0, None)).max(*until);
            }
            (Hand::Open, _) => self.open(Some(self.rules.cooldown.after(0, None)), now),
            (Hand::Hold, Phase::Open { until }) => *until = None,
            (Hand::Hold, _) => self.open(None, now),
            (Hand::Close, Phase::Closed { ramp }) => {
                *ramp = None;
                self.start_anew();
            }
            (Hand::Close, _) => self.close(now),
        }
    }

    pub(super) fn state(&self) -> CircuitState {
        match self.phase {
            Phase::Closed { .. } => CircuitState::Closed,
            Phase::Open { .. } => CircuitState::Open,
            Phase::HalfOpen(_) => CircuitState::HalfOpen,
        }
    }

    pub(super) fn word(&self) -> Word {
        let admits_all = matches!(self.phase, Phase::Closed { ramp: None });
        let ignores_success = matches!(self.phase, Phase::Closed { .. }) && self.counter.ignores_success();
        Word::new(self.generation, admits_all, ignores_success)
    }

    pub(super) fn breakdown(&self) -> &BTreeMap<&'static str, u64> {
        &self.breakdown
    }

    /// The transition of the last step, once.
    pub(super) fn take_change(&mut self) -> Option<CircuitChange> {
        self.change.take()
    }

    /// Whether a new circuit would do as well.
    pub(super) fn is_idle(&mut self, now: Instant) -> bool {
        let healthy = match &self.phase {
            Phase::Closed { ramp } => ramp.as_ref().is_none_or(|ramp| ramp.is_over(now)),
            Phase::Open { .. } | Phase::HalfOpen(_) => false,
        };
        let quiet = self.last.is_none_or(|last| now.saturating_duration_since(last.at) >= FORGET_AFTER);
        healthy && quiet && self.counter.is_idle(now)
    }

    /// Whether the call was admitted before the last transition. (Or by another breaker: then its number may fit by chance,
    /// and it must at least not give back a slot that it never had.)
    fn is_stale(&self, ticket: Ticket) -> bool {
        ticket.generation != self.generation || ticket.trial != matches!(self.phase, Phase::HalfOpen(_))
    }

    fn on_success(&mut self, now: Instant) {
        let Self { phase, counter, key, rules, .. } = self;
        match phase {
            Phase::Closed { .. } => counter.on_success(key.as_deref().unwrap_or_default(), now),
            Phase::Open { .. } => {} // admits nothing, so this cannot be
            Phase::HalfOpen(trials) => {
                trials.out -= 1;
                trials.succeeded += 1;
                if trials.succeeded >= rules.needed {
                    self.close(now);
                }
            }
        }
    }

    fn on_failure(&mut self, evidence: FailureEvidence, now: Instant) {
        *self.breakdown.entry(evidence.label).or_default() += 1;
        self.last = Some(Last { label: evidence.label, tag: evidence.tag, at: now });
        let Self { phase, counter, key, rules, .. } = self;
        match phase {
            Phase::Closed { .. } => {
                if counter.on_failure(key.as_deref().unwrap_or_default(), now) {
                    self.open(Some(self.rules.cooldown.after(0, evidence.advised)), now);
                }
            }
            Phase::Open { .. } => {} // admits nothing, so this cannot be
            Phase::HalfOpen(trials) => {
                trials.out -= 1;
                trials.failed += 1;
                let lost = trials.failed > rules.probes - rules.needed;
                self.failures = self.failures.saturating_add(1);
                if lost {
                    self.reopenings = self.reopenings.saturating_add(1);
                    self.open(Some(self.rules.cooldown.after(self.reopenings, evidence.advised)), now);
                }
            }
        }
    }

    /// Opens for a cooldown, or until closed.
    fn open(&mut self, cooldown: Option<Duration>, now: Instant) {
        self.failures = self.failures();
        self.opened_at = now;
        self.turn(Phase::Open { until: cooldown.map(|cooldown| later(now, cooldown)) });
    }

    fn close(&mut self, now: Instant) {
        self.turn(Phase::Closed { ramp: self.rules.ramp.map(|length| Ramp::new(now, length)) });
        self.start_anew();
    }

    fn start_anew(&mut self) {
        self.counter.reset(self.key.as_deref().unwrap_or_default());
        self.reopenings = 0;
        self.last = None;
        self.breakdown.clear();
    }

    /// The one place that changes the state.
    fn turn(&mut self, phase: Phase) {
        let (from, failures) = (self.state(), self.failures());
        self.phase = phase;
        self.generation += 1;
        let last_label = self.last.map(|last| last.label);
        self.change = Some(CircuitChange { failures, last_label, ..CircuitChange::new(from, self.state()) });
    }

    fn failures(&self) -> u32 {
        match self.phase {
            Phase::Closed { .. } => self.counter.failures(),
            Phase::Open { .. } | Phase::HalfOpen(_) => self.failures,
        }
    }

    fn refusal(&self, reason: RefusalReason) -> CircuitRefusal {
        CircuitRefusal {
            failures: self.failures(),
            last_label: self.last.map(|last| last.label),
            last_tag: self.last.and_then(|last| last.tag),
            ..CircuitRefusal::new(reason, self.opened_at)
        }
    }
}

/// The trials of one half-open cycle.
#[derive(Debug, Default)]
struct Trials {
    out: u32,
    succeeded: u32,
    failed: u32,
}

impl Trials {
    fn started(&self) -> u32 {
        self.out + self.succeeded + self.failed
    }
}

/// Lets a growing share of calls through. Each call adds the share of its instant to a credit, and an admitted one takes 1
/// from it. The credit starts at 1, so the first call is admitted.
#[derive(Debug)]
struct Ramp {
    start: Instant,
    length: Duration,
    credit: f64,
}

enum Step {
    Admit,
    /// `wait`: how long until a call is admitted that no other comes before.
    Refuse {
        wait: Duration,
    },
    Over,
}

impl Ramp {
    fn new(start: Instant, length: Duration) -> Self {
        Self { start, length, credit: 1.0 }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.start) >= self.length
    }

    fn ask(&mut self, now: Instant) -> Step {
        if self.is_over(now) {
            return Step::Over;
        }
        let elapsed = now.saturating_duration_since(self.start);
        self.credit += elapsed.div_duration_f64(self.length);
        if self.credit >= 1.0 {
            self.credit -= 1.0;
            return Step::Admit;
        }
        let share = 1.0 - self.credit; // at which the next call is admitted
        let when = Duration::try_from_secs_f64(self.length.as_secs_f64() * share).unwrap_or(self.length);
        Step::Refuse { wait: when.saturating_sub(elapsed) }
    }
}

/// What a healthy call needs to know of a circuit, in one word: the generation, and two flags.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Word(pub(super) u64);

impl Word {
    const ADMITS_ALL: u64 = 1;
    const IGNORES_SUCCESS: u64 = 2;

    fn new(generation: u64, admits_all: bool, ignores_success: bool) -> Self {
        Self(generation << 2 | u64::from(ignores_success) << 1 | u64::from(admits_all))
    }

    #[inline]
    pub(super) fn generation(self) -> u64 {
        self.0 >> 2
    }

    /// Closed, and not on a ramp.
    #[inline]
    pub(super) fn admits_all(self) -> bool {
        self.0 & Self::ADMITS_ALL != 0
    }

    /// Closed, and a success would change nothing.
    #[inline]
    pub(super) fn ignores_success(self) -> bool {
        self.0 & Self::IGNORES_SUCCESS != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
