//! The circuit breaker, through the client.

use super::support::*;
use std::time::Duration;
use steadfast::record::Issues;
use steadfast::resilience::{CircuitBreaker, CircuitState, RateLimit};
use steadfast::testing::{Answer, Fault, MemoryTransport, Piece};
use steadfast::{Call, Client, ErrorCode, ErrorKind};
use tokio::time::{Instant, advance, sleep, timeout};
use tokio_util::sync::CancellationToken;

const CLOSED: Option<CircuitState> = Some(CircuitState::Closed);
const HALF_OPEN: Option<CircuitState> = Some(CircuitState::HalfOpen);
const OPEN: Option<CircuitState> = Some(CircuitState::Open);

fn after(failures: u32) -> CircuitBreaker {
    CircuitBreaker::consecutive(failures)
}

fn guarded(provider: &MemoryTransport, breaker: CircuitBreaker) -> Client {
    client_of(provider, target(provider).circuit_breaker(breaker))
}

/// A client whose circuit was opened by one failure and has cooled down: the next call is a trial.
async fn cooled(provider: &MemoryTransport, breaker: CircuitBreaker, retries_after: u32) -> Client {
    let target = target(provider).circuit_breaker(breaker).retry(retries(retries_after));
    let client = client_of(provider, target);
    provider.push(Fault::status(500));
    failure(&client, Call::user("hi").max_retries(0)).await;
    assert_eq!(client.primary().circuit(), OPEN);
    advance(secs(30)).await;
    client
}

#[tokio::test(start_paused = true)]
async fn what_is_cut_off_is_refused_before_it_is_written() {
    let client = guarded(&memory(), after(2));
    // Only whoever writes the request can know that its protocol does not take it.
    let call = || Call::user("hi").temperature(9.0);
    assert_eq!(failure(&client, call()).await.kind(), ErrorKind::InvalidParams);
    client.primary().open_circuit();
    assert_eq!(code(&failure(&client, call()).await), "circuit_cooling_down");
}

