//! The conversation, as messages.

use super::super::{ChatApi, ToolIds};
use crate::chat::{Content, Document, Media, MediaSource, Part, Request, ToolCall, ToolResult, TurnRef};
use crate::provider::openai::media::{DataUrl, audio_format};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Everything that is said, for a model.
pub(super) struct Messages<'a> {
    pub(super) api: &'a ChatApi,
    pub(super) request: &'a Request,
    pub(super) model: &'a str,
    pub(super) developer: bool,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut messages = to.serialize_seq(None)?;
        if let Some(system) = &self.request.system {
            let role = if self.developer { "developer" } else { "system" };
            messages.serialize_element(&Message { role, content: Said::Text(system.into()) })?;
        }
        for turn in self.request.turns() {
            match turn {
                TurnRef::Assistant(content, calls) => {
                    messages.serialize_element(&Answer { api: self.api, model: self.model, content, calls })?;
                }
                TurnRef::Tool(results) => {
                    for result in results {
                        messages.serialize_element(&Outcome { api: self.api, result })?;
                    }
                }
                TurnRef::User(content) => {
                    messages.serialize_element(&Message { role: "user", content: Said::of(content) })?;
                }
            }
        }
        messages.end()
    }
}

#[derive(serde::Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Said<'a>,
}

/// A content: a text, or parts where it is more than one text.
enum Said<'a> {
    Parts(&'a [Part]),
    Text(Cow<'a, str>),
}

impl<'a> Said<'a> {
    fn of(content: &'a Content) -> Self {
        match content {
            Content::Text(text) => Self::Text(text.into()),
            Content::Parts(parts) => match &parts[..] {
                [Part::Text { text }] => Self::Text(text.into()),
                parts => Self::Parts(parts),
            },
        }
    }
}

impl Serialize for Said<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => to.serialize_str(text),
            Self::Parts(parts) => to.collect_seq(parts.iter().filter_map(Piece::of)),
        }
    }
}

/// A part of a message of the user.
#[derive(serde::Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    File { file: File<'a> },
    ImageUrl { image_url: Image<'a> },
    InputAudio { input_audio: Audio<'a> },
    Text { text: &'a str },
}

#[derive(serde::Serialize)]
struct File<'a> {
    filename: &'a str,
    file_data: DataUrl<'a>,
}

#[derive(serde::Serialize)]
struct Image<'a> {
    url: DataUrl<'a>,
}

#[derive(serde::Serialize)]
struct Audio<'a> {
    data: &'a str,
    format: &'static str,
}

impl<'a> Piece<'a> {
    /// The part in the protocol's words. What it has none for was refused before.
    fn of(part: &'a Part) -> Option<Self> {
        Some(match part {
            Part::Audio(media) => {
                let (Media { source: MediaSource::Base64(data), .. }, Some(format)) = (media, audio_format(media))
                else {
                    return None;
                };
                Self::InputAudio { input_audio: Audio { data, format } }
            }
            Part::Document(Document { name, media }) => {
                let filename = name.as_deref().unwrap_or("document");
                Self::File { file: File { filename, file_data: DataUrl(media) } }
            }
            Part::Image(media) => Self::ImageUrl { image_url: Image { url: DataUrl(media) } },
            Part::Text { text } => Self::Text { text },
            Part::Reasoning(_) => return None,
        })
    }
}

/// A message of the model.
struct Answer<'a> {
    api: &'a ChatApi,
    model: &'a str,
    content: Option<&'a Content>,
    calls: &'a [ToolCall],
}

impl Answer<'_> {
    /// What the server gave with the message and wants back: fields of it.
    fn kept(&self) -> impl Iterator<Item = (&String, &Value)> {
        let blocks = self.content.map_or(&[][..], Content::parts).iter().filter_map(|part| match part {
            Part::Reasoning(opaque) => opaque.for_protocol(self.api.protocol()),
            _ => None,
        });
        let echo = self.api.quirks.echo.filter(|echo| echo.is_for(self.model));
        let fields = blocks.filter_map(Value::as_object).flatten();
        fields.filter(move |(name, _)| echo.is_some_and(|echo| echo.field == **name))
    }
}

impl Serialize for Answer<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut message = to.serialize_map(None)?;
        message.serialize_entry("role", "assistant")?;
        let text = self.content.map(Content::text).unwrap_or_default();
        // Beside tool calls it may be left out, and some servers refuse a null.
        if !text.is_empty() || self.calls.is_empty() {
            message.serialize_entry("content", &text)?;
        }
        if !self.calls.is_empty() {
            message.serialize_entry("tool_calls", &Calls { api: self.api, calls: self.calls })?;
        }
        let mut kept = self.kept().peekable();
        if let Some(echo) = self.api.quirks.echo.filter(|echo| echo.always && echo.is_for(self.model))
            && kept.peek().is_none()
        {
            message.serialize_entry(echo.field, "")?;
        }
        for (name, value) in kept {
            message.serialize_entry(name, value)?;
        }
        message.end()
    }
}

struct Calls<'a> {
    api: &'a ChatApi,
    calls: &'a [ToolCall],
}

impl Serialize for Calls<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut calls = to.serialize_seq(Some(self.calls.len()))?;
        for call in self.calls {
            calls.serialize_element(&Call { api: self.api, call })?;
        }
        calls.end()
    }
}

struct Call<'a> {
    api: &'a ChatApi,
    call: &'a ToolCall,
}

#[derive(serde::Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: String,
}

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let ToolCall { id, name, arguments, opaque } = self.call;
        let mut call = to.serialize_map(None)?;
        call.serialize_entry("id", &self.api.tool_id(id))?;
        call.serialize_entry("type", "function")?;
        call.serialize_entry("function", &Function { name, arguments: arguments.to_string() })?;
        let kept = opaque.as_ref().and_then(|opaque| opaque.for_protocol(self.api.protocol()));
        for (name, value) in kept.and_then(Value::as_object).into_iter().flatten() {
            call.serialize_entry(name, value)?;
        }
        call.end()
    }
}

/// What came of a tool call.
struct Outcome<'a> {
    api: &'a ChatApi,
    result: &'a ToolResult,
}

impl Serialize for Outcome<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut message = to.serialize_map(Some(3))?;
        message.serialize_entry("role", "tool")?;
        message.serialize_entry("tool_call_id", &self.api.tool_id(&self.result.id))?;
        message.serialize_entry("content", &result_text(self.result))?;
        message.end()
    }
}

/// The text of a result. The protocols have no mark for a failure, so its text says so.
pub(in crate::provider) fn result_text(result: &ToolResult) -> Cow<'_, str> {
    let text = result.content.text();
    if result.is_error { format!("Error: {text}").into() } else { text }
}

impl ChatApi {
    /// An id of a tool call as the server takes it.
    fn tool_id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        match self.quirks.tool_ids {
            ToolIds::Any => id.into(),
            ToolIds::Nine => nine(id),
        }
    }
}

/// An id of nine letters and digits: the id itself where it is one, else one that is always the same for it.
fn nine(id: &str) -> Cow<'_, str> {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.into();
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let mut rest = hasher.finish();
    let letters = std::iter::repeat_with(|| {
        let letter = LETTERS[usize::try_from(rest % 62).unwrap_or(0)];
        rest /= 62;
        char::from(letter)
    });
    letters.take(9).collect::<String>().into()
}
