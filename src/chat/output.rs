//! What form the answer is to have, and how much the model is to think before it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The form of the answer.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Output {
    /// Any JSON value; OpenAI and its like want the word JSON in the prompt too.
    Json,
    /// JSON of this schema. The reply is validated against it, whatever the provider promises.
    Schema(JsonSchema),
    /// Text.
    #[default]
    Text,
}

impl Output {
    /// Whether it is text.
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Text)
    }
}

/// A JSON schema with a name.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JsonSchema {
    /// What providers that ask for a name are told: letters, digits, `_` and `-`.
    pub name: String,
    /// What it is for, for the model to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The schema.
    pub schema: Value,
}

impl JsonSchema {
    /// A schema with a name.
    pub fn new(name: impl Into<String>, schema: impl Into<Value>) -> Self {
        Self { name: name.into(), description: None, schema: schema.into() }
    }

    /// Says what it is for.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

/// How much the model is to think before it answers. Each adapter uses its native form and converts the other by one table.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reasoning {
    /// At most so many tokens.
    Budget(u32),
    /// So hard.
    Effort(Effort),
    /// Not at all.
    Off,
}

impl From<Effort> for Reasoning {
    fn from(effort: Effort) -> Self {
        Self::Effort(effort)
    }
}

/// How hard a model is to think.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Effort {
    /// As little as there is.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// Very much.
    XHigh,
    /// As much as there is.
    Max,
}

impl Effort {
    /// The commonest wire form: `minimal`, `low`, `medium`, `high`, `xhigh`, `max`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}
