//! Credentials, as data: the client adds them to each attempt.

use crate::record::ConfigError;
use http::{HeaderName, HeaderValue, header::AUTHORIZATION};
use secrecy::{ExposeSecret, SecretString};
use std::fmt;

/// The credentials that a target's requests carry. Never printed.
#[derive(Clone)]
#[non_exhaustive]
pub enum Auth {
    /// None.
    None,
    /// One header.
    Header(AuthHeader),
}

/// A header whose value is secret.
#[derive(Clone)]
pub struct AuthHeader {
    name: HeaderName,
    value: HeaderValue,
    secret: SecretString,
}

impl Auth {
    /// `authorization: Bearer KEY`.
    ///
    /// # Errors
    ///
    /// When the key has a character that a header cannot hold (a line break from a file, for one).
    pub fn bearer(key: SecretString) -> Result<Self, ConfigError> {
        Self::prefixed(AUTHORIZATION, "Bearer ", key)
    }

    /// `NAME: KEY`.
    ///
    /// # Errors
    ///
    /// When the key has a character that a header cannot hold.
    pub fn header(name: HeaderName, key: SecretString) -> Result<Self, ConfigError> {
        Self::prefixed(name, "", key)
    }

    fn prefixed(name: HeaderName, prefix: &str, secret: SecretString) -> Result<Self, ConfigError> {
        if secret.expose_secret().trim().is_empty() {
            return Err(ConfigError::new("api_key", "empty", "a key"));
        }
        let text = format!("{prefix}{}", secret.expose_secret());
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| ConfigError::new("api_key", "(not shown)", "visible ASCII, without line breaks"))?;
        value.set_sensitive(true);
        Ok(Self::Header(AuthHeader { name, value, secret }))
    }
}

impl AuthHeader {
    /// The header's name.
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// The header's value, marked sensitive.
    pub fn value(&self) -> &HeaderValue {
        &self.value
    }

    /// The secret in it.
    pub fn secret(&self) -> &SecretString {
        &self.secret
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Header(header) => header.fmt(f),
        }
    }
}

impl fmt::Debug for AuthHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Header({}: REDACTED)", self.name)
    }
}
