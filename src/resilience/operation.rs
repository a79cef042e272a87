//! The seam between the engine and what it runs.

use super::LimitHint;
use super::limiter::Bucket;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::Instant;

/// The label of an attempt that had no answer in time, whoever it was that would not wait longer.
pub(super) const TIMED_OUT: &str = "request_timeout";

/// What a failure means for the engine: whether to try again, and whether it is evidence about the target's health.
///
/// Rule packs fill it from status, headers and body; the engine itself knows none of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Whether the same operation could succeed if it were tried again, and when.
    pub retry: Advice,
    /// Whether the failure is evidence for the circuit breaker.
    pub health: Health,
    /// Whether the other side refused for rate: an adaptive limiter slows down.
    pub throttled: bool,
    /// A short name of the failure, for breakdowns and events.
    pub label: &'static str,
    /// A number that the circuit gives back when it refuses later. The client's is the HTTP status.
    pub tag: Option<u16>,
}

impl Verdict {
    /// A failure that backoff may cure and that counts as evidence.
    pub const fn transient(label: &'static str) -> Self {
        Self { retry: Advice::Backoff, health: Health::Bad, throttled: false, label, tag: None }
    }

    /// A failure that trying again cannot cure and that says nothing about health.
    pub const fn permanent(label: &'static str) -> Self {
        Self { retry: Advice::Never, health: Health::Neutral, throttled: false, label, tag: None }
    }
}

/// Whether and when to try again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Advice {
    /// It cannot help.
    Never,
    /// After the computed backoff.
    Backoff,
    /// After exactly this wait, which the other side advised. [`Duration::ZERO`] means at once.
    After(Duration),
}

/// Whether a failure is evidence about the health of what was called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Health {
    /// It counts as a failure.
    Bad,
    /// It says nothing: the caller's own mistake, or a refusal.
    Neutral,
}

/// Why the engine, not the operation, ended an attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Interrupt {
    /// The attempt exceeded this time.
    Timeout(Duration),
    /// The run's deadline passed.
    Deadline,
    /// The caller cancelled.
    Cancelled,
}

impl Interrupt {
    /// What it means, for an operation that knows no better: a timeout is evidence and may be tried again, the caller's own
    /// impatience is neither.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Timeout(_) => Verdict::transient(TIMED_OUT),
            Self::Deadline => Verdict::permanent("deadline_exceeded"),
            Self::Cancelled => Verdict::permanent("aborted"),
        }
    }
}

impl fmt::Display for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout(after) => write!(f, "timed out after {after:?}"),
            Self::Deadline => f.write_str("the deadline passed"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// What a closure is told about its attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct AttemptInfo {
    /// Number of the attempt, from 0.
    pub index: u32,
    /// Whether the attempt is a trial of a half-open circuit.
    pub trial: bool,
}

/// What a running attempt is told, and how it reports its progress.
#[derive(Clone, Copy, Debug)]
pub struct AttemptContext<'a> {
    /// Number of the attempt, from 0.
    pub index: u32,
    /// Whether the attempt is a trial of a half-open circuit.
    pub trial: bool,
    /// When it began, without its time in the limiter's queue: an operation need not read the clock for that.
    pub started: Instant,
    /// Where the attempt marks how far it came.
    pub progress: &'a Progress,
}

/// How far an attempt came. Read when the attempt is cut off or dropped: it decides what is given back and what counts.
#[derive(Debug, Default)]
pub struct Progress(AtomicU8);

impl Progress {
    const SENT: u8 = 1;
    const HEAD: u8 = 2;

    /// Marks that the request may have reached the other side.
    pub fn sent(&self) {
        self.0.fetch_or(Self::SENT, Relaxed);
    }

    /// Takes the mark back: it turned out that nothing can have arrived.
    pub fn unsent(&self) {
        self.0.store(0, Relaxed);
    }

    /// Marks that the other side began to answer.
    pub fn head(&self) {
        self.0.fetch_or(Self::SENT | Self::HEAD, Relaxed);
    }

    /// Marks that there is an output: then there was an answer, even where the operation does not say so.
    pub(super) fn answered(&mut self) {
        *self.0.get_mut() |= Self::HEAD;
    }

    /// Whether the request may have reached the other side.
    pub fn is_sent(&self) -> bool {
        self.0.load(Relaxed) & Self::SENT != 0
    }

    /// Whether the other side began to answer.
    pub fn has_head(&self) -> bool {
        self.0.load(Relaxed) & Self::HEAD != 0
    }
}

/// What the engine tells an operation about the run, as it happens.
#[derive(Debug)]
#[non_exhaustive]
pub enum Signal<'a, E> {
    /// An attempt is about to be made.
    AttemptStarted {
        /// Its number, from 0.
        index: u32,
    },
    /// An attempt failed.
    AttemptFailed {
        /// Its number, from 0.
        index: u32,
        /// The failure.
        error: &'a E,
    },
    /// Another attempt will be made after a wait.
    RetryScheduled {
        /// Number of the retry, from 1.
        retry: u32,
        /// How many there may be.
        max_retries: u32,
        /// The wait.
        delay: Duration,
        /// Whether the other side advised it.
        advised: bool,
        /// The failure that caused it.
        error: &'a E,
    },
    /// An attempt had to wait in the limiter's queue.
    RateLimited {
        /// How long it waited.
        waited: Duration,
        /// For which bucket.
        bucket: Bucket,
    },
    /// A retry was wanted and the budget refused it.
    BudgetExhausted {
        /// The failure that wanted it.
        error: &'a E,
    },
}

/// Anything that the engine can run: one attempt at a time, with its failures classified.
///
/// A trait and not a closure, because a timeout drops the attempt's future, and the operation must still say what it had
/// sent.
pub trait Operation: Send {
    /// What a successful attempt gives.
    type Output: Send;
    /// What a failed attempt gives.
    type Error: Send;

    /// Makes one attempt.
    fn attempt<'a>(
        &'a mut self,
        cx: AttemptContext<'a>,
    ) -> impl Future<Output = Result<Self::Output, Self::Error>> + Send;

    /// The engine cut the attempt off: the operation's own error for it, with the evidence that it kept.
    fn interrupted(&mut self, by: Interrupt) -> Self::Error;

    /// What a failure means.
    fn classify(&self, error: &Self::Error) -> Verdict;

    /// The tokens that a failed attempt spent, where that is known; `None` lets the estimate stand.
    fn spent(&self, _error: &Self::Error) -> Option<u32> {
        None
    }

    /// What the failed attempt said about the other side's limits. Asked only for a limiter that follows them.
    fn limits(&self, _error: &Self::Error) -> Option<LimitHint> {
        None
    }

    /// Told what happens, as it happens. Costs nothing where it is not implemented.
    fn observe(&self, _signal: Signal<'_, Self::Error>) {}
}

/// Says what an error of type `E` means to the engine.
pub trait Classify<E: ?Sized>: Send + Sync {
    /// The verdict on `error`.
    fn classify(&self, error: &E) -> Verdict;
}

impl<E: ?Sized, F: Fn(&E) -> Verdict + Send + Sync> Classify<E> for F {
    fn classify(&self, error: &E) -> Verdict {
        self(error)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
