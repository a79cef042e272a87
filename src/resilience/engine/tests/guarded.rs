//! Circuit, budget and limiter: asked at the right time, and given back what was not used.

use super::*;
use crate::resilience::{Aimd, CircuitBreaker, LimitReason, RetryBudgetState, SharedBudget};

// The circuit

#[tokio::test(start_paused = true)]
async fn a_refused_run_asks_neither_limiter_nor_budget_and_sends_nothing() {
    let breaker = CircuitBreaker::default().build().expect("valid");
    breaker.hold_open();
    let limiter = RateLimit::new().requests_per_minute(60).build().expect("valid");
    let budget = budget(0, 1.0);
    let failed = Bench::new(1).breaker(&breaker).limiter(&limiter).budget(&budget).fail(Run::default(), []).await;
    assert!(matches!(failed.stop, Stop::Circuit(refusal) if refusal.reason == RefusalReason::HeldOpen));
    assert_eq!((failed.tried.len(), failed.sent), (0, false));
    assert_eq!((limiter.state().requests_remaining, budget.state().attempts), (Some(60), 0));
}

#[tokio::test(start_paused = true)]
async fn a_run_is_admitted_once_however_often_it_tries() {
    let fleet = Arc::new(Fleet::default());
    let limiter = exhausted(RateLimit::new()).await;
    let bench = Bench::new(2).fleet(&fleet).limiter(&limiter);
    let (_, lease) = bench.run(Run::default(), &mut Script::new([BUSY, BUSY, DONE])).await.expect("done");
    lease.succeed(None);
    assert_eq!((fleet.admits.load(SeqCst), fleet.labels()), (1, vec!["(success)"]));
}

#[tokio::test(start_paused = true)]
async fn the_circuit_is_that_of_the_model() {
    let breaker = CircuitBreaker::consecutive(1).isolate_by_model(true).build().expect("valid");
    let bench = Bench::new(0).breaker(&breaker);
    bench.fail(Run { key: "small", ..Run::default() }, [BUSY]).await;
    assert_eq!((breaker.state_for("small"), breaker.state_for("large")), (CircuitState::Open, CircuitState::Closed));
}

