//! What every door to this protocol shares: a place, credentials, quirks and rules.

use super::{ModelFamily, Quirks, base_headers, family};
use crate::provider::{Auth, RulePack};
use crate::record::{ConfigError, Problems};
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;
use std::borrow::Cow;
use url::Url;

/// One place that speaks chat completions.
#[derive(Clone, Debug)]
pub(in crate::provider) struct ChatApi {
    name: Cow<'static, str>,
    /// The complete URL of the endpoint, or why there is none.
    url: Result<Url, ConfigError>,
    headers: HeaderMap,
    /// What is wrong with a header that was set.
    header_fault: Option<ConfigError>,
    auth: Result<Auth, ConfigError>,
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
            url: endpoint(base_url),
            headers: base_headers(),
            header_fault: None,
            auth: Ok(Auth::None),
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
        self.url = endpoint(base_url);
        self
    }

    pub(in crate::provider) fn api_key(mut self, key: SecretString) -> Self {
        self.auth = match self.quirks.key_header {
            None => Auth::bearer(key),
            Some(name) => Auth::header(HeaderName::from_static(name), key),
        };
        self
    }

    pub(in crate::provider) fn missing_key(mut self, variables: &[&str]) -> Self {
        self.auth = Err(ConfigError::new(
            "api_key",
            "not given",
            format!("a key (`api_key(..)`, or `from_env` with {})", variables.join(" or ")),
        ));
        self
    }

    pub(in crate::provider) fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => {
                self.headers.insert(name, value);
            }
            _ => self.header_fault = Some(ConfigError::new(name, "(not shown)", "a valid HTTP header")),
        }
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
        self.auth.as_ref().unwrap_or(&Auth::None)
    }

    pub(in crate::provider) fn check(&self) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        problems.take(self.url.as_ref().map_err(Clone::clone));
        problems.take(self.auth.as_ref().map_err(Clone::clone));
        if let Some(fault) = &self.header_fault {
            problems.add(fault.clone());
        }
        problems.finish()
    }

    /// The endpoint and the headers of a request.
    pub(super) fn request_line(&self) -> Result<(Url, HeaderMap), ConfigError> {
        Ok((self.url.clone()?, self.headers.clone()))
    }
}

/// Appends the endpoint to a base URL, whose path is kept: `/v1` is never assumed.
fn endpoint(base_url: &str) -> Result<Url, ConfigError> {
    let refused = |allowed: &str| ConfigError::new("base_url", shown(base_url), allowed);
    if base_url.contains(['{', '}']) {
        return Err(refused("a URL whose {placeholders} are filled in"));
    }
    let mut url =
        Url::parse(base_url).map_err(|e| refused(&format!("an absolute URL such as {} ({e})", super::BASE_URL)))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(refused("an http or https URL with a host"));
    }
    let path = format!("{}/chat/completions", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

/// The URL as an error may show it: without what stands before an `@` or behind a `?`.
fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.rsplit_once('@') {
        Some((_secret, rest)) => format!("…@{rest}"),
        None => format!("`{url}`"),
    }
}
