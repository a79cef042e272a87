//! Signs requests: AWS's signature version 4, by AWS's own signer and with credentials from AWS's own chain.

use crate::LlmError;
use crate::provider::{Authorize, Authorized, HttpRequest, Kept};
use crate::record::{ConfigError, ErrorCode, ErrorKind, Problems};
use aws_config::Region;
use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use futures_core::future::BoxFuture;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use std::borrow::Cow;
use std::error::Error;
use std::time::{Duration, SystemTime};
use tokio::sync::OnceCell;

/// The name that Bedrock's runtime signs under, which is not that of its host.
const SERVICE: &str = "bedrock";

/// The longest cause that is quoted, in characters.
const QUOTED: usize = 200;

/// Signs for one region.
pub(super) struct SigV4 {
    region: String,
    source: Source,
    kept: Kept<Credentials>,
}

/// Where credentials come from.
pub(super) enum Source {
    Fixed(Credentials),
    /// AWS's default chain, made when it is first asked.
    Chain(Region, OnceCell<DefaultCredentialsChain>),
    Provider(SharedCredentialsProvider),
}

impl Source {
    pub(super) fn chain(region: &str) -> Self {
        Self::Chain(Region::new(region.to_owned()), OnceCell::new())
    }

    pub(super) fn provider(provider: impl ProvideCredentials + 'static) -> Self {
        Self::Provider(SharedCredentialsProvider::new(provider))
    }

    pub(super) fn fixed(id: &str, secret: &SecretString, token: Option<&SecretString>) -> Result<Self, ConfigError> {
        let token = token.map(ExposeSecret::expose_secret);
        let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let mut problems = Problems::default();
        for (name, good) in [
            ("access_key_id", is_plain(id) && !id.contains(['/', ','])),
            ("secret_access_key", is_plain(secret.expose_secret())),
            ("session_token", token.is_none_or(is_plain)),
        ] {
            problems.require(good, name, "(not shown)", "visible ASCII, as AWS gives it");
        }
        problems.finish()?;
        Ok(Self::Fixed(Credentials::new(id, secret.expose_secret(), token.map(str::to_owned), None, "steadfast")))
    }

    async fn fetch(&self, now: SystemTime) -> Result<(Credentials, Option<Duration>), LlmError> {
        let fetched = match self {
            Self::Fixed(credentials) => Ok(credentials.clone()),
            Self::Chain(region, chain) => {
                let make = || DefaultCredentialsChain::builder().region(region.clone()).build();
                chain.get_or_init(make).await.provide_credentials().await
            }
            Self::Provider(provider) => provider.provide_credentials().await,
        };
        let credentials = fetched.map_err(unavailable)?;
        let expires_in = credentials.expiry().map(|expiry| expiry.duration_since(now).unwrap_or_default());
        Ok((credentials, expires_in))
    }
}

/// Why there are no credentials. What a provider fails at may pass; what is not there stays so.
fn unavailable(error: CredentialsError) -> LlmError {
    let mut cause: &dyn Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let cause: String = cause.to_string().lines().next().unwrap_or_default().chars().take(QUOTED).collect();
    let failed = match &error {
        CredentialsError::CredentialsNotLoaded(_) => {
            let cure = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role";
            LlmError::of(ErrorCode::Authentication, format!("AWS's credential chain found none ({cause}); {cure}"))
        }
        CredentialsError::ProviderError(_) | CredentialsError::ProviderTimedOut(_) => {
            LlmError::new(ErrorKind::Unknown, format!("AWS's credential chain failed: {cause}"))
        }
        _ => LlmError::of(ErrorCode::Authentication, format!("AWS's credential chain is set up wrongly: {cause}")),
    };
    failed.with_source(error)
}

impl SigV4 {
    pub(super) fn new(region: &str, source: Source) -> Self {
        Self { region: region.to_owned(), source, kept: Kept::default() }
    }

    /// Signs the body, the path and what must not be changed on the way; what proxies may add or change is not signed.
    fn sign(&self, request: &mut HttpRequest, credentials: Credentials, now: SystemTime) -> Result<(), LlmError> {
        let failed = |e: Box<dyn Error + Send + Sync>| {
            LlmError::of(ErrorCode::InvalidCall, "the request cannot be signed").with_source(e)
        };
        let identity = credentials.into();
        let params = SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(SERVICE)
            .time(now)
            .settings(SigningSettings::default())
            .build()
            .map_err(|e| failed(e.into()))?
            .into();
        let host = host(request);
        let own = request.headers.iter().filter(|(name, _)| is_signed(name));
        let own = own.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let headers = own.chain([("host", &*host)]);
        let url = request.url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
        let signed = SignableRequest::new(request.method.as_str(), url, headers, SignableBody::Bytes(&request.body))
            .and_then(|signable| sign(signable, &params))
            .map_err(|e| failed(e.into()))?;
        let (headers, _) = signed.into_parts().0.into_parts();
        for header in headers {
            let mut value = HeaderValue::from_str(header.value()).map_err(|e| failed(e.into()))?;
            value.set_sensitive(header.sensitive() || header.name() == AUTHORIZATION.as_str());
            let name = HeaderName::try_from(header.name()).map_err(|e| failed(e.into()))?;
            request.headers.insert(name, value);
        }
        Ok(())
    }
}

