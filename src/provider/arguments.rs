//! The arguments of a tool call where a protocol writes them as an object.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The JSON of arguments that are to be an object; empty where there are none. Servers that are near enough write a text that
/// holds one.
pub(super) fn arguments(raw: Option<&RawValue>) -> Cow<'_, str> {
    match raw.map(RawValue::get) {
        None | Some("null") => Cow::Borrowed(""),
        Some(text) if text.starts_with('"') => serde_json::from_str(text).map_or(Cow::Borrowed(text), Cow::Owned),
        Some(object) => Cow::Borrowed(object),
    }
}

/// The arguments of a call of the history, as an object whatever they are.
pub(super) fn object(arguments: &Value) -> Cow<'_, Value> {
    let fields = match arguments {
        Value::Object(_) => return Cow::Borrowed(arguments),
        Value::Null => Map::new(),
        Value::String(json) => match serde_json::from_str(json) {
            Ok(Value::Object(fields)) => fields,
            _ => named(arguments),
        },
        _ => named(arguments),
    };
    Cow::Owned(Value::Object(fields))
}

/// What is no object, as the only field of one: nothing is lost of what the model had said.
fn named(arguments: &Value) -> Map<String, Value> {
    Map::from_iter([("arguments".to_owned(), arguments.clone())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_read_as_an_object_or_as_a_text_that_holds_one() {
        let read = |json: &str| {
            let raw = RawValue::from_string(json.to_owned()).unwrap();
            arguments(Some(&raw)).into_owned()
        };
        assert_eq!(read(r#"{"a":1}"#), r#"{"a":1}"#);
        assert_eq!(read(r#""{\"a\":1}""#), r#"{"a":1}"#);
        assert_eq!((read("null"), arguments(None).into_owned()), (String::new(), String::new()));
    }

    #[test]
    fn arguments_are_sent_as_an_object_whatever_they_are() {
        for (arguments, sent) in [
            (json!({"a": 1}), json!({"a": 1})),
            (json!(null), json!({})),
            (json!("{\"a\":1}"), json!({"a": 1})),
            (json!("words"), json!({"arguments": "words"})),
            (json!([1]), json!({"arguments": [1]})),
        ] {
            assert_eq!(*object(&arguments), sent);
        }
    }
}
