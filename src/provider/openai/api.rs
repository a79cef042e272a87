//! What every door to this protocol shares: a place, credentials, quirks and rules.

use super::{ModelFamily, Quirks, family};
use crate::provider::endpoint::Endpoint;
use crate::provider::{Auth, RulePack};
use crate::record::ConfigError;
use http::{HeaderMap, HeaderName};
use secrecy::SecretString;
use std::borrow::Cow;
use url::Url;

/// One place that speaks chat completions.
#[derive(Clone, Debug)]
pub(in crate::provider) struct ChatApi {
    name: Cow<'static, str>,
    endpoint: Endpoint,
    pub(super) quirks: Quirks,
    pub(super) families: Cow<'static, [ModelFamily]>,
    rules: RulePack,
}

impl ChatApi {
    pub(in crate::provider) fn new(
        name: impl Into<Cow<'static, str>>,
        base_url: &str,
        quirks: Quirks,
        rules: RulePack,
    ) -> Self {
        Self {
            name: name.into(),
            endpoint: Endpoint::new(base_url, &["/chat/completions"]),
            families: if quirks.openai_models { Cow::Borrowed(family::OPENAI) } else { Cow::Borrowed(&[]) },
            quirks,
            rules,
        }
    }

    pub(in crate::provider) fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = name.into();
        self
    }

    pub(in crate::provider) fn base_url(mut self, base_url: &str) -> Self {
        self.endpoint = self.endpoint.base_url(base_url);
        self
    }

    pub(in crate::provider) fn api_key(mut self, key: SecretString) -> Self {
        self.endpoint = self.endpoint.auth(match self.quirks.key_header {
            None => Auth::bearer(key),
            Some(name) => Auth::header(HeaderName::from_static(name), key),
        });
        self
    }

    pub(in crate::provider) fn missing_key(mut self, variables: &[&str]) -> Self {
        self.endpoint = self.endpoint.auth(Err(ConfigError::new(
            "api_key",
            "not given",
            format!("a key (`api_key(..)`, or `from_env` with {})", variables.join(" or ")),
        )));
        self
    }

    pub(in crate::provider) fn header(mut self, name: &str, value: &str) -> Self {
        self.endpoint = self.endpoint.header(name, value);
        self
    }

    pub(in crate::provider) fn quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = quirks;
        self
    }

    pub(in crate::provider) fn families(mut self, families: Vec<ModelFamily>) -> Self {
        self.families = Cow::Owned(families);
        self
    }

    pub(in crate::provider) fn rules(mut self, rules: RulePack) -> Self {
        self.rules = rules;
        self
    }

    pub(in crate::provider) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::provider) fn rule_pack(&self) -> &RulePack {
        &self.rules
    }

    pub(in crate::provider) fn auth(&self) -> &Auth {
        self.endpoint.credentials()
    }

    pub(in crate::provider) fn check(&self) -> Result<(), ConfigError> {
        self.endpoint.check()
    }

    /// The endpoint and the headers of a request.
    pub(super) fn request_line(&self) -> Result<(Url, HeaderMap), ConfigError> {
        self.endpoint.request_line()
    }
}
