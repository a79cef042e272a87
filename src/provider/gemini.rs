//! Google's Gemini: `generateContent`, on the Developer API and on Vertex AI.

mod answer;
mod decode;
mod encode;
mod family;
mod place;
mod signature;
#[cfg(test)]
mod tests;

pub use family::{GeminiFamily, GeminiLevel, GeminiThinking, JsonBesideTools};

use super::endpoint::Endpoint;
use super::env::env_key;
use super::{
    Auth, Capabilities, CredentialSource, EncodeContext, Failure, Head, HttpRequest, Provider, RulePack, StreamDecoder,
};
use crate::LlmError;
use crate::chat::{EffortBudgets, Reply, Request};
use crate::record::{ConfigError, Problems};
use bytes::Bytes;
use http::HeaderName;
use place::Place;
use secrecy::SecretString;
use std::borrow::Cow;

/// The header that the key goes into.
const KEY_HEADER: HeaderName = HeaderName::from_static("x-goog-api-key");

/// Where Google's own SDK and others look for a key, in the SDK's order.
const KEY_VARIABLES: [&str; 3] = ["GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"];

/// Google's Gemini (`generateContent`): the Developer API with a key, or Vertex AI with tokens.
///
/// The key goes into the header `x-goog-api-key` and never into a URL, although Google takes both. What a model refuses is
/// data ([`GeminiFamily`]): a setting that a known model refuses is an error before anything is sent; an unknown model is
/// sent whatever was set. A model is named by its id, or as the API lists it (`models/…`, `tunedModels/…`; on Vertex also
/// `endpoints/…`).
///
/// Fields of the API that have no setting here go through `Call::extra`; what is in its `generationConfig` is merged with
/// what is set otherwise.
///
/// ```
/// # use steadfast::{Client, Target, provider::Gemini};
/// let client = Client::builder(Target::new(Gemini::new("AI..."), "gemini-4-argon")).build()?;
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gemini {
    name: &'static str,
    endpoint: Endpoint,
    place: Result<Place, ConfigError>,
    /// In place of the place's own, and of the one that the base URL ends with.
    version: Option<String>,
    families: Cow<'static, [GeminiFamily]>,
    effort_budgets: EffortBudgets,
    include_thoughts: bool,
    rules: RulePack,
}

impl Gemini {
    /// The Developer API with this key, in version `v1beta`: all that is in `v1`, and preview models and fields.
    pub fn new(api_key: impl Into<SecretString>) -> Self {
        let place = Place::Developer;
        let endpoint = Endpoint::new(&place.base_url(), &[]).auth(Auth::header(KEY_HEADER, api_key.into()));
        Self::at("gemini", endpoint, Ok(place), &family::DEVELOPER)
    }

    /// The Developer API with the key of `GOOGLE_API_KEY`, else `GEMINI_API_KEY`, else `GOOGLE_GENERATIVE_AI_API_KEY`.
    /// Google's own SDK prefers the first when both are set.
    ///
    /// # Errors
    ///
    /// When none of them is set; the error names them.
    pub fn from_env() -> Result<Self, ConfigError> {
        env_key(&KEY_VARIABLES).map(Self::new)
    }

    /// Vertex AI, in version `v1`: the models of this project at this location, with OAuth tokens from this source.
    ///
    /// The location is a region (`europe-west4`), `global`, or a multi-region (`eu`, `us`). A project or a location that
    /// cannot be one is reported by `ClientBuilder::build`.
    ///
    /// ```
    /// use futures_core::future::BoxFuture;
    /// use std::time::Duration;
    /// use steadfast::provider::{Credential, CredentialSource, Gemini};
    /// use steadfast::{Client, LlmError, Target};
    ///
    /// struct MetadataServer;
    ///
    /// impl CredentialSource for MetadataServer {
    ///     fn fetch(&self) -> BoxFuture<'_, Result<Credential, LlmError>> {
    ///         Box::pin(async { Ok(Credential::new("ya29...").expires_in(Duration::from_secs(3600))) })
    ///     }
    /// }
    ///
    /// let vertex = Gemini::vertex("my-project", "europe-west4", MetadataServer);
    /// let client = Client::builder(Target::new(vertex, "gemini-4-argon")).build()?;
    /// # Ok::<(), steadfast::ConfigError>(())
    /// ```
    pub fn vertex(project: &str, location: &str, source: impl CredentialSource) -> Self {
        let place = Place::vertex(project, location);
        // Without a place nothing is ever sent; any URL will do.
        let base_url = place.as_ref().unwrap_or(&Place::Developer).base_url();
        let endpoint = Endpoint::new(&base_url, &[]).auth(Ok(Auth::bearer_from(source)));
        Self::at("vertex", endpoint, place, &family::VERTEX)
    }

