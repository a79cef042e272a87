//! What comes back when the provider, or something before it, does not keep to the protocol.

use super::support::*;
use std::time::Duration;
use steadfast::chat::FinishReason;
use steadfast::record::Issues;
use steadfast::testing::{Answer, FakeProvider, Fault, Piece};
use steadfast::{Call, Client, ErrorKind, LlmError, Target, provider::OpenAiCompatible};

/// The error of a call that is answered by this, without retries.
async fn answered(answer: Answer) -> LlmError {
    let provider = memory().otherwise(answer);
    failure(&client_of(&provider, target(&provider)), "hi").await
}

#[tokio::test(start_paused = true)]
async fn every_status_has_its_code() {
    for (status, kind, code, retryable, counts) in [
        (204, "api", "unexpected_status", false, false),
        (304, "api", "unexpected_status", false, false),
        (307, "api", "unexpected_status", false, false),
        (400, "api", "invalid_request", false, false),
        (401, "api", "authentication", false, true),
        (402, "api", "provider_quota_exhausted", false, true),
        (403, "api", "authorization", false, true),
        (404, "api", "not_found", false, true),
        (405, "api", "invalid_request", false, false),
        (408, "api", "request_timeout_upstream", true, true),
        (409, "api", "conflict", true, true),
        (410, "api", "invalid_request", false, false),
        (413, "api", "payload_too_large", false, false),
        (415, "api", "invalid_request", false, false),
        (422, "api", "invalid_request", false, false),
        (429, "api", "provider_rate_limited", true, true),
        (500, "api", "server_error", true, true),
        (501, "api", "server_error", false, true),
        (502, "api", "server_error", true, true),
        (503, "api", "server_error", true, true),
        (505, "api", "server_error", false, true),
        (529, "api", "overloaded", true, true),
    ] {
        let error = answered(Answer::raw(status)).await;
        let seen =
            (error.kind().as_str(), super::support::code(&error), error.is_retryable(), error.counts_toward_breaker());
        assert_eq!(seen, (kind, code, retryable, counts), "{status}");
        assert_eq!(error.status(), Some(status));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_keeps_the_providers_own_words() {
    let body = serde_json::json!({"error": {"message": "No such model.", "type": "invalid_request_error", "code": "model_not_found"}});
    let error = answered(Answer::raw(404).json(body).header("x-request-id", "req_7")).await;
    assert_eq!(error.provider_message(), Some("No such model."));
    assert_eq!(
        (error.provider_code(), error.provider_type()),
        (Some("model_not_found"), Some("invalid_request_error"))
    );
    assert_eq!(error.request_id(), Some("req_7"));
    let request = error.request().expect("what was sent");
    assert_eq!(
        (request.provider.as_str(), request.name.as_str(), request.model.as_str()),
        ("openai_compatible", "memory", "model-1")
    );
    assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", "http://memory.invalid/v1/chat/completions"));
    assert_eq!(request.body_json().expect("json")["messages"][0]["content"], "hi");
}

#[tokio::test(start_paused = true)]
async fn evidence_in_the_body_beats_the_status() {
    let says = |status, message: &str| Answer::raw(status).json(serde_json::json!({"error": {"message": message}}));
    let quota = serde_json::json!({"error": {"code": "insufficient_quota", "message": "m"}});
    for (answer, expected) in [
        (
            says(400, "This model's maximum context length is 8192 tokens, you asked for 9000"),
            "context_length_exceeded",
        ),
        (says(500, "prompt is too long: 208100 tokens > 200000 maximum"), "context_length_exceeded"),
        (Answer::raw(429).json(quota.clone()), "provider_quota_exhausted"),
        (Answer::raw(403).json(quota), "provider_quota_exhausted"),
        (Fault::overloaded(), "overloaded"),
    ] {
        let error = answered(answer).await;
        assert_eq!(code(&error), expected, "{error}");
        assert!(!error.is_retryable() || expected == "overloaded");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_object_in_a_200_is_the_failure_it_names() {
    let error = answered(Fault::error_in_200("server_error", "The upstream failed.")).await;
    assert_eq!((error.kind(), code(&error), error.status()), (ErrorKind::Api, "server_error", Some(200)));
    assert_eq!((error.provider_code(), error.provider_message()), (Some("server_error"), Some("The upstream failed.")));
    assert!(error.is_retryable());
    let error =
        answered(Answer::raw(200).json(serde_json::json!({"error": {"code": 429, "message": "slow down"}}))).await;
    assert_eq!(
        (code(&error), error.status(), error.provider_code()),
        ("provider_rate_limited", Some(200), Some("429"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_is_an_error_that_is_worth_another_try() {
    let empty_text = Answer::text("");
    let no_choices = Answer::raw(200).json(serde_json::json!({"choices": []}));
    for answer in [Fault::empty(), empty_text, no_choices] {
        let name = answer.to_string();
        let error = answered(answer).await;
        assert_eq!((error.kind(), code(&error)), (ErrorKind::Api, "empty_response"), "{name}");
        assert!(error.is_retryable() && error.counts_toward_breaker(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_cut_by_the_token_limit_is_ok_even_without_text() {
    let provider = memory().otherwise(Answer::text("").finish_reason("length"));
    let reply = reply(&client_of(&provider, target(&provider)), "hi").await;
    assert_eq!((reply.text(), reply.finish_reason()), ("", FinishReason::Length));
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_leaves_nothing_is_an_error_and_one_that_leaves_text_is_not() {
    let error = answered(Answer::text("").finish_reason("content_filter")).await;
    assert_eq!((code(&error), error.is_retryable()), ("content_filtered", false));
    assert!(matches!(error.issues(), Some(Issues::ContentFilter { .. })));
    let provider = memory().otherwise(Answer::text("so far").finish_reason("content_filter"));
    let reply = reply(&client_of(&provider, target(&provider)), "hi").await;
    assert_eq!((reply.text(), reply.finish_reason()), ("so far", FinishReason::ContentFilter));
}

#[tokio::test(start_paused = true)]
async fn a_page_under_a_200_is_not_an_answer_and_is_not_quoted() {
    let error = answered(Fault::html(200)).await;
    assert_eq!((error.kind(), code(&error)), (ErrorKind::Parse, "response_invalid"));
    assert!(!error.is_retryable() && error.counts_toward_breaker());
    let said = error.to_string();
    assert!(said.contains("text/html") && said.contains("base URL"), "{said}");
    assert!(!printed(&error).contains("<h1>"));
    let error = answered(Fault::html(502)).await;
    assert_eq!((code(&error), error.provider_message()), ("server_error", None));
    assert!(error.to_string().contains("text/html"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_cut_is_told_from_one_that_broke_off() {
    // Cut by whoever wrote it: all that was announced came.
    let error =
        answered(Answer::raw(200).header("content-type", "application/json").body(r#"{"choices":[{"mess"#)).await;
    assert_eq!((code(&error), error.is_retryable()), ("response_invalid", false));
    assert!(error.to_string().contains("cut"), "{error}");
    // Broke off on the way.
    for answer in [Fault::truncated_body(), Fault::reset_in_body(), Answer::raw(200).body("{}").chunked().then_reset()]
    {
        let name = answer.to_string();
        let error = answered(answer).await;
        assert_eq!((error.kind(), code(&error)), (ErrorKind::Network, "connection_interrupted"), "{name}");
        assert!(error.is_retryable() && error.counts_toward_breaker(), "{name}");
        assert!(std::error::Error::source(&error).is_some(), "{name}: the cause is kept");
    }
}

#[tokio::test(start_paused = true)]
async fn what_broke_before_an_answer_says_whether_it_was_sent() {
    let error = answered(Fault::connection_refused()).await;
    assert_eq!((error.kind(), code(&error), error.status()), (ErrorKind::Network, "connection_failed", None));
    let error = answered(Fault::reset_before_head()).await;
    assert_eq!((error.kind(), code(&error), error.status()), (ErrorKind::Network, "connection_interrupted", None));
}

#[tokio::test(start_paused = true)]
async fn a_compressed_body_that_nobody_asked_for_says_so() {
    let gzip = [0x1f_u8, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0xae, 5, 0, 0x43, 0xbf, 0xa6, 0xa3, 2, 0, 0, 0];
    let answer = Answer::raw(200).header("content-type", "application/json").header("content-encoding", "gzip");
    let error = answered(answer.body(gzip.to_vec())).await;
    assert_eq!((error.kind(), code(&error)), (ErrorKind::Parse, "response_invalid"));
    let said = error.to_string();
    assert!(said.contains("compressed") && said.contains("gzip"), "{said}");
}

#[cfg(not(feature = "gzip"))]
#[tokio::test]
async fn without_the_feature_no_compression_is_offered() -> std::io::Result<()> {
    let fake = FakeProvider::openai().start().await?;
    let client = built(Client::builder(Target::new(OpenAiCompatible::new(fake.base_url()), "m")));
    reply(&client, "hi").await;
    assert_eq!(fake.journal()[0].header("accept-encoding"), None);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_not_followed_and_names_where_it_leads_without_the_path() {
    for (location, origin) in [
        ("https://user:secret-pw@elsewhere.invalid/path?key=abcdefgh", "https://elsewhere.invalid"),
        ("/login?next=abcdefgh", "http://memory.invalid"),
    ] {
        let provider = memory().otherwise(Answer::raw(307).header("location", location));
        let error = failure(&client_of(&provider, target(&provider).retry(retries(3))), "hi").await;
        assert_eq!((code(&error), error.status(), provider.requests()), ("unexpected_status", Some(307), 1));
        let said = printed(&error);
        assert!(said.contains(origin), "{said}");
        assert!(!said.contains("abcdefgh") && !said.contains("secret-pw") && !said.contains("path"), "{said}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_over_sockets_either() -> std::io::Result<()> {
    let other = FakeProvider::openai().start().await?;
    let location = format!("{}/chat/completions", other.base_url());
    for status in [301, 302, 303, 307, 308] {
        let fake = FakeProvider::openai().otherwise(Answer::raw(status).header("location", &location)).start().await?;
        let client =
            built(Client::builder(Target::new(OpenAiCompatible::new(fake.base_url()).api_key("sk-12345678"), "m")));
        let error = failure(&client, "hi").await;
        assert_eq!((code(&error), fake.requests()), ("unexpected_status", 1), "{status}");
        assert!(error.to_string().contains(&other.origin()), "{error}");
    }
    assert_eq!(other.requests(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_cap_is_not_read_past_it() {
    let chunk = || Piece::bytes(vec![b'x'; 600]);
    for (answer, name) in [
        (Answer::raw(200).body(vec![b'x'; 2_000]), "announced"),
        (Answer::raw(200).body(vec![b'x'; 2_000]).chunked(), "in one piece"),
        (Answer::raw(200).pieces([chunk(), chunk(), Piece::pause(secs(1_000_000)), chunk()]).chunked(), "in pieces"),
    ] {
        let provider = memory().otherwise(answer);
        let client = built(Client::builder(target(&provider)).max_response_bytes(1_000).transport(provider.clone()));
        let start = tokio::time::Instant::now();
        let error = failure(&client, "hi").await;
        assert_eq!((error.kind(), code(&error)), (ErrorKind::Parse, "response_too_large"), "{name}");
        assert_eq!(error.issues(), Some(&Issues::TooLarge { limit: 1_000 }), "{name}");
        assert!(!error.is_retryable() && error.counts_toward_breaker(), "{name}");
        assert_eq!((start.elapsed(), provider.exchanges_open()), (Duration::ZERO, 0), "{name}");
    }
    let exact = memory().otherwise(Answer::raw(200).body(vec![b'x'; 1_000]));
    let client = built(Client::builder(target(&exact)).max_response_bytes(1_000).transport(exact.clone()));
    assert_eq!(code(&failure(&client, "hi").await), "response_invalid", "exactly the cap is read");
}

#[tokio::test(start_paused = true)]
async fn a_large_failure_stays_a_small_error() {
    let page = format!("<html><body>{}</body></html>", "<p>oops</p>".repeat(500_000));
    let message = "word ".repeat(800_000);
    let json = serde_json::json!({"error": {"message": message, "type": "server_error"}}).to_string();
    let padded = serde_json::json!({"pad": "x".repeat(5 << 20), "error": {"message": "m"}}).to_string();
    let plain = "plain words ".repeat(400_000);
    for (answer, name) in [
        (Answer::raw(500).header("content-type", "text/html").body(page), "a page"),
        (Answer::raw(500).header("content-type", "application/json").body(json), "a long message"),
        (Answer::raw(500).header("content-type", "application/json").body(padded), "a padded object"),
        (Answer::raw(500).header("content-type", "text/plain").body(plain), "plain text"),
        (Answer::raw(500).header("x-request-id", "r".repeat(60_000)).body("{}"), "a long header"),
    ] {
        let error = answered(answer).await;
        assert_eq!((code(&error), error.status()), ("server_error", Some(500)), "{name}");
        assert!(error.to_string().chars().count() <= 600, "{name}: {} characters", error.to_string().len());
        assert!(error.provider_message().is_none_or(|says| says.len() <= 2_048), "{name}");
        let json = serde_json::to_string(&error).expect("serializable").len();
        assert!(json < 16_384, "{name}: {json} bytes");
        assert!(format!("{error:?}").len() < 16_384, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_provider_code_or_type_is_bounded_too() {
    let long = "c".repeat(1 << 20);
    let body = serde_json::json!({"error": {"message": "m", "code": long, "type": long}});
    let error = answered(Answer::raw(500).json(body)).await;
    let json = serde_json::to_string(&error).expect("serializable").len();
    assert!(json < 16_384, "{json} bytes");
}

#[tokio::test(start_paused = true)]
async fn the_raw_body_is_kept_only_when_asked_for() {
    let provider = memory();
    let client = client_of(&provider, target(&provider));
    assert_eq!(reply(&client, "hi").await.raw(), None);
    let kept = reply(&client, Call::user("hi").keep_raw(true)).await;
    let raw: serde_json::Value = serde_json::from_slice(kept.raw().expect("kept")).expect("json");
    assert_eq!(raw["choices"][0]["message"]["content"], "hi");
}

#[tokio::test(start_paused = true)]
async fn usage_model_and_ids_are_reported() {
    let provider = memory().otherwise(Answer::text("ok").usage(12, 3).model("model-1-2026"));
    let reply = reply(&client_of(&provider, target(&provider)), "hi").await;
    let usage = reply.usage().expect("reported");
    assert_eq!((usage.input, usage.output, usage.total), (12, 3, 15));
    assert_eq!((reply.model(), reply.provider_request_id().is_some()), (Some("model-1-2026"), true));
    assert!(reply.attempts().is_empty());
}
