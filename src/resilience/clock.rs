//! Wall time that follows tokio's clock: a paused clock pauses both.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// The wall time now: the system's time when it was first asked, plus the time that tokio's clock has counted since.
#[allow(clippy::disallowed_methods)] // the one place that reads the system clock
pub(crate) fn wall_now() -> SystemTime {
    static START: OnceLock<(SystemTime, Instant)> = OnceLock::new();
    let now = Instant::now();
    let (wall, start) = *START.get_or_init(|| (SystemTime::now(), now));
    match now.checked_duration_since(start) {
        Some(elapsed) => wall + elapsed,
        // Another runtime's paused clock may stand before the one that came first.
        None => wall - start.duration_since(now),
    }
}

/// The wall time at `instant`.
pub(crate) fn wall_at(instant: Instant) -> SystemTime {
    let now = Instant::now();
    let wall = wall_now();
    match instant.checked_duration_since(now) {
        Some(ahead) => wall + ahead,
        None => wall - now.duration_since(instant),
    }
}

/// `now + wait`, and a time that never comes where that cannot be counted.
pub(crate) fn later(now: Instant, wait: Duration) -> Instant {
    const NEVER: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);
    now.checked_add(wait.min(NEVER)).unwrap_or(now)
}
