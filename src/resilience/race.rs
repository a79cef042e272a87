//! A future, cut short by an instant or a cancellation. The only place where the engine arms its timer.

use super::Interrupt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// The timer of one run: made when it is first needed, then moved. Attempt, wait and queue never overlap.
pub(super) type Timer<'a> = Pin<&'a mut Option<Sleep>>;

/// Ready once `at` has come.
pub(super) fn poll_timer(mut timer: Timer<'_>, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
    match timer.as_mut().as_pin_mut() {
        None => timer.set(Some(sleep_until(at))),
        Some(sleep) if sleep.deadline() != at => sleep.reset(at),
        Some(_) => {}
    }
    timer.as_pin_mut().map_or(Poll::Pending, |sleep| sleep.poll(cx))
}

/// The tokens that may cancel a run: the call's and the client's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cancel<'a>([Option<&'a CancellationToken>; 2]);

impl<'a> Cancel<'a> {
    /// Cancelled when either is.
    pub fn either(one: Option<&'a CancellationToken>, other: Option<&'a CancellationToken>) -> Self {
        Self([one, other])
    }

    /// Whether one of them is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.iter().flatten().any(|token| token.is_cancelled())
    }
}

/// Runs `future` until it is ready, `cut` comes or a token is cancelled. Nothing is armed unless `future` is pending.
///
/// The future comes pinned: an attempt's is large, and would be moved, and kept twice, if it were taken by value.
#[expect(clippy::manual_async_fn, reason = "an async fn keeps its arguments twice, and there is one in each call")]
pub(super) fn race<'a, T>(
    mut future: Pin<&'a mut impl Future<Output = T>>,
    mut timer: Timer<'a>,
    cut: Option<(Instant, Interrupt)>,
    cancel: Cancel<'a>,
) -> impl Future<Output = Result<T, Interrupt>> {
    async move {
        let mut first = pin!(None::<WaitForCancellationFuture<'_>>);
        let mut second = pin!(None::<WaitForCancellationFuture<'_>>);
        poll_fn(|cx| {
            if let Poll::Ready(value) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(value));
            }
            for (token, waiting) in cancel.0.into_iter().zip([&mut first, &mut second]) {
                let Some(token) = token else { continue };
                if waiting.is_none() {
                    waiting.set(Some(token.cancelled()));
                }
                if waiting.as_mut().as_pin_mut().is_some_and(|cancelled| cancelled.poll(cx).is_ready()) {
                    return Poll::Ready(Err(Interrupt::Cancelled));
                }
            }
            let Some((at, by)) = cut else { return Poll::Pending };
            ready!(poll_timer(timer.as_mut(), cx, at));
            Poll::Ready(Err(by))
        })
        .await
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
