//! Locks and atomics of the guards: the standard ones, or loom's where every interleaving is tried.

#[cfg(all(test, loom))]
pub(crate) use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{self, AtomicU64, Ordering},
};
use std::sync::PoisonError;
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{self, AtomicU64, Ordering},
};

/// Locks, whether or not a holder panicked: the guarded state is whole after every step.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
