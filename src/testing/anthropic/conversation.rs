//! What the provider checks of a conversation.

use super::Refusal;
use super::message::{Signed, signed};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// What the rest of the request says that matters here.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) model: &'a str,
    /// Whether it thinks with a budget, so that a turn that called tools has to begin with its thoughts.
    pub(super) budgeted: bool,
    pub(super) thinks: bool,
}

pub(super) fn check(messages: &[Value], asking: Asking<'_>) -> Result<(), Refusal> {
    if messages.is_empty() {
        return Err("messages: at least one message is required".into());
    }
    for (place, message) in messages.iter().enumerate() {
        let at = format!("messages.{place}");
        let is_user = match message["role"].as_str() {
            Some("user") => true,
            Some("assistant") => false,
            Some("system") => {
                return Err("messages: Unexpected role \"system\"; use the top-level `system` parameter".into());
            }
            _ => return Err(format!("{at}.role: Input should be 'user' or 'assistant'").into()),
        };
        if !has_words(&message["content"]) {
            return Err(format!("{at}: messages must have non-empty content").into());
        }
        for (number, block) in blocks(message).iter().enumerate() {
            check_block(block, is_user, &format!("{at}.content.{number}"), asking)?;
        }
    }
    if messages[0]["role"] != "user" {
        return Err("messages: first message must use the \"user\" role".into());
    }
    if let Some(pair) = messages.windows(2).find(|pair| pair[0]["role"] == pair[1]["role"]) {
        let role = pair[0]["role"].as_str().unwrap_or_default();
        return Err(format!("messages: roles must alternate, but found multiple \"{role}\" roles in a row").into());
    }
    check_results(messages)?;
    check_end(messages, asking)
}

/// Whether content is a text with words in it, or blocks none of which is a text without.
pub(super) fn has_words(content: &Value) -> bool {
    let is_said = |text: &Value| text.as_str().is_some_and(|text| !text.trim().is_empty());
    match content {
        Value::Array(blocks) => {
            let is_block = |block: &Value| match block["type"].as_str() {
                Some("text") => is_said(&block["text"]),
                kind => kind.is_some(),
            };
            !blocks.is_empty() && blocks.iter().all(is_block)
        }
        text => is_said(text),
    }
}

fn blocks(message: &Value) -> &[Value] {
    message["content"].as_array().map_or(&[], Vec::as_slice)
}

fn of_kind<'a>(message: &'a Value, kind: &'a str, field: &'a str) -> impl Iterator<Item = &'a str> {
    blocks(message).iter().filter(move |block| block["type"] == kind).filter_map(move |block| block[field].as_str())
}

fn check_block(block: &Value, is_user: bool, at: &str, asking: Asking<'_>) -> Result<(), Refusal> {
    let kind = block["type"].as_str().unwrap_or_default();
    match (kind, is_user) {
        ("text", _) | ("search_result", true) | ("redacted_thinking" | "server_tool_use", false) => Ok(()),
        (kind, false) if kind.ends_with("_tool_result") => Ok(()),
        ("image", true) => check_source(&block["source"], &IMAGES, &format!("{at}.image.source")),
        ("document", true) => check_source(&block["source"], &["application/pdf"], &format!("{at}.document.source")),
        ("tool_result", true) => check_result(block, at, asking),
        ("tool_use", false) => check_call(block, at),
        ("thinking", false) => check_thought(block, at, asking),
        _ => Err(format!("{at}: Input tag '{kind}' found using 'type' does not match any of the expected tags").into()),
    }
}

fn check_source(source: &Value, media_types: &[&str], at: &str) -> Result<(), Refusal> {
    let media_type = source["media_type"].as_str().unwrap_or_default();
    let data = source["data"].as_str();
    match source["type"].as_str() {
        Some("url") if source["url"].as_str().is_some_and(|url| url.starts_with("http")) => Ok(()),
        Some("url") => Err(format!("{at}.url: Only HTTP(S) URLs are supported").into()),
        Some("base64") if !media_types.contains(&media_type) => {
            Err(format!("{at}.base64.media_type: Input should be {}", media_types.join(", ")).into())
        }
        Some("base64") if data.is_none_or(|data| data.is_empty() || STANDARD.decode(data).is_err()) => {
            Err(format!("{at}.base64.data: invalid base64 data").into())
        }
        Some("text") if media_type != "text/plain" || data.is_none() || media_types != ["application/pdf"] => {
            Err(format!("{at}.text.media_type: Input should be 'text/plain'").into())
        }
        Some("base64" | "file" | "text") => Ok(()),
        _ => Err(format!("{at}.type: Field required").into()),
    }
}

fn check_result(block: &Value, at: &str, asking: Asking<'_>) -> Result<(), Refusal> {
    let at = format!("{at}.tool_result");
    if block["tool_use_id"].as_str().is_none_or(str::is_empty) {
        return Err(format!("{at}.tool_use_id: Field required").into());
    }
    match &block["content"] {
        Value::Null if block["is_error"] == true => {
            Err(format!("{at}: content cannot be empty if `is_error` is true").into())
        }
        Value::Null => Ok(()),
        content if !has_words(content) => Err(format!("{at}: text content blocks must be non-empty").into()),
        content => content
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
            .try_for_each(|(number, block)| check_block(block, true, &format!("{at}.content.{number}"), asking)),
    }
}

