//! Which target answers when one fails, and what a chain returns when all do.

use super::support::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::chat::Sampling;
use steadfast::provider::{OpenAi, OpenAiCompatible};
use steadfast::record::Issues;
use steadfast::resilience::{CircuitBreaker, RateLimit};
use steadfast::testing::{Answer, Fault, MemoryNetwork, MemoryTransport};
use steadfast::{Call, Client, ErrorCode, ErrorKind, FallbackDecision, LlmError, Target, default_fallback};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn targets_are_tried_in_the_order_in_which_they_were_added() {
    let hosts: Vec<_> = (0..4).map(|n| memory().host(&format!("target{n}.invalid"))).collect();
    for good in 0..hosts.len() {
        for (place, host) in hosts.iter().enumerate() {
            host.set_otherwise(if place == good { Answer::echo() } else { Fault::status(500) });
        }
        let before: Vec<_> = hosts.iter().map(MemoryTransport::requests).collect();
        let builder = hosts[1..].iter().fold(Client::builder(target(&hosts[0])), |b, h| b.fallback(target(h)));
        let answer = reply(&built(builder.transport(MemoryNetwork::new(&hosts))), "hi").await;
        assert_eq!((answer.target().index, &*answer.target().name), (good, format!("target{good}").as_str()));
        assert_eq!(codes(answer.attempts()), vec!["server_error"; good]);
        let asked: Vec<_> = hosts.iter().zip(before).map(|(host, before)| host.requests() - before).collect();
        let expected: Vec<_> = (0..hosts.len()).map(|place| usize::from(place <= good)).collect();
        assert_eq!(asked, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_healthy_primary_is_always_asked_first_again() {
    let (primary, fallback) = (primary().then(Fault::status(500)), fallback());
    let client = built(pair(&primary, &fallback));
    assert_eq!(reply(&client, "hi").await.target().index, 1);
    assert_eq!(reply(&client, "hi").await.target().index, 0);
}

#[tokio::test(start_paused = true)]
async fn one_target_returns_its_own_error() {
    let provider = memory().otherwise(Fault::status(500));
    let error = failure(&client_of(&provider, target(&provider)), "hi").await;
    assert_eq!((error.kind(), code(&error), error.targets().len()), (ErrorKind::Api, "server_error", 0));
}

#[tokio::test(start_paused = true)]
async fn several_return_fallback_exhausted_with_all_of_them() {
    let primary = primary().otherwise(Fault::status(500));
    let fallback = fallback().otherwise(Fault::rate_limited(secs(70)));
    let first = target(&primary).retry(retries(2));
    let error = failure(&built(chain(first, target(&fallback), &primary, &fallback)), "hi").await;
    assert_eq!((error.kind(), code(&error)), (ErrorKind::FallbackExhausted, "fallback_exhausted"));
    assert_eq!(target_codes(&error), ["server_error", "provider_rate_limited"]);
    let [one, two] = error.targets() else { panic!("two targets") };
    assert_eq!((one.target, one.name.as_str(), one.model.as_str()), (0, "primary", "model-1"));
    assert_eq!((two.target, two.name.as_str(), two.provider.as_str()), (1, "fallback", "openai_compatible"));
    assert_eq!((codes(&one.attempts).len(), codes(&two.attempts).len()), (3, 0));
    assert!(one.request.is_some() && two.request.is_some());
    // The last target's words.
    assert_eq!((error.status(), error.provider_code()), (Some(429), Some("rate_limit_exceeded")));
    assert!(error.provider_message().is_some_and(|says| says.starts_with("Rate limit reached")));
    assert!(error.attempts().is_empty());
    assert_eq!(error.request().map(|request| request.name.as_str()), Some("fallback"));
}

#[tokio::test(start_paused = true)]
async fn the_advised_wait_of_a_chain_is_the_smallest_of_any_target() {
    let at = async |first: Option<u64>, second: Option<u64>| {
        let answer = |wait: Option<u64>| wait.map_or(Fault::status(500), |wait| Fault::rate_limited(secs(wait)));
        let (primary, fallback) = (primary().otherwise(answer(first)), fallback().otherwise(answer(second)));
        failure(&built(pair(&primary, &fallback)), "hi").await.retry_after()
    };
    assert_eq!(at(Some(90), Some(70)).await, Some(secs(70)));
    assert_eq!(at(Some(70), Some(90)).await, Some(secs(70)));
    assert_eq!(at(Some(70), None).await, Some(secs(70)));
    assert_eq!(at(None, Some(70)).await, Some(secs(70)));
    assert_eq!(at(None, None).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_chain_is_retryable_if_any_target_is() {
    let at = async |first: u16, second: u16| {
        let (primary, fallback) = (primary().otherwise(Fault::status(first)), fallback());
        fallback.set_otherwise(Fault::status(second));
        let error = failure(&built(pair(&primary, &fallback)), "hi").await;
        assert!(!error.counts_toward_breaker());
        error.is_retryable()
    };
    assert!(at(500, 401).await && at(401, 500).await && at(500, 500).await);
    assert!(!at(401, 404).await);
}

#[tokio::test(start_paused = true)]
async fn the_default_policy_goes_on_for_what_another_target_may_do_better() {
    let too_large = Answer::raw(200).header("content-length", "999999999999").body("{}");
    for answer in [
        Fault::status(400),
        Fault::status(401),
        Fault::status(403),
        Fault::status(404),
        Fault::status(413),
        Fault::status(429),
        Fault::status(500),
        Fault::overloaded(),
        Fault::quota_exhausted(),
        Fault::html(200),
        Fault::html(502),
        Fault::empty(),
        Fault::error_in_200("server_error", "m"),
        Fault::connection_refused(),
        Fault::reset_before_head(),
        Fault::reset_in_body(),
        Fault::truncated_body(),
        Fault::hang(),
        Answer::text("").finish_reason("content_filter"),
        Answer::raw(307).header("location", "http://elsewhere.invalid/"),
        Answer::raw(204),
        too_large,
    ] {
        let name = answer.to_string();
        let (primary, fallback) = (primary().otherwise(answer), fallback());
        let answer = built(pair(&primary, &fallback)).call("hi").await;
        assert_eq!(answer.map(|reply| reply.target().index).ok(), Some(1), "{name}");
        assert_eq!((primary.requests(), fallback.requests()), (1, 1), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_default_policy_is_this_table() {
    let cx = captured_context().await;
    let stops = [
        "deadline_exceeded",
        "json_parse_failed",
        "tool_arguments_parse_failed",
        "schema_mismatch",
        "unknown_tool",
        "duplicate_tool_call_id",
        "tool_choice_none_violated",
        "unexpected_tool_calls",
        "duplicate_tool_names",
        "unknown_tool_choice",
        "duplicate_tool_result_ids",
        "unknown_tool_result_ids",
        "missing_tool_results",
        "invalid_history",
        "invalid_call",
        "invalid_config",
    ];
    for code in ErrorCode::ALL {
        let error = LlmError::new(code.kind(), "m").with_code(*code);
        let stop = default_fallback(&error, &cx) == FallbackDecision::Stop;
        assert_eq!(stop, stops.contains(&code.as_str()), "{code}");
    }
    for kind in ErrorKind::ALL {
        let stop = default_fallback(&LlmError::new(*kind, "m"), &cx) == FallbackDecision::Stop;
        let stops = matches!(kind, ErrorKind::Aborted | ErrorKind::QuotaExceeded | ErrorKind::InvalidParams);
        assert_eq!(stop, stops, "{kind}");
    }
}

async fn captured_context() -> steadfast::FallbackContext {
    let (primary, fallback) = (primary().otherwise(Fault::status(500)), fallback());
    let seen = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&seen);
    let client = built(pair(&primary, &fallback).fallback_on(move |_, cx| {
        *keep.lock().expect("not poisoned") = Some(*cx);
        FallbackDecision::Next
    }));
    reply(&client, "hi").await;
    seen.lock().expect("not poisoned").take().expect("asked")
}

#[tokio::test(start_paused = true)]
async fn a_custom_policy_can_wrap_the_default_one() {
    let client = |first: Answer| {
        let (primary, fallback) = (primary().otherwise(first), fallback());
        let builder = pair(&primary, &fallback).fallback_on(|error, cx| match error.code() {
            Some(ErrorCode::Authentication) => FallbackDecision::Stop,
            _ => default_fallback(error, cx),
        });
        (built(builder), fallback)
    };
    let (loud, fallback) = client(Fault::unauthorized());
    let error = failure(&loud, "hi").await;
    assert_eq!((code(&error), fallback.requests()), ("authentication", 0), "its own error, not a chain's");
    let (other, fallback) = client(Fault::status(500));
    assert_eq!((reply(&other, "hi").await.target().index, fallback.requests()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_policy_is_told_where_the_chain_stands() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&seen);
    let (primary, fallback) = (
        primary().otherwise(Fault::status(500).delay(secs(2))),
        fallback().otherwise(Fault::status(404).delay(secs(1))),
    );
    let client = built(pair(&primary, &fallback).fallback_on(move |error, cx| {
        let mut seen = keep.lock().expect("not poisoned");
        seen.push((error.status(), cx.target, cx.is_last, cx.elapsed, cx.remaining_deadline));
        default_fallback(error, cx)
    }));
    failure(&client, Call::user("hi").deadline(secs(10))).await;
    let expected = [(Some(500), 0, false, secs(2), Some(secs(8))), (Some(404), 1, true, secs(3), Some(secs(7)))];
    assert_eq!(*seen.lock().expect("not poisoned"), expected);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_panics_stops_the_chain_and_hurts_nobody() {
    let (primary, fallback) = (primary().otherwise(Fault::status(500)), fallback());
    let client = built(pair(&primary, &fallback).fallback_on(|_, _| panic!("a bug in the policy")));
    for _ in 0..2 {
        let error = failure(&client, "hi").await;
        assert_eq!((code(&error), fallback.requests()), ("server_error", 0));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unsupported_capability_goes_on_without_a_request() {
    // The primary's model is known to take no temperature; the fallback's takes it.
    let (primary, fallback) = (primary(), fallback());
    let first = Target::new(OpenAi::new("sk-12345678").base_url(&primary.base_url()), "gpt-5-mini");
    let client = built(chain(first.clone(), target(&fallback), &primary, &fallback));
    let answer = reply(&client, Call::user("hi").temperature(0.5)).await;
    assert_eq!((answer.target().index, primary.requests(), fallback.requests()), (1, 0, 1));

    let alone = client_of(&primary, first);
    let error = failure(&alone, Call::user("hi").temperature(0.5)).await;
    assert_eq!((error.kind(), code(&error)), (ErrorKind::InvalidParams, "unsupported_capability"));
    let issues = Issues::Capability { capability: "temperature".into(), model: "gpt-5-mini".into() };
    assert_eq!(error.issues(), Some(&issues));
    assert!(error.request().is_none() && !error.is_retryable());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_right_anywhere_is_found_before_anything_is_sent() {
    use steadfast::chat::{Request, Turn};
    let (primary, fallback) = (primary(), fallback());
    let client = built(pair(&primary, &fallback));
    for (call, code) in [
        (Call::user(""), "invalid_call"),
        (Call::user("  \n"), "invalid_call"),
        (Call::default(), "invalid_call"),
        (Call::user("hi").max_tokens(0), "invalid_call"),
        (Call::user("hi").temperature(f64::NAN), "invalid_call"),
        (Call::user("hi").temperature(-0.1), "invalid_call"),
        (Call::user("hi").top_p(f64::INFINITY), "invalid_call"),
        (Call::user("hi").extra(serde_json::json!([1])), "invalid_call"),
        (Call::user("hi").header("bad name", "x"), "invalid_call"),
        (Call::user("hi").header("x-a", "line\nbreak"), "invalid_call"),
        (Call::user("hi").timeout(Duration::ZERO), "invalid_call"),
        (Call::user("hi").retry(retries(1).factor(0.5)), "invalid_call"),
        (Call::user("hi").model(""), "invalid_call"),
        (Call::user("hi").model_on(2, "m"), "invalid_call"),
        (Call::user("hi").model_on("nobody", "m"), "invalid_call"),
        (Call::user("hi").request_id(""), "invalid_call"),
        (Call::user("hi").request_id("a\nb"), "invalid_call"),
        (Call::user("hi").history([Turn::user("a"), Turn::assistant(" ")]), "invalid_history"),
        (Call::user("hi").history([Turn::assistant("a"), Turn::user("b")]), "invalid_history"),
        (Call::from(Request::default()).history([Turn::assistant("a")]), "invalid_history"),
    ] {
        let name = format!("{call:?}");
        let error = failure(&client, call).await;
        assert_eq!((error.kind(), super::support::code(&error)), (ErrorKind::InvalidParams, code), "{name}: {error}");
        assert!(error.targets().is_empty() && error.request().is_none(), "{name}");
    }
    assert_eq!((primary.requests(), fallback.requests()), (0, 0));
    let call = Call::user("hi").history([Turn::user("a"), Turn::assistant(" ")]);
    assert_eq!(failure(&client, call).await.issues(), Some(&Issues::Turn { turn: 1 }));
}

#[tokio::test(start_paused = true)]
async fn a_value_out_of_a_protocols_range_stops_the_chain() {
    let (primary, fallback) = (primary(), fallback());
    let error = failure(&built(pair(&primary, &fallback)), Call::user("hi").temperature(2.5)).await;
    assert_eq!((code(&error), primary.requests(), fallback.requests()), ("invalid_call", 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_calls_model_is_the_primarys_only() {
    let (primary, fallback) = (primary().otherwise(Fault::status(500)), fallback());
    let client = built(pair(&primary, &fallback));
    let model =
        |provider: &MemoryTransport| provider.journal().last().map(|seen| seen.json().expect("json")["model"].clone());
    reply(&client, Call::user("hi").model("special")).await;
    assert_eq!((model(&primary), model(&fallback)), (Some("special".into()), Some("model-1".into())));
    reply(&client, Call::user("hi").model_on(1, "by-place").model_on("primary", "by-name")).await;
    assert_eq!((model(&primary), model(&fallback)), (Some("by-name".into()), Some("by-place".into())));
    reply(&client, Call::user("hi").model("one").model("two")).await;
    assert_eq!(model(&primary), Some("two".into()), "the last one counts");
    fallback.set_otherwise(Fault::status(500));
    let error = failure(&client, Call::user("hi").model("special")).await;
    let models: Vec<_> = error.targets().iter().map(|target| target.model.as_str()).collect();
    assert_eq!(models, ["special", "model-1"]);
}

#[tokio::test(start_paused = true)]
async fn sampling_defaults_are_the_clients_then_the_targets_then_the_calls() {
    use steadfast::chat::Setting;
    let (primary, fallback) = (primary().otherwise(Fault::status(500)), fallback());
    let first = target(&primary).defaults(Sampling::new().temperature(0.2));
    let builder = chain(first, target(&fallback), &primary, &fallback);
    let client = built(builder.defaults(Sampling::new().temperature(0.1).max_tokens(50)));
    let sent = |provider: &MemoryTransport| {
        let body = provider.journal().last().expect("asked").json().expect("json");
        (body["temperature"].as_f64(), body["max_tokens"].as_u64())
    };
    reply(&client, "hi").await;
    assert_eq!((sent(&primary), sent(&fallback)), ((Some(0.2), Some(50)), (Some(0.1), Some(50))));
    reply(&client, Call::user("hi").temperature(0.9)).await;
    assert_eq!((sent(&primary), sent(&fallback)), ((Some(0.9), Some(50)), (Some(0.9), Some(50))));
    reply(&client, Call::user("hi").without(Setting::Temperature)).await;
    assert_eq!((sent(&primary), sent(&fallback)), ((None, Some(50)), (None, Some(50))));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_refuses_is_listed_and_counts_as_tried() {
    let (primary, fallback) = (primary(), fallback().otherwise(Fault::status(404)));
    let first = target(&primary).circuit_breaker(CircuitBreaker::consecutive(1));
    let client = built(chain(first, target(&fallback), &primary, &fallback));
    assert!(client.primary().open_circuit());
    let error = failure(&client, "hi").await;
    assert_eq!((code(&error), primary.requests()), ("fallback_exhausted", 0));
    assert_eq!(target_codes(&error), ["circuit_cooling_down", "not_found"]);
    assert!(error.targets()[0].request.is_none(), "nothing was sent to it");
    assert_eq!(error.retry_after(), Some(secs(30)), "the smallest advised wait is the circuit's");
}

#[tokio::test(start_paused = true)]
async fn a_target_whose_queue_is_longer_than_its_time_is_passed_over() {
    let (primary, fallback) = (primary(), fallback());
    let limited = || target(&primary).rate_limit(RateLimit::new().requests_per_minute(6).burst(1).max_queue_time(None));
    let client = built(chain(limited(), target(&fallback), &primary, &fallback));
    assert_eq!(reply(&client, "hi").await.target().index, 0);
    let start = Instant::now();
    let answer = reply(&client, Call::user("hi").deadline(secs(8))).await;
    assert_eq!((answer.target().index, start.elapsed()), (1, Duration::ZERO), "10 s of queue, 6 s of time");
    let answer = reply(&client, Call::user("hi").deadline(secs(20))).await;
    assert_eq!((answer.target().index, start.elapsed()), (0, secs(10)), "worth waiting for");

    fallback.set_otherwise(Fault::status(500));
    let error = failure(&client, Call::user("hi").deadline(secs(8))).await;
    assert_eq!(target_codes(&error), ["rate_limit_queue_timeout", "server_error"]);
    let limit = Issues::Limit { bucket: "requests".into(), limit: 6 };
    assert_eq!(error.targets()[0].error.issues, Some(limit));

    // The last target is not passed over: there is no other.
    let alone = client_of(&primary, limited());
    reply(&alone, "hi").await;
    assert_eq!(code(&failure(&alone, Call::user("hi").deadline(secs(8))).await), "deadline_exceeded");
}

#[tokio::test(start_paused = true)]
async fn names_find_targets_and_repeats_are_numbered() {
    let provider = memory();
    let same = || Target::new(OpenAiCompatible::new(provider.base_url()), "m");
    let client =
        built(Client::builder(same()).fallback(same()).fallback(same().name("third")).transport(provider.clone()));
    let names: Vec<_> = client.targets().map(|target| target.name().to_owned()).collect();
    assert_eq!(names, ["openai_compatible/m", "openai_compatible/m#2", "third"]);
    assert_eq!(client.target("third").map(|target| target.name()), Some("third"));
    assert_eq!(client.target(1).map(|target| target.name()), Some("openai_compatible/m#2"));
    assert!(client.target(3).is_none() && client.target("fourth").is_none());
    assert_eq!(client.primary().name(), "openai_compatible/m");
}
