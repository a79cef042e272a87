//! OpenAI's chat completions, and the many servers that speak nearly the same.

mod api;
mod decode;
mod encode;
mod family;
mod quirks;

pub(super) use api::ChatApi;
pub use family::{ModelFamily, SamplingRule};
pub use quirks::{Quirks, TokenField};

use super::env::{env_key, env_var};
use super::{Auth, EncodeContext, Failure, Head, HttpRequest, Provider, RulePack};
use crate::LlmError;
use crate::chat::{Reply, Request};
use crate::record::ConfigError;
use bytes::Bytes;
use secrecy::SecretString;

/// Where OpenAI is.
const BASE_URL: &str = "https://api.openai.com/v1";

/// OpenAI's chat completions.
///
/// Which token-limit field and which sampling settings a model takes is data ([`ModelFamily`]): a setting that a known
/// model refuses is an error before anything is sent; an unknown model is sent whatever was set.
///
/// ```
/// # use steadfast::{Client, Target, provider::OpenAi};
/// let client = Client::builder(Target::new(OpenAi::new("sk-..."), "gpt-5-mini")).build()?;
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenAi(ChatApi);

impl OpenAi {
    /// OpenAI with this key.
    pub fn new(api_key: impl Into<SecretString>) -> Self {
        Self(ChatApi::new("openai", BASE_URL, Quirks::openai(), RulePack::openai()).api_key(api_key.into()))
    }

    /// OpenAI with the key of `OPENAI_API_KEY`, and with `OPENAI_BASE_URL`, `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID` where
    /// they are set.
    ///
    /// # Errors
    ///
    /// When `OPENAI_API_KEY` is not set; the error names it.
    pub fn from_env() -> Result<Self, ConfigError> {
        let mut this = Self::new(env_key(&["OPENAI_API_KEY"])?);
        if let Some(url) = env_var("OPENAI_BASE_URL") {
            this = this.base_url(&url);
        }
        if let Some(organization) = env_var("OPENAI_ORG_ID") {
            this = this.organization(&organization);
        }
        if let Some(project) = env_var("OPENAI_PROJECT_ID") {
            this = this.project(&project);
        }
        Ok(this)
    }

    /// Another place than `https://api.openai.com/v1`, such as a residency host or a proxy. Its path is kept.
    #[must_use]
    pub fn base_url(self, url: &str) -> Self {
        Self(self.0.base_url(url))
    }

    /// The organization to bill (`OpenAI-Organization`).
    #[must_use]
    pub fn organization(self, organization: &str) -> Self {
        Self(self.0.header("openai-organization", organization))
    }

    /// The project to bill (`OpenAI-Project`).
    #[must_use]
    pub fn project(self, project: &str) -> Self {
        Self(self.0.header("openai-project", project))
    }

    /// What models take, instead of the built-in table: models change faster than releases.
    #[must_use]
    pub fn families(self, families: impl Into<Vec<ModelFamily>>) -> Self {
        Self(self.0.families(families.into()))
    }

    /// What errors mean, instead of [`RulePack::openai`].
    #[must_use]
    pub fn rule_pack(self, rules: RulePack) -> Self {
        Self(self.0.rules(rules))
    }
}

impl Provider for OpenAi {
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
