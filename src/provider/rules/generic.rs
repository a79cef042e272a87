//! What every HTTP API means by its statuses, and the words in which many providers say what a status cannot.

use super::body::{Spoken, is_word};
use super::limits::{Bucket, DAY, MINUTE, bucket};
use super::rule::{Dialect, Rule, Then, When};
use crate::record::{ErrorCode, QuotaScope};

/// The dialect below all others.
pub(super) static GENERIC: Dialect =
    Dialect { name: "generic", aliases: &["default"], over: None, rules: RULES, limits: LIMITS, hints: false };

/// What a status means by itself.
pub(super) const fn by_status(status: u16) -> Then {
    use ErrorCode as Code;
    Then::Is(match status {
        401 => Code::Authentication,
        402 => return Then::Quota(QuotaScope::Billing),
        403 => Code::Authorization,
        404 => Code::NotFound,
        408 => Code::RequestTimeoutUpstream,
        409 => Code::Conflict,
        413 => Code::PayloadTooLarge,
        // Too early: the server did not want to risk a replay, and asks for the same request again.
        425 => return Then::Again(Code::InvalidRequest),
        429 => Code::ProviderRateLimited,
        400..=499 => Code::InvalidRequest,
        // Not implemented, HTTP version not supported: the same for the next request.
        501 | 505 => return Then::Final(Code::ServerError),
        529 => Code::Overloaded,
        500..=599 => Code::ServerError,
        _ => Code::UnexpectedStatus,
    })
}

/// The status that an error object in a success implies, where it names none.
pub(super) fn implied_status(spoken: &Spoken, said: &str) -> Option<u16> {
    let word = |candidate: &Option<String>| {
        let candidate = candidate.as_deref()?;
        STATUS_WORDS.iter().find(|(_, words)| words.iter().any(|w| is_word(w, candidate))).map(|(status, _)| *status)
    };
    word(&spoken.code).or_else(|| word(&spoken.kind)).or_else(|| {
        STATUS_PHRASES.iter().find(|(_, phrases)| phrases.iter().any(|p| said.contains(p))).map(|(s, _)| *s)
    })
}

/// The words that name a status: the types of `OpenAI`, Anthropic and their look-alikes, the status names of gRPC (Gemini),
/// the exceptions of AWS.
const STATUS_WORDS: &[(u16, &[&str])] = &[
    (
        400,
        &[
            "invalid_request_error",
            "invalid_request",
            "invalid_argument",
            "invalid_value",
            "invalid_prompt",
            "bad_request",
            "bad_request_error",
            "failed_precondition",
            "out_of_range",
            "ValidationException",
        ],
    ),
    (401, &["authentication_error", "unauthenticated", "unauthorized", "invalid_api_key", "invalid_authentication"]),
    (402, &["billing_error", "payment_required"]),
    (403, &["permission_error", "permission_denied", "forbidden", "AccessDeniedException"]),
    (404, &["not_found_error", "not_found", "model_not_found", "ResourceNotFoundException"]),
    (408, &["request_timeout", "ModelTimeoutException"]),
    (409, &["conflict_error", "conflict", "aborted"]),
    (413, &["request_too_large", "payload_too_large"]),
    (422, &["unprocessable_entity", "unprocessable_entity_error"]),
    (
        429,
        &[
            "rate_limit_error",
            "rate_limit_exceeded",
            "rate_limited",
            "rate_limit",
            "too_many_requests",
            "resource_exhausted",
            "slow_down",
            "requests",
            "tokens",
            "ThrottlingException",
        ],
    ),
    (499, &["cancelled"]),
    (
        500,
        &[
            "server_error",
            "api_error",
            "internal",
            "internal_error",
            "internal_server_error",
            "InternalServerException",
        ],
    ),
    (501, &["unimplemented", "not_implemented", "not_supported_error"]),
    (502, &["bad_gateway", "provider_unavailable", "upstream_error"]),
    (
        503,
        &[
            "unavailable",
            "unavailable_error",
            "service_unavailable",
            "service_unavailable_error",
            "ServiceUnavailableException",
        ],
    ),
    (504, &["timeout_error", "deadline_exceeded", "gateway_timeout"]),
    (529, OVERLOAD_WORDS),
];

