//! The engine: retry, backoff, breaker, budget, limiter, deadline. Knows nothing of LLMs or HTTP.

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
mod lease;
mod limiter;
mod operation;
mod policy;
mod race;
mod random;
mod retry;
mod sync;
mod window;

pub use backoff::backoff;
pub use breaker::{
    Admission, Breaker, ChangeSink, ChangeSubscription, CircuitBreaker, CircuitChange, CircuitRefusal, CircuitState,
    FailureEvidence, Outcome, RefusalReason, SharedBreaker, SharedTicket, Tripping,
};
pub use budget::{Budget, BudgetMark, RetryBudget, RetryBudgetState, SharedBudget};
pub use closure::{Cause, PolicyError, RetryNotice};
pub(crate) use engine::execute;
pub use engine::{End, Run};
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
