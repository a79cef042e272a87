//! Gemini, on the Developer API and on Vertex: gRPC status names, and details that are typed.

use super::generic::GENERIC;
use super::rule::{Dialect, Evidence, Rule, Then, When};
use crate::record::{ErrorCode, QuotaScope};
use serde_json::Value;

pub(super) static GEMINI: Dialect = Dialect {
    aliases: &["google", "google_ai", "gemini_generate", "vertex", "vertex_ai"],
    rules: RULES,
    ..Dialect::over("gemini", &GENERIC)
};

const RULES: &[Rule] = &[
    // The violated quota's id has its window in it. Google documents that a day's returns at midnight Pacific time; the
    // short `retryDelay` beside it is about the next probe.
    Rule::on(&[429], &[When::WordPart(&["per_day"])], Then::Quota(QuotaScope::Day)),
    Rule::on(&[429], &[When::Says(&["per day"])], Then::Quota(QuotaScope::Day)),
    Rule::on(&[429], &[When::Check(allows_nothing)], Then::Quota(QuotaScope::Plan)),
    // Every other: the wording ("exceeded your current quota, please check your plan") is the same for a minute's.
    Rule::on(&[429], &[], Then::Is(ErrorCode::ProviderRateLimited)),
    // A wrong key is a 400 whose ErrorInfo says so.
    Rule::on(&[400], &[When::Word(&["API_KEY_INVALID", "API_KEY_EXPIRED"])], Then::Is(ErrorCode::Authentication)),
    Rule::on(&[400], &[When::Says(&["api key not valid", "api key expired"])], Then::Is(ErrorCode::Authentication)),
    Rule::on(
        &[400],
        &[When::Word(&["failed_precondition"]), When::Says(&["billing"])],
        Then::Quota(QuotaScope::Billing),
    ),
    // Google documents UNAVAILABLE as overloaded or down for the moment.
    Rule::on(&[503], &[When::Word(&["unavailable"])], Then::Is(ErrorCode::Overloaded)),
];

/// Whether the quota that was hit is zero: the plan does not include the model.
fn allows_nothing(evidence: &Evidence<'_>) -> bool {
    let violations = evidence.spoken.json.iter().flat_map(|json| {
        let details = json.pointer("/error/details").and_then(Value::as_array);
        details.into_iter().flatten().filter_map(|d| d.get("violations")?.as_array()).flatten()
    });
    let zero = |v: &Value| v.get("quotaValue").is_some_and(|value| value == "0" || value == 0);
    let said_zero = evidence
        .said
        .split("limit: 0")
        .nth(1)
        .is_some_and(|after| !after.starts_with(|c: char| c.is_ascii_digit() || c == '.'));
    said_zero || violations.into_iter().any(zero)
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use crate::provider::{Failure, RulePack};
    use http::HeaderMap;
    use std::time::Duration;

    fn quota(id: &str, value: &str) -> String {
        format!(
            r#"{{"error":{{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[
            {{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{{"quotaId":"{id}","quotaValue":"{value}"}}]}},
            {{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.07s"}}]}}}}"#
        )
    }

    #[test]
    fn gemini_errors() {
        check(
            "gemini",
            &[
                (429, &quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "20"), "quota day"),
                (
                    429,
                    &quota("GenerateContentPaidTierInputTokensPerModelPerMinute", "4000000"),
                    "provider_rate_limited",
                ),
                (429, &quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "0"), "quota plan"),
                (200, &quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "20"), "quota day"),
                (429, r#"{"error":{"message":"Quota exceeded, limit: 0, model: m"}}"#, "quota plan"),
                (429, r#"{"error":{"message":"Quota exceeded, limit: 0.5"}}"#, "provider_rate_limited"),
                (402, r#"{"error":{"code":402,"status":"RESOURCE_EXHAUSTED"}}"#, "quota billing"),
                (
                    400,
                    r#"{"error":{"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
                    "authentication",
                ),
                (
                    400,
                    r#"{"error":{"status":"FAILED_PRECONDITION","message":"Please enable billing"}}"#,
                    "quota billing",
                ),
                (400, r#"{"error":{"status":"FAILED_PRECONDITION","message":"location"}}"#, "invalid_request"),
                (503, r#"[{"error":{"code":503,"status":"UNAVAILABLE"}}]"#, "overloaded"),
                (200, r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#, "overloaded"),
                (500, r#"{"error":{"code":500,"status":"INTERNAL"}}"#, "server_error"),
                (409, r#"{"error":{"code":409,"status":"ABORTED"}}"#, "conflict"),
                (501, r#"{"error":{"code":501,"status":"UNIMPLEMENTED"}}"#, "server_error final"),
            ],
        );
    }

    #[test]
    fn the_wait_is_in_the_body() {
        let body = quota("InputTokensPerModelPerMinute", "5");
        let wait = |body: &str| RulePack::gemini().retry_after(&HeaderMap::new(), body.as_bytes(), Some(429), None);
        assert_eq!(wait(&body), Some(Duration::from_millis(34_070)));
        assert_eq!(
            wait(r#"{"error":{"details":[{"retryDelay":{"seconds":3,"nanos":500000000}}]}}"#),
            Some(Duration::from_millis(3_500))
        );
        assert_eq!(wait(r#"{"error":{"details":[{"retryDelay":"-3s"}]}}"#), None);
        let headers = HeaderMap::new();
        let daily = quota("GenerateRequestsPerDay", "20");
        let seen = RulePack::gemini().classify(&Failure::answer(429, &headers, daily.as_bytes()));
        assert_eq!(seen.retry_after, Some(Duration::from_millis(34_070)), "kept, though a retry cannot help");
        assert!(!seen.is_retryable());
    }
}
