//! The engine: retry, backoff, breaker, budget, limiter, deadline. Knows nothing of LLMs or HTTP.

mod answer;
mod breaker;
mod budget;
pub(crate) mod clock;
mod random;
mod sync;
mod window;

pub use breaker::{
    Admission, Breaker, ChangeSink, ChangeSubscription, CircuitBreaker, CircuitChange, CircuitRefusal, CircuitState,
    FailureEvidence, Outcome, RefusalReason, SharedBreaker, SharedTicket, Tripping,
};
pub use budget::{Budget, BudgetMark, RetryBudget, RetryBudgetState, SharedBudget};
pub use random::Random;
