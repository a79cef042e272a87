//! Requests and answers as they are on the wire: `fixtures/gemini`.

use super::*;
use crate::ErrorCode;
use crate::chat::{FinishReason, Request, Sampling, Turn, Usage};
use crate::provider::{AnswerFault, Credential};
use crate::record::Issues;
use crate::resilience::Advice;
use futures_core::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/gemini/", $name, ".json"))
    };
}

// Behind the macro, which they use.
mod stream;
mod tools;

fn encode(gemini: &Gemini, model: &str, request: &Request) -> Result<HttpRequest, LlmError> {
    gemini.encode(request, &EncodeContext::new(model))
}

fn body(gemini: &Gemini, model: &str, request: &Request) -> Value {
    serde_json::from_slice(&encode(gemini, model, request).unwrap().body).unwrap()
}

fn golden(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn conversation() -> Request {
    Request {
        system: Some("Be brief.".into()),
        history: vec![Turn::user("Hi"), Turn::assistant("Hello")],
        sampling: Sampling::new().temperature(0.7).top_p(0.9).max_tokens(100).stop(["END"]).seed(7),
        ..Request::user("Bye")
    }
}

fn extra(value: Value) -> serde_json::Map<String, Value> {
    let Value::Object(fields) = value else { return serde_json::Map::new() };
    fields
}

#[test]
fn requests_are_as_on_the_wire() {
    let gemini = Gemini::new("k");
    let model = "gemini-4-argon";
    assert_eq!(body(&gemini, model, &Request::user("Hi")), golden(fixture!("minimal.request")));
    assert_eq!(body(&gemini, model, &conversation()), golden(fixture!("conversation.request")));
    let turns = [Turn::user("One"), Turn::user("Two"), Turn::assistant("Three"), Turn::assistant("Four")];
    let merged = Request { history: turns.into(), ..Request::user("Five") };
    assert_eq!(body(&gemini, model, &merged), golden(fixture!("merged_turns.request")));
    let gemma =
        Request { system: Some("Be brief.".into()), history: vec![Turn::assistant("Hello")], ..Request::user("Bye") };
    assert_eq!(body(&gemini, "gemma-3-27b-it", &gemma), golden(fixture!("gemma.request")));
}

#[test]
fn what_is_extra_is_merged_with_what_is_set() {
    let mut request = Request { system: Some("Extract the place.".into()), ..Request::user("We met in Oslo.") };
    request.sampling.max_tokens = Some(1024);
    let expected = golden(fixture!("structured.request"));
    let mut config = expected["generationConfig"].clone();
    config.as_object_mut().unwrap().remove("maxOutputTokens");
    request.extra = extra(json!({"generationConfig": config}));
    assert_eq!(body(&Gemini::new("k"), "gemini-4-argon", &request), expected);
}

#[test]
fn the_key_is_in_its_header_and_nowhere_else() {
    let gemini = Gemini::new("gk-secret-key");
    let request = encode(&gemini, "gemini-4-argon", &Request::user("Hi")).unwrap();
    let url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-4-argon:generateContent";
    assert_eq!(request.url.as_str(), url);
    assert!(!format!("{request:?} {gemini:?}").contains("gk-secret-key"));
    assert!(matches!(gemini.auth(), Auth::Header(header) if header.name() == "x-goog-api-key"));
}

struct NoTokens;

impl CredentialSource for NoTokens {
    fn fetch(&self) -> BoxFuture<'_, Result<Credential, LlmError>> {
        Box::pin(async { Err(LlmError::of(ErrorCode::Authentication, "none")) })
    }
}

#[test]
fn vertex_speaks_the_same_elsewhere() {
    let vertex = Gemini::vertex("p-1", "europe-west4", NoTokens).quota_project("p-2");
    assert!(vertex.check().is_ok());
    let request = encode(&vertex, "gemini-4-argon", &Request::user("Hi")).unwrap();
    let url = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4/publishers/google/\
               models/gemini-4-argon:generateContent";
    assert_eq!(request.url.as_str(), url);
    assert_eq!(request.headers["x-goog-user-project"], "p-2");
    assert_eq!(serde_json::from_slice::<Value>(&request.body).unwrap(), golden(fixture!("minimal.request")));
    assert!(matches!(vertex.auth(), Auth::Source(source) if source.name() == "authorization"));
    assert_eq!((vertex.name(), Gemini::new("k").name()), ("vertex", "gemini"));
}

#[test]
fn every_wrong_setting_is_told_at_once() {
    let error = Gemini::vertex("", "a/b", NoTokens).base_url("nonsense").api_version("latest").check().unwrap_err();
    let fields: Vec<_> = error.problems().iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["base_url", "project", "location", "api_version"]);
    assert!(encode(&Gemini::vertex("p", "a/b", NoTokens), "m", &Request::user("Hi")).is_err());
    assert!(Gemini::new("").check().is_err());
}

