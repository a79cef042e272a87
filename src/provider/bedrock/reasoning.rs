//! How much the model is to think: each vendor's models have a form of their own, among the model's own fields.

use super::Bedrock;
use super::encode::NAME;
use super::stream::PROTOCOL;
use crate::LlmError;
use crate::chat::{Effort, EffortBudgets, Reasoning, Request, ToolChoice};
use crate::provider::anthropic::{self, AnthropicForcedTools, AnthropicSampling, thinking};
use crate::provider::refusal::unsupported;
use serde_json::{Map, Value, json};

/// What is sent of it.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Among the model's own fields.
    pub(super) fields: Map<String, Value>,
    /// The token limit that thinking asks for, where the call sets none.
    pub(super) max_tokens: Option<u32>,
}

/// In which form a model is told how much to think.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// Claude's `thinking`, and `output_config`.
    Claude,
    /// gpt-oss' `reasoning_effort`.
    GptOss,
    /// `reasoning` with an effort, of `OpenAI`'s other models.
    OpenAi,
    /// Nova 2's `reasoningConfig`.
    Nova,
}

impl Form {
    /// The form of a model, by any of its names; none where it has no such setting, or nothing is known of it.
    pub(super) fn of(model: &str) -> Option<Self> {
        let has = |part: &str| model.contains(part);
        if has("anthropic.") {
            Some(Self::Claude)
        } else if has("openai.gpt-oss") {
            Some(Self::GptOss)
        } else if has("openai.") {
            Some(Self::OpenAi)
        } else if has("amazon.nova-2") {
            Some(Self::Nova)
        } else {
            None
        }
    }
}

pub(super) fn plan(bedrock: &Bedrock, request: &Request, model: &str) -> Result<Plan, LlmError> {
    let mut plan = Plan::default();
    let (Some(reasoning), Some(form)) = (request.reasoning, Form::of(model)) else { return Ok(plan) };
    if form == Form::Claude {
        claude(bedrock, request, model, &mut plan)?;
        return Ok(plan);
    }
    let effort = match reasoning {
        Reasoning::Effort(effort) => effort,
        Reasoning::Budget(tokens) => EffortBudgets::default().effort(tokens),
        Reasoning::Off if form == Form::Nova => {
            plan.fields.insert("reasoningConfig".into(), json!({"type": "disabled"}));
            return Ok(plan);
        }
        Reasoning::Off => {
            let cure = "it always thinks; ask for Effort::Low, or choose another model";
            return Err(unsupported(NAME, model, "reasoning off", cure));
        }
    };
    // Three words are known to all of them.
    let word = match effort {
        Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High | Effort::XHigh | Effort::Max => "high",
    };
    let (field, value) = match form {
        Form::GptOss => ("reasoning_effort", json!(word)),
        Form::Nova => ("reasoningConfig", json!({"type": "enabled", "maxReasoningEffort": word})),
        Form::Claude | Form::OpenAi => ("reasoning", json!({"effort": word})),
    };
    plan.fields.insert(field.into(), value);
    Ok(plan)
}

/// As Anthropic's own API takes it, one level deeper.
fn claude(bedrock: &Bedrock, request: &Request, model: &str, plan: &mut Plan) -> Result<(), LlmError> {
    let family = anthropic::family(&bedrock.claude, model);
    let thinking = thinking::plan(request, family, &EffortBudgets::default(), model, PROTOCOL)?;
    if thinking.is_on {
        let forced = matches!(request.tool_choice, ToolChoice::Named(_) | ToolChoice::Required);
        let may_force = family.is_none_or(|family| family.forced_tools == AnthropicForcedTools::Always);
        if forced && !may_force {
            return Err(unsupported(NAME, model, "tool_choice", "it cannot be forced to call a tool while it thinks"));
        }
        if family.is_some_and(|family| !family.sampling_beside_thinking)
            && let Some((setting, _)) = AnthropicSampling::DefaultsOnly.refusal(&request.sampling)
        {
            return Err(unsupported(NAME, model, setting, "leave it out, or ask for no reasoning"));
        }
    }
    if let Some(form) = thinking.thinking {
        plan.fields.insert("thinking".into(), json!(form));
    }
    if let Some(effort) = thinking.effort {
        plan.fields.insert("output_config".into(), json!({"effort": effort}));
    }
    if matches!(thinking.thinking, Some(thinking::Thinking::Enabled { .. })) && request.sampling.max_tokens.is_none() {
        plan.max_tokens = Some(thinking.max_tokens);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::chat::{Effort, Reasoning, Request};
    use crate::provider::{Bedrock, EncodeContext, Provider};
    use crate::{ErrorCode, LlmError};
    use serde_json::{Value, json};

    fn sent(model: &str, reasoning: Reasoning) -> Result<Value, LlmError> {
        let mut request = Request::user("Hello");
        request.reasoning = Some(reasoning);
        let bedrock = Bedrock::bearer("us-east-1", "key");
        assert!(bedrock.capabilities(model).reasoning, "{model}");
        let http = bedrock.encode(&request, &EncodeContext::new(model))?;
        let body: Value = serde_json::from_slice(&http.body).unwrap();
        Ok(body["additionalModelRequestFields"].clone())
    }

    #[test]
    fn each_vendor_is_told_in_its_own_form() {
        let high = Reasoning::Effort(Effort::High);
        for (model, reasoning, expected) in [
            ("openai.gpt-oss-120b-1:0", high, json!({"reasoning_effort": "high"})),
            ("us.openai.gpt-6", Reasoning::Budget(1_024), json!({"reasoning": {"effort": "low"}})),
            (
                "amazon.nova-2-lite-v1:0",
                high,
                json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}),
            ),
            ("amazon.nova-2-lite-v1:0", Reasoning::Off, json!({"reasoningConfig": {"type": "disabled"}})),
        ] {
            assert_eq!(sent(model, reasoning).unwrap(), expected, "{model}");
        }
        let error = sent("openai.gpt-oss-20b-1:0", Reasoning::Off).unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::UnsupportedCapability));
        assert!(!Bedrock::bearer("us-east-1", "key").capabilities("amazon.nova-pro-v1:0").reasoning);
    }

    #[test]
    fn a_budget_of_claude_asks_for_room_beside_it() {
        let mut request = Request::user("Hello");
        request.reasoning = Some(Reasoning::Budget(4_096));
        let model = "anthropic.claude-3-7-sonnet-20250219-v1:0";
        let http = Bedrock::bearer("us-east-1", "key").encode(&request, &EncodeContext::new(model)).unwrap();
        let body: Value = serde_json::from_slice(&http.body).unwrap();
        let thinking = &body["additionalModelRequestFields"]["thinking"];
        assert_eq!(thinking, &json!({"type": "enabled", "budget_tokens": 4_096}));
        assert!(body["inferenceConfig"]["maxTokens"].as_u64() > Some(4_096), "{body}");
    }
}
