//! Replays `fixtures/cases` over real sockets, and compares.
//!
//! The runner knows nothing of individual cases; what is under test knows nothing of them at all. It is behind
//! [`subject::Subject`], and `under_test.rs` is the only file that knows this crate's client.
//!
//! Included by `tests/cases.rs`, `tests/replay_selftest.rs` and `examples/replay_cases.rs`.

#![allow(dead_code)] // each of the three uses a part

pub(crate) mod case;
pub(crate) mod expect;
pub(crate) mod placeholders;
pub(crate) mod play;
pub(crate) mod report;
pub(crate) mod subject;
pub(crate) mod under_test;
pub(crate) mod world;
