//! A closure as an operation.

use super::{AttemptContext, AttemptInfo, Classify, Failed, Interrupt, Operation, Signal, Stop, Tried, Verdict};
use crate::record::ConfigError;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// What failed: the operation itself, or the engine cut it off.
#[derive(Clone, Debug)]
pub enum Cause<E> {
    /// The operation's own error, unchanged.
    Operation(E),
    /// The engine cut the attempt off.
    Interrupted(Interrupt),
}

/// What is told before each wait for a retry.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RetryNotice {
    /// Number of the retry, from 1.
    pub retry: u32,
    /// How many there may be.
    pub max_retries: u32,
    /// The wait.
    pub delay: Duration,
    /// Whether the other side advised it.
    pub advised: bool,
    /// The label of the failure, from its [`Verdict`].
    pub label: &'static str,
}

impl RetryNotice {
    /// What to tell of a signal, if it is that a retry comes.
    pub(crate) fn of<E>(signal: &Signal<'_, E>, label: impl FnOnce(&E) -> &'static str) -> Option<Self> {
        match *signal {
            Signal::RetryScheduled { retry, max_retries, delay, advised, error } => {
                Some(Self { retry, max_retries, delay, advised, label: label(error) })
            }
            _ => None,
        }
    }
}

/// Why a run on a [`Policy`](super::Policy) failed.
#[derive(Debug)]
pub enum PolicyError<E> {
    /// The policy's own settings are wrong. Nothing was run.
    Config(ConfigError),
    /// The policy gave up.
    Failed(Failed<Cause<E>>),
}

impl<E> PolicyError<E> {
    /// Why the policy gave up; none where its settings are wrong.
    pub fn stop(&self) -> Option<Stop> {
        match self {
            Self::Config(_) => None,
            Self::Failed(failed) => Some(failed.stop),
        }
    }

    /// The failed attempts, in order.
    pub fn attempts(&self) -> &[Tried<Cause<E>>] {
        match self {
            Self::Config(_) => &[],
            Self::Failed(failed) => &failed.tried,
        }
    }

    /// The operation's own last error, unchanged; none where its last attempt was cut off or none was made.
    pub fn into_operation(self) -> Option<E> {
        match self {
            Self::Config(_) => None,
            Self::Failed(mut failed) => match failed.tried.pop()?.error {
                Cause::Operation(error) => Some(error),
                Cause::Interrupted(_) => None,
            },
        }
    }
}

impl<E: fmt::Display> fmt::Display for PolicyError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = match self {
            Self::Config(error) => return error.fmt(f),
            Self::Failed(failed) => failed,
        };
        failed.stop.fmt(f)?;
        let attempts = failed.tried.len();
        write!(f, " after {attempts} attempt{}", if attempts == 1 { "" } else { "s" })?;
        match failed.tried.last().map(|tried| &tried.error) {
            Some(Cause::Operation(error)) => write!(f, ": {error}"),
            Some(Cause::Interrupted(by)) => write!(f, ": {by}"),
            None => Ok(()),
        }
    }
}

impl<E: Error + 'static> Error for PolicyError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Failed(failed) => match &failed.tried.last()?.error {
                Cause::Operation(error) => Some(error),
                Cause::Interrupted(_) => None,
            },
        }
    }
}

/// Runs a closure as an operation. A closure cannot say when its request is on the wire, so it counts as sent at once.
pub(super) struct FnOperation<'a, F, C> {
    operation: F,
    classify: &'a C,
    on_retry: Option<&'a (dyn Fn(&RetryNotice) + Send + Sync)>,
}

impl<'a, F, C> FnOperation<'a, F, C> {
    pub(super) fn new(
        operation: F,
        classify: &'a C,
        on_retry: Option<&'a (dyn Fn(&RetryNotice) + Send + Sync)>,
    ) -> Self {
        Self { operation, classify, on_retry }
    }
}

impl<F, Fut, T, E, C> Operation for FnOperation<'_, F, C>
where
    C: Classify<E> + Sync,
    F: FnMut(AttemptInfo) -> Fut + Send,
    Fut: Future<Output = Result<T, E>> + Send,
    T: Send,
    E: Send,
{
    type Output = T;
    type Error = Cause<E>;

    fn attempt<'a>(&'a mut self, cx: AttemptContext<'a>) -> impl Future<Output = Result<T, Cause<E>>> + Send {
        let attempt = (self.operation)(AttemptInfo { index: cx.index, trial: cx.trial });
        cx.progress.sent();
        async move { attempt.await.map_err(Cause::Operation) }
    }

    fn interrupted(&mut self, by: Interrupt) -> Cause<E> {
        Cause::Interrupted(by)
    }

    fn classify(&self, error: &Cause<E>) -> Verdict {
        match error {
            Cause::Operation(error) => self.classify.classify(error),
            Cause::Interrupted(by) => by.verdict(),
        }
    }

    fn observe(&self, signal: Signal<'_, Cause<E>>) {
        if let Some(hook) = self.on_retry
            && let Some(notice) = RetryNotice::of(&signal, |error| self.classify(error).label)
        {
            hook(&notice);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
