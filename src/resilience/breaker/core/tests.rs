use super::*;
use crate::resilience::{CircuitBreaker, Random, breaker::settings::Rules};
use proptest::prelude::*;
use std::sync::Mutex;

const SECOND: Duration = Duration::from_secs(1);

/// A core with a clock that the test moves.
struct Bench {
    core: Core,
    now: Instant,
    changes: Vec<CircuitChange>,
}

impl Bench {
    fn new(settings: &CircuitBreaker) -> Self {
        let rules: Rules = settings.rules(Random::seeded(1)).expect("valid");
        let now = Instant::now();
        Self { core: Core::new(Arc::new(rules), None, now), now, changes: Vec::new() }
    }

    fn wait(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    fn step<R>(&mut self, step: impl FnOnce(&mut Core, Instant) -> R) -> R {
        let before = self.core.state();
        let answer = step(&mut self.core, self.now);
        let change = self.core.take_change();
        assert_eq!(change.as_ref().map_or(before, |c| c.to), self.core.state(), "each transition is told");
        assert_eq!(change.as_ref().map_or(before, |c| c.from), before);
        self.changes.extend(change);
        answer
    }

    fn admit(&mut self) -> Result<Ticket, CircuitRefusal> {
        self.step(Core::admit)
    }

    fn settle(&mut self, ticket: Ticket, outcome: Outcome) {
        self.step(|core, now| core.settle(ticket, outcome, now));
    }

    fn call(&mut self, outcome: Outcome) -> &mut Self {
        let ticket = self.admit().expect("admitted");
        self.settle(ticket, outcome);
        self
    }

    fn hand(&mut self, hand: Hand) -> &mut Self {
        self.step(|core, now| core.by_hand(hand, now));
        self
    }

    fn refused(&mut self) -> RefusalReason {
        self.admit().expect_err("refused").reason
    }

    fn state(&self) -> CircuitState {
        self.core.state()
    }

    fn transitions(&self) -> Vec<(CircuitState, CircuitState)> {
        self.changes.iter().map(|change| (change.from, change.to)).collect()
    }
}

const OK: Outcome = Outcome::Success;
const BAD: Outcome = Outcome::Failure(FailureEvidence::new("bad"));

fn cooling(remaining: Duration) -> RefusalReason {
    RefusalReason::CoolingDown { remaining }
}

#[test]
fn opens_at_the_nth_failure_in_a_row_and_cools_down() {
    let mut bench = Bench::new(&CircuitBreaker::consecutive(3).cooldown(10 * SECOND));
    bench.call(BAD).call(BAD);
    assert_eq!(bench.state(), CircuitState::Closed);
    bench.call(BAD);
    assert_eq!(bench.state(), CircuitState::Open);
    assert_eq!(bench.refused(), cooling(10 * SECOND));
    assert_eq!(bench.wait(9 * SECOND).refused(), cooling(SECOND));
    assert!(bench.wait(SECOND).admit().expect("a trial").trial);
    assert_eq!(bench.state(), CircuitState::HalfOpen);
}

#[test]
fn success_resets_the_count_and_a_release_neither_resets_nor_adds() {
    let mut bench = Bench::new(&CircuitBreaker::consecutive(2));
    bench.call(BAD).call(OK).call(BAD);
    assert_eq!(bench.state(), CircuitState::Closed);
    bench.call(Outcome::Released);
    assert_eq!(bench.state(), CircuitState::Closed);
    bench.call(BAD);
    assert_eq!(bench.state(), CircuitState::Open);
}

#[test]
fn a_refusal_tells_what_opened_the_circuit_and_when() {
    let mut bench = Bench::new(&CircuitBreaker::consecutive(2));
    bench.call(BAD).wait(SECOND).call(Outcome::Failure(FailureEvidence::new("worse").tag(503)));
    let (opened_at, change) = (bench.now, bench.changes.last().expect("a transition"));
    assert_eq!((change.to, change.failures, change.last_label), (CircuitState::Open, 2, Some("worse")));
    let refusal = bench.wait(SECOND).admit().expect_err("open");
    let expected = (2, Some("worse"), Some(503), opened_at);
    assert_eq!((refusal.failures, refusal.last_label, refusal.last_tag, refusal.opened_at), expected);
    assert_eq!(refusal.retry_after(), Some(29 * SECOND));
    assert_eq!(refusal.to_string(), "circuit cooling down for 29.0s after 2 failures, the last worse");
}

#[test]
fn opens_at_the_ratio_of_a_trailing_window_from_min_calls_on() {
    let mut bench = Bench::new(&CircuitBreaker::rolling(64 * SECOND, 4, 0.5));
    bench.call(BAD).call(BAD).call(BAD);
    assert_eq!(bench.state(), CircuitState::Closed, "three calls are too few");
    bench.wait(64 * SECOND).call(BAD).call(OK).call(OK);
    assert_eq!(bench.state(), CircuitState::Closed, "the first three have left the window");
    bench.call(BAD);
    assert_eq!(bench.state(), CircuitState::Open, "2 of 4");
    assert_eq!(bench.admit().expect_err("open").failures, 2);
    bench.wait(30 * SECOND).call(OK).call(BAD).call(BAD).call(BAD);
    assert_eq!(bench.state(), CircuitState::Closed, "the window was emptied by closing");
}

#[test]
fn the_cooldown_is_as_long_as_the_wait_that_the_opening_failure_advised() {
    let advised = |wait| Outcome::Failure(FailureEvidence::new("busy").advised(wait));
    let mut bench = Bench::new(&CircuitBreaker::consecutive(2).cooldown(10 * SECOND));
    bench.call(advised(60 * SECOND)).call(BAD);
    assert_eq!(bench.refused(), cooling(10 * SECOND), "the first failure did not open it");
    bench.wait(10 * SECOND).call(advised(25 * SECOND));
    assert_eq!(bench.refused(), cooling(25 * SECOND));
    bench.wait(25 * SECOND).call(advised(SECOND));
    assert_eq!(bench.refused(), cooling(10 * SECOND));
    bench.wait(10 * SECOND).call(advised(Duration::MAX));
    assert!(matches!(bench.refused(), RefusalReason::CoolingDown { remaining } if remaining > 10_000 * SECOND));
}

#[test]
fn a_successful_trial_closes_and_counters_start_anew() {
    let mut bench = Bench::new(&CircuitBreaker::consecutive(2));
    bench.call(BAD).call(BAD).wait(30 * SECOND).call(OK);
    assert_eq!(bench.state(), CircuitState::Closed);
    assert!(bench.core.breakdown().is_empty());
    bench.call(BAD);
    assert_eq!(bench.state(), CircuitState::Closed);
    let [closed, half_open, open] = [CircuitState::Closed, CircuitState::HalfOpen, CircuitState::Open];
    assert_eq!(bench.transitions(), [(closed, open), (open, half_open), (half_open, closed)]);
}

#[test]
fn trial_slots_are_as_many_as_probes_and_come_back() {
    let mut bench = Bench::new(&CircuitBreaker::consecutive(1).half_open_probes(2));
    bench.call(BAD).wait(30 * SECOND);
    let (one, two) = (bench.admit().expect("one"), bench.admit().expect("two"));
    assert!(one.trial && two.trial);
    assert_eq!(bench.refused(), RefusalReason::TrialInFlight);
    assert_eq!(bench.admit().expect_err("all out").retry_after(), None);
    bench.settle(one, Outcome::Released);
    let three = bench.admit().expect("the slot of the first");
    bench.settle(three, OK);
    assert_eq!(bench.refused(), RefusalReason::TrialInFlight, "one has succeeded, one is out");
    bench.settle(two, OK);
    assert_eq!(bench.state(), CircuitState::Closed);
}

#[test]
fn closes_as_soon_as_enough_trials_succeeded_and_reopens_as_soon_as_they_cannot() {
    let settings = CircuitBreaker::consecutive(1).half_open_probes(4).half_open_success_ratio(0.5);
    for (outcomes, state) in [
        (&[OK, OK][..], CircuitState::Closed),
        (&[BAD, OK, BAD, OK], CircuitState::Closed),
        (&[BAD, OK, BAD], CircuitState::HalfOpen),
        (&[BAD, BAD, BAD], CircuitState::Open),
        (&[OK, BAD, BAD, BAD], CircuitState::Open),
    ] {
        let mut bench = Bench::new(&settings);
        bench.call(BAD).wait(30 * SECOND);
        let tickets: Vec<Ticket> = outcomes.iter().map(|_| bench.admit().expect("a slot")).collect();
        tickets.into_iter().zip(outcomes).for_each(|(ticket, outcome)| bench.settle(ticket, *outcome));
        assert_eq!(bench.state(), state, "{outcomes:?}");
    }
}

#[test]
fn stale_outcomes_decide_nothing() {
    let mut bench = Bench::new(&CircuitBreaker::consecutive(2));
    let (bad, good) = (bench.admit().expect("closed"), bench.admit().expect("closed"));
    bench.call(BAD).call(BAD);
    bench.settle(bad, BAD);
    bench.settle(good, OK);
    assert_eq!(bench.state(), CircuitState::Open);
    assert_eq!(bench.core.breakdown().get("bad"), Some(&2));

    // A trial that outlives its cycle is stale, too, and holds no slot of the next one.
    bench.wait(30 * SECOND);
    let old = bench.admit().expect("a trial");
    bench.hand(Hand::Open).wait(30 * SECOND);
    let new = bench.admit().expect("a trial of the next cycle");
    bench.settle(old, OK);
    assert_eq!(bench.state(), CircuitState::HalfOpen);
    bench.core.give_back(old);
    assert_eq!(bench.refused(), RefusalReason::TrialInFlight);
    bench.settle(new, OK);
    assert_eq!(bench.state(), CircuitState::Closed);

    // Nor does what was admitted before closing count in the new cycle.
    bench.settle(old, BAD);
    bench.settle(bad, BAD);
    bench.call(BAD);
    assert_eq!(bench.state(), CircuitState::Closed);
}

#[test]
fn an_admission_of_another_breaker_gives_back_no_slot() {
    let mut bench = Bench::new(&CircuitBreaker::consecutive(1));
    bench.call(BAD).wait(30 * SECOND);
    let trial = bench.admit().expect("a trial");
    bench.settle(Ticket { trial: false, ..trial }, OK);
    bench.core.give_back(Ticket { trial: false, ..trial });
    assert_eq!(bench.refused(), RefusalReason::TrialInFlight);
    bench.settle(trial, OK);
    bench.settle(Ticket { generation: 3, trial: true }, BAD);
    assert_eq!(bench.state(), CircuitState::Closed);
}

#[test]
fn the_cooldown_grows_with_each_reopening_in_a_row_and_starts_anew_after_closing() {
    let settings =
        CircuitBreaker::consecutive(1).cooldown(10 * SECOND).cooldown_backoff_with(|n| (n + 1) * 10 * SECOND);
    let mut bench = Bench::new(&settings);
    bench.call(BAD);
    for n in 1..5 {
        assert_eq!(bench.refused(), cooling(n * 10 * SECOND));
        bench.wait(n * 10 * SECOND).call(BAD);
    }
    assert_eq!(bench.admit().expect_err("open").failures, 5, "one, and four trials");
    bench.wait(50 * SECOND).call(OK).call(BAD);
    assert_eq!(bench.refused(), cooling(10 * SECOND));
}

#[test]
fn a_returned_slot_does_not_count_as_a_reopening() {
    let settings =
        CircuitBreaker::consecutive(1).cooldown(10 * SECOND).cooldown_backoff_with(|n| (n + 1) * 10 * SECOND);
    let mut bench = Bench::new(&settings);
    bench.call(BAD).wait(10 * SECOND).call(Outcome::Released).call(Outcome::Released);
    assert_eq!(bench.state(), CircuitState::HalfOpen);
    bench.call(BAD);
    assert_eq!(bench.refused(), cooling(20 * SECOND));
}

#[test]
fn the_recovery_ramp_admits_a_share_that_grows_from_one_call_to_all() {
    let mut bench = Bench::new(&CircuitBreaker::consecutive(1).recovery_ramp(100 * SECOND));
    bench.call(BAD).wait(30 * SECOND).call(OK);
    assert_eq!(bench.state(), CircuitState::Closed);
    let admitted: Vec<bool> = (0..100).map(|_| bench.wait(SECOND).admit().is_ok()).collect();
    let in_tenth = |n: usize| admitted[10 * n..10 * (n + 1)].iter().filter(|&&admitted| admitted).count();
    assert!(admitted[0]);
    assert_eq!((0..10).map(in_tenth).collect::<Vec<_>>(), [1, 2, 2, 4, 4, 6, 6, 8, 8, 10]);
    assert!((0..100).all(|_| bench.admit().is_ok()), "the ramp is over");
    assert!(bench.core.word().admits_all());
}

#[test]
fn a_call_refused_on_the_ramp_is_told_when_the_next_one_would_be_admitted() {
    let mut bench = Bench::new(&CircuitBreaker::consecutive(1).recovery_ramp(100 * SECOND));
    bench.call(BAD).wait(30 * SECOND).call(OK);
    bench.wait(10 * SECOND).admit().expect("the first"); // credit 0.1
    assert_eq!(bench.refused(), cooling(70 * SECOND)); // credit 0.2: a call at 80 s
    assert!(!bench.core.word().admits_all());
    bench.wait(69 * SECOND);
    let ahead = bench.core.word();
    assert_eq!(bench.refused(), cooling(Duration::ZERO), "had it come a second later; now the next will pass");
    assert!(bench.admit().is_ok());
    assert_eq!(bench.core.word(), ahead);
}

#[test]
fn failures_on_the_ramp_open_the_circuit_again() {
    let mut bench = Bench::new(&CircuitBreaker::consecutive(2).recovery_ramp(100 * SECOND));
    bench.call(BAD).call(BAD).wait(30 * SECOND).call(OK).wait(99 * SECOND).call(BAD);
    assert_eq!(bench.state(), CircuitState::Closed);
    bench.call(BAD);
    assert_eq!(bench.refused(), cooling(30 * SECOND));
}

#[test]
fn opened_by_hand_for_one_cooldown() {
    let mut bench = Bench::new(&CircuitBreaker::default());
    bench.hand(Hand::Open);
    assert_eq!(bench.admit().expect_err("open").failures, 0);
    assert_eq!(bench.wait(10 * SECOND).refused(), cooling(20 * SECOND));
    assert_eq!(bench.hand(Hand::Open).refused(), cooling(30 * SECOND), "again");
    bench.wait(30 * SECOND).call(OK);
    assert_eq!(bench.state(), CircuitState::Closed);
    assert_eq!(bench.changes.len(), 3, "opening what is open is no transition");
}

#[test]
fn opening_by_hand_does_not_shorten_a_longer_cooldown() {
    let mut bench = Bench::new(&CircuitBreaker::consecutive(1));
    bench.call(Outcome::Failure(FailureEvidence::new("busy").advised(90 * SECOND)));
    assert_eq!(bench.hand(Hand::Open).refused(), cooling(90 * SECOND));
}

#[test]
fn held_open_until_closed() {
    let mut bench = Bench::new(&CircuitBreaker::default());
    bench.hand(Hand::Hold).hand(Hand::Open);
    assert_eq!(bench.wait(10_000 * SECOND).refused(), RefusalReason::HeldOpen);
    assert_eq!(bench.admit().expect_err("held").to_string(), "circuit held open after 0 failures");
    bench.hand(Hand::Close).call(OK);
    bench.hand(Hand::Open).hand(Hand::Hold).wait(30 * SECOND);
    assert_eq!(bench.refused(), RefusalReason::HeldOpen);
    assert_eq!(bench.changes.len(), 3);
}

#[test]
fn closed_by_hand_all_that_was_counted_is_forgotten() {
    let mut bench = Bench::new(&CircuitBreaker::consecutive(2).recovery_ramp(100 * SECOND));
    bench.call(BAD).hand(Hand::Close).call(BAD);
    assert_eq!(bench.state(), CircuitState::Closed);
    bench.call(BAD).wait(30 * SECOND);
    let trial = bench.admit().expect("a trial");
    bench.hand(Hand::Close);
    bench.settle(trial, BAD);
    assert!(bench.core.breakdown().is_empty());
    bench.call(OK);
    assert!(matches!(bench.refused(), RefusalReason::CoolingDown { .. }), "the ramp follows any closing");
    bench.hand(Hand::Close).call(OK).call(OK);
    assert_eq!(bench.transitions().last(), Some(&(CircuitState::HalfOpen, CircuitState::Closed)));
}

#[test]
fn the_breakdown_counts_by_label_until_closed() {
    let mut bench = Bench::new(&CircuitBreaker::consecutive(3));
    let slow = Outcome::Failure(FailureEvidence::new("slow"));
    bench.call(BAD).call(slow).call(OK).call(BAD).call(BAD).call(BAD).wait(30 * SECOND).call(slow);
    assert_eq!(bench.core.breakdown(), &BTreeMap::from([("bad", 4), ("slow", 2)]));
    bench.wait(30 * SECOND).call(OK);
    assert!(bench.core.breakdown().is_empty());
}

#[test]
fn idle_is_what_has_nothing_to_say() {
    let idle = |bench: &mut Bench| bench.step(Core::is_idle);
    let mut bench = Bench::new(&CircuitBreaker::consecutive(2).recovery_ramp(SECOND));
    assert!(idle(bench.call(OK)));
    assert!(!idle(bench.call(BAD)));
    assert!(!idle(bench.call(OK)), "the breakdown is not empty");
    assert!(idle(bench.wait(FORGET_AFTER)));
    assert!(!idle(bench.call(BAD).call(BAD)));
    assert!(!idle(bench.wait(FORGET_AFTER)), "open");
    let trial = bench.admit().expect("a trial");
    assert!(!idle(&mut bench), "half-open");
    bench.settle(trial, OK);
    assert!(!idle(&mut bench), "on its ramp");
    assert!(idle(bench.wait(SECOND)));

    let mut rolling = Bench::new(&CircuitBreaker::rolling(64 * SECOND, 1, 0.5));
    assert!(!idle(rolling.call(OK)), "calls in the window are evidence");
    assert!(idle(rolling.wait(64 * SECOND)));
}

#[derive(Debug)]
struct Every3rd(Arc<Mutex<Vec<&'static str>>>);

impl Every3rd {
    fn note(&self, what: &'static str) -> usize {
        let mut log = self.0.lock().expect("whole");
        log.push(what);
        log.iter().filter(|w| **w == "failure").count()
    }
}

impl super::super::Tripping for Every3rd {
    fn on_success(&self, key: &str) {
        assert_eq!(key, "", "a panic is caught, but then this is not noted");
        self.note("success");
    }
    fn on_failure(&self, _: &str) -> bool {
        let n = self.note("failure");
        assert_ne!(n, 2, "on purpose: a panic does not open");
        n.is_multiple_of(3)
    }
    fn reset(&self, _: &str) {
        self.note("reset");
    }
    fn forget(&self, _: &str) {
        self.note("forget");
    }
}

#[test]
fn a_rule_of_ones_own_decides_and_hears_of_closed_calls_only() {
    let log = Arc::new(Mutex::default());
    let mut bench = Bench::new(&CircuitBreaker::tripping(Every3rd(Arc::clone(&log))));
    bench.call(OK).call(BAD).call(BAD).call(Outcome::Released);
    assert_eq!(bench.state(), CircuitState::Closed);
    bench.call(BAD);
    assert_eq!(bench.admit().expect_err("open").failures, 3);
    bench.wait(30 * SECOND).call(BAD).wait(30 * SECOND).call(OK);
    assert_eq!(bench.state(), CircuitState::Closed);
    let heard = log.lock().expect("whole").clone();
    assert_eq!(heard, ["success", "failure", "failure", "failure", "reset"]);
}

#[derive(Clone, Debug)]
enum Op {
    Admit,
    Settle(usize, u8),
    Wait(u64),
    ByHand(u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Admit),
        4 => (any::<usize>(), 0u8..4).prop_map(|(i, outcome)| Op::Settle(i, outcome)),
        2 => (0u64..40).prop_map(Op::Wait),
        1 => (0u8..8).prop_map(Op::ByHand),
    ]
}

proptest! {
    #[test]
    fn never_more_trials_out_than_probes_and_every_slot_comes_back(
        ops in prop::collection::vec(op(), 1..300), probes in 1u32..5, ratio in 0.01f64..=1.0, rolling: bool, ramp: bool,
    ) {
        let settings = if rolling {
            CircuitBreaker::rolling(60 * SECOND, 3, 0.5)
        } else {
            CircuitBreaker::consecutive(3)
        };
        let settings = settings.half_open_probes(probes).half_open_success_ratio(ratio);
        let settings = settings.cooldown_backoff(2.0, 100 * SECOND);
        let settings = if ramp { settings.recovery_ramp(20 * SECOND) } else { settings };
        let mut bench = Bench::new(&settings);
        let mut out: Vec<Ticket> = Vec::new();
        for op in ops {
            let (state, generation) = (bench.state(), bench.core.generation);
            match op {
                Op::Admit => match bench.admit() {
                    Ok(ticket) => {
                        prop_assert_eq!(ticket.trial, bench.state() == CircuitState::HalfOpen);
                        prop_assert_eq!(ticket.generation, bench.core.generation);
                        out.push(ticket);
                    }
                    Err(refusal) => {
                        prop_assert!(state != CircuitState::Closed || ramp);
                        if let RefusalReason::CoolingDown { remaining } = refusal.reason {
                            prop_assert!(remaining <= 100 * SECOND);
                        }
                    }
                },
                Op::Settle(i, outcome) if !out.is_empty() => {
                    let ticket = out.swap_remove(i % out.len());
                    bench.settle(ticket, [OK, BAD, BAD, Outcome::Released][usize::from(outcome)]);
                    if ticket.generation != generation {
                        prop_assert_eq!(bench.core.generation, generation, "stale outcomes decide nothing");
                    }
                }
                Op::Wait(seconds) => { bench.wait(Duration::from_secs(seconds)); }
                Op::ByHand(0) => { bench.hand(Hand::Open); }
                Op::ByHand(1) => { bench.hand(Hand::Hold); }
                Op::ByHand(2..4) => { bench.hand(Hand::Close); }
                Op::Settle(..) | Op::ByHand(_) => {}
            }
            let trials = out.iter().filter(|t| t.trial && t.generation == bench.core.generation).count();
            if let Phase::HalfOpen(t) = &bench.core.phase {
                prop_assert_eq!(t.out as usize, trials);
                prop_assert!(t.started() <= probes);
            }
            prop_assert!(trials <= probes as usize);
        }
        // However it went: once all is given back and the cooldown is over, a trial or a call is admitted.
        for ticket in std::mem::take(&mut out) {
            bench.core.give_back(ticket);
        }
        bench.wait(1_000 * SECOND);
        let held = matches!(bench.core.phase, Phase::Open { until: None });
        prop_assert_eq!(bench.admit().is_err(), held);
    }

    #[test]
    fn an_open_circuit_admits_nothing_before_its_base_cooldown(
        seed: u64, multiplier in 1.0f64..5.0, fails in 1usize..20, early in 0u64..9_999,
    ) {
        let settings = CircuitBreaker::consecutive(1).cooldown(10 * SECOND).cooldown_backoff(multiplier, 60 * SECOND);
        let rules = settings.rules(Random::seeded(seed)).expect("valid");
        let mut bench = Bench::new(&settings);
        bench.core = Core::new(Arc::new(rules), None, bench.now);
        bench.call(BAD);
        for _ in 0..fails {
            let RefusalReason::CoolingDown { remaining } = bench.refused() else { panic!("open") };
            prop_assert!(10 * SECOND <= remaining && remaining <= 60 * SECOND);
            let until = bench.now + remaining;
            bench.now += Duration::from_millis(early);
            prop_assert!(bench.admit().is_err());
            bench.now = until;
            bench.call(BAD);
        }
    }
}
