//! What an answer says was spent, in either of OpenAI's protocols, whoever counted.

use crate::chat::Usage;
use crate::provider::lenient::Count;
use serde::Deserialize;

/// The counts of an answer. Chat completions count a prompt and a completion, the Responses API an input and an output,
/// and gateways both.
#[derive(Clone, Copy, Default, Deserialize)]
pub(in crate::provider) struct Counts {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    #[serde(default)]
    total_tokens: Count,
    #[serde(default)]
    prompt_tokens_details: Option<InputDetails>,
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
    /// Mistral's second spelling.
    #[serde(default)]
    prompt_token_details: Option<InputDetails>,
    #[serde(default)]
    completion_tokens_details: Option<OutputDetails>,
    /// `DeepSeek`.
    #[serde(default)]
    prompt_cache_hit_tokens: Count,
    /// Together.
    #[serde(default)]
    cached_tokens: Count,
    /// Mistral.
    #[serde(default)]
    num_cached_tokens: Count,
    /// Perplexity.
    #[serde(default)]
    reasoning_tokens: Count,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Count,
    #[serde(default)]
    cache_write_tokens: Count,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: Count,
}

impl Counts {
    /// The counts with the parts within the totals, however the server adds up; nothing when nothing was counted.
    pub(in crate::provider) fn usage(self, reasoning_outside_output: bool) -> Option<Usage> {
        let (input, output) =
            (self.prompt_tokens.0.or(self.input_tokens.0), self.completion_tokens.0.or(self.output_tokens.0));
        if input.is_none() && output.is_none() {
            return None;
        }
        let (mut input, mut output) = (input.unwrap_or(0), output.unwrap_or(0));
        let details = self.prompt_tokens_details.or(self.prompt_token_details).or(self.input_tokens_details);
        let details = details.unwrap_or_default();
        let cached = details
            .cached_tokens
            .0
            .or(self.prompt_cache_hit_tokens.0)
            .or(self.cached_tokens.0)
            .or(self.num_cached_tokens.0);
        let spent = self.completion_tokens_details.or(self.output_tokens_details).unwrap_or_default();
        let reasoning = spent.reasoning_tokens.0.or(self.reasoning_tokens.0);
        // xAI has reported more cached tokens than prompt tokens: then they are not part of them.
        if let Some(cached) = cached.filter(|cached| *cached > input) {
            input = input.saturating_add(cached);
        }
        // A part cannot be larger than its whole: then the server leaves reasoning out (DeepInfra), as xAI always does.
        if let Some(reasoning) = reasoning.filter(|reasoning| reasoning_outside_output || *reasoning > output) {
            output = output.saturating_add(reasoning);
        }
        let mut usage = Usage::new(input, output);
        usage.total = self.total_tokens.0.unwrap_or(0).max(usage.total);
        usage.cached_input = cached;
        usage.cache_write = details.cache_write_tokens.0;
        usage.reasoning = reasoning;
        Some(usage)
    }
}
