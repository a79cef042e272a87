//! What a turn consists of: text, or parts.

use super::Opaque;
use serde::{Deserialize, Serialize};

/// What a turn consists of.
///
/// ```
/// use steadfast::chat::{Content, Part};
/// let words: Content = "Hello".into();
/// let picture = Content::from(vec![Part::text("What is this?"), Part::image_url("https://example.com/cat.png")]);
/// assert_eq!((words.text(), picture.text()), ("Hello".into(), "What is this?".into()));
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// Parts, in order.
    Parts(Vec<Part>),
}

/// One part of a content.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Sound, where the model takes it.
    Audio(Media),
    /// A document, where the model takes it.
    Document(Document),
    /// A picture: png, jpeg, gif or webp.
    Image(Media),
    /// A block of reasoning that its provider wants back as it was. Other providers do not get it.
    Reasoning(Opaque),
    /// Text.
    #[non_exhaustive]
    Text {
        /// The words.
        text: String,
    },
}

/// A piece of media: its type, and where its bytes are.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Media {
    /// Its media type, such as `image/png`; it may be left out for a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Its bytes, or where they are.
    #[serde(flatten)]
    pub source: MediaSource,
}

/// Where the bytes of a piece of media are.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MediaSource {
    /// Here, in standard base64 with padding.
    Base64(String),
    /// At this URL, which the provider fetches.
    Url(String),
}

/// A document.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Document {
    /// Its name, where the protocol has a place for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its type (`application/pdf`, `text/plain`) and bytes.
    #[serde(flatten)]
    pub media: Media,
}

impl Media {
    /// Media of this type, from base64.
    pub fn base64(media_type: impl Into<String>, data: impl Into<String>) -> Self {
        Self { media_type: Some(media_type.into()), source: MediaSource::Base64(data.into()) }
    }

    /// Media of this type, from its bytes.
    pub fn bytes(media_type: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        use base64::Engine as _;
        Self::base64(media_type, base64::engine::general_purpose::STANDARD.encode(bytes))
    }

    /// Media at a URL.
    pub fn url(url: impl Into<String>) -> Self {
        Self { media_type: None, source: MediaSource::Url(url.into()) }
    }

    /// The same, of this type.
    #[must_use]
    pub fn of_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }
}

impl Part {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// A picture from its bytes. `media_type` is `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub fn image(media_type: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Image(Media::bytes(media_type, bytes))
    }

    /// A picture from base64.
    pub fn image_base64(media_type: impl Into<String>, data: impl Into<String>) -> Self {
        Self::Image(Media::base64(media_type, data))
    }

    /// A picture at a URL.
    pub fn image_url(url: impl Into<String>) -> Self {
        Self::Image(Media::url(url))
    }

    /// A document with a name.
    pub fn document(name: impl Into<String>, media: Media) -> Self {
        Self::Document(Document { name: Some(name.into()), media })
    }

    /// The text, of a part that is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }
}

impl Content {
    /// The text of it, put together from the parts that are text.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Parts(parts) => {
                let mut texts = parts.iter().filter_map(Part::as_text);
                match (texts.next(), texts.next()) {
                    (first, None) => first.unwrap_or_default().into(),
                    (first, second) => first.into_iter().chain(second).chain(texts).collect::<String>().into(),
                }
            }
        }
    }

    /// This content with another after it: texts with an empty line between them, else the parts of both.
    #[must_use]
    pub(crate) fn joined(self, after: Self) -> Self {
        match (self, after) {
            (Self::Text(before), Self::Text(after)) => Self::Text(format!("{before}\n\n{after}")),
            (before, after) => Self::Parts(before.into_parts().chain(after.into_parts()).collect()),
        }
    }

    fn into_parts(self) -> impl Iterator<Item = Part> {
        let (text, parts) = match self {
            Self::Text(text) => (Some(Part::Text { text }), Vec::new()),
            Self::Parts(parts) => (None, parts),
        };
        text.into_iter().chain(parts)
    }

    /// The length of all texts, in bytes.
    pub(crate) fn text_len(&self) -> usize {
        self.texts().map(str::len).sum()
    }

    /// The texts, one for each part that is text.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (whole, parts) = match self {
            Self::Text(text) => (Some(text.as_str()), [].as_slice()),
            Self::Parts(parts) => (None, parts.as_slice()),
        };
        whole.into_iter().chain(parts.iter().filter_map(Part::as_text))
    }

    /// The parts; none of a content that is a mere text.
    pub fn parts(&self) -> &[Part] {
        match self {
            Self::Text(_) => &[],
            Self::Parts(parts) => parts,
        }
    }

    /// Whether there is nothing in it but white space.
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Text(text) => text.trim_start().is_empty(),
            Self::Parts(parts) => parts.iter().all(|part| part.as_text().is_some_and(|text| text.trim().is_empty())),
        }
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

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Self {
        Self::Parts(parts)
    }
}

impl<const N: usize> From<[Part; N]> for Content {
    fn from(parts: [Part; N]) -> Self {
        Self::Parts(parts.into())
    }
}

impl From<Part> for Content {
    fn from(part: Part) -> Self {
        Self::Parts(vec![part])
    }
}
