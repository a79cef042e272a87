//! What belongs to one provider alone.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something that one protocol gave and wants back unchanged: a signed block of reasoning, a signature beside a tool call.
///
/// It goes back to the protocol that gave it; a target that speaks another one never sees it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Opaque {
    /// The protocol that gave it, such as `anthropic` or `gemini`.
    pub protocol: String,
    /// The model that gave it, where the protocol has things that no other model takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its own form.
    pub data: Value,
}

impl Opaque {
    /// Something that `protocol` gave.
    pub fn new(protocol: impl Into<String>, data: impl Into<Value>) -> Self {
        Self { protocol: protocol.into(), model: None, data: data.into() }
    }

    /// The same, given by this model.
    #[must_use]
    pub fn of_model(mut self, model: impl Into<Option<String>>) -> Self {
        self.model = model.into();
        self
    }

    /// Its form, for the protocol that gave it.
    pub fn for_protocol(&self, protocol: &str) -> Option<&Value> {
        (self.protocol == protocol).then_some(&self.data)
    }
}
