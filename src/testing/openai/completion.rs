//! A chat completion, whole or in chunks.

use super::created;
use crate::testing::answer::{Called, Reply, words};
use crate::testing::delivery::Piece;
use crate::testing::protocol::{Asked, count_tokens};
use serde_json::{Value, json};

/// A chat completion.
pub(in crate::testing) fn completion(reply: &Reply, asked: &Asked, id: &str) -> Value {
    let mut message = json!({"role": "assistant", "content": text(reply, asked), "refusal": null, "annotations": []});
    if let Some(words) = &reply.reasoning {
        // The provider itself keeps it back; this is how others put it into its protocol.
        message["reasoning_content"] = words.as_str().into();
    }
    if !reply.tool_calls.is_empty() {
        message["tool_calls"] = calls(reply, id).map(|(_, call)| call).collect();
    }
    json!({
        "id": format!("chatcmpl-{id}"),
        "object": "chat.completion",
        "created": created(),
        "model": asked.model(reply),
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish(reply)}],
        "usage": usage(reply, asked),
        "service_tier": "default",
        "system_fingerprint": null,
    })
}

/// The text; none beside tool calls, unless there is one.
fn text(reply: &Reply, asked: &Asked) -> Value {
    match asked.text(reply) {
        "" if !reply.tool_calls.is_empty() => Value::Null,
        text => text.into(),
    }
}

fn calls<'a>(reply: &'a Reply, id: &str) -> impl Iterator<Item = (&'a Called, Value)> {
    reply.tool_calls.iter().enumerate().map(move |(at, call)| {
        let id = call.id.clone().unwrap_or_else(|| format!("call_{id}_{at}"));
        let function = json!({"name": call.name, "arguments": call.arguments});
        (call, json!({"id": id, "type": "function", "function": function}))
    })
}

fn finish(reply: &Reply) -> &str {
    let usual = if reply.tool_calls.is_empty() { "stop" } else { "tool_calls" };
    reply.finish_reason.as_deref().unwrap_or(usual)
}

fn usage(reply: &Reply, asked: &Asked) -> Value {
    let (input, output, reasoning) = spent(reply, asked);
    json!({
        "prompt_tokens": input,
        "completion_tokens": output,
        "total_tokens": input.saturating_add(output),
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reasoning, "audio_tokens": 0},
    })
}

/// The tokens of the prompt, of the answer, and of the reasoning in it.
pub(in crate::testing) fn spent(reply: &Reply, asked: &Asked) -> (u64, u64, u64) {
    let (input, output) = asked.usage(reply);
    let reasoning = reply.reasoning.as_deref().map_or(0, count_tokens);
    if reply.usage.is_some() {
        return (input, output, reasoning.min(output));
    }
    let arguments: u64 = reply.tool_calls.iter().map(|call| count_tokens(&call.arguments)).sum();
    (input, output + reasoning + arguments, reasoning)
}

/// The chunks of a streamed completion, each an event, and the end. `filter` is what is said beside every delta.
pub(in crate::testing) fn chunks(reply: &Reply, asked: &Asked, id: &str, filter: &str) -> Vec<Piece> {
    let (created, model) = (created(), Value::from(asked.model(reply)));
    // Where usage is asked for, every chunk has the field.
    let no_usage = if asked.stream_usage { r#","usage":null"# } else { "" };
    let head = format!(
        r#""id":"chatcmpl-{id}","object":"chat.completion.chunk","created":{created},"model":{model},"service_tier":"default","system_fingerprint":null"#
    );
    let mut pieces = Vec::new();
    let mut event = |choices: &str, usage: &str| {
        let padding = &PADDING[..(pieces.len() * 7 + 3) % PADDING.len()];
        pieces.push(Piece::from(format!(
            "data: {{{head},\"choices\":[{choices}]{usage},\"obfuscation\":\"{padding}\"}}\n\n"
        )));
    };
    let finish = Value::from(finish(reply));
    for (delta, finish) in
        deltas(reply, asked, id).into_iter().map(|delta| (delta, Value::Null)).chain([(json!({}), finish)])
    {
        let choice = format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}{filter}}}"#);
        event(&choice, no_usage);
    }
    if asked.stream_usage {
        event("", &format!(",\"usage\":{}", usage(reply, asked)));
    }
    pieces.push("data: [DONE]\n\n".into());
    pieces
}

/// What the provider fills its chunks up with, so that their lengths tell less.
const PADDING: &str = "kQ2vN8xLr4TzB0mYc6Hs";

fn deltas(reply: &Reply, asked: &Asked, id: &str) -> Vec<Value> {
    let content = if text(reply, asked).is_null() { Value::Null } else { "".into() };
    let mut deltas = vec![json!({"role": "assistant", "content": content, "refusal": null})];
    deltas.extend(reply.reasoning.iter().flat_map(|said| words(said)).map(|word| json!({"reasoning_content": word})));
    deltas.extend(reply.chunks(asked.text(reply)).into_iter().map(|chunk| json!({"content": chunk})));
    for (index, (called, mut call)) in calls(reply, id).enumerate() {
        call["index"] = index.into();
        call["function"]["arguments"] = "".into();
        deltas.push(json!({"tool_calls": [call]}));
        deltas.extend(
            fragments(&called.arguments)
                .into_iter()
                .map(|fragment| json!({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]})),
        );
    }
    deltas
}

/// A text in pieces of a few characters.
pub(in crate::testing) fn fragments(text: &str) -> Vec<&str> {
    let mut ends: Vec<_> = text.char_indices().map(|(at, _)| at).step_by(6).collect();
    ends.push(text.len());
    ends.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
}
