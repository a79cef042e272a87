//! Signatures of thoughts, as the fake makes and checks them: no state, so that one server knows another's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What passes for the signature of a call that no model signed.
pub(super) const STAND_IN: &str = "skip_thought_signature_validator";

/// The generation of a Gemini model.
pub(super) fn generation(model: &str) -> Option<u32> {
    model.strip_prefix("gemini-")?.split(['.', '-']).next()?.parse().ok()
}

/// Whether a model signs its calls and wants the signatures back: Gemini 3 and later.
pub(super) fn is_signing(model: &str) -> bool {
    generation(model).is_some_and(|generation| generation >= 3)
}

/// The signature of a part that this model wrote.
pub(super) fn sign(model: &str, part: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    // Of a call, what may not be changed. Words may be put together.
    part["functionCall"].to_string().hash(&mut hasher);
    STANDARD.encode(format!("{model} thought {:016x}", hasher.finish()))
}
