//! Groq.

use super::limits::{Bucket, DAY, MINUTE, bucket};
use super::openai::OPENAI;
use super::rule::{Dialect, Rule, Then, When};
use crate::record::ErrorCode;

pub(super) static GROQ: Dialect = Dialect { rules: RULES, limits: LIMITS, ..Dialect::over("groq", &OPENAI) };

const RULES: &[Rule] = &[
    // Groq documents 498 as the flex tier being out of capacity for the moment.
    Rule::on(&[498], &[], Then::Is(ErrorCode::Overloaded)),
    Rule::any(&[When::Word(&["capacity_exceeded"])], Then::Is(ErrorCode::Overloaded)),
    // What the model wrote was no tool call, or not the JSON that was asked for: another draw may be.
    Rule::on(
        &[400],
        &[When::Word(&["tool_use_failed", "json_validate_failed"])],
        Then::Again(ErrorCode::InvalidRequest),
    ),
];

/// Groq documents its request headers as per day, its token headers as per minute.
const LIMITS: &[Bucket] = &[
    bucket!(Requests, "x-ratelimit-", "-requests", Some(DAY)),
    bucket!(Tokens, "x-ratelimit-", "-tokens", Some(MINUTE)),
];

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::{DAY, MINUTE};
    use crate::provider::RulePack;
    use http::{HeaderMap, HeaderValue};
    use std::time::Duration;

    #[test]
    fn groq_errors() {
        check(
            "groq",
            &[
                (498, r#"{"error":{"code":"capacity_exceeded"}}"#, "overloaded"),
                (498, "", "overloaded"),
                (400, r#"{"error":{"code":"tool_use_failed"}}"#, "invalid_request retried"),
                (400, r#"{"error":{"code":"json_validate_failed"}}"#, "invalid_request retried"),
                (400, r#"{"error":{"code":"other"}}"#, "invalid_request"),
                (413, r#"{"error":{"message":"Request too large","code":"rate_limit_exceeded"}}"#, "payload_too_large"),
                (
                    429,
                    r#"{"error":{"message":"on tokens per day (TPD): Limit 1. Please try again in 28m48s."}}"#,
                    "provider_rate_limited",
                ),
                (429, r#"{"error":{"message":"on tokens per day (TPD): Limit 1"}}"#, "quota day"),
            ],
        );
    }

    #[test]
    fn requests_are_counted_by_the_day() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-ratelimit-limit-requests", "14400"),
            ("x-ratelimit-remaining-requests", "14370"),
            ("x-ratelimit-reset-requests", "2m59.56s"),
            ("x-ratelimit-limit-tokens", "18000"),
            ("x-ratelimit-remaining-tokens", "17997"),
            ("x-ratelimit-reset-tokens", "7.66s"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let hint = RulePack::groq().limits(&headers, None).unwrap_or_default();
        assert_eq!((hint.requests_window, hint.tokens_window), (Some(DAY), Some(MINUTE)));
        assert_eq!(hint.requests_reset, Some(Duration::from_millis(179_560)));
        assert_eq!((hint.tokens_limit, hint.tokens_remaining), (Some(18_000), Some(17_997)));
    }
}
