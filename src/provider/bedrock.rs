//! Amazon Bedrock: Converse, for the models of every vendor that it serves.

mod decode;
mod encode;
mod family;
mod messages;
mod reasoning;
mod sign;
mod stream;
mod tools;

pub use family::BedrockFamily;

use super::anthropic::{self, AnthropicFamily};
use super::endpoint::Endpoint;
use super::env::env_var;
use super::{
    Auth, Capabilities, EncodeContext, Failure, Framing, Head, HttpRequest, Provider, RulePack, StreamDecoder,
};
use crate::LlmError;
use crate::chat::{Reply, Request};
use crate::record::{ConfigError, Problems};
use aws_credential_types::provider::ProvideCredentials;
use bytes::Bytes;
use secrecy::SecretString;
use sign::{SigV4, Source};
use std::borrow::Cow;
use std::sync::Arc;

/// Where AWS's own SDKs look for a Bedrock API key.
const BEARER_VARIABLE: &str = "AWS_BEARER_TOKEN_BEDROCK";
/// Where they look for the region.
const REGION_VARIABLES: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];
/// Where they look for another endpoint.
const ENDPOINT_VARIABLES: [&str; 2] = ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL"];

/// Amazon Bedrock (`Converse`), with AWS credentials or with a Bedrock API key.
///
/// A model is named by its id (`amazon.nova-pro-v1:0`), by an inference profile (`eu.anthropic.claude-sonnet-4-6`), or by
/// an ARN.
///
/// Requests are signed (`SigV4`) for each attempt anew, with credentials that are kept until shortly before they expire, and
/// fetched again once when AWS says that they have expired. A call that brings its own `authorization` header is not signed.
///
/// - `temperature` and `top_p` go from 0 to 1; a seed does not exist. What a model refuses is data ([`BedrockFamily`], and
///   [`AnthropicFamily`] for Claude): what a known model refuses is an error before anything is sent, an unknown one is sent
///   whatever was set. The id of an application inference profile does not tell its model.
/// - Turns of the same role in a row become one message with several blocks, since Converse wants roles to alternate.
/// - Usage is reported with the cache within the input, although Bedrock counts it beside. Answers name no model.
/// - Fields of Converse that have no setting here go through `Call::extra`, a model's own ones in its
///   `additionalModelRequestFields`; that object and `inferenceConfig` are merged with what is set otherwise.
///
/// Source: the service model of `bedrock-runtime` in botocore, and Amazon's user guide, as of 2026-11.
///
/// ```
/// # use steadfast::{Client, Target, provider::Bedrock};
/// let client = Client::builder(Target::new(Bedrock::new("eu-central-1"), "amazon.nova-pro-v1:0")).build()?;
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bedrock {
    endpoint: Endpoint,
    region: Result<(), ConfigError>,
    families: Cow<'static, [BedrockFamily]>,
    claude: Cow<'static, [AnthropicFamily]>,
    rules: RulePack,
}

impl Bedrock {
    /// Bedrock in this region, with credentials from AWS's default chain: environment, profiles, web identity (EKS), the
    /// metadata of ECS and EC2. Nothing is looked up before the first call.
    ///
    /// Profiles that use SSO or another process are left to features of `aws-config` (`sso`, `credentials-process`): a
    /// dependency of your own on it, with these features, turns them on.
    pub fn new(region: &str) -> Self {
        Self::signed(region, Ok(Source::chain(region)))
    }

    /// Bedrock in this region, with fixed credentials. The session token is that of temporary ones.
    ///
    /// ```
    /// # use steadfast::provider::Bedrock;
    /// let bedrock = Bedrock::with_credentials("us-east-1", "AKIA...", "secret", None);
    /// ```
    #[allow(clippy::needless_pass_by_value)] // a secret is handed over
    pub fn with_credentials(
        region: &str,
        access_key_id: &str,
        secret_access_key: impl Into<SecretString>,
        session_token: Option<SecretString>,
    ) -> Self {
        let source = Source::fixed(access_key_id, &secret_access_key.into(), session_token.as_ref());
        Self::signed(region, source)
    }

    /// Bedrock in this region, with credentials from a provider of AWS's SDK: an assumed role, another profile.
    pub fn with_provider(region: &str, provider: impl ProvideCredentials + 'static) -> Self {
        Self::signed(region, Ok(Source::provider(provider)))
    }

    /// Bedrock in this region, with a Bedrock API key, sent as a bearer token.
    pub fn bearer(region: &str, api_key: impl Into<SecretString>) -> Self {
        Self::at(region, Auth::bearer(api_key.into()))
    }

