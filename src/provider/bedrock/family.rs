//! What a family of models refuses, as data: models change faster than releases, so the table can be replaced.

use crate::chat::Setting;
use std::borrow::Cow;

/// What a family of models on Bedrock refuses. For Claude there is more to say: [`AnthropicFamily`](super::AnthropicFamily).
///
/// ```
/// use steadfast::chat::Setting;
/// use steadfast::provider::{Bedrock, BedrockFamily};
///
/// let mine = BedrockFamily::new("vendor.poet-").refusing([Setting::TopP]);
/// let bedrock = Bedrock::new("us-east-1").families([mine]);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct BedrockFamily {
    /// How the id of a model of this family begins, its vendor first, whatever stands before that: the geography of an
    /// inference profile (`eu.`), the rest of an ARN.
    pub starts: Cow<'static, str>,
    /// The settings that it refuses.
    pub refused: Cow<'static, [Setting]>,
}

impl BedrockFamily {
    /// A family whose ids begin so, and that refuses nothing.
    pub fn new(starts: impl Into<Cow<'static, str>>) -> Self {
        Self { starts: starts.into(), refused: Cow::Borrowed(&[]) }
    }

    /// Refusing these settings.
    #[must_use]
    pub fn refusing(mut self, settings: impl Into<Vec<Setting>>) -> Self {
        self.refused = Cow::Owned(settings.into());
        self
    }
}

const fn row(starts: &'static str, refused: &'static [Setting]) -> BedrockFamily {
    BedrockFamily { starts: Cow::Borrowed(starts), refused: Cow::Borrowed(refused) }
}

/// The families that refuse something, as of 2026-11, from Amazon's user guide and the newest SDKs; the first row that fits
/// counts.
pub(super) const KNOWN: &[BedrockFamily] =
    &[row("openai.gpt-oss-", &[Setting::Stop]), row("openai.", &[Setting::Stop, Setting::Temperature, Setting::TopP])];

/// The row for `model`.
pub(super) fn family<'a>(families: &'a [BedrockFamily], model: &str) -> Option<&'a BedrockFamily> {
    // `arn:aws:bedrock:us-east-1::foundation-model/vendor.model`, `us.vendor.model`
    let id = model.rsplit('/').next().unwrap_or(model);
    let without_geography = id.split_once('.').map_or(id, |(_, rest)| rest);
    families.iter().find(|family| [id, without_geography].iter().any(|id| id.starts_with(&*family.starts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_found_behind_a_geography_or_in_an_arn() {
        for (model, starts) in [
            ("openai.gpt-oss-20b-1:0", Some("openai.gpt-oss-")),
            ("us.openai.gpt-9", Some("openai.")),
            ("arn:aws:bedrock:us-east-1::foundation-model/openai.gpt-9", Some("openai.")),
            ("arn:aws:bedrock:eu-west-1:1:inference-profile/eu.openai.gpt-oss-20b-1:0", Some("openai.gpt-oss-")),
            ("arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc123", None),
            ("amazon.nova-pro-v1:0", None),
            ("myopenai.x", None),
            ("", None),
        ] {
            assert_eq!(family(KNOWN, model).map(|family| &*family.starts), starts, "{model}");
        }
    }
}
