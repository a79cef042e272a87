//! The locks and atomics of the guards: the standard ones, or loom's where every interleaving is tried.

#[cfg(all(test, loom))]
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard, atomic};
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, atomic};
