//! What a call spent.

use serde::{Deserialize, Serialize};

/// Tokens spent, as the provider reported them; never guessed.
///
/// The parts are within the totals for every provider, whatever its own arithmetic: `cached_input` and `cache_write` are
/// part of `input`, `reasoning` is part of `output`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Both together.
    pub total: u64,
    /// Of the input: read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<u64>,
    /// Of the input: written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Of the output: spent on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl Usage {
    /// `input` and `output` tokens, and their sum.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, total: input.saturating_add(output), ..Self::default() }
    }
}
