//! Amazon Bedrock: the exception's name, in a header or in the body, says what it is.

use super::generic::GENERIC;
use super::rule::{Dialect, Rule, Then, When};
use crate::record::{ErrorCode, QuotaScope};

/// Names are compared without case, since exceptions in a stream are written in lower camel case.
pub(super) static BEDROCK: Dialect = Dialect {
    aliases: &["aws_bedrock", "amazon_bedrock", "bedrock_converse"],
    rules: RULES,
    ..Dialect::over("bedrock", &GENERIC)
};

const RULES: &[Rule] = &[
    // "Too many tokens per day, please wait before trying again.": no wait of a call's length helps.
    Rule::any(&[When::Word(&["ThrottlingException"]), When::Says(&["per day"])], Then::Quota(QuotaScope::Day)),
    Rule::any(
        &[When::Word(&["ThrottlingException", "TooManyRequestsException"])],
        Then::Is(ErrorCode::ProviderRateLimited),
    ),
    // An account's quota, raised by hand.
    Rule::any(&[When::Word(&["ServiceQuotaExceededException"])], Then::Quota(QuotaScope::Plan)),
    // The model is warming up; AWS's own SDKs retry it.
    Rule::any(&[When::Word(&["ModelNotReadyException"])], Then::Is(ErrorCode::Overloaded)),
    Rule::any(&[When::Word(&["ServiceUnavailableException"])], Then::Is(ErrorCode::Overloaded)),
    // The model failed while it was at work.
    Rule::any(&[When::Word(&["ModelErrorException", "ModelStreamErrorException"])], Then::Is(ErrorCode::ServerError)),
    Rule::any(&[When::Word(&["ModelTimeoutException"])], Then::Is(ErrorCode::RequestTimeoutUpstream)),
    // 403 for what others answer with 401: the credentials were good once, and can be fetched anew.
    Rule::any(&[When::Word(&["ExpiredTokenException", "ExpiredToken"])], Then::Is(ErrorCode::Authentication)),
    // Credentials that are not known, or a signature that does not fit: a 403, at some doors a 400 or a 401.
    Rule::any(
        &[When::Word(&[
            "IncompleteSignature",
            "IncompleteSignatureException",
            "InvalidClientTokenId",
            "InvalidSignatureException",
            "MissingAuthenticationToken",
            "MissingAuthenticationTokenException",
            "SignatureDoesNotMatch",
            "UnrecognizedClientException",
        ])],
        Then::Is(ErrorCode::Authorization),
    ),
];

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use crate::provider::{Failure, RulePack};
    use crate::record::ErrorCode;
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn bedrock_errors_by_their_body() {
        check(
            "bedrock",
            &[
                (429, r#"{"__type":"ThrottlingException","message":"too many requests"}"#, "provider_rate_limited"),
                (400, r#"{"__type":"com.amazon#ThrottlingException","message":"m"}"#, "provider_rate_limited"),
                (429, r#"{"__type":"ThrottlingException","message":"Too many tokens per day"}"#, "quota day"),
                (400, r#"{"__type":"ServiceQuotaExceededException"}"#, "quota plan"),
                (
                    400,
                    r#"{"__type":"ValidationException","message":"Input is too long for requested model."}"#,
                    "context_length_exceeded",
                ),
                (400, r#"{"__type":"ValidationException","message":"m"}"#, "invalid_request"),
                (424, r#"{"__type":"ModelErrorException","originalStatusCode":500}"#, "server_error"),
                (408, r#"{"__type":"ModelTimeoutException"}"#, "request_timeout_upstream"),
                (403, r#"{"__type":"ExpiredTokenException"}"#, "authentication"),
                (403, r#"{"__type":"AccessDeniedException"}"#, "authorization"),
                (403, r#"{"__type":"UnrecognizedClientException"}"#, "authorization"),
                (403, r#"{"__type":"InvalidSignatureException","message":"Signature expired"}"#, "authorization"),
                (400, r#"{"__type":"SignatureDoesNotMatch"}"#, "authorization"),
                (
                    403,
                    r#"{"message":"Authentication failed: Please make sure your API Key is valid."}"#,
                    "authorization",
                ),
                (
                    404,
                    r#"{"__type":"ResourceNotFoundException","message":"This model has reached the end of its life."}"#,
                    "not_found",
                ),
                (429, r#"{"__type":"ModelNotReadyException","message":"m"}"#, "overloaded"),
                (500, r#"{"__type":"InternalServerException","message":"m"}"#, "server_error"),
                (503, r#"{"__type":"ServiceUnavailableException","message":"m"}"#, "overloaded"),
                (200, r#"{"__type":"throttlingException","message":"m"}"#, "provider_rate_limited"),
                (200, r#"{"__type":"modelStreamErrorException","originalStatusCode":400}"#, "server_error"),
                (200, r#"{"__type":"validationException","message":"m"}"#, "invalid_request"),
                (200, r#"{"__type":"internalServerException","message":"m"}"#, "server_error"),
            ],
        );
    }

    #[test]
    fn the_name_in_the_header_ends_at_the_colon() {
        let mut headers = HeaderMap::new();
        let name = HeaderValue::from_static("ThrottlingException:http://internal.amazon.com/coral/");
        headers.insert("x-amzn-errortype", name);
        let seen = RulePack::bedrock().classify(&Failure::answer(400, &headers, br#"{"Message":"slow"}"#));
        assert_eq!(seen.code, Some(ErrorCode::ProviderRateLimited));
        assert_eq!(seen.provider_type.as_deref(), Some("ThrottlingException"));
        assert_eq!(seen.provider_message.as_deref(), Some("slow"));
    }
}
