//! What a content may consist of.

use crate::chat::{Content, Media, MediaSource, Part};

const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// What is wrong with the parts of a content of the user, or of the model.
pub(super) fn check(content: &Content, is_user: bool) -> Result<(), String> {
    for (place, part) in content.parts().iter().enumerate() {
        check_part(part, is_user).map_err(|fault| format!("part {place}: {fault}"))?;
    }
    Ok(())
}

fn check_part(part: &Part, is_user: bool) -> Result<(), String> {
    match part {
        Part::Text { text } if text.trim().is_empty() => Err("the text is empty; leave it out".to_owned()),
        Part::Reasoning(_) if is_user => Err("reasoning belongs to a turn of the model".to_owned()),
        Part::Reasoning(_) | Part::Text { .. } => Ok(()),
        _ if !is_user => Err("pictures, documents and sound belong to a turn of the user".to_owned()),
        Part::Image(media) => check_media(media, |media_type| {
            if IMAGES.contains(&media_type) {
                return Ok(());
            }
            Err(format!("the picture is of type {media_type:?}; models take {}", IMAGES.join(", ")))
        }),
        Part::Audio(media) => check_media(media, |media_type| {
            if media_type.starts_with("audio/") {
                return Ok(());
            }
            Err(format!("the sound is of type {media_type:?}; it takes audio/wav, audio/mp3 or another audio type"))
        }),
        Part::Document(document) => check_media(&document.media, |media_type| {
            if media_type.contains('/') {
                return Ok(());
            }
            Err(format!("the document is of type {media_type:?}; it takes a media type such as application/pdf"))
        }),
    }
}

fn check_media(media: &Media, check_type: impl Fn(&str) -> Result<(), String>) -> Result<(), String> {
    if let Some(media_type) = &media.media_type {
        check_type(media_type)?;
    }
    match &media.source {
        MediaSource::Base64(_) if media.media_type.is_none() => Err("the bytes have no media type".to_owned()),
        MediaSource::Base64(data) if !is_base64(data) => {
            Err("the data is not base64 as standard has it: `+` and `/`, padding, no line breaks".to_owned())
        }
        MediaSource::Url(url) if url.starts_with("data:") => {
            Err("the URL is a data URL; give its bytes as base64 instead".to_owned())
        }
        MediaSource::Url(url) if url::Url::parse(url).is_err() => Err("the URL cannot be read".to_owned()),
        MediaSource::Base64(_) | MediaSource::Url(_) => Ok(()),
    }
}

/// Whether it is standard base64 with padding, and not nothing.
fn is_base64(data: &str) -> bool {
    let digits = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    !digits.is_empty()
        && data.len().is_multiple_of(4)
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_known_by_its_alphabet_and_padding() {
        for data in ["aGk=", "aGkh", "aA==", "+/+/"] {
            assert!(is_base64(data), "{data}");
        }
        for data in ["", "====", "aGk", "aGk-", "aGk\n", "a=k=", "aGkh="] {
            assert!(!is_base64(data), "{data}");
        }
    }
}
