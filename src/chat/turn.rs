//! One turn of a conversation.

use super::{Content, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};

/// One turn of a conversation. There is no turn of the system: instructions stand above the conversation, in
/// [`Request::system`](super::Request::system), so that one within it cannot be written.
///
/// ```
/// use steadfast::chat::{ToolCall, ToolResult, Turn};
/// let history = vec![
///     Turn::user("What is the weather in Oslo?"),
///     Turn::assistant_tool_calls([ToolCall::new("call_1", "get_weather", serde_json::json!({"city": "Oslo"}))]),
///     Turn::tool_results([ToolResult::new("call_1", "4 degrees, rain")]),
/// ];
/// # assert_eq!(history.len(), 3);
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Turn {
    /// What the model said, and the tools that it called.
    #[non_exhaustive]
    Assistant {
        /// The words; none where it only called tools.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Content>,
        /// The tools that it called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// What came of the tools that the turn before called.
    #[non_exhaustive]
    Tool {
        /// One result for each call.
        results: Vec<ToolResult>,
    },
    /// What the user said.
    #[non_exhaustive]
    User {
        /// The words.
        content: Content,
    },
}

impl Turn {
    /// A turn of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::User { content: content.into() }
    }

    /// A turn of the model.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::Assistant { content: Some(content.into()), tool_calls: Vec::new() }
    }

    /// A turn of the model that only called tools.
    pub fn assistant_tool_calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self::Assistant { content: None, tool_calls: calls.into_iter().collect() }
    }

    /// The results of the tools that the turn before called: one for each.
    pub fn tool_results(results: impl IntoIterator<Item = ToolResult>) -> Self {
        Self::Tool { results: results.into_iter().collect() }
    }

    /// The words of the turn, where it has any of its own.
    pub fn content(&self) -> Option<&Content> {
        match self {
            Self::Assistant { content, .. } => content.as_ref(),
            Self::Tool { .. } => None,
            Self::User { content } => Some(content),
        }
    }

    /// The tools that the turn called.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            Self::Assistant { tool_calls, .. } => tool_calls,
            Self::Tool { .. } | Self::User { .. } => &[],
        }
    }
}

/// A turn as an adapter reads it: one of the history, or the current words of the user.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TurnRef<'a> {
    /// What the model said, and the tools that it called.
    Assistant(Option<&'a Content>, &'a [ToolCall]),
    /// What came of them.
    Tool(&'a [ToolResult]),
    /// What the user said.
    User(&'a Content),
}

impl<'a> From<&'a Turn> for TurnRef<'a> {
    fn from(turn: &'a Turn) -> Self {
        match turn {
            Turn::Assistant { content, tool_calls } => Self::Assistant(content.as_ref(), tool_calls),
            Turn::Tool { results } => Self::Tool(results),
            Turn::User { content } => Self::User(content),
        }
    }
}

impl TurnRef<'_> {
    /// The length of its texts, in bytes: the words, arguments of calls and results.
    pub(crate) fn text_len(&self) -> usize {
        match self {
            Self::Assistant(content, calls) => {
                content.map_or(0, Content::text_len) + calls.iter().map(ToolCall::text_len).sum::<usize>()
            }
            Self::Tool(results) => results.iter().map(|result| result.content.text_len() + result.id.len()).sum(),
            Self::User(content) => content.text_len(),
        }
    }
}
