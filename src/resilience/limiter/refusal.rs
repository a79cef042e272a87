//! What a limiter says: which bucket, why not, and how things stand.

use serde::Serialize;
use std::fmt;

/// One of the three things a limiter counts.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bucket {
    /// Attempts per minute.
    Requests,
    /// Tokens per minute.
    Tokens,
    /// Attempts running at the same time.
    Concurrency,
}

impl Bucket {
    /// A machine-readable name, in `snake_case`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Concurrency => "concurrency",
        }
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a limiter refused.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LimitReason {
    /// The request needs more than the bucket can ever hold: waiting would not help.
    Capacity,
    /// The request would have had to wait, and the queue takes no more.
    QueueFull,
    /// The request has waited as long as [`RateLimit::max_queue_time`](super::RateLimit::max_queue_time) allows.
    QueueTimeout,
}

/// A limiter's no. Nothing was taken and nothing was sent.
///
/// ```
/// use steadfast::resilience::{Bucket, LimitReason, RateLimit};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = RateLimit::new().tokens_per_minute(10_000).build()?;
/// let refusal = limiter.acquire(10_001).await.unwrap_err();
/// assert_eq!((refusal.reason, refusal.bucket, refusal.limit), (LimitReason::Capacity, Bucket::Tokens, 10_000));
/// assert_eq!(refusal.to_string(), "the request needs more tokens than the limit of 10000");
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct LimitRefusal {
    /// Why.
    pub reason: LimitReason,
    /// The bucket that had no room: the one that the head of the queue waits for.
    pub bucket: Bucket,
    /// What that bucket is configured to hold: requests, tokens, or attempts at a time.
    /// 0 where the bucket has no limit of its own and the provider's word was the obstacle.
    pub limit: u64,
}

impl LimitRefusal {
    /// A refusal, for a [`SharedLimiter`](super::SharedLimiter) to give.
    pub const fn new(reason: LimitReason, bucket: Bucket, limit: u64) -> Self {
        Self { reason, bucket, limit }
    }
}

impl fmt::Display for LimitRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, bucket, limit } = self;
        match reason {
            LimitReason::Capacity => write!(f, "the request needs more {bucket} than the limit of {limit}"),
            LimitReason::QueueFull => write!(f, "rate limit queue full, waiting for {bucket} (limit {limit})"),
            LimitReason::QueueTimeout => write!(f, "waited too long for {bucket} (limit {limit})"),
        }
    }
}

impl std::error::Error for LimitRefusal {}

/// How a limiter stands at one moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RateLimitState {
    /// Requests that could go out now. `None`: unlimited.
    pub requests_remaining: Option<u64>,
    /// Tokens that could go out now. `None`: unlimited.
    pub tokens_remaining: Option<u64>,
    /// Attempts that hold a permit.
    pub in_flight: u32,
    /// Attempts that wait for one.
    pub queued: usize,
}

impl RateLimitState {
    /// A state, for a [`SharedLimiter`](super::SharedLimiter) to report.
    pub const fn new(
        requests_remaining: Option<u64>,
        tokens_remaining: Option<u64>,
        in_flight: u32,
        queued: usize,
    ) -> Self {
        Self { requests_remaining, tokens_remaining, in_flight, queued }
    }
}
