//! Framing: what the frames of a body are, wherever it was cut.

mod custom;
mod cut;
mod ndjson;
mod sse;
mod sse_oracles;