fn is_signed(name: &HeaderName) -> bool {
    name == http::header::CONTENT_TYPE || name.as_str().starts_with("x-amz-")
}

/// The host as it is sent: with its port unless that is the scheme's own.
fn host(request: &HttpRequest) -> Cow<'_, str> {
    let own = request.headers.get(HOST).and_then(|host| host.to_str().ok());
    let of_url = || &request.url[url::Position::BeforeHost..url::Position::AfterPort];
    Cow::Borrowed(own.unwrap_or_else(of_url))
}

/// What must not be printed of it: the secret, and what makes the request good for five minutes.
fn secrets(credentials: &Credentials, request: &HttpRequest) -> Vec<SecretString> {
    let authorization = request.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let signature = authorization.and_then(|value| value.rsplit_once("Signature=")).map(|(_, signature)| signature);
    [Some(credentials.secret_access_key()), credentials.session_token(), signature]
        .into_iter()
        .flatten()
        .map(SecretString::from)
        .collect()
}

impl Authorize for SigV4 {
    fn authorize<'a>(
        &'a self,
        request: &'a mut HttpRequest,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<Authorized, LlmError>> {
        Box::pin(async move {
            if request.headers.contains_key(AUTHORIZATION) {
                return Ok(Authorized::default()); // the call has brought its own
            }
            let (credentials, kept) = match &self.source {
                Source::Fixed(credentials) => (credentials.clone(), None),
                source => self.kept.get(|| now, || source.fetch(now)).await?,
            };
            self.sign(request, credentials.clone(), now)?;
            Ok(Authorized::new(secrets(&credentials, request)).kept(kept))
        })
    }

    fn reject(&self, kept: u64) {
        self.kept.reject(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Auth, Bedrock, EncodeContext, Provider};
    use crate::resilience::clock::wall_now;
    use aws_credential_types::provider::future;
    use bytes::Bytes;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    const MODEL: &str = "example.model-v1:0";
    const BODY: &str =
        r#"{"messages":[{"role":"user","content":[{"text":"Hello"}]}],"inferenceConfig":{"maxTokens":16}}"#;

    fn request(bedrock: &Bedrock) -> HttpRequest {
        let mut request = bedrock.encode(&crate::chat::Request::user("Hi"), &EncodeContext::new(MODEL)).unwrap();
        request.body = Bytes::from_static(BODY.as_bytes());
        request
    }

    async fn authorize(bedrock: &Bedrock, request: &mut HttpRequest, now: SystemTime) -> Result<Authorized, LlmError> {
        let Auth::Custom(signer) = bedrock.auth() else { unreachable!() };
        signer.authorize(request, now).await
    }

    fn fixed(token: Option<&str>) -> Bedrock {
        let token = token.map(SecretString::from);
        Bedrock::with_credentials("us-east-1", "AKIDEXAMPLE", "example-secret-key", token)
    }

    /// Computed with botocore.
    #[tokio::test]
    async fn signatures_are_those_of_botocore() {
        let noon = humantime::parse_rfc3339("2026-11-30T12:00:00Z").unwrap();
        for (token, signature) in [
            (None, "c9a50988cd7bae1208ac1c2d9f537fdd8709f0496d6391135963a3b66f5f4467"),
            (Some("EXAMPLESESSIONTOKEN"), "97b317b97248f468da465f13a32959c604e0d7b84c2f1aecd20084a6d7f0e467"),
        ] {
            let bedrock = fixed(token);
            let mut request = request(&bedrock);
            let authorized = authorize(&bedrock, &mut request, noon).await.unwrap();
            let signed = if token.is_some() { ";x-amz-security-token" } else { "" };
            let expected = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261130/us-east-1/bedrock/aws4_request, \
                 SignedHeaders=content-type;host;x-amz-date{signed}, Signature={signature}"
            );
            assert_eq!(request.headers["authorization"], expected);
            assert_eq!(request.headers["x-amz-date"], "20261130T120000Z");
            assert_eq!(
                request.headers.get("x-amz-security-token").map(HeaderValue::as_bytes),
                token.map(str::as_bytes)
            );
            for secret in ["authorization", "x-amz-security-token"] {
                assert!(request.headers.get(secret).is_none_or(HeaderValue::is_sensitive), "{secret}");
            }
            let secrets: Vec<_> = authorized.secrets.iter().map(ExposeSecret::expose_secret).collect();
            let expected = [Some("example-secret-key"), token, Some(signature)];
            assert_eq!(secrets, expected.into_iter().flatten().collect::<Vec<_>>());
            assert_eq!(authorized.kept, None);
            assert!(!format!("{bedrock:?} {request:?}").contains("example-secret"));
        }
    }

    #[tokio::test]
    async fn a_call_with_its_own_authorization_is_not_signed() {
        let bedrock = fixed(None);
        let mut request = request(&bedrock);
        request.headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer own"));
        let authorized = authorize(&bedrock, &mut request, SystemTime::UNIX_EPOCH).await.unwrap();
        assert_eq!((request.headers["authorization"].as_bytes(), authorized.secrets.len()), (&b"Bearer own"[..], 0));
        assert!(!request.headers.contains_key("x-amz-date"));
    }

    #[tokio::test]
    async fn the_host_is_signed_as_it_is_sent() {
        for (base, expected) in [
            ("https://h.example", "h.example"),
            ("https://h.example:443", "h.example"),
            ("http://user:pw@h.example:8080/x?y=z", "h.example:8080"),
            ("http://[::1]:8080", "[::1]:8080"),
        ] {
            assert_eq!(host(&request(&fixed(None).base_url(base))), expected);
        }
    }

    /// Numbers its credentials, each good for five minutes.
    #[derive(Debug, Default)]
    struct Numbered(Arc<AtomicU32>);

    impl ProvideCredentials for Numbered {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            let id = format!("AKID{}", self.0.fetch_add(1, SeqCst));
            let expiry = wall_now() + Duration::from_secs(300);
            future::ProvideCredentials::ready(Ok(Credentials::new(id, "secret", None, Some(expiry), "numbered")))
        }
    }

    async fn id(bedrock: &Bedrock) -> (String, Option<u64>) {
        let mut request = request(bedrock);
        let authorized = authorize(bedrock, &mut request, wall_now()).await.unwrap();
        let header = request.headers["authorization"].to_str().unwrap();
        let id = header.split(['=', '/']).nth(1).unwrap_or_default().to_owned();
        (id, authorized.kept)
    }

    #[tokio::test(start_paused = true)]
    async fn credentials_are_kept_until_shortly_before_they_expire_or_are_rejected() {
        let bedrock = Bedrock::with_provider("us-east-1", Numbered::default());
        assert_eq!(id(&bedrock).await, ("AKID0".to_owned(), None));
        tokio::time::advance(Duration::from_secs(260)).await;
        assert_eq!(id(&bedrock.clone()).await, ("AKID0".to_owned(), Some(1)), "clones share them");
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(id(&bedrock).await, ("AKID1".to_owned(), None));
        let Auth::Custom(signer) = bedrock.auth() else { unreachable!() };
        signer.reject(1); // a late answer to the old ones
        assert_eq!(id(&bedrock).await, ("AKID1".to_owned(), Some(2)));
        signer.reject(2);
        assert_eq!(id(&bedrock).await, ("AKID2".to_owned(), None));
    }

    /// Has none.
    #[derive(Debug)]
    struct Without(fn() -> CredentialsError);

    impl ProvideCredentials for Without {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            future::ProvideCredentials::ready(Err(self.0()))
        }
    }

    #[tokio::test]
    async fn credentials_that_are_missing_are_final_and_a_provider_that_fails_is_asked_again() {
        let cases: [(fn() -> CredentialsError, _, _, _); 3] = [
            (
                || CredentialsError::not_loaded("no profile"),
                Some(ErrorCode::Authentication),
                false,
                "AWS_ACCESS_KEY_ID",
            ),
            (|| CredentialsError::provider_error("503 of STS"), None, true, "503 of STS"),
            (|| CredentialsError::invalid_configuration("a loop"), Some(ErrorCode::Authentication), false, "a loop"),
        ];
        for (error, code, retryable, named) in cases {
            let bedrock = Bedrock::with_provider("us-east-1", Without(error));
            let error = authorize(&bedrock, &mut request(&bedrock), SystemTime::UNIX_EPOCH).await.unwrap_err();
            assert_eq!((error.code(), error.is_retryable()), (code, retryable), "{error}");
            assert!(error.to_string().contains(named) && error.source().is_some(), "{error}");
        }
    }
}
