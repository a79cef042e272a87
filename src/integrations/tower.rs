//! A `tower` layer over any HTTP service.

use super::Stopped;
use super::exchange::{Exchange, Guarded, Outcome};
use super::fault::{self, Judged};
use super::replay::Replayed;
use crate::provider::{RulePack, TransportFault};
use crate::record::ConfigError;
use crate::resilience::{Guards, Policy, Progress, Verdict};
use crate::transport::BoxFuture;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};

type BoxError = Box<dyn Error + Send + Sync>;
type JudgeErrors = dyn Fn(&(dyn Error + Send + Sync + 'static)) -> Verdict + Send + Sync;

/// Makes any HTTP service resilient: retry, circuit breaker, retry budget, rate limiter, timeout to the head, deadline.
///
/// How it treats successes, failures and errors is told in the [module's docs](super). Every service that one layer makes
/// shares its circuit, budget and limiter.
///
/// The service is cloned for each attempt, and the clone is driven to readiness within the attempt, under its timeout; the
/// layer itself is always ready. What the service needs: `S: Clone + Send + 'static`, `S::Future: Send`, and a body that is
/// `Clone` (`Bytes`, `String`, `Full<Bytes>`).
///
/// An error of the service is taken for a broken connection, unless a cause of it says more (an `io::Error`, a
/// `reqwest::Error`) or [`classify_errors`](Self::classify_errors) is set.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use steadfast::http::{Request, Response};
/// use steadfast::integrations::ResilientLayer;
/// use steadfast::provider::RulePack;
/// use steadfast::resilience::{Policy, RateLimit, Retry};
/// use std::convert::Infallible;
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let policy = Policy::new()
///     .retry(Retry::new(3))
///     .rate_limit(RateLimit::new().requests_per_minute(500).tokens_per_minute(200_000));
/// let layer = ResilientLayer::new(RulePack::anthropic(), policy)?
///     .cost(|request: &Request<Bytes>| u32::try_from(request.body().len() / 4).unwrap_or(u32::MAX));
///
/// let service = ServiceBuilder::new().layer(layer).service(service_fn(|request: Request<Bytes>| async move {
///     Ok::<_, Infallible>(Response::new(Full::new(request.into_body())))
/// }));
/// let response = service.oneshot(Request::post("/v1/messages").body(Bytes::from("{}"))?).await?;
/// assert_eq!(response.status(), 200);
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a layer does nothing until it is put over a service"]
pub struct ResilientLayer<K = PolicyCost> {
    guarded: Arc<Guarded>,
    errors: Option<Arc<JudgeErrors>>,
    cost: K,
}

impl ResilientLayer {
    /// A layer that judges responses by `rules` and acts by `policy`.
    ///
    /// # Errors
    ///
    /// What is wrong with the policy's settings.
    pub fn new(rules: RulePack, policy: Policy) -> Result<Self, ConfigError> {
        Ok(Self { guarded: Arc::new(Guarded::new(rules, policy)?), errors: None, cost: PolicyCost })
    }
}

impl<K> ResilientLayer<K> {
    /// Sets the estimate of the tokens that a request costs, for the limiter, in place of [`Policy::cost`]. A closure over
    /// `&http::Request<B>`; asked once a request.
    pub fn cost<L>(self, cost: L) -> ResilientLayer<L> {
        ResilientLayer { guarded: self.guarded, errors: self.errors, cost }
    }

    /// Sets what the service's own errors mean.
    pub fn classify_errors(
        mut self,
        judge: impl Fn(&(dyn Error + Send + Sync + 'static)) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        self.errors = Some(Arc::new(judge));
        self
    }

    /// The circuit, the budget and the limiter, to read their state or to share them.
    pub fn guards(&self) -> &Guards {
        self.guarded.guards()
    }
}

impl<K> fmt::Debug for ResilientLayer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResilientLayer").field("guarded", &self.guarded).finish_non_exhaustive()
    }
}

impl<S, K: Clone> Layer<S> for ResilientLayer<K> {
    type Service = Resilient<S, K>;

    fn layer(&self, inner: S) -> Resilient<S, K> {
        Resilient { inner, layer: self.clone() }
    }
}

/// Says what a request of type `R` is expected to cost, in tokens. Implemented by closures.
pub trait Cost<R> {
    /// The tokens; `None` leaves it to the policy.
    fn cost(&self, request: &R) -> Option<u32>;
}

/// The cost that the policy itself names, for every request: [`Policy::cost`].
#[derive(Clone, Copy, Debug, Default)]
pub struct PolicyCost;

impl<R> Cost<R> for PolicyCost {
    fn cost(&self, _: &R) -> Option<u32> {
        None
    }
}

impl<R, F: Fn(&R) -> u32> Cost<R> for F {
    fn cost(&self, request: &R) -> Option<u32> {
        Some(self(request))
    }
}

/// A service under a [`ResilientLayer`].
#[derive(Clone)]
pub struct Resilient<S, K = PolicyCost> {
    inner: S,
    layer: ResilientLayer<K>,
}

impl<S: fmt::Debug, K> fmt::Debug for Resilient<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resilient").field("inner", &self.inner).field("layer", &self.layer).finish()
    }
}

