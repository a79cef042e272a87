//! The vocabulary of a conversation: what is asked and what is answered. Plain data, no provider names, no I/O.

mod reply;
mod request;
mod turn;
mod usage;

pub use reply::{AnsweredBy, FinishReason, Reply};
pub use request::{Request, Sampling, Setting};
pub use turn::{Content, Turn};
pub use usage::Usage;
