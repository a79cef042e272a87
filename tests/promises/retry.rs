//! When a call is sent again, and exactly when.

use super::support::*;
use httpdate::fmt_http_date;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast::record::{Next, StopReason};
use steadfast::resilience::{Jitter, Retry};
use steadfast::testing::{Answer, FakeProvider, Fault, MemoryTransport, Piece};
use steadfast::{Call, Client, ErrorCode, ErrorKind, Target, provider::OpenAiCompatible};
use tokio::time::{Instant, sleep, timeout};

const STOPPED: fn(StopReason) -> Next = Next::Stopped;

fn retried(after: Duration, advised: bool) -> Next {
    Next::Retried { after, advised }
}

/// A 503 with this header.
fn advised(name: &str, value: &str) -> Answer {
    Fault::status(503).header(name, value)
}

/// How often a provider that always answers this is asked by a client that retries twice.
async fn requests_for(answer: Answer, retry: Retry) -> usize {
    let provider = memory().otherwise(answer);
    let _ = client_of(&provider, target(&provider).retry(retry)).call("hi").await;
    provider.requests()
}

#[tokio::test(start_paused = true)]
async fn three_retries_are_up_to_four_attempts() {
    let provider = memory().otherwise(Fault::status(500));
    let client = client_of(&provider, target(&provider).retry(retries(3)));
    let error = failure(&client, "hi").await;
    assert_eq!(times(&provider), [0, 100, 300, 700]);
    assert_eq!(code(&error), "server_error");
    assert_eq!(codes(error.attempts()), ["server_error"; 4]);
    let last = STOPPED(StopReason::UsedUp);
    assert_eq!(
        next_of(error.attempts()),
        [retried(ms(100), false), retried(ms(200), false), retried(ms(400), false), last]
    );
    assert_eq!(error.attempts().iter().map(|attempt| attempt.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(error.request().is_some() && error.attempts().iter().all(|attempt| attempt.request.is_some()));
}

#[tokio::test(start_paused = true)]
async fn one_attempt_has_a_request_and_no_list_of_attempts() {
    let provider = memory().otherwise(Fault::status(500));
    let error = failure(&client_of(&provider, target(&provider)), "hi").await;
    assert!(error.attempts().is_empty() && error.targets().is_empty());
    assert_eq!(error.request().map(|request| request.method.as_str()), Some("POST"));
}

#[tokio::test(start_paused = true)]
async fn by_default_there_is_one_retry_after_250_to_500_ms() {
    for seed in 0..20 {
        let provider = memory().otherwise(Fault::status(500));
        let target = Target::new(OpenAiCompatible::new(provider.base_url()), "m");
        let client = built(Client::builder(target).seed(seed).transport(provider.clone()));
        failure(&client, "hi").await;
        let times = times(&provider);
        assert_eq!(times.len(), 2);
        assert!((250..=500).contains(&times[1]), "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_advised_wait_is_kept_to_the_nanosecond() {
    for (name, value, wait) in [
        ("retry-after-ms", "1500", ms(1_500)),
        ("retry-after-ms", "37", ms(37)),
        ("retry-after", "7", secs(7)),
        ("retry-after", "0.5", ms(500)),
        ("retry-after", "60", secs(60)),
    ] {
        let provider = memory().then(advised(name, value)).otherwise(Answer::text("ok"));
        let client = client_of(&provider, target(&provider).retry(retries(1)));
        let start = Instant::now();
        let reply = reply(&client, "hi").await;
        assert_eq!(start.elapsed(), wait, "{name}: {value}");
        assert_eq!(reply.attempts()[0].next, retried(wait, true), "{name}: {value}");
        assert_eq!(reply.attempts()[0].error.retry_after, Some(wait), "{name}: {value}");
    }
}

#[tokio::test(start_paused = true)]
async fn milliseconds_win_over_seconds() {
    let answer = advised("retry-after-ms", "1500").header("retry-after", "30");
    let provider = memory().then(answer);
    reply(&client_of(&provider, target(&provider).retry(retries(1))), "hi").await;
    assert_eq!(times(&provider), [0, 1_500]);
}

#[tokio::test(start_paused = true)]
async fn an_advised_date_is_not_jumped_and_not_missed_by_a_second() {
    let provider = memory().then(Fault::status(400));
    let client = client_of(&provider, target(&provider).retry(retries(1)));
    // The client's own clock: what a date is measured by.
    let probe = failure(&client, "hi").await;
    let now = probe.request().expect("it was sent").started_at;
    let date = httpdate::parse_http_date(&fmt_http_date(now + secs(20))).expect("a date");
    provider.push(advised("retry-after", &fmt_http_date(date)));
    let start = Instant::now();
    reply(&client, "hi").await;
    let came_back = now + start.elapsed();
    assert!(came_back >= date, "sooner than asked: {came_back:?} before {date:?}");
    assert!(came_back < date + ms(1), "later than asked: {came_back:?} after {date:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_in_the_words_of_a_429_is_kept() {
    let body = serde_json::json!({"error": {"message": "Rate limit reached. Please try again in 7.66s.",
        "type": "requests", "code": "rate_limit_exceeded"}});
    let provider = memory().then(Answer::raw(429).json(body));
    reply(&client_of(&provider, target(&provider).retry(retries(1))), "hi").await;
    assert_eq!(times(&provider), [0, 7_660]);
}

#[tokio::test(start_paused = true)]
async fn no_advice_is_the_computed_backoff() {
    for value in ["0", "-5", "soon", "Wed, 21 Oct 2015 07:28:00 GMT"] {
        let provider = memory().then(advised("retry-after", value));
        reply(&client_of(&provider, target(&provider).retry(retries(1))), "hi").await;
        assert_eq!(times(&provider), [0, 100], "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_over_max_retry_after_fails_at_once_and_the_chain_goes_on() {
    let (primary, fallback) = (primary().otherwise(advised("retry-after", "61")), fallback());
    let start = Instant::now();
    let answer = reply(&built(pair(&primary, &fallback).retry(retries(3))), "hi").await;
    assert_eq!((start.elapsed(), answer.target().index), (Duration::ZERO, 1));

    let client = client_of(&primary, target(&primary).retry(retries(3)));
    let error = failure(&client, Call::user("hi")).await;
    assert_eq!((code(&error), error.retry_after()), ("server_error", Some(secs(61))));
    assert!(error.is_retryable(), "later it may succeed");
    assert!(error.attempts().is_empty());

    let patient = client_of(&primary, target(&primary).retry(retries(1).max_retry_after(secs(61))));
    let start = Instant::now();
    let error = failure(&patient, "hi").await;
    assert_eq!((start.elapsed(), error.attempts().len()), (secs(61), 2));
}

#[tokio::test(start_paused = true)]
async fn a_wait_over_max_retry_after_is_named_as_the_reason() {
    let provider = memory().then(Fault::status(500)).otherwise(advised("retry-after", "61"));
    let error = failure(&client_of(&provider, target(&provider).retry(retries(3))), "hi").await;
    assert_eq!(next_of(error.attempts()), [retried(ms(100), false), STOPPED(StopReason::WaitTooLong)]);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_not_obeyed_is_still_quoted() {
    let provider = memory().otherwise(advised("retry-after", "30"));
    let retry = retries(1).respect_retry_after(false);
    let error = failure(&client_of(&provider, target(&provider).retry(retry)), "hi").await;
    assert_eq!(times(&provider), [0, 100]);
    assert_eq!(error.retry_after(), Some(secs(30)));
    assert_eq!(next_of(error.attempts())[0], retried(ms(100), false));
}

#[tokio::test(start_paused = true)]
async fn jitter_never_shortens_an_advised_wait() {
    let mut waits = BTreeSet::new();
    for (seed, value, longest) in (0..30).flat_map(|seed| [(seed, "1", ms(1_500)), (seed, "30", secs(31))]) {
        let provider = memory().then(advised("retry-after", value));
        let target = target(&provider).retry(retries(1).advised_jitter(0.5));
        let client = built(Client::builder(target).seed(seed).transport(provider.clone()));
        let start = Instant::now();
        reply(&client, "hi").await;
        let wait = start.elapsed();
        let asked = secs(value.parse().expect("a number"));
        assert!(asked <= wait && wait <= longest + ms(1), "{wait:?} for {value} s");
        waits.insert(wait);
    }
    assert!(waits.len() > 30, "chance spreads them");
}

#[tokio::test(start_paused = true)]
async fn the_providers_word_on_retrying_stands_over_the_table() {
    let says = |status, word| Fault::status(status).header("x-should-retry", word);
    assert_eq!(requests_for(says(500, "false"), retries(2)).await, 1);
    assert_eq!(requests_for(says(400, "true"), retries(2)).await, 3);
    assert_eq!(requests_for(says(400, "perhaps"), retries(2)).await, 1);
    let provider = memory().otherwise(says(400, "true"));
    let error = failure(&client_of(&provider, target(&provider)), "hi").await;
    assert!(error.is_retryable(), "the verdict that the engine acted on");
}

#[tokio::test(start_paused = true)]
async fn the_order_of_the_decision() {
    let never = |status: u16| retries(2).non_retryable_status([status]);
    let also = |status: u16| retries(2).retry_status([status]);
    let says = |answer: Answer, word| answer.header("x-should-retry", word);
    // A target's own lists narrow and widen the table.
    assert_eq!(requests_for(Fault::status(500), never(500)).await, 1);
    assert_eq!(requests_for(Fault::status(502), never(500)).await, 3);
    assert_eq!(requests_for(Fault::status(404), also(404)).await, 3);
    assert_eq!(requests_for(Fault::status(403), also(404)).await, 1);
    // `false` and quota come before the lists; `non_retryable_status` before `true`, `true` before `retry_status`.
    assert_eq!(requests_for(says(Fault::status(404), "false"), also(404)).await, 1);
    assert_eq!(requests_for(Fault::quota_exhausted(), also(429)).await, 1);
    assert_eq!(requests_for(says(Fault::quota_exhausted(), "true"), also(429)).await, 1);
    assert_eq!(requests_for(says(Fault::status(400), "true"), never(400)).await, 1);
    assert_eq!(requests_for(Fault::status(500), never(500).retry_status([500])).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_widened_status_is_retried_after_the_advised_wait() {
    let provider = memory().then(Fault::status(404).header("retry-after", "3"));
    reply(&client_of(&provider, target(&provider).retry(retries(1).retry_status([404]))), "hi").await;
    assert_eq!(times(&provider), [0, 3_000]);
}

#[tokio::test(start_paused = true)]
async fn status_lists_hold_for_an_error_inside_a_200_by_its_own_status() {
    let inside = || Fault::error_in_200("503", "try later");
    assert_eq!(requests_for(inside(), retries(2)).await, 3);
    assert_eq!(requests_for(inside(), retries(2).non_retryable_status([503])).await, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_idempotent_is_never_sent_twice() {
    let failures = [
        Fault::status(500),
        Fault::rate_limited(ms(10)),
        Fault::reset_before_head(),
        Fault::reset_in_body(),
        Fault::truncated_body(),
        Fault::html(502),
        Fault::empty(),
        Fault::status(400).header("x-should-retry", "true"),
        Fault::hang(),
    ];
    for answer in failures {
        let name = answer.to_string();
        let (primary, fallback) = (primary().otherwise(answer), fallback());
        let client = built(pair(&primary, &fallback));
        let call = Call::user("pay").retry(retries(3)).idempotent(false).timeout(secs(5));
        let error = failure(&client, call).await;
        assert_eq!((primary.requests(), fallback.requests()), (1, 0), "{name}");
        assert_ne!(error.kind(), ErrorKind::FallbackExhausted, "{name}: one target was tried");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_idempotent_is_sent_again_when_nothing_can_have_arrived() {
    let primary = primary().then(Fault::connection_refused()).times(2).otherwise(Answer::text("paid"));
    let client = client_of(&primary, target(&primary).retry(retries(2).idempotent(false)));
    assert_eq!(reply(&client, "pay").await.text(), "paid");
    assert_eq!(primary.requests(), 3);

    let (down, fallback) = (super::support::primary().otherwise(Fault::connection_refused()), fallback());
    let client = built(pair(&down, &fallback));
    let call = Call::user("pay").retry(retries(1).idempotent(false));
    assert_eq!(reply(&client, call).await.target().index, 1);
    assert_eq!((down.requests(), fallback.requests()), (2, 1));

    // Once something may have arrived, a refusal afterwards does not undo it.
    let both =
        memory().then(Fault::connection_refused()).then(Fault::status(500)).otherwise(Answer::text("paid twice"));
    let error = failure(&client_of(&both, target(&both).retry(retries(5).idempotent(false))), "pay").await;
    assert_eq!((both.requests(), code(&error)), (2, "server_error"));
    assert_eq!(next_of(error.attempts())[1], STOPPED(StopReason::NotRetryable));
}

#[tokio::test(start_paused = true)]
async fn a_calls_setting_replaces_the_targets_and_a_targets_the_clients() {
    let requests = async |client: Option<u32>, target: Option<u32>, call: Call| {
        let provider = memory().otherwise(Fault::status(500));
        let mut one = Target::new(OpenAiCompatible::new(provider.base_url()), "m");
        if let Some(max) = target {
            one = one.retry(retries(max));
        }
        let mut builder = Client::builder(one).transport(provider.clone());
        if let Some(max) = client {
            builder = builder.retry(retries(max));
        }
        failure(&built(builder), call).await;
        provider.requests()
    };
    let call = || Call::user("hi");
    assert_eq!(requests(None, None, call()).await, 2, "the default");
    assert_eq!(requests(Some(4), None, call()).await, 5);
    assert_eq!(requests(Some(4), Some(2), call()).await, 3);
    assert_eq!(requests(Some(4), Some(0), call()).await, 1);
    assert_eq!(requests(Some(4), Some(2), call().max_retries(1)).await, 2);
    assert_eq!(requests(Some(4), Some(2), call().max_retries(0)).await, 1);
    assert_eq!(requests(Some(4), Some(2), call().retry(retries(3))).await, 4);
    assert_eq!(requests(Some(4), Some(2), call().retry(retries(3)).max_retries(5)).await, 6);
}

#[tokio::test(start_paused = true)]
async fn a_fallback_inherits_the_clients_retry_and_not_the_primarys() {
    let (primary, fallback) = (primary().otherwise(Fault::status(500)), fallback().otherwise(Fault::status(500)));
    let second = Target::new(OpenAiCompatible::new(fallback.base_url()), "m").name("fallback");
    let builder = chain(target(&primary).retry(retries(4)), second, &primary, &fallback);
    failure(&built(builder.retry(retries(1))), "hi").await;
    assert_eq!((primary.requests(), fallback.requests()), (5, 2));
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_waits() {
    let waits = async |seed, jitter| {
        let provider = memory().otherwise(Fault::status(500));
        let target = target(&provider).retry(Retry::new(6).jitter(jitter));
        failure(&built(Client::builder(target).seed(seed).transport(provider.clone())), "hi").await;
        provider.journal().iter().map(|received| received.at).collect::<Vec<_>>()
    };
    for jitter in [Jitter::Equal, Jitter::Full] {
        assert_eq!(waits(7, jitter).await, waits(7, jitter).await);
        assert_ne!(waits(7, jitter).await, waits(8, jitter).await);
    }
    assert_eq!(waits(7, Jitter::None).await, waits(8, Jitter::None).await);
}

#[tokio::test(start_paused = true)]
async fn the_connection_of_a_failed_attempt_is_not_held_through_the_wait() {
    let stalled = Answer::raw(503)
        .header("retry-after", "30")
        .pieces(["half of ".into(), Piece::pause(secs(3_600)), "it".into()])
        .chunked();
    for answer in [Fault::status(503), Fault::reset_in_body(), stalled] {
        let name = answer.to_string();
        let provider = memory().then(answer);
        let client = client_of(&provider, target(&provider).retry(retries(1).base_delay(secs(10))));
        let call = tokio::spawn(async move { client.call("hi").await });
        provider.wait_for_requests(1).await;
        sleep(secs(6)).await;
        assert_eq!((provider.requests(), provider.exchanges_open()), (1, 0), "{name}: it waits, and holds nothing");
        assert!(call.await.expect("no panic").is_ok(), "{name}");
    }
}

#[tokio::test]
async fn a_socket_with_an_unread_failure_is_closed_before_the_wait() -> std::io::Result<()> {
    let page = "x".repeat(4 << 20);
    let fake = FakeProvider::openai().then(Answer::raw(503).header("retry-after", "30").body(page)).start().await?;
    let target = Target::new(OpenAiCompatible::new(fake.base_url()), "m");
    let client = built(Client::builder(target));
    let call = tokio::spawn(async move { client.call("hi").await });
    fake.wait_for_requests(1).await;
    timeout(secs(5), fake.wait_until_disconnected()).await.expect("closed long before the retry");
    assert_eq!(fake.requests(), 1);
    call.abort();
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_failure_is_read_for_five_seconds_at_most() {
    let stalled = Answer::raw(500).pieces([Piece::from("{"), Piece::pause(secs(3_600))]).chunked();
    let provider = memory().otherwise(stalled);
    let start = Instant::now();
    let error = failure(&client_of(&provider, target(&provider)), "hi").await;
    assert_eq!((code(&error), error.status(), start.elapsed()), ("server_error", Some(500), secs(5)));
}

#[tokio::test(start_paused = true)]
async fn a_failure_whose_body_stalls_past_the_timeout_is_still_that_failure() {
    // Taken for a timeout, it would be retried sooner than the provider asked.
    let stalled = Answer::raw(429)
        .header("retry-after", "20")
        .pieces([Piece::from("{\"error\":"), Piece::pause(secs(3_600))])
        .chunked();
    let provider = memory().then(stalled);
    let client = client_of(&provider, target(&provider).timeout(secs(2)).retry(retries(1)));
    let answer = reply(&client, "hi").await;
    assert_eq!(codes(answer.attempts()), ["provider_rate_limited"]);
    assert_eq!(times(&provider), [0, 22_000], "the two seconds of reading, then the wait");
}

#[tokio::test(start_paused = true)]
async fn a_reply_tells_of_the_failures_before_it() {
    let provider = memory().then(Fault::status(500)).then(Fault::rate_limited(secs(2))).otherwise(Answer::text("ok"));
    let client = client_of(&provider, target(&provider).retry(retries(3)));
    let reply = reply(&client, "hi").await;
    assert_eq!(codes(reply.attempts()), ["server_error", "provider_rate_limited"]);
    assert_eq!(next_of(reply.attempts()), [retried(ms(100), false), retried(secs(2), true)]);
    let (answered, took) = (reply.target(), ms(2_100));
    assert_eq!((answered.index, &*answered.name, answered.attempts, answered.elapsed), (0, "memory", 3, took));
}

#[tokio::test(start_paused = true)]
async fn attempts_say_when_they_began_and_how_long_they_took() {
    let slow = |time| Fault::status(500).delay(time);
    let provider = memory().then(slow(ms(30))).then(slow(ms(50)));
    let error = failure(&client_of(&provider, target(&provider).retry(retries(1))), "hi").await;
    let [first, second] = error.attempts() else { panic!("two attempts") };
    assert_eq!((first.duration, second.duration), (ms(30), ms(50)));
    assert_eq!(second.started_at.duration_since(first.started_at).ok(), Some(ms(130)));
    assert_eq!((first.queued, second.queued), (Duration::ZERO, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_change_is_not_sent_again() {
    for status in [400, 401, 402, 403, 404, 405, 406, 410, 413, 415, 418, 422, 501, 505] {
        assert_eq!(requests_for(Fault::status(status), retries(2)).await, 1, "{status}");
    }
    for status in [408, 409, 429, 500, 502, 503, 504, 520, 529] {
        assert_eq!(requests_for(Fault::status(status), retries(2)).await, 3, "{status}");
    }
    for (answer, requests) in [
        (Fault::connection_refused(), 3),
        (Fault::reset_before_head(), 3),
        (Fault::reset_in_body(), 3),
        (Fault::truncated_body(), 3),
        (Fault::empty(), 3),
        (Fault::html(200), 1),
        (Fault::quota_exhausted(), 1),
        (Fault::overloaded(), 3),
        (Answer::raw(307).header("location", "http://elsewhere.invalid/"), 1),
        (Answer::raw(204), 1),
    ] {
        let name = answer.to_string();
        assert_eq!(requests_for(answer, retries(2)).await, requests, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_request_comes_sooner_than_the_provider_asked(
        waits in prop::collection::vec((0_u64..90_000, any::<bool>()), 1..6),
        jitter in 0.0_f64..1.0,
        seed: u64,
    ) {
        paused(async {
            let provider = MemoryTransport::openai();
            for (wait, in_ms) in &waits {
                let (name, value) =
                    if *in_ms { ("retry-after-ms", wait.to_string()) } else { ("retry-after", (wait / 1_000).to_string()) };
                provider.push(Fault::status(429).header(name, value));
            }
            let retry = Retry::new(10).advised_jitter(jitter);
            let target = target(&provider).retry(retry);
            let client = built(Client::builder(target).seed(seed).transport(provider.clone()));
            let outcome = client.call("hi").await;
            let journal = provider.journal();
            for (pair, (wait, in_ms)) in journal.windows(2).zip(&waits) {
                let asked = if *in_ms { ms(*wait) } else { secs(*wait / 1_000) };
                let [before, after] = [pair[0].at, pair[1].at];
                assert!(after >= before + asked, "{after:?} is sooner than {asked:?} after {before:?}");
            }
            if let Err(error) = outcome {
                assert_eq!(error.code(), Some(ErrorCode::ProviderRateLimited));
                assert!(error.retry_after() > Some(secs(60)), "only a wait that is too long ends it");
            }
        });
    }
}
