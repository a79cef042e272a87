use super::*;
use crate::resilience::breaker::admission::Ticket;
use futures_core::future::BoxFuture;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const SECOND: Duration = Duration::from_secs(1);
const BAD: Outcome = Outcome::Failure(FailureEvidence::new("bad"));

fn built(settings: &CircuitBreaker) -> Breaker {
    settings.build_with(crate::resilience::Random::seeded(1)).expect("valid")
}

fn admit(breaker: &Breaker, key: &str, now: Instant) -> Result<Admission, CircuitRefusal> {
    match breaker.admit_at(key, now) {
        Answer::Now(answer) => answer,
        Answer::Later(_) => panic!("a local breaker answers at once"),
    }
}

fn call(breaker: &Breaker, key: &str, outcome: Outcome) {
    let now = Instant::now();
    let admission = admit(breaker, key, now).expect("admitted");
    breaker.record_at(admission, outcome, now);
}

/// Collects the transitions, as `key from to`.
fn log(breaker: &Breaker) -> (Arc<Mutex<Vec<String>>>, ChangeSubscription) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&log);
    let subscription = breaker.observe(Arc::new(move |change: &CircuitChange| {
        let CircuitChange { key, from, to, failures, .. } = change;
        let key = key.as_deref().unwrap_or("-");
        sink.lock().expect("whole").push(format!("{key} {from:?} {to:?} {failures}"));
    }));
    (log, subscription)
}

fn taken(log: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut log.lock().expect("whole"))
}

