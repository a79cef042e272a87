//! Packs as a whole: the cases from public trackers, and promises that hold for any input.

use super::*;
use crate::provider::{AnswerFault, TransportFault};
use crate::record::{ErrorCode, Issues, QuotaScope};
use crate::resilience::Health;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::Value;
use std::time::UNIX_EPOCH;

pub(super) fn at(secs: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(secs)
}

/// Classifies each body under its status and compares with the code, or with `quota` and its scope. ` retried` and ` final`
/// say that the pack deviates from the table of codes.
pub(super) fn check(pack: &str, cases: &[(u16, &str, &str)]) {
    let rules = RulePack::by_name(pack).unwrap_or_else(|| panic!("no pack {pack}"));
    for (status, body, expected) in cases {
        let headers = HeaderMap::new();
        let seen = rules.classify(&Failure::answer(*status, &headers, body.as_bytes()));
        let code = seen.code.map_or("none", ErrorCode::as_str);
        let found = match (&seen.issues, seen.code.is_some_and(ErrorCode::is_retryable), seen.is_retryable()) {
            (Some(Issues::Quota { scope, .. }), _, false) => format!("quota {scope:?}").to_lowercase(),
            (_, false, true) => format!("{code} retried"),
            (_, true, false) => format!("{code} final"),
            _ => code.to_owned(),
        };
        assert_eq!(found, *expected, "{pack} {status} {body}");
    }
}

#[test]
fn packs_are_found_however_they_are_written() {
    for (written, name) in [
        ("openai", "openai"),
        ("OpenAI", "openai"),
        ("azure-openai", "azure"),
        ("llama.cpp", "llama_cpp"),
        ("llamacpp", "llama_cpp"),
        ("llama-cpp", "llama_cpp"),
        ("lm-studio", "llama_cpp"),
        ("together-ai", "together"),
        ("x.ai", "xai"),
        ("Vertex AI", "gemini"),
        ("vllm", "vllm"),
        ("aws-bedrock", "bedrock"),
    ] {
        assert_eq!(RulePack::by_name(written).map(|p| p.name().to_owned()).as_deref(), Some(name), "{written}");
    }
    for name in RulePack::names() {
        assert_eq!(RulePack::by_name(name).as_ref().map(RulePack::name), Some(name));
    }
    for nobody in ["", "-", "open", "openai2"] {
        assert!(RulePack::by_name(nobody).is_none(), "{nobody}");
    }
}

#[test]
fn own_rules_have_the_last_word() {
    let headers = HeaderMap::new();
    let rules = RulePack::openai()
        .named("mine")
        .refine(|failure, seen| match failure.status {
            Some(402) => seen.with_code(ErrorCode::ProviderRateLimited),
            _ => seen,
        })
        .refine(|_, mut seen| {
            seen.health = Health::Neutral;
            seen
        });
    assert_eq!(rules.name(), "mine");
    let seen = rules.classify(&Failure::answer(402, &headers, b""));
    assert_eq!(
        (seen.code, seen.retry, seen.health),
        (Some(ErrorCode::ProviderRateLimited), Advice::Backoff, Health::Neutral)
    );
    assert_eq!(seen.issues, None, "the quota's detail went with its code");
    assert_eq!(seen.advice(&[], &[], true), Advice::Backoff);
    let seen = rules.classify(&Failure::answer(402, &headers, b"").delivered(true));
    assert_eq!((seen.retry, seen.basis), (Advice::Never, Basis::Delivered));
}

#[test]
fn an_error_in_a_stream_keeps_its_own_code() {
    let event = br#"{"type":"error","error":{"type":"overloaded_error","message":"refused"}}"#;
    let failure = Failure { status: Some(200), body: event, fault: Some(AnswerFault::Error), ..Failure::default() };
    let seen = RulePack::anthropic().classify(&failure.clone().delivered(true));
    assert_eq!((seen.code, seen.retry), (Some(ErrorCode::Overloaded), Advice::Never));
    assert_eq!(RulePack::anthropic().classify(&failure).retry, Advice::Backoff);
    let failure = Failure { body: event, ..Failure::default() };
    assert_eq!(RulePack::anthropic().classify(&failure).code, Some(ErrorCode::Overloaded));
}

#[test]
fn an_error_that_says_nothing_is_the_servers_own() {
    let headers = HeaderMap::new();
    for pack in RulePack::names().filter_map(RulePack::by_name) {
        for body in [r#"{"error":{"message":"x"}}"#, r#"{"error":"x"}"#, r#"{"type":"error","error":{"type":"new"}}"#] {
            let seen = pack.classify(&Failure::answer(200, &headers, body.as_bytes()));
            assert_eq!(seen.code, Some(ErrorCode::ServerError), "{} {body}", pack.name());
        }
    }
}

#[test]
fn a_finish_reason_may_be_the_only_word() {
    let body = br#"{"choices":[{"message":{"content":"private"},"finish_reason":"insufficient_system_resource"}]}"#;
    let headers = HeaderMap::new();
    let failure = Failure::answer(200, &headers, body).fault(AnswerFault::Error);
    let seen = RulePack::deepseek().classify(&failure);
    assert_eq!(seen.code, Some(ErrorCode::Overloaded));
    assert_eq!((seen.provider_code.as_deref(), seen.provider_message), (Some("insufficient_system_resource"), None));
}

