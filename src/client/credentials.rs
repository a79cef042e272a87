//! Adds credentials to an attempt, and keeps fetched tokens until they expire.

use super::call::CallOptions;
use crate::LlmError;
use crate::provider::{Auth, AuthHeader, Headers, HttpRequest, Kept, SourceAuth};
use crate::record::ErrorCode;
use crate::resilience::clock::wall_now;
use base64::Engine as _;
use http::{HeaderValue, header::AUTHORIZATION};
use secrecy::SecretString;
use std::fmt;
use std::sync::OnceLock;

/// The credentials of one target.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    tokens: Kept<AuthHeader>,
    signed: OnceLock<Signed>,
}

/// The headers that an adapter shares among its requests, and the same with the target's fixed key: to copy those costs half of
/// adding the key to each copy.
struct Signed {
    plain: Headers,
    signed: Headers,
}

impl fmt::Debug for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signed").finish_non_exhaustive()
    }
}

/// What was added to an attempt.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// The secrets in it.
    pub(super) secrets: Vec<SecretString>,
    /// The kept credentials that were used; none if they were fetched for this attempt, or are fixed.
    pub(super) kept_token: Option<u64>,
}

impl Credentials {
    /// Adds what `auth` says to `request`, unless the call has brought its own. Only a source or a custom way waits.
    pub(super) async fn apply(
        &self,
        auth: &Auth,
        own: &CallOptions,
        request: &mut HttpRequest,
    ) -> Result<Applied, LlmError> {
        let mut applied = Applied::default();
        match auth {
            Auth::Header(header) if !own.has_header(header.name()) => {
                self.sign(header, !own.adds_headers(), &mut request.headers);
            }
            Auth::Query(query) => {
                use secrecy::ExposeSecret;
                request.url.query_pairs_mut().append_pair(query.name(), query.secret().expose_secret());
            }
            Auth::Source(source) if !own.has_header(source.name()) => {
                let (token, kept_token) = self.token(source).await?;
                request.headers.insert(token.name().clone(), token.value().clone());
                applied = Applied { secrets: vec![token.secret().clone()], kept_token };
            }
            Auth::Custom(custom) => {
                let authorized = custom.authorize(request, wall_now()).await?;
                applied = Applied { secrets: authorized.secrets, kept_token: authorized.kept };
            }
            Auth::None | Auth::Header(_) | Auth::Source(_) => {}
        }
        from_url(request);
        Ok(applied)
    }

    /// Adds a fixed key. `shared`: the headers are the adapter's own, and not this call's.
    fn sign(&self, key: &AuthHeader, shared: bool, headers: &mut Headers) {
        // While they are kept here, nobody can change them in place: the same map has the same headers.
        if let Some(Signed { plain, signed }) = self.signed.get()
            && plain.is(headers)
        {
            *headers = signed.clone();
            return;
        }
        let plain = headers.clone();
        headers.insert(key.name().clone(), key.value().clone());
        if shared {
            // The first stay. An adapter that makes new ones for each request gains nothing by it.
            let _ = self.signed.set(Signed { plain, signed: headers.clone() });
        }
    }

    /// The provider has rejected kept credentials: the next attempt fetches others.
    pub(super) fn reject(&self, auth: &Auth, number: u64) {
        match auth {
            Auth::Custom(custom) => custom.reject(number),
            _ => self.tokens.reject(number),
        }
    }

    /// A token that is good now, and its number unless it was fetched for this attempt.
    async fn token(&self, source: &SourceAuth) -> Result<(AuthHeader, Option<u64>), LlmError> {
        self.tokens
            .get(wall_now, || async {
                let credential = source.source().fetch().await?;
                let header = AuthHeader::new(source.name().clone(), source.prefix(), credential.secret);
                let header = header.map_err(|e| {
                    LlmError::of(ErrorCode::Authentication, "the credential source gave no usable token").with_source(e)
                })?;
                Ok((header, credential.expires_in))
            })
            .await
    }
}

