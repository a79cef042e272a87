//! Calls to large language models that survive.

mod record;
pub mod resilience;

pub use record::{ConfigError, ConfigProblem};
