//! What was answered.

mod rare;

use super::{Content, Opaque, Part, ToolCall, Turn, Usage};
use crate::record::Attempt;
use rare::Rare;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// An answer, whoever gave it.
///
/// A reply has text, a refusal, or tool calls, or was cut by the token limit before there was any; where nothing usable
/// came, the call is an error instead.
///
/// Serialized, it is what was answered, and by whom: neither the failures before it nor the provider's body.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Reply {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(flatten)]
    rare: Rare,
    #[serde(default)]
    finish_reason: FinishReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_request_id: Option<String>,
    #[serde(default)]
    answered_by: AnsweredBy,
    #[serde(skip)]
    attempts: Vec<Attempt>,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It ran into the token limit, or the model's own.
    Length,
    /// It called tools.
    ToolCalls,
    /// A filter cut it.
    ContentFilter,
    /// It declined.
    Refusal,
    /// Anything else, or the provider did not say.
    #[default]
    #[serde(other)]
    Other,
}

/// Which target answered, and what it took.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AnsweredBy {
    /// Its place in the chain; 0 is the primary.
    pub index: usize,
    /// Its name.
    #[serde(with = "shared")]
    pub name: Arc<str>,
    /// The adapter's name.
    #[serde(with = "shared")]
    pub provider: Arc<str>,
    /// How many attempts it took on this target, the one that answered included.
    pub attempts: u32,
    /// From the start of the call to the answer.
    #[serde(rename = "elapsed_ms", with = "crate::record::millis")]
    pub elapsed: Duration,
}

/// A shared text, as any other.
mod shared {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::sync::Arc;

    pub(super) fn serialize<S: Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(from).map(Arc::from)
    }
}

