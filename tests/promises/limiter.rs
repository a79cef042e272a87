//! The rate limiter, through the client.

use super::support::*;
use std::time::Duration;
use steadfast::record::Issues;
use steadfast::resilience::RateLimit;
use steadfast::testing::{Answer, Fault, MemoryTransport};
use steadfast::{Call, Client, ErrorKind};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

fn limited(provider: &MemoryTransport, limit: RateLimit) -> Client {
    client_of(provider, target(provider).rate_limit(limit))
}

/// One request every ten seconds.
fn slow() -> RateLimit {
    RateLimit::new().requests_per_minute(6).burst(1)
}

fn tokens(client: &Client) -> Option<u64> {
    client.primary().rate_limit().and_then(|state| state.tokens_remaining)
}

/// What is left behind: in flight, queued.
fn left(client: &Client) -> (u32, usize) {
    let state = client.primary().rate_limit().expect("a limiter");
    (state.in_flight, state.queued)
}

async fn both(client: &Client) -> JoinSet<Result<steadfast::chat::Reply, steadfast::LlmError>> {
    let mut calls = JoinSet::new();
    for _ in 0..2 {
        let client = client.clone();
        calls.spawn(async move { client.call("hi").await });
    }
    sleep(ms(1)).await;
    calls
}

#[tokio::test(start_paused = true)]
async fn requests_go_out_at_the_rate_and_in_order() {
    let provider = memory();
    let client = limited(&provider, slow());
    let mut calls = JoinSet::new();
    for n in 0..4 {
        let client = client.clone();
        calls.spawn(async move { client.call(format!("call {n}")).await });
        tokio::task::yield_now().await;
    }
    assert!(calls.join_all().await.into_iter().all(|reply| reply.is_ok()));
    assert_eq!(times(&provider), [0, 10_000, 20_000, 30_000]);
    let asked: Vec<_> =
        provider.journal().iter().map(|seen| seen.json().expect("json")["messages"][0]["content"].clone()).collect();
    assert_eq!(asked, ["call 0", "call 1", "call 2", "call 3"]);
    assert_eq!(left(&client), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn retries_are_taken_from_the_limit_too() {
    let provider = memory().then(Fault::status(500)).times(2);
    let client = client_of(&provider, target(&provider).retry(retries(3)).rate_limit(slow()));
    let reply = reply(&client, "hi").await;
    assert_eq!(times(&provider), [0, 10_000, 20_000]);
    let queued: Vec<_> = reply.attempts().iter().map(|attempt| attempt.queued).collect();
    assert_eq!(queued, [Duration::ZERO, ms(9_900)], "100 ms of its wait were backoff");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_long_is_a_queue_timeout() {
    let provider = memory();
    let client = limited(&provider, RateLimit::new().requests_per_minute(1).max_queue_time(secs(5)));
    reply(&client, "hi").await;
    let start = Instant::now();
    let error = failure(&client, "hi").await;
    assert_eq!(
        (error.kind(), code(&error), start.elapsed()),
        (ErrorKind::RateLimited, "rate_limit_queue_timeout", secs(5))
    );
    assert!(matches!(error.issues(), Some(Issues::Limit { limit: 1, .. })), "{:?}", error.issues());
    assert!(!error.is_retryable() && !error.counts_toward_breaker() && error.request().is_none());
    assert!(error.to_string().contains("rate limiter"), "{error}");
    assert_eq!((left(&client), provider.requests()), ((0, 0), 1));
}

#[tokio::test(start_paused = true)]
async fn a_queue_holds_30_s_by_default_and_as_long_as_the_deadline_where_unbounded() {
    let provider = memory();
    let client = limited(&provider, RateLimit::new().requests_per_minute(1));
    reply(&client, "hi").await;
    let start = Instant::now();
    failure(&client, "hi").await;
    assert_eq!(start.elapsed(), secs(30));

    let client = limited(&provider, RateLimit::new().requests_per_minute(1).max_queue_time(None));
    reply(&client, "hi").await;
    let start = Instant::now();
    let error = failure(&client, Call::user("hi").deadline(secs(50))).await;
    assert_eq!((code(&error), start.elapsed(), left(&client)), ("deadline_exceeded", secs(50), (0, 0)));
    assert!(error.request().is_none());
    let start = Instant::now();
    reply(&client, "hi").await;
    assert_eq!(start.elapsed(), secs(10), "its place was given up, its turn is the next one's");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_would_have_too_little_time_after_the_queue_is_not_sent() {
    let provider = memory();
    let client = limited(&provider, slow());
    reply(&client, "hi").await;
    let error = failure(&client, Call::user("hi").deadline(ms(10_249))).await;
    assert_eq!((code(&error), provider.requests()), ("deadline_exceeded", 1));
    let state = client.primary().rate_limit().expect("a limiter");
    assert_eq!((state.in_flight, state.queued, state.requests_remaining), (0, 0, Some(1)), "what it took came back");
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_at_once() {
    let provider = memory();
    let client = limited(&provider, RateLimit::new().requests_per_minute(1).max_queue_len(1).max_queue_time(None));
    reply(&client, "hi").await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.call("hi").await }
    });
    sleep(ms(1)).await;
    assert_eq!(left(&client), (0, 1));
    let start = Instant::now();
    let error = failure(&client, "hi").await;
    assert_eq!((code(&error), start.elapsed()), ("rate_limit_queue_full", Duration::ZERO));
    assert!(matches!(error.issues(), Some(Issues::Limit { .. })));
    assert!(waiting.await.expect("no panic").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_could_never_fit_is_refused_at_once_and_the_chain_goes_on() {
    let (primary, fallback) = (primary(), fallback());
    let first = target(&primary).rate_limit(RateLimit::new().tokens_per_minute(1_000));
    let client = built(chain(first, target(&fallback), &primary, &fallback));
    let answer = reply(&client, Call::user("hi").estimated_tokens(1_001).deadline(secs(5))).await;
    assert_eq!((answer.target().index, primary.requests()), (1, 0));
    fallback.set_otherwise(Fault::status(404));
    let error = failure(&client, Call::user("hi").estimated_tokens(1_001)).await;
    assert_eq!(target_codes(&error), ["rate_limit_capacity_exceeded", "not_found"]);
    assert!(matches!(error.targets()[0].error.issues, Some(Issues::Limit { limit: 1_000, .. })));
    assert_eq!(reply(&client, Call::user("hi").estimated_tokens(1_000)).await.target().index, 0);
}

#[tokio::test(start_paused = true)]
async fn concurrency_is_freed_when_the_attempt_ends_however_it_ends() {
    for answer in
        [Answer::echo(), Fault::status(500), Fault::reset_in_body(), Fault::connection_refused(), Fault::html(200)]
    {
        let name = answer.to_string();
        let provider = memory().otherwise(answer.delay(secs(1)));
        let client = limited(&provider, RateLimit::new().max_concurrent(1));
        let mut calls = both(&client).await;
        assert_eq!(left(&client), (1, 1), "{name}");
        while let Some(ended) = calls.join_next().await {
            let _ = ended.expect("no panic");
        }
        assert_eq!((times(&provider), left(&client)), (vec![0, 1_000], (0, 0)), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_holds_no_slot_while_it_waits() {
    let provider = memory().then(Fault::rate_limited(secs(20)));
    let client =
        client_of(&provider, target(&provider).retry(retries(1)).rate_limit(RateLimit::new().max_concurrent(1)));
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.call("first").await }
    });
    sleep(secs(1)).await;
    assert_eq!(left(&client), (0, 0));
    let start = Instant::now();
    reply(&client, "second").await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(waiting.await.expect("no panic").is_ok());
}

#[tokio::test(start_paused = true)]
async fn dropped_calls_free_their_slots_and_their_places() {
    let provider = memory().otherwise(Fault::hang());
    let client = limited(&provider, RateLimit::new().max_concurrent(1).max_queue_time(None));
    let calls = both(&client).await;
    assert_eq!((left(&client), provider.exchanges_open()), ((1, 1), 1));
    drop(calls);
    tokio::task::yield_now().await;
    assert_eq!((left(&client), provider.exchanges_open()), ((0, 0), 0));
}

#[tokio::test(start_paused = true)]
async fn tokens_are_corrected_to_the_reported_usage_in_both_directions() {
    for (estimate, used) in [(1_000, 400), (400, 1_000), (500, 500)] {
        let provider = memory().otherwise(Answer::text("ok").usage(used - 100, 100));
        let client = limited(&provider, RateLimit::new().tokens_per_minute(10_000));
        reply(&client, Call::user("hi").estimated_tokens(estimate)).await;
        assert_eq!(tokens(&client), Some(10_000 - used), "estimated {estimate}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_gives_its_tokens_back_and_what_was_cut_off_keeps_its_estimate() {
    let left = async |answer: Answer| {
        let provider = memory().otherwise(answer);
        let target = target(&provider).timeout(ms(500)).rate_limit(RateLimit::new().tokens_per_minute(600));
        let client = client_of(&provider, target);
        let call = Call::user("hi").estimated_tokens(200);
        let _ = timeout(ms(200), client.call(call)).await;
        tokens(&client).expect("a limit") / 10 * 10
    };
    for answer in [Fault::status(429), Fault::status(500), Fault::status(400), Fault::connection_refused()] {
        let name = answer.to_string();
        assert_eq!(left(answer).await, 600, "{name}");
    }
    assert_eq!(left(Fault::hang()).await, 400, "dropped; 2 tokens have come in 200 ms");
    assert_eq!(left(Fault::html(200)).await, 400, "answered, so paid for");

    let provider = memory().otherwise(Fault::hang());
    let limit = RateLimit::new().tokens_per_minute(600);
    let client = client_of(&provider, target(&provider).timeout(ms(500)).rate_limit(limit));
    failure(&client, Call::user("hi").estimated_tokens(200)).await;
    assert_eq!(tokens(&client), Some(405), "timed out; 5 tokens have come in half a second");
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_gives_its_request_back_too() {
    let provider = memory().then(Fault::connection_refused()).times(3);
    let client = client_of(&provider, target(&provider).retry(retries(3)).rate_limit(slow().max_queue_len(0)));
    reply(&client, "hi").await;
    assert_eq!(times(&provider), [0, 100, 300, 700], "none of them had to queue");
}

#[tokio::test(start_paused = true)]
async fn the_estimate_is_of_characters_and_the_token_limit_that_is_sent() {
    let remaining = async |call: Call| {
        let provider = memory().otherwise(Fault::hang());
        let client = limited(&provider, RateLimit::new().tokens_per_minute(10_000));
        assert!(timeout(ms(1), client.call(call)).await.is_err());
        10_000 - tokens(&client).expect("a limit")
    };
    assert_eq!(remaining(Call::user("x".repeat(400))).await, 100 + 1_000);
    assert_eq!(remaining(Call::user("x".repeat(400)).max_tokens(50)).await, 100 + 50);
    assert_eq!(remaining(Call::user("é".repeat(400)).system("y".repeat(40)).max_tokens(50)).await, 110 + 50);
    assert_eq!(remaining(Call::user("hi").estimated_tokens(7)).await, 7);
}

#[tokio::test(start_paused = true)]
async fn a_hook_and_a_share_of_the_estimate_can_be_set() {
    let provider = memory().otherwise(Fault::hang());
    let limit = RateLimit::new().tokens_per_minute(10_000).estimate_fraction(0.25);
    let client = client_of(&provider, target(&provider).rate_limit(limit).estimate_tokens(|_| 1_000));
    assert!(timeout(ms(1), client.call("hi")).await.is_err());
    assert_eq!(tokens(&client), Some(9_750));
}

#[tokio::test(start_paused = true)]
async fn a_limiter_is_never_inherited_and_shared_only_when_given_to_both() {
    let (primary, fallback) = (primary().otherwise(Fault::status(500)), fallback());
    let client = built(chain(target(&primary).rate_limit(slow()), target(&fallback), &primary, &fallback));
    assert_eq!(client.target(1).map(|target| target.rate_limit().is_none()), Some(true));

    let shared = slow().build().expect("a limiter");
    let provider = memory();
    let with = || client_of(&provider, target(&provider).rate_limit(shared.clone()));
    let (one, two) = (with(), with());
    reply(&one, "hi").await;
    let start = Instant::now();
    reply(&two, "hi").await;
    assert_eq!(start.elapsed(), secs(10));
}

#[tokio::test(start_paused = true)]
async fn followed_headers_hold_new_requests_until_the_reset() {
    let provider = memory().then(
        Answer::text("ok")
            .header("x-ratelimit-limit-requests", "500")
            .header("x-ratelimit-remaining-requests", "0")
            .header("x-ratelimit-reset-requests", "12s"),
    );
    let limit = RateLimit::new().requests_per_minute(600).follow_provider(true);
    let client = limited(&provider, limit);
    reply(&client, "hi").await;
    reply(&client, "hi").await;
    assert_eq!(times(&provider), [0, 12_000]);
}

#[tokio::test(start_paused = true)]
async fn with_followed_advice_one_429_holds_every_call() {
    let provider = memory().then(Fault::rate_limited(secs(15)));
    let limit = RateLimit::new().requests_per_minute(6_000).follow_provider(true);
    let client = client_of(&provider, target(&provider).retry(retries(1)).rate_limit(limit));
    let mut calls = JoinSet::new();
    for n in 0..5 {
        let client = client.clone();
        calls.spawn(async move {
            sleep(ms(10 * n)).await;
            client.call("hi").await
        });
    }
    assert!(calls.join_all().await.into_iter().all(|reply| reply.is_ok()));
    let times = times(&provider);
    assert!(times[1..].iter().all(|at| *at >= 15_000), "{times:?}");
}
