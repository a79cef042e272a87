//! Ollama's own chat protocol.

mod calls;
mod decode;
mod encode;
mod host;
mod messages;
mod stream;

use super::endpoint::{Endpoint, shown};
use super::env::env_var;
use super::{
    Auth, Capabilities, EncodeContext, Failure, Framing, Head, HttpRequest, Provider, RulePack, StreamDecoder,
};
use crate::LlmError;
use crate::chat::{EffortBudgets, Reply, Request};
use crate::record::ConfigError;
use bytes::Bytes;
use secrecy::SecretString;
use std::borrow::Cow;

/// Where Ollama is unless told otherwise.
const BASE_URL: &str = "http://localhost:11434";
/// What reasoning is marked with.
const PROTOCOL: &str = "ollama";
/// Models that cannot be kept from thinking.
const ALWAYS_THINKING: &[Cow<'static, str>] = &[Cow::Borrowed("gpt-oss")];
/// What follows the base URL.
const PATH: &[&str] = &["/api", "/chat"];

/// Ollama's own chat protocol (`/api/chat`), on this machine, on another, or in its cloud.
///
/// Unlike its endpoint for OpenAI's protocol (preset `ollama`), this one takes Ollama's own settings: fields of `options`
/// that a call gives in `extra` are merged with those that it sets by name.
///
/// The protocol has no word for forcing a tool, for one call at a time or for a tool that failed: the first two are
/// `unsupported_capability`, and of the last the model reads `Error:` before the words. Pictures are taken as bytes alone. An
/// effort of reasoning is a level, and so is a budget, by [`effort_budgets`](Self::effort_budgets). Whether a model can use
/// tools, see pictures or think is known to its server alone, which refuses what it cannot.
///
/// A model that is not in memory is loaded first, and nothing is sent until then: give local targets a timeout of
/// minutes. Ollama reports neither request ids nor limits.
///
/// Source: Ollama's API documentation and the source of its server, as of 2026-11.
///
/// ```
/// # use steadfast::{Call, Client, Target, provider::Ollama};
/// # use std::time::Duration;
/// # use serde_json::json;
/// let local = Target::new(Ollama::new(), "gemma3").timeout(Duration::from_secs(300));
/// let client = Client::builder(local).build()?;
/// let call = Call::user("Hello").extra(json!({"keep_alive": "10m", "options": {"num_ctx": 16_384}}));
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ollama {
    endpoint: Endpoint,
    budgets: EffortBudgets,
    always_thinking: Cow<'static, [Cow<'static, str>]>,
    rules: RulePack,
}

impl Ollama {
    /// Ollama on this machine, at its usual port 11434, without a key.
    pub fn new() -> Self {
        Self {
            endpoint: Endpoint::new(BASE_URL, PATH),
            budgets: EffortBudgets::default(),
            always_thinking: Cow::Borrowed(ALWAYS_THINKING),
            rules: RulePack::ollama(),
        }
    }

    /// Ollama where `OLLAMA_HOST` says, with the key of `OLLAMA_API_KEY`; both may be unset.
    ///
    /// `OLLAMA_HOST` is read as Ollama's own clients read it: a URL, or a bare host with or without a port (11434). The
    /// address on which a server listens everywhere (`0.0.0.0`) stands for this machine.
    ///
    /// # Errors
    ///
    /// When `OLLAMA_HOST` is none of these; the error names it.
    pub fn from_env() -> Result<Self, ConfigError> {
        let mut this = Self::new();
        if let Some(host) = env_var("OLLAMA_HOST") {
            let Some(url) = host::base_url(&host) else {
                return Err(ConfigError::new("OLLAMA_HOST", shown(&host), "a URL, a host, or a host and a port"));
            };
            this = this.base_url(&url);
        }
        Ok(match env_var("OLLAMA_API_KEY") {
            Some(key) => this.api_key(key),
            None => this,
        })
    }

    /// Another place than `http://localhost:11434`. Its path is kept, and `/api/chat` is appended, of which it may have
    /// the beginning already.
    #[must_use]
    pub fn base_url(mut self, url: &str) -> Self {
        self.endpoint = self.endpoint.base_url(url);
        self
    }

    /// The key for Ollama's cloud, or for a proxy before a server of one's own; sent as a bearer token.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.endpoint = self.endpoint.auth(Auth::bearer(key.into()));
        self
    }

    /// What efforts are worth in tokens: the protocol knows levels alone. Default: [`EffortBudgets`]'s own.
    #[must_use]
    pub fn effort_budgets(mut self, budgets: EffortBudgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// How the names of models begin that cannot be kept from thinking, so that a call that asks for it is refused. Default:
    /// `gpt-oss`.
    #[must_use]
    pub fn always_thinking(mut self, stems: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.always_thinking = stems.into_iter().map(|stem| Cow::Owned(stem.into())).collect();
        self
    }

    /// What errors mean, instead of [`RulePack::ollama`].
    #[must_use]
    pub fn rule_pack(mut self, rules: RulePack) -> Self {
        self.rules = rules;
        self
    }
}

impl Default for Ollama {
    fn default() -> Self {
        Self::new()
    }
}

impl Provider for Ollama {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.endpoint.check()
    }

    fn capabilities(&self, _: &str) -> Capabilities {
        Capabilities {
            audio: false,
            documents: false,
            image_urls: false,
            parallel_tool_calls: false,
            tool_choice: false,
            ..Capabilities::all()
        }
    }

    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
        encode::encode(self, request, cx)
    }

    fn decode<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        decode::decode(head, body)
    }

    fn framing(&self) -> Framing {
        Framing::Ndjson
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