/// User info in the URL (a proxy's, say) is sent as basic authentication where nothing else claims the header, and never as
/// part of the URL.
fn from_url(request: &mut HttpRequest) {
    let url = &mut request.url;
    if url.username().is_empty() && url.password().is_none() {
        return;
    }
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pair = format!("{}:{}", decoded(url.username()), decoded(url.password().unwrap_or_default()));
    let value = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
    // Both fail only for URLs that cannot have user info.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    if let (false, Ok(mut value)) = (request.headers.contains_key(AUTHORIZATION), HeaderValue::from_str(&value)) {
        value.set_sensitive(true);
        request.headers.insert(AUTHORIZATION, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Credential, CredentialSource};
    use futures_core::future::BoxFuture;
    use http::HeaderMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::time::Duration;
    use url::Url;

    /// Numbers its tokens, each good for five minutes, and takes a second for each.
    #[derive(Default)]
    struct Numbered(AtomicU32);

    impl CredentialSource for Arc<Numbered> {
        fn fetch(&self) -> BoxFuture<'_, Result<Credential, LlmError>> {
            Box::pin(async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let number = self.0.fetch_add(1, SeqCst);
                Ok(Credential::new(format!("token-{number}")).expires_in(Duration::from_secs(300)))
            })
        }
    }

    async fn bearer(credentials: &Credentials, auth: &Auth) -> (String, Option<u64>) {
        let url = Url::parse("http://host/").unwrap();
        let mut request = HttpRequest::post(url, HeaderMap::new(), "");
        let applied = credentials.apply(auth, &CallOptions::default(), &mut request).await.unwrap();
        (request.headers["authorization"].to_str().unwrap().to_owned(), applied.kept_token)
    }

    #[tokio::test]
    async fn user_info_in_the_url_is_basic_authentication_and_nothing_else() {
        let url = Url::parse("http://user:p%40ss@host/v1").unwrap();
        let mut request = HttpRequest::post(url, HeaderMap::new(), "");
        Credentials::default().apply(&Auth::None, &CallOptions::default(), &mut request).await.unwrap();
        assert_eq!(request.url.as_str(), "http://host/v1");
        assert_eq!(request.headers["authorization"], "Basic dXNlcjpwQHNz");
        assert!(request.headers["authorization"].is_sensitive());

        let mut request = HttpRequest::post(Url::parse("http://user:pass@host/v1").unwrap(), HeaderMap::new(), "");
        let key = Auth::bearer("sk-1".to_owned().into()).unwrap();
        Credentials::default().apply(&key, &CallOptions::default(), &mut request).await.unwrap();
        assert_eq!(
            (request.url.as_str(), &request.headers["authorization"]),
            ("http://host/v1", &"Bearer sk-1".parse().unwrap())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_kept_until_shortly_before_it_expires() {
        let (credentials, auth) = (Credentials::default(), Auth::bearer_from(Arc::<Numbered>::default()));
        assert_eq!(bearer(&credentials, &auth).await, ("Bearer token-0".to_owned(), None));
        tokio::time::advance(Duration::from_secs(269)).await;
        assert_eq!(bearer(&credentials, &auth).await, ("Bearer token-0".to_owned(), Some(1)));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(bearer(&credentials, &auth).await, ("Bearer token-1".to_owned(), None));
    }

    #[tokio::test(start_paused = true)]
    async fn many_callers_fetch_once() {
        let source = Arc::<Numbered>::default();
        let (credentials, auth) = (Arc::new(Credentials::default()), Auth::bearer_from(source.clone()));
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (credentials, auth) = (credentials.clone(), auth.clone());
            callers.spawn(async move { bearer(&credentials, &auth).await.0 });
        }
        assert!(callers.join_all().await.iter().all(|token| token == "Bearer token-0"));
        assert_eq!(source.0.load(SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetcher_that_is_dropped_hands_over() {
        let (credentials, auth) = (Arc::new(Credentials::default()), Auth::bearer_from(Arc::<Numbered>::default()));
        let first = tokio::spawn({
            let (credentials, auth) = (credentials.clone(), auth.clone());
            async move { bearer(&credentials, &auth).await }
        });
        tokio::task::yield_now().await;
        let second = tokio::spawn({
            let (credentials, auth) = (credentials.clone(), auth.clone());
            async move { bearer(&credentials, &auth).await }
        });
        tokio::task::yield_now().await;
        first.abort();
        assert_eq!(second.await.unwrap().0, "Bearer token-0");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_token_is_fetched_anew_once() {
        let (credentials, auth) = (Credentials::default(), Auth::bearer_from(Arc::<Numbered>::default()));
        bearer(&credentials, &auth).await;
        let kept = bearer(&credentials, &auth).await.1.unwrap();
        credentials.reject(&auth, kept);
        assert_eq!(bearer(&credentials, &auth).await.0, "Bearer token-1");
        credentials.reject(&auth, kept); // a late answer to the old token
        assert_eq!(bearer(&credentials, &auth).await.0, "Bearer token-1");
    }
}
