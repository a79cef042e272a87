//! What a family of models takes, as data: models change faster than releases, so every row can be replaced.

use super::TokenField;
use crate::chat::{Effort, Sampling, Setting};
use crate::provider::refusal::first_set;
use std::borrow::Cow;

/// What a family of models takes.
#[derive(Clone, Debug, Eq, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // each is an answer of its own
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
    /// How hard it can be told to think, from little to much; empty for models that do not think. A call that asks for
    /// another effort gets the nearest.
    pub efforts: Cow<'static, [Effort]>,
    /// Whether it can be told not to think at all.
    pub reasoning_off: bool,
    /// The highest effort on chat completions, where the Responses API takes more.
    pub most_on_chat: Effort,
    /// Whether chat completions refuse tools unless reasoning is switched off.
    pub tools_without_reasoning: bool,
    /// Whether it takes pictures and documents.
    pub vision: bool,
    /// Whether it takes sound, on chat completions.
    pub audio: bool,
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

/// A row as most are, to change from.
const fn row(starts: &'static str, contains: &'static str, efforts: &'static [Effort]) -> ModelFamily {
    ModelFamily {
        starts: Cow::Borrowed(starts),
        contains: Cow::Borrowed(contains),
        token_field: TokenField::MaxTokens,
        sampling: SamplingRule::Always,
        stop: true,
        developer: false,
        efforts: Cow::Borrowed(efforts),
        reasoning_off: false,
        most_on_chat: Effort::Max,
        tools_without_reasoning: false,
        vision: true,
        audio: false,
    }
}

const fn chat(starts: &'static str, contains: &'static str) -> ModelFamily {
    row(starts, contains, &[])
}

const fn reasoning(starts: &'static str, sampling: SamplingRule, efforts: &'static [Effort]) -> ModelFamily {
    let mut family = row(starts, "", efforts);
    family.token_field = TokenField::MaxCompletionTokens;
    family.sampling = sampling;
    family.developer = true;
    // The same models take sampling settings then.
    family.reasoning_off = matches!(sampling, SamplingRule::WithoutReasoning);
    family
}

/// Changes to a row.
impl ModelFamily {
    const fn blind(mut self) -> Self {
        self.vision = false;
        self
    }

    const fn hearing(mut self) -> Self {
        self.audio = true;
        self
    }

    const fn unstoppable(mut self) -> Self {
        self.stop = false;
        self
    }

    const fn reasons_at_will(mut self) -> Self {
        self.reasoning_off = true;
        self
    }

    const fn most_on_chat(mut self, effort: Effort) -> Self {
        self.most_on_chat = effort;
        self
    }

    const fn tools_without_reasoning(mut self) -> Self {
        self.tools_without_reasoning = true;
        self
    }
}

const LOW_TO_HIGH: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High];
const MINIMAL_TO_HIGH: &[Effort] = &[Effort::Minimal, Effort::Low, Effort::Medium, Effort::High];
const LOW_TO_XHIGH: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High, Effort::XHigh];
const LOW_TO_MAX: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High, Effort::XHigh, Effort::Max];
/// Every effort there is.
pub(in crate::provider) const ALL_EFFORTS: &[Effort] =
    &[Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::XHigh, Effort::Max];

/// Thinks always, and takes the highest effort by the Responses API alone.
const fn astra(starts: &'static str) -> ModelFamily {
    reasoning(starts, SamplingRule::Never, LOW_TO_MAX).most_on_chat(Effort::XHigh)
}

/// OpenAI's families as of 2026-11; the first row that fits counts.
pub(in crate::provider) const OPENAI: &[ModelFamily] = &[
    chat("gpt-", "-audio").hearing().blind(),
    chat("gpt-audio", "").hearing().blind(),
    chat("gpt-", "-chat"),
    astra("gpt-6-astra"),
    astra("gpt-6.2-astra"),
    astra("gpt-6.1-sol"),
    astra("gpt-6.2-sol"),
    reasoning("gpt-6", SamplingRule::WithoutReasoning, LOW_TO_MAX),
    reasoning("gpt-5.6", SamplingRule::WithoutReasoning, LOW_TO_MAX).tools_without_reasoning(),
    reasoning("gpt-5.1", SamplingRule::WithoutReasoning, LOW_TO_HIGH),
    reasoning("gpt-5.", SamplingRule::WithoutReasoning, LOW_TO_XHIGH),
    reasoning("gpt-5", SamplingRule::Never, MINIMAL_TO_HIGH),
    reasoning("o4-mini", SamplingRule::Never, LOW_TO_HIGH).unstoppable(),
    reasoning("o3", SamplingRule::Never, LOW_TO_HIGH).unstoppable(),
    reasoning("o1", SamplingRule::Never, LOW_TO_HIGH),
    chat("gpt-4", ""),
    chat("gpt-3.5", "").blind(),
];

/// A model that no row names: nothing is held back.
pub(in crate::provider) static UNKNOWN: ModelFamily = row("", "", ALL_EFFORTS).reasons_at_will().hearing();
/// A model that no row names, but whose id is built like a reasoning model's (`o` and a digit, `gpt-` and 5 or more).
static UNKNOWN_REASONING: ModelFamily = reasoning("", SamplingRule::Always, ALL_EFFORTS).reasons_at_will().hearing();

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