    /// Bedrock in the region of `AWS_REGION`, else `AWS_DEFAULT_REGION`; with the API key of `AWS_BEARER_TOKEN_BEDROCK`
    /// where that is set, otherwise with AWS's default chain; and at `AWS_ENDPOINT_URL_BEDROCK_RUNTIME`, else
    /// `AWS_ENDPOINT_URL`, where one is set. AWS's own SDKs do the same.
    ///
    /// # Errors
    ///
    /// When neither variable names a region; the error names both. The region of a profile is not looked up.
    pub fn from_env() -> Result<Self, ConfigError> {
        let first = |names: &[&str]| names.iter().find_map(|name| env_var(name));
        let region = first(&REGION_VARIABLES).ok_or_else(|| {
            ConfigError::new(REGION_VARIABLES.join(" or "), "not set", "a region such as `us-east-1`")
        })?;
        let this = match env_var(BEARER_VARIABLE) {
            Some(key) => Self::bearer(&region, key),
            None => Self::new(&region),
        };
        Ok(match first(&ENDPOINT_VARIABLES) {
            Some(url) => this.base_url(&url),
            None => this,
        })
    }

    fn signed(region: &str, source: Result<Source, ConfigError>) -> Self {
        Self::at(region, source.map(|source| Auth::Custom(Arc::new(SigV4::new(region, source)))))
    }

    fn at(region: &str, auth: Result<Auth, ConfigError>) -> Self {
        let known = check_region(region);
        // Without a region nothing is ever sent; any URL will do.
        let host = if known.is_ok() { host(region) } else { host("us-east-1") };
        Self {
            endpoint: Endpoint::new(&host, &[]).auth(auth),
            region: known,
            families: Cow::Borrowed(family::KNOWN),
            claude: Cow::Borrowed(anthropic::KNOWN),
            rules: RulePack::bedrock(),
        }
    }

    /// Another place than `https://bedrock-runtime.{region}.amazonaws.com`: a VPC endpoint, FIPS or dual stack, a proxy. Its
    /// path is kept, and `/model/{id}/converse` is appended. Requests are still signed for the region.
    #[must_use]
    pub fn base_url(self, url: &str) -> Self {
        Self { endpoint: self.endpoint.base_url(url), ..self }
    }

    /// What models refuse, instead of the built-in table: models change faster than releases.
    #[must_use]
    pub fn families(self, families: impl Into<Vec<BedrockFamily>>) -> Self {
        Self { families: Cow::Owned(families.into()), ..self }
    }

    /// What the models of Anthropic take, instead of the table of [`Anthropic`](super::Anthropic).
    #[must_use]
    pub fn claude_families(self, families: impl Into<Vec<AnthropicFamily>>) -> Self {
        Self { claude: Cow::Owned(families.into()), ..self }
    }

    /// What errors mean, instead of [`RulePack::bedrock`].
    #[must_use]
    pub fn rule_pack(self, rules: RulePack) -> Self {
        Self { rules, ..self }
    }
}

/// The region is a part of the host, which gets the key.
fn check_region(region: &str) -> Result<(), ConfigError> {
    let is_name = region.starts_with(|c: char| c.is_ascii_lowercase())
        && region.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if is_name {
        Ok(())
    } else {
        Err(ConfigError::new("region", format!("`{region}`"), "a region such as `us-east-1`"))
    }
}

fn host(region: &str) -> String {
    let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
    format!("https://bedrock-runtime.{region}.amazonaws.com{suffix}")
}

impl Provider for Bedrock {
    fn name(&self) -> &'static str {
        "bedrock"
    }

    fn check(&self) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        problems.take(self.endpoint.check());
        problems.take(self.region.as_ref().map_err(Clone::clone));
        problems.finish()
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        Capabilities {
            documents: true,
            images: true,
            json: true,
            parallel_tool_calls: true,
            reasoning: reasoning::Form::of(model).is_some(),
            schema: true,
            stream: true,
            tool_choice: true,
            tools: true,
            ..Capabilities::text()
        }
    }

    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
        encode::encode(self, request, cx)
    }

    fn decode<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        decode::decode(head, body)
    }

    fn framing(&self) -> Framing {
        Framing::AwsEventStream
    }

    fn stream_decoder(&self, _: &EncodeContext<'_>) -> Option<Box<dyn StreamDecoder>> {
        Some(Box::new(stream::Decoder::default()))
    }

    fn rules(&self) -> &RulePack {
        &self.rules
    }

    fn auth(&self) -> &Auth {
        self.endpoint.credentials()
    }
}