    fn at(
        name: &'static str,
        endpoint: Endpoint,
        place: Result<Place, ConfigError>,
        families: &'static [GeminiFamily],
    ) -> Self {
        Self {
            name,
            endpoint,
            place,
            version: None,
            families: Cow::Borrowed(families),
            effort_budgets: EffortBudgets::default(),
            include_thoughts: false,
            rules: RulePack::gemini(),
        }
    }

    /// Another host than Google's, such as a proxy. Its path is kept; where that does not end with a version, the version
    /// is added.
    #[must_use]
    pub fn base_url(self, url: &str) -> Self {
        Self { endpoint: self.endpoint.base_url(url), ..self }
    }

    /// Another version of the API, such as `v1` or `v1alpha`.
    #[must_use]
    pub fn api_version(self, version: &str) -> Self {
        Self { version: Some(version.to_owned()), ..self }
    }

    /// The project that quota is taken from (`x-goog-user-project`), where it is not that of the tokens.
    #[must_use]
    pub fn quota_project(self, project: &str) -> Self {
        Self { endpoint: self.endpoint.header("x-goog-user-project", project), ..self }
    }

    /// What models refuse, instead of the built-in table: models change faster than releases.
    #[must_use]
    pub fn families(self, families: impl Into<Vec<GeminiFamily>>) -> Self {
        Self { families: Cow::Owned(families.into()), ..self }
    }

    /// What each effort is worth in tokens, instead of the usual table.
    #[must_use]
    pub fn effort_budgets(self, budgets: EffortBudgets) -> Self {
        Self { effort_budgets: budgets, ..self }
    }

    /// Whether models that think are asked for summaries of what they think ([`Reply::reasoning`]). Default: no.
    #[must_use]
    pub fn include_thoughts(self, include: bool) -> Self {
        Self { include_thoughts: include, ..self }
    }

    /// What errors mean, instead of [`RulePack::gemini`].
    #[must_use]
    pub fn rule_pack(self, rules: RulePack) -> Self {
        Self { rules, ..self }
    }
}

impl Provider for Gemini {
    fn name(&self) -> &str {
        self.name
    }

    fn check(&self) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        problems.take(self.endpoint.check());
        problems.take(self.place.as_ref().map_err(Clone::clone));
        if let Some(version) = &self.version {
            problems.require(
                place::is_version(version),
                "api_version",
                format_args!("`{version}`"),
                "a version such as `v1` or `v1beta`",
            );
        }
        problems.finish()
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        let family = family::family(&self.families, model);
        Capabilities {
            json: family.json,
            schema: family.json,
            reasoning: family.thinking != GeminiThinking::Never,
            tools: family.tools,
            tool_choice: family.tools,
            // There is no switch, but they are on.
            parallel_tool_calls: family.tools,
            ..Capabilities::all()
        }
    }

    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
        encode::encode(self, request, cx)
    }

    fn decode<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        decode::decode(self.name, head, body)
    }

    fn stream_decoder(&self, _: &EncodeContext<'_>) -> Option<Box<dyn StreamDecoder>> {
        Some(Box::new(decode::Reader::new(self.name)))
    }

    fn rules(&self) -> &RulePack {
        &self.rules
    }

    fn auth(&self) -> &Auth {
        self.endpoint.credentials()
    }
}
