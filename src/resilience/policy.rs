//! Resilience around any async operation.

use super::closure::{FnOperation, PolicyError, RetryNotice};
use super::engine::Engine;
use super::failed::Course;
use super::holding::Holding;
use super::race::Cancel;
use super::{
    AttemptInfo, Breaker, Budget, CircuitBreaker, Classify, End, Failed, Guard, Guards, Lease, Limiter, Operation,
    Random, RateLimit, Retry, RetryBudget, Run, Verdict, clock::later,
};
use crate::record::{ConfigError, Problems};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Retry, circuit breaker, retry budget, rate limiter, timeout and deadline around any async operation.
///
/// The same engine that a client's targets run on. Without [`classify`](Self::classify) every error is retried as `unknown`.
///
/// | setting | default |
/// |---|---|
/// | `retry` | [`Retry::default`] |
/// | `timeout` (one attempt) | 120 s |
/// | `deadline` (the whole run) | none |
/// | `circuit_breaker`, `retry_budget`, `rate_limit` | none |
/// | `cost` | 1 token a run |
///
/// ```
/// use steadfast::resilience::{Policy, Retry, Verdict};
/// # #[derive(Debug)] enum SdkError { Busy, BadRequest }
/// # async fn sdk_send() -> Result<&'static str, SdkError> { Ok("answer") }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = Policy::new().retry(Retry::new(4)).classify(|e: &SdkError| match e {
///     SdkError::Busy => Verdict::transient("busy"),
///     SdkError::BadRequest => Verdict::permanent("bad_request"),
/// });
/// let answer = policy.run(|_attempt| async { sdk_send().await }).await.map_err(|e| format!("{e:?}"))?;
/// assert_eq!(answer, "answer");
/// # Ok(()) }
/// ```
#[must_use = "a policy does nothing until it runs something"]
#[derive(Clone)]
pub struct Policy<C = Unclassified> {
    retry: Retry,
    timeout: Option<Duration>,
    deadline: Option<Duration>,
    cancel: Option<CancellationToken>,
    guards: Arc<Guards>,
    cost: Option<Arc<dyn Fn() -> u32 + Send + Sync>>,
    on_retry: Option<Arc<OnRetry>>,
    random: Random,
    classify: C,
    problem: Option<ConfigError>,
}

pub(crate) type OnRetry = dyn Fn(&RetryNotice) + Send + Sync;

/// Takes every error for one that backoff may cure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unclassified;

impl<E: ?Sized> Classify<E> for Unclassified {
    fn classify(&self, _: &E) -> Verdict {
        Verdict::transient("unknown")
    }
}

impl Policy {
    /// The defaults of the table above.
    pub fn new() -> Self {
        Self {
            retry: Retry::default(),
            timeout: Some(Duration::from_secs(120)),
            deadline: None,
            cancel: None,
            guards: Arc::default(),
            cost: None,
            on_retry: None,
            random: Random::from_entropy(),
            classify: Unclassified,
            problem: None,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> Policy<C> {
    /// Sets how often and how patiently to try again.
    ///
    /// The lists of statuses in it are applied by what reads HTTP: a client, the middleware and the layer of `integrations`.
    /// [`run`](Self::run) sees no status; a [`Classify`] of your own can apply them by
    /// [`Classified::advice`](crate::provider::Classified::advice).
    pub fn retry(mut self, retry: Retry) -> Self {
        let checked = retry.check().map_err(|e| e.within("retry"));
        self.retry = retry;
        self.note("retry", checked);
        self
    }

    /// Sets the longest attempt; `None` is no limit.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        let possible = self.timeout != Some(Duration::ZERO);
        let checked =
            possible.then_some(()).ok_or_else(|| ConfigError::new("timeout", "0 s", "more than zero, or none"));
        self.note("timeout", checked);
        self
    }

    /// Sets the longest run, its waits included; `None` is no limit.
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// Sets what cancels every run.
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Sets the circuit breaker: settings, or a breaker to share.
    pub fn circuit_breaker(self, breaker: impl Into<Guard<CircuitBreaker, Breaker>>) -> Self {
        let built = breaker.into().build(&self.random).map_err(|e| e.within("circuit_breaker"));
        self.guard("circuit_breaker", built, |guards, breaker| guards.breaker = Some(breaker))
    }

    /// Sets the retry budget: settings, or a budget to share.
    pub fn retry_budget(self, budget: impl Into<Guard<RetryBudget, Budget>>) -> Self {
        let built = budget.into().build(&self.random).map_err(|e| e.within("retry_budget"));
        self.guard("retry_budget", built, |guards, budget| guards.budget = Some(budget))
    }

    /// Sets the rate limiter: settings, or a limiter to share.
    pub fn rate_limit(self, limiter: impl Into<Guard<RateLimit, Limiter>>) -> Self {
        let built = limiter.into().build(&self.random).map_err(|e| e.within("rate_limit"));
        self.guard("rate_limit", built, |guards, limiter| guards.limiter = Some(limiter))
    }

    /// Sets the estimate of tokens that a run costs, for the limiter. Asked once a run.
    pub fn cost(mut self, cost: impl Fn() -> u32 + Send + Sync + 'static) -> Self {
        self.cost = Some(Arc::new(cost));
        self
    }

    /// Calls `hook` before each wait for a retry.
    pub fn on_retry(mut self, hook: impl Fn(&RetryNotice) + Send + Sync + 'static) -> Self {
        self.on_retry = Some(Arc::new(hook));
        self
    }

    /// Makes chance repeatable. Guards that were set before keep their own.
    pub fn seed(mut self, seed: u64) -> Self {
        self.random = Random::seeded(seed);
        self
    }

    /// Sets what errors mean.
    pub fn classify<D>(self, classify: D) -> Policy<D> {
        Policy {
            retry: self.retry,
            timeout: self.timeout,
            deadline: self.deadline,
            cancel: self.cancel,
            guards: self.guards,
            cost: self.cost,
            on_retry: self.on_retry,
            random: self.random,
            classify,
            problem: self.problem,
        }
    }

    /// What is wrong with the settings. A policy with a problem runs nothing: [`run`](Self::run) returns it.
    ///
    /// # Errors
    ///
    /// Names every setting that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.problem.clone().map_or(Ok(()), Err)
    }

    /// The guards, to read their state or to share them.
    pub fn guards(&self) -> &Guards {
        &self.guards
    }

    /// A run that starts now: with the policy's deadline, its token and its cost. For [`execute`](Self::execute).
    #[must_use]
    pub fn new_run(&self) -> Run<'_> {
        Run {
            end: self.deadline.map(|deadline| End::Deadline(later(Instant::now(), deadline))),
            cancel: Cancel::either(self.cancel.as_ref(), None),
            cost: self.cost.as_ref().map_or(1, |cost| cost()),
            ..Run::default()
        }
    }

