//! The engine: retry, backoff, breaker, budget, limiter, deadline. Knows nothing of LLMs or HTTP.

pub(crate) mod clock;
mod hint;
mod limiter;
mod random;
mod sync;

pub use hint::LimitHint;
pub use limiter::{
    Admission, Aimd, Bucket, LimitReason, LimitRefusal, Limiter, Permit, RateLimit, RateLimitState, Settlement,
    SharedLimiter, SharedPermit,
};
pub use random::Random;