#[test]
fn a_value_out_of_range_is_named() {
    for (sampling, said) in [
        (Sampling::new().temperature(2.5), "temperature 2.5 is out of range; gemini takes 0 to 2"),
        (Sampling::new().temperature(f64::NAN), "temperature NaN is out of range"),
        (Sampling::new().top_p(1.5), "top_p 1.5 is out of range; gemini takes 0 to 1"),
        (Sampling::new().seed(1 << 31), "seed 2147483648 is out of range; gemini takes 0 to 2147483647"),
        (Sampling::new().max_tokens(u32::MAX), "max_tokens 4294967295 is out of range"),
        (Sampling::new().stop(["1", "2", "3", "4", "5", "6"]), "6 stop texts are set; gemini takes 5"),
    ] {
        let request = Request { sampling, ..Request::user("Hi") };
        let error = encode(&Gemini::new("k"), "m-1", &request).unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::InvalidCall));
        assert!(error.to_string().contains(said), "{error}");
    }
    let sampling = Sampling::new().temperature(2.0).top_p(1.0).seed(0).stop(["1", "2", "3", "4", "5"]);
    assert!(encode(&Gemini::new("k"), "m-1", &Request { sampling, ..Request::user("Hi") }).is_ok());
}

#[test]
fn what_a_known_model_refuses_is_not_sent() {
    let mut request = Request::user("Hi");
    request.extra = extra(json!({"generationConfig": {"presencePenalty": 0.5}}));
    let error = encode(&Gemini::new("k"), "gemini-2.5-flash", &request).unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UnsupportedCapability));
    assert!(error.to_string().contains("gemini-2.5-flash does not take presencePenalty"), "{error}");
    let issues = Issues::Capability { capability: "presencePenalty".to_owned(), model: "gemini-2.5-flash".to_owned() };
    assert_eq!(error.issues(), Some(&issues));
    assert!(encode(&Gemini::new("k"), "gemini-9", &request).is_ok());
    assert!(encode(&Gemini::new("k").families([]), "gemini-2.5-flash", &request).is_ok());
    assert!(encode(&Gemini::vertex("p", "eu", NoTokens), "gemini-2.5-flash", &request).is_ok());

    let mine = Gemini::new("k").families([GeminiFamily::new("m-").refusing(["topP"])]);
    let error = encode(&mine, "m-1", &conversation()).unwrap_err();
    assert!(error.to_string().contains("m-1 does not take top_p"), "{error}");

    let mut cached = Request { system: Some("S".into()), ..Request::user("Hi") };
    cached.extra = extra(json!({"cachedContent": "cachedContents/1"}));
    assert!(encode(&Gemini::new("k"), "gemini-9", &cached).is_err());
}

fn read(text: &str) -> Result<Reply, Option<AnswerFault>> {
    let (head, body) = (Head::new(StatusCode::OK, HeaderMap::new()), Bytes::copy_from_slice(text.as_bytes()));
    Gemini::new("k").decode(&head, &body).map_err(|failure| failure.fault)
}

fn filtered(category: &str) -> AnswerFault {
    AnswerFault::Filtered(vec![category.to_owned()])
}

#[test]
fn a_text_has_its_thoughts_apart() {
    let reply = read(fixture!("text.response")).unwrap();
    assert_eq!((reply.text(), reply.reasoning()), ("Hello there.", Some("A greeting is enough.")));
    assert_eq!(reply.finish_reason(), FinishReason::Stop);
    assert_eq!((reply.model(), reply.provider_request_id()), (Some("gemini-4-argon"), Some("fx-0001")));
    let usage = Usage { cached_input: Some(1024), reasoning: Some(32), ..Usage::new(1200, 40) };
    assert_eq!(reply.usage(), Some(&usage));
}

#[test]
fn a_header_with_a_request_id_comes_first() {
    let headers = [(HeaderName::from_static("x-request-id"), HeaderValue::from_static("r-1"))].into_iter().collect();
    let (head, body) = (Head::new(StatusCode::OK, headers), Bytes::from_static(fixture!("text.response").as_bytes()));
    assert_eq!(Gemini::new("k").decode(&head, &body).unwrap().provider_request_id(), Some("r-1"));
}

#[test]
fn what_a_filter_withheld_names_its_categories() {
    assert_eq!(read(fixture!("blocked_prompt.response")), Err(Some(filtered("PROHIBITED_CONTENT"))));
    assert_eq!(read(fixture!("safety.response")), Err(Some(filtered("HARM_CATEGORY_DANGEROUS_CONTENT"))));
    let empty = r#"{"candidates":[{}],"promptFeedback":{"blockReason":"JAILBREAK","safetyRatings":"?"}}"#;
    assert_eq!(read(empty), Err(Some(filtered("JAILBREAK"))));
    let list = r#"[{"promptFeedback":{"blockReason":"OTHER"}}]"#;
    assert_eq!(read(list), Err(Some(filtered("OTHER"))));
}

#[test]
fn what_came_before_a_filter_is_a_reply() {
    let reply = read(fixture!("recitation_after_text.response")).unwrap();
    assert_eq!((reply.text(), reply.finish_reason()), ("Call me", FinishReason::ContentFilter));
}