    fn engine<'a>(&'a self, run: Run<'a>) -> Engine<'a> {
        Engine::new(&self.retry, self.timeout, &self.random, run)
    }

    #[cfg(any(feature = "reqwest-middleware", feature = "tower"))]
    pub(crate) fn retry_settings(&self) -> &Retry {
        &self.retry
    }

    #[cfg(any(feature = "reqwest-middleware", feature = "tower"))]
    pub(crate) fn retry_hook(&self) -> Option<&OnRetry> {
        self.on_retry.as_deref()
    }

    /// Notes what is wrong with a setting, in place of what was wrong with it before.
    fn note(&mut self, setting: &str, checked: Result<(), ConfigError>) {
        let mut problems = Problems::default();
        for problem in self.problem.iter().flat_map(ConfigError::problems) {
            let rest = problem.field.strip_prefix(setting);
            if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
                problems.require(false, &problem.field, &problem.value, &problem.allowed);
            }
        }
        problems.take(checked);
        self.problem = problems.finish().err();
    }

    fn guard<G>(mut self, setting: &str, built: Result<G, ConfigError>, set: impl FnOnce(&mut Guards, G)) -> Self {
        let checked = built.map(|guard| set(Arc::make_mut(&mut self.guards), guard));
        self.note(setting, checked);
        self
    }
}

impl<C: Sync> Policy<C> {
    /// Runs an [`Operation`], which knows more about its attempts than a closure can: what it sent, what it spent, how to
    /// put an interruption in its own words. Start from [`new_run`](Self::new_run) for the policy's own deadline, token and
    /// cost. What [`on_retry`](Self::on_retry) would be told goes to [`Operation::observe`].
    ///
    /// # Errors
    ///
    /// Why the engine gave up, and every failed attempt. The policy's own settings are not checked here: see
    /// [`check`](Self::check).
    pub async fn execute<O: Operation>(
        &self,
        run: Run<'_>,
        op: &mut O,
    ) -> Result<(O::Output, Lease), Failed<O::Error>> {
        let (mut lease, mut course) = (Lease::new(&self.guards, Instant::now()), Course::default());
        match self.engine(run).execute(lease.holding(), op, &mut course).await {
            Ok(output) => Ok((output, lease)),
            Err(stop) => Err(course.failed(stop)),
        }
    }

    /// Runs a closure until it succeeds or the policy gives up.
    ///
    /// # Errors
    ///
    /// [`PolicyError`]: why the policy gave up, and every failed attempt.
    pub async fn run<F, Fut, T, E>(&self, operation: F) -> Result<T, PolicyError<E>>
    where
        C: Classify<E>,
        F: FnMut(AttemptInfo) -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
        T: Send,
        E: Send,
    {
        self.check().map_err(PolicyError::Config)?;
        let mut op = FnOperation::new(operation, &self.classify, self.on_retry.as_deref());
        let (mut holding, mut course) = (Holding::new(&*self.guards, Instant::now()), Course::default());
        match self.engine(self.new_run()).execute(&mut holding, &mut op, &mut course).await {
            Ok(output) => {
                holding.succeed(Instant::now, None);
                Ok(output)
            }
            Err(stop) => Err(PolicyError::Failed(course.failed(stop))),
        }
    }
}

impl<C> fmt::Debug for Policy<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("retry", &self.retry)
            .field("timeout", &self.timeout)
            .field("deadline", &self.deadline)
            .field("guards", &self.guards)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
