//! Every interleaving of a few threads. Only this crate is built with loom:
//! `cargo rustc --lib --profile test -- --cfg loom`, then the program it makes, with `interleavings` as its argument.

use super::*;
use crate::resilience::Random;
use crate::resilience::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
    lock,
};
use loom::thread;

const BAD: Outcome = Outcome::Failure(FailureEvidence::new("bad"));

fn built(settings: &CircuitBreaker, now: Instant) -> Breaker {
    settings.build_at(Random::seeded(1), now).expect("valid")
}

fn admit(breaker: &Breaker, now: Instant) -> Result<Admission, CircuitRefusal> {
    match breaker.admit_at("m", now) {
        Answer::Now(answer) => answer,
        Answer::Later(_) => panic!("a local breaker answers at once"),
    }
}

fn call(breaker: &Breaker, outcome: Outcome, now: Instant) {
    if let Ok(admission) = admit(breaker, now) {
        breaker.record_at(admission, outcome, now);
    }
}

/// The transitions told so far.
fn log(breaker: &Breaker) -> (Arc<Mutex<Vec<CircuitState>>>, ChangeSubscription) {
    let log = Arc::new(Mutex::new(vec![breaker.state()]));
    let sink = Arc::clone(&log);
    let subscription = breaker.observe(Arc::new(move |change| {
        let mut log = lock(&sink);
        assert_eq!(log.last(), Some(&change.from), "in order, none left out");
        log.push(change.to);
    }));
    (log, subscription)
}

#[test]
fn failures_of_two_threads_open_the_circuit_once() {
    loom::model(|| {
        let now = Instant::now();
        let breaker = built(&CircuitBreaker::consecutive(2), now);
        let (log, _subscription) = log(&breaker);
        let other = breaker.clone();
        let thread = thread::spawn(move || call(&other, BAD, now));
        call(&breaker, BAD, now);
        thread.join().expect("no panic");
        assert_eq!(*lock(&log), [CircuitState::Closed, CircuitState::Open]);
    });
}

#[test]
fn a_success_beside_a_failure_comes_before_it_or_after_it() {
    loom::model(|| {
        let now = Instant::now();
        let breaker = built(&CircuitBreaker::consecutive(2), now);
        call(&breaker, BAD, now);
        let other = breaker.clone();
        let thread = thread::spawn(move || call(&other, Outcome::Success, now));
        call(&breaker, BAD, now);
        thread.join().expect("no panic");
        // Either the success came first and one failure is left, or the second failure opened it.
        let left = breaker.state() == CircuitState::Closed;
        call(&breaker, BAD, now);
        assert_eq!(breaker.state(), CircuitState::Open, "success first: {left}");
    });
}

#[test]
fn one_trial_at_a_time_and_its_slot_comes_back() {
    loom::model(|| {
        let now = Instant::now();
        let breaker = built(&CircuitBreaker::consecutive(1).cooldown(Duration::ZERO), now);
        call(&breaker, BAD, now);
        let out = Arc::new(AtomicU64::new(0));
        let ask = move |breaker: &Breaker, out: &AtomicU64| {
            let Ok(trial) = admit(breaker, now) else { return };
            assert!(trial.is_trial());
            assert_eq!(out.fetch_add(1, Ordering::AcqRel), 0, "another trial is out");
            out.fetch_sub(1, Ordering::AcqRel);
            drop(trial);
        };
        let (other, others) = (breaker.clone(), Arc::clone(&out));
        let thread = thread::spawn(move || ask(&other, &others));
        ask(&breaker, &out);
        thread.join().expect("no panic");
        assert_eq!(breaker.state(), CircuitState::HalfOpen);
        call(&breaker, Outcome::Success, now);
        assert_eq!(breaker.state(), CircuitState::Closed, "the slots came back");
    });
}

#[test]
fn a_stale_outcome_never_decides_the_next_cycle() {
    loom::model(|| {
        let now = Instant::now();
        let breaker = built(&CircuitBreaker::consecutive(1).cooldown(Duration::ZERO), now);
        let early = admit(&breaker, now).expect("closed");
        call(&breaker, BAD, now);
        let other = breaker.clone();
        let thread = thread::spawn(move || other.record_at(early, BAD, now));
        call(&breaker, Outcome::Success, now); // the trial
        thread.join().expect("no panic");
        assert_eq!(breaker.state(), CircuitState::Closed);
    });
}

#[test]
fn transitions_of_two_threads_are_all_told_in_order() {
    loom::model(|| {
        let now = Instant::now();
        let breaker = built(&CircuitBreaker::consecutive(1), now);
        let (log, _subscription) = log(&breaker);
        let other = breaker.clone();
        let thread = thread::spawn(move || call(&other, BAD, now));
        breaker.by_hand(None, Hand::Close, now);
        breaker.by_hand(None, Hand::Open, now);
        thread.join().expect("no panic");
        assert_eq!(lock(&log).last(), Some(&breaker.state()), "nothing is left untold");
    });
}

#[test]
fn successes_ahead_of_the_lock_are_counted_once_in_their_own_cycle() {
    loom::model(|| {
        let now = Instant::now();
        let settings = CircuitBreaker::rolling(Duration::from_secs(3_600), 2, 1.0).cooldown(Duration::ZERO);
        let breaker = built(&settings, now);
        let early = admit(&breaker, now).expect("closed");
        let other = breaker.clone();
        let thread = thread::spawn(move || other.record_at(early, Outcome::Success, now));
        breaker.by_hand(None, Hand::Open, now);
        breaker.by_hand(None, Hand::Close, now);
        thread.join().expect("no panic");
        call(&breaker, BAD, now);
        assert_eq!(breaker.state(), CircuitState::Closed);
        call(&breaker, BAD, now);
        assert_eq!(breaker.state(), CircuitState::Open, "2 of 2: the early success is not among them");
    });
}
