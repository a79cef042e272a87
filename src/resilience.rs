//! The engine: retry, backoff, breaker, budget, limiter, deadline. Knows nothing of LLMs or HTTP.

mod answer;
mod budget;
pub(crate) mod clock;
mod random;
mod sync;
mod window;

pub use budget::{Budget, BudgetMark, RetryBudget, RetryBudgetState, SharedBudget};
pub use random::Random;
