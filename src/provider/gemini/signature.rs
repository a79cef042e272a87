//! Signatures: what Gemini wants back as it was, beside words and calls.
//!
//! Kept is the part as it came, but for what the turn says anyway: `{"thoughtSignature"}` of words, with `"text": ""` where
//! the signature came in a part of its own (Google asks not to join that with another), with `"thought": true` of a thought,
//! and beside a call its id, if it had one. Signatures do not travel between models, so the model is noted too.

use crate::chat::Opaque;
use serde_json::{Map, Value};

/// The protocol that they belong to.
const PROTOCOL: &str = "gemini";

/// The signature of a part that is no call.
pub(super) fn of_words(signature: &str, model: Option<&str>, is_thought: bool, is_empty: bool) -> Opaque {
    let mut part = fields([("thoughtSignature", Some(signature)), ("model", model)]);
    if is_thought {
        part.insert("thought".to_owned(), true.into());
    }
    if is_thought || is_empty {
        part.insert("text".to_owned(), "".into());
    }
    Opaque::new(PROTOCOL, part)
}

/// What belongs to a call: the id that Gemini gave it, and its signature.
pub(super) fn of_call(id: Option<&str>, signature: Option<&str>, model: Option<&str>) -> Option<Opaque> {
    let model = model.filter(|_| signature.is_some());
    let own = fields([("id", id), ("thoughtSignature", signature), ("model", model)]);
    (!own.is_empty()).then(|| Opaque::new(PROTOCOL, own))
}

fn fields<const N: usize>(fields: [(&str, Option<&str>); N]) -> Map<String, Value> {
    let present = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    present.collect()
}
