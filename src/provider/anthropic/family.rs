//! What a family of models takes, as data: models change faster than releases, so the table can be replaced.

use crate::chat::Sampling;
use std::borrow::Cow;

/// What a family of Anthropic's models takes.
///
/// ```
/// use steadfast::provider::{Anthropic, AnthropicFamily, AnthropicSampling, AnthropicThinking};
///
/// let poets = AnthropicFamily::new("poet-1").sampling(AnthropicSampling::Never).thinking(AnthropicThinking::Always);
/// let anthropic = Anthropic::new("sk-ant-...").families([poets]);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct AnthropicFamily {
    /// What the id of a model has behind `claude-`, without a date or another suffix: `opus-4-5`.
    pub stem: Cow<'static, str>,
    /// Whether it takes `temperature` and `top_p`.
    pub sampling: AnthropicSampling,
    /// Whether it takes them while it thinks.
    pub sampling_beside_thinking: bool,
    /// How it can be told to think.
    pub thinking: AnthropicThinking,
    /// Whether only the model that thought them takes its blocks of reasoning back.
    pub thinking_is_bound: bool,
    /// Whether it can be forced to call a tool.
    pub forced_tools: AnthropicForcedTools,
    /// Whether it has a format for answers of a JSON schema. Where not, a forced tool stands for it.
    pub output_format: bool,
}

/// Whether a family of models takes `temperature` and `top_p`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum AnthropicSampling {
    /// Yes.
    Always,
    /// Only what changes nothing: `temperature` 1, and `top_p` of at least 0.99.
    DefaultsOnly,
    /// No.
    Never,
    /// One of them, not both.
    OneOfThem,
}

/// How a family of models can be told to think.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum AnthropicThinking {
    /// By an effort, or not at all.
    Adaptive,
    /// By an effort. It always thinks.
    Always,
    /// By an effort or a budget, or not at all.
    Any,
    /// By an effort, or only between tools, which is the least.
    BetweenTools,
    /// By a budget, or not at all.
    Budget,
}

/// Whether a family of models can be forced to call a tool.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum AnthropicForcedTools {
    /// Yes.
    Always,
    /// No.
    Never,
    /// Unless it is told to think.
    WithoutThinking,
}

impl AnthropicFamily {
    /// The family of the models `claude-{stem}`, from which nothing is held back.
    pub fn new(stem: impl Into<Cow<'static, str>>) -> Self {
        Self {
            stem: stem.into(),
            sampling: AnthropicSampling::Always,
            sampling_beside_thinking: true,
            thinking: AnthropicThinking::Any,
            thinking_is_bound: false,
            forced_tools: AnthropicForcedTools::Always,
            output_format: true,
        }
    }

