//! The retry budget: an outage does not turn into a storm.

use super::support::*;
use proptest::prelude::*;
use std::error::Error;
use std::time::Duration;
use steadfast::record::{Next, StopReason};
use steadfast::resilience::{CircuitBreaker, CircuitState, RateLimit, RetryBudget};
use steadfast::testing::{Answer, Fault, MemoryTransport};
use steadfast::{Call, Client, ErrorKind, LlmError, Target};
use tokio::task::JoinSet;
use tokio::time::{Instant, advance, timeout};
use tokio_util::sync::CancellationToken;

/// Never a retry: one call is enough to reach the ratio.
fn spent() -> RetryBudget {
    RetryBudget::new(secs(60), 0, 0.0)
}

fn counts(client: &Client) -> (u64, u64) {
    let state = client.primary().retry_budget().expect("a budget");
    (state.attempts, state.retries)
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_ends_the_call_at_once_and_shows_the_failure_behind_it() {
    let provider = memory().otherwise(Fault::status(503).header("retry-after", "7").header("x-request-id", "req_9"));
    let client = client_of(&provider, target(&provider).retry(retries(3)).retry_budget(spent()));
    let start = Instant::now();
    let error = failure(&client, "hi").await;
    assert_eq!((start.elapsed(), provider.requests()), (Duration::ZERO, 1), "without the wait");
    assert_eq!((error.kind(), code(&error)), (ErrorKind::RateLimited, "retry_budget_exhausted"));
    assert_eq!((error.status(), error.retry_after()), (Some(503), Some(secs(7))));
    assert!(error.provider_message().is_some_and(|says| says.starts_with("The server had an error")));
    assert_eq!(error.request_id(), Some("req_9"));
    assert_eq!(
        codes(error.attempts()),
        ["server_error"],
        "the failure that wanted the retry, although it was the first"
    );
    assert_eq!(next_of(error.attempts()), [Next::Stopped(StopReason::Budget)]);
    assert!(!error.is_retryable() && error.counts_toward_breaker());
    assert!(error.request().is_some());
    let said = error.to_string();
    assert!(said.contains("retry budget exhausted") && said.contains("server error (503)"), "{said}");

    let source = error.source().and_then(|source| source.downcast_ref::<LlmError>()).expect("the failure itself");
    assert_eq!((code(source), source.status(), source.retry_after()), ("server_error", Some(503), Some(secs(7))));
}

#[tokio::test(start_paused = true)]
async fn the_failure_behind_it_decides_whether_it_counts() {
    let asked_again = Fault::status(400).header("x-should-retry", "true");
    let provider = memory().otherwise(asked_again);
    let target =
        target(&provider).retry(retries(1)).retry_budget(spent()).circuit_breaker(CircuitBreaker::consecutive(1));
    let client = client_of(&provider, target);
    let error = failure(&client, "hi").await;
    assert_eq!((code(&error), error.counts_toward_breaker()), ("retry_budget_exhausted", false));
    assert_eq!(client.primary().circuit(), Some(CircuitState::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_goes_on_to_the_next_target() {
    let (primary, fallback) = (primary().otherwise(Fault::status(500)), fallback());
    let first = target(&primary).retry(retries(3)).retry_budget(spent());
    let client = built(chain(first, target(&fallback), &primary, &fallback));
    assert_eq!(reply(&client, "hi").await.target().index, 1);
    assert_eq!((primary.requests(), fallback.requests()), (1, 1));
    fallback.set_otherwise(Fault::status(404));
    let error = failure(&client, "hi").await;
    assert_eq!(target_codes(&error), ["retry_budget_exhausted", "not_found"]);
    assert_eq!(error.targets()[0].error.status, Some(500));
    assert_eq!(codes(&error.targets()[0].attempts), ["server_error"]);
}

#[tokio::test(start_paused = true)]
async fn a_cut_off_by_the_budget_and_one_by_the_circuit_have_different_codes() {
    let provider = memory().otherwise(Fault::status(500));
    let target =
        target(&provider).retry(retries(3)).retry_budget(spent()).circuit_breaker(CircuitBreaker::consecutive(3));
    let client = client_of(&provider, target);
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(code(&failure(&client, "hi").await));
    }
    let (budget, circuit) = ("retry_budget_exhausted", "circuit_cooling_down");
    assert_eq!(seen, [budget, budget, budget, circuit, circuit]);
    assert_eq!(provider.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_healthy_target_is_cut_off_by_its_budget_and_not_by_its_circuit() {
    // One call in two fails once: far from an outage, but every second attempt would be a retry.
    let provider = memory();
    for _ in 0..200 {
        provider.push(Fault::status(500));
        provider.push(Answer::text("ok"));
    }
    let budget = RetryBudget::new(secs(60), 10, 0.1);
    let target =
        target(&provider).retry(retries(3)).retry_budget(budget).circuit_breaker(CircuitBreaker::consecutive(3));
    let client = client_of(&provider, target);
    let mut failed = 0;
    for _ in 0..100 {
        if let Err(error) = client.call("hi").await {
            assert_eq!(code(&error), "retry_budget_exhausted");
            failed += 1;
        }
    }
    assert!(failed > 20, "{failed}");
    assert_eq!(client.primary().circuit(), Some(CircuitState::Closed));
    let (attempts, retries) = counts(&client);
    assert_eq!(attempts, provider.requests() as u64);
    assert!(retries * 10 <= attempts + 10, "{retries} of {attempts}");
}

#[tokio::test(start_paused = true)]
async fn twelve_calls_answered_500_open_the_circuit_behind_a_spent_budget() {
    let provider = memory().otherwise(Fault::status(500));
    let target = target(&provider)
        .retry(retries(2))
        .retry_budget(RetryBudget::new(secs(60), 5, 0.1))
        .circuit_breaker(CircuitBreaker::consecutive(3));
    let client = client_of(&provider, target);
    let mut refused = 0;
    for _ in 0..12 {
        refused += usize::from(code(&failure(&client, "hi").await) == "circuit_cooling_down");
    }
    assert_eq!((client.primary().circuit(), refused), (Some(CircuitState::Open), 9));
}

/// A thousand calls at once to a target that fails: how many requests are made.
async fn storm(failing: Answer) -> (u64, Client, MemoryTransport) {
    let provider = memory().otherwise(failing.delay(ms(20)));
    let budget = RetryBudget::new(secs(60), 10, 0.1);
    let client = client_of(&provider, target(&provider).retry(retries(5)).retry_budget(budget));
    let mut calls = JoinSet::new();
    for _ in 0..1_000 {
        let client = client.clone();
        calls.spawn(async move { client.call("hi").await.is_err() });
    }
    assert!(calls.join_all().await.into_iter().all(|failed| failed));
    (provider.requests() as u64, client, provider)
}

#[tokio::test(start_paused = true)]
async fn a_thousand_failing_calls_stay_within_the_ratio() {
    for failing in
        [Fault::status(500), Fault::reset_before_head(), Fault::rate_limited(ms(10)), Fault::connection_refused()]
    {
        let name = failing.to_string();
        let (requests, client, provider) = storm(failing).await;
        // first attempts / (1 - ratio) + min_calls
        assert!((1_001..=1_000 * 10 / 9 + 10).contains(&requests), "{name}: {requests}");
        assert_eq!(counts(&client), (requests, requests - 1_000), "{name}: the books agree with the provider");
        assert_eq!(provider.exchanges_open(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_recovered_target_gets_its_retries_back_when_the_window_has_passed() {
    let provider = memory().otherwise(Fault::status(500));
    let budget = RetryBudget::new(secs(10), 0, 0.5);
    let client = client_of(&provider, target(&provider).retry(retries(5)).retry_budget(budget));
    failure(&client, "hi").await;
    assert_eq!(counts(&client), (2, 1), "one retry is half of two attempts");
    advance(secs(11)).await;
    assert_eq!(counts(&client), (0, 0));
    failure(&client, "hi").await;
    assert_eq!(counts(&client), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_not_sent_gives_its_mark_back() {
    let budget = || RetryBudget::new(secs(600), 100, 0.5);

    // Dropped, and cancelled, in the wait.
    let provider = memory().otherwise(Fault::rate_limited(secs(20)));
    let client = client_of(&provider, target(&provider).retry(retries(3)).retry_budget(budget()));
    assert!(timeout(secs(5), client.call("hi")).await.is_err());
    assert_eq!(counts(&client), (1, 0), "dropped");
    let token = CancellationToken::new();
    let call = tokio::spawn({
        let (client, token) = (client.clone(), token.clone());
        async move { client.call(Call::user("hi").cancel_on(token)).await }
    });
    provider.wait_for_requests(2).await;
    tokio::time::sleep(secs(5)).await;
    assert_eq!(counts(&client), (3, 1), "marked before the wait");
    token.cancel();
    assert!(call.await.expect("no panic").is_err());
    assert_eq!(counts(&client), (2, 0), "cancelled");

    // Refused by the limiter.
    let provider = memory().otherwise(Fault::status(500));
    let limit = RateLimit::new().requests_per_minute(1).max_queue_len(0);
    let client = client_of(&provider, target(&provider).retry(retries(3)).retry_budget(budget()).rate_limit(limit));
    assert_eq!(code(&failure(&client, "hi").await), "rate_limit_queue_full");
    assert_eq!((counts(&client), provider.requests()), ((1, 0), 1));

    // Refused by a recheck of the circuit.
    let provider = memory().otherwise(Fault::status(500));
    let breaker = CircuitBreaker::consecutive(1).recheck(true);
    let client =
        client_of(&provider, target(&provider).retry(retries(3)).retry_budget(budget()).circuit_breaker(breaker));
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call("hi").await }
    });
    provider.wait_for_requests(1).await;
    assert!(client.primary().open_circuit());
    let error = call.await.expect("no panic").expect_err("refused");
    assert_eq!(code(&error), "circuit_cooling_down");
    assert_eq!((counts(&client), provider.requests()), ((1, 0), 1));
    assert_eq!(codes(error.attempts()), ["server_error"], "attempts are kept");
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_sent_stays_in_the_books() {
    let provider = memory().then(Fault::status(500)).then(Fault::hang());
    let client =
        client_of(&provider, target(&provider).retry(retries(3)).retry_budget(RetryBudget::new(secs(600), 100, 0.5)));
    assert!(timeout(secs(5), client.call("hi")).await.is_err(), "dropped while the retry is in flight");
    assert_eq!((counts(&client), provider.requests()), ((2, 1), 2));
}

#[tokio::test(start_paused = true)]
async fn one_budget_serves_all_models_of_a_target_and_no_other_target() {
    let (primary, fallback) = (primary().otherwise(Fault::status(500)), fallback().otherwise(Fault::status(500)));
    let first = target(&primary).retry(retries(1)).retry_budget(RetryBudget::new(secs(60), 3, 0.1));
    let second = target(&fallback).retry(retries(1));
    let client = built(chain(first, second, &primary, &fallback));
    for model in ["a", "b", "c"] {
        failure(&client, Call::user("hi").model(model)).await;
    }
    assert_eq!((primary.requests(), fallback.requests()), (4, 6));
    assert!(client.target("fallback").is_some_and(|target| target.retry_budget().is_none()), "never inherited");
}

#[tokio::test(start_paused = true)]
async fn two_clients_share_a_budget_that_both_are_given() -> Result<(), Box<dyn Error>> {
    let provider = memory().otherwise(Fault::status(500));
    let budget = RetryBudget::new(secs(60), 3, 0.3).build()?;
    let client = || client_of(&provider, target(&provider).retry(retries(1)).retry_budget(budget.clone()));
    let (one, two) = (client(), client());
    failure(&one, "hi").await;
    failure(&two, "hi").await;
    assert_eq!((counts(&one), counts(&two)), ((3, 1), (3, 1)));
    Ok(())
}

/// A target with this budget.
fn budgeted(provider: &MemoryTransport, min_calls: u32, ratio: f64, max: u32) -> Target {
    target(provider).retry(retries(max)).retry_budget(RetryBudget::new(secs(3_600), min_calls, ratio))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn retries_stay_within_the_ratio_under_any_load(
        calls in 1_u64..120,
        min_calls in 0_u32..20,
        ratio in 0.0_f64..0.9,
        max in 0_u32..6,
        apart in 0_u64..300,
    ) {
        paused(async {
            let provider = memory().otherwise(Fault::status(500).delay(ms(35)));
            let client = client_of(&provider, budgeted(&provider, min_calls, ratio, max));
            let mut running = JoinSet::new();
            for _ in 0..calls {
                let client = client.clone();
                running.spawn(async move { client.call("hi").await.is_err() });
                tokio::time::sleep(ms(apart)).await;
            }
            running.join_all().await;
            let requests = provider.requests() as u64;
            #[allow(clippy::cast_precision_loss)] // small numbers
            let allowed = calls as f64 / (1.0 - ratio) + f64::from(min_calls) + 1.0;
            #[allow(clippy::cast_precision_loss)]
            let made = requests as f64;
            assert!(made <= allowed, "{made} of {allowed}");
            assert_eq!(counts(&client), (requests, requests - calls));
        });
    }
}
