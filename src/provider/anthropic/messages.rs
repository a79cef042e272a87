//! The turns of a request as messages: roles alternate, results of tools come first.

use super::PROTOCOL;
use super::family::{AnthropicFamily, family};
use crate::LlmError;
use crate::chat::{Content, Document, Media, MediaSource, Opaque, Part, Request, ToolCall, ToolResult, TurnRef};
use crate::provider::arguments::object;
use crate::provider::refusal::unsupported;
use crate::record::ErrorCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What a tool said that failed without a word: the protocol wants one.
const FAILED: &str = "The tool failed.";

/// One message. What its turns said in a row are its blocks.
#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    role: Role,
    content: Blocks<'a>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    Assistant,
    User,
}

#[derive(Debug)]
struct Blocks<'a>(Vec<Block<'a>>);

/// A mere text needs no block.
impl Serialize for Blocks<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [Block::Text { text }] => to.serialize_str(text),
            blocks => to.collect_seq(blocks),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    Image {
        source: Source<'a>,
    },
    Text {
        text: &'a str,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Blocks<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Cow<'a, Value>,
    },
    /// A block of reasoning, as it was.
    #[serde(untagged)]
    Kept(&'a Value),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Text { media_type: &'static str, data: String },
    Url { url: &'a str },
}

/// Writes the turns of one request.
pub(super) struct Writer<'a> {
    families: &'a [AnthropicFamily],
    model: &'a str,
    messages: Vec<Message<'a>>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(families: &'a [AnthropicFamily], model: &'a str) -> Self {
        Self { families, model, messages: Vec::new() }
    }

    pub(super) fn messages(mut self, request: &'a Request) -> Result<Vec<Message<'a>>, LlmError> {
        for turn in request.turns() {
            match turn {
                TurnRef::Assistant(content, calls) => {
                    let mut blocks = self.contents(content)?;
                    for call in calls {
                        self.call(call, &mut blocks);
                    }
                    self.add(Role::Assistant, blocks);
                }
                TurnRef::Tool(results) => {
                    let blocks = results.iter().map(|result| self.result(result)).collect::<Result<_, _>>()?;
                    self.add(Role::User, blocks);
                }
                TurnRef::User(content) => {
                    let blocks = self.contents(Some(content))?;
                    self.add(Role::User, blocks);
                }
            }
        }
        Ok(self.messages)
    }

    /// Adds what one turn said to the message of its role. A turn of which nothing is left says nothing.
    fn add(&mut self, role: Role, mut blocks: Vec<Block<'a>>) {
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.content.0.append(&mut blocks),
            _ if blocks.is_empty() => {}
            _ => self.messages.push(Message { role, content: Blocks(blocks) }),
        }
    }

    fn contents(&self, content: Option<&'a Content>) -> Result<Vec<Block<'a>>, LlmError> {
        match content {
            None => Ok(Vec::new()),
            // A text without words is refused by the provider, and says nothing.
            Some(Content::Text(text)) if text.trim().is_empty() => Ok(Vec::new()),
            Some(Content::Text(text)) => Ok(vec![Block::Text { text }]),
            Some(Content::Parts(parts)) => {
                let mut blocks = Vec::with_capacity(parts.len());
                for part in parts {
                    self.part(part, &mut blocks)?;
                }
                Ok(blocks)
            }
        }
    }

    fn part(&self, part: &'a Part, blocks: &mut Vec<Block<'a>>) -> Result<(), LlmError> {
        match part {
            Part::Audio(_) => {
                return Err(unsupported("anthropic", self.model, "audio", "the protocol has no place for it"));
            }
            Part::Document(document) => blocks.push(self.document(document)?),
            Part::Image(image) => blocks.push(Block::Image { source: source(image) }),
            Part::Reasoning(opaque) => blocks.extend(self.kept(opaque)),
            Part::Text { text } if text.trim().is_empty() => {}
            Part::Text { text } => blocks.push(Block::Text { text }),
        }
        Ok(())
    }

    /// Blocks of reasoning that this model takes back: of this protocol, and not bound to another model.
    fn kept(&self, opaque: &'a Opaque) -> impl Iterator<Item = Block<'a>> {
        let data = opaque.for_protocol(PROTOCOL).filter(|_| !self.is_bound_elsewhere(opaque));
        let (list, one) = match data {
            Some(Value::Array(blocks)) => (blocks.as_slice(), None),
            one => ([].as_slice(), one),
        };
        list.iter().chain(one).map(Block::Kept)
    }

    fn is_bound_elsewhere(&self, opaque: &Opaque) -> bool {
        let Some(giver) = opaque.model.as_deref() else { return false };
        let (giver, taker) = (family(self.families, giver), family(self.families, self.model));
        match (giver, taker) {
            (Some(giver), Some(taker)) => {
                giver.stem != taker.stem && (giver.thinking_is_bound || taker.thinking_is_bound)
            }
            (Some(family), None) | (None, Some(family)) => family.thinking_is_bound,
            (None, None) => false,
        }
    }

    fn call(&self, call: &'a ToolCall, blocks: &mut Vec<Block<'a>>) {
        blocks.extend(call.opaque.iter().flat_map(|before| self.kept(before)));
        blocks.push(Block::ToolUse { id: id(&call.id), name: &call.name, input: object(&call.arguments) });
    }

    fn result(&self, result: &'a ToolResult) -> Result<Block<'a>, LlmError> {
        let mut content = self.contents(Some(&result.content))?;
        if content.is_empty() && result.is_error {
            content.push(Block::Text { text: FAILED });
        }
        let content = Some(Blocks(content)).filter(|content| !content.0.is_empty());
        Ok(Block::ToolResult { tool_use_id: id(&result.id), content, is_error: result.is_error })
    }

    fn document(&self, document: &'a Document) -> Result<Block<'a>, LlmError> {
        let media_type = document.media.media_type.as_deref();
        let source = match (&document.media.source, media_type) {
            (MediaSource::Base64(data), Some(media_type)) if media_type.starts_with("text/") => {
                let text = STANDARD.decode(data).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                let Some(data) = text else {
                    let message = format!("a document of type {media_type} is not UTF-8, which anthropic takes alone");
                    return Err(LlmError::of(ErrorCode::InvalidCall, message));
                };
                Source::Text { media_type: "text/plain", data }
            }
            (MediaSource::Base64(_), Some(media_type)) if media_type != "application/pdf" => {
                let cure = "it takes application/pdf and text";
                return Err(unsupported("anthropic", self.model, &format!("documents of type {media_type}"), cure));
            }
            _ => source(&document.media),
        };
        Ok(Block::Document { source, title: document.name.as_deref() })
    }
}

fn source(media: &Media) -> Source<'_> {
    match &media.source {
        MediaSource::Base64(data) => {
            Source::Base64 { media_type: media.media_type.as_deref().unwrap_or_default(), data }
        }
        MediaSource::Url(url) => Source::Url { url },
    }
}

/// The id of a call in the letters that the protocol takes (`a-z`, `A-Z`, `0-9`, `_`, `-`): another provider's may have others.
/// What is changed gets a mark that tells it from another id that would look the same.
fn id(id: &str) -> Cow<'_, str> {
    let is_taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if id.chars().all(is_taken) {
        return Cow::Borrowed(id);
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let taken: String = id.chars().map(|c| if is_taken(c) { c } else { '_' }).collect();
    Cow::Owned(format!("{taken}_{:08x}", hasher.finish() & 0xffff_ffff))
}