#[tokio::test(start_paused = true)]
async fn after_the_queue_the_circuit_is_asked_again_where_that_is_configured() {
    for recheck in [true, false] {
        let breaker = CircuitBreaker::default().recheck(recheck).build().expect("valid");
        let limiter = exhausted(RateLimit::new()).await;
        let bench = Bench::new(0).breaker(&breaker).limiter(&limiter);
        let mut op = Script::new([DONE]);
        let (ran, ()) = tokio::join!(bench.run(Run::default(), &mut op), async { breaker.open() });
        match ran {
            Ok((_, lease)) => lease.succeed(None),
            Err(failed) => {
                assert!(matches!(failed.stop, Stop::Circuit(_)), "{:?}", failed.stop);
                assert_eq!(limiter.state().requests_remaining, Some(1), "the request came back");
            }
        }
        assert_eq!(op.attempts() == 0, recheck);
        assert_eq!(limiter.state().in_flight, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_wait_for_a_retry_the_circuit_is_asked_again_where_that_is_configured() {
    for recheck in [true, false] {
        let breaker = CircuitBreaker::default().recheck(recheck).build().expect("valid");
        let budget = budget(0, 1.0);
        let bench = Bench::new(1).breaker(&breaker).budget(&budget);
        let mut op = Script::new([BUSY, DONE]);
        let (ran, ()) = tokio::join!(bench.run(Run::default(), &mut op), async { breaker.open() });
        match ran {
            Ok((_, lease)) => lease.succeed(None),
            Err(failed) => {
                assert!(matches!(failed.stop, Stop::Circuit(_)), "{:?}", failed.stop);
                assert_eq!(failed.tried.len(), 1, "what was tried is kept");
            }
        }
        let retries = u64::from(!recheck);
        assert_eq!(budget.state(), RetryBudgetState::new(1 + retries, retries), "a retry not sent is given back");
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_not_waited_is_not_asked_again() {
    let fleet = Arc::new(Fleet { recheck: true, ..Fleet::default() });
    let limiter = RateLimit::new().requests_per_minute(60).build().expect("valid");
    let bench = Bench::new(1).fleet(&fleet).limiter(&limiter);
    bench.run(Run::default(), &mut Script::new([DONE])).await.expect("done").1.succeed(None);
    assert_eq!(fleet.admits.load(SeqCst), 1);
    bench.run(Run::default(), &mut Script::new([BUSY, DONE])).await.expect("done").1.succeed(None);
    assert_eq!(fleet.admits.load(SeqCst), 3);
    // The admission that was replaced says nothing.
    assert_eq!(fleet.labels(), ["(success)", "(released)", "(success)"]);
}

#[tokio::test(start_paused = true)]
async fn a_trial_makes_one_attempt_and_says_that_it_is_one() {
    let breaker = CircuitBreaker::consecutive(1).cooldown(SECOND).build().expect("valid");
    let bench = Bench::new(3).breaker(&breaker);
    breaker.open();
    tokio::time::advance(SECOND).await;
    let mut op = Script::new([BUSY]);
    let failed = bench.run(Run::default(), &mut op).await.expect_err("busy");
    assert_eq!((failed.stop, failed.tried.len(), breaker.state()), (Stop::UsedUp, 1, CircuitState::Open));
    assert_eq!(op.notes(), ["0 started 0", "0 trial", "0 failed 0 busy"]);
    tokio::time::advance(SECOND).await;
    bench.run(Run::default(), &mut Script::new([DONE])).await.expect("done").1.succeed(None);
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_trial_does_not_queue_and_gives_its_slot_back() {
    let breaker = CircuitBreaker::default().cooldown(SECOND).build().expect("valid");
    breaker.open();
    tokio::time::advance(SECOND).await;
    let limiter = exhausted(RateLimit::new()).await;
    let bench = Bench::new(3).breaker(&breaker).limiter(&limiter);
    let start = Instant::now();
    let failed = bench.fail(Run::default(), []).await;
    assert!(matches!(failed.stop, Stop::Limit(refusal) if refusal.reason == LimitReason::QueueFull));
    assert_eq!((start.elapsed(), breaker.state()), (Duration::ZERO, CircuitState::HalfOpen));
    tokio::time::advance(SECOND).await;
    bench.run(Run::default(), &mut Script::new([DONE])).await.expect("the slot is free").1.succeed(None);
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_did_not_wait_is_not_asked_again() {
    let fleet = Arc::new(Fleet { recheck: true, tries: AtomicBool::new(true), ..Fleet::default() });
    Bench::new(3).fleet(&fleet).fail(Run::default(), [BUSY]).await;
    assert_eq!((fleet.admits.load(SeqCst), fleet.labels()), (1, vec!["busy"]));
}

// The budget

#[tokio::test(start_paused = true)]
async fn first_attempts_and_retries_are_in_the_books() {
    let budget = budget(0, 1.0);
    let bench = Bench::new(3).budget(&budget);
    bench.run(Run::default(), &mut Script::new([DONE])).await.expect("done").1.succeed(None);
    assert_eq!(budget.state(), RetryBudgetState::new(1, 0));
    bench.run(Run::default(), &mut Script::new([BUSY, BUSY, DONE])).await.expect("done").1.succeed(None);
    assert_eq!(budget.state(), RetryBudgetState::new(4, 2));
}

#[tokio::test(start_paused = true)]
async fn the_first_attempt_is_in_the_books_while_it_runs_and_not_before_its_turn() {
    let budget = budget(0, 1.0);
    let limiter = exhausted(RateLimit::new()).await;
    let bench = Bench::new(3).budget(&budget).limiter(&limiter);
    let mut op = Script::new([DONE.after(SECOND)]);
    let looks = async {
        sleep(ms(999)).await;
        assert_eq!(budget.state().attempts, 0);
        sleep(ms(2)).await;
        assert_eq!(budget.state().attempts, 1);
    };
    let (ran, ()) = tokio::join!(bench.run(Run::default(), &mut op), looks);
    ran.expect("done").1.succeed(None);
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_was_not_sent_is_given_back() {
    let budget = budget(0, 1.0);
    let bench = Bench::new(3).budget(&budget);
    let first_only = RetryBudgetState::new(1, 0);

    // Cancelled in its wait, and dropped in it.
    let token = cancel_after(ms(500));
    bench.fail(cancelled_by(&token), [BUSY]).await;
    assert_eq!(budget.state(), first_only);
    tokio::time::advance(61 * SECOND).await;
    let mut op = Script::new([BUSY]);
    let outer = tokio::time::timeout(ms(500), bench.run(Run::default(), &mut op)).await;
    assert!(outer.is_err());
    assert_eq!(budget.state(), first_only);

    // Made, but its connection was refused: it stays, or nothing would hold the retries back when a target is down.
    tokio::time::advance(61 * SECOND).await;
    bench.fail(Run::default(), [BUSY, WRONG.unsent()]).await;
    assert_eq!(budget.state(), RetryBudgetState::new(2, 1));

    // Begun, but nothing had left when the deadline or a cancel cut it off.
    tokio::time::advance(61 * SECOND).await;
    bench.fail(by_deadline(10 * SECOND), [BUSY, HANGS.unsent()]).await;
    assert_eq!(budget.state(), first_only);
    tokio::time::advance(61 * SECOND).await;
    let token = cancel_after(10 * SECOND);
    bench.fail(cancelled_by(&token), [BUSY, HANGS.unsent()]).await;
    assert_eq!(budget.state(), first_only);

    // Refused by the limiter after its wait.
    tokio::time::advance(61 * SECOND).await;
    let limiter = RateLimit::new().requests_per_minute(1).max_queue_len(0).build().expect("valid");
    let failed = Bench::new(3).budget(&budget).limiter(&limiter).fail(Run::default(), [BUSY]).await;
    assert!(matches!(failed.stop, Stop::Limit(_)));
    assert_eq!(budget.state(), first_only);
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_could_not_be_sent_stays_in_the_books() {
    let budget = budget(0, 1.0);
    // The connection was refused, or not even that.
    for step in [WRONG.unsent(), HANGS.unsent()] {
        Bench::new(1).timeout(SECOND).budget(&budget).fail(Run::default(), [BUSY, step]).await;
        assert_eq!(budget.state(), RetryBudgetState::new(2, 1));
        tokio::time::advance(61 * SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_was_sent_and_dropped_stays_in_the_books() {
    let budget = budget(0, 1.0);
    let mut op = Script::new([BUSY, HANGS]);
    let bench = Bench::new(3).budget(&budget);
    let outer = tokio::time::timeout(5 * SECOND, bench.run(Run::default(), &mut op)).await;
    assert!(outer.is_err());
    assert_eq!(budget.state(), RetryBudgetState::new(2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_in_the_books_from_the_decision_on() {
    let budget = budget(0, 0.1);
    let bench = Bench::new(3).budget(&budget);
    let (mut one, mut other) = (Script::new([BUSY, DONE]), Script::new([BUSY]));
    let (first, second) = tokio::join!(bench.run(Run::default(), &mut one), bench.run(Run::default(), &mut other));
    first.expect("a retry is allowed").1.succeed(None);
    assert_eq!(second.expect_err("while the other one still waits").stop, Stop::Budget);
}

/// A budget of which asking takes a minute.
#[derive(Debug)]
struct SlowBudget;

impl SharedBudget for SlowBudget {
    fn record_first(&self) {}

    fn try_retry(&self) -> BoxFuture<'_, Option<u64>> {
        Box::pin(async {
            sleep(60 * SECOND).await;
            Some(0)
        })
    }

    fn give_back(&self, _: u64) {}

    fn state(&self) -> RetryBudgetState {
        RetryBudgetState::new(0, 0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_of_budgets_is_bounded_by_deadline_and_cancellation() {
    let fleet = Arc::new(Fleet::default());
    let bench = Bench::new(3).budget(&Budget::shared(Arc::new(SlowBudget))).fleet(&fleet);
    let start = Instant::now();
    let failed = bench.fail(by_deadline(5 * SECOND), [BUSY]).await;
    assert_eq!((failed.stop, failed.tried.len(), start.elapsed()), (Stop::Deadline, 1, 5 * SECOND));
    assert_eq!(failed.tried[0].next, Decision::Stop(Stop::Deadline));
    let token = cancel_after(SECOND);
    let failed = bench.fail(cancelled_by(&token), [BUSY]).await;
    assert_eq!((failed.stop, failed.tried.len(), start.elapsed()), (Stop::Cancelled, 1, 6 * SECOND));
    assert_eq!(fleet.labels(), ["busy", "busy"], "the failure is no less one");
}

// The limiter

#[tokio::test(start_paused = true)]
async fn what_the_limiter_never_lets_through_is_refused_at_once() {
    let limiter = RateLimit::new().tokens_per_minute(100).build().expect("valid");
    let failed = Bench::new(1).limiter(&limiter).fail(Run { cost: 101, ..Run::default() }, []).await;
    assert!(matches!(failed.stop, Stop::Limit(refusal) if refusal.reason == LimitReason::Capacity));
    assert_eq!((failed.tried.len(), failed.sent), (0, false));
}

#[tokio::test(start_paused = true)]
async fn tokens_are_settled_by_what_is_known() {
    for (spent, step, left) in [
        (None, WRONG, 40),               // the estimate stays
        (Some(10), WRONG, 90),           // what was spent
        (Some(80), WRONG, 20),           // more than estimated
        (None, WRONG.unsent(), 100),     // nothing left
        (Some(10), WRONG.unsent(), 100), // whatever the operation says
    ] {
        let limiter = RateLimit::new().tokens_per_minute(100).requests_per_minute(60).build().expect("valid");
        let mut op = Script::new([step]);
        op.spent = spent;
        let bench = Bench::new(0).limiter(&limiter);
        let _ = bench.run(Run { cost: 60, ..Run::default() }, &mut op).await.expect_err("wrong");
        let state = limiter.state();
        assert_eq!((state.tokens_remaining, state.in_flight), (Some(left), 0));
        assert_eq!(state.requests_remaining, Some(if step.reach == Reach::Nothing { 60 } else { 59 }));
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_takes_a_permit() {
    let limiter = RateLimit::new().requests_per_minute(1_000).tokens_per_minute(1_000).build().expect("valid");
    let bench = Bench::new(2).retry(|retry| retry.base_delay(Duration::ZERO)).limiter(&limiter);
    let failed = bench.fail(Run { cost: 100, ..Run::default() }, [BUSY; 3]).await;
    assert_eq!(failed.tried.len(), 3);
    let state = limiter.state();
    assert_eq!((state.requests_remaining, state.tokens_remaining), (Some(997), Some(700)));
}

#[tokio::test(start_paused = true)]
async fn only_a_refusal_for_rate_slows_an_adaptive_limiter_down() {
    for throttled in [true, false] {
        let aimd = Aimd::new(1.0, 0.5, 10, 600);
        let limiter = RateLimit::new().requests_per_minute(600).aimd(aimd).build().expect("valid");
        let step = fails(Verdict { throttled, ..Verdict::permanent("limited") });
        Bench::new(0).limiter(&limiter).fail(Run::default(), [step]).await;
        assert_eq!(limiter.state().requests_remaining, Some(if throttled { 300 } else { 599 }));
    }
}

fn hint() -> LimitHint {
    LimitHint { requests_remaining: Some(5), ..LimitHint::default() }
}

#[tokio::test(start_paused = true)]
async fn the_providers_word_is_asked_for_and_followed_only_where_that_is_configured() {
    for follows in [true, false] {
        let limiter = RateLimit::new().requests_per_minute(600).follow_provider(follows).build().expect("valid");
        let mut op = Script::new([WRONG]);
        op.hint = Some(hint());
        let _ = Bench::new(0).limiter(&limiter).run(Run::default(), &mut op).await.expect_err("wrong");
        assert_eq!(op.asked_for_limits.load(SeqCst), u32::from(follows));
        assert_eq!(limiter.state().requests_remaining, Some(if follows { 5 } else { 599 }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_advised_with_a_refusal_for_rate_holds_all_others() {
    let refused = |wait| Verdict { throttled: true, ..advises(wait) };
    for (follows, verdict, holds) in [
        (true, refused(5 * SECOND), true),
        (true, refused(60 * SECOND), true),
        (true, refused(61 * SECOND), false), // longer than is worth honouring
        (true, advises(5 * SECOND), false),  // not for rate
        (true, Verdict { throttled: true, ..Verdict::transient("limited") }, false), // no wait
        (false, refused(5 * SECOND), false),
    ] {
        let limiter = RateLimit::new().requests_per_minute(600).follow_provider(follows).build().expect("valid");
        Bench::new(0).limiter(&limiter).fail(Run::default(), [fails(verdict)]).await;
        let wait = limiter.predicted_wait(0);
        let Advice::After(advised) = verdict.retry else {
            assert_eq!(wait, Duration::ZERO);
            continue;
        };
        assert_eq!(wait, if holds { advised } else { Duration::ZERO });
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_admitted_again_as_a_trial_makes_one_attempt_more() {
    let breaker = CircuitBreaker::default().cooldown(ms(500)).recheck(true).build().expect("valid");
    let bench = Bench::new(3).breaker(&breaker);
    let mut op = Script::new([BUSY, BUSY]);
    // While it waits a second to try again, the circuit opens, and cools down.
    let (ran, ()) = tokio::join!(bench.run(Run::default(), &mut op), async { breaker.open() });
    let failed = ran.expect_err("busy");
    assert_eq!((failed.stop, failed.tried.len(), breaker.state()), (Stop::UsedUp, 2, CircuitState::Open));
    assert!(op.notes().contains(&"1 trial".to_owned()));
}
