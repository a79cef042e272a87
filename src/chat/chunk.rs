//! What a stream yields, piece by piece.

use super::Usage;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;

/// A piece of a streamed answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Chunk {
    /// What the model thinks aloud.
    Reasoning(Text),
    /// Words of the answer.
    Text(Text),
    /// A part of a tool call.
    ToolCall(ToolCallDelta),
    /// The tokens spent, when the provider reports them; last.
    Usage(Usage),
}

impl Chunk {
    /// The words of a chunk that is text; else empty.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    /// The words of a chunk that is reasoning; else empty.
    pub fn reasoning(&self) -> &str {
        match self {
            Self::Reasoning(text) => text,
            _ => "",
        }
    }

    /// Whether it carries content: words, reasoning or a part of a tool call.
    pub fn is_content(&self) -> bool {
        match self {
            Self::Reasoning(text) | Self::Text(text) => !text.is_empty(),
            Self::ToolCall(_) => true,
            Self::Usage(_) => false,
        }
    }
}

/// Words that a chunk carries; reads as a `str`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Text(String);

impl Text {
    /// These words.
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// The words, without a copy.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Text {
    fn from(words: String) -> Self {
        Self(words)
    }
}

impl From<&str> for Text {
    fn from(words: &str) -> Self {
        Self(words.to_owned())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// A part of a tool call.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolCallDelta {
    /// Which call of the answer it belongs to, from 0.
    pub index: usize,
    /// The id; once, with the first part that knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The name of the tool; once, with the first part that knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// More of the arguments' JSON.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arguments: String,
    /// Whether nothing more of this call follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub complete: bool,
}

impl ToolCallDelta {
    /// A part of the call at `index`.
    pub fn new(index: usize) -> Self {
        Self { index, ..Self::default() }
    }

    /// With the id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// With the name of the tool.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// With more of the arguments.
    #[must_use]
    pub fn arguments(mut self, fragment: impl Into<String>) -> Self {
        self.arguments = fragment.into();
        self
    }

    /// Marked as the last part of its call.
    #[must_use]
    pub fn complete(mut self) -> Self {
        self.complete = true;
        self
    }
}