/// The phrases that imply a status where no word does.
const STATUS_PHRASES: &[(u16, &[&str])] =
    &[(429, &["rate limit", "rate-limit", "too many requests"]), (529, &["overloaded"])];

/// Codes and types that mean: out of capacity. `DeepSeek`'s is a finish reason.
const OVERLOAD_WORDS: &[&str] = &[
    "overloaded",
    "overloaded_error",
    "server_overloaded",
    "server_is_overloaded",
    "engine_overloaded",
    "engine_overloaded_error",
    "model_overloaded",
    "insufficient_system_resource",
];

/// Codes and types that mean: the money is gone, or a spending limit of the account is reached.
const BILLING_WORDS: &[&str] = &[
    "insufficient_quota",
    "insufficient_balance",
    "insufficient_credits",
    "insufficient_funds",
    "credit_balance_exhausted",
    "exceeded_current_quota_error",
    "billing_error",
    "billing_disabled",
    "billing_not_active",
    "billing_hard_limit_reached",
    "payment_required",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
];

/// Codes and types that mean: what the plan includes is used up.
const PLAN_WORDS: &[&str] = &["organization_usage_limit_exceeded", "usage_limit_reached", "usage_limit_exceeded"];

/// Wordings that mean the same as [`BILLING_WORDS`], at providers that have no code for it.
const BILLING_PHRASES: &[&str] = &[
    "credit balance",
    "insufficient balance",
    "insufficient credit",
    "insufficient funds",
    "insufficient quota",
    "insufficient_quota", // OpenAI's code, within what a gateway quotes in its message
    "not enough credit",
    "out of credits",
    "any credits",
    "all available credits",
    "negative balance",
    "spending limit",
    "spend limit",
    "billing hard limit",
    "payment required",
];

/// Wordings of a monthly allowance.
const MONTH_PHRASES: &[&str] =
    &["monthly quota", "monthly limit", "monthly usage limit", "monthly included credits", "monthly allowance"];

/// Wordings of a daily one.
const DAY_PHRASES: &[&str] = &["per day", "per-day", "perday", "byday", "(rpd)", "(tpd)", "daily"];

/// Wordings of shorter windows.
const SHORTER_PHRASES: &[&str] = &["per min", "per-min", "perminute", "rpm", "tpm", "per hour", "per second"];

/// Codes and types of a prompt that does not fit. llama.cpp: `exceed_context_size_error`.
const CONTEXT_WORDS: &[&str] = &[
    "context_length_exceeded",
    "context_window_exceeded",
    "exceed_context_size_error",
    "model_max_prompt_tokens_exceeded",
];

/// Wordings of a prompt that does not fit, whole.
const CONTEXT_PHRASES: &[&str] = &[
    "prompt is too long",                   // Anthropic
    "prompt too long",                      // Ollama
    "input is too long",                    // Bedrock
    "input tokens exceed",                  // Bedrock, Groq
    "input token count",                    // Gemini: "(1200000) exceeds the maximum number of tokens allowed"
    "prompt token count",                   // GitHub
    "maximum prompt length",                // xAI
    "reduce the length of the messages",    // OpenAI, Groq
    "length of all messages is too long",   // Perplexity
    "tokens + `max_new_tokens` must be",    // Hugging Face
    "total number of tokens in the prompt", // Cohere
    "number of input tokens exceeds",       // Bedrock
    "exceeds the model's maximum input",    // gateways
];

/// Wordings of one, in two parts: something about the context ..
const CONTEXT_NOUNS: &[&str] = &["context length", "context window", "context size", "context limit"];
/// .. and something about too much.
const CONTEXT_VERBS: &[&str] = &["exceed", "maximum", "longer than", "larger than", "too long", "too large", " fit"];
/// Too many tokens for a minute are no matter of the context.
const RATE_PHRASES: &[&str] = &["per min", "rate limit"];

/// Codes of a filter.
const FILTER_WORDS: &[&str] =
    &["content_filter", "content_filtered", "content_policy_violation", "ResponsibleAIPolicyViolation"];

