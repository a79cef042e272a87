//! The same engine around any async operation.

use super::support::*;
use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::http::HeaderMap;
use steadfast::provider::{Failure, RulePack};
use steadfast::resilience::{
    Cause, CircuitBreaker, CircuitState, Decision, Interrupt, Policy, PolicyError, RateLimit, Retry, RetryBudget, Stop,
    Verdict,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// An error as some SDK would have it.
#[derive(Clone, Debug, Default, PartialEq)]
struct SdkError {
    status: u16,
    headers: HeaderMap,
    body: &'static str,
}

impl SdkError {
    fn of(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    fn after(status: u16, wait: &'static str) -> Self {
        let mut error = Self::of(status);
        error.headers.insert("retry-after", http::HeaderValue::from_static(wait));
        error
    }
}

impl fmt::Display for SdkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {}", self.status)
    }
}

impl Error for SdkError {}

fn verdict(error: &SdkError) -> Verdict {
    RulePack::openai().verdict(&Failure::answer(error.status, &error.headers, error.body.as_bytes()))
}

fn policy() -> Policy {
    Policy::new().retry(retries(3))
}

/// Fails so many times with this, then gives the number of the attempt.
async fn flaky(
    policy: &Policy<impl steadfast::resilience::Classify<SdkError>>,
    times: u32,
    with: SdkError,
) -> Result<u32, PolicyError<SdkError>> {
    policy
        .run(|attempt| {
            let with = with.clone();
            async move { if attempt.index < times { Err(with) } else { Ok(attempt.index) } }
        })
        .await
}

#[tokio::test(start_paused = true)]
async fn without_a_classifier_every_error_is_retried() {
    let start = Instant::now();
    assert_eq!(flaky(&policy(), 3, SdkError::of(400)).await.ok(), Some(3));
    assert_eq!(start.elapsed(), ms(700));
    let error = flaky(&policy(), 9, SdkError::of(400)).await.expect_err("used up");
    assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::UsedUp), 4));
}

#[tokio::test(start_paused = true)]
async fn a_rule_pack_classifies_the_errors_of_any_client() {
    let policy = policy().classify(verdict);
    let error = flaky(&policy, 9, SdkError::of(400)).await.expect_err("not retryable");
    assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::NotRetryable), 1));
    let start = Instant::now();
    assert_eq!(flaky(&policy, 1, SdkError::after(429, "7")).await.ok(), Some(1));
    assert_eq!(start.elapsed(), secs(7), "the advised wait");
    let quota = SdkError { body: r#"{"error":{"code":"insufficient_quota"}}"#, ..SdkError::of(429) };
    assert_eq!(flaky(&policy, 9, quota).await.expect_err("money").stop(), Some(Stop::NotRetryable));
    let error = flaky(&policy, 9, SdkError::after(429, "61")).await.expect_err("too long");
    assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::WaitTooLong), 1));
}

#[tokio::test(start_paused = true)]
async fn the_operations_own_error_comes_back_unchanged() {
    let policy = policy().classify(verdict);
    let sent = SdkError { body: "the words", ..SdkError::after(404, "5") };
    let error = flaky(&policy, 9, sent.clone()).await.expect_err("it fails");
    assert_eq!(error.to_string(), "not retryable after 1 attempt: status 404");
    let source = error.source().and_then(|source| source.downcast_ref::<SdkError>());
    assert_eq!(source, Some(&sent));
    assert_eq!(error.into_operation(), Some(sent));
}

#[tokio::test(start_paused = true)]
async fn attempts_tell_what_happened_and_what_was_decided() {
    let error = flaky(&policy().retry(retries(1)), 9, SdkError::of(500)).await.expect_err("used up");
    let decisions: Vec<_> = error.attempts().iter().map(|tried| tried.next).collect();
    assert_eq!(decisions, [Decision::Retry { after: ms(100), advised: false }, Decision::Stop(Stop::UsedUp)]);
    assert_eq!(error.to_string(), "retries used up after 2 attempts: status 500");
    assert!(matches!(&error.attempts()[0].error, Cause::Operation(SdkError { status: 500, .. })));
}

