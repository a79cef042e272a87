//! Calls to large language models that survive.

pub mod chat;
mod client;
mod error;
pub mod observe;
pub mod provider;
pub mod record;
pub mod resilience;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transport;

pub use client::{
    Call, CallOptions, CaptureBodies, Client, ClientBuilder, FallbackContext, FallbackDecision, Target, TargetHandle,
    TargetKey, TargetRef, default_fallback,
};
pub use error::LlmError;
pub use http;
pub use record::{ConfigError, ErrorCode, ErrorKind};
