//! What a family of models takes, as data: models change faster than releases, so every row can be replaced.

use super::place::name_of;
use GeminiLevel::{High, Low, Minimal, XHigh};
use GeminiThinking::{Budget, Level, Never};
use std::borrow::Cow;

/// What a family of models takes.
///
/// ```
/// use steadfast::provider::{Gemini, GeminiFamily, GeminiThinking};
///
/// let mine = GeminiFamily::new("gemini-9").refusing(["seed"]).thinking(GeminiThinking::Budget { off: true, from: 0, to: 9_000 });
/// let gemini = Gemini::new("AI...").families([mine]);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // each is an answer of its own
#[non_exhaustive]
pub struct GeminiFamily {
    /// How the id of a model of this family begins.
    pub starts: Cow<'static, str>,
    /// Whether it takes `systemInstruction`. Where not, the system text goes before the first words of the user.
    pub system_instruction: bool,
    /// Fields of `generationConfig` that it refuses, as the API names them (`topP`).
    pub refused: Cow<'static, [Cow<'static, str>]>,
    /// How it is told how much to think.
    pub thinking: GeminiThinking,
    /// Whether it takes tools.
    pub tools: bool,
    /// Whether it takes a form of the answer: `responseMimeType` and a schema.
    pub json: bool,
    /// Whether it takes tools and a form of the answer in one request.
    pub json_beside_tools: JsonBesideTools,
    /// Whether it signs its calls and refuses a call of the current turn that is not signed. Calls that another provider's
    /// model made are sent with the stand-in that Google names for them.
    pub signed_calls: bool,
    /// Whether the result of a tool may have pictures and documents in it.
    pub media_in_results: bool,
    /// Whether it takes pictures and documents by a public URL, beside those that are files of the API or videos.
    pub public_urls: bool,
}

/// How a family of models is told how much to think.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum GeminiThinking {
    /// As it was asked for: an effort as `thinkingLevel`, a budget as `thinkingBudget`, [`Off`](crate::chat::Reasoning::Off) as a budget
    /// of 0.
    AsAsked,
    /// By `thinkingBudget`, in tokens.
    Budget {
        /// Whether it takes 0, and then does not think.
        off: bool,
        /// The least that it takes beside that.
        from: u32,
        /// The most that it takes.
        to: u32,
    },
    /// By `thinkingLevel`. It always thinks.
    Level {
        /// The least that it has.
        from: GeminiLevel,
        /// The most that it has.
        to: GeminiLevel,
    },
    /// It does not think.
    Never,
}

/// A `thinkingLevel`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum GeminiLevel {
    /// `MINIMAL`.
    Minimal,
    /// `LOW`.
    Low,
    /// `MEDIUM`.
    Medium,
    /// `HIGH`.
    High,
    /// `XHIGH`.
    XHigh,
}

/// Whether a family of models takes tools and a form of the answer in one request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum JsonBesideTools {
    /// Yes.
    Always,
    /// Only where the model is free to call or not.
    Auto,
    /// No.
    Never,
}

impl GeminiFamily {
    /// A family whose ids begin so, and that takes everything.
    pub fn new(starts: impl Into<Cow<'static, str>>) -> Self {
        Self { starts: starts.into(), ..UNKNOWN }
    }

    /// Without `systemInstruction`.
    #[must_use]
    pub fn without_system_instruction(mut self) -> Self {
        self.system_instruction = false;
        self
    }

    /// Refusing these fields of `generationConfig`.
    #[must_use]
    pub fn refusing(mut self, fields: impl IntoIterator<Item = impl Into<Cow<'static, str>>>) -> Self {
        self.refused = fields.into_iter().map(Into::into).collect();
        self
    }

    /// Told so how much to think.
    #[must_use]
    pub fn thinking(mut self, thinking: GeminiThinking) -> Self {
        self.thinking = thinking;
        self
    }

    /// Without tools.
    #[must_use]
    pub fn without_tools(mut self) -> Self {
        self.tools = false;
        self
    }

    /// Without a form of the answer.
    #[must_use]
    pub fn without_json(mut self) -> Self {
        self.json = false;
        self
    }

    /// With tools and a form of the answer in one request, or not.
    #[must_use]
    pub fn json_beside_tools(mut self, beside: JsonBesideTools) -> Self {
        self.json_beside_tools = beside;
        self
    }

    /// Signing its calls, and refusing a call of the current turn that is not signed.
    #[must_use]
    pub fn with_signed_calls(mut self) -> Self {
        self.signed_calls = true;
        self
    }

    /// Without pictures and documents in the results of tools.
    #[must_use]
    pub fn without_media_in_results(mut self) -> Self {
        self.media_in_results = false;
        self
    }

    /// Without pictures and documents by public URLs.
    #[must_use]
    pub fn without_public_urls(mut self) -> Self {
        self.public_urls = false;
        self
    }
}

