//! Azure `OpenAI`.

use super::endpoint::Endpoint;
use super::env::{env_key, env_var};
use super::openai::{ChatApi, ModelFamily, TokenField, read_by};
use super::template::fill;
use super::{
    Auth, Capabilities, CredentialSource, EncodeContext, HttpRequest, Provider, Quirks, RulePack, settings_by,
};
use crate::LlmError;
use crate::chat::{EffortBudgets, Request};
use crate::record::{ConfigError, Problems};
use secrecy::SecretString;
use url::Url;

/// Where a resource is that is named and not located.
const RESOURCE: &str = "https://{resource}.openai.azure.com";
/// What every path begins with.
const PATH: &[&str] = &["/openai"];

/// Azure OpenAI: OpenAI's chat completions on deployments of your own.
///
/// The model of a target is the name of a **deployment**. What its model takes is known from that name where it begins
/// as the model's does (`gpt-5-mini-eu`), or from [`deployment`](Self::deployment); otherwise nothing is held back and the
/// token limit is sent as `max_completion_tokens`, which all of Azure's present models take.
///
/// Requests go to the v1 endpoint, which needs no version, or with [`api_version`](Self::api_version) to the path of the
/// deployment. The key is sent as `api-key`; a token of Microsoft Entra ID as a bearer token, from a
/// [`CredentialSource`].
///
/// Azure filters prompts and answers. A prompt that is filtered, and an answer of which nothing is left, are
/// `content_filtered`, with the categories that Azure names (`content_filter_results`).
///
/// Source: Microsoft's reference of Azure OpenAI (v1 and data plane) and OpenAI's Node SDK, as of 2026-11.
///
/// ```
/// # use steadfast::{Client, Target, provider::AzureOpenAi};
/// let azure = AzureOpenAi::resource("my-resource").api_key("...").deployment("prod", "gpt-5-mini");
/// let client = Client::builder(Target::new(azure, "prod")).build()?;
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct AzureOpenAi {
    chat: ChatApi,
    api_version: Option<String>,
    /// Deployments and their models.
    deployments: Vec<(String, String)>,
}

impl AzureOpenAi {
    /// The resource at this endpoint (`https://NAME.openai.azure.com`, `https://NAME.services.ai.azure.com`), with or
    /// without `/openai/v1` behind it. Needs an [`api_key`](Self::api_key) or a [`token_source`](Self::token_source).
    pub fn new(endpoint: &str) -> Self {
        let quirks = Quirks::openai().token_field(TokenField::MaxCompletionTokens).key_header("api-key");
        let missing = ConfigError::new(
            "api_key",
            "not given",
            "a key (`api_key(..)`) or a source of tokens (`token_source(..)`)",
        );
        let endpoint = Endpoint::new(base(endpoint), PATH).auth(Err(missing));
        let chat = ChatApi::new("azure_openai", endpoint, quirks, RulePack::azure());
        Self { chat, api_version: None, deployments: Vec::new() }
    }

    /// The resource of this name, at `https://NAME.openai.azure.com`.
    pub fn resource(name: &str) -> Self {
        match fill(RESOURCE, "resource", name) {
            Ok(endpoint) => Self::new(&endpoint),
            Err(fault) => {
                let this = Self::new("https://openai.azure.com");
                Self { chat: this.chat.at(|place| place.fault(fault)), ..this }
            }
        }
    }

