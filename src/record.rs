//! What happened, as plain data.

mod config;
pub(crate) mod humane;

pub(crate) use config::Problems;
pub use config::{ConfigError, ConfigProblem};
