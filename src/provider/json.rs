//! Bodies as JSON: how adapters write them, and how they read them.

use super::{AnswerFault, Failure, Head};
use crate::LlmError;
use crate::chat::Request;
use crate::record::ErrorCode;
use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::{Map, Value};

/// Writes a body: what the adapter says, then the call's `extra` fields over it.
///
/// Objects named in `nested` are merged field by field, since a caller who adds one option means to keep the others.
/// `capacity` is a guess at the length in bytes.
pub(super) fn write(
    body: &impl Serialize,
    extra: &Map<String, Value>,
    nested: &[&str],
    capacity: usize,
) -> Result<Vec<u8>, LlmError> {
    let failed = |e| LlmError::of(ErrorCode::InvalidCall, "the request cannot be written as JSON").with_source(e);
    if extra.is_empty() {
        let mut bytes = Vec::with_capacity(capacity);
        serde_json::to_writer(&mut bytes, body).map_err(failed)?;
        return Ok(bytes);
    }
    let mut value = serde_json::to_value(body).map_err(failed)?;
    if let Some(fields) = value.as_object_mut() {
        for (name, more) in extra {
            match (fields.get_mut(name), more) {
                (Some(Value::Object(have)), Value::Object(more)) if nested.contains(&name.as_str()) => {
                    have.extend(more.clone());
                }
                _ => {
                    fields.insert(name.clone(), more.clone());
                }
            }
        }
    }
    serde_json::to_vec(&value).map_err(failed)
}

/// A guess at the length of a body that says what `request` says, in bytes.
pub(super) fn capacity(request: &Request) -> usize {
    let text: usize = request.turns().map(|turn| turn.text_len() + 32).sum();
    text + text / 16 + request.system.as_ref().map_or(0, String::len) + 256
}

/// Reads the body of a success. Another status than 200, a body that is empty or is not of this shape is a failure.
pub(super) fn read<'a, T: Deserialize<'a>>(head: &'a Head, body: &'a Bytes) -> Result<T, Failure<'a>> {
    let failed = |fault| Failure::of(head, body).fault(fault);
    if head.status != StatusCode::OK {
        return Err(Failure::of(head, body));
    }
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    if text.is_empty() {
        return Err(failed(AnswerFault::Empty));
    }
    parse(text).map_err(|error| failed(unreadable(head, text, &error)))
}

/// Reads the data of an event of a stream.
pub(super) fn read_frame<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, AnswerFault> {
    parse(data).map_err(|error| AnswerFault::Frame(wrong(&error)))
}

fn parse<'a, T: Deserialize<'a>>(text: &'a [u8]) -> serde_json::Result<T> {
    // Checked once as a whole: a reader of bytes checks each string by itself.
    match std::str::from_utf8(text) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(text), // which says where
    }
}

/// Why a 200 could not be read, without a word of what is in it.
fn unreadable(head: &Head, text: &[u8], error: &serde_json::Error) -> AnswerFault {
    // Media type and length are told beside it.
    AnswerFault::Invalid(if head.headers.contains_key("content-encoding") {
        let encoding = head.header("content-encoding").unwrap_or("unknown");
        format!("the body is compressed ({encoding}) although no encoding was offered; feature `gzip` decodes gzip")
    } else if text.starts_with(b"<") {
        "a page came where JSON was expected; is the base URL right?".to_owned()
    } else {
        wrong(error)
    })
}

/// What is wrong with a JSON. serde's own message may quote a value of it.
fn wrong(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Eof => return "the JSON is cut".to_owned(),
        Category::Data => "the JSON has another shape",
        Category::Io | Category::Syntax => "it is not JSON",
    };
    format!("{what} (line {} column {})", error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn extra_fields_come_last_and_named_objects_are_merged() {
        let body = json!({"options": {"a": 1, "b": 2}, "choice": {"type": "x", "name": "n"}, "n": 1});
        let extra = json!({"options": {"b": 3, "c": 4}, "choice": {"type": "y"}, "m": 2});
        let Value::Object(extra) = extra else { unreachable!() };
        let bytes = write(&body, &extra, &["options"], 0).unwrap();
        let expected = json!({"options": {"a": 1, "b": 3, "c": 4}, "choice": {"type": "y"}, "n": 1, "m": 2});
        assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), expected);
    }
}