    /// The resource at `AZURE_OPENAI_ENDPOINT`, or of the name in `AZURE_RESOURCE_NAME`, with the key of
    /// `AZURE_OPENAI_API_KEY` or `AZURE_API_KEY`. Where `OPENAI_API_VERSION` is set, the paths of deployments are used.
    ///
    /// # Errors
    ///
    /// When there is no endpoint or no key; the error names the variables.
    pub fn from_env() -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        let key = problems.take(env_key(&["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"]));
        let located = env_var("AZURE_OPENAI_ENDPOINT").map(|endpoint| Self::new(&endpoint));
        let this = located.or_else(|| env_var("AZURE_RESOURCE_NAME").map(|name| Self::resource(&name)));
        let variables = "AZURE_OPENAI_ENDPOINT or AZURE_RESOURCE_NAME";
        problems.require(this.is_some(), variables, "not set", "where the resource is, or its name");
        problems.finish()?;
        let this = this.zip(key).map(|(this, key)| this.api_key(key));
        let this = this.ok_or_else(|| ConfigError::new(variables, "not set", "where the resource is"))?;
        Ok(match env_var("OPENAI_API_VERSION") {
            Some(version) => this.api_version(&version),
            None => this,
        })
    }

    /// The key of the resource, sent as `api-key`.
    #[must_use]
    pub fn api_key(self, key: impl Into<SecretString>) -> Self {
        Self { chat: self.chat.api_key(key.into()), ..self }
    }

    /// Where tokens of Microsoft Entra ID come from (scope `https://cognitiveservices.azure.com/.default`), instead of a
    /// key. Sent as bearer tokens, kept until they expire.
    #[must_use]
    pub fn token_source(self, source: impl CredentialSource) -> Self {
        Self { chat: self.chat.at(|place| place.with_auth(Ok(Auth::bearer_from(source)))), ..self }
    }

    /// Uses the path of the deployment, with this version (`2024-10-21`), instead of the v1 endpoint.
    #[must_use]
    pub fn api_version(mut self, version: &str) -> Self {
        self.api_version = Some(version.to_owned());
        self
    }

    /// Says which model a deployment has, where its name does not: what the model is known to refuse is then an error before
    /// anything is sent, and the token limit has the field that the model takes.
    #[must_use]
    pub fn deployment(mut self, name: &str, model: &str) -> Self {
        self.deployments.push((name.to_owned(), model.to_owned()));
        self
    }

    /// What models take, instead of the built-in table: models change faster than releases.
    #[must_use]
    pub fn families(self, families: impl Into<Vec<ModelFamily>>) -> Self {
        Self { chat: self.chat.at(|place| place.with_families(families.into())), ..self }
    }

    /// What efforts of reasoning are worth in tokens, where a call gives a budget: the protocol knows efforts alone.
    #[must_use]
    pub fn effort_budgets(self, budgets: EffortBudgets) -> Self {
        Self { chat: self.chat.at(|place| place.with_budgets(budgets)), ..self }
    }

    /// What errors mean, instead of [`RulePack::azure`].
    #[must_use]
    pub fn rule_pack(self, rules: RulePack) -> Self {
        Self { chat: self.chat.at(|place| place.with_rules(rules)), ..self }
    }

    /// The model of a deployment, as far as it is known.
    fn model_of<'a>(&'a self, deployment: &'a str) -> &'a str {
        let told = self.deployments.iter().find(|(name, _)| name == deployment);
        told.map_or(deployment, |(_, model)| model)
    }

    /// Completes the URL.
    fn locate(&self, url: &mut Url, deployment: &str) {
        if let Ok(mut path) = url.path_segments_mut() {
            match &self.api_version {
                Some(_) => path.extend(["deployments", deployment]),
                None => path.push("v1"),
            };
            path.extend(["chat", "completions"]);
        }
        if let Some(version) = &self.api_version {
            url.query_pairs_mut().append_pair("api-version", version);
        }
    }
}

/// An endpoint without what is appended to it again.
fn base(endpoint: &str) -> &str {
    let endpoint = endpoint.trim().trim_end_matches('/');
    endpoint.strip_suffix("/v1").filter(|rest| rest.ends_with("/openai")).unwrap_or(endpoint)
}

impl Provider for AzureOpenAi {
    settings_by!(chat);
    read_by!(chat);

    fn capabilities(&self, deployment: &str) -> Capabilities {
        self.chat.capabilities(self.model_of(deployment))
    }

    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
        let mut http = self.chat.write(request, cx, self.chat.place.family(self.model_of(cx.model)))?;
        self.locate(&mut http.url, cx.model);
        Ok(http)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::chat::{FinishReason, Reply, Sampling};
    use crate::provider::{Classified, Credential, Head};
    use crate::record::Issues;
    use bytes::Bytes;
    use futures_core::future::BoxFuture;
    use http::{HeaderMap, StatusCode};
    use serde_json::Value;

