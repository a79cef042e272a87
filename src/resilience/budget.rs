//! Retry budget: is retrying still worth the capacity it costs?
//!
//! Retries help against single failures and hurt in an outage, when every call fails and every retry adds load to what is
//! down. A budget watches all attempts at one target, healthy or not, and allows a retry only while retries are a small
//! share of them. It never waits: the check and the recording of a retry are one step.
//!
//! # Defaults
//!
//! There is no budget unless one is configured.

mod settings;
mod shared;

pub use settings::RetryBudget;
pub use shared::SharedBudget;

use super::answer::Answer;
use super::sync::{
    Mutex, MutexGuard, OwnLines,
    atomic::{AtomicU64, Ordering},
    lock,
};
use super::window::{Bucket, Tally, Window, nanos};
use std::fmt;
use std::sync::Arc;
use tokio::time::Instant;

/// A running retry budget, made from [`RetryBudget`]. Cloning shares it.
///
/// ```
/// use std::time::Duration;
/// use steadfast::resilience::RetryBudget;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), steadfast::ConfigError> {
/// let budget = RetryBudget::new(Duration::from_secs(60), 10, 0.1).build()?;
/// for _ in 0..20 {
///     budget.record_first();
/// }
/// let first = budget.try_retry().await.expect("no retry yet");
/// let second = budget.try_retry().await.expect("1 of 21 is less than 0.1");
/// let third = budget.try_retry().await.expect("2 of 22 is less than 0.1");
/// assert!(budget.try_retry().await.is_none(), "3 of 23 is not");
///
/// first.sent(); // stays in the books
/// drop((second, third)); // were never sent, and do not count
/// assert_eq!((budget.state().attempts, budget.state().retries), (21, 1));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Budget(Arm);

#[derive(Clone, Debug)]
enum Arm {
    Local(Arc<Books>),
    Shared(Arc<dyn SharedBudget>),
}

impl Budget {
    /// A budget kept elsewhere, for a fleet.
    pub fn shared(budget: Arc<dyn SharedBudget>) -> Self {
        Self(Arm::Shared(budget))
    }

    fn local(settings: &RetryBudget, start: Instant) -> Self {
        Self(Arm::Local(Arc::new(Books::new(settings, start))))
    }

    /// Records a first attempt.
    pub fn record_first(&self) {
        self.record_first_at(Instant::now());
    }

    #[inline]
    pub(crate) fn record_first_at(&self, now: Instant) {
        match &self.0 {
            Arm::Local(books) => books.record_first(now),
            Arm::Shared(budget) => budget.record_first(),
        }
    }

    /// Records a retry if the budget allows one, in one step. `None`: it does not.
    ///
    /// Only a shared budget waits.
    pub async fn try_retry(&self) -> Option<BudgetMark> {
        self.try_retry_at(Instant::now()).get().await
    }

    pub(crate) fn try_retry_at(&self, now: Instant) -> Answer<'_, Option<BudgetMark>> {
        match &self.0 {
            Arm::Local(books) => {
                Answer::Now(books.try_retry(now).map(|bucket| BudgetMark::new(Held::Local(Arc::clone(books), bucket))))
            }
            Arm::Shared(budget) => Answer::Later(Box::pin(async move {
                budget.try_retry().await.map(|mark| BudgetMark::new(Held::Shared(Arc::clone(budget), mark)))
            })),
        }
    }

    /// What the trailing window holds now. With a shared budget, as this process last knew it.
    pub fn state(&self) -> RetryBudgetState {
        self.state_at(Instant::now())
    }

    pub(crate) fn state_at(&self, now: Instant) -> RetryBudgetState {
        match &self.0 {
            Arm::Local(books) => books.state(now),
            Arm::Shared(budget) => budget.state(),
        }
    }
}

/// A retry that the budget has recorded.
///
/// Dropping it gives the retry back, as long as it is still in the window; [`sent`](Self::sent) keeps it in the books.
#[must_use = "dropping the mark gives the retry back"]
#[derive(Debug)]
pub struct BudgetMark {
    held: Option<Held>,
}

#[derive(Debug)]
enum Held {
    Local(Arc<Books>, Bucket),
    Shared(Arc<dyn SharedBudget>, u64),
}

impl BudgetMark {
    fn new(held: Held) -> Self {
        Self { held: Some(held) }
    }

    /// The retry was sent: it stays recorded.
    pub fn sent(mut self) {
        self.held = None;
    }
}

impl Drop for BudgetMark {
    fn drop(&mut self) {
        match self.held.take() {
            Some(Held::Local(books, bucket)) => lock(&books.window).take_back(bucket),
            Some(Held::Shared(budget, mark)) => budget.give_back(mark),
            None => {}
        }
    }
}

/// What a retry budget has in its window.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RetryBudgetState {
    /// Attempts, first and retried.
    pub attempts: u64,
    /// Retries among them, decided or sent.
    pub retries: u64,
    /// `retries / attempts`; 0 without attempts.
    pub retry_ratio: f64,
}

impl RetryBudgetState {
    /// The state of a window with `attempts`, `retries` of them retries.
    pub fn new(attempts: u64, retries: u64) -> Self {
        Self { attempts, retries, retry_ratio: Tally { all: attempts, marked: retries }.ratio() }
    }
}

/// The books of one process.
///
/// A first attempt is one add to `pending`, while the clock is in the window's newest bucket. Whoever finds that bucket
/// over, or wants a retry, moves `pending` into the window under the lock. A first attempt that loses the race against
/// this is counted in the next bucket.
struct Books {
    min_calls: u64,
    retry_ratio: f64,
    start: Instant,
    /// The end of the window's newest bucket, in nanoseconds since `start`.
    newest_ends: AtomicU64,
    /// First attempts that are not in the window yet.
    pending: OwnLines<AtomicU64>,
    window: Mutex<Window>,
}

impl Books {
    fn new(settings: &RetryBudget, start: Instant) -> Self {
        let window = Window::new(settings.window, start);
        Self {
            min_calls: settings.min_calls.into(),
            retry_ratio: settings.retry_ratio,
            start,
            newest_ends: AtomicU64::new(window.newest_ends()),
            pending: OwnLines(AtomicU64::new(0)),
            window: Mutex::new(window),
        }
    }

    #[inline]
    fn record_first(&self, now: Instant) {
        if nanos(now.saturating_duration_since(self.start)) >= self.newest_ends.load(Ordering::Relaxed) {
            drop(self.turned(now));
        }
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    fn try_retry(&self, now: Instant) -> Option<Bucket> {
        let mut window = self.turned(now);
        let tally = window.total();
        let spent = tally.all >= self.min_calls && tally.ratio() >= self.retry_ratio;
        (!spent).then(|| window.add_marked())
    }

    fn state(&self, now: Instant) -> RetryBudgetState {
        let Tally { all, marked } = self.turned(now).total();
        RetryBudgetState::new(all, marked)
    }

    /// The window as it is at `now`, with all that was pending.
    #[cold]
    fn turned(&self, now: Instant) -> MutexGuard<'_, Window> {
        let mut window = lock(&self.window);
        window.add(self.pending.swap(0, Ordering::Relaxed));
        window.turn(now);
        self.newest_ends.store(window.newest_ends(), Ordering::Relaxed);
        window
    }
}

impl fmt::Debug for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { all, marked } = lock(&self.window).total();
        let attempts = all + self.pending.load(Ordering::Relaxed);
        f.debug_struct("Books").field("attempts", &attempts).field("retries", &marked).finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod interleavings;
#[cfg(all(test, not(loom)))]
mod tests;
