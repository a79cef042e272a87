//! The tools of a call, and what it says of their use.

use crate::LlmError;
use crate::chat::{Request, Tool, ToolChoice};
use crate::record::{ErrorCode, Issues};
use serde_json::Value;

pub(super) fn check(request: &Request) -> Result<(), LlmError> {
    let tools = &request.tools;
    for (place, tool) in tools.iter().enumerate() {
        check_tool(place, tool)?;
    }
    let mut names: Vec<String> = Vec::new();
    for (place, tool) in tools.iter().enumerate() {
        if tools[..place].iter().any(|before| before.name == tool.name) && !names.contains(&tool.name) {
            names.push(tool.name.clone());
        }
    }
    if !names.is_empty() {
        let message = format!("more than one tool is called {}; give each a name of its own", names.join(", "));
        return Err(LlmError::of(ErrorCode::DuplicateToolNames, message).with_issues(Issues::ToolNames { names }));
    }
    check_choice(request)
}

fn check_tool(place: usize, tool: &Tool) -> Result<(), LlmError> {
    let invalid = |message: String| Err(LlmError::of(ErrorCode::InvalidCall, message));
    let name = &tool.name;
    if name.trim().is_empty() {
        return invalid(format!("tools[{place}] has no name"));
    }
    let kind = tool.parameters.get("type");
    if kind.and_then(Value::as_str) != Some("object") && tool.parameters.get("$ref").is_none() {
        let is = match kind {
            Some(kind) => format!("are a schema of type {kind}"),
            None => "name no type".to_owned(),
        };
        return invalid(format!(
            "tool {name:?}: its parameters {is}; they take the schema of an object (\"type\": \"object\")"
        ));
    }
    Ok(())
}

fn check_choice(request: &Request) -> Result<(), LlmError> {
    match &request.tool_choice {
        ToolChoice::Named(requested) if !request.tools.iter().any(|tool| tool.name == *requested) => {
            let available: Vec<String> = request.tools.iter().map(|tool| tool.name.clone()).collect();
            let there_are = if available.is_empty() { "none".to_owned() } else { available.join(", ") };
            let message =
                format!("tool_choice names {requested:?}, which is not among the tools; there are: {there_are}");
            let issues = Issues::ToolChoice { requested: requested.clone(), available };
            Err(LlmError::of(ErrorCode::UnknownToolChoice, message).with_issues(issues))
        }
        ToolChoice::Required if request.tools.is_empty() => {
            let message = "tool_choice requires a tool, but the call has none; add one, or leave the choice out";
            Err(LlmError::of(ErrorCode::InvalidCall, message))
        }
        _ => Ok(()),
    }
}