    fn encode(azure: &AzureOpenAi, deployment: &str, request: &Request) -> Result<(String, Value), LlmError> {
        let http = azure.encode(request, &EncodeContext::new(deployment))?;
        Ok((http.url.into(), serde_json::from_slice(&http.body).unwrap()))
    }

    #[test]
    fn the_endpoint_is_v1_or_the_path_of_the_deployment() {
        for endpoint in
            ["https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1/", "https://r.openai.azure.com/openai"]
        {
            let azure = AzureOpenAi::new(endpoint);
            let url = encode(&azure, "prod", &Request::user("Hi")).unwrap().0;
            assert_eq!(url, "https://r.openai.azure.com/openai/v1/chat/completions", "{endpoint}");
            let url = encode(&azure.api_version("2024-10-21"), "my prod/1", &Request::user("Hi")).unwrap().0;
            let path = "/openai/deployments/my%20prod%2F1/chat/completions?api-version=2024-10-21";
            assert_eq!(url, format!("https://r.openai.azure.com{path}"), "{endpoint}");
        }
    }

    #[test]
    fn requests_are_written_as_in_the_fixtures() {
        let azure = AzureOpenAi::resource("r").api_key("k").deployment("prod", "gpt-4.1");
        let request = Request { sampling: Sampling::new().max_tokens(100), ..Request::user("Hi") };
        for (deployment, golden) in [
            ("anything", include_str!("../../fixtures/azure/unknown_deployment.request.json")),
            ("prod", include_str!("../../fixtures/azure/known_deployment.request.json")),
        ] {
            let body = encode(&azure, deployment, &request).unwrap().1;
            assert_eq!(body, serde_json::from_str::<Value>(golden).unwrap());
        }
    }

    #[test]
    fn what_the_model_of_a_deployment_refuses_is_refused() {
        let azure = AzureOpenAi::resource("r").api_key("k").deployment("prod", "gpt-5-mini");
        let request = Request { sampling: Sampling::new().temperature(0.5), ..Request::user("Hi") };
        for (deployment, refused) in [("prod", true), ("gpt-5-mini-eu", true), ("prod-2", false)] {
            assert_eq!(encode(&azure, deployment, &request).is_err(), refused, "{deployment}");
        }
    }

    fn read(body: &str) -> Result<Reply, Box<Classified>> {
        let azure = AzureOpenAi::resource("r");
        let head = Head::new(StatusCode::OK, HeaderMap::new());
        azure.decode(&head, &Bytes::copy_from_slice(body.as_bytes())).map_err(|f| azure.rules().classify(&f).into())
    }

    #[test]
    fn answers_are_read_as_in_the_fixtures() {
        let reply = read(include_str!("../../fixtures/azure/cut_by_filter.response.json")).unwrap();
        assert_eq!((reply.text(), reply.finish_reason()), ("The first half", FinishReason::ContentFilter));
        let seen = read(include_str!("../../fixtures/azure/all_filtered.response.json")).unwrap_err();
        assert_eq!(seen.code, Some(ErrorCode::ContentFiltered));
        let categories = vec!["jailbreak".to_owned(), "violence".to_owned()];
        assert_eq!(seen.issues, Some(Issues::ContentFilter { categories }));
    }

    #[test]
    fn it_wants_credentials_and_a_plain_name() {
        struct Entra;
        impl CredentialSource for Entra {
            fn fetch(&self) -> BoxFuture<'_, Result<Credential, LlmError>> {
                Box::pin(async { Ok(Credential::new("token")) })
            }
        }
        let azure = AzureOpenAi::resource("r");
        let error = azure.check().unwrap_err().to_string();
        assert!(error.contains("token_source"), "{error}");
        assert!(azure.clone().token_source(Entra).check().is_ok());
        let Auth::Header(header) = azure.api_key("k").auth().clone() else { unreachable!() };
        assert_eq!((header.name().as_str(), header.value().as_bytes()), ("api-key", &b"k"[..]));
        let error = AzureOpenAi::resource("evil.test/").api_key("k").check().unwrap_err().to_string();
        assert!(error.contains("resource"), "{error}");
    }
}
