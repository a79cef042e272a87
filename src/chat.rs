//! The vocabulary: what is asked and what is answered, the same for every provider. Plain data, with no I/O.

mod chunk;
mod content;
mod effort;
mod opaque;
mod output;
mod reply;
mod request;
pub(crate) mod schema;
mod tool;
mod turn;
#[cfg(feature = "schemars")]
mod typed;
mod usage;

pub use chunk::{Chunk, Text, ToolCallDelta};
pub use content::{Content, Document, Media, MediaSource, Part};
pub use effort::EffortBudgets;
pub use opaque::Opaque;
pub use output::{Effort, JsonSchema, Output, Reasoning};
pub use reply::{AnsweredBy, FinishReason, Reply};
pub use request::{Request, Sampling, Setting};
pub use tool::{Tool, ToolCall, ToolChoice, ToolResult};
pub use turn::{Turn, TurnRef};
pub use usage::Usage;
