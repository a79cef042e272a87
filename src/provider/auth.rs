//! Credentials, as data: the client adds them to each attempt, after any wait.

mod kept;
mod source;

pub(crate) use kept::Kept;
pub use source::{Authorize, Authorized, Credential, CredentialSource, SourceAuth};

use crate::record::ConfigError;
use http::{HeaderName, HeaderValue, header::AUTHORIZATION};
use secrecy::{ExposeSecret, SecretString};
use std::fmt;
use std::sync::Arc;

/// The credentials that a target's requests carry. Never printed.
#[derive(Clone)]
#[non_exhaustive]
pub enum Auth {
    /// None.
    None,
    /// One header with a fixed secret.
    Header(AuthHeader),
    /// One query parameter with a fixed secret, for protocols that take none in a header.
    Query(AuthQuery),
    /// One header with a token that is fetched when it is needed, kept until it expires, and fetched anew once when the
    /// provider rejects it.
    Source(SourceAuth),
    /// Anything else: a signature over the whole request, for one.
    Custom(Arc<dyn Authorize>),
}

/// A header whose value is secret.
#[derive(Clone)]
pub struct AuthHeader {
    name: HeaderName,
    value: HeaderValue,
    secret: SecretString,
}

/// A query parameter whose value is secret.
#[derive(Clone)]
pub struct AuthQuery {
    name: String,
    secret: SecretString,
}

impl Auth {
    /// `authorization: Bearer KEY`.
    ///
    /// # Errors
    ///
    /// When the key has a character that a header cannot hold (a line break from a file, for one).
    pub fn bearer(key: SecretString) -> Result<Self, ConfigError> {
        AuthHeader::new(AUTHORIZATION, "Bearer ", key).map(Self::Header)
    }

    /// `NAME: KEY`.
    ///
    /// # Errors
    ///
    /// When the key has a character that a header cannot hold.
    pub fn header(name: HeaderName, key: SecretString) -> Result<Self, ConfigError> {
        AuthHeader::new(name, "", key).map(Self::Header)
    }

    /// `?NAME=KEY`. Prefer a header where the provider takes one: URLs end up in logs.
    ///
    /// # Errors
    ///
    /// When the key is empty.
    pub fn query(name: impl Into<String>, key: SecretString) -> Result<Self, ConfigError> {
        not_empty(&key)?;
        Ok(Self::Query(AuthQuery { name: name.into(), secret: key }))
    }

    /// `authorization: Bearer TOKEN`, with tokens from this source.
    pub fn bearer_from(source: impl CredentialSource) -> Self {
        Self::Source(SourceAuth::new(AUTHORIZATION, "Bearer ", Arc::new(source)))
    }
}

fn not_empty(key: &SecretString) -> Result<(), ConfigError> {
    if key.expose_secret().trim().is_empty() {
        return Err(ConfigError::new("api_key", "empty", "a key"));
    }
    Ok(())
}

impl AuthHeader {
    /// A header of this name whose value is the prefix and the secret.
    ///
    /// # Errors
    ///
    /// When the secret is empty or has a character that a header cannot hold.
    pub fn new(name: HeaderName, prefix: &str, secret: SecretString) -> Result<Self, ConfigError> {
        not_empty(&secret)?;
        let text = format!("{prefix}{}", secret.expose_secret());
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| ConfigError::new("api_key", "(not shown)", "visible ASCII, without line breaks"))?;
        value.set_sensitive(true);
        Ok(Self { name, value, secret })
    }

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

impl AuthQuery {
    /// The parameter's name.
    pub fn name(&self) -> &str {
        &self.name
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
            Self::Query(query) => query.fmt(f),
            Self::Source(source) => source.fmt(f),
            Self::Custom(_) => f.write_str("Custom"),
        }
    }
}

impl fmt::Debug for AuthHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Header({}: REDACTED)", self.name)
    }
}

impl fmt::Debug for AuthQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Query({}=REDACTED)", self.name)
    }
}
