//! The engine: retry, backoff, breaker, budget, limiter, deadline. Knows nothing of LLMs or HTTP.

pub(crate) mod clock;
mod random;

pub use random::Random;
