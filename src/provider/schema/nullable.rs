//! A schema made to take null too.

use super::dialect::Dialect;
use serde_json::{Map, Value, json};

/// The same, or null.
pub(super) fn nullable(dialect: &Dialect, schema: Value) -> Value {
    let nothing = json!({"type": "null"});
    let Value::Object(mut keywords) = schema else { return json!({"anyOf": [schema, nothing]}) };
    if takes_null(&keywords) {
        return Value::Object(keywords);
    }
    let listable =
        !keywords.contains_key("const") && (!keywords.contains_key("enum") || (dialect.enumerable)(&Value::Null));
    match keywords.remove("type") {
        Some(kind) if listable => {
            let mut kinds = match kind {
                Value::Array(kinds) => kinds,
                kind => vec![kind],
            };
            if !kinds.contains(&json!("null")) {
                kinds.push(json!("null"));
            }
            keywords.insert("type".to_owned(), Value::Array(kinds));
            if let Some(Value::Array(values)) = keywords.get_mut("enum") {
                values.push(Value::Null);
            }
            return Value::Object(keywords);
        }
        Some(kind) => _ = keywords.insert("type".to_owned(), kind),
        None => {}
    }
    if !keywords.contains_key("type")
        && let Some(Value::Array(branches)) = keywords.get_mut("anyOf")
    {
        branches.push(nothing);
        return Value::Object(keywords);
    }
    // What is said of it stays outside.
    let description = keywords.remove("description");
    let mut either = json!({"anyOf": [keywords, nothing]});
    if let Some(description) = description {
        either["description"] = description;
    }
    either
}

fn takes_null(keywords: &Map<String, Value>) -> bool {
    let is_null = |value: &Value| value == "null";
    let by_type = match keywords.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_null),
        Some(kind) => is_null(kind),
        None => false,
    };
    let by_value = match keywords.get("enum") {
        Some(Value::Array(values)) => values.contains(&Value::Null),
        _ => true,
    };
    let branches = keywords.get("anyOf").and_then(Value::as_array);
    (by_type && by_value)
        || branches.is_some_and(|branches| branches.iter().any(|b| b.as_object().is_some_and(takes_null)))
}
