//! Streams: opened like a call, never repeated once there was content, settled when they end.

use super::support::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::chat::{Chunk, FinishReason};
use steadfast::observe::{CallOutcome, Event, EventKind};
use steadfast::provider::OpenAiCompatible;
use steadfast::record::{Issues, Silence};
use steadfast::resilience::{CircuitBreaker, CircuitState, RateLimit};
use steadfast::testing::{Answer, FakeProvider, Fault, MemoryTransport, Mishap, Piece};
use steadfast::{Call, Client, ErrorKind, LlmError, ReplyStream, Target};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const WORDS: &str = "One two three four five.";

fn words() -> Answer {
    Answer::text(WORDS)
}

/// Everything that a stream yields: its texts, and the error that ended it.
async fn drained(stream: &mut ReplyStream) -> (Vec<String>, Option<LlmError>) {
    let mut texts = Vec::new();
    while let Some(chunk) = stream.next().await {
        match chunk {
            Ok(chunk) => texts.extend(Some(chunk.text().to_owned()).filter(|text| !text.is_empty())),
            Err(error) => return (texts, Some(error)),
        }
    }
    (texts, None)
}

async fn opened(client: &Client, call: impl Into<Call> + Send) -> ReplyStream {
    client.stream(call).await.expect("the stream must open")
}

async fn unopened(client: &Client, call: impl Into<Call> + Send) -> LlmError {
    client.stream(call).await.expect_err("the stream must not open")
}

/// The error in which a stream with content ends.
async fn broken(client: &Client, call: impl Into<Call> + Send) -> LlmError {
    let mut stream = opened(client, call).await;
    let (_, error) = drained(&mut stream).await;
    assert!(stream.next().await.is_none(), "nothing comes after an error");
    let error = error.expect("the stream must break");
    let again = stream.into_reply().await.expect_err("the reply must fail");
    assert_eq!(again.to_snapshot(), error.to_snapshot(), "the same error again");
    error
}

/// Listens to a client.
fn listening(provider: &MemoryTransport, target: steadfast::Target) -> (Client, Arc<Mutex<Vec<Event>>>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let client = Client::builder(target)
        .transport(provider.clone())
        .on_event(move |event| seen.lock().expect("no one panics").push(event.clone()));
    (built(client), events)
}

