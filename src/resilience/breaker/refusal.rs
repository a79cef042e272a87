//! Why a circuit refused.

use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// A refused call. It was not sent. Small, and made without allocating.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CircuitRefusal {
    /// What the circuit is waiting for.
    pub reason: RefusalReason,
    /// How many failures opened the circuit: those in a row, or in the window, and the trials that have failed since.
    pub failures: u32,
    /// The label of the last counted failure.
    pub last_label: Option<&'static str>,
    /// The tag of the last counted failure.
    pub last_tag: Option<u16>,
    /// When the circuit last opened.
    pub opened_at: Instant,
}

/// What a circuit that refuses is waiting for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// For its cooldown to end; or, after closing, for its recovery ramp to admit the next call.
    CoolingDown {
        /// How long that still takes. On a ramp: until the next call is admitted if no other comes before it.
        remaining: Duration,
    },
    /// For an operator: it is held open by hand.
    HeldOpen,
    /// For the trials that are out.
    TrialInFlight,
}

impl CircuitRefusal {
    /// A refusal by a circuit that opened at `opened_at`, for a shared breaker to give.
    pub fn new(reason: RefusalReason, opened_at: Instant) -> Self {
        Self { reason, failures: 0, last_label: None, last_tag: None, opened_at }
    }

    /// How long until it is worth asking again, if that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.reason {
            RefusalReason::CoolingDown { remaining } => Some(remaining),
            RefusalReason::HeldOpen | RefusalReason::TrialInFlight => None,
        }
    }
}

impl fmt::Display for CircuitRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            RefusalReason::CoolingDown { remaining } => write!(f, "circuit cooling down for {remaining:.1?}")?,
            RefusalReason::HeldOpen => f.write_str("circuit held open")?,
            RefusalReason::TrialInFlight => f.write_str("circuit waiting for its trial")?,
        }
        write!(f, " after {} failures", self.failures)?;
        self.last_label.map_or(Ok(()), |label| write!(f, ", the last {label}"))
    }
}

impl std::error::Error for CircuitRefusal {}
