//! The engine: retry, backoff, breaker, budget, limiter, deadline. Knows nothing of LLMs or HTTP.
//!
//! A [`Policy`] puts it around any async operation. What an error means is said by a [`Classify`]: a closure, or a
//! [`RulePack`](crate::provider::RulePack) where the error is one that packs know. This is another library's call, with the
//! rules of the provider that it talks to; the closure only says where the evidence is:
//!
//! ```
//! use std::time::Duration;
//! use steadfast::http::HeaderMap;
//! use steadfast::provider::{Failure, RulePack, TransportFault};
//! use steadfast::resilience::{CircuitBreaker, Policy, RateLimit, Retry, RetryBudget, Stop};
//!
//! #[derive(Debug)]
//! enum SdkError {
//!     Api { status: u16, headers: HeaderMap, body: Vec<u8> },
//!     Io(std::io::Error),
//! }
//!
//! impl SdkError {
//!     fn failure(&self) -> Failure<'_> {
//!         match self {
//!             Self::Api { status, headers, body } => Failure::answer(*status, headers, body),
//!             Self::Io(_) => Failure::transport(TransportFault::Interrupted),
//!         }
//!     }
//! }
//! # struct Sdk(std::sync::atomic::AtomicUsize);
//! # impl Sdk {
//! #     async fn send(&self, prompt: &str) -> Result<String, SdkError> {
//! #         let api = |status, body: &[u8]| SdkError::Api { status, headers: HeaderMap::new(), body: body.to_vec() };
//! #         match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
//! #             0 => Err(api(529, br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#)),
//! #             1 => Err(SdkError::Io(std::io::ErrorKind::ConnectionReset.into())),
//! #             2 => Ok(prompt.to_uppercase()),
//! #             _ => Err(api(400, br#"{"type":"error","error":{"type":"invalid_request_error",
//! #                 "message":"Your credit balance is too low to access the Anthropic API."}}"#)),
//! #         }
//! #     }
//! # }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let sdk = Sdk(0.into());
//! let rules = RulePack::anthropic();
//! let policy = Policy::new()
//!     .retry(Retry::new(4))
//!     .retry_budget(RetryBudget::new(Duration::from_secs(60), 10, 0.1))
//!     .circuit_breaker(CircuitBreaker::consecutive(5))
//!     .rate_limit(RateLimit::new().requests_per_minute(50).tokens_per_minute(40_000))
//!     .cost(|| 1_200)
//!     .deadline(Duration::from_secs(60))
//!     .classify(move |e: &SdkError| rules.verdict(&e.failure()));
//!
//! // It was overloaded, then the connection broke, then it answered.
//! let text = policy.run(|_attempt| sdk.send("hello")).await.map_err(|e| format!("{e:?}"))?;
//! assert_eq!(text, "HELLO");
//!
//! // The money is spent: nothing is tried again, and the library's own error comes back.
//! let error = policy.run(|_attempt| sdk.send("hello")).await.expect_err("no credit");
//! assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::NotRetryable), 1));
//! assert!(matches!(error.into_operation(), Some(SdkError::Api { status: 400, .. })));
//! # Ok(()) }
//! ```
//!
//! The parts stand alone too: [`backoff`] is the computed wait, [`RulePack::retry_after`] the advised one, and [`Breaker`],
//! [`Budget`] and [`Limiter`] can be asked by hand, or shared between policies and clients. For HTTP clients built on
//! `reqwest-middleware` or `tower` see [`integrations`](crate::integrations).
//!
//! [`RulePack::retry_after`]: crate::provider::RulePack::retry_after

mod answer;
mod backoff;
mod breaker;
mod budget;
pub(crate) mod clock;
mod closure;
mod engine;
mod failed;
mod guards;
mod hint;
mod holding;
mod lease;
mod limiter;
mod operation;
mod policy;
mod race;
mod random;
mod retry;
mod run;
mod sync;
mod window;

pub use backoff::backoff;
pub use breaker::{
    Admission, Breaker, ChangeSink, ChangeSubscription, CircuitBreaker, CircuitChange, CircuitRefusal, CircuitState,
    FailureEvidence, Outcome, RefusalReason, SharedBreaker, SharedTicket, Tripping,
};
pub use budget::{Budget, BudgetMark, RetryBudget, RetryBudgetState, SharedBudget};
pub use closure::{Cause, PolicyError, RetryNotice};
pub(crate) use engine::Engine;
pub(crate) use failed::Course;
pub use failed::{Decision, Failed, Stop, Tried};
pub use guards::{Guard, Guards};
pub use hint::LimitHint;
pub use lease::Lease;
pub use limiter::{
    Admission as LimiterAdmission, Aimd, Bucket, LimitReason, LimitRefusal, Limiter, Permit, RateLimit, RateLimitState,
    Settlement, SharedLimiter, SharedPermit,
};
pub use operation::{
    Advice, AttemptContext, AttemptInfo, Classify, Health, Interrupt, Operation, Progress, Signal, Verdict,
};
pub use policy::{Policy, Unclassified};
pub use race::Cancel;
pub use random::Random;
pub use retry::{Jitter, Retry};
pub use run::{End, Run};
