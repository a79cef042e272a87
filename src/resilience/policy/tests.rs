use super::*;
use crate::resilience::{Cause, CircuitState, Interrupt, Jitter, RefusalReason, Stop};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

fn fields(error: &ConfigError) -> Vec<&str> {
    error.problems().iter().map(|problem| problem.field.as_str()).collect()
}

async fn busy(_: AttemptInfo) -> Result<(), &'static str> {
    Err("busy")
}

async fn hang(_: AttemptInfo) -> Result<(), &'static str> {
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn by_default_any_error_is_tried_again_once() {
    let start = Instant::now();
    let error = Policy::new().seed(1).run(busy).await.expect_err("twice");
    assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::UsedUp), 2));
    assert!(start.elapsed() >= Duration::from_millis(250) && start.elapsed() <= Duration::from_millis(501));
    assert_eq!(error.into_operation(), Some("busy"));
}

#[tokio::test(start_paused = true)]
async fn by_default_an_attempt_has_two_minutes_and_a_run_has_no_end() {
    let start = Instant::now();
    let error = Policy::default().retry(Retry::none()).run(hang).await.expect_err("too long");
    assert!(matches!(error.attempts()[0].error, Cause::Interrupted(Interrupt::Timeout(_))));
    assert_eq!(start.elapsed(), 120 * SECOND);
    let slow = |_| async {
        sleep(3_600 * SECOND).await;
        Ok::<_, &str>(7)
    };
    assert_eq!(Policy::new().timeout(None).run(slow).await.expect("an hour later"), 7);
}

#[tokio::test(start_paused = true)]
async fn attempts_are_numbered_from_zero() {
    let seen = Mutex::new(Vec::new());
    let policy = Policy::new().retry(Retry::new(2));
    let run = policy.run(|info| {
        seen.lock().expect("whole").push((info.index, info.trial));
        async move { if info.index == 2 { Ok("third time lucky") } else { Err("busy") } }
    });
    assert_eq!(run.await.expect("the third"), "third time lucky");
    assert_eq!(*seen.lock().expect("whole"), [(0, false), (1, false), (2, false)]);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_that_of_the_whole_run() {
    let start = Instant::now();
    let policy = Policy::new().retry(Retry::new(9).base_delay(SECOND).jitter(Jitter::None)).timeout(SECOND);
    let error = policy.clone().deadline(Duration::from_millis(2_500)).run(hang).await.expect_err("too long");
    assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::Deadline), 2));
    assert!(matches!(error.attempts()[1].error, Cause::Interrupted(Interrupt::Deadline)));
    assert_eq!(start.elapsed(), Duration::from_millis(2_500));
    let error = policy.clone().deadline(Duration::ZERO).run(hang).await.expect_err("no time");
    assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::Deadline), 0));
    let error = policy.deadline(SECOND).deadline(None).run(busy).await.expect_err("busy");
    assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::UsedUp), 10));
}

#[tokio::test(start_paused = true)]
async fn a_token_cancels_every_run() {
    let token = CancellationToken::new();
    let policy = Policy::new().cancel_on(token.clone());
    let later = async {
        sleep(SECOND).await;
        token.cancel();
    };
    let (ran, ()) = tokio::join!(policy.run(hang), later);
    assert_eq!(ran.expect_err("cancelled").stop(), Some(Stop::Cancelled));
    let error = policy.run(hang).await.expect_err("cancelled before");
    assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::Cancelled), 0));
}

#[tokio::test(start_paused = true)]
async fn errors_mean_what_the_classifier_says() {
    let policy = Policy::new().retry(Retry::new(5)).classify(|error: &&str| match *error {
        "busy" => Verdict::transient("busy"),
        _ => Verdict::permanent("wrong"),
    });
    let run = policy.run(|info| async move { Err::<(), _>(if info.index < 2 { "busy" } else { "wrong" }) });
    let error = run.await.expect_err("wrong");
    assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::NotRetryable), 3));
}

