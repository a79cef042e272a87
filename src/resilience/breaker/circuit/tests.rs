use super::*;
use crate::resilience::{CircuitBreaker, FailureEvidence, Random};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const BAD: Outcome = Outcome::Failure(FailureEvidence::new("bad"));

fn circuit(settings: &CircuitBreaker, now: Instant) -> Arc<Circuit> {
    let rules = settings.rules(Random::seeded(1)).expect("valid");
    Arc::new(Circuit::new(Arc::new(rules), Arc::default(), Some("small".into()), now))
}

/// Whether it is done while somebody holds the circuit's lock.
fn takes_no_lock(circuit: &Arc<Circuit>, what: impl FnOnce(&Circuit) + Send + 'static) -> bool {
    let held = lock(&circuit.core);
    let (done, told) = mpsc::channel();
    let other = Arc::clone(circuit);
    let thread = thread::spawn(move || {
        what(&other);
        let _ = done.send(());
    });
    let done = told.recv_timeout(Duration::from_secs(2)).is_ok();
    drop(held);
    thread.join().expect("no panic");
    done
}

#[test]
fn a_healthy_call_takes_no_lock() {
    let now = Instant::now();
    let rolling = CircuitBreaker::rolling(Duration::from_secs(64), 2, 0.5);
    for settings in [CircuitBreaker::consecutive(2), rolling] {
        let circuit = circuit(&settings, now);
        let later = now + Duration::from_millis(999); // in the window's first bucket
        assert!(takes_no_lock(&circuit, move |circuit| {
            let ticket = circuit.admit(now).expect("closed");
            circuit.settle(ticket, Outcome::Success, || later);
            circuit.settle(ticket, Outcome::Released, || later);
        }));
    }
}

#[test]
fn a_stale_outcome_takes_no_lock() {
    let now = Instant::now();
    let circuit = circuit(&CircuitBreaker::consecutive(2), now);
    let ticket = circuit.admit(now).expect("closed");
    circuit.by_hand(Hand::Open, now);
    assert!(takes_no_lock(&circuit, move |circuit| circuit.settle(ticket, BAD, || now)));
}

#[test]
fn it_shows_its_model_and_state() {
    let circuit = circuit(&CircuitBreaker::default(), Instant::now());
    assert_eq!(format!("{circuit:?}"), r#"Circuit { key: Some("small"), state: Closed, .. }"#);
}