#[tokio::test(start_paused = true)]
async fn opens_cools_down_and_closes_on_tokios_clock() {
    let breaker = built(&CircuitBreaker::consecutive(2).cooldown(10 * SECOND));
    for _ in 0..2 {
        let admission = breaker.admit("m").await.expect("closed");
        assert!(!admission.is_trial());
        breaker.record(admission, BAD);
    }
    assert_eq!((breaker.state(), breaker.state_for("m")), (CircuitState::Open, CircuitState::Open));
    let refusal = breaker.admit("m").await.expect_err("open");
    assert_eq!(refusal.retry_after(), Some(10 * SECOND));
    tokio::time::advance(10 * SECOND).await;
    assert_eq!(breaker.state(), CircuitState::Open, "until somebody asks");
    let trial = breaker.admit("m").await.expect("a trial");
    assert!(trial.is_trial());
    breaker.record(trial, Outcome::Success);
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn who_asks_whether_it_is_shut_takes_no_trial() {
    for settings in [CircuitBreaker::consecutive(1), CircuitBreaker::consecutive(1).isolate_by_model(true)] {
        let breaker = built(&settings.cooldown(10 * SECOND));
        assert!(breaker.shut("m", Instant::now).is_none(), "closed, or not known");
        call(&breaker, "m", BAD);
        assert_eq!(breaker.shut("m", Instant::now), breaker.admit("m").await.err());
        tokio::time::advance(10 * SECOND).await;
        assert!(breaker.shut("m", Instant::now).is_none(), "somebody may try");
        assert_eq!(breaker.state_for("m"), CircuitState::Open);
        let trial = breaker.admit("m").await.expect("nobody has taken it");
        assert!(trial.is_trial() && breaker.shut("m", Instant::now).is_none(), "whoever asks is told of the trial");
        breaker.record(trial, Outcome::Success);
        breaker.hold_open_for("m");
        assert_eq!(breaker.shut("m", Instant::now).map(|refusal| refusal.reason), Some(RefusalReason::HeldOpen));
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_trial_gives_its_slot_back_and_a_dropped_admission_is_nothing() {
    let breaker = built(&CircuitBreaker::consecutive(1));
    drop(breaker.admit("m").await.expect("closed"));
    assert_eq!(breaker.state(), CircuitState::Closed);
    call(&breaker, "m", BAD);
    tokio::time::advance(30 * SECOND).await;
    let trial = breaker.admit("m").await.expect("a trial");
    assert_eq!(breaker.admit("m").await.expect_err("out").reason, RefusalReason::TrialInFlight);
    drop(trial);
    let trial = breaker.admit("m").await.expect("the slot came back");
    breaker.record(trial, Outcome::Released);
    assert_eq!(breaker.state(), CircuitState::HalfOpen);
    call(&breaker, "m", Outcome::Success);
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[test]
fn an_admission_of_a_closed_circuit_is_small_and_can_be_sent() {
    fn sent<T: Send + Sync>(_: &T) {}
    let breaker = built(&CircuitBreaker::default());
    let admission = admit(&breaker, "m", Instant::now()).expect("closed");
    sent(&admission);
    assert!(matches!(admission.0, Held::Free(_)));
    assert!(size_of::<Admission>() <= 32 && size_of::<CircuitRefusal>() <= 80);
}

#[test]
fn clones_share_the_circuit_and_another_build_does_not() {
    let settings = CircuitBreaker::consecutive(1).recheck(true).hang_evidence(SECOND);
    let breaker = built(&settings);
    let (clone, other) = (breaker.clone(), built(&settings));
    assert!(clone.recheck());
    assert_eq!(clone.hang_evidence(), Some(SECOND));
    call(&clone, "m", BAD);
    assert_eq!((breaker.state(), other.state()), (CircuitState::Open, CircuitState::Closed));
}

#[test]
fn without_isolation_the_model_does_not_matter() {
    let breaker = built(&CircuitBreaker::consecutive(2));
    call(&breaker, "a", BAD);
    call(&breaker, "b", BAD);
    assert!(admit(&breaker, "c", Instant::now()).is_err());
    assert_eq!(breaker.failure_breakdown_for("d"), BTreeMap::from([("bad", 2)]));
    breaker.close_for("e");
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[test]
fn successes_count_in_a_rolling_window_until_they_leave_it() {
    let breaker = built(&CircuitBreaker::rolling(64 * SECOND, 2, 0.5));
    let start = Instant::now();
    let at = |seconds: u32, outcome| {
        let now = start + seconds * SECOND;
        breaker.record_at(admit(&breaker, "m", now).expect("closed"), outcome, now);
        breaker.state()
    };
    (0..3).for_each(|_| assert_eq!(at(1, Outcome::Success), CircuitState::Closed));
    assert_eq!(at(1, BAD), CircuitState::Closed); // 1 of 4
    (0..2).for_each(|_| assert_eq!(at(60, Outcome::Success), CircuitState::Closed));
    assert_eq!(at(66, BAD), CircuitState::Closed); // 1 of 3: the first four have left the window
    assert_eq!(at(66, BAD), CircuitState::Open); // 2 of 4
}

#[test]
fn a_success_that_is_overtaken_by_a_transition_does_not_count_in_the_next_cycle() {
    let breaker = built(&CircuitBreaker::rolling(3_600 * SECOND, 2, 1.0).cooldown(Duration::ZERO));
    let now = Instant::now();
    let overtaken = admit(&breaker, "m", now).expect("closed");
    call(&breaker, "m", BAD);
    call(&breaker, "m", BAD);
    call(&breaker, "m", Outcome::Success); // the trial
    breaker.record_at(overtaken, Outcome::Success, now);
    call(&breaker, "m", BAD);
    assert_eq!(breaker.state(), CircuitState::Closed);
    call(&breaker, "m", BAD);
    assert_eq!(breaker.state(), CircuitState::Open, "2 of 2");
}

#[test]
fn no_thread_loses_a_success() {
    let breaker = built(&CircuitBreaker::rolling(3_600 * SECOND, 1, 0.1));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for i in 0..9_000 {
                    // Some failures among them, so that the window is written at the same time.
                    call(&breaker, "m", if i % 100 == 99 { BAD } else { Outcome::Success });
                }
            });
        }
    });
    let failures = 360;
    let more = (1..36_000).find(|_| {
        call(&breaker, "m", BAD);
        breaker.state() == CircuitState::Open
    });
    // (failures + more) / (36,000 + more) >= 0.1
    assert_eq!(more, Some((36_000 - 10 * failures) / 9));
}

