//! Providers and servers that speak `OpenAI`'s protocol and differ in a few words or headers.

use super::generic::GENERIC;
use super::limits::{Bucket, DAY, HOUR, MINUTE, bucket};
use super::openai::OPENAI;
use super::rule::{Dialect, Rule, Then, When};
use crate::record::{ErrorCode, QuotaScope};

/// Mistral: flat error bodies with codes of its own (`1300`), `FastAPI`'s list on a 422; counts of tokens by size.
pub(super) static MISTRAL: Dialect =
    Dialect { aliases: &["mistral_ai", "codestral"], limits: MISTRAL_LIMITS, ..Dialect::over("mistral", &OPENAI) };

const MISTRAL_LIMITS: &[Bucket] = &[
    bucket!(Requests, "x-ratelimit-", "-requests", None),
    bucket!(Requests, "x-ratelimit-", "-req-minute", Some(MINUTE)),
    bucket!(Requests, "x-ratelimit-", "", None),
    bucket!(Tokens, "x-ratelimit-", "-tokens", None),
    bucket!(Tokens, "x-ratelimit-", "-tokens-minute", Some(MINUTE)),
    bucket!(Tokens, "x-ratelimitbysize-", "-minute", Some(MINUTE)),
    bucket!(Tokens, "ratelimitbysize-", "", Some(MINUTE)),
];

/// `DeepSeek` documents 402 as a balance used up, and sends no limit headers; it lets requests wait instead.
pub(super) static DEEPSEEK: Dialect = Dialect::over("deepseek", &OPENAI);

/// Together: its type `credit_limit` is also sent for plain rate limits, and then the message counts requests.
pub(super) static TOGETHER: Dialect =
    Dialect { aliases: &["together_ai"], rules: TOGETHER_RULES, ..Dialect::over("together", &OPENAI) };

const TOGETHER_RULES: &[Rule] = &[
    Rule::on(
        &[429],
        &[When::Word(&["credit_limit"]), When::Says(&["rate limit", "rpm", "tpm"])],
        Then::Is(ErrorCode::ProviderRateLimited),
    ),
    Rule::on(
        &[402, 403, 429],
        &[When::Word(&["credit_limit"]), When::Says(&["credit limit", "billing"])],
        Then::Quota(QuotaScope::Billing),
    ),
];

/// Fireworks: 412 is a suspended account (a spending limit, an unpaid invoice) or an adapter that is not deployed.
pub(super) static FIREWORKS: Dialect = Dialect {
    aliases: &["fireworks_ai"],
    rules: FIREWORKS_RULES,
    limits: FIREWORKS_LIMITS,
    ..Dialect::over("fireworks", &OPENAI)
};

const FIREWORKS_RULES: &[Rule] =
    &[Rule::on(&[412], &[When::Says(&["suspended", "spending limit"])], Then::Quota(QuotaScope::Billing))];

const FIREWORKS_LIMITS: &[Bucket] = &[
    bucket!(Requests, "x-ratelimit-", "-requests", None),
    bucket!(Requests, "x-ratelimit-", "", None),
    bucket!(Tokens, "x-ratelimit-", "-tokens-prompt", None),
    bucket!(Tokens, "x-ratelimit-", "-tokens-generated", None),
];

/// xAI: a wrong key is a 400, spent credits a 429 or 403 in words, moderation a 403 or 400 in words.
pub(super) static XAI: Dialect =
    Dialect { aliases: &["grok", "x_ai"], rules: XAI_RULES, ..Dialect::over("xai", &OPENAI) };

const XAI_RULES: &[Rule] = &[
    Rule::on(&[400], &[When::Says(&["incorrect api key", "invalid api key"])], Then::Is(ErrorCode::Authentication)),
    Rule::on(&[400, 403], &[When::Says(&["violates usage guidelines"])], Then::Is(ErrorCode::ContentFiltered)),
];

/// Cerebras documents a bucket each for the minute, the hour and the day, in float seconds. Its `token_quota_exceeded` is
/// a minute's limit, not a quota.
pub(super) static CEREBRAS: Dialect = Dialect { limits: CEREBRAS_LIMITS, ..Dialect::over("cerebras", &OPENAI) };

const CEREBRAS_LIMITS: &[Bucket] = &[
    bucket!(Requests, "x-ratelimit-", "-requests-minute", Some(MINUTE)),
    bucket!(Requests, "x-ratelimit-", "-requests-hour", Some(HOUR)),
    bucket!(Requests, "x-ratelimit-", "-requests-day", Some(DAY)),
    bucket!(Tokens, "x-ratelimit-", "-tokens-minute", Some(MINUTE)),
    bucket!(Tokens, "x-ratelimit-", "-tokens-hour", Some(HOUR)),
    bucket!(Tokens, "x-ratelimit-", "-tokens-day", Some(DAY)),
];

/// Perplexity answers 401 for spent credit too.
pub(super) static PERPLEXITY: Dialect =
    Dialect { aliases: &["pplx"], rules: PERPLEXITY_RULES, ..Dialect::over("perplexity", &OPENAI) };

const PERPLEXITY_RULES: &[Rule] = &[Rule::on(
    &[401],
    &[When::Says(&["exceeded your current quota", "insufficient credit", "out of credits"])],
    Then::Quota(QuotaScope::Billing),
)];

/// vLLM: the status as a number in `code`; flat bodies in old versions.
pub(super) static VLLM: Dialect = Dialect { aliases: &["hosted_vllm", "sglang"], ..Dialect::over("vllm", &OPENAI) };

