//! Rate limiter: stay under the provider's limits instead of bouncing off them.
//!
//! ```text
//!             room, and nobody waits
//! request ───────────────────────────────► permit ──► settle | cancel | drop
//!    │                                        ▲                   │
//!    └──► queue ──► head: told when to ask again, or woken ◄──────┘
//!           └──► cancelled, or waited too long: the next is woken
//! ```
//!
//! The decisions are in `core`, pure and with the time as an argument; its parts are the refilling `bucket`, the `queue`,
//! the moving ceiling of `aimd`, and the provider's word in `pacing`. `local` puts them under a lock that is held for
//! one decision, and takes back without it. A limiter has no timer and no task: whoever waits brings the timer.

mod aimd;
mod bucket;
mod core;
#[cfg(all(test, loom))]
mod interleavings;
mod local;
mod pacing;
mod permit;
mod queue;
mod refusal;
mod settings;
mod shared;
#[cfg(all(test, not(loom)))]
mod tests;
mod ticket;

pub use aimd::Aimd;
pub use permit::Permit;
pub(crate) use permit::Taken;
pub use refusal::{Bucket, LimitReason, LimitRefusal, RateLimitState};
pub use settings::RateLimit;
pub use shared::{Admission, Settlement, SharedLimiter, SharedPermit};
pub(crate) use ticket::{Ticket, Turn};

use super::{LimitHint, clock::later, sync};
use local::Local;
use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Poll, ready},
    time::Duration,
};
use tokio::time::Instant;

/// A running rate limiter, made by [`RateLimit::build`]. Clones share it.
///
/// A client uses it by itself; it is as good alone:
///
/// ```
/// use steadfast::resilience::RateLimit;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = RateLimit::new().requests_per_minute(500).tokens_per_minute(100_000).build()?;
///
/// let permit = limiter.acquire(2_000).await?; // waits for its turn
/// // .. send the request, which turns out to spend 700 tokens ..
/// permit.settle(Some(700));
///
/// let state = limiter.state();
/// assert_eq!((state.in_flight, state.queued), (0, 0));
/// assert!(state.tokens_remaining >= Some(99_300));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Limiter(Source);

#[derive(Clone)]
enum Source {
    Local(sync::Arc<Local>),
    Shared(Arc<dyn SharedLimiter>),
}

impl Limiter {
    fn local(settings: &RateLimit) -> Self {
        Self(Source::Local(sync::Arc::new(Local::new(settings))))
    }

    /// A limiter that is kept with other processes.
    pub fn shared(limiter: Arc<dyn SharedLimiter>) -> Self {
        Self(Source::Shared(limiter))
    }

    /// Waits for leave to send a request that is estimated at so many tokens.
    ///
    /// Dropping the future leaves the queue. Needs a tokio runtime with its timer, if it has to wait.
    ///
    /// # Errors
    /// [`Capacity`](LimitReason::Capacity) and [`QueueFull`](LimitReason::QueueFull) at once,
    /// [`QueueTimeout`](LimitReason::QueueTimeout) after [`RateLimit::max_queue_time`].
    pub fn acquire(&self, tokens: u32) -> impl Future<Output = Result<Permit, LimitRefusal>> + Send {
        self.acquire_by(tokens, true)
    }

    /// The same without waiting for its turn. (A [`SharedLimiter`] may still have to wait for an answer.)
    ///
    /// # Errors
    /// [`QueueFull`](LimitReason::QueueFull) where it would have to wait, and [`Capacity`](LimitReason::Capacity).
    pub fn acquire_now(&self, tokens: u32) -> impl Future<Output = Result<Permit, LimitRefusal>> + Send {
        self.acquire_by(tokens, false)
    }

    fn acquire_by(&self, tokens: u32, may_wait: bool) -> impl Future<Output = Result<Permit, LimitRefusal>> + Send {
        // In a box, once it is needed: whoever need not wait does not carry what waiting takes.
        let mut waiting = None;
        poll_fn(move |cx| {
            if waiting.is_none() {
                let now = Instant::now();
                if let Some(answer) = self.try_acquire_at(tokens, now) {
                    return Poll::Ready(answer);
                }
                waiting = Some(Box::pin(self.wait(tokens, may_wait, now)));
            }
            waiting.as_mut().map_or(Poll::Pending, |waiting| waiting.as_mut().poll(cx))
        })
    }

    async fn wait(&self, tokens: u32, may_wait: bool, now: Instant) -> Result<Permit, LimitRefusal> {
        let mut ticket = self.ticket(tokens, may_wait, now);
        let mut timer = pin!(None);
        poll_fn(|cx| {
            loop {
                match ticket.poll_until(cx, Instant::now()) {
                    Turn::Served(answer) => return Poll::Ready(answer),
                    Turn::Wait(None) => return Poll::Pending,
                    Turn::Wait(Some(until)) => timer.set(Some(tokio::time::sleep_until(until))),
                }
                if let Some(sleep) = timer.as_mut().as_pin_mut() {
                    ready!(sleep.poll(cx));
                }
            }
        })
        .await
    }

    /// How long a request of so many tokens would wait now, behind all who wait already, for the requests and tokens per
    /// minute and for the provider's resets; how long running attempts keep their slots cannot be known.
    /// [`Duration::MAX`] for a request that could never go out.
    pub fn predicted_wait(&self, tokens: u32) -> Duration {
        self.predicted_wait_at(tokens, Instant::now())
    }

