//! Calls to large language models that survive.

pub mod record;
pub mod resilience;

pub use record::{ConfigError, ErrorCode, ErrorKind};
