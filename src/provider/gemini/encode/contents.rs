//! The conversation: contents of two roles, in parts.

use super::Target;
use crate::LlmError;
use crate::chat::{Content, Media, MediaSource, Part, Request, ToolCall, ToolResult, TurnRef};
use crate::provider::gemini::signature::{self, Signed};
use crate::record::{ErrorCode, Issues};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A turn.
#[derive(Serialize)]
pub(super) struct Said<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Piece<'a>>,
}

/// A part of a turn.
#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Piece<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        thought: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    Inline {
        inline_data: Inline<'a>,
    },
    File {
        file_data: File<'a>,
    },
    Call {
        function_call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    Result {
        function_response: Response<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inline<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    file_uri: &'a str,
}

#[derive(Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: Cow<'a, Value>,
}

#[derive(Serialize)]
#[allow(clippy::struct_field_names)] // the provider's names
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Outcome<'a>,
    /// Pictures and documents that came of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Piece<'a>>,
}

/// An object, as Google wants it; of these names it says that they mean what they say.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome<'a> {
    Error(Words<'a>),
    Output(Words<'a>),
}

/// An object or a list, where that is what was said; else a text.
#[derive(Serialize)]
#[serde(untagged)]
enum Words<'a> {
    Json(Cow<'a, RawValue>),
    Text(Cow<'a, str>),
}

impl<'a> Piece<'a> {
    fn text(text: &'a str) -> Self {
        Self::Text { text, thought: false, thought_signature: None }
    }

    fn signed(signed: &Signed<'a>) -> Self {
        Self::Text { text: "", thought: signed.is_thought, thought_signature: Some(signed.signature) }
    }
}

impl<'a> Said<'a> {
    /// The system text.
    pub(super) fn system(text: &'a str) -> Self {
        Self { role: None, parts: vec![Piece::text(text)] }
    }
}

/// The turns. Those of one role that follow each other are one turn in several parts, as Google's reference wants it. The
/// preface comes before the first words of the user.
pub(super) fn contents<'a>(
    request: &'a Request,
    mut preface: Option<&'a str>,
    target: &Target<'_>,
) -> Result<Vec<Said<'a>>, LlmError> {
    let mut contents: Vec<Said<'a>> = Vec::with_capacity(request.history.len() + 1);
    // The calls that the next turn answers.
    let mut open: &[ToolCall] = &[];
    for (turn, each) in request.turns().enumerate() {
        let role = if matches!(each, TurnRef::Assistant(..)) { "model" } else { "user" };
        if contents.last().is_none_or(|last| last.role != Some(role)) {
            contents.push(Said { role: Some(role), parts: Vec::with_capacity(1) });
        }
        let Some(Said { parts, .. }) = contents.last_mut() else { continue }; // was pushed
        match each {
            TurnRef::User(content) => {
                parts.extend(preface.take().map(Piece::text));
                user(content, target, parts)?;
            }
            TurnRef::Assistant(content, calls) => {
                if let Some(content) = content {
                    model(content, target, parts);
                }
                called(calls, target, parts);
                open = calls;
            }
            TurnRef::Tool(results) => answered(turn, std::mem::take(&mut open), results, target, parts)?,
        }
        // Of a turn that was nothing but another provider's blocks nothing is left.
        if contents.last().is_some_and(|last| last.parts.is_empty()) {
            contents.pop();
        }
    }
    Ok(contents)
}

/// How many bytes of media there are.
pub(super) fn media_len(request: &Request) -> usize {
    let of = |content: &Content| {
        let sources = content.parts().iter().filter_map(|part| match part {
            Part::Audio(media) | Part::Image(media) => Some(&media.source),
            Part::Document(document) => Some(&document.media.source),
            _ => None,
        });
        sources
            .map(|source| match source {
                MediaSource::Base64(text) | MediaSource::Url(text) => text.len() + 64,
            })
            .sum::<usize>()
    };
    let turns = request.turns().map(|turn| match turn {
        TurnRef::User(content) => of(content),
        TurnRef::Tool(results) => results.iter().map(|result| of(&result.content)).sum(),
        TurnRef::Assistant(..) => 0,
    });
    turns.sum()
}

fn user<'a>(content: &'a Content, target: &Target<'_>, parts: &mut Vec<Piece<'a>>) -> Result<(), LlmError> {
    match content {
        Content::Text(text) => parts.push(Piece::text(text)),
        Content::Parts(said) => {
            for part in said {
                match part {
                    Part::Text { text } => parts.push(Piece::text(text)),
                    Part::Image(media) => parts.push(file(media, "pictures", target)?),
                    Part::Audio(media) => parts.push(file(media, "sound", target)?),
                    // A name has no place here.
                    Part::Document(document) => parts.push(file(&document.media, "documents", target)?),
                    Part::Reasoning(_) => {} // a user has none
                }
            }
        }
    }
    Ok(())
}

/// The words of the model, each part with its own signature.
fn model<'a>(content: &'a Content, target: &Target<'_>, parts: &mut Vec<Piece<'a>>) {
    let said = match content {
        Content::Text(text) => return parts.push(Piece::text(text)),
        Content::Parts(said) => said,
    };
    // A signature of words comes before them here; one that came by itself goes behind them again.
    let mut of_words: Option<Signed<'a>> = None;
    let mut behind: Vec<Signed<'a>> = Vec::new();
    for part in said {
        match part {
            Part::Text { text } => {
                let thought_signature = of_words.take().map(|signed| signed.signature);
                parts.push(Piece::Text { text, thought: false, thought_signature });
            }
            Part::Reasoning(opaque) => match signature::read(opaque, target.provider, target.model) {
                Some(signed) if signed.is_thought => parts.push(Piece::signed(&signed)),
                Some(signed) if signed.is_apart => behind.push(signed),
                Some(signed) => behind.extend(of_words.replace(signed)),
                None => {} // another protocol's
            },
            Part::Audio(_) | Part::Document(_) | Part::Image(_) => {} // a model has none
        }
    }
    parts.extend(behind.iter().chain(&of_words).map(Piece::signed));
}

