//! The promises of the specification, through the public API.
//!
//! One file an area, and the names of the tests are the promises. Where time matters they run on a paused clock over a
//! [`MemoryTransport`](steadfast::testing::MemoryTransport); where connections matter, over real sockets.

#[cfg(feature = "bedrock")]
mod bedrock;
mod breaker;
mod budget;
mod chaos;
mod codes;
mod config;
mod conversation;
mod drops;
mod errors;
mod fallback;
#[cfg(feature = "bedrock")]
mod four_providers;
mod history;
mod limiter;
mod output;
mod policy;
mod pressure;
mod responses;
mod retry;
mod secrets;
mod streams;
mod support;
mod timeouts;
mod tools;
