//! The same rules for code that is not a client of this crate.
//!
//! - Any async operation: a [`Policy`], with a [`RulePack`] to say what its errors mean. The pack is itself a [`Classify`] for
//!   `http::Response` and, with the feature `reqwest`, for `reqwest::Error`; any other error is classified by a closure that
//!   says where its evidence is (see [`resilience`](crate::resilience)).
//! - Feature `reqwest-middleware`: `ResilientMiddleware`, for every library that is built on `reqwest-middleware`.
//! - Feature `tower`: `ResilientLayer`, over any `tower::Service` that answers an `http::Request` with an `http::Response`.
//!
//! The middleware and the layer stand on the engine that a client's targets run on, and behave alike:
//!
//! - **A success is passed on as it came.** Any status below 400 is one. Nothing of its body is read or kept back, so a
//!   stream stays a stream; what comes after the head is the caller's. The circuit, the limiter and the budget are settled
//!   at the head: a concurrency slot does not last as long as a streamed body, and tokens stay as they were estimated.
//! - **A failure is read before any wait**, up to 1 MiB of it and for at most 5 s, because the evidence is in its body: a
//!   spent quota and a passing rate limit have the same status. While a retry is waited for, no connection is held.
//! - **A response that is not retried is handed back whole**, the last one included: status, headers, and a body with the
//!   bytes that were read in front again. So is the one for which the retry budget or the deadline had no retry left. Its
//!   reader cannot tell that anybody read it before.
//! - **Only a transport failure and a local refusal are errors.** The first is the error of whatever sends, unchanged. The
//!   second is a `Stopped`: the circuit or the limiter refused, a token was cancelled, time ran out before a response.
//! - **A request whose body cannot be sent twice is sent once.**
//!
//! [`Classify`]: crate::resilience::Classify
//! [`Policy`]: crate::resilience::Policy
//! [`RulePack`]: crate::provider::RulePack

mod classify;
#[cfg(any(feature = "reqwest-middleware", feature = "tower"))]
mod exchange;
#[cfg(any(feature = "reqwest-middleware", feature = "tower"))]
mod fault;
#[cfg(any(feature = "reqwest-middleware", feature = "tower"))]
mod replay;
#[cfg(feature = "reqwest-middleware")]
mod reqwest_middleware;
#[cfg(any(feature = "reqwest-middleware", feature = "tower"))]
mod stopped;
#[cfg(feature = "tower")]
mod tower;

#[cfg(any(feature = "reqwest-middleware", feature = "tower"))]
pub use replay::{Begun, Replayed};
#[cfg(feature = "reqwest-middleware")]
pub use reqwest_middleware::ResilientMiddleware;
#[cfg(any(feature = "reqwest-middleware", feature = "tower"))]
pub use stopped::Stopped;
#[cfg(feature = "tower")]
pub use tower::{Cost, PolicyCost, Resilient, ResilientError, ResilientLayer};
