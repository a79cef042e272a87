//! A message, whole or as the events of a stream.

use crate::testing::answer::{Called, Reply, words};
use crate::testing::delivery::Piece;
use crate::testing::protocol::{Asked, Forced, Rendered, count_tokens};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};

pub(super) fn render(reply: &Reply, asked: &Asked, id: &str) -> Rendered {
    if asked.stream {
        return Rendered::stream("text/event-stream; charset=utf-8", events(reply, asked, id));
    }
    let mut message = head(reply, asked, id);
    message["content"] = blocks(reply, asked, id).into_iter().map(|block| block.whole).collect();
    message["stop_reason"] = stop_reason(reply, asked).into();
    message["usage"]["output_tokens"] = output_tokens(reply, asked).into();
    message["usage"]["output_tokens_details"] = details(reply);
    Rendered::json(200, &message)
}

/// What is known of a message before its first word.
fn head(reply: &Reply, asked: &Asked, id: &str) -> Value {
    json!({
        "id": format!("msg_{id}"),
        "type": "message",
        "role": "assistant",
        "model": asked.model(reply),
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "stop_details": null,
        "usage": {
            "input_tokens": asked.usage(reply).0,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": null,
            "server_tool_use": null,
            "service_tier": "standard",
            "speed": "standard",
            "inference_geo": null,
        },
    })
}

/// A block, and how a stream tells it.
struct Block {
    whole: Value,
    begun: Value,
    deltas: Vec<Delta>,
}

/// The type of a delta, the field that it brings, and what is in it.
struct Delta(&'static str, &'static str, String);

fn blocks(reply: &Reply, asked: &Asked, id: &str) -> Vec<Block> {
    let thinking = reply.reasoning.as_deref().map(|said| thinking(asked.model(reply), said));
    let said = Some(asked.text(reply)).filter(|said| !said.is_empty()).map(|said| match forced(reply, asked) {
        Some(called) => tool_use(&called, 0, id),
        None => text(reply, said),
    });
    let calls = reply.tool_calls.iter().enumerate().map(|(at, called)| tool_use(called, at, id));
    thinking.into_iter().chain(said).chain(calls).collect()
}

/// The call that a model makes that is forced to, of what the answer is to say: where it is JSON, it is the arguments, or the
/// only one of them.
fn forced(reply: &Reply, asked: &Asked) -> Option<Called> {
    let Forced { name, only } = asked.forced.as_ref().filter(|_| reply.tool_calls.is_empty())?;
    let arguments = match (serde_json::from_str(asked.text(reply)).ok()?, only) {
        (Value::Object(fields), Some(only)) if !fields.contains_key(only) => json!({only: fields}),
        (Value::Object(fields), _) => fields.into(),
        (value, Some(only)) => json!({only: value}),
        _ => return None,
    };
    Some(Called { id: None, name: name.clone(), arguments: arguments.to_string() })
}

fn text(reply: &Reply, said: &str) -> Block {
    Block {
        whole: json!({"type": "text", "text": said, "citations": null}),
        begun: json!({"type": "text", "text": ""}),
        deltas: reply.chunks(said).into_iter().map(|chunk| Delta("text_delta", "text", chunk.to_owned())).collect(),
    }
}

fn thinking(model: &str, said: &str) -> Block {
    let signature = signature(model, said);
    let words = words(said).into_iter().map(|word| Delta("thinking_delta", "thinking", word.to_owned()));
    Block {
        whole: json!({"type": "thinking", "thinking": said, "signature": signature}),
        begun: json!({"type": "thinking", "thinking": "", "signature": ""}),
        deltas: words.chain([Delta("signature_delta", "signature", signature)]).collect(),
    }
}

