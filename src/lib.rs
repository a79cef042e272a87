//! Calls to large language models that survive.

mod record;
pub mod resilience;
#[cfg(feature = "testing")]
pub mod testing;

pub use record::{ConfigError, ConfigProblem};
