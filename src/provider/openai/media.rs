//! Pictures, documents and sound, as both protocols write them.

use crate::LlmError;
use crate::chat::{Content, Media, MediaSource, Part, Request, TurnRef};
use crate::provider::unsupported;
use serde::ser::{Serialize, Serializer};

/// The bytes of a piece of media as a data URL, or the URL where they are.
pub(in crate::provider) struct DataUrl<'a>(pub(in crate::provider) &'a Media);

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0.source {
            MediaSource::Base64(data) => {
                let media_type = self.0.media_type.as_deref().unwrap_or("application/octet-stream");
                to.serialize_str(&format!("data:{media_type};base64,{data}"))
            }
            MediaSource::Url(url) => to.serialize_str(url),
        }
    }
}

/// The protocol's word for a kind of sound.
pub(in crate::provider) fn audio_format(media: &Media) -> Option<&'static str> {
    match media.media_type.as_deref()? {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some("wav"),
        "audio/mp3" | "audio/mpeg" => Some("mp3"),
        _ => None,
    }
}

/// What of media a protocol has words for, beyond what a model is asked by its capabilities.
pub(in crate::provider) struct MediaRules<'a> {
    pub(in crate::provider) provider: &'a str,
    pub(in crate::provider) model: &'a str,
    /// Whether a document may be given by its URL.
    pub(in crate::provider) document_urls: bool,
    /// Whether the result of a tool may have pictures and documents.
    pub(in crate::provider) in_results: bool,
}

impl MediaRules<'_> {
    /// Refuses what there are no words for.
    pub(in crate::provider) fn check(&self, request: &Request) -> Result<(), LlmError> {
        for turn in request.turns() {
            match turn {
                TurnRef::Assistant(..) => {}
                TurnRef::Tool(results) => {
                    for result in results {
                        self.check_content(&result.content)?;
                        let other = result.content.parts().iter().find(|part| part.as_text().is_none());
                        if let Some(part) = other.filter(|part| !self.in_results || matches!(part, Part::Audio(_))) {
                            let what = format!("{} in the result of a tool", kind(part));
                            return Err(self.refuse(&what, "give text"));
                        }
                    }
                }
                TurnRef::User(content) => self.check_content(content)?,
            }
        }
        Ok(())
    }

    fn check_content(&self, content: &Content) -> Result<(), LlmError> {
        for part in content.parts() {
            match part {
                Part::Audio(Media { source: MediaSource::Url(_), .. }) => {
                    return Err(self.refuse("sound by its URL", "send the bytes instead"));
                }
                Part::Audio(media) if audio_format(media).is_none() => {
                    let what = format!("sound of type {}", media.media_type.as_deref().unwrap_or("unknown"));
                    return Err(self.refuse(&what, "convert it to wav or mp3"));
                }
                Part::Document(document)
                    if !self.document_urls && matches!(document.media.source, MediaSource::Url(_)) =>
                {
                    return Err(self.refuse("a document by its URL", "send the bytes instead"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn refuse(&self, what: &str, cure: &str) -> LlmError {
        unsupported(self.provider, self.model, what, cure)
    }
}

fn kind(part: &Part) -> &'static str {
    match part {
        Part::Audio(_) => "sound",
        Part::Document(_) => "a document",
        Part::Image(_) => "a picture",
        Part::Reasoning(_) => "reasoning",
        Part::Text { .. } => "text",
    }
}

/// The length of all media that is sent as bytes, to guess the length of a body by.
pub(in crate::provider) fn media_len(request: &Request) -> usize {
    let of = |content: &Content| -> usize {
        let media = content.parts().iter().filter_map(|part| match part {
            Part::Audio(media) | Part::Image(media) => Some(media),
            Part::Document(document) => Some(&document.media),
            Part::Reasoning(_) | Part::Text { .. } => None,
        });
        media.map(|media| if let MediaSource::Base64(data) = &media.source { data.len() + 64 } else { 64 }).sum()
    };
    request
        .turns()
        .map(|turn| match turn {
            TurnRef::Assistant(..) => 0,
            TurnRef::Tool(results) => results.iter().map(|result| of(&result.content)).sum(),
            TurnRef::User(content) => of(content),
        })
        .sum()
}
