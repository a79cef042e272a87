//! Anthropic's messages.

use super::generic::GENERIC;
use super::limits::{Bucket, MINUTE, bucket};
use super::rule::{Dialect, Rule, Then, When};
use crate::record::{ErrorCode, QuotaScope};

/// The error's type says what it is, whatever the status; `error.details.error_code` narrows it.
pub(super) static ANTHROPIC: Dialect = Dialect {
    aliases: &["claude", "anthropic_messages"],
    rules: RULES,
    limits: LIMITS,
    ..Dialect::over("anthropic", &GENERIC)
};

const RULES: &[Rule] = &[
    // Anthropic documents these spend limits under 402 and 429: no wait lifts them, and none is sent.
    Rule::any(
        &[When::Word(&[
            "enforced_spend_limit_reached",
            "contract_spend_limit_reached",
            "linked_organization_billing_unavailable",
            "linked_organization_spend_limit_reached",
        ])],
        Then::Quota(QuotaScope::Billing),
    ),
    // "You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.", a 400.
    Rule::on(&[400, 403, 429], &[When::Says(&["specified api usage limits"])], Then::Quota(QuotaScope::Month)),
    // "Extra usage is required for long context requests.": a 429 that no wait cures.
    Rule::on(&[429], &[When::Says(&["extra usage is required"])], Then::Quota(QuotaScope::Plan)),
    // "Output blocked by content filtering policy", a 400.
    Rule::on(&[400], &[When::Says(&["content filtering policy"])], Then::Is(ErrorCode::ContentFiltered)),
    Rule::any(&[When::Word(&["overloaded_error"])], Then::Is(ErrorCode::Overloaded)),
];

/// Anthropic documents `tokens` as the tightest of its token limits, and resets as RFC 3339.
const LIMITS: &[Bucket] = &[
    bucket!(Requests, "anthropic-ratelimit-requests-", "", Some(MINUTE)),
    bucket!(Tokens, "anthropic-ratelimit-tokens-", "", Some(MINUTE)),
    bucket!(Tokens, "anthropic-ratelimit-input-tokens-", "", Some(MINUTE)),
    bucket!(Tokens, "anthropic-ratelimit-output-tokens-", "", Some(MINUTE)),
];

#[cfg(test)]
mod tests {
    use super::super::tests::{at, check};
    use crate::provider::{Failure, RulePack};
    use crate::record::{Issues, QuotaScope};
    use http::{HeaderMap, HeaderValue};
    use std::time::Duration;

    #[test]
    fn anthropic_errors() {
        check(
            "anthropic",
            &[
                (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, "overloaded"),
                (200, r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, "overloaded"),
                (500, r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, "overloaded"),
                (200, r#"{"type":"error","error":{"type":"api_error","message":"m"}}"#, "server_error"),
                (200, r#"{"type":"error","error":{"type":"timeout_error","message":"m"}}"#, "server_error"),
                (429, r#"{"type":"error","error":{"type":"rate_limit_error"}}"#, "provider_rate_limited"),
                (
                    429,
                    r#"{"error":{"type":"rate_limit_error","details":{"error_code":"ramp_limit_exceeded"}}}"#,
                    "provider_rate_limited",
                ),
                (
                    429,
                    r#"{"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
                    "quota billing",
                ),
                (402, r#"{"type":"error","error":{"type":"billing_error"}}"#, "quota billing"),
                (400, r#"{"error":{"message":"Your credit balance is too low to access the API."}}"#, "quota billing"),
                (429, r#"{"error":{"message":"Extra usage is required for long context requests."}}"#, "quota plan"),
                // LiteLLM, in front of OpenAI.
                (
                    429,
                    r#"{"type":"error","error":{"type":"rate_limit_error","message":
                    "OpenAIException - {\"error\":{\"message\":\"m\",\"type\":\"insufficient_quota\"}}"}}"#,
                    "quota billing",
                ),
                (400, r#"{"error":{"message":"prompt is too long: 2 tokens > 1 maximum"}}"#, "context_length_exceeded"),
                (400, r#"{"error":{"message":"Output blocked by content filtering policy"}}"#, "content_filtered"),
                (413, r#"{"error":{"type":"request_too_large"}}"#, "payload_too_large"),
                (409, r#"{"error":{"type":"conflict_error"}}"#, "conflict"),
                (404, r#"{"error":{"type":"not_found_error"}}"#, "not_found"),
                (504, r#"{"error":{"type":"timeout_error"}}"#, "server_error"),
            ],
        );
    }

    #[test]
    fn a_usage_limit_says_when_it_ends() {
        let said =
            "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.";
        let body = format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{said}"}}}}"#);
        let headers = HeaderMap::new();
        let seen = RulePack::anthropic().classify(&Failure::answer(400, &headers, body.as_bytes()));
        let resets_at = Some(at(1_796_083_200));
        assert_eq!(seen.issues, Some(Issues::Quota { scope: QuotaScope::Month, resets_at }));
    }

    #[test]
    fn resets_are_moments() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-11-30T12:00:05Z"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-input-tokens-reset", "2026-11-30T12:00:30Z"),
            ("anthropic-ratelimit-tokens-remaining", "9"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let now = Some(at(1_796_040_000));
        let hint = RulePack::anthropic().limits(&headers, now).unwrap_or_default();
        assert_eq!((hint.requests_limit, hint.requests_reset), (Some(50), Some(Duration::from_secs(5))));
        assert_eq!((hint.tokens_remaining, hint.tokens_reset), (Some(0), Some(Duration::from_secs(30))));
        let wait = RulePack::anthropic().retry_after(&headers, b"", Some(429), now);
        assert_eq!(wait, Some(Duration::from_secs(30)));
        assert_eq!(RulePack::anthropic().retry_after(&headers, b"", Some(429), None), None);
    }
}
