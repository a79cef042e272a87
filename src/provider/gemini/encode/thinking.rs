//! How much to think.

use crate::LlmError;
use crate::chat::{Effort, EffortBudgets, Reasoning};
use crate::provider::gemini::{GeminiFamily, GeminiLevel, GeminiThinking};
use crate::provider::unsupported;
use serde::Serialize;

/// `thinkingConfig`. Google refuses a level and a budget together.
#[derive(Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_field_names)] // the provider's names
pub(super) struct Thinking {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_thoughts: bool,
}

impl Thinking {
    pub(super) fn is_unset(&self) -> bool {
        *self == Self::default()
    }

    /// What says to this model what the call asks. A model that cannot stop thinking is told to think as little as it can.
    pub(super) fn of(
        asked: Option<Reasoning>,
        family: &GeminiFamily,
        budgets: EffortBudgets,
        include_thoughts: bool,
        (provider, model): (&str, &str),
    ) -> Result<Self, LlmError> {
        let budget = |tokens| Self { thinking_budget: Some(tokens), ..Self::default() };
        let level = |level: GeminiLevel| Self { thinking_level: Some(level.name()), ..Self::default() };
        let thinks = family.thinking != GeminiThinking::Never;
        let Some(asked) = asked else {
            return Ok(Self { include_thoughts: include_thoughts && thinks, ..Self::default() });
        };
        let told = match (family.thinking, asked) {
            (GeminiThinking::Never, Reasoning::Off) => Self::default(),
            (GeminiThinking::Never, _) => {
                return Err(unsupported(provider, model, "reasoning", "leave it out, or choose another model"));
            }
            (GeminiThinking::AsAsked, Reasoning::Off)
            | (GeminiThinking::Budget { off: true, .. }, Reasoning::Budget(0)) => budget(0),
            (GeminiThinking::AsAsked, Reasoning::Budget(tokens)) => budget(tokens),
            (GeminiThinking::AsAsked, Reasoning::Effort(effort)) => level(level_of(effort, GeminiLevel::High)),
            (GeminiThinking::Budget { off, from, .. }, Reasoning::Off) => budget(if off { 0 } else { from }),
            (GeminiThinking::Budget { off, from, to }, Reasoning::Budget(tokens)) => {
                if !(from..=to).contains(&tokens) {
                    let what = format!("a reasoning budget of {tokens}");
                    let nothing = if off { "0, or " } else { "" };
                    return Err(unsupported(
                        provider,
                        model,
                        &what,
                        &format!("it takes {nothing}{from} to {to} tokens"),
                    ));
                }
                budget(tokens)
            }
            (GeminiThinking::Budget { from, to, .. }, Reasoning::Effort(effort)) => {
                // A family of the caller's may have its bounds the wrong way round; that is no reason to panic.
                budget(budgets.tokens(effort).min(to).max(from))
            }
            (GeminiThinking::Level { from, .. }, Reasoning::Off) => level(from),
            (GeminiThinking::Level { from, to }, Reasoning::Effort(effort)) => {
                level(level_of(effort, to).min(to).max(from))
            }
            (GeminiThinking::Level { from, to }, Reasoning::Budget(tokens)) => {
                level(level_of(budgets.effort(tokens), to).min(to).max(from))
            }
        };
        Ok(Self { include_thoughts: include_thoughts && thinks && asked != Reasoning::Off, ..told })
    }
}