    /// How things stand.
    pub fn state(&self) -> RateLimitState {
        match &self.0 {
            Source::Local(limiter) => limiter.state(Instant::now()),
            Source::Shared(limiter) => limiter.state(),
        }
    }

    /// The share of an estimate that its user should reserve, above 0 and at most 1.
    pub fn estimate_fraction(&self) -> f64 {
        match &self.0 {
            Source::Local(limiter) => limiter.settings().estimate_fraction,
            Source::Shared(limiter) => limiter.estimate_fraction(),
        }
    }

    /// Tells [`Aimd`] that an attempt has succeeded.
    pub fn succeeded(&self) {
        match &self.0 {
            Source::Local(limiter) => limiter.succeeded(),
            Source::Shared(limiter) => limiter.succeeded(),
        }
    }

    /// Tells [`Aimd`] that the provider has refused an attempt for capacity (429).
    pub fn throttled(&self) {
        self.throttled_at(Instant::now());
    }

    /// Whether [`follow`](Self::follow) does anything with a hint, so that headers need not be read in vain.
    pub fn follows(&self) -> bool {
        match &self.0 {
            Source::Local(limiter) => limiter.follows(),
            Source::Shared(limiter) => limiter.follows(),
        }
    }

    /// Paces by what the provider says is left, where [`RateLimit::follow_provider`] is on: what is left there bounds what
    /// goes out here, and nothing goes out before the reset once nothing is left. Never lets out more than the limits
    /// of this limiter.
    ///
    /// Settle the attempt that brought the hint first: the provider has counted it.
    pub fn follow(&self, hint: &LimitHint) {
        self.follow_at(hint, Instant::now());
    }

    /// Lets nothing out before `until`, where [`RateLimit::follow_provider`] is on: for the wait that a provider advised
    /// with a 429.
    pub fn hold_until(&self, until: Instant) {
        match &self.0 {
            Source::Local(limiter) => limiter.hold_until(until),
            Source::Shared(limiter) => limiter.hold_until(until),
        }
    }

    /// Takes a permit at once, if nobody waits and there is room. `None`: take a [`ticket`](Self::ticket).
    #[inline]
    pub(crate) fn try_acquire_at(&self, tokens: u32, now: Instant) -> Option<Result<Permit, LimitRefusal>> {
        let Source::Local(limiter) = &self.0 else { return None };
        Some(limiter.try_now(tokens, now)?.map(|()| Permit::local(sync::Arc::clone(limiter), tokens)))
    }

    /// [`try_acquire_at`](Self::try_acquire_at), to be given back by hand.
    #[inline]
    pub(crate) fn take_at(&self, tokens: u32, now: Instant) -> Option<Result<Taken, LimitRefusal>> {
        let Source::Local(limiter) = &self.0 else { return None };
        Some(limiter.try_now(tokens, now)?.map(|()| Taken::Local(tokens)))
    }

    /// Ends what was taken from this limiter.
    #[inline]
    pub(crate) fn give_back(&self, taken: Taken, settlement: Settlement) {
        match (taken, &self.0) {
            (Taken::Local(tokens), Source::Local(limiter)) => limiter.settle(tokens, settlement),
            (Taken::Local(_), Source::Shared(_)) => {} // of another limiter
            (Taken::Permit(mut permit), _) => permit.give_back(settlement),
        }
    }

    /// A request's way through the queue. Where it may not wait, it is refused instead.
    pub(crate) fn ticket(&self, tokens: u32, may_wait: bool, now: Instant) -> Ticket {
        match &self.0 {
            Source::Local(limiter) => Ticket::local(sync::Arc::clone(limiter), limiter.waiter(tokens, may_wait, now)),
            Source::Shared(limiter) => Ticket::shared(Arc::clone(limiter), tokens, may_wait),
        }
    }

    /// [`predicted_wait`](Self::predicted_wait), as of `now`.
    pub(crate) fn predicted_wait_at(&self, tokens: u32, now: Instant) -> Duration {
        match &self.0 {
            Source::Local(limiter) => limiter.predicted_wait(tokens, now),
            Source::Shared(limiter) => limiter.predicted_wait(tokens),
        }
    }

    /// How long a request would wait that would still wait at `end`, and the refusal that it is due.
    pub(crate) fn too_long_at(&self, tokens: u32, now: Instant, end: Instant) -> Option<(Duration, LimitRefusal)> {
        let wait = self.predicted_wait_at(tokens, now);
        // A wait that never ends means a request that can never fit: asked for a permit, the limiter says so.
        if wait == Duration::MAX || later(now, wait) <= end {
            return None;
        }
        let refusal = match &self.0 {
            Source::Local(limiter) => limiter.too_long(tokens, now),
            Source::Shared(limiter) => LimitRefusal::new(LimitReason::QueueTimeout, limiter.waiting_for(), 0),
        };
        Some((wait, refusal))
    }

    /// [`throttled`](Self::throttled), as of `now`.
    pub(crate) fn throttled_at(&self, now: Instant) {
        match &self.0 {
            Source::Local(limiter) => limiter.throttled(now),
            Source::Shared(limiter) => limiter.throttled(),
        }
    }

    /// [`follow`](Self::follow), as of `now`.
    pub(crate) fn follow_at(&self, hint: &LimitHint, now: Instant) {
        match &self.0 {
            Source::Local(limiter) => limiter.follow(hint, now),
            Source::Shared(limiter) => limiter.follow(hint),
        }
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("Limiter");
        match &self.0 {
            Source::Local(limiter) => tuple.field(limiter),
            Source::Shared(limiter) => tuple.field(limiter),
        };
        tuple.finish()
    }
}
