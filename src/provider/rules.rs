//! Rule packs: what a provider's errors mean.

use super::Failure;
use crate::record::{ErrorCode, ErrorKind, Issues};
use crate::resilience::{Advice, Health, LimitHint, Verdict};
use http::HeaderMap;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What a failure was found to be.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Classified {
    /// What sort of failure.
    pub kind: ErrorKind,
    /// The stable reason.
    pub code: Option<ErrorCode>,
    /// Whether and when to try again.
    pub retry: Advice,
    /// Whether it is evidence about health.
    pub health: Health,
    /// The wait that the provider advised, whether or not a retry can help.
    pub retry_after: Option<Duration>,
    /// The provider's own code.
    pub provider_code: Option<String>,
    /// The provider's own error type.
    pub provider_type: Option<String>,
    /// The provider's own words, as sent.
    pub provider_message: Option<String>,
    /// Structured detail.
    pub issues: Option<Issues>,
    /// What arrived, where the provider said nothing readable: `502, text/html, 512 bytes`.
    pub arrived: Option<String>,
}

type Refine = Arc<dyn Fn(&Failure<'_>, Classified) -> Classified + Send + Sync>;

/// What a provider's errors mean: a table of statuses, the wording and the headers that it uses.
#[derive(Clone)]
pub struct RulePack {
    name: Cow<'static, str>,
    layers: Vec<Refine>,
}

impl fmt::Debug for RulePack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RulePack").field("name", &self.name).finish_non_exhaustive()
    }
}

// Contract (bodies to be written):
//   pub fn generic() / openai() / azure() / openrouter() / groq() / mistral() / ... -> Self
//   pub fn by_name(name: &str) -> Option<Self>
//   pub fn named(self, name) -> Self
//   pub fn classify_with(self, f: impl Fn(&Failure<'_>, Classified) -> Classified + Send + Sync + 'static) -> Self
//   pub fn name(&self) -> &str
//   pub fn classify(&self, failure: &Failure<'_>) -> Classified
//   pub fn verdict(&self, failure: &Failure<'_>) -> Verdict
//   pub fn retry_after(&self, headers: &HeaderMap, body: &[u8], status: Option<u16>, now: Option<SystemTime>) -> Option<Duration>
//   pub fn limits(&self, headers: &HeaderMap, now: Option<SystemTime>) -> Option<LimitHint>
