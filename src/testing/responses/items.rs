//! A response, whole or as the events of a stream.

use crate::testing::answer::{Reply, words};
use crate::testing::delivery::Piece;
use crate::testing::openai::{fragments, spent};
use crate::testing::protocol::Asked;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A complete response.
pub(super) fn complete(reply: &Reply, asked: &Asked, id: &str) -> Value {
    let mut body = super::response(id, asked.model(reply));
    body["output"] = items(reply, asked, id).into_iter().map(|item| item.whole).collect();
    let (input, output, reasoning) = spent(reply, asked);
    body["usage"] = json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": input.saturating_add(output),
    });
    if let Some(reason) = &reply.finish_reason {
        body["status"] = "incomplete".into();
        body["incomplete_details"] = json!({"reason": reason});
    }
    body
}

/// An item, and how a stream tells it: how it begins, then events, each a name and fields beside the item's place.
struct Item {
    whole: Value,
    begun: Value,
    events: Vec<(&'static str, Value)>,
}

fn items(reply: &Reply, asked: &Asked, id: &str) -> Vec<Item> {
    let thought = reply.reasoning.as_deref().map(|said| reasoning(said, asked, asked.model(reply), id));
    let said = asked.text(reply);
    let message = (!said.is_empty() || reply.tool_calls.is_empty()).then(|| message(reply, said, id));
    let calls = reply.tool_calls.iter().enumerate().map(|(at, called)| {
        let call_id = called.id.clone().unwrap_or_else(|| format!("call_{id}_{at}"));
        call(&format!("fc_{id}_{at}"), &call_id, &called.name, &called.arguments)
    });
    thought.into_iter().chain(message).chain(calls).collect()
}

fn reasoning(said: &str, asked: &Asked, model: &str, id: &str) -> Item {
    let id = format!("rs_{id}");
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    let mut whole = json!({"id": id, "type": "reasoning", "summary": [part(said)]});
    if asked.encrypted_reasoning {
        whole["encrypted_content"] = sealed(model, &id).into();
    }
    let at = |fields: Value| with(json!({"item_id": id, "summary_index": 0}), fields);
    let deltas =
        words(said).into_iter().map(|word| ("response.reasoning_summary_text.delta", at(json!({"delta": word}))));
    let events =
        [("response.reasoning_summary_part.added", at(json!({"part": part("")})))].into_iter().chain(deltas).chain([
            ("response.reasoning_summary_text.done", at(json!({"text": said}))),
            ("response.reasoning_summary_part.done", at(json!({"part": part(said)}))),
        ]);
    Item { begun: json!({"id": id, "type": "reasoning", "summary": []}), events: events.collect(), whole }
}

fn message(reply: &Reply, said: &str, id: &str) -> Item {
    let id = format!("msg_{id}");
    let status = if reply.finish_reason.is_some() { "incomplete" } else { "completed" };
    let item = |status: &str, content: Value| json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content});
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    let at = |fields: Value| with(json!({"item_id": id, "content_index": 0}), fields);
    let deltas = reply
        .chunks(said)
        .into_iter()
        .map(|chunk| ("response.output_text.delta", at(json!({"delta": chunk, "logprobs": []}))));
    let events = [("response.content_part.added", at(json!({"part": part("")})))].into_iter().chain(deltas).chain([
        ("response.output_text.done", at(json!({"text": said, "logprobs": []}))),
        ("response.content_part.done", at(json!({"part": part(said)}))),
    ]);
    Item { begun: item("in_progress", json!([])), events: events.collect(), whole: item(status, json!([part(said)])) }
}

fn call(id: &str, call_id: &str, name: &str, arguments: &str) -> Item {
    let item = |status: &str, arguments: &str| json!({"id": id, "type": "function_call", "status": status, "call_id": call_id, "name": name, "arguments": arguments});
    let deltas = fragments(arguments)
        .into_iter()
        .map(|fragment| ("response.function_call_arguments.delta", json!({"item_id": id, "delta": fragment})));
    let done = ("response.function_call_arguments.done", json!({"item_id": id, "arguments": arguments}));
    Item { begun: item("in_progress", ""), events: deltas.chain([done]).collect(), whole: item("completed", arguments) }
}

/// What reasoning is sealed with: of another model, or under another id, it is not known again.
pub(super) fn sealed(model: &str, id: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (model, id).hash(&mut hasher);
    STANDARD.encode(hasher.finish().to_be_bytes())
}

/// The events of a stream.
pub(super) fn events(reply: &Reply, asked: &Asked, id: &str) -> Vec<Piece> {
    let mut running = super::response(id, asked.model(reply));
    running["status"] = "in_progress".into();
    let mut all = vec![
        ("response.created", json!({"response": running})),
        ("response.in_progress", json!({"response": running})),
    ];
    for (place, Item { whole, begun, events }) in items(reply, asked, id).into_iter().enumerate() {
        let at = |fields: Value| with(json!({"output_index": place}), fields);
        all.push(("response.output_item.added", at(json!({"item": begun}))));
        all.extend(events.into_iter().map(|(name, fields)| (name, at(fields))));
        all.push(("response.output_item.done", at(json!({"item": whole}))));
    }
    let last = if reply.finish_reason.is_some() { "response.incomplete" } else { "response.completed" };
    all.push((last, json!({"response": complete(reply, asked, id)})));
    let written = |(number, (name, fields)): (usize, (&str, Value))| {
        let fields = fields.to_string();
        let event = format!(r#"{{"type":"{name}","sequence_number":{number},{}"#, &fields[1..]);
        Piece::from(format!("event: {name}\ndata: {event}\n\n"))
    };
    all.into_iter().enumerate().map(written).collect()
}

fn with(mut object: Value, more: Value) -> Value {
    if let (Some(fields), Value::Object(more)) = (object.as_object_mut(), more) {
        fields.extend(more);
    }
    object
}
