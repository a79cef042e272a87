//! The tools of a request, and the form of its answer, which a tool may stand for.

use super::answer::is_output;
use super::family::{AnthropicFamily, AnthropicForcedTools};
use super::{OUTPUT_TOOL, WRAPPED, WRAPPED_OUTPUT_TOOL};
use crate::LlmError;
use crate::chat::{JsonSchema, Output, Request, Tool, ToolChoice};
use crate::provider::refusal::{check_tool_names, unsupported};
use crate::provider::schema::{self, Inexpressible};
use crate::record::ErrorCode;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The longest name of a tool.
const LONGEST_NAME: usize = 128;

/// What is sent of them.
#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    pub(super) tools: Vec<Declared<'a>>,
    pub(super) choice: Option<Choice<'a>>,
    pub(super) format: Option<Format>,
}

#[derive(Debug, Serialize)]
pub(super) struct Declared<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Choice<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disable_parallel_tool_use: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Format {
    JsonSchema { schema: Value },
}

/// What a model is known to take.
#[derive(Clone, Copy)]
struct Limits<'a> {
    model: &'a str,
    forced_tools: AnthropicForcedTools,
    output_format: bool,
    thinks: bool,
}

pub(super) fn plan<'a>(
    request: &'a Request,
    family: Option<&AnthropicFamily>,
    thinks: bool,
    model: &str,
) -> Result<Plan<'a>, LlmError> {
    let limits = Limits {
        model,
        forced_tools: family.map_or(AnthropicForcedTools::Always, |family| family.forced_tools),
        output_format: family.is_none_or(|family| family.output_format),
        thinks,
    };
    check_tool_names("anthropic", model, &request.tools, LONGEST_NAME)?;
    if let Some(tool) = request.tools.iter().find(|tool| is_output(&tool.name)) {
        let message =
            format!("a tool is called {:?}, a name that the adapter keeps for itself; give it another", tool.name);
        return Err(LlmError::of(ErrorCode::InvalidCall, message));
    }
    let mut plan = Plan {
        tools: request.tools.iter().map(|tool| declared(tool, model)).collect::<Result<_, _>>()?,
        choice: choice(request),
        format: None,
    };
    if matches!(request.tool_choice, ToolChoice::Named(_) | ToolChoice::Required) && !plan.tools.is_empty() {
        limits.force("tool_choice")?;
    }
    match &request.output {
        Output::Text => {}
        // There is no format for JSON of any shape.
        Output::Json => limits.by_tool(&mut plan, "json", "", &json!({}))?,
        Output::Schema(output) => limits.schema(&mut plan, output)?,
    }
    Ok(plan)
}

impl Limits<'_> {
    /// Refuses to force a tool where the model is known to refuse it. `what` is what needs it.
    fn force(&self, what: &str) -> Result<(), LlmError> {
        let cure = match self.forced_tools {
            AnthropicForcedTools::WithoutThinking if self.thinks => {
                "it cannot be forced to call a tool while it thinks"
            }
            AnthropicForcedTools::Never => {
                "it cannot be forced to call a tool; leave it to the model, or choose another"
            }
            _ => return Ok(()),
        };
        Err(unsupported("anthropic", self.model, what, cure))
    }

    fn schema<'a>(&self, plan: &mut Plan<'a>, output: &'a JsonSchema) -> Result<(), LlmError> {
        let refused = if self.output_format {
            match schema::anthropic(&output.schema) {
                Ok(schema) => {
                    plan.format = Some(Format::JsonSchema { schema });
                    return Ok(());
                }
                Err(inexpressible) => Some(inexpressible),
            }
        } else {
            None
        };
        // A tool that is not strict takes what the format has no words for.
        let by_tool = self.by_tool(plan, "schema", output.description.as_deref().unwrap_or_default(), &output.schema);
        by_tool.map_err(|error| refused.map_or(error, |inexpressible| inexpressible.refuse("output", self.model)))
    }

    /// Has a forced tool stand for the form of the answer.
    fn by_tool<'a>(
        &self,
        plan: &mut Plan<'a>,
        what: &str,
        description: &'a str,
        schema: &Value,
    ) -> Result<(), LlmError> {
        if !plan.tools.is_empty() {
            let cure = "a forced tool stands for it, which leaves no room for others; leave the tools out";
            return Err(unsupported("anthropic", self.model, &format!("{what} beside tools"), cure));
        }
        self.force(what)?;
        let (name, schema) = match rooted(schema) {
            Ok(schema) => (OUTPUT_TOOL, schema.into_owned()),
            Err(_) => (WRAPPED_OUTPUT_TOOL, wrapped(schema)),
        };
        let description = if description.is_empty() { "Gives the answer." } else { description };
        plan.tools.push(Declared { name, description, input_schema: Cow::Owned(schema), strict: false });
        plan.choice = Some(Choice { kind: "tool", name: Some(name), disable_parallel_tool_use: true });
        Ok(())
    }
}

/// An object with one field of this schema. What the schema defines stays at the root, where references look for it.
fn wrapped(schema: &Value) -> Value {
    let mut inner = schema.clone();
    let mut outer = json!({"type": "object", "required": [WRAPPED]});
    for definitions in ["$defs", "definitions"] {
        if let Some(found) = inner.as_object_mut().and_then(|fields| fields.remove(definitions)) {
            outer[definitions] = found;
        }
    }
    outer["properties"] = json!({WRAPPED: inner});
    outer
}

fn declared<'a>(tool: &'a Tool, model: &str) -> Result<Declared<'a>, LlmError> {
    let strict = tool.strict == Some(true);
    let schema = if strict { schema::anthropic(&tool.parameters).map(Cow::Owned) } else { rooted(&tool.parameters) };
    let input_schema = schema.map_err(|inexpressible| inexpressible.refuse(&format!("tool {:?}", tool.name), model))?;
    Ok(Declared { name: &tool.name, description: &tool.description, input_schema, strict })
}

/// The schema with a root that says it is an object, as the protocol wants it of a tool; the rest is taken as it is.
fn rooted(schema: &Value) -> Result<Cow<'_, Value>, Inexpressible> {
    if schema.get("type").is_some_and(|kind| kind == "object") {
        return Ok(Cow::Borrowed(schema));
    }
    let inlined = schema::inline_refs(schema)?;
    if inlined.get("type").is_some_and(|kind| kind == "object") {
        return Ok(Cow::Owned(inlined));
    }
    Err(Inexpressible { at: String::new(), what: "it is not the schema of an object".to_owned() })
}

fn choice(request: &Request) -> Option<Choice<'_>> {
    if request.tools.is_empty() {
        return None;
    }
    let one_at_a_time = request.parallel_tool_calls == Some(false);
    let (kind, name) = match &request.tool_choice {
        ToolChoice::Auto if !one_at_a_time => return None,
        ToolChoice::Auto => ("auto", None),
        ToolChoice::Named(name) => ("tool", Some(name.as_str())),
        // Where no tool is called, none is called beside another, and the protocol does not take the word.
        ToolChoice::None => return Some(Choice { kind: "none", name: None, disable_parallel_tool_use: false }),
        ToolChoice::Required => ("any", None),
    };
    Some(Choice { kind, name, disable_parallel_tool_use: one_at_a_time })
}
