//! Locks and atomics, so that `--cfg loom` can put the model checker's in place of the system's.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{self, AtomicU64, Ordering},
};
use std::sync::PoisonError;
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{self, AtomicU64, Ordering},
};

/// Locks, whether or not a holder panicked: the guarded state is whole after every step.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
