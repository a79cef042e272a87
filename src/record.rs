//! What happened, as plain data.

mod attempt;
mod code;
mod config;
pub(crate) mod humane;
mod issues;
mod kind;
pub(crate) mod millis;
mod request;
mod snapshot;
pub(crate) mod timestamp;
mod wire;

pub use attempt::{Attempt, Next, StopReason, TargetAttempt};
pub use code::ErrorCode;
pub(crate) use config::Problems;
pub use config::{ConfigError, ConfigProblem};
pub use issues::{Issues, QuotaScope, SchemaMismatch, Silence, ToolProblem};
pub use kind::ErrorKind;
pub use request::{Body, RequestSnapshot};
pub use snapshot::ErrorSnapshot;
