//! A place in the queue.

use super::{
    Bucket, LimitRefusal, Permit, SharedLimiter,
    local::{Local, Waiter},
    shared::Admission,
};
use crate::resilience::sync;
use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::time::Instant;

/// The answer to a waiter.
#[derive(Debug)]
pub(crate) enum Turn {
    /// The wait is over.
    Served(Result<Permit, LimitRefusal>),
    /// Ask again when woken, and at this instant at the latest. The caller brings the timer.
    Wait(Option<Instant>),
}

/// A request that waits for its turn. Joins the queue when first polled; dropping it leaves the queue at once, and the
/// next is served.
#[derive(Debug)]
pub(crate) struct Ticket(Source);

enum Source {
    Local(LocalTicket),
    Shared(Arc<dyn SharedLimiter>, Admission),
}

#[derive(Debug)]
struct LocalTicket {
    limiter: sync::Arc<Local>,
    waiter: Waiter,
}

impl Ticket {
    pub(super) fn local(limiter: sync::Arc<Local>, waiter: Waiter) -> Self {
        Self(Source::Local(LocalTicket { limiter, waiter }))
    }

    pub(super) fn shared(limiter: Arc<dyn SharedLimiter>, tokens: u32, may_wait: bool) -> Self {
        let admission = Arc::clone(&limiter).admit(tokens, may_wait);
        Self(Source::Shared(limiter, admission))
    }

    /// Takes the permit if it is this request's turn, and otherwise says when to ask again.
    pub(crate) fn poll_until(&mut self, cx: &mut Context<'_>, now: Instant) -> Turn {
        match &mut self.0 {
            Source::Local(LocalTicket { limiter, waiter }) => match limiter.poll(waiter, cx.waker(), now) {
                Ok(Ok(())) => Turn::Served(Ok(Permit::local(sync::Arc::clone(limiter), waiter.tokens))),
                Ok(Err(refusal)) => Turn::Served(Err(refusal)),
                Err(again) => Turn::Wait(again),
            },
            Source::Shared(_, admission) => match admission.as_mut().poll(cx) {
                Poll::Ready(answer) => Turn::Served(answer),
                Poll::Pending => Turn::Wait(None),
            },
        }
    }

    /// The bucket that it waits for, or has waited for: the one without room for the head of the queue.
    pub(crate) fn bucket(&self) -> Bucket {
        match &self.0 {
            Source::Local(ticket) => ticket.waiter.bucket,
            Source::Shared(limiter, _) => limiter.waiting_for(),
        }
    }
}

impl Drop for LocalTicket {
    fn drop(&mut self) {
        self.limiter.leave(&mut self.waiter);
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(ticket) => ticket.fmt(f),
            Self::Shared(limiter, _) => limiter.fmt(f),
        }
    }
}
