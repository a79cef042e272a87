//! What the provider refuses of a conversation and of the tools in it.

use super::Refusal;
use serde_json::{Map, Value};

const ROLES: [&str; 5] = ["assistant", "developer", "system", "tool", "user"];
const PARTS: [&str; 4] = ["file", "image_url", "input_audio", "text"];
const IMAGES: [&str; 4] = ["png", "jpeg", "webp", "gif"];

/// Checks the messages: who speaks after whom, and which results answer which calls.
pub(super) fn check(messages: &[Value]) -> Result<(), Refusal> {
    // The calls that wait for their results, and the message that made them.
    let mut open: (usize, Vec<&str>) = (0, Vec::new());
    let mut called: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if !ROLES.contains(&role) {
            let message = format!("Invalid value: '{role}'. Supported values are: {}.", ROLES.join(", "));
            return Err(Refusal::invalid(400, message).code("invalid_value").at(format!("messages[{at}].role")));
        }
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if called.is_empty() {
                let message = "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.";
                return Err(Refusal::invalid(400, message).at(format!("messages.[{at}].role")));
            }
            if !called.contains(&id) {
                let message = format!(
                    "Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message."
                );
                return Err(Refusal::invalid(400, message).at(format!("messages.[{at}].tool_call_id")));
            }
            open.1.retain(|open| *open != id);
            continue;
        }
        unanswered(&open)?;
        called.clear();
        if role == "assistant" {
            called = check_calls(at, message)?;
            open = (at, called.clone());
        }
        check_content(at, role, message)?;
    }
    unanswered(&open)
}

fn unanswered((at, open): &(usize, Vec<&str>)) -> Result<(), Refusal> {
    if open.is_empty() {
        return Ok(());
    }
    let message = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. \
         The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    );
    Err(Refusal::invalid(400, message).at(format!("messages.[{at}].role")))
}

/// The ids of the calls of a message.
fn check_calls(at: usize, message: &Value) -> Result<Vec<&str>, Refusal> {
    let mut ids = Vec::new();
    for (n, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let function = &call["function"];
        let whole = call["type"] == "function" && function["name"].is_string() && function["arguments"].is_string();
        let Some(id) = call["id"].as_str().filter(|id| whole && !id.is_empty()) else {
            let message = format!(
                "Invalid type for 'messages[{at}].tool_calls[{n}]': expected a tool call with an id, a type and a function whose arguments are a string."
            );
            let place = format!("messages[{at}].tool_calls[{n}]");
            return Err(Refusal::invalid(400, message).code("invalid_type").at(place));
        };
        ids.push(id);
    }
    if message["tool_calls"].as_array().is_some_and(Vec::is_empty) {
        let message = format!(
            "Invalid 'messages[{at}].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead."
        );
        return Err(Refusal::invalid(400, message).code("empty_array").at(format!("messages[{at}].tool_calls")));
    }
    Ok(ids)
}

fn check_content(at: usize, role: &str, message: &Value) -> Result<(), Refusal> {
    let may_be_missing = role == "assistant" && (message["tool_calls"].is_array() || message["refusal"].is_string());
    match &message["content"] {
        Value::String(_) => Ok(()),
        Value::Null if may_be_missing => Ok(()),
        Value::Array(parts) => parts
            .iter()
            .enumerate()
            .try_for_each(|(n, part)| check_part(part, role, &format!("messages[{at}].content[{n}]"))),
        _ => {
            let message = "Invalid value for 'content': expected a string, got null.";
            Err(Refusal::invalid(400, message).at(format!("messages.[{at}].content")))
        }
    }
}

fn check_part(part: &Value, role: &str, at: &str) -> Result<(), Refusal> {
    let kind = part["type"].as_str().unwrap_or_default();
    if !PARTS.contains(&kind) || (role != "user" && kind != "text") {
        let message = format!("Invalid value: '{kind}'. Supported values are: {}.", PARTS.join(", "));
        return Err(Refusal::invalid(400, message).code("invalid_value").at(at.to_owned()));
    }
    if kind != "image_url" {
        return Ok(());
    }
    let url = part["image_url"]["url"].as_str().unwrap_or_default();
    let inline = url.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"));
    let fits = url.starts_with("https://")
        || url.starts_with("http://")
        || inline.is_some_and(|(kind, _)| IMAGES.contains(&kind));
    if fits {
        return Ok(());
    }
    let message = "Invalid image data: expected an https URL, or a data URL of a png, jpeg, webp or gif.";
    Err(Refusal::invalid(400, message).code("invalid_image_url").at(format!("{at}.image_url")))
}