impl<S, K, B, R> Service<Request<B>> for Resilient<S, K>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    K: Cost<Request<B>>,
    B: Clone + Send + 'static,
    R: Body<Error: Send> + Send + 'static,
{
    type Response = Response<Replayed<R>>;
    type Error = ResilientError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    /// Always ready: each attempt waits for a clone of its own.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ResilientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let guarded = Arc::clone(&self.layer.guarded);
        let cost = self.layer.cost.cost(&request);
        let errors = self.layer.errors.clone();
        let service = self.inner.clone();
        Box::pin(async move {
            let call = Call { service, request, rules: &guarded.rules, errors };
            match guarded.run(call, cost, true).await {
                Outcome::Live(response) => Ok(response.map(Replayed::Live)),
                Outcome::Read(response) => Ok(response),
                Outcome::Broken(error) => Err(ResilientError::Service(error)),
                Outcome::Stopped(stopped) => Err(ResilientError::Stopped(stopped)),
            }
        })
    }
}

/// One request to a service.
struct Call<'a, S, B> {
    service: S,
    request: Request<B>,
    rules: &'a RulePack,
    errors: Option<Arc<JudgeErrors>>,
}

impl<S, B, R> Exchange for Call<'_, S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Clone + Send,
    R: Body<Error: Send> + Send,
{
    type Response = Response<R>;
    type Body = R;
    type Error = BoxError;

    async fn send(&mut self, progress: &Progress) -> Result<Response<R>, BoxError> {
        let (mut service, request) = (self.service.clone(), self.request.clone());
        poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
        progress.sent();
        service.call(request).await.map_err(Into::into)
    }

    fn head(response: &Response<R>) -> (StatusCode, &HeaderMap) {
        (response.status(), response.headers())
    }

    fn open(&self, response: Response<R>) -> Response<R> {
        response
    }

    fn judge(&self, error: &BoxError) -> Judged {
        let found = fault::find(self.rules, &**error);
        match &self.errors {
            None => found.unwrap_or_else(|| fault::broken(self.rules, TransportFault::Interrupted)),
            Some(judge) => Judged { verdict: judge(&**error), unsent: found.is_some_and(|found| found.unsent) },
        }
    }
}

/// Why a service under a [`ResilientLayer`] gave no response.
#[derive(Debug)]
#[non_exhaustive]
pub enum ResilientError {
    /// The policy gave up without a response: the circuit or the limiter refused, the caller cancelled, time ran out.
    Stopped(Stopped),
    /// The service's own last error, unchanged; it can be downcast to what the service fails with.
    Service(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for ResilientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(_) => f.write_str("the request was stopped"),
            Self::Service(_) => f.write_str("the service failed"),
        }
    }
}

impl Error for ResilientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(match self {
            Self::Stopped(stopped) => stopped,
            Self::Service(error) => &**error,
        })
    }
}
