//! Credentials that are fetched when they are needed, and kept until they expire.

use crate::LlmError;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

/// They are fetched anew this long before they expire, so that they do not expire on their way.
const EARLY: Duration = Duration::from_secs(30);

/// Credentials, kept for all who want them; however many want them at once, one fetches.
pub(crate) struct Kept<T> {
    state: Mutex<State<T>>,
    fetched: Notify,
}

struct State<T> {
    /// What is kept, and until when it is good.
    value: Option<(T, Option<SystemTime>)>,
    /// Whether someone is fetching.
    fetching: bool,
    /// Counts what was fetched, so that an old one that is rejected does not throw away a new one.
    generation: u64,
}

/// What a look at what is kept says.
enum Look<T> {
    Kept(T, u64),
    Fetch,
    Wait,
}

impl<T: Clone> Kept<T> {
    /// What is good now, and its number unless it was fetched just for this. What `fetch` gives is good for the time beside
    /// it, or until it is rejected. `now` tells the time, since nothing here reads a clock.
    pub(crate) async fn get<F>(
        &self,
        now: impl Fn() -> SystemTime,
        fetch: impl FnOnce() -> F,
    ) -> Result<(T, Option<u64>), LlmError>
    where
        F: Future<Output = Result<(T, Option<Duration>), LlmError>>,
    {
        loop {
            let fetched = self.fetched.notified(); // before the look, so that no end of a fetch is missed
            match self.look(now()) {
                Look::Kept(value, generation) => return Ok((value, Some(generation))),
                Look::Fetch => {
                    let fetching = Fetching(self);
                    let (value, expires_in) = fetch().await?;
                    let until = expires_in.and_then(|time| now().checked_add(time.saturating_sub(EARLY)));
                    {
                        let mut state = self.lock();
                        state.generation += 1;
                        state.value = Some((value.clone(), until));
                    }
                    drop(fetching);
                    return Ok((value, None));
                }
                // Another call is fetching; it wakes all who wait, however it ends.
                Look::Wait => fetched.await,
            }
        }
    }

    /// The provider has rejected the kept one of this number: the next who wants one fetches another.
    pub(crate) fn reject(&self, generation: u64) {
        let mut state = self.lock();
        if state.generation == generation {
            state.value = None;
        }
    }

    fn look(&self, now: SystemTime) -> Look<T> {
        let mut state = self.lock();
        if let Some((value, _)) = state.value.as_ref().filter(|(_, until)| until.is_none_or(|until| now < until)) {
            return Look::Kept(value.clone(), state.generation);
        }
        if std::mem::replace(&mut state.fetching, true) { Look::Wait } else { Look::Fetch }
    }
}

impl<T> Kept<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        let state = Mutex::new(State { value: None, fetching: false, generation: 0 });
        Self { state, fetched: Notify::new() }
    }
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept(REDACTED)")
    }
}

/// The one that fetches. However it ends, those who wait look again, and one of them takes over if nothing is kept.
struct Fetching<'a, T>(&'a Kept<T>);

impl<T> Drop for Fetching<'_, T> {
    fn drop(&mut self) {
        self.0.lock().fetching = false;
        self.0.fetched.notify_waiters();
    }
}
