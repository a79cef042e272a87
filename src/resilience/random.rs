//! The one source of chance: jitter draws from it, and nothing else in the crate is random.

use rand::{
    RngExt, SeedableRng,
    rngs::{SmallRng, SysRng},
};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// A seedable random source, shared by its clones.
///
/// Two sources with the same seed give the same numbers in the same order, so a run can be repeated.
#[derive(Clone, Debug)]
pub struct Random(Arc<Mutex<SmallRng>>);

impl Random {
    /// A source that always gives the same numbers.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(SmallRng::seed_from_u64(seed))))
    }

    /// A source seeded by the operating system.
    pub fn from_entropy() -> Self {
        // Jitter needs no secrecy: where the system's source fails, the hasher's keys still differ by process.
        let rng = SmallRng::try_from_rng(&mut SysRng)
            .unwrap_or_else(|_| SmallRng::seed_from_u64(RandomState::new().hash_one(std::process::id())));
        Self(Arc::new(Mutex::new(rng)))
    }

    /// 64 random bits, for an id.
    pub fn bits(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).random()
    }

    /// A number in [0, 1).
    pub fn unit(&self) -> f64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).random()
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::from_entropy()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
