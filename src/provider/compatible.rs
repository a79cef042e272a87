//! Any server that speaks OpenAI's chat completions.

use super::env::env_key;
use super::openai::{ChatApi, Quirks};
use super::{Auth, EncodeContext, Failure, Head, HttpRequest, Preset, Provider, RulePack};
use crate::LlmError;
use crate::chat::{Reply, Request};
use crate::record::ConfigError;
use bytes::Bytes;
use secrecy::SecretString;

/// Any server that speaks OpenAI's chat completions: a preset by name, or a base URL.
///
/// ```
/// # use steadfast::provider::OpenAiCompatible;
/// let groq = OpenAiCompatible::preset("groq")?.api_key("gsk_...");
/// let mine = OpenAiCompatible::new("http://localhost:8000/v1");
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenAiCompatible(ChatApi);

impl OpenAiCompatible {
    /// The server at `base_url`, without a key and without quirks. The path of the URL is kept: `/v1` is never assumed.
    /// A URL that does not parse is reported by `ClientBuilder::build`.
    pub fn new(base_url: impl AsRef<str>) -> Self {
        Self(ChatApi::new("openai_compatible", base_url.as_ref(), Quirks::none(), RulePack::openai()))
    }

    /// A known server, without its key; see [`Preset`] for the table. Reads no environment variable.
    ///
    /// # Errors
    ///
    /// When there is no preset of this name; the error lists those that there are.
    pub fn preset(name: &str) -> Result<Self, ConfigError> {
        let Some(preset) = Preset::named(name) else {
            let names: Vec<_> = Preset::ALL.iter().map(|preset| preset.name).collect();
            return Err(ConfigError::new("preset", format!("`{name}`"), format!("one of {}", names.join(", "))));
        };
        let api = ChatApi::new(preset.name, preset.base_url, preset.quirks.clone(), (preset.rules)());
        Ok(Self(if preset.needs_key { api.missing_key(preset.key_variables) } else { api }))
    }

    /// A known server, with the key of its environment variable.
    ///
    /// # Errors
    ///
    /// When there is no preset of this name, or it needs a key and its variable is not set; the error names it.
    pub fn from_env(name: &str) -> Result<Self, ConfigError> {
        let this = Self::preset(name)?;
        match Preset::named(name) {
            Some(preset) => match env_key(preset.key_variables) {
                Ok(key) => Ok(this.api_key(key)),
                Err(missing) if preset.needs_key => Err(missing),
                Err(_) => Ok(this),
            },
            None => Ok(this),
        }
    }

    /// The key, sent as a bearer token.
    #[must_use]
    pub fn api_key(self, key: impl Into<SecretString>) -> Self {
        Self(self.0.api_key(key.into()))
    }

    /// Another place than the preset's.
    #[must_use]
    pub fn base_url(self, url: &str) -> Self {
        Self(self.0.base_url(url))
    }

    /// Another name than the preset's, for errors and events.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self(self.0.named(name.into()))
    }

    /// A header for every request. Not for secrets: those go into [`api_key`](Self::api_key).
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        Self(self.0.header(name, value))
    }

    /// How the server differs from the protocol.
    #[must_use]
    pub fn quirks(self, quirks: Quirks) -> Self {
        Self(self.0.quirks(quirks))
    }

    /// What its errors mean.
    #[must_use]
    pub fn rule_pack(self, rules: RulePack) -> Self {
        Self(self.0.rules(rules))
    }
}

impl Provider for OpenAiCompatible {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.0.check()
    }

    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
        self.0.encode(request, cx)
    }

    fn decode<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        self.0.decode(head, body)
    }

    fn rules(&self) -> &RulePack {
        self.0.rule_pack()
    }

    fn auth(&self) -> &Auth {
        self.0.auth()
    }
}
