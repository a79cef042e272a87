//! What happened, as plain data.

mod config;
pub(crate) mod humane;

pub use config::{ConfigError, ConfigProblem};
pub(crate) use config::Problems;
