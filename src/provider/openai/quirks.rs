//! How a compatible server differs from the protocol, as data.

use crate::chat::Setting;

/// How a compatible server differs from OpenAI's protocol. A quirk is a field, never a test for a name.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Quirks {
    /// The field for the token limit, where no family of models says.
    pub token_field: TokenField,
    /// Whether the models are OpenAI's, so that their families ([`ModelFamily`](super::ModelFamily)) say what they take.
    pub openai_models: bool,
    /// The highest `temperature` that is taken.
    pub max_temperature: f64,
    /// The field for the seed.
    pub seed_field: &'static str,
    /// How many `stop` texts are taken at most.
    pub max_stop: usize,
    /// The header for the key; none means `authorization: Bearer`.
    pub key_header: Option<&'static str>,
    /// Settings that are not taken at all.
    pub refuses: &'static [Setting],
    /// Whether a stream is asked to report what it spent (`stream_options`). Some servers report it anyway, and refuse the
    /// field.
    pub stream_options: bool,
    /// Whether the reported output leaves out the tokens spent on reasoning.
    pub reasoning_outside_output: bool,
}

/// The field that carries the token limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TokenField {
    /// `max_completion_tokens`.
    MaxCompletionTokens,
    /// `max_tokens`.
    MaxTokens,
}

impl TokenField {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::MaxTokens => "max_tokens",
        }
    }
}

impl Quirks {
    /// A server with no known differences, and with models of its own.
    pub const fn none() -> Self {
        Self {
            token_field: TokenField::MaxTokens,
            openai_models: false,
            max_temperature: 2.0,
            seed_field: "seed",
            max_stop: usize::MAX,
            key_header: None,
            refuses: &[],
            stream_options: true,
            reasoning_outside_output: false,
        }
    }

    /// OpenAI itself: its models, and at most four `stop` texts.
    pub const fn openai() -> Self {
        Self { openai_models: true, max_stop: 4, ..Self::none() }
    }

    /// With this field for the token limit.
    #[must_use]
    pub const fn token_field(mut self, field: TokenField) -> Self {
        self.token_field = field;
        self
    }

    /// With this highest `temperature`.
    #[must_use]
    pub const fn max_temperature(mut self, max: f64) -> Self {
        self.max_temperature = max;
        self
    }

    /// With this field for the seed.
    #[must_use]
    pub const fn seed_field(mut self, field: &'static str) -> Self {
        self.seed_field = field;
        self
    }

    /// With this many `stop` texts at most.
    #[must_use]
    pub const fn max_stop(mut self, max: usize) -> Self {
        self.max_stop = max;
        self
    }

    /// With the key in this header, by itself.
    #[must_use]
    pub const fn key_header(mut self, name: &'static str) -> Self {
        self.key_header = Some(name);
        self
    }

    /// Without these settings: a call that sets one is refused before it is sent.
    #[must_use]
    pub const fn refuses(mut self, settings: &'static [Setting]) -> Self {
        self.refuses = settings;
        self
    }

    /// Without `stream_options`.
    #[must_use]
    pub const fn without_stream_options(mut self) -> Self {
        self.stream_options = false;
        self
    }

    /// With the reported output leaving out the tokens spent on reasoning.
    #[must_use]
    pub const fn reasoning_outside_output(mut self) -> Self {
        self.reasoning_outside_output = true;
        self
    }
}

impl Default for Quirks {
    fn default() -> Self {
        Self::none()
    }
}