const RULES: &[Rule] = &[
    // Words for machines say it at any status.
    Rule::any(&[When::Word(BILLING_WORDS)], Then::Quota(QuotaScope::Billing)),
    Rule::any(&[When::Word(PLAN_WORDS)], Then::Quota(QuotaScope::Plan)),
    Rule::on(&[402, 403, 429], &[When::Word(&["quota_exceeded"])], Then::Quota(QuotaScope::Unknown)),
    Rule::any(&[When::Word(CONTEXT_WORDS)], Then::Is(ErrorCode::ContextLengthExceeded)),
    Rule::any(&[When::Word(FILTER_WORDS)], Then::Is(ErrorCode::ContentFiltered)),
    Rule::on(&[429, 500, 502, 503, 504, 529], &[When::Word(OVERLOAD_WORDS)], Then::Is(ErrorCode::Overloaded)),
    Rule::on(&[503], &[When::Word(&["slow_down"])], Then::Is(ErrorCode::Overloaded)),
    Rule::on(
        &[400],
        &[When::Word(&["invalid_api_key", "authentication_error", "API_KEY_INVALID"])],
        Then::Is(ErrorCode::Authentication),
    ),
    // Wordings, where the status leaves it open.
    Rule::any(&[When::Says(CONTEXT_PHRASES), When::SaysNone(RATE_PHRASES)], Then::Is(ErrorCode::ContextLengthExceeded)),
    Rule::any(
        &[When::Says(CONTEXT_NOUNS), When::Says(CONTEXT_VERBS), When::SaysNone(RATE_PHRASES)],
        Then::Is(ErrorCode::ContextLengthExceeded),
    ),
    Rule::on(&[400, 402, 403, 429], &[When::Says(MONTH_PHRASES)], Then::Quota(QuotaScope::Month)),
    Rule::on(&[400, 402, 403, 429], &[When::Says(BILLING_PHRASES)], Then::Quota(QuotaScope::Billing)),
    // A daily window that slides (Groq's, OpenAI's) comes with the wait until it admits again; without one it is a quota. A
    // message that lists shorter windows too leaves open which was hit.
    Rule::on(
        &[429],
        &[When::Says(DAY_PHRASES), When::SaysNone(SHORTER_PHRASES), When::NoWait],
        Then::Quota(QuotaScope::Day),
    ),
    Rule::on(&[429, 500, 503], &[When::Says(&["overloaded"])], Then::Is(ErrorCode::Overloaded)),
];

