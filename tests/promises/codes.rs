//! Kinds and codes are API: they never change.

use super::support::*;
use steadfast::chat::Reply;
use steadfast::record::{ErrorSnapshot, StopReason};
use steadfast::{ConfigError, ErrorCode, ErrorKind, LlmError};

const KINDS: [&str; 12] = [
    "timeout",
    "api",
    "network",
    "parse",
    "validation",
    "invalid_params",
    "rate_limited",
    "quota_exceeded",
    "circuit_open",
    "fallback_exhausted",
    "aborted",
    "unknown",
];

/// Code, kind, retryable, counts toward the breaker.
const CODES: [(&str, &str, bool, bool); 50] = [
    ("authentication", "api", false, true),
    ("authorization", "api", false, true),
    ("not_found", "api", false, true),
    ("invalid_request", "api", false, false),
    ("context_length_exceeded", "api", false, false),
    ("content_filtered", "api", false, false),
    ("payload_too_large", "api", false, false),
    ("provider_rate_limited", "api", true, true),
    ("provider_quota_exhausted", "api", false, true),
    ("overloaded", "api", true, true),
    ("server_error", "api", true, true),
    ("conflict", "api", true, true),
    ("request_timeout_upstream", "api", true, true),
    ("unexpected_status", "api", false, false),
    ("empty_response", "api", true, true),
    ("connection_failed", "network", true, true),
    ("connection_interrupted", "network", true, true),
    ("stream_interrupted", "network", false, true),
    ("request_timeout", "timeout", true, true),
    ("idle_timeout", "timeout", true, true),
    ("deadline_exceeded", "timeout", false, false),
    ("response_invalid", "parse", false, true),
    ("stream_frame_invalid", "parse", false, true),
    ("response_too_large", "parse", false, true),
    ("json_parse_failed", "parse", false, false),
    ("tool_arguments_parse_failed", "parse", false, false),
    ("schema_mismatch", "validation", false, false),
    ("unknown_tool", "validation", false, false),
    ("duplicate_tool_call_id", "validation", false, false),
    ("tool_choice_none_violated", "validation", false, false),
    ("unexpected_tool_calls", "validation", false, false),
    ("soft_failure_detected", "validation", true, true),
    ("unsupported_capability", "invalid_params", false, false),
    ("duplicate_tool_names", "invalid_params", false, false),
    ("unknown_tool_choice", "invalid_params", false, false),
    ("duplicate_tool_result_ids", "invalid_params", false, false),
    ("unknown_tool_result_ids", "invalid_params", false, false),
    ("missing_tool_results", "invalid_params", false, false),
    ("invalid_history", "invalid_params", false, false),
    ("invalid_call", "invalid_params", false, false),
    ("invalid_config", "invalid_params", false, false),
    ("rate_limit_queue_full", "rate_limited", false, false),
    ("rate_limit_queue_timeout", "rate_limited", false, false),
    ("rate_limit_capacity_exceeded", "rate_limited", false, false),
    ("retry_budget_exhausted", "rate_limited", false, false),
    ("circuit_cooling_down", "circuit_open", true, false),
    ("circuit_trial_in_flight", "circuit_open", true, false),
    ("middleware_failed", "unknown", false, false),
    ("middleware_timeout", "unknown", false, false),
    ("fallback_exhausted", "fallback_exhausted", false, false),
];

#[test]
fn the_strings_of_kinds_never_change() {
    let kinds: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(kinds, KINDS);
    for kind in ErrorKind::ALL {
        assert_eq!(kind.to_string(), kind.as_str());
        assert_eq!(kind.as_str().parse(), Ok(*kind));
        let json = serde_json::to_string(kind).expect("a string");
        assert_eq!(json, format!("\"{kind}\""));
        assert_eq!(serde_json::from_str::<ErrorKind>(&json).ok(), Some(*kind));
    }
}

