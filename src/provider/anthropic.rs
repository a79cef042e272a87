//! Anthropic's messages, and the servers that speak the same.

mod answer;
mod counts;
mod decode;
mod encode;
mod family;
mod messages;
mod stream;
pub(super) mod thinking;
mod tools;

#[cfg(feature = "bedrock")]
pub(super) use family::KNOWN;
pub(super) use family::family;
pub use family::{AnthropicFamily, AnthropicForcedTools, AnthropicSampling, AnthropicThinking};

use super::endpoint::Endpoint;
use super::env::{env_key, env_var};
use super::{Auth, Capabilities, EncodeContext, Failure, Head, HttpRequest, Provider, RulePack, StreamDecoder};
use crate::LlmError;
use crate::chat::{EffortBudgets, Reply, Request};
use crate::record::ConfigError;
use bytes::Bytes;
use http::HeaderName;
use secrecy::SecretString;
use std::borrow::Cow;

/// Where Anthropic is.
const BASE_URL: &str = "https://api.anthropic.com";
/// What follows the base URL.
const PATH: &[&str] = &["/v1", "/messages"];
/// What blocks of reasoning are marked with.
const PROTOCOL: &str = "anthropic";
/// The tool that stands for the form of the answer, where a model has no output format: its arguments are the answer.
const OUTPUT_TOOL: &str = "answer_as_json";
/// The same for an answer that may be no object, which arguments have to be: their field [`WRAPPED`] is the answer.
const WRAPPED_OUTPUT_TOOL: &str = "answer_as_json_value";
/// The field of [`WRAPPED_OUTPUT_TOOL`] that is the answer.
const WRAPPED: &str = "value";
/// The version of the protocol. A newer one, `2026-10-21`, takes no sampling settings at all, also from models that have
/// them, and few of the servers that speak this protocol know it.
const VERSION: &str = "2023-06-01";

/// Anthropic's messages.
///
/// - `max_tokens` is required by the protocol: where a call sets none, **4,096** is sent, and beside a budget of reasoning so
///   much more than that.
/// - `temperature` goes from 0 to 1. Which models take it, and `top_p`, is data ([`AnthropicFamily`]): what a known model
///   refuses is an error before anything is sent, an unknown model is sent whatever was set. A seed does not exist.
/// - Turns of the same role in a row become one message with several blocks, since the protocol wants roles to alternate;
///   results of tools come first in it. Ids of calls that other providers gave are written in the letters that it takes.
/// - Reasoning is asked for in the form that the family knows: an effort, or a budget of tokens, converted by
///   [`effort_budgets`](Self::effort_budgets). A budget that stands for an effort is at most half of `max_tokens`. What is
///   known not to go with reasoning (sampling settings, a forced tool) is an error before anything is sent.
/// - Blocks of reasoning, signed or redacted, go back in their places as they were, to models that take them. A turn that
///   called tools without any (another provider's) is continued without a budget, since Anthropic would refuse it.
/// - An answer of a JSON schema is asked for by the output format. Where the family has none, or it has no words for the
///   schema, and for JSON of any shape, a forced tool stands for it: that needs a call without tools of its own and without
///   reasoning, and is `unsupported_capability` otherwise. The reply has text in either case.
/// - In `extra`, fields of `thinking` and `output_config` join those that the call sets by name.
/// - Usage is reported with the cache within the input, although Anthropic counts it beside.
///
/// Source: Anthropic's API reference ("Messages", "Errors", "Versions") and its TypeScript SDK, as of 2026-11.
///
/// ```
/// # use steadfast::{Client, Target, provider::Anthropic};
/// let client = Client::builder(Target::new(Anthropic::new("sk-ant-..."), "claude-sonnet-5")).build()?;
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Anthropic {
    endpoint: Endpoint,
    version: String,
    families: Cow<'static, [AnthropicFamily]>,
    budgets: EffortBudgets,
    rules: RulePack,
}

impl Anthropic {
    /// Anthropic with this key, sent as `x-api-key`.
    pub fn new(api_key: impl Into<SecretString>) -> Self {
        let auth = Auth::header(HeaderName::from_static("x-api-key"), api_key.into());
        Self {
            endpoint: Endpoint::new(BASE_URL, PATH).auth(auth).header("anthropic-version", VERSION),
            version: VERSION.to_owned(),
            families: Cow::Borrowed(family::KNOWN),
            budgets: EffortBudgets::default(),
            rules: RulePack::anthropic(),
        }
    }

    /// Anthropic with the key of `ANTHROPIC_API_KEY`, and at `ANTHROPIC_BASE_URL` where that is set.
    ///
    /// # Errors
    ///
    /// When `ANTHROPIC_API_KEY` is not set; the error names it.
    pub fn from_env() -> Result<Self, ConfigError> {
        let this = Self::new(env_key(&["ANTHROPIC_API_KEY"])?);
        Ok(match env_var("ANTHROPIC_BASE_URL") {
            Some(url) => this.base_url(&url),
            None => this,
        })
    }

    /// Another place than `https://api.anthropic.com`: a proxy, or a server that speaks the same protocol. Its path is
    /// kept, and `/v1/messages` is appended, of which it may have the beginning already.
    #[must_use]
    pub fn base_url(mut self, url: &str) -> Self {
        self.endpoint = self.endpoint.base_url(url);
        self
    }

    /// Another version of the protocol than `2023-06-01` (`anthropic-version`). From `2026-10-21` on, sampling settings
    /// are refused whatever the model.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.endpoint = self.endpoint.header("anthropic-version", version);
        version.clone_into(&mut self.version);
        self
    }

    /// Features that are not yet in the version (`anthropic-beta`), instead of those set before.
    ///
    /// ```
    /// # use steadfast::provider::Anthropic;
    /// let anthropic = Anthropic::new("sk-ant-...").beta(["context-management-2025-06-27"]);
    /// ```
    #[must_use]
    pub fn beta<'a>(mut self, features: impl IntoIterator<Item = &'a str>) -> Self {
        let list = features.into_iter().collect::<Vec<_>>().join(",");
        self.endpoint = self.endpoint.header("anthropic-beta", &list);
        self
    }

    /// What models take, instead of the built-in table: models change faster than releases.
    #[must_use]
    pub fn families(mut self, families: impl Into<Vec<AnthropicFamily>>) -> Self {
        self.families = Cow::Owned(families.into());
        self
    }

    /// What efforts are worth in tokens, for models that know only one of the two. Default: [`EffortBudgets`]'s own.
    #[must_use]
    pub fn effort_budgets(mut self, budgets: EffortBudgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// What errors mean, instead of [`RulePack::anthropic`].
    #[must_use]
    pub fn rule_pack(mut self, rules: RulePack) -> Self {
        self.rules = rules;
        self
    }
}

impl Provider for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.endpoint.check()
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        let family = family(&self.families, model);
        let forced = family.is_none_or(|family| family.forced_tools != AnthropicForcedTools::Never);
        Capabilities {
            audio: false,
            json: forced,
            schema: forced || family.is_none_or(|family| family.output_format),
            tool_choice: forced,
            ..Capabilities::all()
        }
    }

    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
        encode::encode(self, request, cx)
    }

    fn decode<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        decode::decode(head, body)
    }

    fn stream_decoder(&self, _: &EncodeContext<'_>) -> Option<Box<dyn StreamDecoder>> {
        Some(Box::<stream::Decoder>::default())
    }

    fn rules(&self) -> &RulePack {
        &self.rules
    }

    fn auth(&self) -> &Auth {
        self.endpoint.credentials()
    }
}
