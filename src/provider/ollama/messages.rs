//! The turns of a request as messages: plain texts, with pictures beside them.

use super::PROTOCOL;
use crate::LlmError;
use crate::chat::{Content, MediaSource, Part, Request, ToolCall, ToolResult, TurnRef};
use crate::provider::arguments::object;
use crate::provider::refusal::unsupported;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

#[derive(Debug, Default, Serialize)]
pub(super) struct Message<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    /// What older servers know a result by; newer ones go by the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Call<'a> {
    id: &'a str,
    function: Function<'a>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: Cow<'a, Value>,
}

/// System text and turns. Roles need not alternate.
pub(super) fn messages<'a>(request: &'a Request, model: &str) -> Result<Vec<Message<'a>>, LlmError> {
    let mut messages = Vec::with_capacity(request.history.len() + 2);
    if let Some(system) = &request.system {
        messages.push(Message { role: "system", content: Cow::Borrowed(system), ..Message::default() });
    }
    // The calls that the next results answer.
    let mut called: &[ToolCall] = &[];
    for turn in request.turns() {
        match turn {
            TurnRef::Assistant(content, calls) => {
                let mut message = content.map_or_else(|| Ok(Message::default()), |content| said(content, model))?;
                (message.role, called) = ("assistant", calls);
                message.tool_calls = calls.iter().map(call).collect();
                messages.push(message);
            }
            TurnRef::Tool(results) => {
                for result in results {
                    messages.push(answered(result, called, model)?);
                }
            }
            TurnRef::User(content) => messages.push(Message { role: "user", ..said(content, model)? }),
        }
    }
    Ok(messages)
}

fn said<'a>(content: &'a Content, model: &str) -> Result<Message<'a>, LlmError> {
    let mut message = Message { content: words(content), ..Message::default() };
    for part in content.parts() {
        match part {
            Part::Audio(_) => return Err(unsupported("ollama", model, "audio", "the protocol has no place for it")),
            Part::Document(_) => {
                return Err(unsupported("ollama", model, "documents", "the protocol takes text and pictures"));
            }
            Part::Image(image) => match &image.source {
                MediaSource::Base64(data) => message.images.push(data),
                MediaSource::Url(_) => {
                    return Err(unsupported("ollama", model, "image_urls", "it takes pictures as bytes alone"));
                }
            },
            Part::Reasoning(opaque) => {
                message.thinking = message.thinking.or(opaque.for_protocol(PROTOCOL).and_then(Value::as_str));
            }
            Part::Text { .. } => {}
        }
    }
    Ok(message)
}

/// The text; the texts of several parts are lines of it.
fn words(content: &Content) -> Cow<'_, str> {
    let mut texts = content.texts();
    match (texts.next(), texts.next()) {
        (first, None) => first.unwrap_or_default().into(),
        (first, second) => first.into_iter().chain(second).chain(texts).collect::<Vec<_>>().join("\n").into(),
    }
}

fn call(call: &ToolCall) -> Call<'_> {
    Call { id: &call.id, function: Function { name: &call.name, arguments: object(&call.arguments) } }
}

fn answered<'a>(result: &'a ToolResult, called: &'a [ToolCall], model: &str) -> Result<Message<'a>, LlmError> {
    let mut message = said(&result.content, model)?;
    if result.is_error {
        // The protocol has no field for it, and the model has to know.
        message.content = format!("Error: {}", message.content).into();
    }
    message.role = "tool";
    message.tool_name = called.iter().find(|call| call.id == result.id).map(|call| call.name.as_str());
    message.tool_call_id = Some(&result.id);
    Ok(message)
}
