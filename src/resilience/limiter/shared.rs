//! The seam for limits that several processes keep together.

use super::{Bucket, LimitRefusal, Permit, RateLimitState};
use crate::resilience::LimitHint;
use std::{fmt::Debug, future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::time::Instant;

/// What became of the tokens that a permit reserved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Settlement {
    /// So many were really spent: more or fewer than the estimate.
    Spent(u32),
    /// Nobody knows: the estimate stays.
    Estimate,
    /// Nothing was sent: request, tokens and slot all come back.
    Unsent,
}

impl Settlement {
    /// An attempt is over that is known to have spent so much, if anything is known.
    pub(crate) fn of(spent: Option<u32>) -> Self {
        spent.map_or(Self::Estimate, Self::Spent)
    }
}

/// A future of a [`SharedLimiter`]. Dropping it leaves the queue.
pub type Admission = Pin<Box<dyn Future<Output = Result<Permit, LimitRefusal>> + Send>>;

/// A limiter whose buckets and queue live elsewhere, for [`Limiter::shared`](super::Limiter::shared).
///
/// It keeps the same promises as the one in this process, and bounds its own queue in length and time. Only admitting
/// may wait.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use steadfast::resilience::{LimiterAdmission, Bucket, Limiter, RateLimit, RateLimitState, SharedLimiter};
///
/// /// Where the limits are kept cannot be reached, a limiter of this process stands in.
/// #[derive(Debug)]
/// struct Standby(Limiter);
///
/// impl SharedLimiter for Standby {
///     fn admit(self: Arc<Self>, tokens: u32, wait: bool) -> LimiterAdmission {
///         Box::pin(async move {
///             if wait { self.0.acquire(tokens).await } else { self.0.acquire_now(tokens).await }
///         })
///     }
///     fn predicted_wait(&self, tokens: u32) -> Duration {
///         self.0.predicted_wait(tokens)
///     }
///     fn waiting_for(&self) -> Bucket {
///         Bucket::Requests
///     }
///     fn state(&self) -> RateLimitState {
///         self.0.state()
///     }
/// }
///
/// let own = RateLimit::new().requests_per_minute(100).build()?;
/// let limiter = Limiter::shared(Arc::new(Standby(own)));
/// assert_eq!(limiter.state().requests_remaining, Some(100));
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
pub trait SharedLimiter: Debug + Send + Sync {
    /// Takes one request and `tokens` as soon as it is this request's turn. Where `wait` is false and it would have to
    /// wait, it refuses with [`LimitReason::QueueFull`](super::LimitReason::QueueFull). Makes its permit with
    /// [`Permit::shared`].
    fn admit(self: Arc<Self>, tokens: u32, wait: bool) -> Admission;

    /// How long such a request would wait, as far as is known here.
    fn predicted_wait(&self, tokens: u32) -> Duration;

    /// The bucket that the head of the queue waits for, as far as is known here.
    fn waiting_for(&self) -> Bucket;

    /// How things stand, as far as is known here.
    fn state(&self) -> RateLimitState;

    /// The share of an estimate to reserve, in (0, 1].
    fn estimate_fraction(&self) -> f64 {
        1.0
    }

    /// An attempt succeeded.
    fn succeeded(&self) {}

    /// The provider refused an attempt for capacity.
    fn throttled(&self) {}

    /// Whether [`follow`](Self::follow) does anything with a hint.
    fn follows(&self) -> bool {
        false
    }

    /// The provider has said how its own limits stand.
    fn follow(&self, hint: &LimitHint) {
        let _ = hint;
    }

    /// The provider asked for silence until then.
    fn hold_until(&self, until: Instant) {
        let _ = until;
    }
}

/// The other end of a [`Permit`] that a [`SharedLimiter`] gave.
pub trait SharedPermit: Debug + Send + Sync {
    /// Gives back the slot, and what was not spent. Called once. Must not wait: it also runs when a permit is dropped.
    fn settle(self: Box<Self>, settlement: Settlement);
}

#[cfg(all(test, not(loom)))]
mod tests;
