//! Adds credentials to an attempt, and keeps fetched tokens until they expire.

use super::call::CallOptions;
use crate::LlmError;
use crate::provider::{Auth, AuthHeader, Headers, HttpRequest, SourceAuth};
use crate::record::ErrorCode;
use crate::resilience::clock::{later, wall_now};
use base64::Engine as _;
use http::{HeaderValue, header::AUTHORIZATION};
use secrecy::SecretString;
use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A token is fetched anew this long before it expires, so that it does not expire on its way.
const EARLY: Duration = Duration::from_secs(30);

/// The tokens of one target.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    kept: Mutex<Kept>,
    fetched: Notify,
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

#[derive(Debug, Default)]
struct Kept {
    token: Option<Token>,
    /// Whether someone is fetching one.
    fetching: bool,
    /// Counts the tokens, so that an old one that is rejected does not throw away a new one.
    generation: u64,
}

#[derive(Clone, Debug)]
struct Token {
    header: AuthHeader,
    until: Option<Instant>,
}

/// What a look at the kept token says.
enum Look {
    Kept(AuthHeader, u64),
    Fetch,
    Wait,
}

/// What was added to an attempt.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// The secrets in it.
    pub(super) secrets: Vec<SecretString>,
    /// The kept token that was used; none if it was fetched for this attempt, or there is no source.
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
                applied.secrets = custom.authorize(request, wall_now()).await?.secrets;
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

    /// The provider has rejected a kept token: the next attempt fetches another.
    pub(super) fn reject(&self, generation: u64) {
        let mut kept = self.lock();
        if kept.generation == generation {
            kept.token = None;
        }
    }

    /// A token that is good now, and its generation unless it was fetched for this attempt.
    async fn token(&self, source: &SourceAuth) -> Result<(AuthHeader, Option<u64>), LlmError> {
        loop {
            let fetched = self.fetched.notified(); // before the look, so that no end of a fetch is missed
            match self.look() {
                Look::Kept(header, generation) => return Ok((header, Some(generation))),
                Look::Fetch => return Ok((self.fetch(source).await?, None)),
                // Another call is fetching one; it wakes all who wait, however it ends.
                Look::Wait => fetched.await,
            }
        }
    }

    fn look(&self) -> Look {
        let now = Instant::now();
        let mut kept = self.lock();
        if let Some(token) = kept.token.as_ref().filter(|token| token.until.is_none_or(|until| now < until)) {
            return Look::Kept(token.header.clone(), kept.generation);
        }
        if std::mem::replace(&mut kept.fetching, true) { Look::Wait } else { Look::Fetch }
    }

    async fn fetch(&self, source: &SourceAuth) -> Result<AuthHeader, LlmError> {
        let fetching = Fetching(self);
        let credential = source.source().fetch().await?;
        let header = AuthHeader::new(source.name().clone(), source.prefix(), credential.secret).map_err(|e| {
            LlmError::of(ErrorCode::Authentication, "the credential source gave no usable token").with_source(e)
        })?;
        let until = credential.expires_in.map(|time| later(Instant::now(), time.saturating_sub(EARLY)));
        {
            let mut kept = self.lock();
            kept.generation += 1;
            kept.token = Some(Token { header: header.clone(), until });
        }
        drop(fetching);
        Ok(header)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The one that fetches. However it ends, those who wait look again, and one of them takes over if there is no token.
struct Fetching<'a>(&'a Credentials);

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        self.0.lock().fetching = false;
        self.0.fetched.notify_waiters();
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
        credentials.reject(kept);
        assert_eq!(bearer(&credentials, &auth).await.0, "Bearer token-1");
        credentials.reject(kept); // a late answer to the old token
        assert_eq!(bearer(&credentials, &auth).await.0, "Bearer token-1");
    }
}