#[test]
fn a_plan_says_when_it_returns() {
    let body = br#"{"error":{"type":"usage_limit_reached","message":"m","resets_in_seconds":60}}"#;
    let headers = HeaderMap::new();
    let seen = RulePack::openai().classify(&Failure::answer(429, &headers, body).at(at(100)));
    assert_eq!(seen.issues, Some(Issues::Quota { scope: QuotaScope::Plan, resets_at: Some(at(160)) }));
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", HeaderValue::from_static("30"));
    let seen = RulePack::openai().classify(&Failure::answer(402, &headers, b"").at(at(100)));
    assert_eq!(seen.issues, Some(Issues::Quota { scope: QuotaScope::Billing, resets_at: Some(at(130)) }));
}

// ---- the cases of public trackers ----

/// The time at which every case happens; its placeholders are filled in from here.
fn now() -> SystemTime {
    at(1_796_040_000)
}

/// Fills in `{{name:+20s}}`.
fn filled(text: &str) -> String {
    let Some((before, rest)) = text.split_once("{{") else { return text.to_owned() };
    let Some((inside, after)) = rest.split_once("}}") else { return text.to_owned() };
    let (name, offset) = inside.split_once(':').unwrap_or((inside, "+0s"));
    let moment = now() + duration::units(offset.trim_start_matches('+')).unwrap_or_else(|| panic!("{offset}"));
    let imf = httpdate::fmt_http_date(moment);
    let word = |index: usize| imf.split(' ').nth(index).unwrap_or_default().to_owned();
    let value = match name {
        "http_date" => imf.clone(),
        "rfc850_date" => {
            let day = match &imf[..3] {
                "Mon" => "Monday",
                "Tue" => "Tuesday",
                other => panic!("{other}"),
            };
            format!("{day}, {}-{}-{} {} GMT", word(1), word(2), &word(3)[2..], word(4))
        }
        "asctime_date" => format!("{} {} {} {} {}", &imf[..3], word(2), word(1), word(4), word(3)),
        "rfc3339" => humantime::format_rfc3339(moment).to_string(),
        "unix_ms" => moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis().to_string(),
        other => panic!("unknown placeholder {other}"),
    };
    format!("{before}{value}{}", filled(after))
}

/// Whether `found` is what is expected: a value, any of a list, a range.
fn fits(expected: &Value, found: &Value) -> bool {
    match expected {
        Value::Array(any) => any.iter().any(|one| fits(one, found)),
        Value::Object(range) => found.as_f64().is_some_and(|n| {
            range.get("min").and_then(Value::as_f64).is_none_or(|min| n >= min)
                && range.get("max").and_then(Value::as_f64).is_none_or(|max| n <= max)
        }),
        one => one == found,
    }
}

/// The packs that a case is about: its preset's, else its adapter's. What has no preset should hold without one, too.
fn packs(case: &Value) -> Vec<RulePack> {
    let named = case["preset"].as_str().or_else(|| case["api"].as_str()).unwrap_or("generic");
    let pack = RulePack::by_name(named).unwrap_or_else(|| panic!("no pack {named}"));
    let compatible = case["provider"] == "openai_compatible" && case["preset"].is_null();
    if compatible { vec![pack, RulePack::generic()] } else { vec![pack] }
}