fn level_of(effort: Effort, most: GeminiLevel) -> GeminiLevel {
    match effort {
        Effort::Minimal => GeminiLevel::Minimal,
        Effort::Low => GeminiLevel::Low,
        Effort::Medium => GeminiLevel::Medium,
        Effort::High => GeminiLevel::High,
        Effort::XHigh => GeminiLevel::XHigh,
        Effort::Max => most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::provider::gemini::family::{DEVELOPER, family};
    use serde_json::{Value, json};

    fn told(model: &str, asked: impl Into<Option<Reasoning>>) -> Result<Value, LlmError> {
        let thinking =
            Thinking::of(asked.into(), family(&DEVELOPER, model), EffortBudgets::default(), false, ("gemini", model))?;
        Ok(serde_json::to_value(thinking).unwrap())
    }

    #[test]
    fn each_model_is_told_in_its_own_form() {
        let effort = Reasoning::Effort;
        for (model, asked, expected) in [
            ("gemini-4-argon", Reasoning::Off, json!({"thinkingLevel": "LOW"})),
            ("gemini-4-argon", effort(Effort::Minimal), json!({"thinkingLevel": "LOW"})),
            ("gemini-4-argon", effort(Effort::Medium), json!({"thinkingLevel": "MEDIUM"})),
            ("gemini-4-argon", effort(Effort::XHigh), json!({"thinkingLevel": "HIGH"})),
            ("gemini-4-argon", effort(Effort::Max), json!({"thinkingLevel": "HIGH"})),
            ("gemini-4-hydrogen", effort(Effort::Max), json!({"thinkingLevel": "XHIGH"})),
            ("models/gemini-4-hydrogen", effort(Effort::XHigh), json!({"thinkingLevel": "XHIGH"})),
            ("gemini-3.5-flash-lite", effort(Effort::Minimal), json!({"thinkingLevel": "MINIMAL"})),
            ("gemini-3.7-flash", Reasoning::Off, json!({"thinkingLevel": "LOW"})),
            ("gemini-4-argon", Reasoning::Budget(1), json!({"thinkingLevel": "LOW"})),
            ("gemini-4-argon", Reasoning::Budget(16_000), json!({"thinkingLevel": "MEDIUM"})),
            ("gemini-4-argon", Reasoning::Budget(32_000), json!({"thinkingLevel": "HIGH"})),
            ("gemini-3.5-flash", Reasoning::Budget(1_024), json!({"thinkingLevel": "MINIMAL"})),
            ("gemini-2.5-flash", Reasoning::Off, json!({"thinkingBudget": 0})),
            ("gemini-2.5-flash", Reasoning::Budget(0), json!({"thinkingBudget": 0})),
            ("gemini-2.5-flash", Reasoning::Budget(1), json!({"thinkingBudget": 1})),
            ("gemini-2.5-flash", effort(Effort::Medium), json!({"thinkingBudget": 16_000})),
            ("gemini-2.5-flash", effort(Effort::Max), json!({"thinkingBudget": 24_576})),
            ("gemini-2.5-pro", effort(Effort::Max), json!({"thinkingBudget": 32_000})),
            ("gemini-2.5-pro", Reasoning::Off, json!({"thinkingBudget": 128})),
            ("gemini-2.0-flash", Reasoning::Off, json!({})),
            ("gemini-9", effort(Effort::XHigh), json!({"thinkingLevel": "XHIGH"})),
            ("gemini-9", Reasoning::Budget(7), json!({"thinkingBudget": 7})),
            ("m-1", Reasoning::Off, json!({"thinkingBudget": 0})),
        ] {
            assert_eq!(told(model, asked).unwrap(), expected, "{model} {asked:?}");
        }
        assert_eq!(told("gemini-4-argon", None).unwrap(), json!({}));
    }

    #[test]
    fn what_a_model_has_no_words_for_is_refused() {
        for (model, asked, said) in [
            ("gemini-2.5-flash", Reasoning::Budget(24_577), "a reasoning budget of 24577; it takes 0, or 1 to 24576"),
            ("gemini-2.5-flash-lite", Reasoning::Budget(511), "it takes 0, or 512 to 24576"),
            ("gemini-2.5-pro", Reasoning::Budget(0), "it takes 128 to 32768"),
            ("gemini-2.0-flash", Reasoning::Budget(9), "does not take reasoning"),
            ("gemma-3-27b-it", Reasoning::Effort(Effort::Low), "does not take reasoning"),
        ] {
            let error = told(model, asked).unwrap_err();
            assert_eq!(error.code(), Some(ErrorCode::UnsupportedCapability));
            assert!(error.to_string().contains(said), "{error}");
        }
    }

    #[test]
    fn thoughts_are_asked_for_where_there_are_some() {
        let of = |model, asked| {
            let family = family(&DEVELOPER, model);
            let thinking = Thinking::of(asked, family, EffortBudgets::default(), true, ("gemini", model)).unwrap();
            serde_json::to_value(thinking).unwrap()
        };
        let level = json!({"thinkingLevel": "HIGH", "includeThoughts": true});
        assert_eq!(of("gemini-4-argon", Some(Effort::High.into())), level);
        assert_eq!(of("gemini-4-argon", None), json!({"includeThoughts": true}));
        assert_eq!(of("gemini-2.5-flash", Some(Reasoning::Off)), json!({"thinkingBudget": 0}));
        assert_eq!(of("gemini-2.0-flash", None), json!({}));
    }
}