/// The names that most providers use, and the IETF draft's.
const LIMITS: &[Bucket] = &[
    bucket!(Requests, "x-ratelimit-", "-requests", None),
    bucket!(Requests, "x-ratelimit-", "-requests-per-minute", Some(MINUTE)),
    bucket!(Requests, "x-ratelimit-", "", None),
    bucket!(Requests, "ratelimit-", "", None),
    bucket!(Tokens, "x-ratelimit-", "-tokens", None),
    bucket!(Tokens, "x-ratelimit-", "-tokens-per-minute", Some(MINUTE)), // DigitalOcean
    bucket!(Tokens, "x-ratelimit-", "-tokens-per-day", Some(DAY)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Failure, RulePack};
    use crate::resilience::Advice;
    use http::HeaderMap;

    fn code(status: u16, body: &str) -> &'static str {
        let seen = RulePack::generic().classify(&Failure::answer(status, &HeaderMap::new(), body.as_bytes()));
        seen.code.map_or("none", ErrorCode::as_str)
    }

    #[test]
    fn the_table_of_statuses() {
        for (status, expected, retried) in [
            (100, "unexpected_status", false),
            (201, "unexpected_status", false),
            (204, "unexpected_status", false),
            (307, "unexpected_status", false),
            (400, "invalid_request", false),
            (401, "authentication", false),
            (402, "provider_quota_exhausted", false),
            (403, "authorization", false),
            (404, "not_found", false),
            (405, "invalid_request", false),
            (406, "invalid_request", false),
            (408, "request_timeout_upstream", true),
            (409, "conflict", true),
            (410, "invalid_request", false),
            (413, "payload_too_large", false),
            (415, "invalid_request", false),
            (418, "invalid_request", false),
            (422, "invalid_request", false),
            (425, "invalid_request", true),
            (429, "provider_rate_limited", true),
            (498, "invalid_request", false),
            (499, "invalid_request", false),
            (500, "server_error", true),
            (501, "server_error", false),
            (502, "server_error", true),
            (503, "server_error", true),
            (504, "server_error", true),
            (505, "server_error", false),
            (520, "server_error", true),
            (524, "server_error", true),
            (529, "overloaded", true),
            (599, "server_error", true),
            (999, "unexpected_status", false),
        ] {
            let seen = RulePack::generic().classify(&Failure::answer(status, &HeaderMap::new(), b""));
            assert_eq!(seen.code.map(ErrorCode::as_str), Some(expected), "{status}");
            assert_eq!(seen.retry != Advice::Never, retried, "{status}");
        }
    }

    #[test]
    fn what_a_body_says_beats_its_status() {
        for (status, said, expected) in [
            (400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"),
            (500, "input length exceeds maximum context length", "context_length_exceeded"),
            (413, "prompt is too long: 208100 tokens > 200000 maximum", "context_length_exceeded"),
            (400, "input length and `max_tokens` exceed context limit: 190000 + 20000", "context_length_exceeded"),
            (400, "The input token count (9) exceeds the maximum number of tokens allowed", "context_length_exceeded"),
            (400, "context_length_exceeded_behavior must be one of truncate, error", "invalid_request"),
            (429, "Number of input tokens exceeds your limit per minute", "provider_rate_limited"),
            (400, "max_tokens is too large: 50000", "invalid_request"),
            (400, "Your credit balance is too low to access the API.", "provider_quota_exhausted"),
            (403, "Your team doesn't have any credits yet", "provider_quota_exhausted"),
            (401, "Your credit balance is too low", "authentication"),
            (429, "Too many tokens per day, please wait before trying again.", "provider_quota_exhausted"),
            (429, "Limits are 60 requests per minute and 1000 per day", "provider_rate_limited"),
            (429, "Too many requests", "provider_rate_limited"),
            (503, "The model is overloaded.", "overloaded"),
            (400, "The field `overloaded` is unknown", "invalid_request"),
        ] {
            assert_eq!(code(status, &format!("{{\"error\":{{\"message\":\"{said}\"}}}}")), expected, "{said}");
        }
    }

    #[test]
    fn an_error_in_a_200_is_judged_as_if_it_had_its_own_status() {
        for (body, expected) in [
            (r#"{"error":{"code":502,"message":"m"}}"#, "server_error"),
            (r#"{"error":{"code":"429","message":"m"}}"#, "provider_rate_limited"),
            (r#"{"error":{"message":"m","status":401}}"#, "authentication"),
            (r#"{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}"#, "server_error"),
            (r#"{"error":{"type":"overloaded_error","message":"m"}}"#, "overloaded"),
            (r#"{"error":{"type":"rate_limit_error","message":"m"}}"#, "provider_rate_limited"),
            (r#"{"error":{"type":"invalid_request_error","message":"m"}}"#, "invalid_request"),
            (r#"{"error":{"type":"insufficient_quota","message":"m"}}"#, "provider_quota_exhausted"),
            (r#"{"error":{"code":402,"message":"m"}}"#, "provider_quota_exhausted"),
            (r#"{"type":"error","code":"server_error","message":"m"}"#, "server_error"),
            (r#"{"object":"error","type":"NotFoundError","code":404}"#, "not_found"),
            (r#"{"error":"the runner stopped"}"#, "server_error"),
            (r#"{"error":{"message":"Rate limit reached"}}"#, "provider_rate_limited"),
            (r#"{"status":"failed","error":{"code":"rate_limit_exceeded"}}"#, "provider_rate_limited"),
            ("", "empty_response"),
            (" \n", "empty_response"),
            ("<html></html>", "response_invalid"),
            (r#"{"choices":[]}"#, "response_invalid"),
        ] {
            assert_eq!(code(200, body), expected, "{body}");
        }
    }
}
