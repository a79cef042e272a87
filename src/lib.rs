#![doc = include_str!("../README.md")]
//!
//! # Where things are
//!
//! | | |
//! |---|---|
//! | [`Client`], [`Target`], [`Call`] | what an application holds, what it guards, what it asks |
//! | [`LlmError`], [`record`] | why a call failed, and the plain data of it |
//! | [`chat`] | the words: requests and replies, the same for every provider |
//! | [`provider`] | one adapter a protocol, and the rules that read errors |
//! | [`resilience`] | retry, circuit breaker, retry budget, rate limiter, and [`Policy`](resilience::Policy) around any operation |
//! | `integrations` | the engine inside other HTTP stacks (features `reqwest-middleware`, `tower`) |
//! | [`observe`] | what happens in a client, told to whoever listens |
//! | [`guides`] | one page a topic: when, how to size, defaults, events, anti-patterns |
//! | [`transport`] | the seam to the network |
//! | `testing` | a provider that misbehaves on command (feature `testing`) |

pub mod chat;
mod client;
mod error;
pub mod guides;
pub mod integrations;
pub mod observe;
pub mod provider;
pub mod record;
pub mod resilience;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transport;

#[cfg(feature = "schemars")]
pub use client::Extracted;
pub use client::{
    Call, CallOptions, CaptureBodies, Client, ClientBuilder, FallbackContext, FallbackDecision, ReplyStream, Target,
    TargetHandle, TargetKey, TargetRef, default_fallback,
};
pub use error::LlmError;
pub use http;
pub use record::{ConfigError, ErrorCode, ErrorKind};
#[cfg(feature = "schemars")]
pub use schemars;
pub use url;
