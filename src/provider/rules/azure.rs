//! Azure `OpenAI`.

use super::openai::OPENAI;
use super::rule::{Dialect, Rule, Then, When};
use crate::record::QuotaScope;

/// Over `OpenAI`'s: Azure documents the same limit headers with whole seconds, `retry-after-ms`, a code that repeats the
/// status as text, and the content filter's verdict in `innererror`.
pub(super) static AZURE: Dialect =
    Dialect { aliases: &["azure_openai", "azure_chat"], rules: RULES, ..Dialect::over("azure", &OPENAI) };

const RULES: &[Rule] = &[
    // "Out of call volume quota. Quota will be replenished in ..", of a free tier.
    Rule::on(&[403, 429], &[When::Says(&["call volume quota"])], Then::Quota(QuotaScope::Month)),
];

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn azure_errors() {
        check(
            "azure",
            &[
                (400, r#"{"error":{"code":"content_filter","status":400}}"#, "content_filtered"),
                (
                    400,
                    r#"{"error":{"code":"x","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
                    "content_filtered",
                ),
                (404, r#"{"error":{"code":"DeploymentNotFound","message":"no such deployment"}}"#, "not_found"),
                (429, r#"{"error":{"code":"429","message":"retry after 33 seconds."}}"#, "provider_rate_limited"),
                (429, r#"{"error":{"code":"InsufficientQuota"}}"#, "quota billing"),
                (
                    403,
                    r#"{"error":{"code":"403","message":"Out of call volume quota. Replenished in .."}}"#,
                    "quota month",
                ),
                (424, r#"{"error":{"code":"x"}}"#, "invalid_request"),
            ],
        );
    }
}
