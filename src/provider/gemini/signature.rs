//! Signatures: what Gemini wants back as it was, beside words and calls.
//!
//! Kept is the part as it came, but for what the turn says anyway: `{"thoughtSignature"}` of words, with `"text": ""` where
//! the signature came in a part of its own (Google asks not to join that with another), with `"thought": true` of a thought,
//! and beside a call its id, if it had one. Signatures travel neither between models, so the model is noted too, nor between
//! the Developer API and Vertex AI, which are two protocols in that.

use super::place::name_of;
use crate::chat::Opaque;
use serde_json::{Map, Value};

/// Where a part is from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'a> {
    /// The name of the adapter.
    pub(super) protocol: &'a str,
    pub(super) model: Option<&'a str>,
    /// The id of the answer.
    pub(super) answer: Option<&'a str>,
}

/// The signature of a part that is no call.
pub(super) fn of_words(origin: Origin<'_>, signature: &str, is_thought: bool, is_empty: bool) -> Opaque {
    let mut part = fields([("thoughtSignature", Some(signature)), ("model", origin.model)]);
    if is_thought {
        part.insert("thought".to_owned(), true.into());
    }
    if is_thought || is_empty {
        part.insert("text".to_owned(), "".into());
    }
    Opaque::new(origin.protocol, part)
}

/// What belongs to a call: the id that Gemini gave it, and its signature.
pub(super) fn of_call(origin: Origin<'_>, id: Option<&str>, signature: Option<&str>) -> Option<Opaque> {
    let model = origin.model.filter(|_| signature.is_some());
    let own = fields([("id", id), ("thoughtSignature", signature), ("model", model)]);
    (!own.is_empty()).then(|| Opaque::new(origin.protocol, own))
}

fn fields<const N: usize>(fields: [(&str, Option<&str>); N]) -> Map<String, Value> {
    let present = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    present.collect()
}

/// What Google names for calls that no model of its signed, such as another provider's: it passes where a signature has to be.
pub(super) const STAND_IN: &str = "skip_thought_signature_validator";

/// The signature of a part that is no call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signed<'a> {
    pub(super) signature: &'a str,
    pub(super) is_thought: bool,
    /// Whether it came in a part of its own.
    pub(super) is_apart: bool,
}

/// What belongs to a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfCall<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) signature: Option<&'a str>,
}

/// The signature of a part that is no call, where it goes to this model.
pub(super) fn read<'a>(opaque: &'a Opaque, protocol: &str, model: &str) -> Option<Signed<'a>> {
    let part = opaque.for_protocol(protocol)?;
    let signature = signature_for(part, model)?;
    Some(Signed { signature, is_thought: part["thought"] == true, is_apart: part.get("text").is_some() })
}

/// What belongs to a call, as far as it goes to this model.
pub(super) fn read_call<'a>(opaque: &'a Opaque, protocol: &str, model: &str) -> Option<OfCall<'a>> {
    let own = opaque.for_protocol(protocol)?;
    Some(OfCall { id: own["id"].as_str(), signature: signature_for(own, model) })
}

fn signature_for<'a>(own: &'a Value, model: &str) -> Option<&'a str> {
    let signature = own["thoughtSignature"].as_str()?;
    own["model"].as_str().is_none_or(|signer| is_the_same(name_of(signer), name_of(model))).then_some(signature)
}

/// Whether two names may be of one model. Those that name a generation are compared; of an alias or a tuned model nobody
/// knows.
fn is_the_same(signer: &str, model: &str) -> bool {
    let names_generation =
        |name: &str| name.strip_prefix("gemini-").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    !names_generation(signer) || !names_generation(model) || signer.starts_with(model) || model.starts_with(signer)
}
