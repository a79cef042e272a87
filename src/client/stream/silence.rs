//! How long a stream may be silent.

use crate::record::Silence;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Watches for silence: in bytes, and in chunks with content. One timer for both, made when the stream first has to wait,
/// and never moved for a chunk: it is looked at when it fires.
pub(super) struct Watch {
    idle: Option<Duration>,
    stall: Option<Duration>,
    last_byte: Instant,
    last_content: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Watch {
    pub(super) fn new(idle: Option<Duration>, stall: Option<Duration>) -> Self {
        let now = Instant::now();
        Self { idle, stall, last_byte: now, last_content: now, timer: None }
    }

    /// The stream has nothing to give now. `bytes` and `content` say what has come since this was last asked; time in which
    /// nobody asked is not silence.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, bytes: bool, content: bool) -> Poll<(Silence, Duration)> {
        if self.idle.is_none() && self.stall.is_none() {
            return Poll::Pending;
        }
        let mut now = Instant::now();
        if bytes {
            self.last_byte = now;
        }
        if content {
            self.last_content = now;
        }
        loop {
            let due = |since: Instant, limit: Option<Duration>| limit.and_then(|limit| since.checked_add(limit));
            let (idle, stall) = (due(self.last_byte, self.idle), due(self.last_content, self.stall));
            let Some(due) = [idle, stall].into_iter().flatten().min() else { return Poll::Pending };
            if now >= due {
                let (silence, limit) =
                    if idle == Some(due) { (Silence::Bytes, self.idle) } else { (Silence::Content, self.stall) };
                return Poll::Ready((silence, limit.unwrap_or_default()));
            }
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
            // A timer that fires early is cheaper than one that is moved for every chunk; a late one would be wrong.
            if timer.deadline() > due || timer.is_elapsed() {
                timer.as_mut().reset(due);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            now = Instant::now();
        }
    }
}
