//! The stable machine-readable reason within a kind, and the table that says what each means.

use super::kind::{ErrorKind, stable_names};

stable_names! {
    /// The stable, machine-readable reason of a failure.
    ///
    /// Each code belongs to one [`ErrorKind`] and has a default answer to two questions: would the same call possibly
    /// succeed later ([`is_retryable`](Self::is_retryable)), and is the failure evidence about the target's health
    /// ([`counts_toward_breaker`](Self::counts_toward_breaker)).
    ///
    /// ```
    /// use steadfast::{ErrorCode, ErrorKind};
    /// let code = ErrorCode::ProviderRateLimited;
    /// assert_eq!(code.as_str(), "provider_rate_limited");
    /// assert_eq!(code.kind(), ErrorKind::Api);
    /// assert!(code.is_retryable() && code.counts_toward_breaker());
    /// ```
    ErrorCode {
        /// 401: the provider rejected the credentials.
        Authentication => "authentication",
        /// 403: the credentials do not allow this.
        Authorization => "authorization",
        /// 404: no such model, deployment or route.
        NotFound => "not_found",
        /// 400, 422 and the other 4xx without a code of their own: the provider calls the request wrong.
        InvalidRequest => "invalid_request",
        /// The prompt does not fit the model's context, whatever the status.
        ContextLengthExceeded => "context_length_exceeded",
        /// The prompt was blocked, or nothing usable came and the provider says a filter is why.
        ContentFiltered => "content_filtered",
        /// 413: the request body is too large.
        PayloadTooLarge => "payload_too_large",
        /// 429 for capacity: waiting cures it.
        ProviderRateLimited => "provider_rate_limited",
        /// 429, 402, 403 or 400 that means money or a plan's quota: waiting does not cure it.
        ProviderQuotaExhausted => "provider_quota_exhausted",
        /// The provider is out of capacity: 529, 503 with an overload type, an overload inside a stream.
        Overloaded => "overloaded",
        /// Any other 5xx.
        ServerError => "server_error",
        /// 409.
        Conflict => "conflict",
        /// 408: the provider gave up waiting.
        RequestTimeoutUpstream => "request_timeout_upstream",
        /// A 3xx that is not followed, or a success status that the protocol does not have.
        UnexpectedStatus => "unexpected_status",
        /// A success with nothing in it.
        EmptyResponse => "empty_response",
        /// Never connected: DNS, connect, TLS, connect timeout. Nothing was sent.
        ConnectionFailed => "connection_failed",
        /// The response head or body broke off; nothing was delivered to the caller.
        ConnectionInterrupted => "connection_interrupted",
        /// A stream broke after output was delivered.
        StreamInterrupted => "stream_interrupted",
        /// One attempt exceeded its timeout.
        RequestTimeout => "request_timeout",
        /// A stream went silent.
        IdleTimeout => "idle_timeout",
        /// The call's deadline passed.
        DeadlineExceeded => "deadline_exceeded",
        /// The body of a success is not the protocol: HTML, or cut JSON.
        ResponseInvalid => "response_invalid",
        /// A stream frame is not the protocol.
        StreamFrameInvalid => "stream_frame_invalid",
        /// The body is over the client's cap.
        ResponseTooLarge => "response_too_large",
        /// JSON was asked for and the text is not JSON.
        JsonParseFailed => "json_parse_failed",
        /// A tool call's arguments are not JSON.
        ToolArgumentsParseFailed => "tool_arguments_parse_failed",
        /// The JSON does not fit its schema.
        SchemaMismatch => "schema_mismatch",
        /// The model called a tool that was not declared.
        UnknownTool => "unknown_tool",
        /// Two tool calls share an id.
        DuplicateToolCallId => "duplicate_tool_call_id",
        /// Tools were called although the tool choice forbade it.
        ToolChoiceNoneViolated => "tool_choice_none_violated",
        /// Tools were called although none was declared.
        UnexpectedToolCalls => "unexpected_tool_calls",
        /// The application's `soft_failure` hook called the reply useless.
        SoftFailureDetected => "soft_failure_detected",
        /// The adapter or the model cannot do what the call asks for.
        UnsupportedCapability => "unsupported_capability",
        /// Two declared tools share a name.
        DuplicateToolNames => "duplicate_tool_names",
        /// The tool choice names a tool that is not declared.
        UnknownToolChoice => "unknown_tool_choice",
        /// Two tool results answer the same call.
        DuplicateToolResultIds => "duplicate_tool_result_ids",
        /// A tool result answers no call.
        UnknownToolResultIds => "unknown_tool_result_ids",
        /// A tool call has no result.
        MissingToolResults => "missing_tool_results",
        /// The history breaks a rule.
        InvalidHistory => "invalid_history",
        /// A setting of the call is wrong.
        InvalidCall => "invalid_call",
        /// The configuration is wrong.
        InvalidConfig => "invalid_config",
        /// The limiter's queue is full.
        RateLimitQueueFull => "rate_limit_queue_full",
        /// The wait in the limiter's queue was too long.
        RateLimitQueueTimeout => "rate_limit_queue_timeout",
        /// The request could never fit the limiter's ceiling.
        RateLimitCapacityExceeded => "rate_limit_capacity_exceeded",
        /// A retry was wanted and the target's retry budget is spent.
        RetryBudgetExhausted => "retry_budget_exhausted",
        /// The circuit is open.
        CircuitCoolingDown => "circuit_cooling_down",
        /// The circuit is half-open and its trials are out.
        CircuitTrialInFlight => "circuit_trial_in_flight",
        /// A middleware returned an error or panicked.
        MiddlewareFailed => "middleware_failed",
        /// A middleware took too long.
        MiddlewareTimeout => "middleware_timeout",
        /// More than one target was tried, and all failed.
        FallbackExhausted => "fallback_exhausted",
    }
}

