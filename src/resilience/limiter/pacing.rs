//! The provider's word on its own limits, as bounds on what goes out.

use super::bucket::TokenBucket;
use crate::resilience::clock::later;
use std::time::Duration;
use tokio::time::Instant;

/// The window that a bucket refills in.
const MINUTE: Duration = Duration::from_secs(60);

/// What the provider has asked for.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    /// Nothing goes out before.
    pub(super) quiet_until: Option<Instant>,
    pub(super) requests: Word,
    pub(super) tokens: Word,
}

/// What one kind of header has said last.
#[derive(Debug, Default)]
pub(super) struct Word {
    /// Nothing was left; the reset.
    closed_until: Option<Instant>,
    /// What is left until the reset, where no bucket here refills as the provider's does.
    allowance: Option<(u64, Instant)>,
}

/// One header's worth of [`LimitHint`](crate::resilience::LimitHint).
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) remaining: u64,
    pub(super) reset: Option<Duration>,
    pub(super) window: Option<Duration>,
}

impl Word {
    /// Lowers the bucket to what is left, and remembers what the bucket cannot know.
    pub(super) fn hear(&mut self, heard: Heard, bucket: Option<&mut TokenBucket>, now: Instant) {
        let refills_alike = bucket.is_some() && heard.window.is_none_or(|window| window <= MINUTE);
        if let Some(bucket) = bucket {
            bucket.lower_to(heard.remaining);
        }
        let Some(until) = heard.reset.map(|reset| later(now, reset)) else { return };
        if heard.remaining == 0 {
            self.closed_until = self.closed_until.max(Some(until));
            self.allowance = None;
        } else {
            self.allowance = (!refills_alike).then_some((heard.remaining, until));
        }
    }

    /// When it lets `n` out, if that is not now.
    pub(super) fn opens_at(&self, n: u64, now: Instant) -> Option<Instant> {
        if n == 0 {
            return None;
        }
        let used_up = self.allowance.filter(|(left, _)| *left < n).map(|(_, until)| until);
        self.closed_until.max(used_up).filter(|until| *until > now)
    }

    pub(super) fn take(&mut self, n: u64) {
        if let Some((left, _)) = &mut self.allowance {
            *left = left.saturating_sub(n);
        }
    }

    pub(super) fn give(&mut self, n: i64) {
        if let Some((left, _)) = &mut self.allowance {
            *left = left.saturating_add_signed(n);
        }
    }

    /// What it lets out now. `None`: it has nothing to say.
    pub(super) fn left(&self, now: Instant) -> Option<u64> {
        let closed = self.closed_until.filter(|until| *until > now).map(|_| 0);
        closed.or_else(|| self.allowance.filter(|(_, until)| *until > now).map(|(left, _)| left))
    }
}
