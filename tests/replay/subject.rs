//! What is under test, as the runner sees it: something that makes clients, and a client that makes calls.

use super::case::Config;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

/// The library under test. It knows nothing of cases: not their ids, not what they expect.
pub(crate) trait Subject: Send + Sync {
    type Client: Client;

    /// Makes a client as the settings say.
    fn configure(&self, setup: &Setup) -> Result<Self::Client, NotConfigured>;
}

/// A client made for one case. Dropped at its end, with all it holds.
pub(crate) trait Client: Send + Sync + 'static {
    /// Makes one call. Several may run at once.
    fn call(&self, call: CallSpec) -> impl Future<Output = Outcome> + Send;
}

/// Why there is no client.
#[derive(Clone, Debug)]
pub(crate) enum NotConfigured {
    /// The library does not have this: the case is left to do.
    Unsupported(String),
    /// It has it, and refused or failed: the case fails.
    Failed(String),
}

impl NotConfigured {
    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported(what.into())
    }
}

/// The client that a case asks for.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// `openai_chat`, `azure_chat`, `anthropic_messages`, `gemini_generate`, `bedrock_converse`, `ollama_chat`.
    pub(crate) api: String,
    /// A compatible server: `groq`, `openrouter`, ….
    pub(crate) preset: Option<String>,
    /// The chain, primary first; each with a breaker, a limiter and a retry policy of its own.
    pub(crate) targets: Vec<TargetSetup>,
    /// Complete: what the case does not name has its default. `targets` and the secrets are here already digested.
    pub(crate) config: Config,
    pub(crate) api_key: String,
    /// For Bedrock.
    pub(crate) aws: Option<Aws>,
    /// Whether the calls will be streams, declare tools, ask for JSON.
    pub(crate) stream: bool,
    pub(crate) tools: bool,
    pub(crate) json: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct TargetSetup {
    /// Without a path: what the API wants (`/v1`) is to be added. It may hold user info.
    pub(crate) base_url: String,
    pub(crate) model: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Aws {
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: String,
    pub(crate) region: String,
    pub(crate) session_token: Option<String>,
}

/// One call to make.
#[derive(Clone, Debug)]
pub(crate) struct CallSpec {
    pub(crate) prompt: String,
    pub(crate) stream: bool,
    pub(crate) json: bool,
    pub(crate) tools: Vec<ToolSpec>,
    /// Cancel so long after the start; zero: cancelled before it starts, so that nothing may be sent.
    pub(crate) cancel_after: Option<Duration>,
    /// Let go of the stream when the first text has arrived.
    pub(crate) drop_after_first_chunk: bool,
    /// What the limiter is to take for the size of the call.
    pub(crate) estimated_tokens: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct ToolSpec {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Value,
}

impl ToolSpec {
    /// The tools that a case with tools declares.
    pub(crate) fn all() -> Vec<Self> {
        let tool = |name: &str| Self {
            name: name.to_owned(),
            description: name.replace('_', " "),
            parameters: json!({"type": "object", "additionalProperties": true}),
        };
        ["get_weather", "get_time", "take_screenshot", "write_file", "web_search"].map(tool).into()
    }
}

/// What came of a call. Serialized, it is the answer to `call` in the protocol of the judge.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Outcome {
    pub(crate) ok: bool,
    /// The call was let go as asked: there is nothing to report.
    pub(crate) dropped: bool,
    /// The library does not have what the call needs.
    pub(crate) unsupported: Option<String>,
    /// The text of the reply.
    pub(crate) text: Option<String>,
    /// In a stream: the texts that reached the caller, joined, whether or not it failed.
    pub(crate) delivered_text: String,
    /// The text that the error kept.
    pub(crate) partial_text: Option<String>,
    pub(crate) finish_reason: Option<String>,
    /// Of a failed call: the complete ones.
    pub(crate) tool_calls: Vec<ToolCall>,
    pub(crate) usage: Option<Usage>,
    pub(crate) reasoning: Option<String>,
    pub(crate) reasoning_signature: Option<String>,
    pub(crate) refusal: Option<String>,
    pub(crate) error: Option<Failure>,
}

impl Outcome {
    pub(crate) fn dropped() -> Self {
        Self { dropped: true, ..Self::default() }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self { unsupported: Some(what.into()), ..Self::default() }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Usage {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) total: Option<u64>,
    pub(crate) cached_input: Option<u64>,
    pub(crate) cache_write: Option<u64>,
    pub(crate) reasoning: Option<u64>,
}

/// An error, with all that can be printed of it.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Failure {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) code: Option<String>,
    pub(crate) status: Option<u16>,
    pub(crate) retryable: bool,
    pub(crate) retry_after_ms: Option<u64>,
    pub(crate) provider_message: Option<String>,
    /// Display.
    pub(crate) message: String,
    /// Debug, plain and alternate, and Display and Debug of every source.
    pub(crate) debug: String,
    /// The error as JSON.
    pub(crate) json: Value,
    /// One entry for each attempt made, the last included.
    pub(crate) attempts: Vec<Reason>,
    /// One entry for each target tried.
    pub(crate) targets: Vec<Reason>,
}

/// Why an attempt or a target failed.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Reason {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) code: Option<String>,
    pub(crate) status: Option<u16>,
}
