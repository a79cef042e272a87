//! A middleware for libraries that are built on `reqwest-middleware`.

use super::exchange::{Exchange, Guarded, Outcome};
use super::fault::{self, Judged};
use crate::provider::RulePack;
use crate::record::ConfigError;
use crate::resilience::{Classify, Guards, Policy, Progress, Verdict};
use async_trait::async_trait;
use http::{Extensions, HeaderMap, StatusCode};
use reqwest::{Body, Request, Response, ResponseBuilderExt};
use reqwest_middleware::{Error, Middleware, Next};
use std::fmt;
use std::sync::Arc;

/// Makes a client of `reqwest-middleware` resilient, and with it every library that is built on one: retry, circuit breaker,
/// retry budget, rate limiter, timeout to the head, deadline.
///
/// How it treats successes, failures and errors is told in the [module's docs](super). Middleware that was added before it
/// sees one request and one response; middleware that was added after it sees every attempt. A request whose body is a
/// stream is sent once, under the same guards.
///
/// An error of the `reqwest` client below comes back unchanged. A local refusal is an `Error::Middleware` that holds a
/// [`Stopped`](super::Stopped):
///
/// ```
/// use steadfast::integrations::{ResilientMiddleware, Stopped};
/// use steadfast::provider::RulePack;
/// use steadfast::resilience::{CircuitBreaker, Policy, Retry};
/// use reqwest_middleware::{ClientBuilder, Error};
/// # use steadfast::testing::{Answer, FakeProvider, Fault};
/// # use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let fake = FakeProvider::openai().then(Fault::rate_limited(Duration::from_millis(5))).start().await?;
/// # let url = format!("{}/chat/completions", fake.base_url());
/// # let body = r#"{"model":"m","messages":[{"role":"user","content":"Hello"}]}"#;
/// let policy = Policy::new().retry(Retry::new(3)).circuit_breaker(CircuitBreaker::consecutive(5));
/// let client = ClientBuilder::new(reqwest::Client::new())
///     .with(ResilientMiddleware::new(RulePack::openai(), policy)?)
///     .build();
///
/// match client.post(&url).body(body).send().await {
///     Ok(response) => assert_eq!(response.status(), 200), // or the last failure, whole
///     Err(Error::Middleware(e)) if e.is::<Stopped>() => println!("not sent: {e}"),
///     Err(e) => return Err(e.into()),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ResilientMiddleware {
    guarded: Guarded,
    cost: Option<Arc<CostOf>>,
}

type CostOf = dyn Fn(&Request) -> u32 + Send + Sync;

impl ResilientMiddleware {
    /// A middleware that judges responses by `rules` and acts by `policy`. Its clones share circuit, budget and limiter.
    ///
    /// # Errors
    ///
    /// What is wrong with the policy's settings.
    pub fn new(rules: RulePack, policy: Policy) -> Result<Self, ConfigError> {
        Ok(Self { guarded: Guarded::new(rules, policy)?, cost: None })
    }

    /// Sets the estimate of the tokens that a request costs, for the limiter, in place of [`Policy::cost`]. Asked once a
    /// request.
    ///
    /// ```
    /// # use steadfast::{integrations::ResilientMiddleware, provider::RulePack, resilience::Policy};
    /// let middleware = ResilientMiddleware::new(RulePack::openai(), Policy::new())?.cost(|request| {
    ///     let bytes = request.body().and_then(|body| body.as_bytes()).map_or(0, <[u8]>::len);
    ///     u32::try_from(bytes / 4 + 1_000).unwrap_or(u32::MAX)
    /// });
    /// # Ok::<(), steadfast::ConfigError>(())
    /// ```
    #[must_use]
    pub fn cost(mut self, cost: impl Fn(&Request) -> u32 + Send + Sync + 'static) -> Self {
        self.cost = Some(Arc::new(cost));
        self
    }

    /// The circuit, the budget and the limiter, to read their state or to share them.
    pub fn guards(&self) -> &Guards {
        self.guarded.guards()
    }
}

impl fmt::Debug for ResilientMiddleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResilientMiddleware").field("guarded", &self.guarded).finish_non_exhaustive()
    }
}

#[async_trait]
impl Middleware for ResilientMiddleware {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let cost = self.cost.as_ref().map(|cost| cost(&request));
        let twice = request.body().is_none_or(|body| body.as_bytes().is_some());
        let call = Call { request: Some(request), extensions, next, rules: &self.guarded.rules };
        match self.guarded.run(call, cost, twice).await {
            Outcome::Live(response) => Ok(response),
            Outcome::Read(response) => Ok(response.map(Body::wrap).into()),
            Outcome::Broken(error) => Err(error),
            Outcome::Stopped(stopped) => Err(Error::middleware(stopped)),
        }
    }
}

/// What a middleware client fails with: the `reqwest` client below, or another middleware, whose error is final unless a
/// cause of it tells of a broken connection.
impl Classify<Error> for RulePack {
    fn classify(&self, error: &Error) -> Verdict {
        judge(self, error).verdict
    }
}

fn judge(rules: &RulePack, error: &Error) -> Judged {
    let found = match error {
        Error::Reqwest(error) => fault::find(rules, error),
        Error::Middleware(error) => fault::find(rules, error.as_ref()),
    };
    found.unwrap_or(Judged { verdict: Verdict::permanent("middleware"), unsent: false })
}

/// One request through the rest of the stack.
struct Call<'a> {
    request: Option<Request>,
    extensions: &'a mut Extensions,
    next: Next<'a>,
    rules: &'a RulePack,
}

/// The request was a stream, and is gone.
#[derive(Debug, thiserror::Error)]
#[error("the request's body cannot be sent again")]
struct Gone;

impl Exchange for Call<'_> {
    type Response = Response;
    type Body = Body;
    type Error = Error;

    async fn send(&mut self, progress: &Progress) -> Result<Response, Error> {
        let copy = self.request.as_ref().and_then(Request::try_clone);
        let request = copy.or_else(|| self.request.take()).ok_or_else(|| Error::middleware(Gone))?;
        progress.sent();
        self.next.clone().run(request, self.extensions).await
    }

    fn head(response: &Response) -> (StatusCode, &HeaderMap) {
        (response.status(), response.headers())
    }

    fn open(&self, response: Response) -> http::Response<Body> {
        let url = response.url().clone();
        let mut open = http::Response::<Body>::from(response);
        // The way back to a `Response` finds the URL among the extensions.
        if let Ok(carrier) = http::Response::builder().url(url).body(()) {
            open.extensions_mut().extend(carrier.into_parts().0.extensions);
        }
        open
    }

    fn judge(&self, error: &Error) -> Judged {
        judge(self.rules, error)
    }
}