#[test]
fn by_hand() {
    let breaker = built(&CircuitBreaker::default());
    let (log, _subscription) = log(&breaker);
    breaker.open();
    breaker.hold_open();
    let refusal = admit(&breaker, "m", Instant::now() + 60 * SECOND).expect_err("held");
    assert_eq!(refusal.reason, RefusalReason::HeldOpen);
    breaker.close();
    breaker.close();
    breaker.hold_open_for("m");
    breaker.close_for("m");
    breaker.open_for("m");
    assert_eq!(taken(&log), ["- Closed Open 0", "- Open Closed 0"].repeat(3)[..5]);
}

#[test]
fn each_model_has_its_own_circuit_with_isolation() {
    let breaker = built(&CircuitBreaker::consecutive(2).isolate_by_model(true));
    let (log, _subscription) = log(&breaker);
    for outcome in [BAD, BAD] {
        call(&breaker, "a", outcome);
        call(&breaker, "b", Outcome::Success);
    }
    call(&breaker, "b", BAD);
    assert_eq!((breaker.state_for("a"), breaker.state_for("b")), (CircuitState::Open, CircuitState::Closed));
    assert_eq!((breaker.state_for("c"), breaker.state()), (CircuitState::Closed, CircuitState::Open));
    assert_eq!(breaker.failure_breakdown_for("a"), BTreeMap::from([("bad", 2)]));
    assert_eq!(breaker.failure_breakdown_for("c"), BTreeMap::new());
    assert_eq!(breaker.failure_breakdown(), BTreeMap::from([("bad", 3)]));
    breaker.close_for("a");
    assert_eq!(breaker.state(), CircuitState::Closed);
    breaker.hold_open_for("c");
    assert_eq!((breaker.state_for("c"), breaker.state_for("a")), (CircuitState::Open, CircuitState::Closed));
    assert_eq!(taken(&log), ["a Closed Open 2", "a Open Closed 2", "c Closed Open 0"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_done_by_hand_to_all_models_holds_for_later_ones() {
    let breaker = built(&CircuitBreaker::default().isolate_by_model(true));
    let (log, _subscription) = log(&breaker);
    let now = Instant::now();
    breaker.open();
    assert_eq!((breaker.state(), breaker.state_for("a")), (CircuitState::Open, CircuitState::Open));
    tokio::time::advance(10 * SECOND).await;
    let refusal = breaker.admit("a").await.expect_err("open");
    assert_eq!((refusal.retry_after(), refusal.opened_at), (Some(20 * SECOND), now));
    tokio::time::advance(20 * SECOND).await;
    assert_eq!(breaker.state_for("b"), CircuitState::Closed);
    assert!(!breaker.admit("b").await.expect("closed").is_trial());
    assert!(breaker.admit("a").await.expect("a trial").is_trial());
    assert_eq!(taken(&log), ["a Closed Open 0", "a Open HalfOpen 0"]);

    breaker.hold_open();
    breaker.open();
    tokio::time::advance(3_600 * SECOND).await;
    assert_eq!(breaker.admit("c").await.expect_err("held").reason, RefusalReason::HeldOpen);
    breaker.close_for("c");
    assert_eq!((breaker.state_for("c"), breaker.state_for("b")), (CircuitState::Closed, CircuitState::Open));
    breaker.close();
    assert_eq!(breaker.state(), CircuitState::Closed);
    assert!(breaker.admit("d").await.is_ok());
}

fn kept(breaker: &Breaker) -> usize {
    let Arm::ByKey(circuits) = &breaker.arm else { panic!("not isolated") };
    circuits.all().len()
}

#[derive(Debug, Default)]
struct Forgotten(Arc<Mutex<Vec<String>>>);

impl Tripping for Forgotten {
    fn on_success(&self, _: &str) {}
    fn on_failure(&self, key: &str) -> bool {
        key == "broken"
    }
    fn reset(&self, _: &str) {}
    fn forget(&self, key: &str) {
        self.0.lock().expect("whole").push(key.to_owned());
    }
}

#[test]
fn idle_models_are_forgotten_and_live_ones_are_not() {
    let rule = Forgotten::default();
    let forgotten = Arc::clone(&rule.0);
    let breaker = built(&CircuitBreaker::tripping(rule).isolate_by_model(true));
    call(&breaker, "failing", BAD);
    call(&breaker, "broken", BAD);
    let in_flight = admit(&breaker, "in flight", Instant::now()).expect("closed");
    for i in 0..10_000 {
        call(&breaker, &format!("passing {i}"), Outcome::Success);
    }
    assert!(kept(&breaker) <= 65, "{}", kept(&breaker));
    assert_eq!(breaker.state_for("broken"), CircuitState::Open);
    assert_eq!(breaker.failure_breakdown_for("failing"), BTreeMap::from([("bad", 1)]));
    breaker.record(in_flight, BAD);
    assert_eq!(breaker.failure_breakdown_for("in flight"), BTreeMap::from([("bad", 1)]), "not lost with its circuit");
    let forgotten = forgotten.lock().expect("whole");
    assert_eq!(forgotten.len() + kept(&breaker), 10_003);
    assert!(forgotten.iter().all(|key| key.starts_with("passing")));
}

#[test]
fn idle_models_are_looked_for_whenever_the_circuits_have_doubled() {
    let breaker = built(&CircuitBreaker::default().isolate_by_model(true));
    (0..64).for_each(|i| call(&breaker, &format!("failing {i}"), BAD));
    (0..64).for_each(|i| call(&breaker, &format!("passing {i}"), Outcome::Success));
    assert_eq!(kept(&breaker), 128, "looked for at the 65th, and not again so soon");
    call(&breaker, "one more", Outcome::Success);
    assert_eq!(kept(&breaker), 65);
}

#[test]
fn it_shows_its_models_and_their_states() {
    let breaker = built(&CircuitBreaker::default().isolate_by_model(true));
    breaker.open_for("small");
    assert!(format!("{breaker:?}").contains(r#"{"small": Open}"#), "{breaker:?}");
}

#[test]
fn a_model_closed_by_hand_stays_closed_while_the_others_are_held_open() {
    let breaker = built(&CircuitBreaker::default().isolate_by_model(true));
    breaker.hold_open();
    breaker.close_for("closed");
    for i in 0..200 {
        assert!(admit(&breaker, &format!("held {i}"), Instant::now()).is_err());
    }
    assert_eq!(breaker.state_for("closed"), CircuitState::Closed);
    breaker.close();
    (0..200).for_each(|i| call(&breaker, &format!("passing {i}"), Outcome::Success));
    assert!(kept(&breaker) <= 65, "{}", kept(&breaker));
}

#[test]
fn what_failed_long_ago_is_forgotten() {
    let breaker = built(&CircuitBreaker::default().isolate_by_model(true));
    (0..1_000).for_each(|i| call(&breaker, &format!("failing {i}"), BAD));
    assert_eq!(kept(&breaker), 1_000);
    let later = Instant::now() + 3_601 * SECOND;
    for i in 0..1_100 {
        breaker.record_at(admit(&breaker, &format!("new {i}"), later).expect("closed"), Outcome::Success, later);
    }
    assert!(kept(&breaker) <= 200, "{}", kept(&breaker));
}

#[test]
fn a_subscription_ends_when_it_is_dropped() {
    let breaker = built(&CircuitBreaker::default());
    let ((one, first), (two, _second)) = (log(&breaker), log(&breaker));
    breaker.open();
    drop(first);
    breaker.close();
    assert_eq!(taken(&one), ["- Closed Open 0"]);
    assert_eq!(taken(&two), ["- Closed Open 0", "- Open Closed 0"]);
}

#[test]
fn a_subscription_that_ends_takes_no_other_with_it() {
    let breaker = built(&CircuitBreaker::default());
    let (first, second, third) = (log(&breaker), log(&breaker), log(&breaker));
    drop(second.1);
    breaker.open();
    assert_eq!([&first.0, &second.0, &third.0].map(|log| taken(log).len()), [1, 0, 1]);
}

#[test]
fn a_subscription_may_outlive_its_breaker() {
    let breaker = built(&CircuitBreaker::default());
    let (_, subscription) = log(&breaker);
    drop(breaker);
    assert_eq!(format!("{subscription:?}"), "ChangeSubscription { .. }");
    drop(subscription);
}

#[test]
fn a_panicking_observer_harms_nothing() {
    let breaker = built(&CircuitBreaker::consecutive(1));
    let _panicking = breaker.observe(Arc::new(|_| panic!("on purpose")));
    let (log, _subscription) = log(&breaker);
    call(&breaker, "m", BAD);
    breaker.close();
    assert_eq!(taken(&log), ["- Closed Open 1", "- Open Closed 1"]);
}

#[test]
fn an_observer_may_use_the_breaker_and_still_hears_in_order() {
    let breaker = built(&CircuitBreaker::consecutive(1));
    let (inner, done) = (breaker.clone(), AtomicBool::new(false));
    let _closing = breaker.observe(Arc::new(move |change| {
        assert_eq!(inner.state(), change.to);
        if !done.swap(true, Ordering::Relaxed) {
            inner.close();
        }
    }));
    let (log, _subscription) = log(&breaker);
    call(&breaker, "m", BAD);
    assert_eq!(taken(&log), ["- Closed Open 1", "- Open Closed 1"]);
}

#[test]
fn a_slow_observer_holds_up_only_the_thread_that_tells() {
    let breaker = built(&CircuitBreaker::consecutive(1));
    let (entered, wait_entered) = std::sync::mpsc::channel();
    let (go, wait_go) = std::sync::mpsc::channel::<()>();
    let wait_go = Mutex::new(wait_go);
    let _slow = breaker.observe(Arc::new(move |_| {
        let _ = entered.send(());
        let _ = wait_go.lock().expect("whole").recv();
    }));
    let (log, _subscription) = log(&breaker);
    std::thread::scope(|scope| {
        scope.spawn(|| call(&breaker, "m", BAD));
        wait_entered.recv().expect("told");
        breaker.close(); // queued behind the slow one, and not waited for
        assert_eq!(breaker.state(), CircuitState::Closed);
        call(&breaker, "m", Outcome::Success);
        drop(go);
    });
    assert_eq!(taken(&log), ["- Closed Open 1", "- Open Closed 1"]);
}

#[derive(Debug, Default)]
struct Remote(Mutex<Vec<String>>);

impl Remote {
    fn note(&self, what: String) {
        self.0.lock().expect("whole").push(what);
    }
}

impl SharedBreaker for Remote {
    fn admit<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<SharedTicket, CircuitRefusal>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            if key == "closed" {
                return Ok(SharedTicket { id: 7, trial: true });
            }
            Err(CircuitRefusal::new(RefusalReason::TrialInFlight, Instant::now()))
        })
    }
    fn settle(&self, key: &str, ticket: SharedTicket, outcome: Outcome) {
        self.note(format!("{key} {} {outcome:?}", ticket.id));
    }
    fn state(&self, key: Option<&str>) -> CircuitState {
        key.map_or(CircuitState::HalfOpen, |_| CircuitState::Open)
    }
    fn failure_breakdown(&self, key: Option<&str>) -> BTreeMap<&'static str, u64> {
        BTreeMap::from([(key.map_or("all", |_| "one"), 1)])
    }
    fn open(&self, key: Option<&str>) {
        self.note(format!("open {key:?}"));
    }
    fn hold_open(&self, key: Option<&str>) {
        self.note(format!("hold {key:?}"));
    }
    fn close(&self, key: Option<&str>) {
        self.note(format!("close {key:?}"));
    }
    fn observe(&self, sink: ChangeSink) -> ChangeSubscription {
        sink(&CircuitChange::new(CircuitState::Closed, CircuitState::Open));
        ChangeSubscription::new(|| {})
    }
}

#[tokio::test]
async fn a_shared_breaker_is_asked_and_settled_once() {
    let remote = Arc::new(Remote::default());
    let breaker = Breaker::shared(remote.clone());
    let admission = breaker.admit("closed").await.expect("admitted");
    assert!(admission.is_trial());
    breaker.record(admission, Outcome::Success);
    drop(breaker.admit("closed").await.expect("admitted"));
    assert!(breaker.admit("open").await.is_err());
    assert_eq!(taken(&remote.0), ["closed 7 Success", "closed 7 Released"]);

    breaker.open();
    breaker.hold_open_for("m");
    breaker.close();
    assert_eq!(taken(&remote.0), ["open None", "hold Some(\"m\")", "close None"]);
    assert_eq!((breaker.state(), breaker.state_for("m")), (CircuitState::HalfOpen, CircuitState::Open));
    assert_eq!(breaker.failure_breakdown(), BTreeMap::from([("all", 1)]));
    assert_eq!(breaker.failure_breakdown_for("m"), BTreeMap::from([("one", 1)]));
    assert!(!breaker.recheck() && breaker.hang_evidence().is_none());
    let (log, _subscription) = log(&breaker);
    assert_eq!(taken(&log), ["- Closed Open 0"]);
}

#[test]
fn threads_never_hold_more_trials_than_probes_and_transitions_are_told_in_order() {
    const PROBES: usize = 3;
    for isolate in [false, true] {
        let settings = CircuitBreaker::consecutive(2).cooldown(Duration::ZERO).isolate_by_model(isolate);
        let breaker = built(&settings.half_open_probes(3).half_open_success_ratio(0.6));
        let (trials, most) = (Mutex::new(HashMap::<u64, usize>::new()), AtomicUsize::new(0));
        let told = Arc::new(Mutex::new(vec![CircuitState::Closed]));
        let (sink, telling) = (Arc::clone(&told), AtomicBool::new(false));
        let _subscription = breaker.observe(Arc::new(move |change| {
            assert!(!telling.swap(true, Ordering::SeqCst), "one at a time");
            let mut told = sink.lock().expect("whole");
            assert_eq!(told.last(), Some(&change.from));
            told.push(change.to);
            telling.store(false, Ordering::SeqCst);
        }));
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let (breaker, trials, most) = (&breaker, &trials, &most);
                scope.spawn(move || {
                    for i in 0..5_000u32 {
                        let now = Instant::now();
                        let Ok(admission) = admit(breaker, "m", now) else { continue };
                        if let Held::Local(LocalGuard { ticket: Ticket { generation, trial: true }, .. }) = admission.0
                        {
                            // Trials of earlier cycles may still be out, but they hold no slot of this one.
                            let out = |by: isize| {
                                let mut trials = trials.lock().expect("whole");
                                let out = trials.entry(generation).or_default();
                                *out = out.wrapping_add_signed(by);
                                *out
                            };
                            most.fetch_max(out(1), Ordering::SeqCst);
                            std::thread::yield_now();
                            out(-1);
                        }
                        match (i + thread) % 5 {
                            0 => drop(admission),
                            1 | 2 => breaker.record_at(admission, Outcome::Success, now),
                            _ => breaker.record_at(admission, BAD, now),
                        }
                    }
                });
            }
        });
        assert!(most.into_inner() <= PROBES);
        let told = told.lock().expect("whole");
        assert!(told.len() > 10, "{}", told.len());
        assert_eq!(told.last(), Some(&breaker.state_for("m")), "nothing is left untold");
        // All slots came back: the circuit can be brought to close.
        drop(told);
        for _ in 0..PROBES {
            call(&breaker, "m", Outcome::Success);
        }
        assert_eq!(breaker.state(), CircuitState::Closed);
    }
}