#[test]
fn the_strings_and_rows_of_codes_never_change() {
    let row =
        |code: &ErrorCode| (code.as_str(), code.kind().as_str(), code.is_retryable(), code.counts_toward_breaker());
    assert_eq!(ErrorCode::ALL.iter().map(row).collect::<Vec<_>>(), CODES);
    assert_eq!(repeated(CODES.iter().map(|row| row.0)), [""; 0]);
    for code in ErrorCode::ALL {
        assert_eq!(code.to_string(), code.as_str());
        assert_eq!(code.as_str().parse(), Ok(*code));
        let json = serde_json::to_string(code).expect("a string");
        assert_eq!(json, format!("\"{code}\""));
        assert_eq!(serde_json::from_str::<ErrorCode>(&json).ok(), Some(*code));
    }
}

#[test]
fn the_strings_of_stop_reasons_never_change() {
    let reasons: Vec<_> = StopReason::ALL.iter().map(|reason| reason.as_str()).collect();
    let pinned = ["not_retryable", "used_up", "budget", "deadline", "wait_too_long", "cancelled", "refused"];
    assert_eq!(reasons, pinned);
}

#[test]
fn an_unknown_string_reads_as_other() {
    assert_eq!("no_such_kind".parse(), Ok(ErrorKind::Other));
    assert_eq!(serde_json::from_str::<ErrorCode>("\"no_such_code\"").ok(), Some(ErrorCode::Other));
    let newer = r#"{"kind":"melted","code":"core_melted","message":"hot","retryable":true,"new_field":1}"#;
    let read: ErrorSnapshot = serde_json::from_str(newer).expect("a newer snapshot is read");
    assert_eq!((read.kind, read.code, read.retryable), (ErrorKind::Other, Some(ErrorCode::Other), true));
}

#[test]
fn without_a_code_only_unknown_is_retryable_and_counts() {
    for kind in ErrorKind::ALL {
        let error = LlmError::new(*kind, "made by hand");
        let is_unknown = *kind == ErrorKind::Unknown;
        assert_eq!((error.is_retryable(), error.counts_toward_breaker()), (is_unknown, is_unknown), "{kind}");
        assert_eq!(error.code(), None);
    }
}

#[test]
fn an_error_is_one_pointer_wide() {
    assert_eq!(size_of::<LlmError>(), size_of::<usize>());
    assert_eq!(size_of::<Result<Reply, LlmError>>(), size_of::<Reply>());
    #[cfg(target_pointer_width = "64")]
    assert_eq!(size_of::<Reply>(), 272, "a larger reply is copied with every result: is it worth it?");
}

#[test]
fn an_error_is_shared_between_threads_and_cloned_cheaply() {
    fn shared<T: Clone + Send + Sync + std::error::Error + serde::Serialize + 'static>() {}
    shared::<LlmError>();
}

#[test]
fn anyone_can_make_an_error() {
    let error = LlmError::new(ErrorKind::Api, "the model is busy")
        .with_code(ErrorCode::Overloaded)
        .with_status(529)
        .with_retry_after(secs(3))
        .with_provider_message("Overloaded")
        .with_source(std::io::Error::other("the cause"));
    assert_eq!((error.kind(), code(&error), error.status()), (ErrorKind::Api, "overloaded", Some(529)));
    assert_eq!((error.retry_after(), error.provider_message()), (Some(secs(3)), Some("Overloaded")));
    assert!(error.is_retryable() && error.counts_toward_breaker());
    assert_eq!(error.to_string(), "the model is busy");
    let source = std::error::Error::source(&error).expect("it has a cause");
    assert!(source.downcast_ref::<std::io::Error>().is_some(), "the cause itself, not a copy of its text");

    let before = error.clone();
    let changed = error.with_retryable(false).with_counts_toward_breaker(false);
    assert!(!changed.is_retryable() && !changed.counts_toward_breaker());
    assert!(before.is_retryable() && before.counts_toward_breaker(), "a clone is not changed");
}

#[test]
fn a_configuration_error_turns_into_an_error_with_question_mark() {
    fn build() -> Result<(), LlmError> {
        Err(ConfigError::new("retry.factor", 0.5, "a finite number of at least 1"))?;
        Ok(())
    }
    let error = build().expect_err("it is wrong");
    assert_eq!((error.kind(), code(&error)), (ErrorKind::InvalidParams, "invalid_config"));
    assert!(error.to_string().contains("retry.factor is 0.5"), "{error}");
    assert!(std::error::Error::source(&error).is_some_and(<dyn std::error::Error>::is::<ConfigError>));
}
