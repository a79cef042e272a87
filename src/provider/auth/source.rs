//! Credentials that must be asked for: tokens that expire, signatures over a request.

use super::super::HttpRequest;
use crate::LlmError;
use futures_core::future::BoxFuture;
use http::HeaderName;
use secrecy::SecretString;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Where tokens come from: a metadata server, an OAuth endpoint, a file that someone rotates.
///
/// The client keeps a token until shortly before it expires, asks once however many calls want one, and asks anew when the
/// provider answers 401 to a token that was kept.
pub trait CredentialSource: Send + Sync + 'static {
    /// Fetches a token.
    ///
    /// # Errors
    ///
    /// Whatever the source says; the attempt fails with it, and it is retried like any failure of its code.
    fn fetch(&self) -> BoxFuture<'_, Result<Credential, LlmError>>;
}

/// A token, and how long it is good for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Credential {
    /// The token.
    pub secret: SecretString,
    /// How long it is good for, from now on; `None` is until it is rejected.
    pub expires_in: Option<Duration>,
}

impl Credential {
    /// A token that is good until it is rejected.
    pub fn new(secret: impl Into<SecretString>) -> Self {
        Self { secret: secret.into(), expires_in: None }
    }

    /// With how long it is good for.
    #[must_use]
    pub fn expires_in(mut self, time: Duration) -> Self {
        self.expires_in = Some(time);
        self
    }
}

/// A header whose secret comes from a source.
#[derive(Clone)]
pub struct SourceAuth {
    name: HeaderName,
    prefix: &'static str,
    source: Arc<dyn CredentialSource>,
}

impl SourceAuth {
    /// A header of this name whose value is the prefix and a token of the source.
    pub fn new(name: HeaderName, prefix: &'static str, source: Arc<dyn CredentialSource>) -> Self {
        Self { name, prefix, source }
    }

    /// The header's name.
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// What stands before the token.
    pub fn prefix(&self) -> &'static str {
        self.prefix
    }

    /// Where the tokens come from.
    pub fn source(&self) -> &Arc<dyn CredentialSource> {
        &self.source
    }
}

impl fmt::Debug for SourceAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({}: REDACTED)", self.name)
    }
}

/// Adds credentials to a whole request: a signature, a header that depends on the body.
pub trait Authorize: Send + Sync + 'static {
    /// Adds the credentials to `request`, which is sent as it then is. Headers with secrets in them must be marked sensitive.
    ///
    /// # Errors
    ///
    /// Why there are none; the attempt fails with it.
    fn authorize<'a>(
        &'a self,
        request: &'a mut HttpRequest,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<Authorized, LlmError>>;

    /// The provider has answered `authentication` to what was made of kept credentials ([`Authorized::kept`], whose number
    /// this is): they are to be fetched anew for the next attempt, which is made at once, one for each call.
    fn reject(&self, kept: u64) {
        let _ = kept;
    }
}

/// What was added: the secrets in it, which are taken out of everything that is kept of the attempt.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Authorized {
    /// The secrets.
    pub secrets: Vec<SecretString>,
    /// The number of the kept credentials that it was made of; none where they are fixed, or were fetched for this attempt,
    /// so that fetching them again would not help.
    pub kept: Option<u64>,
}

impl Authorized {
    /// Credentials with these secrets in them.
    pub fn new(secrets: impl IntoIterator<Item = SecretString>) -> Self {
        Self { secrets: secrets.into_iter().collect(), kept: None }
    }

    /// Made of the kept credentials of this number.
    #[must_use]
    pub fn kept(mut self, number: Option<u64>) -> Self {
        self.kept = number;
        self
    }
}
