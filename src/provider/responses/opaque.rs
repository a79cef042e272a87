//! What of a response goes back with the next turn, beside what every provider understands.
//!
//! Reasoning is bound to what it led to: an item of it goes back unchanged, in its place before the message or the call
//! that came of it, or not at all. So the order of a response's items is kept, with the items that only this protocol knows as they
//! were; of messages and calls, what a neutral turn has no place for (ids, the phase).

use super::items::Item;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What goes back in place of an item.
pub(super) fn echo(item: &Item<'_>, raw: &RawValue) -> Option<Value> {
    if !item.is_message() && !item.is_call() {
        return serde_json::from_str::<Value>(raw.get()).ok().filter(Value::is_object);
    }
    let labels = item.labels().into_iter().filter(|(_, label)| !label.is_empty());
    let mut kept: Map<String, Value> = labels.map(|(name, label)| (name.to_owned(), label.into())).collect();
    if item.is_message() {
        kept.insert("len".to_owned(), item.text_len().into());
    }
    Some(Value::Object(kept))
}

/// What goes back with a turn that consists of these items; nothing where a neutral turn says it all.
pub(super) fn turn(items: Vec<Value>) -> Option<Value> {
    let is_neutral = |item: &Value| {
        matches!(item["type"].as_str(), Some("message" | "function_call" | "custom_tool_call"))
            && item.get("phase").is_none()
    };
    (!items.iter().all(is_neutral)).then_some(Value::Array(items))
}
