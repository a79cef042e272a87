//! What the provider refuses of the input of a response and of the tools beside it.

use super::items::sealed;
use crate::testing::openai::{Refusal, check_output, check_tools};
use serde_json::{Map, Value};

/// Checks the items: every call with its output, every output with its call, reasoning with what it led to.
pub(super) fn check(body: &Map<String, Value>, items: &[Value]) -> Result<(), Refusal> {
    let is = |item: &Value, kind: &str| item["type"] == kind;
    let chained = body.get("previous_response_id").is_some_and(Value::is_string);
    for (at, item) in items.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        let of = |kind: &str, items: &[Value]| items.iter().any(|other| is(other, kind) && other["call_id"] == id);
        if is(item, "function_call_output") && !of("function_call", &items[..at]) && !chained {
            let message = format!("No tool call found for function call output with call_id {id}.");
            return Err(Refusal::invalid(400, message).param("input"));
        }
        if is(item, "function_call") {
            if !item["name"].is_string() || !item["arguments"].is_string() {
                let message = format!("Invalid type for 'input[{at}]': expected a name and arguments, both strings.");
                return Err(Refusal::invalid(400, message).code("invalid_type").at(format!("input[{at}]")));
            }
            if !of("function_call_output", &items[at..]) {
                let message = format!("No tool output found for function call {id}.");
                return Err(Refusal::invalid(400, message).param("input"));
            }
        }
        if is(item, "reasoning") {
            check_reasoning(body, item, items.get(at + 1))?;
        }
        if is(item, "message") || item.get("type").is_none() {
            check_message(at, item)?;
        }
    }
    Ok(())
}

fn check_reasoning(body: &Map<String, Value>, item: &Value, next: Option<&Value>) -> Result<(), Refusal> {
    let id = item["id"].as_str().unwrap_or_default();
    let follows = next.is_some_and(|next| {
        matches!(next["type"].as_str(), Some("reasoning" | "function_call")) || next["role"] == "assistant"
    });
    if !follows {
        let message = format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
        return Err(Refusal::invalid(400, message).param("input"));
    }
    match item["encrypted_content"].as_str() {
        Some(content) if content != sealed(body["model"].as_str().unwrap_or_default(), id) => {
            let message = format!("The encrypted content for item {id} could not be verified.");
            Err(Refusal::invalid(400, message).code("invalid_encrypted_content"))
        }
        None if body.get("store") == Some(&Value::Bool(false)) => {
            let message = format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` \
                 set to true, or remove this item from your input."
            );
            Err(Refusal::invalid(404, message).param("input"))
        }
        _ => Ok(()),
    }
}

fn check_message(at: usize, item: &Value) -> Result<(), Refusal> {
    let role = item["role"].as_str().unwrap_or_default();
    if !["assistant", "developer", "system", "user"].contains(&role) {
        let message =
            format!("Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.");
        return Err(Refusal::invalid(400, message).code("invalid_value").at(format!("input[{at}]")));
    }
    let known: &[&str] = if role == "assistant" {
        &["output_text", "refusal"]
    } else {
        &["input_audio", "input_file", "input_image", "input_text"]
    };
    for (n, part) in item["content"].as_array().into_iter().flatten().enumerate() {
        let kind = part["type"].as_str().unwrap_or_default();
        let image = kind != "input_image" || part["image_url"].is_string() || part["file_id"].is_string();
        if !known.contains(&kind) || !image {
            let message = format!("Invalid value: '{kind}'. Supported values are: {}.", known.join(", "));
            let at = format!("input[{at}].content[{n}]");
            return Err(Refusal::invalid(400, message).code("invalid_value").at(at));
        }
    }
    Ok(())
}

/// Checks tools, their choice, and the form of the answer: flat here, where chat completions nest them.
pub(super) fn check_options(body: &Map<String, Value>) -> Result<(), Refusal> {
    let field = |name: &str| body.get(name).unwrap_or(&Value::Null);
    let tools = field("tools").as_array().map_or(&[][..], Vec::as_slice);
    let functions: Vec<_> = tools.iter().filter(|tool| tool["type"] == "function").collect();
    check_tools(body, &functions, &field("tool_choice")["name"])?;
    let format = &field("text")["format"];
    match format["type"].as_str() {
        Some("json_object") if !field("input").to_string().to_ascii_lowercase().contains("json") => {
            let message = "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.";
            Err(Refusal::invalid(400, message).param("input"))
        }
        Some("json_schema") => check_output(format, "text.format"),
        _ => Ok(()),
    }
}
