//! Tokens as this protocol counts them: the cache beside the input.

use crate::chat::Usage;
use crate::provider::lenient::{Count, Fields};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Counts {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    cache_creation_input_tokens: Count,
    #[serde(default)]
    cache_read_input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
    output_tokens_details: Fields<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    thinking_tokens: Count,
}

impl Counts {
    /// Takes over what `later` counts. Counts of a stream are totals so far: they replace, and are never added; what is
    /// `null` or left out stands as it was.
    pub(super) fn update(&mut self, later: &Self) {
        let replace = |count: &mut Count, later: Count| count.0 = later.0.or(count.0);
        replace(&mut self.input_tokens, later.input_tokens);
        replace(&mut self.cache_creation_input_tokens, later.cache_creation_input_tokens);
        replace(&mut self.cache_read_input_tokens, later.cache_read_input_tokens);
        replace(&mut self.output_tokens, later.output_tokens);
        let (Fields(details), Fields(later)) = (&mut self.output_tokens_details, &later.output_tokens_details);
        replace(&mut details.thinking_tokens, later.thinking_tokens);
    }

    /// The counts with the cache within the input; nothing when nothing was counted.
    pub(super) fn usage(&self) -> Option<Usage> {
        if self.input_tokens.0.is_none() && self.output_tokens.0.is_none() {
            return None;
        }
        let (written, read) = (self.cache_creation_input_tokens.0, self.cache_read_input_tokens.0);
        let parts = [self.input_tokens.0, written, read];
        let input = parts.into_iter().flatten().fold(0, u64::saturating_add);
        let mut usage = Usage::new(input, self.output_tokens.0.unwrap_or(0));
        usage.cached_input = read;
        usage.cache_write = written;
        usage.reasoning = self.output_tokens_details.0.thinking_tokens.0;
        Some(usage)
    }
}
