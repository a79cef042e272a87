//! What a family of models refuses, as data: models change faster than releases, so every row can be replaced.

use super::place::name_of;
use std::borrow::Cow;

/// What a family of models refuses.
///
/// ```
/// use steadfast::provider::{Gemini, GeminiFamily};
///
/// let mine = GeminiFamily::new("gemini-9").refusing(["seed"]);
/// let gemini = Gemini::new("AI...").families([mine]);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct GeminiFamily {
    /// How the id of a model of this family begins.
    pub starts: Cow<'static, str>,
    /// Whether it takes `systemInstruction`. Where not, the system text goes before the first words of the user.
    pub system_instruction: bool,
    /// Fields of `generationConfig` that it refuses, as the API names them (`topP`).
    pub refused: Cow<'static, [Cow<'static, str>]>,
}

impl GeminiFamily {
    /// A family whose ids begin so, and that refuses nothing.
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
}

/// A model that no row names: nothing is held back.
const UNKNOWN: GeminiFamily =
    GeminiFamily { starts: Cow::Borrowed(""), system_instruction: true, refused: Cow::Borrowed(&[]) };

/// Gemma models answer a `systemInstruction` with a 400 ("Developer instruction is not enabled").
const GEMMA: GeminiFamily = GeminiFamily { starts: Cow::Borrowed("gemma-"), system_instruction: false, ..UNKNOWN };

/// Google's families as of 2026-11, on the Developer API; the first row that fits counts.
pub(super) const DEVELOPER: &[GeminiFamily] = &[
    GEMMA,
    // "Penalty is not enabled for this model", on this API alone.
    GeminiFamily {
        starts: Cow::Borrowed("gemini-2.5"),
        refused: Cow::Borrowed(&[Cow::Borrowed("presencePenalty"), Cow::Borrowed("frequencyPenalty")]),
        ..UNKNOWN
    },
];

/// Google's families on Vertex AI.
pub(super) const VERTEX: &[GeminiFamily] = &[GEMMA];

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
        assert!(!family(DEVELOPER, "gemma-3-27b-it").system_instruction);
        assert!(!family(DEVELOPER, "models/gemma-3-27b-it").system_instruction);
        assert_eq!(family(DEVELOPER, "gemini-2.5-flash").refused.len(), 2);
        assert!(family(VERTEX, "gemini-2.5-flash").refused.is_empty());
    }

    #[test]
    fn an_unknown_family_is_held_back_in_nothing() {
        for model in ["gemini-9", "tunedModels/gemma-x", "m-1", ""] {
            assert_eq!(*family(DEVELOPER, model), UNKNOWN, "{model}");
        }
    }
}