#[tokio::test(start_paused = true)]
async fn it_opens_refuses_tries_and_closes() {
    let provider = memory().then(Fault::status(500)).times(2);
    let client = guarded(&provider, after(2));
    for _ in 0..2 {
        failure(&client, "hi").await;
    }
    assert_eq!(client.primary().circuit(), OPEN);
    assert_eq!(code(&failure(&client, "hi").await), "circuit_cooling_down");
    assert_eq!(provider.requests(), 2);
    advance(secs(30)).await;
    reply(&client, "hi").await;
    assert_eq!((client.primary().circuit(), provider.requests()), (CLOSED, 3));
    assert!(client.primary().failure_breakdown().is_empty(), "counters start again");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_why_and_when_to_come_back() {
    let provider = memory().otherwise(Fault::status(503));
    let client = guarded(&provider, after(3));
    for _ in 0..3 {
        failure(&client, "hi").await;
    }
    let opened = failure(&client, "hi").await;
    advance(secs(10)).await;
    let error = failure(&client, "hi").await;
    assert_eq!((error.kind(), code(&error)), (ErrorKind::CircuitOpen, "circuit_cooling_down"));
    assert_eq!((error.retry_after(), error.status()), (Some(secs(20)), None));
    assert!(error.is_retryable() && !error.counts_toward_breaker());
    assert!(error.request().is_none() && error.attempts().is_empty(), "nothing was sent");
    let Some(Issues::Circuit { failures, last_code, last_status, opened_at }) = error.issues() else {
        panic!("{:?}", error.issues())
    };
    assert_eq!((*failures, *last_code, *last_status), (3, Some(ErrorCode::ServerError), Some(503)));
    assert!(matches!(opened.issues(), Some(Issues::Circuit { opened_at: at, .. }) if at == opened_at));
    assert!(error.to_string().contains("circuit open"), "{error}");
    let breakdown = client.primary().failure_breakdown();
    assert_eq!(breakdown.into_iter().collect::<Vec<_>>(), [("server_error", 3)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_succeeds_on_a_retry_is_one_success_and_one_that_fails_one_failure() {
    let provider = memory();
    let client = client_of(&provider, target(&provider).circuit_breaker(after(2)).retry(retries(2)));
    for _ in 0..5 {
        provider.push(Fault::status(500));
        provider.push(Fault::status(500));
        reply(&client, "hi").await;
    }
    assert_eq!(client.primary().circuit(), CLOSED);
    provider.set_otherwise(Fault::status(500));
    failure(&client, "hi").await;
    assert_eq!(client.primary().circuit(), CLOSED, "three attempts, one call");
    failure(&client, "hi").await;
    assert_eq!(client.primary().circuit(), OPEN);
}

#[tokio::test(start_paused = true)]
async fn success_resets_the_count_and_what_does_not_count_does_neither() {
    let provider = memory();
    let client = guarded(&provider, after(2));
    for answer in [Fault::status(500), Answer::echo(), Fault::status(500)] {
        provider.push(answer);
        let _ = client.call("hi").await;
    }
    assert_eq!(client.primary().circuit(), CLOSED);
    provider.push(Fault::bad_request("wrong"));
    failure(&client, "hi").await;
    assert_eq!(client.primary().circuit(), CLOSED);
    provider.push(Fault::status(500));
    failure(&client, "hi").await;
    assert_eq!(client.primary().circuit(), OPEN, "the bad request did not reset it either");
}

#[tokio::test(start_paused = true)]
async fn a_callers_own_mistakes_never_open_it() {
    let answers = [
        Fault::status(400),
        Fault::status(413),
        Fault::status(422),
        Fault::bad_request("This model's maximum context length is 8192 tokens"),
        Answer::text("").finish_reason("content_filter"),
        Answer::raw(400).json(serde_json::json!({"error": {"code": "content_filter", "message": "filtered"}})),
        Answer::raw(307).header("location", "http://elsewhere.invalid/"),
    ];
    for answer in answers {
        let name = answer.to_string();
        let provider = memory().otherwise(answer);
        let client = guarded(&provider, after(1));
        for _ in 0..20 {
            let error = failure(&client, "hi").await;
            assert!(!error.counts_toward_breaker(), "{name}: {error}");
        }
        assert_eq!((client.primary().circuit(), provider.requests()), (CLOSED, 20), "{name}");
        assert_eq!(code(&failure(&client, Call::user("")).await), "invalid_call");
    }
}

#[tokio::test(start_paused = true)]
async fn evidence_about_the_provider_opens_it() {
    let answers = [
        Fault::status(401),
        Fault::status(403),
        Fault::status(404),
        Fault::status(408),
        Fault::status(409),
        Fault::status(429),
        Fault::status(500),
        Fault::status(501),
        Fault::quota_exhausted(),
        Fault::overloaded(),
        Fault::html(200),
        Fault::empty(),
        Fault::connection_refused(),
        Fault::reset_before_head(),
        Fault::truncated_body(),
        Fault::hang(),
    ];
    for answer in answers {
        let name = answer.to_string();
        let provider = memory().otherwise(answer);
        let client = guarded(&provider, after(1));
        let error = failure(&client, "hi").await;
        assert!(error.counts_toward_breaker(), "{name}");
        assert_eq!(client.primary().circuit(), OPEN, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_or_key_that_the_call_brought_itself_does_not_count() {
    let provider = memory().otherwise(Fault::status(404));
    let client = guarded(&provider, after(1));
    let error = failure(&client, Call::user("hi").model("typo")).await;
    assert_eq!((code(&error), error.counts_toward_breaker()), ("not_found", false));
    assert_eq!(client.primary().circuit(), CLOSED);
    failure(&client, Call::user("hi").model("model-1")).await;
    assert_eq!(client.primary().circuit(), OPEN, "its own model, however it is named");

    for status in [401, 403] {
        let provider = memory().otherwise(Fault::status(status));
        let client = guarded(&provider, after(1));
        failure(&client, Call::user("hi").header("authorization", "Bearer mine")).await;
        assert_eq!(client.primary().circuit(), CLOSED, "{status}");
        failure(&client, "hi").await;
        assert_eq!(client.primary().circuit(), OPEN, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outer_timeout_finds_a_hung_target_and_an_impatient_one_does_not() {
    let provider = memory().otherwise(Fault::hang());
    let client = guarded(&provider, after(3));
    for _ in 0..50 {
        assert!(timeout(ms(100), client.call("hi")).await.is_err());
    }
    assert_eq!(client.primary().circuit(), CLOSED, "100 ms say nothing");
    for n in 0..3 {
        assert_eq!(client.primary().circuit(), CLOSED, "after {n}");
        assert!(timeout(secs(10), client.call("hi")).await.is_err());
    }
    assert_eq!(client.primary().circuit(), OPEN, "three times ten seconds of silence");
}

#[tokio::test(start_paused = true)]
async fn silence_is_evidence_after_half_of_the_timeout_or_ten_seconds_or_as_set() {
    let cut_after = async |limit: Option<Duration>, set: Option<Duration>, cut: Duration| {
        let provider = memory().otherwise(Fault::hang());
        let breaker = set.map_or(after(1), |time| after(1).hang_evidence(time));
        let client = client_of(&provider, target(&provider).timeout(limit).circuit_breaker(breaker));
        assert!(timeout(cut, client.call("hi")).await.is_err());
        client.primary().circuit() == OPEN
    };
    assert!(cut_after(Some(secs(8)), None, secs(4)).await);
    assert!(!cut_after(Some(secs(8)), None, ms(3_999)).await);
    assert!(cut_after(Some(secs(120)), None, secs(10)).await);
    assert!(!cut_after(Some(secs(120)), None, ms(9_999)).await);
    assert!(cut_after(None, None, secs(10)).await);
    assert!(cut_after(Some(secs(120)), Some(ms(200)), ms(200)).await);
    assert!(!cut_after(Some(secs(8)), Some(secs(5)), ms(4_999)).await);
}

#[tokio::test(start_paused = true)]
async fn the_silence_is_of_the_running_attempt_and_ends_with_the_head() {
    // A wait for a retry is no silence of the provider's.
    let provider = memory().otherwise(Fault::rate_limited(secs(50)));
    let client = client_of(&provider, target(&provider).circuit_breaker(after(1)).retry(retries(1)));
    assert!(timeout(secs(30), client.call("hi")).await.is_err());
    assert_eq!(client.primary().circuit(), CLOSED, "in the wait");
    // Nor is a queue.
    let limited = RateLimit::new().requests_per_minute(1).max_queue_time(None);
    let provider = memory();
    let client = client_of(&provider, target(&provider).circuit_breaker(after(1)).rate_limit(limited));
    reply(&client, "hi").await;
    assert!(timeout(secs(30), client.call("hi")).await.is_err());
    assert_eq!(client.primary().circuit(), CLOSED, "in the queue");
    // A slow body is not a hung target.
    let slow = Answer::raw(200).pieces([Piece::from("{"), Piece::pause(secs(100))]).chunked();
    let provider = memory().otherwise(slow);
    let client = guarded(&provider, after(1));
    assert!(timeout(secs(60), client.call("hi")).await.is_err());
    assert_eq!(client.primary().circuit(), CLOSED, "in the body");
    // The clock starts with the attempt.
    let provider = memory().then(Fault::status(500).delay(secs(9))).then(Fault::hang());
    let client = client_of(&provider, target(&provider).circuit_breaker(after(1)).retry(retries(1)));
    assert!(timeout(secs(15), client.call("hi")).await.is_err());
    assert_eq!(client.primary().circuit(), CLOSED, "six seconds into the second attempt");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_and_a_cancel_judge_silence_like_a_drop() {
    for (cut, state) in [(secs(10), OPEN), (ms(9_999), CLOSED)] {
        let provider = memory().otherwise(Fault::hang());
        let client = guarded(&provider, after(1));
        failure(&client, Call::user("hi").deadline(cut)).await;
        assert_eq!(client.primary().circuit(), state, "deadline after {cut:?}");

        let client = guarded(&provider, after(1));
        let token = CancellationToken::new();
        let canceller = token.clone();
        tokio::spawn(async move {
            sleep(cut).await;
            canceller.cancel();
        });
        assert_eq!(failure(&client, Call::user("hi").cancel_on(token)).await.kind(), ErrorKind::Aborted);
        assert_eq!(client.primary().circuit(), state, "cancel after {cut:?}");

        // A reserve is a want of time too.
        let (primary, fallback) = (primary().otherwise(Fault::hang()), fallback());
        let first = target(&primary).circuit_breaker(after(1));
        let client = built(chain(first, target(&fallback), &primary, &fallback).fallback_reserve(0.5));
        assert_eq!(reply(&client, Call::user("hi").deadline(cut * 2)).await.target().index, 1);
        assert_eq!(client.primary().circuit(), state, "reserve after {cut:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn its_own_timeout_always_counts() {
    let provider = memory().otherwise(Fault::hang());
    let client = client_of(&provider, target(&provider).timeout(ms(100)).circuit_breaker(after(1)));
    failure(&client, "hi").await;
    assert_eq!(client.primary().circuit(), OPEN);
}

#[tokio::test(start_paused = true)]
async fn a_trial_makes_one_request_whatever_max_retries() {
    let provider = memory();
    let client = cooled(&provider, after(1), 5).await;
    provider.set_otherwise(Fault::status(500));
    let error = failure(&client, "hi").await;
    assert_eq!((code(&error), provider.requests(), client.primary().circuit()), ("server_error", 2, OPEN));
    assert_eq!(failure(&client, "hi").await.retry_after(), Some(secs(30)), "open for a whole cooldown again");
}

#[tokio::test(start_paused = true)]
async fn while_the_trial_is_out_others_are_refused() {
    let provider = memory();
    let client = cooled(&provider, after(1), 0).await;
    provider.set_otherwise(Answer::echo().delay(secs(5)));
    let trial = tokio::spawn({
        let client = client.clone();
        async move { client.call("hi").await }
    });
    provider.wait_for_requests(2).await;
    let error = failure(&client, "hi").await;
    assert_eq!(
        (code(&error), error.retry_after(), client.primary().circuit()),
        ("circuit_trial_in_flight", None, HALF_OPEN)
    );
    assert!(matches!(error.issues(), Some(Issues::Circuit { failures: 1, .. })));
    assert!(trial.await.expect("no panic").is_ok());
    assert_eq!((client.primary().circuit(), provider.requests()), (CLOSED, 2));
}

#[tokio::test(start_paused = true)]
async fn a_trial_without_an_outcome_gives_its_slot_back() {
    // Dropped.
    let provider = memory();
    let client = cooled(&provider, after(1), 0).await;
    provider.push(Fault::hang());
    assert!(timeout(ms(100), client.call("hi")).await.is_err());
    assert_eq!(client.primary().circuit(), HALF_OPEN);
    reply(&client, "hi").await;
    assert_eq!(client.primary().circuit(), CLOSED, "dropped");

    // Cancelled.
    let client = cooled(&provider, after(1), 0).await;
    provider.push(Fault::hang());
    let token = CancellationToken::new();
    let call = tokio::spawn({
        let (client, token) = (client.clone(), token.clone());
        async move { client.call(Call::user("hi").cancel_on(token)).await }
    });
    sleep(ms(100)).await;
    token.cancel();
    assert!(call.await.expect("no panic").is_err());
    reply(&client, "hi").await;
    assert_eq!(client.primary().circuit(), CLOSED, "cancelled");

    // A failure that says nothing.
    let client = cooled(&provider, after(1), 0).await;
    provider.push(Fault::bad_request("wrong"));
    failure(&client, "hi").await;
    assert_eq!(client.primary().circuit(), HALF_OPEN);
    reply(&client, "hi").await;
    assert_eq!(client.primary().circuit(), CLOSED, "neutral");

    // Out of time before it began.
    let client = cooled(&provider, after(1), 0).await;
    failure(&client, Call::user("hi").deadline(Duration::ZERO)).await;
    reply(&client, "hi").await;
    assert_eq!(client.primary().circuit(), CLOSED, "no time");
}

#[tokio::test(start_paused = true)]
async fn a_trial_does_not_queue_and_gives_its_slot_back_when_the_limiter_refuses() {
    let provider = memory().then(Fault::status(500));
    let limit = RateLimit::new().max_concurrent(1).max_queue_time(None);
    let breaker = after(1).cooldown(secs(5));
    let limiter = limit.build().expect("a limiter");
    let client = client_of(&provider, target(&provider).circuit_breaker(breaker).rate_limit(limiter.clone()));
    failure(&client, "hi").await;
    advance(secs(5)).await;
    let held = limiter.acquire(0).await.expect("there is room");
    let start = Instant::now();
    let error = failure(&client, "hi").await;
    assert_eq!((error.kind(), code(&error)), (ErrorKind::RateLimited, "rate_limit_queue_full"));
    assert_eq!((start.elapsed(), provider.requests(), limiter.state().queued), (Duration::ZERO, 1, 0));
    held.settle(None);
    reply(&client, "hi").await;
    assert_eq!(client.primary().circuit(), CLOSED, "the next call was the trial");
}

#[tokio::test(start_paused = true)]
async fn a_longer_advised_wait_is_the_cooldown() {
    for (advice, cooldown) in [("45", 45), ("10", 30), ("600", 60)] {
        let provider = memory().otherwise(Fault::status(503).header("retry-after", advice));
        let client = guarded(&provider, after(1));
        failure(&client, "hi").await;
        let refused = failure(&client, "hi").await;
        assert_eq!(refused.retry_after(), Some(secs(cooldown)), "advised {advice}, capped at max_retry_after");
    }
}

#[tokio::test(start_paused = true)]
async fn with_recheck_a_call_that_has_waited_asks_again() {
    for (recheck, requests, expected) in [(false, 4, "server_error"), (true, 1, "circuit_cooling_down")] {
        let provider = memory().otherwise(Fault::status(500));
        let breaker = after(1).recheck(recheck);
        let client = client_of(&provider, target(&provider).circuit_breaker(breaker).retry(retries(3)));
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.call("hi").await }
        });
        provider.wait_for_requests(1).await;
        sleep(ms(50)).await;
        client.primary().open_circuit();
        let error = call.await.expect("no panic").expect_err("it fails");
        assert_eq!((code(&error), provider.requests()), (expected, requests));
        assert_eq!(codes(error.attempts()).first(), Some(&"server_error"), "attempts are kept");
    }
}

#[tokio::test(start_paused = true)]
async fn with_recheck_a_call_that_has_queued_asks_again() {
    let provider = memory();
    let limit = RateLimit::new().requests_per_minute(1).max_queue_time(None);
    let target = target(&provider).circuit_breaker(after(1).recheck(true)).rate_limit(limit);
    let client = client_of(&provider, target);
    reply(&client, "hi").await;
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call("hi").await }
    });
    sleep(secs(50)).await;
    client.primary().open_circuit();
    let error = call.await.expect("no panic").expect_err("refused");
    assert_eq!((code(&error), provider.requests()), ("circuit_cooling_down", 1));
    let state = client.primary().rate_limit().expect("a limiter");
    assert_eq!((state.in_flight, state.queued, state.requests_remaining), (0, 0, Some(1)), "nothing was sent");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_becomes_the_trial_by_a_recheck_makes_one_request() {
    let provider = memory().then(Fault::rate_limited(secs(20))).otherwise(Fault::status(500));
    let breaker = after(1).cooldown(secs(5)).recheck(true);
    let client = client_of(&provider, target(&provider).circuit_breaker(breaker).retry(retries(5)));
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call("hi").await }
    });
    provider.wait_for_requests(1).await;
    client.primary().open_circuit();
    let error = call.await.expect("no panic").expect_err("it fails");
    assert_eq!(code(&error), "server_error");
    assert_eq!(times(&provider), [0, 20_000], "one request as a trial, and no retry of it");
    assert_eq!(client.primary().circuit(), OPEN);
}

#[tokio::test(start_paused = true)]
async fn models_have_circuits_of_their_own_when_isolated() {
    for (isolated, other) in [(true, CLOSED), (false, OPEN)] {
        let provider = memory().then(Fault::status(500));
        let client = guarded(&provider, after(1).isolate_by_model(isolated));
        failure(&client, Call::user("hi").model("broken")).await;
        let state = |model| client.primary().circuit_for(model);
        assert_eq!((state("broken"), state("model-1"), client.primary().circuit()), (OPEN, other, OPEN));
        assert_eq!(client.call("hi").await.is_ok(), isolated);
        assert_eq!(code(&failure(&client, Call::user("hi").model("broken")).await), "circuit_cooling_down");
    }
}

#[tokio::test(start_paused = true)]
async fn isolated_circuits_are_handled_by_model() {
    let provider = memory();
    let client = guarded(&provider, after(1).isolate_by_model(true));
    let primary = client.primary();
    assert!(primary.hold_circuit_open_for("a"));
    assert_eq!((primary.circuit_for("a"), primary.circuit_for("b")), (OPEN, CLOSED));
    advance(secs(1_000)).await;
    let held = failure(&client, Call::user("hi").model("a")).await;
    assert_eq!((code(&held), held.retry_after()), ("circuit_cooling_down", None));
    reply(&client, Call::user("hi").model("b")).await;
    assert!(primary.close_circuit_for("a"));
    reply(&client, Call::user("hi").model("a")).await;
    assert!(primary.open_circuit_for("b"));
    assert_eq!(failure(&client, Call::user("hi").model("b")).await.retry_after(), Some(secs(30)));
}

#[tokio::test(start_paused = true)]
async fn by_hand_it_opens_for_one_cooldown_holds_and_closes() {
    let provider = memory();
    let client = guarded(&provider, after(5));
    let primary = client.primary();
    assert!(primary.open_circuit());
    assert_eq!(code(&failure(&client, "hi").await), "circuit_cooling_down");
    advance(secs(30)).await;
    reply(&client, "hi").await;
    assert_eq!(primary.circuit(), CLOSED);
    assert!(primary.hold_circuit_open());
    advance(secs(10_000)).await;
    assert_eq!(code(&failure(&client, "hi").await), "circuit_cooling_down");
    assert!(primary.close_circuit());
    reply(&client, "hi").await;
    assert_eq!(provider.requests(), 2);

    let none = client_of(&provider, target(&provider));
    assert!(!none.primary().open_circuit() && !none.primary().hold_circuit_open() && !none.primary().close_circuit());
    assert_eq!((none.primary().circuit(), none.primary().failure_breakdown().len()), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn a_limiters_refusal_after_failures_still_records_the_failure() {
    let provider = memory().otherwise(Fault::status(500));
    let limit = RateLimit::new().requests_per_minute(1).max_queue_len(0);
    let target = target(&provider).circuit_breaker(after(1)).retry(retries(3)).rate_limit(limit);
    let client = client_of(&provider, target);
    let error = failure(&client, "hi").await;
    assert_eq!((code(&error), codes(error.attempts())), ("rate_limit_queue_full", vec!["server_error"]));
    assert_eq!(client.primary().circuit(), OPEN);
    // Without a failure before it, a refusal says nothing.
    let client = client_of(
        &provider,
        super::support::target(&provider).circuit_breaker(after(1)).rate_limit(RateLimit::new().tokens_per_minute(10)),
    );
    assert_eq!(code(&failure(&client, Call::user("hi").estimated_tokens(11)).await), "rate_limit_capacity_exceeded");
    assert_eq!(client.primary().circuit(), CLOSED);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_of_an_earlier_cycle_decides_nothing() {
    let provider = memory().then(Answer::echo().delay(secs(50))).then(Fault::status(500));
    let client = guarded(&provider, after(1));
    let slow = tokio::spawn({
        let client = client.clone();
        async move { client.call("hi").await }
    });
    provider.wait_for_requests(1).await;
    failure(&client, "hi").await;
    assert_eq!(client.primary().circuit(), OPEN);
    assert!(slow.await.expect("no panic").is_ok());
    assert_eq!(client.primary().circuit(), OPEN, "the late success does not close it");
}

#[tokio::test(start_paused = true)]
async fn a_breaker_is_never_inherited_and_shared_only_when_given_to_both() {
    let (primary, fallback) = (primary().otherwise(Fault::status(500)), fallback().otherwise(Fault::status(500)));
    let first = target(&primary).circuit_breaker(after(1));
    let client = built(chain(first, target(&fallback), &primary, &fallback));
    failure(&client, "hi").await;
    failure(&client, "hi").await;
    assert_eq!((primary.requests(), fallback.requests()), (1, 2));
    assert_eq!(client.target(1).map(|target| target.circuit()), Some(None));

    let shared = after(1).build().expect("a breaker");
    let with = || client_of(&primary, target(&primary).circuit_breaker(shared.clone()));
    let (one, two) = (with(), with());
    failure(&one, "hi").await;
    assert_eq!(two.primary().circuit(), OPEN);
}
