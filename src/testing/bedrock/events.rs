//! A streamed answer in Converse's binary frames.

use super::super::answer::Reply;
use super::super::delivery::Piece;
use super::super::protocol::Asked;
use serde_json::{Value, json};

/// The events of an answer, each a frame.
pub(super) fn events(reply: &Reply, asked: &Asked, id: &str) -> Vec<Piece> {
    let mut out = vec![event("messageStart", &json!({"role": "assistant", "p": "abcd"}))];
    let mut block = 0_u64;
    if let Some(thought) = &reply.reasoning {
        let delta = |part: Value| {
            event("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": {"reasoningContent": part}}))
        };
        out.extend([delta(json!({"text": thought})), delta(json!({"signature": "c2lnLWV4YW1wbGU="}))]);
        out.push(event("contentBlockStop", &json!({"contentBlockIndex": 0})));
        block += 1;
    }
    let words = reply.chunks(asked.text(reply));
    if !words.is_empty() {
        for words in words {
            let delta = json!({"contentBlockIndex": block, "delta": {"text": words}, "p": "abc"});
            out.push(event("contentBlockDelta", &delta));
        }
        out.push(event("contentBlockStop", &json!({"contentBlockIndex": block})));
        block += 1;
    }
    for (place, call) in reply.tool_calls.iter().enumerate() {
        let made_up = format!("tooluse_{id}_{place}");
        let start = json!({"toolUse": {"toolUseId": call.id.as_deref().unwrap_or(&made_up), "name": call.name}});
        out.push(event("contentBlockStart", &json!({"contentBlockIndex": block, "start": start})));
        let half = call.arguments.char_indices().nth(call.arguments.chars().count() / 2).map_or(0, |(at, _)| at);
        let (first, second) = call.arguments.split_at(half);
        for part in [first, second] {
            let delta = json!({"contentBlockIndex": block, "delta": {"toolUse": {"input": part}}});
            out.push(event("contentBlockDelta", &delta));
        }
        out.push(event("contentBlockStop", &json!({"contentBlockIndex": block})));
        block += 1;
    }
    out.push(event("messageStop", &json!({"stopReason": super::stop_reason(reply)})));
    let (input, output) = asked.usage(reply);
    let usage = json!({"inputTokens": input, "outputTokens": output, "totalTokens": input.saturating_add(output)});
    out.push(event("metadata", &json!({"usage": usage, "metrics": {"latencyMs": 210}})));
    out
}

/// An event of this type.
pub(super) fn event(kind: &str, payload: &Value) -> Piece {
    frame("event", ":event-type", kind, payload)
}

/// An exception of this type, which ends the stream. In a stream its name begins in lower case.
pub(super) fn exception(kind: &str, message: &str) -> Piece {
    let mut name = kind.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    frame("exception", ":exception-type", &name, &json!({"message": message}))
}

fn frame(message: &str, type_header: &str, kind: &str, payload: &Value) -> Piece {
    let mut headers = Vec::new();
    for (name, value) in [(type_header, kind), (":content-type", "application/json"), (":message-type", message)] {
        // Names and types are short: the fake makes them itself.
        headers.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        headers.extend_from_slice(name.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let payload = payload.to_string();
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    let mut whole = Vec::with_capacity(16 + headers.len() + payload.len());
    whole.extend_from_slice(&length(16 + headers.len() + payload.len()));
    whole.extend_from_slice(&length(headers.len()));
    whole.extend_from_slice(&crc32fast::hash(&whole).to_be_bytes());
    whole.extend_from_slice(&headers);
    whole.extend_from_slice(payload.as_bytes());
    whole.extend_from_slice(&crc32fast::hash(&whole).to_be_bytes());
    Piece::bytes(whole)
}
