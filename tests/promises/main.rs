//! The promises of the specification, through the public API.
//!
//! One file an area, and the names of the tests are the promises. Where time matters they run on a paused clock over a
//! [`MemoryTransport`](steadfast::testing::MemoryTransport); where connections matter, over real sockets.

mod breaker;
mod budget;
mod codes;
mod fallback;
mod limiter;
mod retry;
mod support;
mod timeouts;
