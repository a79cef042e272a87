//! An answer in this protocol's words, whatever the server made of them.
//!
//! Servers that speak "the same" protocol send numbers as strings, text as parts, null for anything. A field that is
//! needed is read in every shape in which it has been seen; a field that nobody needs never costs the answer.

use super::ChatApi;
use crate::chat::{FinishReason, Reply, Usage};
use crate::provider::lenient::{Count, Present, Words};
use crate::provider::{AnswerFault, Failure, Head, json, request_id};
use bytes::Bytes;
use serde::Deserialize;

mod lenient;
use lenient::{Finish, Object, Text};

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    error: Present,
    #[serde(default)]
    object: Object,
    #[serde(default)]
    model: Words,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    finish_reason: Finish,
    #[serde(default)]
    error: Present,
}

#[derive(Default, Deserialize)]
struct Message {
    #[serde(default)]
    content: Text,
    #[serde(default)]
    refusal: Words,
    #[serde(default)]
    reasoning_content: Words,
    #[serde(default)]
    reasoning: Words,
}

#[derive(Default, Deserialize)]
struct Counts {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    #[serde(default)]
    total_tokens: Count,
    #[serde(default)]
    prompt_tokens_details: Option<InputDetails>,
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

#[derive(Default, Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Count,
    #[serde(default)]
    cache_write_tokens: Count,
}

#[derive(Default, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: Count,
}

impl ChatApi {
    pub(in crate::provider) fn decode<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        let failed = |fault| Failure::of(head, body).fault(fault);
        let answer: Answer = json::read(head, body)?;
        let Some(choice) = answer.choices.and_then(|choices| choices.into_iter().next()) else {
            let is_error = answer.error.0 || answer.object.is_error;
            return Err(failed(if is_error { AnswerFault::Error } else { AnswerFault::Empty }));
        };
        if answer.error.0 || choice.error.0 || choice.finish_reason.is_failure() {
            return Err(failed(AnswerFault::Error));
        }
        let message = choice.message.unwrap_or_default();
        let refusal = message.refusal.0.filter(|words| !words.is_empty());
        let finish = choice.finish_reason.reason();
        if message.content.text.is_empty() && refusal.is_none() && finish != FinishReason::Length {
            let filtered = finish == FinishReason::ContentFilter;
            return Err(failed(if filtered { AnswerFault::Filtered(Vec::new()) } else { AnswerFault::Empty }));
        }
        let reasoning = message.reasoning_content.0.or(message.reasoning.0).or(message.content.reasoning);
        Ok(Reply::new(message.content.text)
            .with_reasoning(reasoning.filter(|words| !words.is_empty()))
            .with_refusal(refusal)
            .with_finish_reason(finish)
            .with_usage(answer.usage.and_then(|counts| counts.usage(self.quirks.reasoning_outside_output)))
            .with_model(answer.model.0)
            .with_provider_request_id(request_id(&head.headers).map(str::to_owned)))
    }
}

impl Counts {
    /// The counts with the parts within the totals, however the server adds up; nothing when nothing was counted.
    fn usage(self, reasoning_outside_output: bool) -> Option<Usage> {
        let (details, output_details) = (
            self.prompt_tokens_details.or(self.prompt_token_details).unwrap_or_default(),
            self.completion_tokens_details.unwrap_or_default(),
        );
        let cached = details
            .cached_tokens
            .0
            .or(self.prompt_cache_hit_tokens.0)
            .or(self.cached_tokens.0)
            .or(self.num_cached_tokens.0);
        let reasoning = output_details.reasoning_tokens.0.or(self.reasoning_tokens.0);
        if self.prompt_tokens.0.is_none() && self.completion_tokens.0.is_none() {
            return None;
        }
        let (mut input, mut output) = (self.prompt_tokens.0.unwrap_or(0), self.completion_tokens.0.unwrap_or(0));
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