/// The calls of a turn. Of several, Google signs the first alone.
fn called<'a>(calls: &'a [ToolCall], target: &Target<'_>, parts: &mut Vec<Piece<'a>>) {
    let own = |call: &'a ToolCall| {
        call.opaque.as_ref().and_then(|own| signature::read_call(own, target.provider, target.model))
    };
    let is_signed = calls.iter().any(|call| own(call).is_some_and(|own| own.signature.is_some()));
    let stand_in = Some(signature::STAND_IN).filter(|_| target.family.signed_calls && !is_signed);
    for (place, call) in calls.iter().enumerate() {
        let own = own(call).unwrap_or_default();
        let stand_in = stand_in.filter(|_| place == 0);
        let args = match &call.arguments {
            Value::Null => Cow::Owned(Value::Object(serde_json::Map::new())),
            arguments => Cow::Borrowed(arguments),
        };
        parts.push(Piece::Call {
            function_call: Call { id: own.id, name: &call.name, args },
            thought_signature: own.signature.or(stand_in),
        });
    }
}

/// The results of a turn's calls, in the order of the calls: that is how Google tells which is whose where it gave no ids.
fn answered<'a>(
    turn: usize,
    calls: &'a [ToolCall],
    results: &'a [ToolResult],
    target: &Target<'_>,
    parts: &mut Vec<Piece<'a>>,
) -> Result<(), LlmError> {
    let wrong = |code: ErrorCode, what: &str, id: &str| {
        let message = format!("turn {turn}: {what} {id:?}");
        Err(LlmError::of(code, message).with_issues(Issues::ToolResults { turn, ids: vec![id.to_owned()] }))
    };
    if let Some(result) = results.iter().find(|result| !calls.iter().any(|call| call.id == result.id)) {
        return wrong(ErrorCode::UnknownToolResultIds, "the turn before called no tool by the id", &result.id);
    }
    for call in calls {
        let Some(result) = results.iter().find(|result| result.id == call.id) else {
            return wrong(ErrorCode::MissingToolResults, "there is no result for the call", &call.id);
        };
        let own = call.opaque.as_ref().and_then(|own| signature::read_call(own, target.provider, target.model));
        let words = Words::of(result.content.text());
        let mut media = Vec::new();
        user(&result.content, target, &mut media)?;
        media.retain(|piece| !matches!(piece, Piece::Text { .. }));
        if !media.is_empty() && !target.family.media_in_results {
            let cure = "give its text, put the picture or document into words of the user, or choose a later model";
            return Err(target.unsupported("pictures or documents in the result of a tool", cure));
        }
        parts.push(Piece::Result {
            function_response: Response {
                id: own.and_then(|own| own.id),
                name: &call.name,
                response: if result.is_error { Outcome::Error(words) } else { Outcome::Output(words) },
                parts: media,
            },
        });
    }
    Ok(())
}

impl<'a> Words<'a> {
    fn of(text: Cow<'a, str>) -> Self {
        if !text.trim_start().starts_with(['{', '[']) {
            return Self::Text(text);
        }
        match &text {
            Cow::Borrowed(borrowed) => match serde_json::from_str::<&RawValue>(borrowed) {
                Ok(json) => Self::Json(Cow::Borrowed(json)),
                Err(_) => Self::Text(text),
            },
            Cow::Owned(owned) => match serde_json::from_str::<Box<RawValue>>(owned) {
                Ok(json) => Self::Json(Cow::Owned(json)),
                Err(_) => Self::Text(text),
            },
        }
    }
}

/// Bytes go inline, a URL as a file.
fn file<'a>(media: &'a Media, what: &str, target: &Target<'_>) -> Result<Piece<'a>, LlmError> {
    let mime_type = media.media_type.as_deref();
    // Google lists png, jpeg, webp, heic and heif.
    if mime_type.is_some_and(|mime_type| mime_type.eq_ignore_ascii_case("image/gif")) {
        return Err(target.unsupported("image/gif", "send it as png, jpeg or webp"));
    }
    match &media.source {
        MediaSource::Base64(data) => {
            let Some(mime_type) = mime_type else {
                return Err(LlmError::of(ErrorCode::InvalidCall, format!("{what} without a media type")));
            };
            Ok(Piece::Inline { inline_data: Inline { mime_type, data } })
        }
        MediaSource::Url(file_uri) => {
            let mime_type = mime_type.or_else(|| type_of(file_uri));
            target.check_url(file_uri, mime_type, what)?;
            Ok(Piece::File { file_data: File { mime_type, file_uri } })
        }
    }
}

/// The media type that the end of a URL's path tells.
fn type_of(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let (_, ending) = path.rsplit_once('/')?.1.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "pdf" => "application/pdf",
        "txt" => "text/plain",
        "html" => "text/html",
        "csv" => "text/csv",
        "mp3" => "audio/mp3",
        "wav" => "audio/wav",
        "flac" => "audio/flac",
        "ogg" => "audio/ogg",
        "mp4" => "video/mp4",
        _ => return None,
    })
}