impl GeminiLevel {
    /// Its name on the wire.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Minimal => "MINIMAL",
            Self::Low => "LOW",
            Self::Medium => "MEDIUM",
            Self::High => "HIGH",
            Self::XHigh => "XHIGH",
        }
    }
}

/// A model that no row names: nothing is held back.
const UNKNOWN: GeminiFamily = GeminiFamily {
    starts: Cow::Borrowed(""),
    system_instruction: true,
    refused: Cow::Borrowed(&[]),
    thinking: GeminiThinking::AsAsked,
    tools: true,
    json: true,
    json_beside_tools: JsonBesideTools::Always,
    signed_calls: false,
    media_in_results: true,
    public_urls: true,
};

/// `gemini-2` and before: no JSON together with tools ("Function calling with a response mime type is unsupported"), and
/// results that are text.
const SECOND: GeminiFamily =
    GeminiFamily { json_beside_tools: JsonBesideTools::Never, media_in_results: false, ..UNKNOWN };

/// `gemini-3` and later: calls are signed, and forced ones go without JSON.
const THIRD: GeminiFamily = GeminiFamily { json_beside_tools: JsonBesideTools::Auto, signed_calls: true, ..UNKNOWN };

/// A row: how the ids begin, what the family has in common with others, and what it has of its own.
macro_rules! row {
    ($starts:literal, $like:ident $(, $field:ident: $value:expr)*) => {
        GeminiFamily { starts: Cow::Borrowed($starts), $($field: $value,)* ..$like }
    };
}

/// Google's families as of 2026-11, as its pages on thinking, function calling and structured output have them; the first row
/// that fits counts.
macro_rules! families {
    (refused by 2.5: $refused:expr) => {
        [
            // Gemma answers a `systemInstruction` with a 400 ("Developer instruction is not enabled"), and the third one
            // tools and JSON too.
            row!("gemma-3", UNKNOWN, system_instruction: false, thinking: Never, tools: false, json: false),
            row!("gemma-", UNKNOWN, system_instruction: false),
            row!("gemini-1", SECOND, thinking: Never, public_urls: false),
            row!("gemini-2.0", SECOND, thinking: Never, public_urls: false),
            row!("gemini-2.5-pro", SECOND, refused: $refused, thinking: Budget { off: false, from: 128, to: 32_768 }),
            row!("gemini-2.5-flash-lite", SECOND, refused: $refused, thinking: Budget { off: true, from: 512, to: 24_576 }),
            row!("gemini-2.5", SECOND, refused: $refused, thinking: Budget { off: true, from: 1, to: 24_576 }),
            row!("gemini-3.5-flash", THIRD, thinking: Level { from: Minimal, to: High }),
            row!("gemini-3.6-flash", THIRD, thinking: Level { from: Minimal, to: High }),
            row!("gemini-3", THIRD, thinking: Level { from: Low, to: High }),
            row!("gemini-4-hydrogen", THIRD, thinking: Level { from: Low, to: XHigh }),
            row!("gemini-4", THIRD, thinking: Level { from: Low, to: High }),
            // What comes after: signed as the last ones, and held back in nothing.
            row!("gemini-", UNKNOWN, signed_calls: true),
        ]
    };
}

/// Google's families on the Developer API. `gemini-2.5` refuses penalties there alone ("Penalty is not enabled for this
/// model").
pub(super) static DEVELOPER: [GeminiFamily; 13] =
    families!(refused by 2.5: Cow::Borrowed(&[Cow::Borrowed("presencePenalty"), Cow::Borrowed("frequencyPenalty")]));

/// Google's families on Vertex AI.
pub(super) static VERTEX: [GeminiFamily; 13] = families!(refused by 2.5: Cow::Borrowed(&[]));

/// The row for `model`.
pub(super) fn family<'a>(families: &'a [GeminiFamily], model: &str) -> &'a GeminiFamily {
    let name = name_of(model);
    families.iter().find(|family| name.starts_with(&*family.starts)).unwrap_or(&UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_fits_counts() {
        assert!(!family(&DEVELOPER, "gemma-3-27b-it").system_instruction);
        assert!(!family(&DEVELOPER, "models/gemma-3-27b-it").system_instruction);
        assert_eq!(family(&DEVELOPER, "gemini-2.5-flash").refused.len(), 2);
        assert!(family(&VERTEX, "gemini-2.5-flash").refused.is_empty());
    }

    #[test]
    fn an_unknown_family_is_held_back_in_nothing() {
        for model in ["tunedModels/gemma-x", "m-1", ""] {
            assert_eq!(*family(&DEVELOPER, model), UNKNOWN, "{model}");
        }
        assert_eq!(*family(&DEVELOPER, "gemini-9"), GeminiFamily::new("gemini-").with_signed_calls());
    }
}