#[test]
fn a_budget_spent_on_thoughts_is_a_cut_reply() {
    let reply = read(fixture!("all_thought.response")).unwrap();
    assert_eq!((reply.text(), reply.finish_reason()), ("", FinishReason::Length));
    assert_eq!(reply.usage(), Some(&Usage { reasoning: Some(96), ..Usage::new(9, 96) }));
}

#[test]
fn nothing_of_use_is_an_empty_response() {
    for text in [
        fixture!("malformed_call.response"),
        "{}",
        "[]",
        "",
        r#"{"candidates":[]}"#,
        r#"{"candidates":null}"#,
        r#"{"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"Hm","thought":true}]},"finishReason":"STOP"}]}"#,
        r#"{"promptFeedback":{"blockReason":""}}"#,
    ] {
        assert_eq!(read(text), Err(Some(AnswerFault::Empty)), "{text}");
    }
}

#[test]
fn every_finish_reason_has_its_place() {
    for (word, reason) in [
        (r#""STOP""#, FinishReason::Stop),
        (r#""MAX_TOKENS""#, FinishReason::Length),
        (r#""CONTINUATION""#, FinishReason::Length),
        (r#""SAFETY""#, FinishReason::ContentFilter),
        (r#""SPII""#, FinishReason::ContentFilter),
        (r#""ESCALATION""#, FinishReason::ContentFilter),
        (r#""MALFORMED_RESPONSE""#, FinishReason::Other),
        (r#""LANGUAGE""#, FinishReason::Other),
        (r#""NEW""#, FinishReason::Other),
        ("null", FinishReason::Other),
        ("7", FinishReason::Other),
    ] {
        let text = format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"x"}}]}},"finishReason":{word}}}]}}"#);
        assert_eq!(read(&text).unwrap().finish_reason(), reason, "{word}");
    }
}

#[test]
fn nulls_and_missing_fields_cost_nothing() {
    let reply = read(fixture!("nulls.response")).unwrap();
    assert_eq!((reply.text(), reply.usage(), reply.model(), reply.reasoning()), ("Hi", None, None, None));
    let bare = read(r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}"#).unwrap();
    assert_eq!((bare.text(), bare.finish_reason()), ("Hi", FinishReason::Other));
}

#[test]
fn parts_are_within_the_totals() {
    let reply = read(fixture!("tool_use.response")).unwrap();
    assert_eq!(reply.usage(), Some(&Usage { reasoning: Some(6), ..Usage::new(50, 10) }));
    for (counts, usage) in [
        // The total says that the thoughts are among the candidates.
        (
            r#"{"promptTokenCount":10,"candidatesTokenCount":10,"thoughtsTokenCount":5,"totalTokenCount":20}"#,
            Some(Usage { reasoning: Some(5), ..Usage::new(10, 10) }),
        ),
        (r#"{"promptTokenCount":"10","candidatesTokenCount":5}"#, Some(Usage::new(10, 5))),
        (r#"{"promptTokenCount":10,"totalTokenCount":12}"#, Some(Usage { total: 12, ..Usage::new(10, 0) })),
        ("{}", None),
        ("[]", None),
    ] {
        let text = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"x"}}]}},"finishReason":"STOP"}}],"usageMetadata":{counts}}}"#
        );
        assert_eq!(read(&text).unwrap().usage(), usage.as_ref(), "{counts}");
    }
}

#[test]
fn an_error_in_a_success_is_an_error() {
    for text in [
        fixture!("busy_in_a_list.response"),
        fixture!("quota_per_day.response"),
        r#"[{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]},{"error":{"code":503}}]"#,
    ] {
        assert_eq!(read(text), Err(Some(AnswerFault::Error)), "{text}");
    }
    let pieces = r#"[{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]},{"candidates":[]}]"#;
    assert!(matches!(read(pieces), Err(Some(AnswerFault::Invalid(_)))));
    assert!(matches!(read("\"words\""), Err(Some(AnswerFault::Invalid(_)))));
}

#[test]
fn errors_mean_what_their_details_say() {
    let (busy, headers) = (fixture!("busy_in_a_list.response"), HeaderMap::new());
    for (status, text, code, retry) in [
        (
            429,
            fixture!("quota_per_minute.response"),
            ErrorCode::ProviderRateLimited,
            Advice::After(Duration::from_millis(46_500)),
        ),
        (429, fixture!("quota_per_day.response"), ErrorCode::ProviderQuotaExhausted, Advice::Never),
        (200, fixture!("quota_per_day.response"), ErrorCode::ProviderQuotaExhausted, Advice::Never),
        (400, fixture!("invalid_key.response"), ErrorCode::Authentication, Advice::Never),
        (503, busy, ErrorCode::Overloaded, Advice::Backoff),
        (200, busy, ErrorCode::Overloaded, Advice::Backoff),
    ] {
        let head = Head::new(StatusCode::from_u16(status).unwrap(), headers.clone());
        let body = Bytes::from_static(text.as_bytes());
        let gemini = Gemini::new("k");
        let seen = gemini.rules().classify(&gemini.decode(&head, &body).unwrap_err());
        assert_eq!((seen.code, seen.retry), (Some(code), retry), "{status} {text}");
    }
}
