//! How long a call may take, and what cancels it.

use super::support::*;
use std::time::Duration;
use steadfast::record::{Next, StopReason};
use steadfast::resilience::RateLimit;
use steadfast::testing::{Answer, Fault, Piece};
use steadfast::{Call, Client, ErrorKind, FallbackDecision, Target, provider::OpenAiCompatible};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const STOPPED: fn(StopReason) -> Next = Next::Stopped;

/// The code of the failure of a call, and how long it took.
async fn timed(client: &Client, call: Call) -> (String, Duration) {
    let start = Instant::now();
    let error = failure(client, call).await;
    (code(&error).to_owned(), start.elapsed())
}

fn call() -> Call {
    Call::user("hi")
}

#[tokio::test(start_paused = true)]
async fn the_timeout_is_of_each_attempt() {
    let provider = memory().otherwise(Fault::hang());
    let client = client_of(&provider, target(&provider).timeout(secs(2)).retry(retries(2)));
    let start = Instant::now();
    let error = failure(&client, "hi").await;
    assert_eq!(start.elapsed(), secs(6) + ms(300));
    assert_eq!((error.kind(), code(&error)), (ErrorKind::Timeout, "request_timeout"));
    assert_eq!(codes(error.attempts()), ["request_timeout"; 3]);
    assert!(error.attempts().iter().all(|attempt| attempt.duration == secs(2) && attempt.request.is_some()));
    assert!(error.is_retryable() && error.counts_toward_breaker());
    assert!(error.to_string().contains("request timeout after 2 s"), "{error}");
    assert_eq!(provider.exchanges_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_timeout_reaches_to_the_end_of_the_body() {
    let pieces = [Piece::from("{\"choices\""), Piece::pause(secs(60)), Piece::from(":[]}")];
    let provider = memory().otherwise(Answer::raw(200).pieces(pieces).chunked());
    let client = client_of(&provider, target(&provider).timeout(secs(3)));
    assert_eq!(timed(&client, call()).await, ("request_timeout".into(), secs(3)));
}

#[tokio::test(start_paused = true)]
async fn by_default_an_attempt_may_take_120_s_and_a_call_any_time() {
    let provider = memory().otherwise(Answer::echo().delay(secs(119)));
    let plain = || Target::new(OpenAiCompatible::new(provider.base_url()), "m");
    let client = client_of(&provider, plain());
    assert_eq!(reply(&client, "hi").await.text(), "hi");
    provider.set_otherwise(Answer::echo().delay(secs(121)));
    let error = failure(&client, Call::user("hi").max_retries(0)).await;
    assert_eq!(code(&error), "request_timeout");
    let patient = client_of(&provider, plain().timeout(None));
    provider.set_otherwise(Answer::echo().delay(secs(100_000)));
    assert_eq!(reply(&patient, "hi").await.text(), "hi");
}

#[tokio::test(start_paused = true)]
async fn a_calls_timeout_replaces_the_targets_and_a_targets_the_clients() {
    let provider = memory().otherwise(Fault::hang());
    let plain = || Target::new(OpenAiCompatible::new(provider.base_url()), "m").retry(retries(0));
    let with = |target: Target| built(Client::builder(target).timeout(secs(9)).transport(provider.clone()));
    let timeout = "request_timeout".to_owned();
    assert_eq!(timed(&with(plain()), call()).await, (timeout.clone(), secs(9)));
    assert_eq!(timed(&with(plain().timeout(secs(5))), call()).await, (timeout.clone(), secs(5)));
    assert_eq!(timed(&with(plain().timeout(secs(5))), call().timeout(secs(7))).await, (timeout, secs(7)));
    let endless = call().timeout(None).deadline(secs(500));
    let deadline = "deadline_exceeded".to_owned();
    assert_eq!(timed(&with(plain().timeout(secs(5))), endless).await, (deadline, secs(500)));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_caps_an_attempt_and_says_so() {
    let provider = memory().otherwise(Fault::hang());
    let client = client_of(&provider, target(&provider).timeout(secs(30)));
    let start = Instant::now();
    let error = failure(&client, call().deadline(secs(4))).await;
    assert_eq!((error.kind(), code(&error), start.elapsed()), (ErrorKind::Timeout, "deadline_exceeded", secs(4)));
    assert!(!error.is_retryable());
    assert!(error.request().is_some(), "what was in flight");
    assert_eq!(provider.exchanges_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_counts_waits_and_every_attempt() {
    let provider = memory().otherwise(Fault::status(500).delay(secs(1)));
    let client = client_of(&provider, target(&provider).retry(retries(100)));
    let start = Instant::now();
    let error = failure(&client, call().deadline(ms(4_200))).await;
    assert_eq!(times(&provider), [0, 1_100, 2_300, 3_700]);
    assert_eq!((code(&error), start.elapsed()), ("deadline_exceeded", ms(4_200)), "half a second into the fourth");
    assert_eq!(codes(error.attempts()), ["server_error", "server_error", "server_error", "deadline_exceeded"]);
}

#[tokio::test(start_paused = true)]
async fn a_clients_deadline_yields_to_a_calls() {
    let provider = memory().otherwise(Fault::hang());
    let client = built(Client::builder(target(&provider)).deadline(secs(8)).transport(provider.clone()));
    let deadline = "deadline_exceeded".to_owned();
    assert_eq!(timed(&client, call()).await, (deadline.clone(), secs(8)));
    assert_eq!(timed(&client, call().deadline(secs(3))).await, (deadline, secs(3)));
    assert_eq!(timed(&client, call().deadline(None)).await, ("request_timeout".into(), secs(120)));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_of_zero_fails_at_once_and_sends_nothing() {
    let (primary, fallback) = (primary(), fallback());
    let client = built(pair(&primary, &fallback));
    assert_eq!(timed(&client, call().deadline(Duration::ZERO)).await, ("deadline_exceeded".into(), Duration::ZERO));
    assert_eq!((primary.requests(), fallback.requests()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_does_not_fit_is_not_slept() {
    let provider = memory().otherwise(Fault::rate_limited(secs(10)));
    let client = client_of(&provider, target(&provider).retry(retries(3)));
    let start = Instant::now();
    let error = failure(&client, call().deadline(secs(10))).await;
    assert_eq!((code(&error), start.elapsed()), ("provider_rate_limited", Duration::ZERO), "the original error");
    assert_eq!(error.retry_after(), Some(secs(10)));

    // 250 ms is the least that an attempt must have left.
    let error = failure(&client, call().deadline(ms(10_249))).await;
    assert_eq!(error.attempts().len(), 0);
    let error = failure(&client, call().deadline(ms(10_250))).await;
    assert_eq!(error.attempts().len(), 2);
    let hasty = call().retry(retries(1).min_attempt_time(ms(10))).deadline(ms(10_010));
    assert_eq!(failure(&client, hasty).await.attempts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_does_not_fit_is_passed_over_for_the_next_target() {
    let (primary, fallback) = (primary().otherwise(Fault::rate_limited(secs(10))), fallback());
    let client = built(chain(target(&primary).retry(retries(3)), target(&fallback), &primary, &fallback));
    let start = Instant::now();
    let answer = reply(&client, call().deadline(secs(10))).await;
    assert_eq!((answer.target().index, start.elapsed()), (1, Duration::ZERO));
    assert_eq!(next_of(answer.attempts()), [STOPPED(StopReason::Deadline)]);
}

#[tokio::test(start_paused = true)]
async fn a_hung_primary_leaves_a_quarter_of_the_deadline_to_the_fallback() {
    let (primary, fallback) = (primary().otherwise(Fault::hang()), fallback().otherwise(Answer::echo().delay(secs(4))));
    let client = built(pair(&primary, &fallback));
    let start = Instant::now();
    let answer = reply(&client, call().deadline(secs(20))).await;
    assert_eq!((answer.target().index, start.elapsed()), (1, secs(19)));
    assert_eq!(codes(answer.attempts()), ["request_timeout"]);
    assert_eq!((times(&primary), times(&fallback)), (vec![0], vec![15_000]));
    assert_eq!(primary.exchanges_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_reserve_can_be_changed_and_turned_off() {
    let at = async |reserve: f64| {
        let (primary, fallback) = (primary().otherwise(Fault::hang()), fallback());
        let client = built(pair(&primary, &fallback).fallback_reserve(reserve));
        let start = Instant::now();
        let outcome = client.call(call().deadline(secs(20))).await;
        (outcome.map(|reply| reply.target().index).map_err(|error| code(&error)), start.elapsed())
    };
    assert_eq!(at(0.5).await, (Ok(1), secs(10)));
    assert_eq!(at(0.25).await, (Ok(1), secs(15)));
    assert_eq!(at(0.0).await, (Err("deadline_exceeded"), secs(20)));
}

#[tokio::test(start_paused = true)]
async fn the_reserve_ends_waits_and_retries_too_and_the_last_target_has_none() {
    let (primary, fallback) =
        (primary().otherwise(Fault::status(500).delay(secs(2))), fallback().otherwise(Fault::hang()));
    let first = target(&primary).retry(retries(100));
    let client = built(chain(first, target(&fallback), &primary, &fallback));
    let start = Instant::now();
    let error = failure(&client, call().deadline(secs(12))).await;
    assert!(primary.journal().iter().all(|received| received.at < secs(9)), "{:?}", times(&primary));
    assert!(fallback.journal()[0].at <= secs(9));
    assert_eq!((code(&error), start.elapsed()), ("deadline_exceeded", secs(12)), "never wrapped");
    assert_eq!(target_codes(&error), ["server_error", "deadline_exceeded"]);
}

#[tokio::test(start_paused = true)]
async fn a_reserve_is_no_matter_without_a_deadline() {
    let (primary, fallback) = (primary().otherwise(Answer::echo().delay(secs(100))), fallback());
    assert_eq!(reply(&built(pair(&primary, &fallback)), "hi").await.target().index, 0);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_deadline_keeps_the_history_of_every_target() {
    let (primary, fallback) = (primary().otherwise(Fault::status(503)), fallback().otherwise(Fault::hang()));
    let client = built(chain(target(&primary).retry(retries(1)), target(&fallback), &primary, &fallback));
    let error = failure(&client, call().deadline(secs(5))).await;
    assert_eq!((error.kind(), code(&error)), (ErrorKind::Timeout, "deadline_exceeded"));
    assert_eq!(target_codes(&error), ["server_error", "deadline_exceeded"]);
    assert_eq!(codes(&error.targets()[0].attempts), ["server_error"; 2]);
}

#[tokio::test(start_paused = true)]
async fn between_two_targets_a_spent_deadline_sends_nothing_more() {
    let (primary, fallback) = (primary().otherwise(Fault::status(500).delay(secs(5))), fallback());
    let client = built(pair(&primary, &fallback).fallback_reserve(0.0).fallback_on(|_, _| FallbackDecision::Next));
    let error = failure(&client, call().deadline(secs(5))).await;
    assert_eq!((code(&error), fallback.requests()), ("deadline_exceeded", 0));
}

#[tokio::test(start_paused = true)]
async fn a_fallback_needs_only_its_own_least_time() {
    let at = async |least: Duration| {
        let (primary, fallback) = (primary().otherwise(Fault::status(500).delay(ms(900))), fallback());
        let second = target(&fallback).retry(retries(0).min_attempt_time(least));
        let client = built(chain(target(&primary), second, &primary, &fallback).fallback_reserve(0.0));
        let outcome = client.call(call().deadline(secs(1))).await;
        (outcome.map(|reply| reply.target().index).map_err(|error| code(&error)), fallback.requests())
    };
    assert_eq!(at(ms(100)).await, (Ok(1), 1), "exactly its least time is left");
    assert_eq!(at(ms(101)).await, (Err("deadline_exceeded"), 0));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_token_sends_nothing() {
    let (primary, fallback) = (primary(), fallback());
    let client = built(pair(&primary, &fallback));
    let token = CancellationToken::new();
    token.cancel();
    let error = failure(&client, call().cancel_on(token)).await;
    assert_eq!((error.kind(), error.code()), (ErrorKind::Aborted, None));
    assert_eq!((primary.requests(), fallback.requests()), (0, 0));
    assert!(!error.is_retryable() && !error.counts_toward_breaker());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_call_at_once_wherever_it_is() {
    let limited = || RateLimit::new().requests_per_minute(1).max_queue_time(None);
    let never = Piece::pause(secs(3_600));
    let body = Answer::raw(200).pieces([Piece::from("{"), never.clone()]).chunked();
    let failing_body = Answer::raw(500).pieces([Piece::from("{"), never]).chunked();
    // Where it is after five seconds, and how many requests it made by then.
    for (place, answer, requests) in [
        ("in flight", Fault::hang(), 1),
        ("in the body", body, 1),
        ("in the body of a failure", failing_body, 1),
        ("in the wait", Fault::rate_limited(secs(50)), 1),
        ("in the queue", Fault::status(500), 1),
    ] {
        let (primary, fallback) = (primary().otherwise(answer), fallback());
        let mut first = target(&primary).retry(retries(3));
        if place == "in the queue" {
            first = first.rate_limit(limited());
        }
        let client = built(chain(first, target(&fallback), &primary, &fallback));
        let token = CancellationToken::new();
        let start = Instant::now();
        let canceller = token.clone();
        tokio::spawn(async move {
            sleep(ms(4_500)).await;
            canceller.cancel();
        });
        let error = failure(&client, call().cancel_on(token)).await;
        assert_eq!(error.kind(), ErrorKind::Aborted, "{place}");
        assert_eq!(start.elapsed(), ms(4_500), "{place}");
        assert_eq!((primary.requests(), fallback.requests()), (requests, 0), "{place}: no retry and no fallback");
        assert_eq!(primary.exchanges_open(), 0, "{place}");
        assert!(error.request().is_some(), "{place}: what was sent is kept");
        if let Some(state) = client.primary().rate_limit() {
            assert_eq!((state.queued, state.in_flight), (0, 0), "{place}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_lists_what_it_had_tried() {
    let (primary, fallback) = (primary().otherwise(Fault::status(500)), fallback().otherwise(Fault::hang()));
    let client = built(chain(target(&primary).retry(retries(1)), target(&fallback), &primary, &fallback));
    let token = CancellationToken::new();
    let canceller = token.clone();
    tokio::spawn(async move {
        sleep(secs(1)).await;
        canceller.cancel();
    });
    let error = failure(&client, call().cancel_on(token)).await;
    assert_eq!((error.kind(), error.code()), (ErrorKind::Aborted, None), "never wrapped");
    assert_eq!(target_codes(&error), ["server_error", "none"]);
    assert_eq!(error.targets()[1].error.kind, ErrorKind::Aborted);
    assert_eq!(codes(&error.targets()[0].attempts), ["server_error"; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_every_call_of_the_client_beside_a_calls_own_token() {
    let provider = memory().otherwise(Fault::hang());
    let whole = CancellationToken::new();
    let client = built(Client::builder(target(&provider)).cancel_on(whole.clone()).transport(provider.clone()));
    let (own, other) = (CancellationToken::new(), CancellationToken::new());
    let calls = [call().cancel_on(own.clone()), call().cancel_on(other), call()];
    let mut calls = calls.map(|call| {
        let client = client.clone();
        tokio::spawn(async move { (client.call(call).await.map_err(|error| error.kind()).err(), Instant::now()) })
    });
    let start = Instant::now();
    sleep(secs(1)).await;
    own.cancel();
    sleep(secs(1)).await;
    whole.cancel();
    let mut ended = Vec::new();
    for call in &mut calls {
        let (kind, at) = call.await.expect("no panic");
        ended.push((kind, at - start));
    }
    let kind = ErrorKind::Aborted;
    let aborted = Some(kind);
    assert_eq!(ended, [(aborted, secs(1)), (aborted, secs(2)), (aborted, secs(2))]);
    assert_eq!(failure(&client, "hi").await.kind(), kind, "and of calls that come later");
    assert_eq!(provider.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_after_the_answer_changes_nothing() {
    let provider = memory();
    let token = CancellationToken::new();
    let answer = reply(&client_of(&provider, target(&provider)), call().cancel_on(token.clone())).await;
    token.cancel();
    assert_eq!(answer.text(), "hi");
}

#[tokio::test(start_paused = true)]
async fn a_zero_timeout_is_an_error_that_names_it() {
    let provider = memory();
    let error = failure(&client_of(&provider, target(&provider)), call().timeout(Duration::ZERO)).await;
    assert_eq!((code(&error), provider.requests()), ("invalid_call", 0));
    assert!(error.to_string().contains("timeout"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn absurdly_long_times_do_not_overflow() {
    let provider = memory();
    let client = client_of(&provider, target(&provider).timeout(Duration::MAX));
    assert_eq!(reply(&client, call().deadline(Duration::MAX)).await.text(), "hi");
    let retry = retries(1).max_delay(Duration::MAX).max_retry_after(Duration::MAX).min_attempt_time(Duration::MAX);
    provider.push(Fault::status(503).header("retry-after", "99999999999999999999"));
    let error = failure(&client, call().retry(retry).deadline(secs(10))).await;
    assert_eq!(code(&error), "server_error");
}