fn tool_use(called: &Called, at: usize, id: &str) -> Block {
    let Called { id: own, name, arguments } = called;
    let id = own.clone().unwrap_or_else(|| format!("toolu_{id}_{at}"));
    // What is no JSON passes as a text: the provider itself sends objects alone.
    let input = serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.clone()));
    let (begin, end) = arguments.split_at(arguments.char_indices().nth(8).map_or(arguments.len(), |(at, _)| at));
    let fragments = [""].into_iter().chain([begin, end].into_iter().filter(|fragment| !fragment.is_empty()));
    Block {
        whole: json!({"type": "tool_use", "id": id, "name": name, "input": input}),
        begun: json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
        deltas: fragments.map(|part| Delta("input_json_delta", "partial_json", part.to_owned())).collect(),
    }
}

/// What a block of reasoning is signed with: the model that gave it, and a sum of both.
fn signature(model: &str, thinking: &str) -> String {
    STANDARD.encode(format!("{:016x}{model}", sum(model, thinking)))
}

fn sum(model: &str, thinking: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (model, thinking).hash(&mut hasher);
    hasher.finish()
}

/// What a signature says of a block of reasoning.
pub(super) enum Signed {
    /// It is as this model gave it.
    By(String),
    /// It is not as it was given, or was given by somebody else.
    Changed,
}

/// Reads a signature of [`signature`].
pub(super) fn signed(signature: &str, thinking: &str) -> Signed {
    let text = STANDARD.decode(signature).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    match text.as_deref().and_then(|text| text.split_at_checked(16)) {
        Some((seal, model)) if seal == format!("{:016x}", sum(model, thinking)) => Signed::By(model.to_owned()),
        _ => Signed::Changed,
    }
}

fn stop_reason<'a>(reply: &'a Reply, asked: &Asked) -> &'a str {
    let calls = !reply.tool_calls.is_empty() || forced(reply, asked).is_some();
    let usual = if calls { "tool_use" } else { "end_turn" };
    reply.finish_reason.as_deref().unwrap_or(usual)
}

/// The tokens of the answer, reasoning and arguments included.
fn output_tokens(reply: &Reply, asked: &Asked) -> u64 {
    if reply.usage.is_some() {
        return asked.usage(reply).1;
    }
    let arguments: u64 = reply.tool_calls.iter().map(|call| count_tokens(&call.arguments)).sum();
    asked.usage(reply).1 + arguments + thinking_tokens(reply).unwrap_or(0)
}

fn thinking_tokens(reply: &Reply) -> Option<u64> {
    reply.reasoning.as_deref().map(count_tokens)
}

fn details(reply: &Reply) -> Value {
    thinking_tokens(reply).map_or(Value::Null, |tokens| json!({"thinking_tokens": tokens}))
}

fn events(reply: &Reply, asked: &Asked, id: &str) -> Vec<Piece> {
    let mut events = vec![event("message_start", &json!({"message": head(reply, asked, id)}))];
    for (index, Block { begun, deltas, .. }) in blocks(reply, asked, id).into_iter().enumerate() {
        events.push(event("content_block_start", &json!({"index": index, "content_block": begun})));
        if index == 0 {
            events.push(event("ping", &json!({})));
        }
        for Delta(kind, field, value) in deltas {
            let delta = json!({field: value}).to_string();
            let delta = format!(r#""index":{index},"delta":{{"type":"{kind}",{}"#, &delta[1..]);
            events.push(written("content_block_delta", &delta));
        }
        events.push(event("content_block_stop", &json!({"index": index})));
    }
    let delta = json!({"stop_reason": stop_reason(reply, asked), "stop_sequence": null, "stop_details": null});
    let tokens = output_tokens(reply, asked);
    let usage = json!({"input_tokens": null, "output_tokens": tokens, "output_tokens_details": details(reply)});
    events.push(event("message_delta", &json!({"delta": delta, "usage": usage})));
    events.push(event("message_stop", &json!({})));
    events
}

fn event(name: &str, fields: &Value) -> Piece {
    let fields = fields.to_string();
    written(name, &fields[1..fields.len() - 1])
}

/// An event with these fields behind its type, which comes first as the provider writes it.
fn written(name: &str, fields: &str) -> Piece {
    let comma = if fields.is_empty() { "" } else { "," };
    format!("event: {name}\ndata: {{\"type\":\"{name}\"{comma}{fields}}}\n\n").into()
}
