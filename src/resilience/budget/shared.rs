//! A retry budget that a fleet shares.

use super::RetryBudgetState;
use futures_core::future::BoxFuture;
use std::fmt::Debug;

/// The books of a retry budget kept outside this process. Run it with [`Budget::shared`](super::Budget::shared).
///
/// Only asking may wait, and only it decides. The rest is called from hot paths and from `Drop`: it must return at once,
/// and queue what has to travel.
pub trait SharedBudget: Debug + Send + Sync {
    /// Records a first attempt.
    fn record_first(&self);

    /// Checks the ratio and records a retry in one atomic step. Gives a number by which the mark can be given back, or
    /// `None` when the budget is spent.
    ///
    /// A caller may drop the future at any await; a mark that was already recorded must then be given back.
    fn try_retry(&self) -> BoxFuture<'_, Option<u64>>;

    /// The retry marked by this number was not sent. Ignored when its time has left the window.
    fn give_back(&self, mark: u64);

    /// The window as this process last knew it.
    fn state(&self) -> RetryBudgetState;
}
