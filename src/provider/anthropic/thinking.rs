//! How much the model is to think, in the words that it knows.

use super::family::{AnthropicFamily, AnthropicThinking};
use crate::LlmError;
use crate::chat::{Effort, EffortBudgets, Part, Reasoning, Request, TurnRef};
use crate::provider::refusal::unsupported;
use crate::record::ErrorCode;
use serde::Serialize;

/// Sent where a call sets no limit: the protocol requires one.
const MAX_TOKENS: u32 = 4_096;
/// The smallest budget that the protocol takes.
const LEAST_BUDGET: u32 = 1_024;

/// What is sent of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::provider) struct Plan {
    pub(in crate::provider) thinking: Option<Thinking>,
    pub(in crate::provider) effort: Option<&'static str>,
    /// The whole answer, thinking included.
    pub(in crate::provider) max_tokens: u32,
    /// Whether the call asks the model to think.
    pub(in crate::provider) is_on: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::provider) enum Thinking {
    Adaptive,
    BetweenTools,
    Disabled,
    Enabled { budget_tokens: u32 },
}

/// Chooses the form that the family knows, for a conversation in `protocol`; a model of no known family is asked in the form in which the call asks.
pub(in crate::provider) fn plan(
    request: &Request,
    family: Option<&AnthropicFamily>,
    budgets: &EffortBudgets,
    model: &str,
    protocol: &str,
) -> Result<Plan, LlmError> {
    let limit = request.sampling.max_tokens;
    let mut plan = Plan { max_tokens: limit.unwrap_or(MAX_TOKENS), ..Plan::default() };
    let rule = family.map_or(AnthropicThinking::Any, |family| family.thinking);
    match request.reasoning {
        None => return Ok(plan),
        Some(Reasoning::Off) => {
            plan.thinking = Some(match rule {
                AnthropicThinking::Always => {
                    let cure = "it always thinks; ask for Effort::Low, or choose another model";
                    return Err(unsupported("anthropic", model, "reasoning off", cure));
                }
                AnthropicThinking::BetweenTools => Thinking::BetweenTools,
                _ => Thinking::Disabled,
            });
            return Ok(plan);
        }
        Some(Reasoning::Budget(budget)) => match rule {
            AnthropicThinking::Any | AnthropicThinking::Budget => {
                check_budget(budget, limit)?;
                plan.thinking = Some(Thinking::Enabled { budget_tokens: budget });
            }
            _ => plan.effort = Some(word(budgets.effort(budget))),
        },
        Some(Reasoning::Effort(effort)) => match rule {
            AnthropicThinking::Budget => {
                let budget_tokens = within(budgets.tokens(effort), limit)?;
                plan.thinking = Some(Thinking::Enabled { budget_tokens });
            }
            _ => plan.effort = Some(word(effort)),
        },
    }
    plan.is_on = true;
    match plan.thinking {
        // Where it thinks of its own accord, the effort alone says how much.
        None => {
            let by_itself = matches!(rule, AnthropicThinking::Always | AnthropicThinking::BetweenTools);
            plan.thinking = (!by_itself).then_some(Thinking::Adaptive);
        }
        // With a budget, the turn whose tools have just run has to begin with the thoughts that led to them. Where there are
        // none, for another provider's model or a call without reasoning wrote the turn, Anthropic asks to go on without.
        Some(Thinking::Enabled { .. }) if lacks_thoughts(request, protocol) => {
            (plan.thinking, plan.is_on) = (None, false);
        }
        Some(Thinking::Enabled { budget_tokens }) if limit.is_none() => {
            plan.max_tokens = budget_tokens.saturating_add(MAX_TOKENS);
        }
        Some(_) => {}
    }
    Ok(plan)
}

/// A budget that the call itself names.
fn check_budget(budget: u32, limit: Option<u32>) -> Result<(), LlmError> {
    let invalid = |message: String| Err(LlmError::of(ErrorCode::InvalidCall, message));
    if budget < LEAST_BUDGET {
        return invalid(format!("the reasoning budget is {budget}; anthropic takes at least {LEAST_BUDGET} tokens"));
    }
    match limit {
        Some(limit) if budget >= limit => invalid(format!(
            "the reasoning budget of {budget} is not below max_tokens {limit}, which counts reasoning too; raise max_tokens"
        )),
        _ => Ok(()),
    }
}

/// A budget that stands for an effort: at most half of what the whole answer may have.
fn within(budget: u32, limit: Option<u32>) -> Result<u32, LlmError> {
    let budget = limit.map_or(budget, |limit| budget.min(limit / 2)).max(LEAST_BUDGET);
    check_budget(budget, limit).map(|()| budget)
}

/// The protocol's word. It has none for less than low.
fn word(effort: Effort) -> &'static str {
    match effort {
        Effort::Minimal => Effort::Low.as_str(),
        effort => effort.as_str(),
    }
}

/// Whether the conversation stands behind results of tools that were called without a thought.
fn lacks_thoughts(request: &Request, protocol: &str) -> bool {
    let turns = request.turns().collect::<Vec<_>>();
    let thought = |part: &Part| matches!(part, Part::Reasoning(opaque) if opaque.protocol == protocol);
    match turns.as_slice() {
        [.., TurnRef::Assistant(content, _), TurnRef::Tool(_)] => {
            !content.is_some_and(|content| content.parts().first().is_some_and(thought))
        }
        _ => false,
    }
}
