//! The turns of a conversation as Converse's messages.
//!
//! Roles have to alternate, so what one role says in a row is one message; all results of a turn stand in one message of the
//! user. A text without words is refused, and says nothing, so it is left out.

use super::encode::{NAME, has_words};
use super::stream::PROTOCOL;
use crate::LlmError;
use crate::chat::{Content, Document, Media, MediaSource, Part, Request, ToolCall, ToolResult, TurnRef};
use crate::provider::refusal::unsupported;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;

#[derive(Serialize)]
pub(super) struct Message<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

/// A part of a message or of the system text: its one key says what it is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Block<'a> {
    Document(Value),
    Image(Value),
    ReasoningContent(&'a Value),
    Text(Cow<'a, str>),
    ToolResult(Value),
    #[serde(rename_all = "camelCase")]
    ToolUse {
        tool_use_id: &'a str,
        name: &'a str,
        input: &'a Value,
    },
}

/// The messages of a request. `tools`: whether tools are declared; without, blocks of tools are refused, so they are told in
/// words.
pub(super) fn messages<'a>(request: &'a Request, tools: bool, model: &str) -> Result<Vec<Message<'a>>, LlmError> {
    let mut messages: Vec<Message<'a>> = Vec::with_capacity(request.history.len() + 1);
    for turn in request.turns() {
        let mut blocks = Vec::new();
        let role = match turn {
            TurnRef::Assistant(content, calls) => {
                content.into_iter().try_for_each(|content| parts(content, &mut blocks, model))?;
                blocks.extend(calls.iter().map(|call| called(call, tools)));
                "assistant"
            }
            TurnRef::Tool(results) => {
                for result in results {
                    blocks.push(returned(result, tools, model)?);
                }
                "user"
            }
            TurnRef::User(content) => {
                parts(content, &mut blocks, model)?;
                "user"
            }
        };
        match messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => messages.push(Message { role, content: blocks }),
        }
    }
    Ok(messages)
}

fn parts<'a>(content: &'a Content, blocks: &mut Vec<Block<'a>>, model: &str) -> Result<(), LlmError> {
    if let Content::Text(text) = content {
        blocks.extend(Some(text.as_str()).filter(has_words).map(|text| Block::Text(text.into())));
    }
    for part in content.parts() {
        blocks.extend(match part {
            Part::Text { text } => Some(text.as_str()).filter(has_words).map(|text| Block::Text(text.into())),
            Part::Image(media) => Some(Block::Image(image(media, model)?)),
            Part::Document(document) => Some(Block::Document(attached(document, model)?)),
            Part::Reasoning(opaque) => opaque.for_protocol(PROTOCOL).map(Block::ReasoningContent),
            Part::Audio(_) => {
                return Err(unsupported(NAME, model, "audio", "leave it out, or choose another provider"));
            }
        });
    }
    Ok(())
}

fn called(call: &ToolCall, tools: bool) -> Block<'_> {
    if tools {
        return Block::ToolUse { tool_use_id: &call.id, name: &call.name, input: &call.arguments };
    }
    Block::Text(format!("[called {} with {}]", call.name, call.arguments).into())
}

fn returned<'a>(result: &'a ToolResult, tools: bool, model: &str) -> Result<Block<'a>, LlmError> {
    if !tools {
        return Ok(Block::Text(format!("[it returned] {}", result.content.text()).into()));
    }
    let mut content = Vec::new();
    parts(&result.content, &mut content, model)?;
    if content.is_empty() {
        content.push(Block::Text("(nothing)".into())); // a result without content is refused
    }
    let status = if result.is_error { "error" } else { "success" };
    Ok(Block::ToolResult(json!({"toolUseId": result.id, "content": content, "status": status})))
}

/// The bytes of a piece of media. Converse fetches nothing from the web.
fn bytes<'a>(media: &'a Media, what: &str, model: &str) -> Result<&'a str, LlmError> {
    match &media.source {
        MediaSource::Base64(data) => Ok(data),
        MediaSource::Url(_) => {
            Err(unsupported(NAME, model, what, "the protocol takes bytes only: fetch it, and send what it holds"))
        }
    }
}

fn image(media: &Media, model: &str) -> Result<Value, LlmError> {
    let data = bytes(media, "image_urls", model)?;
    let format = media.media_type.as_deref().and_then(|media| media.strip_prefix("image/")).unwrap_or("png");
    Ok(json!({"format": format, "source": {"bytes": data}}))
}

fn attached(document: &Document, model: &str) -> Result<Value, LlmError> {
    let data = bytes(&document.media, "documents by URL", model)?;
    let format = match document.media.media_type.as_deref() {
        Some("text/plain") => "txt",
        Some("text/markdown") => "md",
        Some("application/msword") => "doc",
        Some("application/vnd.openxmlformats-officedocument.wordprocessingml.document") => "docx",
        Some("application/vnd.ms-excel") => "xls",
        Some("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet") => "xlsx",
        Some(other) => other.rsplit('/').next().unwrap_or("pdf"),
        None => "pdf",
    };
    // Letters, digits, spaces, hyphens, parentheses and brackets are allowed.
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '(' | ')' | '[' | ']');
    let name = document.name.as_deref().unwrap_or("document");
    let name: String = name.chars().map(|c| if allowed(c) { c } else { '-' }).collect();
    Ok(json!({"format": format, "name": name, "source": {"bytes": data}}))
}
