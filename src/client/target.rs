//! One guarded model: a provider, a model, and everything that protects calls to it.

use super::credentials::Credentials;
use super::fallback::SoftSettings;
use crate::chat::{Request, Sampling};
use crate::observe::{Event, EventKind, Observers};
use crate::provider::{Provider, RulePack};
use crate::record::{ConfigError, Problems};
use crate::resilience::clock::wall_now;
use crate::resilience::{
    Breaker, Budget, ChangeSubscription, CircuitBreaker, CircuitChange, Guard, Guards, Limiter, Random, RateLimit,
    Retry, RetryBudget,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One place to ask: a provider and a model, with its own retry, circuit breaker, retry budget, rate limiter and timeouts.
///
/// Breaker, budget and limiter are off unless set, and never inherited. Retry, timeout and sampling defaults are the client's
/// unless set here.
///
/// ```
/// use std::time::Duration;
/// use steadfast::{Target, provider::OpenAi};
/// use steadfast::resilience::{CircuitBreaker, RateLimit, Retry, RetryBudget};
/// let target = Target::new(OpenAi::new("sk-..."), "gpt-5-mini")
///     .name("openai-eu")
///     .retry(Retry::new(3).base_delay(Duration::from_millis(200)))
///     .circuit_breaker(CircuitBreaker::consecutive(5).cooldown(Duration::from_secs(30)))
///     .retry_budget(RetryBudget::new(Duration::from_secs(60), 10, 0.1))
///     .rate_limit(RateLimit::new().requests_per_minute(500).max_concurrent(20))
///     .timeout(Duration::from_secs(30));
/// ```
#[must_use = "a target does nothing until a client is built with it"]
#[derive(Clone)]
pub struct Target {
    provider: Arc<dyn Provider>,
    model: String,
    name: Option<String>,
    retry: Option<Retry>,
    timeout: Option<Option<Duration>>,
    idle_timeout: Option<Option<Duration>>,
    stall_timeout: Option<Option<Duration>>,
    defaults: Sampling,
    breaker: Option<Guard<CircuitBreaker, Breaker>>,
    budget: Option<Guard<RetryBudget, Budget>>,
    limiter: Option<Guard<RateLimit, Limiter>>,
    rules: Option<RulePack>,
    estimate: Option<Estimate>,
}

pub(crate) type Estimate = Arc<dyn Fn(&Request) -> u32 + Send + Sync>;

impl Target {
    /// A target that asks `model` of `provider`.
    pub fn new(provider: impl Provider, model: impl Into<String>) -> Self {
        Self {
            provider: Arc::new(provider),
            model: model.into(),
            name: None,
            retry: None,
            timeout: None,
            idle_timeout: None,
            stall_timeout: None,
            defaults: Sampling::default(),
            breaker: None,
            budget: None,
            limiter: None,
            rules: None,
            estimate: None,
        }
    }

    /// Sets the name. Default: `provider/model`, with `#2` appended to a repeat.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets how often and how patiently to try again.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Sets the longest attempt, from sending to the complete body, or to the first chunk with content of a stream; `None`
    /// is no limit.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = Some(timeout.into());
        self
    }

    /// Sets the longest silence of a stream in bytes; keep-alives count as life. `None` is no limit.
    pub fn idle_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.idle_timeout = Some(timeout.into());
        self
    }

    /// Sets the longest gap between chunks with content of a stream; keep-alives do not count. `None` is no limit.
    pub fn stall_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.stall_timeout = Some(timeout.into());
        self
    }

    /// Sets what to sample with where the call does not say.
    pub fn defaults(mut self, sampling: Sampling) -> Self {
        self.defaults = sampling;
        self
    }

    /// Sets the circuit breaker: settings, or a breaker to share.
    pub fn circuit_breaker(mut self, breaker: impl Into<Guard<CircuitBreaker, Breaker>>) -> Self {
        self.breaker = Some(breaker.into());
        self
    }

    /// Sets the retry budget: settings, or a budget to share.
    pub fn retry_budget(mut self, budget: impl Into<Guard<RetryBudget, Budget>>) -> Self {
        self.budget = Some(budget.into());
        self
    }

    /// Sets the rate limiter: settings, or a limiter to share.
    pub fn rate_limit(mut self, limiter: impl Into<Guard<RateLimit, Limiter>>) -> Self {
        self.limiter = Some(limiter.into());
        self
    }

    /// Sets what errors mean, in place of the provider's own rules.
    pub fn rules(mut self, rules: RulePack) -> Self {
        self.rules = Some(rules);
        self
    }

    /// Sets the estimate of tokens that a request will spend, for the limiter. Default: a quarter of its characters, plus
    /// its token limit, or 1,000 where it has none.
    pub fn estimate_tokens(mut self, estimate: impl Fn(&Request) -> u32 + Send + Sync + 'static) -> Self {
        self.estimate = Some(Arc::new(estimate));
        self
    }

    /// The name that was set.
    pub(super) fn own_name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The name unless one was set.
    pub(super) fn default_name(&self) -> String {
        format!("{}/{}", self.provider.name(), self.model)
    }

    /// Checks everything and makes the guards.
    pub(super) fn ready(
        self,
        name: String,
        defaults: &SoftSettings,
        random: &Random,
    ) -> Result<ReadyTarget, ConfigError> {
        let mut problems = Problems::default();
        problems.take(self.provider.check());
        problems.require(!self.model.trim().is_empty(), "model", "empty", "the id of a model");
        problems.require(!name.trim().is_empty(), "name", "empty", "a name, or none");
        let retry = self.retry.unwrap_or_else(|| defaults.retry.clone());
        problems.take(retry.check().map_err(|e| e.within("retry")));
        let timeout = self.timeout.unwrap_or(defaults.timeout);
        let idle_timeout = self.idle_timeout.unwrap_or(defaults.idle_timeout);
        let stall_timeout = self.stall_timeout.unwrap_or(defaults.stall_timeout);
        for (field, set) in [("timeout", timeout), ("idle_timeout", idle_timeout), ("stall_timeout", stall_timeout)] {
            problems.require(set != Some(Duration::ZERO), field, "0 s", "more than zero, or none");
        }
        let guards = Guards {
            breaker: self
                .breaker
                .and_then(|guard| problems.take(guard.build(random).map_err(|e| e.within("circuit_breaker")))),
            budget: self
                .budget
                .and_then(|guard| problems.take(guard.build(random).map_err(|e| e.within("retry_budget")))),
            limiter: self
                .limiter
                .and_then(|guard| problems.take(guard.build(random).map_err(|e| e.within("rate_limit")))),
        };
        problems.finish()?;
        Ok(ReadyTarget {
            name: name.into(),
            provider_name: self.provider.name().into(),
            sampling: self.defaults.or(&defaults.sampling),
            provider: self.provider,
            model: self.model,
            retry,
            timeout,
            idle_timeout,
            stall_timeout,
            guards: Arc::new(guards),
            rules: self.rules,
            estimate: self.estimate,
            credentials: Credentials::default(),
            circuit_watch: None,
        })
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("provider", &self.provider.name())
            .field("model", &self.model)
            .field("name", &self.name)
            .field("retry", &self.retry)
            .field("timeout", &self.timeout)
            .field("circuit_breaker", &self.breaker)
            .field("retry_budget", &self.budget)
            .field("rate_limit", &self.limiter)
            .finish_non_exhaustive()
    }
}

