//! The error for a request that the policy ended without a response.

use crate::resilience::{Interrupt, Stop, Verdict};
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The policy ended a request without a response to hand back: the circuit or the limiter refused, the caller cancelled, or
/// time ran out.
///
/// Where an attempt before it failed by the sender's own error, that is its [`source`](Error::source).
#[derive(Debug)]
pub struct Stopped {
    pub(super) stop: Stop,
    pub(super) cut: Option<Interrupt>,
    pub(super) attempts: usize,
    pub(super) sent: bool,
    pub(super) last: Option<Verdict>,
    pub(super) source: Option<Box<dyn Error + Send + Sync>>,
}

impl Stopped {
    /// Why the policy gave up. [`Stop::UsedUp`] and [`Stop::NotRetryable`] stand here only where the last attempt was
    /// [cut off](Self::interrupt).
    pub fn stop(&self) -> Stop {
        self.stop
    }

    /// What cut the last attempt off, if anything did.
    pub fn interrupt(&self) -> Option<Interrupt> {
        self.cut
    }

    /// How many attempts were made.
    pub fn attempts(&self) -> usize {
        self.attempts
    }

    /// Whether the request may have reached the other side.
    pub fn may_have_been_sent(&self) -> bool {
        self.sent
    }

    /// The name of the last failed attempt's failure, such as `overloaded`; none where no attempt was made.
    pub fn last_label(&self) -> Option<&'static str> {
        self.last.map(|last| last.label)
    }

    /// The status that the last failed attempt was answered with, if it was.
    pub fn last_status(&self) -> Option<u16> {
        self.last?.tag
    }

    /// How long until it is worth trying again, where the circuit refused and knows.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.stop {
            Stop::Circuit(refusal) => refusal.retry_after(),
            _ => None,
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cut {
            Some(by) => by.fmt(f)?,
            None => self.stop.fmt(f)?,
        }
        match self.attempts {
            0 => return f.write_str(", nothing was sent"),
            1 => f.write_str(", after 1 attempt")?,
            attempts => write!(f, ", after {attempts} attempts")?,
        }
        match self.last {
            Some(Verdict { label, tag: Some(status), .. }) => write!(f, ", the last {label} ({status})"),
            Some(Verdict { label, .. }) if self.cut.is_none() => write!(f, ", the last {label}"),
            _ => Ok(()),
        }
    }
}

impl Error for Stopped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&**self.source.as_ref()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_why_how_often_and_what_came_before() {
        let last = Verdict { tag: Some(503), ..Verdict::transient("server_error") };
        let stopped =
            Stopped { stop: Stop::Cancelled, cut: None, attempts: 2, sent: true, last: Some(last), source: None };
        assert_eq!(stopped.to_string(), "cancelled, after 2 attempts, the last server_error (503)");
        let stopped = Stopped { attempts: 0, last: None, ..stopped };
        assert_eq!(stopped.to_string(), "cancelled, nothing was sent");
        let by = Interrupt::Timeout(Duration::from_secs(2));
        let stopped = Stopped { stop: Stop::UsedUp, cut: Some(by), attempts: 1, last: Some(by.verdict()), ..stopped };
        assert_eq!(stopped.to_string(), "timed out after 2s, after 1 attempt");
    }
}