/// What the pack says of a case, against what the case expects of the error.
fn faults(case: &Value, pack: &RulePack, response: &Value) -> Vec<String> {
    let text = |v: &Value| filled(v.as_str().unwrap_or_default());
    let body = text(&response["body"]);
    let headers: HeaderMap = response["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(n, v)| Some((HeaderName::try_from(n.as_str()).ok()?, HeaderValue::try_from(text(v)).ok()?)))
        .collect();
    let status = response["status"].as_u64().and_then(|s| u16::try_from(s).ok()).unwrap_or_default();
    let seen = pack.classify(&Failure::answer(status, &headers, body.as_bytes()).at(now()));
    let found = serde_json::json!({
        "type": seen.kind.as_str(),
        "code": seen.code.map(ErrorCode::as_str),
        "status": status,
        "retryable": seen.is_retryable(),
        "retry_after_ms": seen.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
    });
    let id = &case["id"];
    let mut faults = Vec::new();
    for (field, expected) in case["expect"]["error"].as_object().into_iter().flatten() {
        let good = match field.as_str() {
            "provider_message_contains" => {
                seen.provider_message.as_deref().unwrap_or_default().contains(expected.as_str().unwrap_or_default())
            }
            "message_max_chars" | "attempts" | "attempt_statuses" | "target_codes" => true, // the client's
            field => fits(expected, &found[field]),
        };
        if !good {
            faults.push(format!("{id} ({}): {field} should be {expected}: {found}", pack.name()));
        }
    }
    // Secrets in a provider's message are the client's to redact; of a page nothing is quoted in the first place.
    let secrets = case["expect"]["must_not_contain"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let shown = format!("{seen:?}");
    faults.extend(secrets.filter(|s| body.starts_with('<') && shown.contains(s)).map(|s| format!("{id} quotes {s}")));
    faults
}

/// Whether the answer of a case is for the rules alone, no adapter needed: an error status, an error object in a success,
/// an empty body, a page.
fn is_for_rules(response: &Value) -> bool {
    let body = response["body"].as_str().unwrap_or_default();
    let is_error = serde_json::from_str::<Value>(body).is_ok_and(|v| !v["error"].is_null());
    response["delivery"].is_null()
        && response["body"].is_string()
        && (response["status"] != 200 || is_error || body.is_empty() || body.starts_with('<'))
}

#[test]
fn the_cases_of_public_trackers_are_classified_as_expected() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cases");
    let mut checked = 0;
    let mut wrong = Vec::new();
    for file in std::fs::read_dir(dir).expect("the cases are there").filter_map(Result::ok) {
        if file.path().extension().is_none_or(|e| e != "jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(file.path()).expect("a case file").lines() {
            let case: Value = serde_json::from_str(line).expect("a case");
            if case["kind"] == "http" && case["expect"]["error"].is_object() && is_for_rules(&case["response"]) {
                for pack in packs(&case) {
                    checked += 1;
                    wrong.extend(faults(&case, &pack, &case["response"]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked >= 80, "only {checked} cases were found");
}

// ---- any input ----

/// Text that is likely to be taken for something.
const SEEDS: &[&str] = &[
    r#"{"error":{"message":"Please try again in 7.66s","code":"rate_limit_exceeded"}}"#,
    r#"[{"error":{"code":503,"status":"UNAVAILABLE","details":[{"violations":[{"quotaId":"PerDay"}]}]}}]"#,
    r#"{"error":{"metadata":{"raw":"{\"error\":{\"message\":\"m\"}}"}}}"#,
    "data: {\"error\":\"x\"}\n\n",
    "retry after 99999999999999999999999999 hours, limit: 0, regain access on 2026-04-01 at 00:00 UTC",
    "<html>",
    "\u{feff}{\"detail\":[{\"msg\":\"é\"}]}",
];

fn any_body() -> impl Strategy<Value = Vec<u8>> {
    let cut = (prop::sample::select(SEEDS), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(seed, at, byte)| {
        let mut bytes = seed.as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes
    });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..200), cut, ".{0,80}".prop_map(String::into_bytes)]
}

fn any_headers() -> impl Strategy<Value = HeaderMap> {
    let names = prop::sample::select(
        &[
            "retry-after",
            "retry-after-ms",
            "x-should-retry",
            "x-ratelimit-remaining-requests",
            "x-ratelimit-reset-requests",
            "anthropic-ratelimit-tokens-reset",
            "content-type",
            "location",
            "x-amzn-errortype",
        ][..],
    );
    let values = prop_oneof!["[0-9.:TZ+a-z -]{0,30}", "[ -~]{0,30}"];
    prop::collection::vec((names, values), 0..6).prop_map(|lines| {
        lines.iter().filter_map(|(n, v)| Some((HeaderName::from_static(n), HeaderValue::from_str(v).ok()?))).collect()
    })
}

proptest! {
    #[test]
    fn nothing_that_arrives_makes_a_pack_panic(
        status in prop::option::of(any::<u16>()),
        headers in any_headers(),
        body in any_body(),
        delivered in any::<bool>(),
        fault in 0..5u8,
        now in prop::option::of(any::<u32>()),
    ) {
        let fault = match fault {
            0 => Some(AnswerFault::Error),
            1 => Some(AnswerFault::Empty),
            2 => Some(AnswerFault::Filtered(Vec::new())),
            3 => Some(AnswerFault::Invalid("why".into())),
            _ => None,
        };
        let at = now.map(|secs| at(u64::from(secs)));
        let failure = Failure { status, headers: Some(&headers), body: &body, fault, delivered, at, ..Failure::default() };
        for pack in RulePack::names().filter_map(RulePack::by_name) {
            let seen = pack.classify(&failure);
            prop_assert!(!(delivered && seen.is_retryable()));
            prop_assert!(seen.retry != Advice::After(Duration::ZERO));
            prop_assert_eq!(seen.code.map(ErrorCode::kind), Some(seen.kind));
            prop_assert!(seen.provider_message.as_ref().is_none_or(|m| m.len() <= 2_048));
            prop_assert_eq!(pack.verdict(&failure).retry, seen.retry);
            let _ = (pack.limits(&headers, at), pack.retry_after(&headers, &body, status, at));
        }
    }

    #[test]
    fn a_break_is_never_an_answer(bytes in any::<u64>(), delivered in any::<bool>()) {
        for fault in [TransportFault::Connect, TransportFault::Interrupted, TransportFault::Timeout,
            TransportFault::TooLarge(bytes), TransportFault::Request] {
            let seen = RulePack::generic().classify(&Failure::transport(fault).delivered(delivered));
            prop_assert!(seen.status.is_none() && seen.provider_message.is_none());
        }
    }
}