impl ErrorCode {
    /// The kind that the code belongs to.
    pub const fn kind(self) -> ErrorKind {
        self.row().0
    }

    /// Whether making the same call again would possibly succeed, unless the provider said otherwise.
    /// (`fallback_exhausted` depends on its targets; the table's answer for it is no.)
    pub const fn is_retryable(self) -> bool {
        self.row().1
    }

    /// Whether the failure is evidence about the target's health, unless an application's table says otherwise.
    /// (`retry_budget_exhausted` counts as the failure it stopped on; `deadline_exceeded` by hang evidence.)
    pub const fn counts_toward_breaker(self) -> bool {
        self.row().2
    }

    const fn row(self) -> (ErrorKind, bool, bool) {
        use ErrorKind as K;
        match self {
            Self::Authentication | Self::Authorization | Self::NotFound | Self::ProviderQuotaExhausted => {
                (K::Api, false, true)
            }
            Self::InvalidRequest
            | Self::ContextLengthExceeded
            | Self::ContentFiltered
            | Self::PayloadTooLarge
            | Self::UnexpectedStatus => (K::Api, false, false),
            Self::ProviderRateLimited
            | Self::Overloaded
            | Self::ServerError
            | Self::Conflict
            | Self::RequestTimeoutUpstream
            | Self::EmptyResponse => (K::Api, true, true),
            Self::ConnectionFailed | Self::ConnectionInterrupted => (K::Network, true, true),
            Self::StreamInterrupted => (K::Network, false, true),
            Self::RequestTimeout | Self::IdleTimeout => (K::Timeout, true, true),
            Self::DeadlineExceeded => (K::Timeout, false, false),
            Self::ResponseInvalid | Self::StreamFrameInvalid | Self::ResponseTooLarge => (K::Parse, false, true),
            Self::JsonParseFailed | Self::ToolArgumentsParseFailed => (K::Parse, false, false),
            Self::SchemaMismatch
            | Self::UnknownTool
            | Self::DuplicateToolCallId
            | Self::ToolChoiceNoneViolated
            | Self::UnexpectedToolCalls => (K::Validation, false, false),
            Self::SoftFailureDetected => (K::Validation, true, true),
            Self::UnsupportedCapability
            | Self::DuplicateToolNames
            | Self::UnknownToolChoice
            | Self::DuplicateToolResultIds
            | Self::UnknownToolResultIds
            | Self::MissingToolResults
            | Self::InvalidHistory
            | Self::InvalidCall
            | Self::InvalidConfig => (K::InvalidParams, false, false),
            Self::RateLimitQueueFull
            | Self::RateLimitQueueTimeout
            | Self::RateLimitCapacityExceeded
            | Self::RetryBudgetExhausted => (K::RateLimited, false, false),
            Self::CircuitCoolingDown | Self::CircuitTrialInFlight => (K::CircuitOpen, true, false),
            Self::MiddlewareFailed | Self::MiddlewareTimeout | Self::Other => (K::Unknown, false, false),
            Self::FallbackExhausted => (K::FallbackExhausted, false, false),
        }
    }
}
