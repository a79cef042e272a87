//! What the server checks of a request. It decodes into fixed types, and ignores fields that it does not know.

use crate::testing::protocol::{Asked, count_tokens};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The options that are numbers, and the one that is a list of texts.
const NUMBERS: [&str; 5] = ["temperature", "top_p", "num_predict", "seed", "num_ctx"];
const TEXTS: &str = "stop";

pub(super) fn read(body: &[u8]) -> Result<Asked, String> {
    if body.is_empty() {
        return Err("missing request body".to_owned());
    }
    let body: Value = serde_json::from_slice(body).map_err(|_| "invalid character in the request body".to_owned())?;
    let model = body["model"].as_str().filter(|model| !model.is_empty()).ok_or("model is required")?;
    let messages = list(&body, "messages")?;
    messages.iter().try_for_each(check_message)?;
    list(&body, "tools")?.iter().try_for_each(check_tool)?;
    check_options(&body["options"])?;
    if !matches!(&body["format"], Value::Null | Value::Object(_)) && body["format"] != "json" {
        return Err(format!("invalid format: {}; expected \"json\" or a valid JSON Schema object", body["format"]));
    }
    match &body["think"] {
        Value::Null | Value::Bool(_) => {}
        Value::String(level) if matches!(level.as_str(), "low" | "medium" | "high" | "max") => {}
        think => {
            return Err(format!("invalid think value: {think} (must be \"low\", \"medium\", \"high\", true or false)"));
        }
    }
    let stream = match &body["stream"] {
        Value::Null => true,
        Value::Bool(stream) => *stream,
        _ => return Err(cannot_read("stream", "bool")),
    };
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let last = messages.iter().rev().find(|message| message["role"] == "user");
    Ok(Asked {
        model: model.to_owned(),
        prompt: last.or(messages.last()).map(text).unwrap_or_default(),
        input_tokens: messages.iter().map(|message| count_tokens(&text(message)) + 3).sum(),
        stream,
        ..Asked::default()
    })
}

fn cannot_read(field: &str, kind: &str) -> String {
    format!("json: cannot unmarshal {field} into a value of type {kind}")
}

/// A list that may be left out.
fn list<'a>(of: &'a Value, field: &str) -> Result<&'a [Value], String> {
    match &of[field] {
        Value::Null => Ok(&[]),
        list => list.as_array().map(Vec::as_slice).ok_or_else(|| cannot_read(field, "list")),
    }
}

fn check_message(message: &Value) -> Result<(), String> {
    if !matches!(message["role"].as_str(), Some("system" | "user" | "assistant" | "tool")) {
        return Err(format!("invalid role {}", message["role"]));
    }
    for field in ["content", "thinking", "tool_name", "tool_call_id"] {
        if !matches!(message[field], Value::String(_) | Value::Null) {
            return Err(cannot_read(&format!("messages.{field}"), "string"));
        }
    }
    for image in list(message, "images")? {
        // Raw base64: a data URL has letters that it does not have.
        if image.as_str().is_none_or(|data| data.is_empty() || STANDARD.decode(data).is_err()) {
            return Err("illegal base64 data in messages.images".to_owned());
        }
    }
    for call in list(message, "tool_calls")? {
        if call["function"]["name"].as_str().is_none_or(str::is_empty) {
            return Err("messages.tool_calls.function.name is missing".to_owned());
        }
        if !matches!(call["function"]["arguments"], Value::Object(_) | Value::Null) {
            return Err(cannot_read("messages.tool_calls.function.arguments", "object"));
        }
    }
    Ok(())
}

fn check_tool(tool: &Value) -> Result<(), String> {
    if tool["type"] != "function" || !tool["function"]["name"].is_string() {
        return Err("tools: each takes the type \"function\" and a function with a name".to_owned());
    }
    if tool["function"]["parameters"].is_object() {
        Ok(())
    } else {
        Err(cannot_read("tools.function.parameters", "object"))
    }
}

fn check_options(options: &Value) -> Result<(), String> {
    if !matches!(options, Value::Object(_) | Value::Null) {
        return Err(cannot_read("options", "object"));
    }
    if let Some(name) = NUMBERS.iter().find(|name| !options[**name].is_null() && !options[**name].is_number()) {
        return Err(format!("option \"{name}\" must be a number"));
    }
    match &options[TEXTS] {
        Value::Null => Ok(()),
        Value::Array(texts) if texts.iter().all(Value::is_string) => Ok(()),
        _ => Err(format!("option \"{TEXTS}\" must be a list of texts")),
    }
}
