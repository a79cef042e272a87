//! How a compatible server differs from the protocol, as data.

use super::family::ALL_EFFORTS;
use crate::chat::{Effort, Setting};

/// How a compatible server differs from OpenAI's protocol. A quirk is a field, never a test for a name.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(clippy::struct_excessive_bools)] // each is an answer of its own
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
    /// Whether tools are taken.
    pub tools: bool,
    /// How many tools are taken at most.
    pub max_tools: usize,
    /// Which tools a model can be forced to call.
    pub forced_tools: ForcedTools,
    /// The word for any tool, where one has to be called.
    pub required: &'static str,
    /// Whether parallel tool calls can be switched on and off.
    pub parallel_tool_calls: bool,
    /// What ids of tool calls have to look like.
    pub tool_ids: ToolIds,
    /// Whether the server can hold a model to a schema (`strict`). Elsewhere the schema is sent as it is.
    pub strict: bool,
    /// Whether an answer of any JSON can be asked for (`json_object`).
    pub json: bool,
    /// Whether an answer of a schema can be asked for (`json_schema`). Elsewhere a forced tool stands for it, where there
    /// are no other tools.
    pub schema: bool,
    /// Whether either can be asked for beside tools.
    pub json_beside_tools: bool,
    /// How reasoning is asked for, where no family of models says.
    pub reasoning: ReasoningForm,
    /// How reasoning goes back with later turns.
    pub echo: Option<ReasoningEcho>,
    /// Whether a stream is asked to report what it spent (`stream_options`). Some servers report it anyway, and refuse the
    /// field.
    pub stream_options: bool,
    /// Whether the reported output leaves out the tokens spent on reasoning.
    pub reasoning_outside_output: bool,
}

/// Which tools a model can be forced to call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ForcedTools {
    /// Any, or the one that is named.
    Named,
    /// None.
    Never,
    /// Any, but not by name.
    Required,
}

/// What ids of tool calls have to look like. Ids of other providers are made to fit, the same way each time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ToolIds {
    /// Like anything.
    Any,
    /// Nine letters and digits (Mistral).
    Nine,
}

/// How a server is told how much to think.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ReasoningForm {
    /// `reasoning_effort`: one of these words, from little to much. `off` is whether `none` is one too.
    Effort {
        /// The efforts that it takes; another becomes the nearest.
        efforts: &'static [Effort],
        /// Whether it takes `none`.
        off: bool,
    },
    /// Not at all.
    None,
    /// `reasoning`: an object with `effort`, `max_tokens` or `enabled` (`OpenRouter`).
    Object,
    /// `thinking`: an object with `type`, and `reasoning_effort` beside it for these efforts, if any (`DeepSeek`, Z.AI).
    Thinking {
        /// The efforts that it takes beside; with none, an effort only switches thinking on.
        efforts: &'static [Effort],
    },
    /// `enable_thinking`, and `thinking_budget` beside it (Alibaba).
    Switch,
}

/// How reasoning goes back to the server that told it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ReasoningEcho {
    /// The field of a message of the model: `reasoning_content`, `reasoning` or, as it came, `reasoning_details`.
    pub field: &'static str,
    /// Whether every message of the model has to have it, if only empty.
    pub always: bool,
    /// How the ids of models begin that refuse it.
    pub not_for: &'static [&'static str],
}

impl ReasoningEcho {
    /// In this field, where there was reasoning.
    pub const fn new(field: &'static str) -> Self {
        Self { field, always: false, not_for: &[] }
    }

    /// In every message of the model.
    #[must_use]
    pub const fn always(mut self) -> Self {
        self.always = true;
        self
    }

    /// Not to models whose ids begin like this.
    #[must_use]
    pub const fn not_for(mut self, models: &'static [&'static str]) -> Self {
        self.not_for = models;
        self
    }

    /// Whether this model gets it.
    pub(super) fn is_for(&self, model: &str) -> bool {
        !self.not_for.iter().any(|start| model.starts_with(start))
    }
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
            tools: true,
            max_tools: usize::MAX,
            forced_tools: ForcedTools::Named,
            required: "required",
            parallel_tool_calls: true,
            tool_ids: ToolIds::Any,
            strict: false,
            json: true,
            schema: true,
            json_beside_tools: true,
            reasoning: ReasoningForm::Effort { efforts: ALL_EFFORTS, off: true },
            echo: None,
            stream_options: true,
            reasoning_outside_output: false,
        }
    }

    /// OpenAI itself: its models, at most four `stop` texts and 128 tools, and schemas that a model is held to.
    pub const fn openai() -> Self {
        Self { openai_models: true, max_stop: 4, max_tools: 128, strict: true, ..Self::none() }
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

    /// Without tools.
    #[must_use]
    pub const fn without_tools(mut self) -> Self {
        self.tools = false;
        self
    }

    /// With so many tools at most.
    #[must_use]
    pub const fn max_tools(mut self, max: usize) -> Self {
        self.max_tools = max;
        self
    }

    /// With these tools that a model can be forced to call.
    #[must_use]
    pub const fn forced_tools(mut self, forced: ForcedTools) -> Self {
        self.forced_tools = forced;
        self
    }

    /// With this word for any tool.
    #[must_use]
    pub const fn required(mut self, word: &'static str) -> Self {
        self.required = word;
        self
    }

    /// Without a switch for parallel tool calls.
    #[must_use]
    pub const fn without_parallel_tool_calls(mut self) -> Self {
        self.parallel_tool_calls = false;
        self
    }

    /// With ids of tool calls that look like this.
    #[must_use]
    pub const fn tool_ids(mut self, ids: ToolIds) -> Self {
        self.tool_ids = ids;
        self
    }

    /// With schemas that a model is held to, or without.
    #[must_use]
    pub const fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Without answers of any JSON.
    #[must_use]
    pub const fn without_json(mut self) -> Self {
        self.json = false;
        self
    }

    /// Without answers of a schema.
    #[must_use]
    pub const fn without_schema(mut self) -> Self {
        self.schema = false;
        self
    }

    /// Without either beside tools.
    #[must_use]
    pub const fn without_json_beside_tools(mut self) -> Self {
        self.json_beside_tools = false;
        self
    }

    /// With this form of asking for reasoning.
    #[must_use]
    pub const fn reasoning(mut self, form: ReasoningForm) -> Self {
        self.reasoning = form;
        self
    }

    /// With reasoning that goes back like this.
    #[must_use]
    pub const fn echo(mut self, echo: ReasoningEcho) -> Self {
        self.echo = Some(echo);
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