    /// With this rule for `temperature` and `top_p`.
    #[must_use]
    pub const fn sampling(mut self, sampling: AnthropicSampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// Whether it takes `temperature` and `top_p` while it thinks.
    #[must_use]
    pub const fn sampling_beside_thinking(mut self, taken: bool) -> Self {
        self.sampling_beside_thinking = taken;
        self
    }

    /// With this rule for thinking.
    #[must_use]
    pub const fn thinking(mut self, thinking: AnthropicThinking) -> Self {
        self.thinking = thinking;
        self
    }

    /// Whether only the model that thought them takes its blocks of reasoning back. Those of another are left out.
    #[must_use]
    pub const fn thinking_is_bound(mut self, bound: bool) -> Self {
        self.thinking_is_bound = bound;
        self
    }

    /// With this rule for forced tools.
    #[must_use]
    pub const fn forced_tools(mut self, forced_tools: AnthropicForcedTools) -> Self {
        self.forced_tools = forced_tools;
        self
    }

    /// Whether it has a format for answers of a JSON schema.
    #[must_use]
    pub const fn output_format(mut self, has_one: bool) -> Self {
        self.output_format = has_one;
        self
    }
}

impl AnthropicSampling {
    /// The setting that it refuses, and what to do instead.
    pub(in crate::provider) fn refusal(self, sampling: &Sampling) -> Option<(&'static str, &'static str)> {
        let (temperature, top_p) = (sampling.temperature, sampling.top_p);
        let refused = |temperature: bool, top_p: bool, cure| {
            let setting = if temperature { Some("temperature") } else { top_p.then_some("top_p") };
            setting.map(|setting| (setting, cure))
        };
        match self {
            Self::Always => None,
            Self::DefaultsOnly => refused(
                temperature.is_some_and(|t| (t - 1.0).abs() > f64::EPSILON),
                top_p.is_some_and(|p| p < 0.99),
                "leave it out (only temperature 1 and top_p of at least 0.99 pass), or choose another model",
            ),
            Self::Never => refused(temperature.is_some(), top_p.is_some(), "leave it out, or choose another model"),
            Self::OneOfThem => {
                refused(false, temperature.is_some() && top_p.is_some(), "beside temperature; leave one of them out")
            }
        }
    }
}

/// A row with what all of Anthropic's models have in common.
const fn row(stem: &'static str, sampling: AnthropicSampling, thinking: AnthropicThinking) -> AnthropicFamily {
    AnthropicFamily {
        stem: Cow::Borrowed(stem),
        sampling,
        sampling_beside_thinking: false,
        thinking,
        thinking_is_bound: false,
        forced_tools: AnthropicForcedTools::WithoutThinking,
        output_format: true,
    }
}

/// Anthropic's families as of 2026-11, from its model pages and the newest per-model tables of SDKs.
pub(in crate::provider) const KNOWN: &[AnthropicFamily] = {
    use AnthropicForcedTools as Forced;
    use AnthropicSampling as Sampling;
    use AnthropicThinking as Thinking;
    &[
        row("opus-5-5", Sampling::Never, Thinking::Always).thinking_is_bound(true).forced_tools(Forced::Never),
        row("sonnet-5-5", Sampling::Never, Thinking::BetweenTools).thinking_is_bound(true).forced_tools(Forced::Never),
        row("haiku-5-5", Sampling::Never, Thinking::Adaptive).thinking_is_bound(true),
        row("fable-5-2", Sampling::Never, Thinking::Always).forced_tools(Forced::Never),
        row("fable-5-1", Sampling::Never, Thinking::Always).forced_tools(Forced::Never),
        row("fable-5", Sampling::Never, Thinking::Always),
        row("opus-5", Sampling::Never, Thinking::Adaptive),
        row("sonnet-5", Sampling::DefaultsOnly, Thinking::Adaptive),
        row("opus-4-8", Sampling::DefaultsOnly, Thinking::Adaptive),
        row("opus-4-7", Sampling::DefaultsOnly, Thinking::Adaptive),
        row("opus-4-6", Sampling::Always, Thinking::Any),
        row("sonnet-4-6", Sampling::Always, Thinking::Any),
        row("opus-4-5", Sampling::OneOfThem, Thinking::Budget),
        row("sonnet-4-5", Sampling::OneOfThem, Thinking::Budget),
        row("haiku-4-5", Sampling::OneOfThem, Thinking::Budget),
        row("opus-4-1", Sampling::OneOfThem, Thinking::Budget).output_format(false),
        row("opus-4", Sampling::Always, Thinking::Budget).output_format(false),
        row("sonnet-4", Sampling::Always, Thinking::Budget).output_format(false),
    ]
};

/// The row for `model`, whatever a platform puts before `claude-` or behind the version.
pub(in crate::provider) fn family<'a>(families: &'a [AnthropicFamily], model: &str) -> Option<&'a AnthropicFamily> {
    let (_, stem) = model.rsplit_once("claude-")?;
    // Routers write `claude-opus-4.5`.
    let stem = stem.replace('.', "-");
    families.iter().find(|family| stem.strip_prefix(&*family.stem).is_some_and(is_suffix))
}

/// Whether this can follow a version: a date, `-latest`, `@20260101`, `-v1:0`; but not a further part of the version.
fn is_suffix(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix(|c: char| !c.is_ascii_alphanumeric()) else { return rest.is_empty() };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let ends = rest[digits..].bytes().next().is_none_or(|byte| !byte.is_ascii_alphanumeric());
    !(matches!(digits, 1..=3) && ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_found_by_its_stem() {
        for (model, stem) in [
            ("claude-opus-5-5", Some("opus-5-5")),
            ("claude-opus-5", Some("opus-5")),
            ("claude-opus-5-20270101", Some("opus-5")),
            ("claude-sonnet-4-5-20250929", Some("sonnet-4-5")),
            ("claude-haiku-4-5@20251001", Some("haiku-4-5")),
            ("us.anthropic.claude-opus-4-6-v1:0", Some("opus-4-6")),
            ("anthropic/claude-opus-4.5", Some("opus-4-5")),
            ("claude-sonnet-5-latest", Some("sonnet-5")),
            ("claude-opus-5-6", None),
            ("claude-opus-5-10-20280101", None),
            ("claude-opus-50", None),
            ("claude-3-7-sonnet-20250219", None),
            ("claude-sonnet-4-20250514", Some("sonnet-4")),
            ("claude-opus-4-1-20250805", Some("opus-4-1")),
            ("opus-5", None),
            ("m-1", None),
        ] {
            assert_eq!(family(KNOWN, model).map(|family| &*family.stem), stem, "{model}");
        }
    }

    #[test]
    fn each_rule_names_what_it_refuses() {
        let (hot, even) = (Sampling::new().temperature(0.3), Sampling::new().temperature(1.0).top_p(0.99));
        let (top_p, both) = (Sampling::new().top_p(0.5), Sampling::new().temperature(0.3).top_p(0.5));
        for (rule, expected) in [
            (AnthropicSampling::Always, [None; 4]),
            (AnthropicSampling::DefaultsOnly, [Some("temperature"), None, Some("top_p"), Some("temperature")]),
            (AnthropicSampling::Never, [Some("temperature"), Some("temperature"), Some("top_p"), Some("temperature")]),
            (AnthropicSampling::OneOfThem, [None, Some("top_p"), None, Some("top_p")]),
        ] {
            let refused = [&hot, &even, &top_p, &both].map(|sampling| rule.refusal(sampling).map(|(what, _)| what));
            assert_eq!(refused, expected, "{rule:?}");
            assert_eq!(rule.refusal(&Sampling::new()), None);
        }
    }
}