/// llama.cpp: the status as a number in `code`, `exceed_context_size_error`, 503 while the model loads.
pub(super) static LLAMA_CPP: Dialect = Dialect {
    aliases: &["llamafile", "lm_studio", "local_ai", "docker_model_runner"],
    ..Dialect::over("llama_cpp", &OPENAI)
};

/// Ollama: a text in `error`; its cloud's usage limits are a plan's unless it says how long they last.
pub(super) static OLLAMA: Dialect =
    Dialect { aliases: &["ollama_chat", "ollama_cloud"], rules: OLLAMA_RULES, ..Dialect::over("ollama", &GENERIC) };

const OLLAMA_RULES: &[Rule] = &[
    Rule::on(&[429], &[When::Says(&["usage limit"]), When::NoWait], Then::Quota(QuotaScope::Plan)),
    // "server busy, please try again.  maximum pending requests exceeded": a 503, or a line of a stream that has begun.
    Rule::any(&[When::Says(&["server busy"])], Then::Is(ErrorCode::Overloaded)),
];

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::{DAY, MINUTE};
    use crate::provider::RulePack;
    use http::{HeaderMap, HeaderValue};
    use std::time::Duration;

    #[test]
    fn compatible_errors() {
        check(
            "mistral",
            &[
                (
                    429,
                    r#"{"object":"error","message":"m","type":"rate_limited","code":"1300"}"#,
                    "provider_rate_limited",
                ),
                (422, r#"{"detail":[{"loc":["body","seed"],"msg":"unexpected field"}]}"#, "invalid_request"),
            ],
        );
        check(
            "deepseek",
            &[
                (
                    402,
                    r#"{"error":{"message":"Insufficient Balance","code":"invalid_request_error"}}"#,
                    "quota billing",
                ),
                (503, "", "server_error"),
            ],
        );
        check(
            "together",
            &[
                (
                    429,
                    r#"{"error":{"message":"refused by request rate limiting; limits are 600 RPM","type":"credit_limit"}}"#,
                    "provider_rate_limited",
                ),
                (429, r#"{"error":{"message":"Credit limit exceeded","type":"credit_limit"}}"#, "quota billing"),
            ],
        );
        check(
            "fireworks",
            &[
                (412, r#"{"error":"Account x is suspended"}"#, "quota billing"),
                (412, r#"{"error":{"message":"adapter not loaded"}}"#, "invalid_request"),
            ],
        );
        check(
            "xai",
            &[
                (400, r#"{"code":"Client error","error":"Incorrect API key provided: xx"}"#, "authentication"),
                (403, r#"{"code":"c","error":"Your new team doesn't have any credits yet."}"#, "quota billing"),
                (403, r#"{"code":"c","error":"Content violates usage guidelines."}"#, "content_filtered"),
                (403, r#"{"code":"Permission denied","error":"Key is disabled"}"#, "authorization"),
            ],
        );
        check(
            "cerebras",
            &[(
                429,
                r#"{"message":"Tokens per minute exceeded","type":"too_many_tokens_error","param":"quota","code":"token_quota_exceeded"}"#,
                "provider_rate_limited",
            )],
        );
        check(
            "perplexity",
            &[
                (401, r#"{"error":{"type":"insufficient_quota","message":"m"}}"#, "quota billing"),
                (401, "<html>401</html>", "authentication"),
            ],
        );
        check("vllm", &[(404, r#"{"error":{"type":"NotFoundError","code":404}}"#, "not_found")]);
        check(
            "llama_cpp",
            &[
                (400, r#"{"error":{"code":400,"type":"exceed_context_size_error"}}"#, "context_length_exceeded"),
                (503, r#"{"error":{"code":503,"type":"unavailable_error"}}"#, "server_error"),
                (501, r#"{"error":{"code":501,"type":"not_supported_error"}}"#, "server_error final"),
            ],
        );
        check(
            "ollama",
            &[
                (404, r#"{"error":"model 'x' not found"}"#, "not_found"),
                (200, r#"{"error":"runner failed"}"#, "server_error"),
                (200, r#"{"error":"server busy, please try again"}"#, "overloaded"),
                (503, r#"{"error":"server busy, please try again"}"#, "overloaded"),
                (429, r#"{"error":"you have reached your weekly usage limit"}"#, "quota plan"),
                (
                    500,
                    r#"{"error":"prompt too long; exceeded max context length by 9 tokens"}"#,
                    "context_length_exceeded",
                ),
            ],
        );
    }

    #[test]
    fn cerebras_names_its_windows() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-ratelimit-limit-requests-day", "1000"),
            ("x-ratelimit-remaining-requests-day", "999"),
            ("x-ratelimit-reset-requests-day", "33011.38"),
            ("x-ratelimit-limit-tokens-minute", "60000"),
            ("x-ratelimit-remaining-tokens-minute", "0"),
            ("x-ratelimit-reset-tokens-minute", "11.38s"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let pack = RulePack::cerebras();
        let hint = pack.limits(&headers, None).unwrap_or_default();
        assert_eq!((hint.requests_window, hint.tokens_window), (Some(DAY), Some(MINUTE)));
        assert_eq!(hint.requests_reset, Some(Duration::from_millis(33_011_380)));
        assert_eq!(pack.retry_after(&headers, b"", Some(429), None), Some(Duration::from_millis(11_380)));
    }
}