#[tokio::test(start_paused = true)]
async fn on_retry_is_called_before_each_wait() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&seen);
    let start = Instant::now();
    let policy = policy().classify(verdict).on_retry(move |notice| {
        let mut seen = keep.lock().expect("not poisoned");
        seen.push((start.elapsed(), notice.retry, notice.max_retries, notice.delay, notice.advised, notice.label));
    });
    let errors = [SdkError::of(500), SdkError::after(429, "2")];
    let outcome = policy
        .run(|attempt| {
            let error = errors.get(attempt.index as usize).cloned();
            async move { error.map_or(Ok(()), Err) }
        })
        .await;
    assert!(outcome.is_ok());
    let expected = [
        (Duration::ZERO, 1, 3, ms(100), false, "server_error"),
        (ms(100), 2, 3, secs(2), true, "provider_rate_limited"),
    ];
    assert_eq!(*seen.lock().expect("not poisoned"), expected);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_of_each_attempt_and_names_itself() {
    let policy = policy().retry(retries(1)).timeout(secs(2));
    let start = Instant::now();
    let error = policy.run(|_| std::future::pending::<Result<(), SdkError>>()).await.expect_err("it hangs");
    assert_eq!((start.elapsed(), error.stop(), error.attempts().len()), (secs(4) + ms(100), Some(Stop::UsedUp), 2));
    assert!(matches!(error.attempts()[1].error, Cause::Interrupted(Interrupt::Timeout(after)) if after == secs(2)));
    assert_eq!(error.to_string(), "retries used up after 2 attempts: timed out after 2s");
    assert!(error.source().is_none());
    assert_eq!(error.into_operation(), None, "its last attempt was cut off");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_run_and_keeps_the_history() {
    let policy = policy().retry(retries(9)).deadline(secs(3));
    let start = Instant::now();
    let error = policy
        .run(|attempt| async move {
            if attempt.index == 0 {
                return Err::<(), _>(SdkError::of(500));
            }
            std::future::pending().await
        })
        .await
        .expect_err("it hangs");
    assert_eq!((start.elapsed(), error.stop(), error.attempts().len()), (secs(3), Some(Stop::Deadline), 2));
    let at_once = Policy::new().deadline(Duration::ZERO);
    let error = flaky(&at_once, 0, SdkError::of(500)).await.expect_err("no time");
    assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::Deadline), 0));
    assert_eq!(error.to_string(), "deadline exceeded after 0 attempts");
    // A wait that does not fit is not slept.
    let policy = Policy::new().retry(retries(9)).deadline(secs(5)).classify(verdict);
    let start = Instant::now();
    let error = flaky(&policy, 9, SdkError::after(503, "5")).await.expect_err("no time");
    assert_eq!((start.elapsed(), error.stop()), (Duration::ZERO, Some(Stop::Deadline)));
    assert_eq!(error.into_operation().map(|error| error.status), Some(503));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_run_at_once() {
    let token = CancellationToken::new();
    let policy = policy().cancel_on(token.clone());
    let canceller = token.clone();
    tokio::spawn(async move {
        sleep(secs(1)).await;
        canceller.cancel();
    });
    let start = Instant::now();
    let error = policy.run(|_| std::future::pending::<Result<(), SdkError>>()).await.expect_err("cancelled");
    assert_eq!((start.elapsed(), error.stop()), (secs(1), Some(Stop::Cancelled)));
    let ran = AtomicU32::new(0);
    let error = policy
        .run(|_| {
            ran.fetch_add(1, SeqCst);
            async { Ok::<_, SdkError>(()) }
        })
        .await
        .expect_err("cancelled");
    assert_eq!((ran.load(SeqCst), error.attempts().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_budget_bounds_the_retries_of_all_runs() {
    let policy = policy().retry_budget(RetryBudget::new(secs(60), 10, 0.1));
    let made = AtomicU32::new(0);
    for _ in 0..100 {
        let error = policy
            .run(|_| {
                made.fetch_add(1, SeqCst);
                async { Err::<(), _>(SdkError::of(500)) }
            })
            .await
            .expect_err("it fails");
        assert!(matches!(error.stop(), Some(Stop::Budget | Stop::UsedUp)));
    }
    assert!(made.load(SeqCst) <= 100 * 10 / 9 + 10, "{made:?}");
    let state = policy.guards().budget.as_ref().expect("a budget").state();
    assert_eq!(state.attempts, u64::from(made.load(SeqCst)));
}

#[tokio::test(start_paused = true)]
async fn a_breaker_opens_refuses_and_gives_a_dropped_trial_back() {
    let policy = Policy::new().retry(retries(3)).circuit_breaker(CircuitBreaker::consecutive(2));
    for _ in 0..2 {
        assert!(flaky(&policy, 9, SdkError::of(500)).await.is_err());
    }
    let error = flaky(&policy, 0, SdkError::of(500)).await.expect_err("open");
    let Some(Stop::Circuit(refusal)) = error.stop() else { panic!("{error}") };
    assert_eq!((refusal.failures, refusal.last_label, refusal.retry_after()), (2, Some("unknown"), Some(secs(30))));
    assert!(error.to_string().starts_with("circuit cooling down for 30.0s"), "{error}");
    sleep(secs(30)).await;
    let dropped = timeout(ms(10), policy.run(|_| std::future::pending::<Result<(), SdkError>>())).await;
    assert!(dropped.is_err());
    let info = Mutex::new(Vec::new());
    let outcome = policy
        .run(|attempt| {
            info.lock().expect("not poisoned").push(attempt.trial);
            async { Ok::<_, SdkError>(()) }
        })
        .await;
    assert!(outcome.is_ok());
    assert_eq!(*info.lock().expect("not poisoned"), [true], "the attempt is told that it is a trial");
    let breaker = policy.guards().breaker.as_ref().expect("a breaker");
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_limiter_paces_runs_by_their_cost() {
    let limit = RateLimit::new().tokens_per_minute(600).token_burst(100);
    let policy = Policy::new().rate_limit(limit).cost(|| 100);
    let start = Instant::now();
    let mut runs = JoinSet::new();
    for _ in 0..3 {
        let policy = policy.clone();
        runs.spawn(async move { policy.run(|_| async { Ok::<_, SdkError>(()) }).await.is_ok() });
    }
    assert!(runs.join_all().await.into_iter().all(|ok| ok));
    assert_eq!(start.elapsed(), secs(20));
    let too_much = Policy::new().rate_limit(RateLimit::new().tokens_per_minute(10)).cost(|| 11);
    let error = flaky(&too_much, 0, SdkError::of(500)).await.expect_err("never fits");
    assert!(matches!(error.stop(), Some(Stop::Limit(_))), "{error}");
}

#[tokio::test(start_paused = true)]
async fn wrong_settings_run_nothing_and_say_so() {
    let ran = AtomicU32::new(0);
    let policy = Policy::new().retry(Retry::new(1).factor(0.5)).timeout(Duration::ZERO);
    let error = policy
        .run(|_| {
            ran.fetch_add(1, SeqCst);
            async { Ok::<_, SdkError>(()) }
        })
        .await
        .expect_err("wrong");
    assert!(matches!(&error, PolicyError::Config(problem) if problem.problems().len() == 2));
    assert_eq!((error.stop(), error.attempts().len(), ran.load(SeqCst)), (None, 0, 0));
    assert!(error.to_string().contains("retry.factor is 0.5"), "{error}");
    assert!(error.source().is_some_and(<dyn Error>::is::<steadfast::ConfigError>));
    assert_eq!(error.into_operation(), None);
}

#[tokio::test(start_paused = true)]
async fn a_closure_may_borrow_and_change_what_is_around_it() {
    let mut log = Vec::new();
    let outcome = policy()
        .run(|attempt| {
            log.push(attempt.index);
            let done = log.len() > 2;
            async move { if done { Ok("done") } else { Err(SdkError::of(500)) } }
        })
        .await;
    assert_eq!((outcome.ok(), log), (Some("done"), vec![0, 1, 2]));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_idempotent_is_run_once() {
    let policy = Policy::new().retry(retries(3).idempotent(false));
    let error = flaky(&policy, 9, SdkError::of(500)).await.expect_err("it fails");
    assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::NotRetryable), 1));
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_waits() {
    let took = async |seed| {
        let start = Instant::now();
        let policy = Policy::new().retry(Retry::new(5)).seed(seed);
        assert!(flaky(&policy, 9, SdkError::of(500)).await.is_err());
        start.elapsed()
    };
    assert_eq!(took(3).await, took(3).await);
    assert_ne!(took(3).await, took(4).await);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_a_future_that_can_be_spawned() {
    let policy = policy();
    let running = tokio::spawn(async move { policy.run(|_| async { Ok::<_, SdkError>(7) }).await.ok() });
    assert_eq!(running.await.ok().flatten(), Some(7));
}
