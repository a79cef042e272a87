//! The guard of one attempt.

use super::{Settlement, SharedPermit, local::Local};
use crate::resilience::sync::Arc;

/// Leave for one attempt: its slot, its request and its tokens.
///
/// Give it back with what is known. Dropping it frees the slot and lets the estimate stand, since tokens that may have
/// been spent must not be spent again. Giving back never waits.
///
/// ```
/// # use steadfast::resilience::RateLimit;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = RateLimit::new().requests_per_minute(10).max_concurrent(1).build()?;
///
/// limiter.acquire(800).await?.cancel(); // the connection was refused
/// assert_eq!(limiter.state().requests_remaining, Some(10));
///
/// let permit = limiter.acquire(800).await?;
/// assert!(limiter.acquire_now(800).await.is_err()); // one at a time
/// permit.settle(Some(1_234)); // more than had been estimated
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "dropping a permit frees its slot at once"]
pub struct Permit(Option<Source>);

/// Two words, and not three: it is moved with every answer on its way.
#[derive(Debug)]
enum Source {
    Local { limiter: Arc<Local>, tokens: u32 },
    Shared(Box<Box<dyn SharedPermit>>),
}

impl Permit {
    pub(super) fn local(limiter: Arc<Local>, tokens: u32) -> Self {
        Self(Some(Source::Local { limiter, tokens }))
    }

    /// A permit of a [`SharedLimiter`](super::SharedLimiter).
    pub fn shared(permit: impl SharedPermit + 'static) -> Self {
        Self(Some(Source::Shared(Box::new(Box::new(permit)))))
    }

    /// The attempt is over. `Some(n)`: it spent n tokens, and the difference to the estimate is given back, or taken
    /// in addition. `None`: nobody knows, and the estimate stays.
    pub fn settle(mut self, spent: Option<u32>) {
        self.give_back(Settlement::of(spent));
    }

    /// Nothing was sent: request, tokens and slot all come back.
    pub fn cancel(mut self) {
        self.give_back(Settlement::Unsent);
    }

    pub(super) fn give_back(&mut self, settlement: Settlement) {
        match self.0.take() {
            Some(Source::Local { limiter, tokens }) => limiter.settle(tokens, settlement),
            Some(Source::Shared(permit)) => permit.settle(settlement),
            None => {}
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.give_back(Settlement::Estimate);
    }
}

/// Leave for one attempt, for one who keeps the limiter beside it and gives it back by hand: with
/// [`Limiter::give_back`](super::Limiter::give_back).
#[derive(Debug)]
pub(crate) enum Taken {
    /// So many tokens of a limiter of this process. Unlike a permit it counts no reference, which threads would share.
    Local(u32),
    Permit(Permit),
}