/// Checks tools, their choice, and the form of the answer.
pub(super) fn check_options(body: &Map<String, Value>) -> Result<(), Refusal> {
    let field = |name: &str| body.get(name).unwrap_or(&Value::Null);
    if body.contains_key("stream_options") && field("stream") != &Value::Bool(true) {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(Refusal::invalid(400, message).param("stream_options"));
    }
    if body.contains_key("max_tokens") && body.contains_key("max_completion_tokens") {
        let message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
        return Err(Refusal::invalid(400, message).code("invalid_parameter_combination").param("max_tokens"));
    }
    let tools = field("tools").as_array().map_or(&[][..], Vec::as_slice);
    let functions: Vec<_> = tools.iter().map(|tool| &tool["function"]).collect();
    check_tools(body, &functions, &field("tool_choice")["function"]["name"])?;
    let format = field("response_format");
    match format["type"].as_str() {
        Some("json_object") if !field("messages").to_string().to_ascii_lowercase().contains("json") => {
            let message =
                "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.";
            Err(Refusal::invalid(400, message).param("messages"))
        }
        Some("json_schema") => check_output(&format["json_schema"], "response_format"),
        _ => Ok(()),
    }
}

/// Checks functions, in either protocol's place for them, and the name that is chosen.
pub(in crate::testing) fn check_tools(
    body: &Map<String, Value>,
    functions: &[&Value],
    chosen: &Value,
) -> Result<(), Refusal> {
    for option in ["tool_choice", "parallel_tool_calls"] {
        if functions.is_empty() && body.get(option).is_some_and(|value| !value.is_null()) {
            let message =
                format!("Invalid value for '{option}': '{option}' is only allowed when 'tools' are specified.");
            return Err(Refusal::invalid(400, message).at(option.to_owned()));
        }
    }
    for (at, function) in functions.iter().enumerate() {
        let name = function["name"].as_str().unwrap_or_default();
        check_name(name, &format!("tools[{at}].function.name"))?;
        if function["strict"] == true {
            check_strict(&function["parameters"]).map_err(|fault| {
                let message = format!("Invalid schema for function '{name}': {fault}");
                Refusal::invalid(400, message)
                    .code("invalid_function_parameters")
                    .at(format!("tools[{at}].function.parameters"))
            })?;
        }
    }
    match chosen.as_str() {
        Some(name) if !functions.iter().any(|function| function["name"] == name) => {
            let message = format!(
                "Invalid value for 'tool_choice': no function named '{name}' was specified in the 'tools' parameter."
            );
            Err(Refusal::invalid(400, message).param("tool_choice"))
        }
        _ => Ok(()),
    }
}

/// Checks the schema that an answer is to have.
pub(in crate::testing) fn check_output(format: &Value, at: &'static str) -> Result<(), Refusal> {
    let name = format["name"].as_str().unwrap_or_default();
    check_name(name, &format!("{at}.name"))?;
    if format["strict"] != true {
        return Ok(());
    }
    check_strict(&format["schema"]).map_err(|fault| {
        Refusal::invalid(400, format!("Invalid schema for response_format '{name}': {fault}")).param(at)
    })
}

fn check_name(name: &str, at: &str) -> Result<(), Refusal> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if matches!(name.len(), 1..=64) && name.bytes().all(is_name) {
        return Ok(());
    }
    let message = format!(
        "Invalid '{at}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
    );
    Err(Refusal::invalid(400, message).code("invalid_value").at(at.to_owned()))
}

/// Every object closed, and every property of it required.
fn check_strict(schema: &Value) -> Result<(), String> {
    fn walk(schema: &Value, at: &mut Vec<String>) -> Result<(), String> {
        let context = |at: &[String]| format!("In context=({})", at.join(", "));
        match schema {
            Value::Object(fields) => {
                if let Some(Value::Object(properties)) = fields.get("properties") {
                    if fields.get("additionalProperties") != Some(&Value::Bool(false)) {
                        return Err(format!(
                            "{}, 'additionalProperties' is required to be supplied and to be false.",
                            context(at)
                        ));
                    }
                    let required = fields.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                    if let Some((missing, _)) = properties.iter().find(|(name, _)| !required.iter().any(|r| r == *name))
                    {
                        return Err(format!(
                            "{}, 'required' is required to be supplied and to be an array including every key in properties. Missing '{missing}'.",
                            context(at)
                        ));
                    }
                }
                fields.iter().try_for_each(|(name, inner)| {
                    at.push(format!("'{name}'"));
                    let checked = walk(inner, at);
                    at.pop();
                    checked
                })
            }
            Value::Array(items) => items.iter().try_for_each(|item| walk(item, at)),
            _ => Ok(()),
        }
    }
    if schema["type"] != "object" {
        return Err(format!("schema must be a JSON Schema of 'type: \"object\"', got 'type: {}'.", schema["type"]));
    }
    walk(schema, &mut Vec::new())
}