#[tokio::test(start_paused = true)]
async fn a_classifier_set_last_keeps_what_was_set_before() {
    let token = CancellationToken::new();
    let told = Arc::new(AtomicU32::new(0));
    let policy = Policy::new()
        .retry(Retry::new(1).base_delay(SECOND).jitter(Jitter::None))
        .timeout(SECOND)
        .deadline(Duration::from_secs(10))
        .rate_limit(RateLimit::new().tokens_per_minute(100))
        .cost(|| 30)
        .cancel_on(token.clone())
        .on_retry({
            let told = told.clone();
            move |_| {
                told.fetch_add(1, SeqCst);
            }
        })
        .classify(|_: &&str| Verdict::transient("busy"));
    let start = Instant::now();
    let error = policy.run(hang).await.expect_err("too long");
    assert_eq!((error.attempts().len(), start.elapsed(), told.load(SeqCst)), (2, 3 * SECOND, 1));
    let left = policy.guards().limiter.as_ref().and_then(|limiter| limiter.state().tokens_remaining);
    assert_eq!(left, Some(45), "two attempts, and 3 s of refilling at 100 a minute");
    token.cancel();
    assert_eq!(policy.run(hang).await.expect_err("cancelled").stop(), Some(Stop::Cancelled));
    let late = Policy::new().deadline(Duration::ZERO).classify(|_: &&str| Verdict::transient("busy"));
    assert_eq!(late.run(hang).await.expect_err("late").stop(), Some(Stop::Deadline));
    assert!(Policy::new().timeout(Duration::ZERO).classify(|_: &&str| Verdict::transient("busy")).check().is_err());
}

#[tokio::test(start_paused = true)]
async fn the_cost_is_asked_once_a_run_and_is_one_without_it() {
    let asked = Arc::new(AtomicU32::new(0));
    let limits = RateLimit::new().tokens_per_minute(100_000);
    let policy = Policy::new().retry(Retry::new(2).base_delay(Duration::ZERO)).rate_limit(limits.clone());
    let left = |policy: &Policy| policy.guards().limiter.as_ref().and_then(|limiter| limiter.state().tokens_remaining);
    policy.run(busy).await.expect_err("busy");
    assert_eq!(left(&policy), Some(99_997));
    let policy = policy.rate_limit(limits).cost({
        let asked = asked.clone();
        move || {
            asked.fetch_add(1, SeqCst);
            100
        }
    });
    policy.run(busy).await.expect_err("busy");
    assert_eq!((left(&policy), asked.load(SeqCst)), (Some(99_700), 1));
}

#[tokio::test(start_paused = true)]
async fn each_retry_is_told_before_its_wait() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let start = Instant::now();
    let advice = |_: &&str| Verdict { retry: super::super::Advice::After(SECOND), ..Verdict::transient("limited") };
    let policy = Policy::new()
        .retry(Retry::new(2))
        .on_retry({
            let told = told.clone();
            move |notice| told.lock().expect("whole").push((start.elapsed(), *notice))
        })
        .classify(advice);
    policy.run(busy).await.expect_err("busy");
    let notice = |retry| RetryNotice { retry, max_retries: 2, delay: SECOND, advised: true, label: "limited" };
    assert_eq!(*told.lock().expect("whole"), [(Duration::ZERO, notice(1)), (SECOND, notice(2))]);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_waits() {
    async fn elapsed(seed: u64) -> Duration {
        let start = Instant::now();
        let retry = Retry::new(5).jitter(Jitter::Full);
        Policy::new().seed(seed).retry(retry).run(busy).await.expect_err("busy");
        start.elapsed()
    }
    assert_eq!(elapsed(7).await, elapsed(7).await);
    assert_ne!(elapsed(7).await, elapsed(8).await);
}

