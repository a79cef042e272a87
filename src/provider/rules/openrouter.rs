//! `OpenRouter`: a status in `error.code`, the upstream's words in `error.metadata.raw`, whose limit it is in
//! `error.metadata.limit_source`.

use super::openai::OPENAI;
use super::rule::{Dialect, Rule, Then, When};
use crate::record::{ErrorCode, QuotaScope};

pub(super) static OPENROUTER: Dialect = Dialect { rules: RULES, ..Dialect::over("openrouter", &OPENAI) };

const RULES: &[Rule] = &[
    // The one 402 worth waiting for: requests that are running fill the in-flight budget, and `retry-after` says when one
    // settles.
    Rule::any(
        &[When::Word(&["openrouter_in_flight_budget", "in_flight_budget_exhausted"])],
        Then::Is(ErrorCode::ProviderRateLimited),
    ),
    Rule::any(
        &[When::Word(&[
            "openrouter_credits",
            "openrouter_key_limit",
            "openrouter_guardrail_budget",
            "openrouter_workspace_budget",
            "weight_exceeds_budget",
        ])],
        Then::Quota(QuotaScope::Billing),
    ),
    Rule::on(&[402, 403], &[When::Says(&["key limit exceeded"])], Then::Quota(QuotaScope::Billing)),
    // Free models have a ceiling by the UTC day; `x-ratelimit-reset` says when it ends.
    Rule::on(&[429], &[When::Says(&["free-models-per-day"])], Then::Quota(QuotaScope::Day)),
    // The upstream pool of all customers is full: no wait is told, and it passes.
    Rule::on(&[429], &[When::Word(&["upstream_provider_shared_pool"])], Then::Is(ErrorCode::ProviderRateLimited)),
    // Moderation names what it found.
    Rule::on(
        &[403],
        &[When::Field(&["/error/metadata/reasons", "/error/metadata/flagged_input"])],
        Then::Is(ErrorCode::ContentFiltered),
    ),
    // Here it is a message that is malformed, not one that was refused.
    Rule::on(&[400], &[When::Word(&["invalid_prompt"])], Then::Is(ErrorCode::InvalidRequest)),
];

#[cfg(test)]
mod tests {
    use super::super::tests::{at, check};
    use crate::provider::{Failure, RulePack};
    use crate::record::{Issues, QuotaScope};
    use http::{HeaderMap, HeaderValue};
    use std::time::Duration;

    #[test]
    fn openrouter_errors() {
        check(
            "openrouter",
            &[
                (
                    402,
                    r#"{"error":{"code":402,"metadata":{"limit_source":"openrouter_in_flight_budget"}}}"#,
                    "provider_rate_limited",
                ),
                (402, r#"{"error":{"code":402,"metadata":{"limit_source":"openrouter_credits"}}}"#, "quota billing"),
                (403, r#"{"error":{"code":403,"metadata":{"limit_source":"openrouter_key_limit"}}}"#, "quota billing"),
                (403, r#"{"error":{"code":403,"message":"Key limit exceeded (total limit)"}}"#, "quota billing"),
                (403, r#"{"error":{"code":403,"metadata":{"reasons":["violence"]}}}"#, "content_filtered"),
                (403, r#"{"error":{"code":403,"message":"no"}}"#, "authorization"),
                (400, r#"{"error":{"code":400,"metadata":{"error_type":"invalid_prompt"}}}"#, "invalid_request"),
                (
                    429,
                    r#"{"error":{"code":429,"message":"x","metadata":{"raw":"m is rate-limited upstream"}}}"#,
                    "provider_rate_limited",
                ),
                (200, r#"{"error":{"code":502,"message":"provider died"}}"#, "server_error"),
                (200, r#"{"choices":[{"finish_reason":"error","error":{"code":529}}]}"#, "overloaded"),
                (503, r#"{"error":{"code":503,"message":"No provider available"}}"#, "server_error"),
            ],
        );
    }

    #[test]
    fn a_daily_ceiling_says_when_it_ends() {
        let mut headers = HeaderMap::new();
        headers.insert("x-ratelimit-remaining", HeaderValue::from_static("0"));
        headers.insert("x-ratelimit-reset", HeaderValue::from_static("1796083200000"));
        let body = br#"{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-day"}}"#;
        let now = at(1_796_040_000);
        let seen = RulePack::openrouter().classify(&Failure::answer(429, &headers, body).at(now));
        let resets_at = Some(now + Duration::from_secs(43_200));
        assert_eq!(seen.issues, Some(Issues::Quota { scope: QuotaScope::Day, resets_at }));
        assert_eq!(seen.retry_after, Some(Duration::from_secs(43_200)));
    }
}