/// A target of a built client.
pub(crate) struct ReadyTarget {
    pub(crate) name: Arc<str>,
    pub(crate) provider_name: Arc<str>,
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) model: String,
    pub(crate) sampling: Sampling,
    pub(crate) retry: Retry,
    pub(crate) timeout: Option<Duration>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) stall_timeout: Option<Duration>,
    pub(crate) guards: Arc<Guards>,
    rules: Option<RulePack>,
    pub(crate) estimate: Option<Estimate>,
    pub(crate) credentials: Credentials,
    circuit_watch: Option<ChangeSubscription>,
}

impl ReadyTarget {
    /// Tells the observers when the circuit changes, for as long as the target lives.
    pub(super) fn watch_circuit(&mut self, observers: &Arc<Observers>) {
        let Some(breaker) = &self.guards.breaker else { return };
        let observers = observers.clone();
        let (target, provider) = (self.name.clone(), self.provider_name.clone());
        self.circuit_watch = Some(breaker.observe(Arc::new(move |change: &CircuitChange| {
            if observers.any() {
                observers.tell(Event {
                    at: wall_now(),
                    request_id: None,
                    target: Some(target.clone()),
                    provider: Some(provider.clone()),
                    model: change.key.clone(),
                    kind: EventKind::CircuitChanged {
                        from: change.from,
                        to: change.to,
                        failures: change.failures,
                        last_code: change.last_label,
                    },
                });
            }
        })));
    }

    /// What this target's errors mean.
    pub(crate) fn rules(&self) -> &RulePack {
        self.rules.as_ref().unwrap_or_else(|| self.provider.rules())
    }
}

impl fmt::Debug for ReadyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("name", &self.name)
            .field("provider", &self.provider_name)
            .field("model", &self.model)
            .field("retry", &self.retry)
            .field("timeout", &self.timeout)
            .field("guards", &self.guards)
            .finish_non_exhaustive()
    }
}

/// What a target is found by: its place in the chain (`usize`, 0 is the primary) or its name (`&str`).
pub trait TargetKey {
    /// The place of the target among these names.
    fn place<'a>(self, names: impl Iterator<Item = &'a str>) -> Option<usize>;
}

impl TargetKey for usize {
    fn place<'a>(self, names: impl Iterator<Item = &'a str>) -> Option<usize> {
        (self < names.count()).then_some(self)
    }
}

impl TargetKey for &str {
    fn place<'a>(self, mut names: impl Iterator<Item = &'a str>) -> Option<usize> {
        names.position(|name| name == self)
    }
}

/// A target that a call names, by its place or by its name.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TargetRef {
    /// By its place in the chain; 0 is the primary.
    Place(usize),
    /// By its name.
    Name(String),
}

impl TargetRef {
    /// Whether it means this target.
    pub(super) fn means(&self, place: usize, name: &str) -> bool {
        match self {
            Self::Place(wanted) => *wanted == place,
            Self::Name(wanted) => wanted == name,
        }
    }
}

impl From<usize> for TargetRef {
    fn from(place: usize) -> Self {
        Self::Place(place)
    }
}

impl From<&str> for TargetRef {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}
