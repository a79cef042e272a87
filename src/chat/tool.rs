//! Tools: what a model may call, what it called, and what came of it.

use super::{Content, Opaque};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A tool that the model may call. The client never runs one by itself.
///
/// ```
/// use steadfast::chat::Tool;
/// let tool = Tool::new("get_invoice", "Fetch one invoice").parameters(serde_json::json!({
///     "type": "object",
///     "properties": {"id": {"type": "string"}},
///     "required": ["id"],
/// }));
/// # assert_eq!(tool.name, "get_invoice");
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Tool {
    /// Its name; what it may consist of is the protocol's.
    pub name: String,
    /// What it does, for the model to read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON schema of its arguments, an object.
    pub parameters: Value,
    /// Whether the provider is to hold the model to the schema, where it can. Default: the provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

impl Tool {
    /// A tool without parameters.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters: json!({"type": "object", "properties": {}}),
            strict: None,
        }
    }

    /// Sets the JSON schema of the arguments.
    #[must_use]
    pub fn parameters(mut self, schema: impl Into<Value>) -> Self {
        self.parameters = schema.into();
        self
    }

    /// Asks the provider to hold the model to the schema, where it can.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = Some(strict);
        self
    }
}

/// Whether the model calls tools, and which.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// As it sees fit.
    #[default]
    Auto,
    /// This one.
    Named(String),
    /// None, although there are some.
    None,
    /// At least one.
    Required,
}

impl ToolChoice {
    /// Whether it is left to the model.
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// A tool that the model called.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id that its result answers to; made up, and unique within the conversation, where the provider gives none.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments; an empty object where the model gave none.
    pub arguments: Value,
    /// What the provider wants back beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

impl ToolCall {
    /// A call.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), opaque: None }
    }

    /// The same with what its provider wants back.
    #[must_use]
    pub fn with_opaque(mut self, opaque: impl Into<Option<Opaque>>) -> Self {
        self.opaque = opaque.into();
        self
    }

    /// The arguments as `T`.
    ///
    /// # Errors
    ///
    /// When they are not of this type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(&self.arguments)
    }

    /// Roughly the length of its texts, in bytes.
    pub(crate) fn text_len(&self) -> usize {
        self.id.len() + self.name.len() + value_len(&self.arguments)
    }
}

/// Roughly the length of a value's JSON, in bytes.
pub(super) fn value_len(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 4,
        Value::Array(items) => 4 + items.iter().map(value_len).sum::<usize>(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + 6 + value_len(value)).sum::<usize>(),
    }
}

/// What came of a call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// What the tool gave.
    pub content: Content,
    /// Whether it failed. The model is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl ToolResult {
    /// What a tool gave.
    pub fn new(id: impl Into<String>, content: impl Into<Content>) -> Self {
        Self { id: id.into(), content: content.into(), is_error: false }
    }

    /// What a tool gave, as JSON.
    #[allow(clippy::needless_pass_by_value)] // reads better with `json!` at the call site
    pub fn json(id: impl Into<String>, value: Value) -> Self {
        Self::new(id, value.to_string())
    }

    /// Why a tool failed.
    pub fn error(id: impl Into<String>, message: impl Into<Content>) -> Self {
        Self { is_error: true, ..Self::new(id, message) }
    }
}