#[tokio::test(start_paused = true)]
async fn a_stream_yields_the_words_as_they_come_then_the_usage_and_comes_to_the_reply_of_a_call() {
    let provider = memory().otherwise(words().usage(12, 6));
    let client = client_of(&provider, target(&provider));
    let mut stream = opened(&client, "hi").await;
    assert_eq!((stream.target().index, stream.target().attempts), (0, 1));
    let mut chunks = Vec::new();
    while let Some(chunk) = stream.next().await {
        chunks.push(chunk.expect("it does not break"));
    }
    let texts: Vec<_> = chunks.iter().map(Chunk::text).filter(|text| !text.is_empty()).collect();
    assert_eq!(texts, ["One", " two", " three", " four", " five."]);
    assert!(matches!(chunks.last(), Some(Chunk::Usage(usage)) if (usage.input, usage.output) == (12, 6)), "{chunks:?}");

    let streamed = stream.into_reply().await.expect("it did not break");
    let called = reply(&client, "hi").await;
    assert_eq!((streamed.text(), streamed.usage()), (called.text(), called.usage()));
    assert_eq!((streamed.finish_reason(), streamed.model()), (FinishReason::Stop, called.model()));
    assert_eq!((streamed.target().name.as_ref(), streamed.attempts().len()), ("memory", 0));
    assert_eq!(provider.exchanges_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn conveniences_read_what_is_left() {
    let provider = memory().otherwise(words());
    let client = client_of(&provider, target(&provider));
    assert_eq!(opened(&client, "hi").await.collect_text().await.ok().as_deref(), Some(WORDS));
    let mut shown = String::new();
    let whole = opened(&client, "hi").await.on_text(|text| shown.push_str(text)).await.expect("a reply");
    assert_eq!((shown.as_str(), whole.text()), (WORDS, WORDS));
    let mut stream = opened(&client, "hi").await;
    let first = stream.next().await.expect("a chunk").expect("not an error");
    assert_eq!(stream.collect_text().await.map(|rest| format!("{}{rest}", first.text())).ok().as_deref(), Some(WORDS));
}

#[tokio::test(start_paused = true)]
async fn where_the_bytes_are_cut_changes_nothing() {
    for bytes in [1, 2, 3, 7, 64, 1_000] {
        let provider = memory().otherwise(words().usage(3, 4).split_every(bytes));
        let client = client_of(&provider, target(&provider));
        let reply = opened(&client, "hi").await.into_reply().await.expect("a reply");
        assert_eq!((reply.text(), reply.usage().map(|usage| usage.total)), (WORDS, Some(7)), "{bytes}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_before_the_first_content_is_retried() {
    for failure in [
        Fault::status(503),
        Fault::connection_refused(),
        Fault::reset_before_head(),
        words().after_events(0, Mishap::overloaded()),
        words().after_events(0, Mishap::reset()),
        words().after_events(0, Mishap::end()),
        words().after_events(0, Mishap::hang()),
        words().after_events(0, Mishap::pings(100, secs(5))).then_hang(),
    ] {
        let name = failure.to_string();
        let provider = memory().then(failure).otherwise(words());
        let client = client_of(&provider, target(&provider).retry(retries(1)).timeout(secs(20)));
        let reply = opened(&client, "hi").await.into_reply().await.expect("the second attempt answers");
        assert_eq!((reply.text(), reply.attempts().len(), provider.requests()), (WORDS, 1, 2), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_overload_told_by_the_first_event_is_an_overload_and_falls_over() {
    let (first, second) = (primary(), fallback());
    first.set_otherwise(words().after_events(0, Mishap::overloaded()));
    second.set_otherwise(words());
    let client = built(pair(&first, &second));
    let stream = opened(&client, "hi").await;
    assert_eq!((stream.target().index, codes(stream.attempts())), (1, vec!["overloaded"]));
    assert_eq!(stream.collect_text().await.ok().as_deref(), Some(WORDS));
}

#[tokio::test(start_paused = true)]
async fn pings_alone_end_at_the_timeout() {
    let provider = memory().otherwise(words().after_events(0, Mishap::pings(1_000, secs(5))));
    let client = client_of(&provider, target(&provider).timeout(secs(42)));
    let start = Instant::now();
    assert_eq!(code(&unopened(&client, "hi").await), "request_timeout");
    assert_eq!(start.elapsed(), secs(42));
    assert_eq!(provider.exchanges_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn after_content_nothing_is_sent_again_and_what_came_is_kept() {
    for mishap in [Mishap::end(), Mishap::close(), Mishap::reset()] {
        let name = mishap.to_string();
        let (first, second) = (primary(), fallback());
        first.set_otherwise(words().after_events(4, mishap));
        second.set_otherwise(words());
        let client = built(chain(target(&first).retry(retries(3)), target(&second), &first, &second));
        let error = broken(&client, "hi").await;
        assert_eq!((error.kind(), code(&error)), (ErrorKind::Network, "stream_interrupted"), "{name}");
        assert!(!error.is_retryable() && error.counts_toward_breaker(), "{name}");
        assert!(error.attempts().is_empty() && error.targets().is_empty(), "{name}: one attempt, one target");
        assert!(error.request().is_some(), "{name}");
        let partial = error.partial().expect("what came").text().to_owned();
        assert!(!partial.is_empty() && partial.len() < WORDS.len() && WORDS.starts_with(&partial), "{name}: {partial}");
        assert_eq!((first.requests(), second.requests()), (1, 0), "{name}");
        assert_eq!(first.exchanges_open(), 0, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_request_is_not_held_while_its_answer_streams_and_no_other_is_shown_for_it() {
    let provider = memory().otherwise(words().after_events(4, Mishap::reset()));
    let client = client_of(&provider, target(&provider));
    for (length, kept) in [(100, true), (20_000, false)] {
        let error = broken(&client, "x".repeat(length)).await;
        let shown = error.request().expect("it was sent").body.as_ref().map(|body| body.bytes().len());
        assert_eq!(shown.is_some_and(|shown| shown > length), kept, "{shown:?}");
        assert!(kept || shown.is_none(), "{shown:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_provider_in_the_stream_is_what_it_says() {
    let provider = memory().otherwise(words().after_events(4, Mishap::overloaded()));
    let error = broken(&client_of(&provider, target(&provider).retry(retries(3))), "hi").await;
    assert_eq!((error.kind(), code(&error), provider.requests()), (ErrorKind::Api, "overloaded", 1));
    assert!(!error.is_retryable(), "output was delivered");
    assert!(error.partial().is_some_and(|partial| partial.text().starts_with("One")));
}

#[tokio::test(start_paused = true)]
async fn garbage_in_a_stream_is_named() {
    let provider = memory().otherwise(words().after_events(3, Mishap::bytes("data: {\"choices\":[{]\n\n")));
    let error = broken(&client_of(&provider, target(&provider)), "hi").await;
    assert_eq!((error.kind(), code(&error)), (ErrorKind::Parse, "stream_frame_invalid"));
}

#[tokio::test(start_paused = true)]
async fn an_event_over_the_bound_is_refused() {
    let provider = memory().otherwise(words().after_events(3, Mishap::oversized(5_000)));
    let client = built(Client::builder(target(&provider)).transport(provider.clone()).max_event_bytes(4_000));
    let error = broken(&client, "hi").await;
    assert_eq!(code(&error), "response_too_large");
    assert_eq!(error.issues(), Some(&Issues::TooLarge { limit: 4_000 }));
}

#[tokio::test(start_paused = true)]
async fn silence_in_bytes_ends_a_stream_and_keep_alives_are_no_silence() {
    let provider = memory().otherwise(words().after_events(3, Mishap::pause(secs(500))));
    let client = client_of(&provider, target(&provider));
    let mut stream = opened(&client, "hi").await;
    let start = Instant::now();
    let (_, error) = drained(&mut stream).await;
    let error = error.expect("silence");
    assert_eq!((start.elapsed(), code(&error)), (secs(60), "idle_timeout"));
    assert_eq!(error.issues(), Some(&Issues::Silence { silence: Silence::Bytes }));
    assert!(!error.is_retryable() && error.partial().is_some());
    assert_eq!(provider.exchanges_open(), 0);

    provider.set_otherwise(words().after_events(3, Mishap::pings(100, secs(59))));
    assert_eq!(opened(&client, "hi").await.collect_text().await.ok().as_deref(), Some(WORDS), "100 minutes of pings");
    provider.set_otherwise(words().after_events(3, Mishap::pause(secs(500))));
    let patient = opened(&client, Call::user("hi").idle_timeout(None)).await;
    assert_eq!(patient.collect_text().await.ok().as_deref(), Some(WORDS));
}

#[tokio::test(start_paused = true)]
async fn silence_before_the_first_byte_of_a_stream_ends_the_attempt_and_is_retried() {
    let silent = words().after_events(0, Mishap::pause(secs(500)));
    let provider = memory().then(silent).otherwise(words());
    let client = client_of(&provider, target(&provider).retry(retries(1)));
    let start = Instant::now();
    let stream = opened(&client, "hi").await;
    assert_eq!((codes(stream.attempts()), start.elapsed()), (vec!["idle_timeout"], secs(60) + ms(100)));
}

#[tokio::test(start_paused = true)]
async fn silence_in_content_ends_a_stream_where_that_is_asked_for() {
    let provider = memory().otherwise(words().after_events(3, Mishap::pings(100, secs(20))));
    let client = client_of(&provider, target(&provider).stall_timeout(secs(90)));
    let mut stream = opened(&client, "hi").await;
    let start = Instant::now();
    let (_, error) = drained(&mut stream).await;
    let error = error.expect("a stall");
    assert_eq!((start.elapsed(), code(&error)), (secs(90), "idle_timeout"));
    assert_eq!(error.issues(), Some(&Issues::Silence { silence: Silence::Content }));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_its_time_is_not_a_silent_provider() {
    let provider = memory().otherwise(words());
    let client = client_of(&provider, target(&provider).stall_timeout(secs(5)));
    let mut stream = opened(&client, "hi").await;
    let mut text = String::new();
    while let Some(chunk) = stream.next().await {
        text.push_str(chunk.expect("it does not break").text());
        sleep(secs(200)).await;
    }
    assert_eq!(text, WORDS);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_for_opening_alone() {
    let provider = memory().otherwise(words().after_events(3, Mishap::pause(secs(50))));
    let client = client_of(&provider, target(&provider));
    let stream = opened(&client, Call::user("hi").deadline(secs(10))).await;
    assert_eq!(stream.collect_text().await.ok().as_deref(), Some(WORDS));
    provider.set_otherwise(words().delay(secs(50)));
    assert_eq!(code(&unopened(&client, Call::user("hi").deadline(secs(10))).await), "deadline_exceeded");
}

#[tokio::test(start_paused = true)]
async fn a_token_cancels_an_open_stream() {
    let provider = memory().otherwise(words().after_events(3, Mishap::pause(secs(50))));
    let client = client_of(&provider, target(&provider));
    let token = CancellationToken::new();
    let mut stream = opened(&client, Call::user("hi").cancel_on(token.clone())).await;
    tokio::spawn(async move {
        sleep(secs(7)).await;
        token.cancel();
    });
    let start = Instant::now();
    let (texts, error) = drained(&mut stream).await;
    assert_eq!((start.elapsed(), error.map(|error| error.kind())), (secs(7), Some(ErrorKind::Aborted)));
    assert!(!texts.is_empty());
    assert_eq!(provider.exchanges_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn deaths_in_the_middle_open_the_circuit_and_a_whole_stream_heals_it() {
    let breaker = || CircuitBreaker::consecutive(2).cooldown(secs(30));
    let provider = memory().otherwise(words().after_events(3, Mishap::reset()));
    let client = client_of(&provider, target(&provider).circuit_breaker(breaker()));
    for state in [CircuitState::Closed, CircuitState::Open] {
        broken(&client, "hi").await;
        assert_eq!(client.primary().circuit(), Some(state));
    }
    assert_eq!(code(&unopened(&client, "hi").await), "circuit_cooling_down");
    assert_eq!(client.primary().failure_breakdown().get("stream_interrupted"), Some(&2));

    sleep(secs(30)).await;
    provider.set_otherwise(words());
    let mut trial = opened(&client, "hi").await;
    trial.next().await;
    assert_eq!(client.primary().circuit(), Some(CircuitState::HalfOpen), "not before the stream has ended");
    assert!(trial.into_reply().await.is_ok());
    assert_eq!(client.primary().circuit(), Some(CircuitState::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_says_nothing_about_the_target_and_gives_its_trial_back() {
    let provider = memory().then(Fault::status(500)).otherwise(words().after_events(3, Mishap::hang()));
    let client = client_of(&provider, target(&provider).circuit_breaker(CircuitBreaker::consecutive(1)));
    failure(&client, "hi").await;
    sleep(secs(30)).await;
    for _ in 0..3 {
        let mut trial = opened(&client, "hi").await;
        trial.next().await;
        drop(trial);
        assert_eq!(client.primary().circuit(), Some(CircuitState::HalfOpen));
        assert_eq!(provider.exchanges_open(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_holds_its_slot_until_it_ends_breaks_or_is_dropped() {
    let provider = memory().otherwise(words());
    let client = client_of(&provider, target(&provider).rate_limit(RateLimit::new().max_concurrent(1)));
    let in_flight = || client.primary().rate_limit().map(|limit| limit.in_flight);
    let mut stream = opened(&client, "hi").await;
    stream.next().await;
    assert_eq!(in_flight(), Some(1));
    drained(&mut stream).await;
    assert_eq!(in_flight(), Some(0), "ended, though not dropped");
    drop(opened(&client, "hi").await);
    assert_eq!(in_flight(), Some(0), "dropped");
    provider.set_otherwise(words().after_events(3, Mishap::reset()));
    broken(&client, "hi").await;
    assert_eq!(in_flight(), Some(0), "broken");
}

#[tokio::test(start_paused = true)]
async fn tokens_are_reconciled_with_what_the_stream_reports_or_counted() {
    let limit = || RateLimit::new().tokens_per_minute(60_000).token_burst(60_000);
    let spent = async |answer: Answer| {
        let provider = memory().otherwise(answer);
        let client = client_of(&provider, target(&provider).rate_limit(limit()));
        let stream = opened(&client, Call::user("hi there").estimated_tokens(20_000)).await;
        _ = stream.into_reply().await;
        60_000 - client.primary().rate_limit().and_then(|limit| limit.tokens_remaining).expect("a bucket")
    };
    assert_eq!(spent(words().usage(100, 23)).await, 123);
    // "One two three" is 13 bytes and the prompt 8: four tokens and two.
    assert_eq!(spent(words().usage(100, 23).after_events(4, Mishap::reset())).await, 6);
}

#[tokio::test(start_paused = true)]
async fn without_accumulation_chunks_pass_and_no_reply_is_kept() {
    let provider = memory().otherwise(words());
    let client = client_of(&provider, target(&provider));
    let call = || Call::user("hi").accumulate(false);
    assert_eq!(opened(&client, call()).await.collect_text().await.ok().as_deref(), Some(WORDS));
    let error = opened(&client, call()).await.into_reply().await.expect_err("there is no reply");
    assert_eq!((error.kind(), code(&error)), (ErrorKind::InvalidParams, "invalid_call"));
}

#[tokio::test(start_paused = true)]
async fn usage_and_the_end_are_told_when_the_stream_ends() {
    let provider = memory().otherwise(words().usage(12, 6));
    let (client, events) = listening(&provider, target(&provider));
    let count =
        |kind: fn(&EventKind) -> bool| events.lock().expect("no panic").iter().filter(|e| kind(&e.kind)).count();
    let usage: fn(&EventKind) -> bool = |kind| matches!(kind, EventKind::Usage { usage } if usage.total == 18);
    let answered: fn(&EventKind) -> bool =
        |kind| matches!(kind, EventKind::CallFinished { outcome: CallOutcome::Answered, .. });
    let mut stream = opened(&client, "hi").await;
    stream.next().await;
    assert_eq!((count(usage), count(answered)), (0, 0), "it is open");
    drained(&mut stream).await;
    assert_eq!((count(usage), count(answered)), (1, 1));
    drop(stream);
    assert_eq!((count(usage), count(answered)), (1, 1), "once");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_dropped_or_breaks_tells_what_it_has_spent_so_far() {
    let provider = memory().otherwise(words().after_events(4, Mishap::reset()));
    let (client, events) = listening(&provider, target(&provider));
    let spent = || {
        let events = std::mem::take(&mut *events.lock().expect("no panic"));
        let of = |event: &Event| match event.kind {
            EventKind::UsageFailure { usage, partial, estimated } => Some((usage.total, partial, estimated)),
            _ => None,
        };
        let finished = events.iter().filter_map(|event| match event.kind {
            EventKind::CallFinished { outcome, .. } => Some(outcome),
            _ => None,
        });
        (events.iter().filter_map(of).collect::<Vec<_>>(), finished.collect::<Vec<_>>())
    };
    let mut stream = opened(&client, "hi there").await;
    stream.next().await;
    drop(stream);
    assert_eq!(spent(), (vec![(3, true, true)], vec![CallOutcome::Dropped]), "\"One\", and a prompt of 8 characters");
    broken(&client, "hi there").await;
    assert_eq!(spent(), (vec![(6, true, true)], vec![CallOutcome::Failed]));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_whole_is_as_good_as_a_stream() {
    let body = r#"{"choices":[{"message":{"content":"Whole."},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
    let whole = Answer::raw(200).header("content-type", "application/json").body(body);
    let unnamed = Answer::raw(200).header("content-type", "text/event-stream").body(body);
    for answer in [whole, unnamed] {
        let provider = memory().otherwise(answer);
        let reply = opened(&client_of(&provider, target(&provider)), "hi").await.into_reply().await.expect("a reply");
        assert_eq!((reply.text(), reply.usage().map(|usage| usage.total)), ("Whole.", Some(5)));
    }
    for error in [Fault::error_in_200("overloaded", "busy"), Fault::html(200), Fault::empty()] {
        let name = error.to_string();
        let provider = memory().then(error).otherwise(words());
        let client = client_of(&provider, target(&provider).retry(retries(1)));
        match client.stream("hi").await {
            Ok(stream) => assert_eq!(codes(stream.attempts()).len(), 1, "{name}"),
            Err(error) => assert_eq!((code(&error), provider.requests()), ("response_invalid", 1), "{name}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_after_any_number_of_polls_a_stream_leaves_nothing() {
    let answer = || words().after_events(2, Mishap::pause(ms(30))).delay(ms(10));
    for polls in 0.. {
        let provider = memory().then(Fault::status(503)).otherwise(answer());
        let target = target(&provider)
            .retry(retries(2))
            .rate_limit(RateLimit::new().max_concurrent(1))
            .circuit_breaker(CircuitBreaker::consecutive(5));
        let client = client_of(&provider, target);
        let whole = polled(polls, async { client.stream("hi").await?.collect_text().await }).await;
        sleep(ms(200)).await;
        let limit = client.primary().rate_limit().expect("a limiter");
        assert_eq!((limit.in_flight, limit.queued, provider.exchanges_open()), (0, 0, 0), "after {polls} polls");
        if let Some(whole) = whole {
            assert_eq!(whole.ok().as_deref(), Some(WORDS));
            assert!(polls >= 4, "a stream has many awaits: {polls}");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stops_holds_the_server_back() {
    // Pieces are made as they are asked for: what was not asked for is still there.
    let pieces =
        (0..1_000).map(|n| Piece::from(format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{n} \"}}}}]}}\n\n")));
    let answer = Answer::raw(200).header("content-type", "text/event-stream").pieces(pieces).chunked();
    let provider = memory().otherwise(answer.then_hang());
    let client = client_of(&provider, target(&provider));
    let mut stream = opened(&client, "hi").await;
    for n in 0..10 {
        let chunk = stream.next().await.expect("a chunk").expect("no error");
        assert_eq!(chunk.text(), format!("{n} "));
    }
    sleep(Duration::from_secs(60)).await;
    assert_eq!(provider.exchanges_open(), 1);
    assert_eq!(stream.next().await.expect("a chunk").expect("no error").text(), "10 ");
}

#[tokio::test]
async fn a_server_that_ends_connections_without_a_word_is_asked_on_a_new_one_each_time() {
    let provider = FakeProvider::openai().otherwise(words()).start().await.expect("a port is free");
    for (adapter, reused) in
        [(OpenAiCompatible::preset("vllm"), [false, true]), (OpenAiCompatible::preset("llama.cpp"), [false, false])]
    {
        let adapter = adapter.expect("a known server").base_url(&provider.base_url());
        let client = built(Client::builder(Target::new(adapter, "local")));
        for _ in reused {
            reply(&client, "hi").await;
        }
        let journal = provider.journal();
        let last_two: Vec<bool> = journal[journal.len() - 2..].iter().map(|received| received.reused).collect();
        assert_eq!(last_two, reused);
    }
}
