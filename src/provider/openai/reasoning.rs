//! How much to think, in the words of either protocol.

use super::{ChatApi, ModelFamily, Place, ReasoningForm};
use crate::LlmError;
use crate::chat::{Effort, EffortBudgets, Reasoning};
use crate::provider::unsupported;
use serde_json::{Value, json};

/// What a model takes, by its family or by its server.
pub(in crate::provider) struct Levels<'a> {
    pub(in crate::provider) efforts: &'a [Effort],
    pub(in crate::provider) off: bool,
}

impl Levels<'_> {
    /// The word for how hard `model` is to think; none where there is nothing to say.
    pub(in crate::provider) fn word(
        &self,
        reasoning: Reasoning,
        place: &Place,
        model: &str,
    ) -> Result<Option<&'static str>, LlmError> {
        let effort = match effort(reasoning, place.budgets()) {
            Some(effort) => effort,
            // What does not think need not be told.
            None if self.efforts.is_empty() => return Ok(None),
            None if self.off => return Ok(Some("none")),
            None => {
                let cure = "ask for the least effort, or choose another model";
                return Err(unsupported(place.name(), model, "reasoning switched off", cure));
            }
        };
        match nearest(self.efforts, effort) {
            Some(effort) => Ok(Some(effort.as_str())),
            None => Err(unsupported(place.name(), model, "reasoning", "leave it out, or choose another model")),
        }
    }
}

/// How hard to think; none for not at all.
fn effort(reasoning: Reasoning, budgets: &EffortBudgets) -> Option<Effort> {
    match reasoning {
        Reasoning::Budget(tokens) => Some(budgets.effort(tokens)),
        Reasoning::Effort(effort) => Some(effort),
        Reasoning::Off => None,
    }
}

/// The wanted effort, or the highest one below it, or the least.
fn nearest(efforts: &[Effort], wanted: Effort) -> Option<Effort> {
    efforts.iter().rfind(|effort| **effort <= wanted).or(efforts.first()).copied()
}

impl ChatApi {
    /// The fields of a request that say how much to think.
    pub(super) fn reasoning_fields(
        &self,
        reasoning: Option<Reasoning>,
        model: &str,
        family: Option<&ModelFamily>,
    ) -> Result<Vec<(&'static str, Value)>, LlmError> {
        let Some(reasoning) = reasoning else { return Ok(Vec::new()) };
        let budgets = self.place.budgets();
        let wanted = effort(reasoning, budgets);
        Ok(match self.quirks.reasoning {
            ReasoningForm::Effort { efforts, off } => {
                let levels = family.map_or(Levels { efforts, off }, ModelFamily::chat_levels);
                let word = levels.word(reasoning, &self.place, model)?;
                word.into_iter().map(|word| ("reasoning_effort", word.into())).collect()
            }
            ReasoningForm::None => Vec::new(),
            ReasoningForm::Object => {
                let asked = match (reasoning, wanted) {
                    (Reasoning::Budget(tokens), _) => json!({"max_tokens": tokens}),
                    (_, Some(effort)) => json!({"effort": effort.as_str()}),
                    (_, None) => json!({"enabled": false}),
                };
                vec![("reasoning", asked)]
            }
            ReasoningForm::Thinking { efforts } => {
                let switch = if wanted.is_some() { "enabled" } else { "disabled" };
                let beside = wanted.and_then(|effort| nearest(efforts, effort));
                let beside = beside.map(|effort| ("reasoning_effort", effort.as_str().into()));
                [("thinking", json!({"type": switch}))].into_iter().chain(beside).collect()
            }
            ReasoningForm::Switch => {
                let budget = match (reasoning, wanted) {
                    (Reasoning::Budget(tokens), _) => Some(tokens),
                    (_, effort) => effort.map(|effort| budgets.tokens(effort)),
                };
                let budget = budget.map(|tokens| ("thinking_budget", tokens.into()));
                [("enable_thinking", wanted.is_some().into())].into_iter().chain(budget).collect()
            }
        })
    }
}

impl ModelFamily {
    /// What its models take on chat completions.
    fn chat_levels(&self) -> Levels<'_> {
        let most = self.efforts.iter().take_while(|effort| **effort <= self.most_on_chat).count();
        Levels { efforts: &self.efforts[..most], off: self.reasoning_off }
    }

    /// What its models take by the Responses API.
    pub(in crate::provider) fn levels(&self) -> Levels<'_> {
        Levels { efforts: &self.efforts, off: self.reasoning_off }
    }
}
