//! Wall time that follows tokio's clock: a paused clock pauses both.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// How far the system's clock may run ahead before it is believed.
const ASLEEP: Duration = Duration::from_secs(60);

/// The wall time now: the system's time when it was first asked, plus the time that tokio's clock has counted since.
pub(crate) fn wall_now() -> SystemTime {
    wall_of(Instant::now())
}

/// The wall time at `now`, which is the present.
#[allow(clippy::disallowed_methods)] // the one place that reads the system clock
fn wall_of(now: Instant) -> SystemTime {
    static START: OnceLock<(SystemTime, Instant)> = OnceLock::new();
    let system = SystemTime::now();
    awake(wall_from(*START.get_or_init(|| (system, now)), now), system)
}

/// The time that was counted; the system's, where the count has missed some: a machine that sleeps counts nothing, and a
/// signature of the time at which it fell asleep would never be accepted again.
fn awake(counted: SystemTime, system: SystemTime) -> SystemTime {
    if system.duration_since(counted).is_ok_and(|missed| missed > ASLEEP) { system } else { counted }
}

/// The wall time at `instant`.
pub(crate) fn wall_at(instant: Instant) -> SystemTime {
    let now = Instant::now();
    wall_from((wall_of(now), now), instant)
}

/// The wall time at `instant`, when that at another one is known.
fn wall_from((wall, known): (SystemTime, Instant), instant: Instant) -> SystemTime {
    match instant.checked_duration_since(known) {
        Some(elapsed) => wall + elapsed,
        // It is past, or of a paused clock that stands before that of the runtime that came first.
        None => wall - known.duration_since(instant),
    }
}

/// `now + wait`, and a time that never comes where that cannot be counted.
pub(crate) fn later(now: Instant, wait: Duration) -> Instant {
    const NEVER: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);
    now.checked_add(wait).or_else(|| now.checked_add(NEVER)).unwrap_or(now)
}

#[cfg(all(test, not(loom)))]
mod tests;
