//! One turn of a conversation.

use serde::{Deserialize, Serialize};

/// One turn of a conversation.
///
/// ```
/// use steadfast::chat::Turn;
/// let history = vec![Turn::user("What is 2 + 2?"), Turn::assistant("4")];
/// # assert_eq!(history.len(), 2);
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Turn {
    /// What the user said.
    #[non_exhaustive]
    User {
        /// The words.
        content: Content,
    },
    /// What the model said.
    #[non_exhaustive]
    Assistant {
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
        Self::Assistant { content: content.into() }
    }

    /// The words of the turn.
    pub fn content(&self) -> &Content {
        match self {
            Self::User { content } | Self::Assistant { content } => content,
        }
    }
}

/// What a turn consists of.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
}

impl Content {
    /// The text of it.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
        }
    }

    /// Whether there is nothing in it but white space.
    pub fn is_blank(&self) -> bool {
        self.text().trim().is_empty()
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
