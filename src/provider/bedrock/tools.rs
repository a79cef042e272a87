//! The tools of a request, and the form of its answer.

use super::encode::NAME;
use crate::LlmError;
use crate::chat::{Output, Request, ToolChoice};
use crate::provider::refusal::{check_tool_names, unsupported};
use crate::provider::schema;
use crate::record::ErrorCode;
use serde_json::{Map, Value, json};

/// The longest name of a tool.
const LONGEST_NAME: usize = 64;

/// The tool that stands for the form of the answer. No tool of a call may be called so.
pub(super) const OUTPUT_TOOL: &str = "answer_as_json";

/// What is sent of them.
#[derive(Default)]
pub(super) struct Plan {
    /// `toolConfig`.
    pub(super) tools: Option<Value>,
    /// `outputConfig`.
    pub(super) output: Option<Value>,
    /// What goes among the model's own fields.
    pub(super) additional: Map<String, Value>,
}

/// `claude`: whether the model is Anthropic's, which alone takes a format for its answers and a switch for parallel calls.
pub(super) fn plan(request: &Request, claude: bool, model: &str) -> Result<Plan, LlmError> {
    check_tool_names(NAME, model, &request.tools, LONGEST_NAME)?;
    if request.tools.iter().any(|tool| tool.name == OUTPUT_TOOL) {
        let message =
            format!("a tool is called {OUTPUT_TOOL:?}, a name that the adapter keeps for itself; give it another");
        return Err(LlmError::of(ErrorCode::InvalidCall, message));
    }
    let mut plan = Plan::default();
    let declared: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            let mut spec = json!({"name": tool.name, "inputSchema": {"json": tool.parameters}});
            // An empty description is refused.
            if !tool.description.trim().is_empty() {
                spec["description"] = tool.description.as_str().into();
            }
            json!({"toolSpec": spec})
        })
        .collect();
    let none = request.tool_choice == ToolChoice::None;
    if !declared.is_empty() && !none {
        let mut tools = json!({"tools": declared});
        match &request.tool_choice {
            ToolChoice::Auto | ToolChoice::None => {}
            ToolChoice::Named(name) => tools["toolChoice"] = json!({"tool": {"name": name}}),
            ToolChoice::Required => tools["toolChoice"] = json!({"any": {}}),
        }
        plan.tools = Some(tools);
    }
    if let Some(parallel) = request.parallel_tool_calls.filter(|_| plan.tools.is_some()) {
        match (claude, parallel) {
            (true, false) => {
                let kind = match request.tool_choice {
                    ToolChoice::Required => "any",
                    ToolChoice::Named(_) => "tool",
                    ToolChoice::Auto | ToolChoice::None => "auto",
                };
                let mut choice = json!({"type": kind, "disable_parallel_tool_use": true});
                if let ToolChoice::Named(name) = &request.tool_choice {
                    choice["name"] = name.as_str().into();
                }
                plan.additional.insert("tool_choice".into(), choice);
            }
            (false, false) => {
                return Err(unsupported(NAME, model, "parallel_tool_calls", "leave it out: only Claude has a switch"));
            }
            (_, true) => {}
        }
    }
    match &request.output {
        Output::Text => {}
        Output::Json => by_tool(&mut plan, &json!({"type": "object"}), "", model)?,
        Output::Schema(output) => {
            let description = output.description.as_deref().unwrap_or_default();
            match schema::anthropic(&output.schema) {
                // The format takes its schema as a text.
                Ok(adapted) if claude => {
                    let mut format = json!({"name": output.name, "schema": adapted.to_string()});
                    if !description.is_empty() {
                        format["description"] = description.into();
                    }
                    plan.output =
                        Some(json!({"textFormat": {"type": "json_schema", "structure": {"jsonSchema": format}}}));
                }
                _ => by_tool(&mut plan, &output.schema, description, model)?,
            }
        }
    }
    Ok(plan)
}

/// Has a forced tool stand for the form of the answer.
fn by_tool(plan: &mut Plan, schema: &Value, description: &str, model: &str) -> Result<(), LlmError> {
    if plan.tools.is_some() {
        let cure =
            "the model has no format for it, and its tools are taken: leave the tools out, or choose another model";
        return Err(unsupported(NAME, model, "output beside tools", cure));
    }
    if schema["type"] != "object" {
        let cure = "the model has no format for it, and a tool takes an object: wrap the value in one";
        return Err(unsupported(NAME, model, "output of another type than object", cure));
    }
    let description = if description.is_empty() { "Give the answer by calling this tool." } else { description };
    plan.tools = Some(json!({
        "tools": [{"toolSpec": {"name": OUTPUT_TOOL, "description": description, "inputSchema": {"json": schema}}}],
        "toolChoice": {"tool": {"name": OUTPUT_TOOL}},
    }));
    Ok(())
}
