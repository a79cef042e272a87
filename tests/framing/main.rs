//! Framing: what the frames of a body are, wherever it was cut.

#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)] // a body of the corpus that cannot be read fails its test

mod corpus;
mod custom;
mod cut;
#[cfg(feature = "bedrock")]
mod event_stream;
mod memory;
mod ndjson;
mod sse;
mod sse_oracles;