#[tokio::test(start_paused = true)]
async fn guards_can_be_read_and_are_shared_by_clones_and_by_whoever_is_given_them() {
    let policy = Policy::new()
        .retry(Retry::none())
        .circuit_breaker(CircuitBreaker::consecutive(1))
        .retry_budget(RetryBudget::new(SECOND, 1, 0.5))
        .rate_limit(RateLimit::new().requests_per_minute(60));
    let guards = policy.guards().clone();
    let (breaker, limiter) = (guards.breaker.expect("set"), guards.limiter.expect("set"));
    let other = Policy::new().circuit_breaker(breaker.clone()).rate_limit(limiter.clone());
    policy.clone().run(busy).await.expect_err("busy");
    assert_eq!((breaker.state(), limiter.state().requests_remaining), (CircuitState::Open, Some(59)));
    assert_eq!(guards.budget.expect("set").state().attempts, 1);
    for refused in [policy, other] {
        let error = refused.run(busy).await.expect_err("open");
        let Some(Stop::Circuit(refusal)) = error.stop() else { panic!("refused: {error:?}") };
        assert_eq!(refusal.reason, RefusalReason::CoolingDown { remaining: 30 * SECOND });
    }
}

#[tokio::test(start_paused = true)]
async fn success_is_recorded() {
    let policy = Policy::new().retry(Retry::none()).circuit_breaker(CircuitBreaker::consecutive(2));
    for _ in 0..5 {
        policy.run(busy).await.expect_err("busy");
        policy.run(|_| async { Ok::<_, &str>(()) }).await.expect("never twice in a row");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_run_is_a_hang_once_it_was_silent_for_long() {
    let policy = Policy::new().circuit_breaker(CircuitBreaker::consecutive(1));
    let breaker = policy.guards().breaker.clone().expect("set");
    assert!(tokio::time::timeout(Duration::from_millis(9_999), policy.run(hang)).await.is_err());
    assert_eq!(breaker.state(), CircuitState::Closed);
    assert!(tokio::time::timeout(10 * SECOND, policy.run(hang)).await.is_err());
    assert_eq!(breaker.state(), CircuitState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_policy_with_problems_names_them_all_and_runs_nothing() {
    let policy = Policy::new()
        .retry(Retry::new(1).factor(0.5).advised_jitter(2.0))
        .timeout(Duration::ZERO)
        .circuit_breaker(CircuitBreaker::consecutive(0))
        .retry_budget(RetryBudget::new(Duration::ZERO, 1, 0.5))
        .rate_limit(RateLimit::new().requests_per_minute(0));
    let expected = [
        "retry.factor",
        "retry.advised_jitter",
        "timeout",
        "circuit_breaker.tripping.consecutive",
        "retry_budget.window",
        "rate_limit.requests_per_minute",
    ];
    assert_eq!(fields(&policy.check().expect_err("six problems")), expected);
    let run = policy.run(|_| async { panic!("not run") as Result<(), &str> }).await;
    let Err(PolicyError::Config(error)) = run else { panic!("not run") };
    assert_eq!(fields(&error), expected);
    assert!(Policy::new().check().is_ok());
}

#[test]
fn a_setting_that_is_set_again_is_judged_by_what_it_is_now() {
    let wrong = Policy::new()
        .retry(Retry::new(1).factor(0.5))
        .timeout(Duration::ZERO)
        .retry_budget(RetryBudget::new(Duration::ZERO, 1, 0.5))
        .rate_limit(RateLimit::new().max_concurrent(0));
    let policy = wrong.clone().retry(Retry::none());
    assert_eq!(
        fields(&policy.check().expect_err("three are left")),
        ["timeout", "retry_budget.window", "rate_limit.max_concurrent"]
    );
    let policy = policy.timeout(SECOND).retry_budget(RetryBudget::new(SECOND, 1, 0.5)).rate_limit(RateLimit::new());
    assert!(policy.check().is_ok());
    let policy = wrong.retry(Retry::new(1).advised_jitter(2.0));
    assert_eq!(fields(&policy.check().expect_err("again"))[2..], ["rate_limit.max_concurrent", "retry.advised_jitter"]);
}

#[test]
fn it_shows_its_settings() {
    let shown = format!("{:?}", Policy::new().timeout(SECOND).deadline(2 * SECOND).classify(()));
    for part in ["Policy {", "max_retries: 1", "timeout: Some(1s)", "deadline: Some(2s)", "breaker: None", ".."] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}
