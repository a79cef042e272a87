//! An answer that is there already when it comes from this process, and awaited when a shared store must be asked.

use futures_core::future::BoxFuture;
use std::fmt;

/// What asking a breaker or a budget gives back. Matching on it keeps the local case a plain call.
pub(crate) enum Answer<'a, T> {
    /// Decided in this process.
    Now(T),
    /// A shared store decides.
    Later(BoxFuture<'a, T>),
}

impl<T> Answer<'_, T> {
    /// The answer, awaited only if it has to be.
    pub(crate) async fn get(self) -> T {
        match self {
            Self::Now(answer) => answer,
            Self::Later(asking) => asking.await,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Answer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(answer) => f.debug_tuple("Now").field(answer).finish(),
            Self::Later(_) => f.write_str("Later(..)"),
        }
    }
}
