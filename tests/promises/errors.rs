//! What an error looks like: its JSON, and its one line.

use super::support::*;
use serde_json::Value;
use std::time::Duration;
use steadfast::record::{Attempt, ErrorSnapshot, TargetAttempt};
use steadfast::resilience::{CircuitBreaker, RateLimit, RetryBudget};
use steadfast::testing::{Answer, Fault};
use steadfast::{Call, Client, LlmError, Target, provider::OpenAiCompatible};
use tokio_util::sync::CancellationToken;

const GOLDEN: &str = include_str!("../../fixtures/errors/exhausted_chain.json");

/// A chain whose primary fails twice, and whose fallback then refuses.
async fn exhausted() -> LlmError {
    let limited = Fault::rate_limited(ms(1_500)).delay(ms(120)).header("x-request-id", "req_1");
    let primary = primary().then(limited).otherwise(Fault::status(503).delay(ms(80)).header("x-request-id", "req_2"));
    let fallback = fallback().otherwise(Fault::bad_request("The request is too long.").header("x-request-id", "req_3"));
    let first = target(&primary).retry(retries(1)).circuit_breaker(CircuitBreaker::consecutive(9));
    let second = Target::new(OpenAiCompatible::new(fallback.base_url()).named("other"), "model-2").name("fallback");
    let client = built(chain(first, second, &primary, &fallback));
    failure(&client, Call::user("What is up?").temperature(0.5).request_id("call-1")).await
}

/// The same JSON with every point in time taken out.
fn timeless(mut value: Value) -> Value {
    fn visit(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        Value::String(time) if matches!(name.as_str(), "started_at" | "opened_at" | "resets_at") => {
                            assert!(time.ends_with('Z') && time.contains('T'), "{time} is not RFC 3339");
                            "(a point in time)".clone_into(time);
                        }
                        value => visit(value),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(visit),
            _ => {}
        }
    }
    visit(&mut value);
    value
}

#[tokio::test(start_paused = true)]
async fn the_json_of_an_exhausted_chain_is_pinned() {
    let error = exhausted().await;
    let json = timeless(serde_json::to_value(&error).expect("serializable"));
    let golden: Value = serde_json::from_str(GOLDEN).expect("the golden file is JSON");
    assert_eq!(json, golden, "{}", serde_json::to_string_pretty(&json).expect("serializable"));
}

#[tokio::test(start_paused = true)]
async fn json_reads_back_equal_as_a_whole_and_in_parts() {
    let error = exhausted().await;
    let snapshot = error.to_snapshot();
    let json = serde_json::to_string(&error).expect("serializable");
    assert_eq!(serde_json::from_str::<ErrorSnapshot>(&json).expect("read"), snapshot);
    assert_eq!(
        serde_json::from_str::<ErrorSnapshot>(GOLDEN_READABLE.trim()).map(|read| read.kind).ok(),
        Some(error.kind())
    );
    for target in error.targets() {
        let json = serde_json::to_string(target).expect("serializable");
        assert_eq!(serde_json::from_str::<TargetAttempt>(&json).expect("read"), *target);
        for attempt in &target.attempts {
            let json = serde_json::to_string(attempt).expect("serializable");
            assert_eq!(serde_json::from_str::<Attempt>(&json).expect("read"), *attempt);
        }
    }
}

/// What another version may have written: the least that a reader needs.
const GOLDEN_READABLE: &str = r#"{"kind":"fallback_exhausted","message":"m","retryable":true}"#;

#[tokio::test(start_paused = true)]
async fn absent_fields_are_left_out_and_the_source_never_written() {
    let json =
        serde_json::to_value(LlmError::new(steadfast::ErrorKind::Api, "m").with_source("the cause")).expect("json");
    assert_eq!(json, serde_json::json!({"kind": "api", "message": "m", "retryable": false}));
}

