//! The conversation, as items.

use super::super::PROTOCOL;
use crate::chat::{Content, Document, Media, MediaSource, Part, Request, ToolCall, ToolResult, TurnRef};
use crate::provider::openai::{DataUrl, result_text};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// Every turn, as the items of a request to `model`.
pub(super) fn items<'a>(request: &'a Request, model: &str) -> Vec<Item<'a>> {
    // What is not stored cannot be referred to: only what is sealed goes back then.
    let stateless = request.extra.get("store") == Some(&Value::Bool(false));
    let mut items = Vec::new();
    for turn in request.turns() {
        match turn {
            TurnRef::Assistant(content, calls) => Answer::of(content, calls, model, stateless).write(&mut items),
            TurnRef::Tool(results) => items.extend(results.iter().map(Item::output)),
            TurnRef::User(content) => items.push(Item::said(Role::User, Said::of(content))),
        }
    }
    items
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Item<'a> {
    Known(Known<'a>),
    /// As the provider gave it.
    Kept(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Known<'a> {
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        call_id: &'a str,
        name: &'a str,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Said<'a>,
    },
    Message {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        role: Role,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
        content: Said<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    Assistant,
    User,
}

/// A content: a text as it is, or parts.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Said<'a> {
    Parts(Vec<Piece<'a>>),
    Text(Cow<'a, str>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Piece<'a> {
    InputFile {
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
        #[serde(flatten)]
        file: File<'a>,
    },
    InputImage {
        image_url: DataUrl<'a>,
    },
    InputText {
        text: &'a str,
    },
    OutputText {
        text: &'a str,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum File<'a> {
    FileData(DataUrl<'a>),
    FileUrl(&'a str),
}

impl<'a> Said<'a> {
    fn of(content: &'a Content) -> Self {
        match content {
            Content::Text(text) => Self::Text(text.into()),
            Content::Parts(parts) => match &parts[..] {
                [Part::Text { text }] => Self::Text(text.into()),
                parts => Self::Parts(parts.iter().filter_map(Piece::of).collect()),
            },
        }
    }
}

impl<'a> Piece<'a> {
    /// The part in the protocol's words. What it has none for was refused before.
    fn of(part: &'a Part) -> Option<Self> {
        match part {
            Part::Document(Document { name, media }) => {
                let (filename, file) = match &media.source {
                    MediaSource::Base64(_) => {
                        (Some(name.as_deref().unwrap_or("document")), File::FileData(DataUrl(media)))
                    }
                    // The name goes with bytes alone.
                    MediaSource::Url(url) => (None, File::FileUrl(url)),
                };
                Some(Self::InputFile { filename, file })
            }
            Part::Image(media @ Media { .. }) => Some(Self::InputImage { image_url: DataUrl(media) }),
            Part::Text { text } => Some(Self::InputText { text }),
            Part::Audio(_) | Part::Reasoning(_) => None,
        }
    }
}

impl<'a> Item<'a> {
    fn said(role: Role, content: Said<'a>) -> Self {
        Self::Known(Known::Message { id: None, role, phase: None, content })
    }

    /// Words of the model, which are parts by themselves.
    fn spoken(text: &'a str, id: Option<&'a str>, phase: Option<&'a str>) -> Self {
        let content = Said::Parts(vec![Piece::OutputText { text }]);
        Self::Known(Known::Message { id, role: Role::Assistant, phase, content })
    }

    fn call(call: &'a ToolCall, id: Option<&'a str>) -> Self {
        let ToolCall { id: call_id, name, arguments, .. } = call;
        Self::Known(Known::FunctionCall { id, call_id, name, arguments: arguments.to_string() })
    }

    fn output(result: &'a ToolResult) -> Self {
        let has_media = result.content.parts().iter().any(|part| part.as_text().is_none());
        let output = match (has_media, result.is_error) {
            (true, false) => Said::of(&result.content),
            // A failure is told in words, and its words come first.
            (true, true) => {
                let parts = result.content.parts().iter().filter_map(Piece::of);
                Said::Parts([Piece::InputText { text: "Error:" }].into_iter().chain(parts).collect())
            }
            (false, _) => Said::Text(result_text(result)),
        };
        Self::Known(Known::FunctionCallOutput { call_id: &result.id, output })
    }

    fn is_reasoning(&self) -> bool {
        matches!(self, Self::Kept(item) if item["type"] == "reasoning")
    }
}

/// A turn of the model.
struct Answer<'a> {
    text: Cow<'a, str>,
    content: Option<&'a Content>,
    calls: &'a [ToolCall],
    /// The items that it came in, if they may go back to this model.
    kept: &'a [Value],
    stateless: bool,
}

impl<'a> Answer<'a> {
    fn of(content: Option<&'a Content>, calls: &'a [ToolCall], model: &str, stateless: bool) -> Self {
        let kept = content.map_or(&[][..], Content::parts).iter().find_map(|part| match part {
            Part::Reasoning(opaque) if opaque.model.as_deref().is_none_or(|gave| is_same(gave, model)) => {
                opaque.for_protocol(PROTOCOL)?.as_array()
            }
            _ => None,
        });
        Self {
            text: content.map(Content::text).unwrap_or_default(),
            content,
            calls,
            kept: kept.map_or(&[], Vec::as_slice),
            stateless,
        }
    }

    /// Writes the turn as the items that it came in, with what the caller left of it: words and calls are the turn's own.
    fn write(self, items: &mut Vec<Item<'a>>) {
        let begin = items.len();
        // Ids refer to what is stored, or belong to sealed reasoning.
        let sealed = self.kept.iter().any(|item| item.get("encrypted_content").is_some_and(Value::is_string));
        let id = |item: &'a Value| item["id"].as_str().filter(|_| !self.stateless || sealed);
        let mut words = self.words();
        for item in self.kept {
            match item["type"].as_str() {
                Some("message") => {
                    let len = item["len"].as_u64().and_then(|len| usize::try_from(len).ok());
                    items.extend(words.next(len).map(|text| Item::spoken(text, id(item), item["phase"].as_str())));
                }
                Some("function_call") => {
                    let call = self.calls.iter().find(|call| item["call_id"] == *call.id);
                    items.extend(call.map(|call| Item::call(call, id(item))));
                }
                _ if self.stateless && item["type"] == "reasoning" && item["encrypted_content"].is_null() => {}
                _ => items.push(Item::Kept(item)),
            }
        }
        items.extend(words.rest().map(|text| Item::spoken(text, None, None)));
        let is_new = |call: &&ToolCall| !self.kept.iter().any(|item| item["call_id"] == *call.id);
        items.extend(self.calls.iter().filter(is_new).map(|call| Item::call(call, None)));
        // Reasoning goes back with what it led to, or not at all.
        while items.len() > begin && items.last().is_some_and(Item::is_reasoning) {
            items.pop();
        }
    }

    /// The words of the turn, to be dealt out to the messages that it came in.
    fn words(&self) -> Words<'a> {
        let texts: Vec<&'a str> = self.content.into_iter().flat_map(Content::texts).collect();
        let lens = self.kept.iter().filter_map(|item| item["len"].as_u64());
        let known = u64::try_from(self.text.len()).is_ok_and(|len| lens.sum::<u64>() == len);
        Words { texts, divided: known && self.content.is_some_and(|content| content.texts().count() == 1) }
    }
}

/// The words of a turn, not yet written.
struct Words<'a> {
    texts: Vec<&'a str>,
    /// Whether they are as they were given: one text, which the messages' lengths divide.
    divided: bool,
}

impl<'a> Words<'a> {
    /// The words of a message that had so many bytes of them.
    fn next(&mut self, len: Option<usize>) -> Option<&'a str> {
        let text = *self.texts.first()?;
        match len.and_then(|len| text.split_at_checked(len)).filter(|_| self.divided) {
            Some((words, rest)) => {
                self.texts[0] = rest;
                Some(words).filter(|words| !words.is_empty())
            }
            None => Some(self.texts.remove(0)).filter(|text| !text.is_empty()),
        }
    }

    /// Those that are left.
    fn rest(self) -> impl Iterator<Item = &'a str> {
        self.texts.into_iter().filter(|text| !text.is_empty())
    }
}

/// Whether both are names of one model, one of them perhaps without its date.
fn is_same(gave: &str, asked: &str) -> bool {
    let dated = |long: &str, short: &str| {
        long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with("-20"))
    };
    dated(gave, asked) || dated(asked, gave)
}
