//! Structured detail of a failure, typed per code.

use super::ErrorCode;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// Structured detail of a failure. Which variant an error carries depends on its [`ErrorCode`].
///
/// Serialized with a `type` field in `snake_case`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Issues {
    /// `content_filtered`: the categories that the provider named.
    ContentFilter {
        /// Names as the provider writes them, such as `violence`.
        categories: Vec<String>,
    },
    /// `provider_rate_limited`: what the provider said about the limit that was hit.
    RateLimit {
        /// What a full window admits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
        /// What is left in the window.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remaining: Option<u64>,
        /// Time until the window is full again.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            rename = "reset_ms",
            with = "super::millis::optional"
        )]
        reset: Option<Duration>,
    },
    /// `provider_quota_exhausted`: whose quota it is, and when it returns.
    Quota {
        /// What ran out.
        scope: QuotaScope,
        /// When the provider says that it returns.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "super::timestamp::optional")]
        resets_at: Option<SystemTime>,
    },
    /// `idle_timeout`: which silence was too long.
    Silence {
        /// Silence in bytes, or in chunks with content.
        silence: Silence,
    },
    /// `response_too_large`: the cap.
    TooLarge {
        /// The cap, in bytes.
        limit: u64,
    },
    /// `json_parse_failed`: where the text stops being JSON.
    Json {
        /// The beginning of the text.
        text_head: String,
        /// Line of the fault, from 1.
        line: u32,
        /// Column of the fault, from 1.
        column: u32,
        /// Whether the reply was cut by the token limit, so that a larger limit would cure it.
        cut_by_length: bool,
    },
    /// `schema_mismatch`: every place that does not fit.
    Schema {
        /// The faults.
        mismatches: Vec<SchemaMismatch>,
    },
    /// Tool codes: every problem found in one response.
    Tools {
        /// The problems, in the order of the calls.
        problems: Vec<ToolProblem>,
    },
    /// `unsupported_capability`: what was asked of which model.
    Capability {
        /// What was asked for, such as `tools`.
        capability: String,
        /// The model that cannot do it.
        model: String,
    },
    /// `duplicate_tool_names`: the names.
    ToolNames {
        /// The names that occur more than once.
        names: Vec<String>,
    },
    /// `unknown_tool_choice`: what was asked for, and what there is.
    ToolChoice {
        /// The tool that the choice names.
        requested: String,
        /// The tools that are declared.
        available: Vec<String>,
    },
    /// Codes about tool results: the turn, and the ids at fault.
    ToolResults {
        /// Index of the turn in the history, from 0.
        turn: usize,
        /// The ids.
        ids: Vec<String>,
    },
    /// `invalid_history` and `invalid_call`: the turn at fault, where one is.
    Turn {
        /// Index of the turn in the history, from 0.
        turn: usize,
    },
    /// Limiter codes: the limit that refused.
    Limit {
        /// What there was too little of: `requests`, `tokens` or `concurrency`.
        bucket: String,
        /// What the limiter is configured to hold of it.
        limit: u64,
    },
    /// Circuit codes: why the circuit is open.
    Circuit {
        /// Failures that opened it.
        failures: u32,
        /// The code of the last of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_code: Option<ErrorCode>,
        /// The HTTP status of the last of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_status: Option<u16>,
        /// When it opened.
        #[serde(with = "super::timestamp")]
        opened_at: SystemTime,
    },
    /// Middleware codes: which one.
    Middleware {
        /// Its name.
        middleware: String,
    },
    /// A detail that this version of the crate does not know, from a snapshot that a newer one wrote.
    #[serde(other)]
    Other,
}

/// What ran out when a provider refuses for quota.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QuotaScope {
    /// Money: a balance, a credit, a spending limit.
    Billing,
    /// A daily allowance.
    Day,
    /// A monthly allowance.
    Month,
    /// What the plan includes.
    Plan,
    /// The provider does not say, or says something newer than this version.
    #[serde(other)]
    Unknown,
}

/// Which silence of a stream was too long.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Silence {
    /// No byte came, not even a keep-alive (`idle_timeout`).
    Bytes,
    /// Bytes came, but no chunk with content (`stall_timeout`).
    Content,
    /// Something newer than this version.
    #[serde(other)]
    Other,
}

/// One place where a JSON value does not fit its schema.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SchemaMismatch {
    /// JSON pointer into the value; empty for the whole value.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

/// One problem with one tool call.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolProblem {
    /// The tool that was called.
    pub tool: String,
    /// The call's id.
    pub tool_call_id: String,
    /// What is wrong.
    pub code: ErrorCode,
    /// More about it, such as the arguments as sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