/// Errors of every sort that a call without streams and tools can have, with the name of the target where it has one.
async fn every_sort() -> Vec<(&'static str, LlmError)> {
    let mut errors = Vec::new();
    let long = "The provider has a lot to say about this.\n".repeat(100);
    for answer in [
        Fault::status(500),
        Fault::status(401),
        Fault::rate_limited(secs(20)),
        Fault::quota_exhausted(),
        Fault::overloaded(),
        Fault::bad_request(long),
        Fault::bad_request("It ends with a period."),
        Fault::bad_request("It ends with dots..."),
        Fault::html(200),
        Fault::html(502),
        Fault::empty(),
        Fault::error_in_200("server_error", "Sorry about that."),
        Fault::hang(),
        Fault::connection_refused(),
        Fault::reset_before_head(),
        Fault::reset_in_body(),
        Fault::truncated_body(),
        Answer::text("").finish_reason("content_filter"),
        Answer::raw(204),
        Answer::raw(307).header("location", "https://elsewhere.invalid/x"),
        Answer::raw(200).header("content-encoding", "br").body("\u{b}\u{2}"),
    ] {
        let provider = memory().otherwise(answer);
        for max in [0, 1] {
            let client = client_of(&provider, target(&provider).retry(retries(max)));
            errors.push(("memory: ", failure(&client, "hi").await));
        }
    }
    let failing = memory().otherwise(Fault::status(500));
    let on = |change: fn(Target) -> Target| client_of(&failing, change(target(&failing).retry(retries(1))));
    errors.push(("memory: ", failure(&on(|t| t.retry_budget(RetryBudget::new(secs(60), 0, 0.0))), "hi").await));
    let broken = on(|t| t.circuit_breaker(CircuitBreaker::consecutive(1)));
    failure(&broken, "hi").await;
    errors.push(("memory: ", failure(&broken, "hi").await));
    broken.primary().hold_circuit_open();
    errors.push(("memory: ", failure(&broken, "hi").await));
    errors.push(("memory: ", failure(&on(|t| t.rate_limit(RateLimit::new().tokens_per_minute(1))), "hi").await));
    let queue = on(|t| t.rate_limit(RateLimit::new().requests_per_minute(1).max_queue_time(secs(1))));
    errors.push(("memory: ", failure(&queue, "hi").await));
    let full = on(|t| t.rate_limit(RateLimit::new().requests_per_minute(1).max_queue_len(0)));
    errors.push(("memory: ", failure(&full, "hi").await));
    let hung = memory().otherwise(Fault::hang());
    let hung = client_of(&hung, target(&hung));
    errors.push(("memory: ", failure(&hung, Call::user("hi").deadline(secs(1))).await));
    errors.push(("", failure(&hung, Call::user("hi").deadline(Duration::ZERO)).await));
    let token = CancellationToken::new();
    token.cancel();
    errors.push(("", failure(&hung, Call::user("hi").cancel_on(token)).await));
    errors.push(("", failure(&hung, Call::user("")).await));
    errors.push(("", failure(&hung, Call::user("hi").model("")).await));
    errors.push(("", exhausted().await));
    errors
}

#[tokio::test(start_paused = true)]
async fn display_is_one_line_that_a_person_can_act_on() {
    for (name, error) in every_sort().await {
        for line in [error.to_string(), error.to_snapshot().to_string()] {
            let Some(rest) = line.strip_prefix(name) else { panic!("{line} does not begin with {name}") };
            assert!(rest.starts_with(|c: char| c.is_lowercase()), "not lower-case: {line}");
            assert!(!line.ends_with('.'), "ends with a period: {line}");
            assert!(!line.contains('\n') && !line.contains('\r'), "more than one line: {line}");
            assert!(line.chars().count() <= 600, "{} characters: {line}", line.chars().count());
            assert!(!line.contains("  ") && line.trim() == line, "stray spaces: {line:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_chain_of_many_wordy_targets_is_still_one_short_line() {
    let message = "words that go on and on ".repeat(40);
    let hosts: Vec<_> =
        (0..8).map(|n| memory().host(&format!("target{n}.invalid")).otherwise(Fault::html(502))).collect();
    hosts[7].set_otherwise(Fault::bad_request(message));
    let builder = hosts[1..].iter().fold(Client::builder(target(&hosts[0])), |b, h| b.fallback(target(h)));
    let error = failure(&built(builder.transport(steadfast::testing::MemoryNetwork::new(&hosts))), "hi").await;
    let line = error.to_string();
    assert!(line.chars().count() <= 1_000 && line.starts_with("all 8 targets failed: "), "{line}");
}

#[tokio::test(start_paused = true)]
async fn lines_say_what_where_how_often_and_in_whose_words() {
    let provider = memory().otherwise(Fault::overloaded().delay(ms(700)));
    let client = client_of(&provider, target(&provider).retry(retries(2)));
    let said = failure(&client, "hi").await.to_string();
    let expected = "memory: overloaded (503), 3 attempts over 2.4 s; provider says: \
                    The server is currently overloaded with other requests. Sorry about that!";
    assert_eq!(said, expected);
    let provider = memory().otherwise(Fault::connection_refused());
    let said = failure(&client_of(&provider, target(&provider)), "hi").await.to_string();
    assert_eq!(said, "memory: connection failed: connection refused");
    let provider = memory().otherwise(Fault::bad_request("Unknown field: x."));
    let said = failure(&client_of(&provider, target(&provider)), "hi").await.to_string();
    assert_eq!(said, "memory: invalid request (400); provider says: Unknown field: x");
}

#[tokio::test(start_paused = true)]
async fn provider_words_are_quoted_up_to_300_characters() {
    let provider = memory().otherwise(Fault::bad_request("ä".repeat(1_000)));
    let error = failure(&client_of(&provider, target(&provider)), "hi").await;
    let quoted = error.to_string().matches('ä').count();
    assert_eq!(quoted, 300, "{error}");
    assert!(error.to_string().ends_with('…'));
    assert_eq!(error.provider_message().map(|says| says.chars().count()), Some(1_000), "the whole is in the error");
}
