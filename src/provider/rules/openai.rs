//! `OpenAI`, chat completions and responses; below every provider that speaks its protocol.

use super::generic::GENERIC;
use super::limits::{Bucket, bucket};
use super::rule::{Dialect, Rule, Then, When};
use crate::record::{ErrorCode, QuotaScope};

pub(super) static OPENAI: Dialect = Dialect {
    aliases: &["openai_chat", "openai_responses", "openai_compatible"],
    rules: RULES,
    limits: LIMITS,
    hints: true,
    ..Dialect::over("openai", &GENERIC)
};

const RULES: &[Rule] = &[
    // "Request too large for .. on tokens per min (TPM): Limit 30000, Requested 30601": no wait makes it fit.
    Rule::on(&[429], &[When::Says(&["request too large"])], Then::Is(ErrorCode::PayloadTooLarge)),
    // Gemini's errors behind an OpenAI door say "exceeded your current quota" for a minute's quota too.
    Rule::on(&[429], &[When::WordPart(&["per_day"])], Then::Quota(QuotaScope::Day)),
    Rule::on(&[429], &[When::Word(&["resource_exhausted"])], Then::Is(ErrorCode::ProviderRateLimited)),
    // "You exceeded your current quota, please check your plan and billing details": gateways drop the code.
    Rule::on(&[400, 402, 403, 429], &[When::Says(&["exceeded your current quota"])], Then::Quota(QuotaScope::Billing)),
    // `invalid_prompt`, `bio_policy`, `misalignment_policy_violation`, ..: the prompt was refused.
    Rule::on(&[400, 403], &[When::Word(&["invalid_prompt"])], Then::Is(ErrorCode::ContentFiltered)),
    Rule::on(&[400, 403], &[When::WordPart(&["policy"])], Then::Is(ErrorCode::ContentFiltered)),
];

/// `OpenAI` documents these on most answers, resets as Go durations, and a project's own token limit beside them.
const LIMITS: &[Bucket] = &[
    bucket!(Requests, "x-ratelimit-", "-requests", None),
    bucket!(Requests, "x-ratelimit-", "", None),
    bucket!(Tokens, "x-ratelimit-", "-tokens", None),
    bucket!(Tokens, "x-ratelimit-", "-project-tokens", None),
    bucket!(Tokens, "x-ratelimit-", "-tokens-per-minute", Some(super::limits::MINUTE)),
    bucket!(Tokens, "x-ratelimit-", "-tokens-per-day", Some(super::limits::DAY)),
];

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn openai_errors() {
        check(
            "openai",
            &[
                (429, r#"{"error":{"type":"insufficient_quota","code":"credit_balance_exhausted"}}"#, "quota billing"),
                (429, r#"{"error":{"code":"organization_usage_limit_exceeded"}}"#, "quota plan"),
                (
                    429,
                    r#"{"error":{"message":"You exceeded your current quota, please check your plan"}}"#,
                    "quota billing",
                ),
                (429, r#"{"error":{"type":"requests","code":"rate_limit_exceeded"}}"#, "provider_rate_limited"),
                (429, r#"{"error":{"type":"rate_limit_error","code":"slow_down"}}"#, "provider_rate_limited"),
                (429, r#"{"error":{"type":"tokens","message":"Request too large for m on TPM"}}"#, "payload_too_large"),
                (503, r#"{"error":{"type":"service_unavailable_error","code":"server_is_overloaded"}}"#, "overloaded"),
                (503, r#"{"error":{"code":"slow_down"}}"#, "overloaded"),
                (400, r#"{"error":{"code":"invalid_prompt"}}"#, "content_filtered"),
                (200, r#"{"status":"failed","error":{"code":"bio_policy","message":"m"}}"#, "content_filtered"),
                (200, r#"{"status":"failed","error":{"code":"rate_limit_exceeded"}}"#, "provider_rate_limited"),
                (400, r#"{"error":{"code":"unsupported_value"}}"#, "invalid_request"),
                (403, r#"{"error":{"code":"unsupported_country_region_territory"}}"#, "authorization"),
                (404, r#"{"error":{"code":"model_not_found"}}"#, "not_found"),
                (
                    429,
                    r#"{"error":{"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota"}}"#,
                    "provider_rate_limited",
                ),
            ],
        );
    }
}