fn check_call(block: &Value, at: &str) -> Result<(), Refusal> {
    let at = format!("{at}.tool_use");
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    for name in ["id", "name"] {
        let value = block[name].as_str().ok_or_else(|| format!("{at}.{name}: Field required"))?;
        if value.is_empty() || !value.chars().all(is_word) {
            return Err(format!("{at}.{name}: String should match pattern '^[a-zA-Z0-9_-]+$'").into());
        }
    }
    if block["input"].is_object() {
        Ok(())
    } else {
        Err(format!("{at}.input: Input should be a valid dictionary").into())
    }
}

/// A thought has to be as it was when this fake signed it.
fn check_thought(block: &Value, at: &str, asking: Asking<'_>) -> Result<(), Refusal> {
    let (Some(thinking), Some(signature)) = (block["thinking"].as_str(), block["signature"].as_str()) else {
        return Err(format!("{at}.thinking.signature: Field required").into());
    };
    match signed(signature, thinking) {
        Signed::Changed => Err(format!("{at}: Invalid `signature` in `thinking` block").into()),
        Signed::By(giver) if giver != asking.model && [&giver, asking.model].iter().any(|m| m.contains("-5-5")) => {
            Err(format!("{at}: the `thinking` block was given by another model").into())
        }
        Signed::By(_) => Ok(()),
    }
}

/// Calls and results: each call is answered once, in the message that follows, before anything else is said there.
fn check_results(messages: &[Value]) -> Result<(), Refusal> {
    let mut seen = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        let called: Vec<_> = of_kind(message, "tool_use", "id").collect();
        for id in &called {
            if seen.contains(id) {
                return Err(format!("messages.{place}: `tool_use` ids must be unique").into());
            }
            seen.push(id);
        }
        let answered: Vec<_> =
            messages.get(place + 1).into_iter().flat_map(|next| of_kind(next, "tool_result", "tool_use_id")).collect();
        if let Some(id) = called.iter().find(|id| !answered.contains(id)) {
            let why = "Each `tool_use` block must have a corresponding `tool_result` block in the next message.";
            let message =
                format!("`tool_use` ids were found without `tool_result` blocks immediately after: {id}. {why}");
            return Err(format!("messages.{place}: {message}").into());
        }
        let before: Vec<_> = match place.checked_sub(1) {
            Some(before) => of_kind(&messages[before], "tool_use", "id").collect(),
            None => Vec::new(),
        };
        let results: Vec<_> = of_kind(message, "tool_result", "tool_use_id").collect();
        if let Some(id) = results.iter().find(|id| !before.contains(id)) {
            let why = "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.";
            let message = format!("unexpected `tool_use_id` found in `tool_result` blocks: {id}. {why}");
            return Err(format!("messages.{place}: {message}").into());
        }
        if let Some((_, id)) = results.iter().enumerate().find(|(at, id)| results[..*at].contains(id)) {
            let message = "each tool_use must have a single result. Found multiple `tool_result` blocks with id";
            return Err(format!("messages.{place}: {message}: {id}").into());
        }
        let first = blocks(message).iter().position(|block| block["type"] != "tool_result");
        if first.is_some_and(|first| blocks(message)[first..].iter().any(|block| block["type"] == "tool_result")) {
            return Err(format!("messages.{place}: `tool_result` blocks must come first in the message").into());
        }
    }
    Ok(())
}

fn check_end(messages: &[Value], asking: Asking<'_>) -> Result<(), Refusal> {
    let [before @ .., last] = messages else { return Ok(()) };
    if last["role"] == "assistant" {
        if asking.thinks {
            return Err("This model does not support assistant message prefill while it thinks.".into());
        }
        let text = last["content"].as_str().or(blocks(last).last().and_then(|block| block["text"].as_str()));
        if text.is_some_and(|text| text.ends_with(char::is_whitespace)) {
            return Err("messages: final assistant content cannot end with trailing whitespace".into());
        }
    }
    // In the middle of a turn, which began with thoughts.
    let is_answer = blocks(last).iter().any(|block| block["type"] == "tool_result");
    if asking.budgeted && is_answer {
        let first = before
            .last()
            .and_then(|turn| blocks(turn).first())
            .map_or("text", |b| b["type"].as_str().unwrap_or("text"));
        if !matches!(first, "thinking" | "redacted_thinking") {
            let at = format!("messages.{}.content.0.type", before.len() - 1);
            let why = "When `thinking` is enabled, a final `assistant` message must start with a thinking block";
            return Err(format!("{at}: Expected `thinking` or `redacted_thinking`, but found `{first}`. {why}").into());
        }
    }
    Ok(())
}
