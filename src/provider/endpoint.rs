//! Where an adapter's requests go, and what each of them carries.

use super::Auth;
use super::Headers;
use crate::error::{Redactor, is_secret_header};
use crate::record::{ConfigError, Problems};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;
use url::Url;

/// One place that speaks JSON: its URL, its headers, its credentials, and what is wrong with any of them.
#[derive(Clone)]
pub(super) struct Endpoint {
    /// What follows the base URL, in parts: those that the base URL already ends with are not repeated.
    path: &'static [&'static str],
    url: Result<Url, ConfigError>,
    headers: Headers,
    fault: Option<ConfigError>,
    auth: Result<Auth, ConfigError>,
}

impl Endpoint {
    /// The endpoint at `base_url` and `path`, without credentials.
    pub(super) fn new(base_url: &str, path: &'static [&'static str]) -> Self {
        let json = HeaderValue::from_static("application/json");
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(CONTENT_TYPE, json.clone());
        headers.insert(ACCEPT, json);
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("steadfast/", env!("CARGO_PKG_VERSION"))));
        Self { path, url: locate(base_url, path), headers: headers.into(), fault: None, auth: Ok(Auth::None) }
    }

    /// At another base URL.
    pub(super) fn base_url(mut self, base_url: &str) -> Self {
        self.url = locate(base_url, self.path);
        self
    }

    /// With these credentials, or why there are none.
    pub(super) fn auth(mut self, auth: Result<Auth, ConfigError>) -> Self {
        self.auth = auth;
        self
    }

    /// With this header in every request.
    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(is_secret_header(name.as_str()));
                self.headers.insert(name, value);
            }
            _ => self.fault = Some(ConfigError::new(name, "(not shown)", "a valid HTTP header")),
        }
        self
    }

    /// With what is wrong with a setting that is no part of it.
    pub(super) fn fault(mut self, fault: ConfigError) -> Self {
        self.fault = Some(fault);
        self
    }

    /// What is wrong, all of it.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        problems.take(self.url.as_ref().map_err(Clone::clone));
        problems.take(self.auth.as_ref().map_err(Clone::clone));
        if let Some(fault) = &self.fault {
            problems.add(fault.clone());
        }
        problems.finish()
    }

    /// The credentials.
    pub(super) fn credentials(&self) -> &Auth {
        self.auth.as_ref().unwrap_or(&Auth::None)
    }

    /// The URL and the headers of a request.
    pub(super) fn request_line(&self) -> Result<(Url, Headers), ConfigError> {
        Ok((self.url.clone()?, self.headers.clone()))
    }
}

/// Without what is secret in URL and headers.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let redactor = Redactor::default();
        f.debug_struct("Endpoint")
            .field("url", &self.url.as_ref().map(|url| redactor.url(url)))
            .field("headers", &redactor.headers(&self.headers, &[]))
            .field("auth", &self.auth)
            .finish_non_exhaustive()
    }
}

/// Appends a path to a base URL, whose own path is kept.
fn locate(base_url: &str, path: &[&str]) -> Result<Url, ConfigError> {
    let refused = |allowed: &str| ConfigError::new("base_url", shown(base_url), allowed);
    if base_url.contains(['{', '}']) {
        return Err(refused("a URL whose {placeholders} are filled in"));
    }
    let mut url =
        Url::parse(base_url).map_err(|e| refused(&format!("an absolute URL such as https://host/path ({e})")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(refused("an http or https URL with a host"));
    }
    if path.is_empty() {
        return Ok(url);
    }
    let base = url.path().trim_end_matches('/');
    let there = (1..=path.len()).rev().find(|parts| base.ends_with(&path[..*parts].concat())).unwrap_or(0);
    let whole = format!("{base}{}", path[there..].concat());
    url.set_path(&whole);
    Ok(url)
}

/// The URL as an error may show it: without what stands before an `@` or behind a `?`.
pub(super) fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.rsplit_once('@') {
        Some((_secret, rest)) => format!("…@{rest}"),
        None => format!("`{url}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_base_url_is_kept_and_nothing_is_repeated() {
        for (base, url) in [
            ("https://h", "https://h/v1/messages"),
            ("https://h/", "https://h/v1/messages"),
            ("https://h/v1", "https://h/v1/messages"),
            ("https://h/v1/", "https://h/v1/messages"),
            ("https://h/v1/messages", "https://h/v1/messages"),
            ("https://h/messages", "https://h/messages/v1/messages"),
            ("https://h/anthropic?a=b", "https://h/anthropic/v1/messages?a=b"),
        ] {
            assert_eq!(locate(base, &["/v1", "/messages"]).map(String::from), Ok(url.to_owned()), "{base}");
        }
    }

    #[test]
    fn every_fault_is_told_at_once() {
        let endpoint = Endpoint::new("nonsense", &["/x"]).header("a b", "c").auth(Err(ConfigError::new(
            "api_key",
            "not given",
            "a key",
        )));
        let told = endpoint.check().unwrap_err().to_string();
        for what in ["base_url", "api_key", "a b"] {
            assert!(told.contains(what), "{told}");
        }
    }
}