impl Reply {
    /// A reply with this text, that finished by itself. For adapters and tests; a client fills in the rest.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), finish_reason: FinishReason::Stop, ..Self::default() }
    }

    /// The text; empty when there is none.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text, without copying it.
    pub fn into_text(self) -> String {
        self.text
    }

    /// What the model thought aloud before it answered, where the provider tells.
    pub fn reasoning(&self) -> Option<&str> {
        self.reasoning.as_deref()
    }

    /// The tools that the model called.
    pub fn tool_calls(&self) -> &[ToolCall] {
        self.rare.get().map_or(&[], |rare| &rare.tool_calls)
    }

    /// What the provider wants back with the next turn, such as signed blocks of reasoning. [`to_turn`](Self::to_turn)
    /// takes it along.
    pub fn opaque(&self) -> &[Opaque] {
        self.rare.get().map_or(&[], |rare| &rare.opaque)
    }

    /// The model's words when it declined in a field of their own.
    pub fn refusal(&self) -> Option<&str> {
        self.rare.get()?.refusal.as_deref()
    }

    /// Why the model stopped.
    pub fn finish_reason(&self) -> FinishReason {
        self.finish_reason
    }

    /// The tokens spent, where the provider reported them.
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    /// The model as the provider reports it, which may differ from the one that was asked for.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The provider's request id, for support tickets.
    pub fn provider_request_id(&self) -> Option<&str> {
        self.provider_request_id.as_deref()
    }

    /// Which target answered, and what it took.
    pub fn target(&self) -> &AnsweredBy {
        &self.answered_by
    }

    /// The failures that came before the answer, on every target, in order.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// The provider's body, where the call asked to keep it.
    pub fn raw(&self) -> Option<&[u8]> {
        self.rare.get()?.raw.as_deref()
    }

    /// The JSON that was asked for, as it was parsed and validated: without a null that only stood for an optional
    /// property's absence. None where text was asked for, or where the model declined or called tools instead.
    pub fn json_value(&self) -> Option<&Value> {
        self.rare.get()?.json.as_ref()
    }

    /// The answer as `T`: the JSON that was asked for, without parsing it again, or the text read as JSON.
    ///
    /// # Errors
    ///
    /// When the text is not JSON, or not of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match self.json_value() {
            Some(value) => T::deserialize(value),
            None => serde_json::from_str(&self.text),
        }
    }

    /// The reply as a turn, to carry on the conversation: the words, the tool calls, and what the provider wants back.
    pub fn to_turn(&self) -> Turn {
        // Mere line breaks beside tool calls are common, and refused by some providers when they come back.
        let text = if self.text.trim().is_empty() { "" } else { &self.text };
        let words = if text.is_empty() { self.refusal().unwrap_or_default() } else { text };
        let content = if self.opaque().is_empty() {
            Some(words).filter(|words| !words.is_empty() || self.tool_calls().is_empty()).map(Content::from)
        } else {
            let blocks = self.opaque().iter().cloned().map(Part::Reasoning);
            let text = Some(words).filter(|words| !words.is_empty()).map(Part::text);
            Some(Content::Parts(blocks.chain(text).collect()))
        };
        Turn::Assistant { content, tool_calls: self.tool_calls().to_vec() }
    }

    /// With what the model thought aloud.
    #[must_use]
    #[inline]
    pub fn with_reasoning(mut self, reasoning: impl Into<Option<String>>) -> Self {
        self.reasoning = reasoning.into();
        self
    }

    /// With tool calls.
    #[must_use]
    pub fn with_tool_calls(mut self, calls: impl IntoIterator<Item = ToolCall>) -> Self {
        let calls: Vec<_> = calls.into_iter().collect();
        if !calls.is_empty() || !self.tool_calls().is_empty() {
            self.rare.set().tool_calls = calls;
        }
        self
    }

    /// With what the provider wants back.
    #[must_use]
    pub fn with_opaque(mut self, blocks: impl IntoIterator<Item = Opaque>) -> Self {
        let blocks: Vec<_> = blocks.into_iter().collect();
        if !blocks.is_empty() || !self.opaque().is_empty() {
            self.rare.set().opaque = blocks;
        }
        self
    }

    /// With the model's words when it declined.
    #[must_use]
    pub fn with_refusal(mut self, refusal: impl Into<Option<String>>) -> Self {
        let refusal = refusal.into();
        if refusal.is_some() || self.refusal().is_some() {
            self.rare.set().refusal = refusal;
        }
        self
    }

    /// With the reason why the model stopped.
    #[must_use]
    #[inline]
    pub fn with_finish_reason(mut self, reason: FinishReason) -> Self {
        self.finish_reason = reason;
        self
    }

    /// With the tokens spent.
    #[must_use]
    #[inline]
    pub fn with_usage(mut self, usage: impl Into<Option<Usage>>) -> Self {
        self.usage = usage.into();
        self
    }

    /// With the model as reported.
    #[must_use]
    #[inline]
    pub fn with_model(mut self, model: impl Into<Option<String>>) -> Self {
        self.model = model.into();
        self
    }

    /// With the provider's request id.
    #[must_use]
    #[inline]
    pub fn with_provider_request_id(mut self, id: impl Into<Option<String>>) -> Self {
        self.provider_request_id = id.into();
        self
    }

    /// Notes who answered after which failures.
    pub(crate) fn answered(&mut self, by: AnsweredBy, attempts: Vec<Attempt>) {
        self.answered_by = by;
        self.attempts = attempts;
    }

    /// Keeps the JSON that the text was read as.
    pub(crate) fn keep_json(&mut self, value: Value) {
        self.rare.set().json = Some(value);
    }

    /// The calls, for their arguments to be put right.
    pub(crate) fn tool_calls_mut(&mut self) -> &mut [ToolCall] {
        self.rare.get_mut().map_or(&mut [], |rare| &mut rare.tool_calls)
    }

    /// Keeps the provider's body.
    pub(crate) fn keep_raw(&mut self, raw: bytes::Bytes) {
        self.rare.set().raw = Some(raw);
    }
}
