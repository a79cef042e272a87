//! What a family of models takes, as data: models change faster than releases, so every row can be replaced.

use super::TokenField;
use crate::chat::{Sampling, Setting};
use crate::provider::refusal::first_set;
use std::borrow::Cow;

/// What a family of models takes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ModelFamily {
    /// How the id of a model of this family begins.
    pub starts: Cow<'static, str>,
    /// What else its id has in it; empty for nothing.
    pub contains: Cow<'static, str>,
    /// The field for the token limit.
    pub token_field: TokenField,
    /// Whether it takes `temperature` and `top_p`.
    pub sampling: SamplingRule,
    /// Whether it takes `stop`.
    pub stop: bool,
    /// Whether its system text goes into a `developer` message.
    pub developer: bool,
}

/// Whether a family of models takes `temperature` and `top_p`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SamplingRule {
    /// Yes.
    Always,
    /// Only beside `"reasoning_effort": "none"`.
    WithoutReasoning,
    /// No.
    Never,
}

impl ModelFamily {
    /// The first setting that is set and that these models do not take, and whether they would without reasoning.
    pub(super) fn refused(&self, sampling: &Sampling, without_reasoning: bool) -> Option<(&'static str, bool)> {
        let sampled = match self.sampling {
            SamplingRule::Always => true,
            SamplingRule::WithoutReasoning => without_reasoning,
            SamplingRule::Never => false,
        };
        let curable = self.sampling == SamplingRule::WithoutReasoning;
        let randomness: &[Setting] = if sampled { &[] } else { &[Setting::Temperature, Setting::TopP] };
        let stop: &[Setting] = if self.stop { &[] } else { &[Setting::Stop] };
        let found = |among, curable| first_set(sampling, among).map(|setting| (setting, curable));
        found(randomness, curable).or_else(|| found(stop, false))
    }
}

const fn chat(starts: &'static str, contains: &'static str) -> ModelFamily {
    ModelFamily {
        starts: Cow::Borrowed(starts),
        contains: Cow::Borrowed(contains),
        token_field: TokenField::MaxTokens,
        sampling: SamplingRule::Always,
        stop: true,
        developer: false,
    }
}

const fn reasoning(starts: &'static str, sampling: SamplingRule, stop: bool) -> ModelFamily {
    ModelFamily {
        starts: Cow::Borrowed(starts),
        contains: Cow::Borrowed(""),
        token_field: TokenField::MaxCompletionTokens,
        sampling,
        stop,
        developer: true,
    }
}

/// OpenAI's families as of 2026-11; the first row that fits counts.
pub(in crate::provider) const OPENAI: &[ModelFamily] = &[
    chat("gpt-", "-chat"),
    reasoning("gpt-6-astra", SamplingRule::Never, true),
    reasoning("gpt-6.2-astra", SamplingRule::Never, true),
    reasoning("gpt-6.1-sol", SamplingRule::Never, true),
    reasoning("gpt-6.2-sol", SamplingRule::Never, true),
    reasoning("gpt-6", SamplingRule::WithoutReasoning, true),
    reasoning("gpt-5.", SamplingRule::WithoutReasoning, true),
    reasoning("gpt-5", SamplingRule::Never, true),
    reasoning("o4-mini", SamplingRule::Never, false),
    reasoning("o3", SamplingRule::Never, false),
    reasoning("o1", SamplingRule::Never, true),
    chat("gpt-4", ""),
    chat("gpt-3.5", ""),
];

/// A model that no row names: nothing is held back.
pub(in crate::provider) static UNKNOWN: ModelFamily = chat("", "");
/// A model that no row names, but whose id is built like a reasoning model's (`o` and a digit, `gpt-` and 5 or more).
static UNKNOWN_REASONING: ModelFamily = reasoning("", SamplingRule::Always, true);

/// What is known of `model`. Where there are no families at all, its name says nothing either.
pub(super) fn find<'a>(families: &'a [ModelFamily], model: &str) -> Option<&'a ModelFamily> {
    // A fine-tuned model, and OpenAI's models at GitHub and at gateways.
    let stem = ["ft:", "openai/"].iter().find_map(|prefix| model.strip_prefix(prefix)).unwrap_or(model);
    (families.iter())
        .find(|family| begins(stem, &family.starts) && has(stem, &family.contains))
        .or_else(|| (!families.is_empty() && looks_reasoning(stem)).then_some(&UNKNOWN_REASONING))
}

/// Whether `text` starts with `start`. Rows of one table differ in their last letters rather than in their first.
fn begins(text: &str, start: &str) -> bool {
    let Some((last, rest)) = start.as_bytes().split_last() else { return true };
    text.as_bytes().get(rest.len()) == Some(last) && text.as_bytes().starts_with(rest)
}

/// Whether `part` is in `text`; both are short, and a general search would prepare more than it saves.
fn has(text: &str, part: &str) -> bool {
    let part = part.as_bytes();
    let Some(first) = part.first() else { return true };
    text.as_bytes().windows(part.len()).any(|window| window[0] == *first && window == part)
}

fn looks_reasoning(stem: &str) -> bool {
    let number = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>().ok();
    match stem.strip_prefix("gpt-") {
        Some(version) => number(version).is_some_and(|n| n >= 5),
        None => stem.strip_prefix('o').is_some_and(|rest| number(rest).is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_fits_counts() {
        let row = |model| find(OPENAI, model).unwrap();
        assert_eq!(row("gpt-5-mini").sampling, SamplingRule::Never);
        assert_eq!(row("gpt-5.4-2026-01-01").sampling, SamplingRule::WithoutReasoning);
        assert_eq!(row("gpt-5-chat-latest").token_field, TokenField::MaxTokens);
        assert_eq!(row("gpt-6.2-astra").sampling, SamplingRule::Never);
        assert_eq!(row("gpt-6-luna").sampling, SamplingRule::WithoutReasoning);
        assert_eq!(row("ft:gpt-4o:org::id").token_field, TokenField::MaxTokens);
        assert_eq!(row("openai/gpt-5-mini").sampling, SamplingRule::Never);
        assert!(!row("o4-mini").stop);
    }

    #[test]
    fn an_unknown_family_is_held_back_in_nothing() {
        assert_eq!(find(OPENAI, "m-1"), None);
        assert_eq!(find(OPENAI, "gpt-7-nova"), Some(&UNKNOWN_REASONING));
        assert_eq!(find(OPENAI, "o9"), Some(&UNKNOWN_REASONING));
        assert_eq!(find(&[], "gpt-5"), None);
    }
}
