//! Framing: what the frames of a body are, wherever it was cut.

mod corpus;
mod custom;
mod cut;
#[cfg(feature = "bedrock")]
mod event_stream;
mod memory;
mod ndjson;
mod sse;
mod sse_oracles;
