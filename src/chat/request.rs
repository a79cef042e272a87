//! What is asked, whoever answers.

use super::{Content, Output, Reasoning, Tool, ToolChoice, Turn, TurnRef};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is asked: system text, history, the current words of the user, tools, the form of the answer, and how to sample.
/// Plain data, the same for every provider.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Request {
    /// Instructions that stand above the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The turns so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Turn>,
    /// What the user says now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Content>,
    /// The tools that the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether it calls tools, and which.
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
    /// Whether it may call several tools at once. Not sent unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// The form of the answer.
    #[serde(default, skip_serializing_if = "Output::is_text")]
    pub output: Output,
    /// How much the model is to think before it answers. Not sent unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// How to sample.
    #[serde(default, skip_serializing_if = "Sampling::is_unset")]
    pub sampling: Sampling,
    /// Fields of the provider's own protocol, merged into the body last.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Request {
    /// A request with the user's words alone.
    pub fn user(content: impl Into<Content>) -> Self {
        Self { user: Some(content.into()), ..Self::default() }
    }

    /// The request with a turn after everything so far: what the user says now becomes history, and words of the user
    /// become what they say now.
    ///
    /// ```
    /// use steadfast::chat::{Request, Turn};
    /// let request = Request::user("Hello").then(Turn::assistant("How can I help?")).then(Turn::user("Tell me a joke"));
    /// assert_eq!(request.history.len(), 2);
    /// assert_eq!(request.user, Some("Tell me a joke".into()));
    /// ```
    #[must_use]
    pub fn then(mut self, turn: Turn) -> Self {
        self.history.extend(self.user.take().map(Turn::user));
        match turn {
            Turn::User { content } => self.user = Some(content),
            turn => self.history.push(turn),
        }
        self
    }

    /// Every turn in order, the current words of the user last.
    pub fn turns(&self) -> impl Iterator<Item = TurnRef<'_>> {
        self.history.iter().map(TurnRef::from).chain(self.user.iter().map(TurnRef::User))
    }
}

/// How to sample. What is not set is not sent, so that the provider's own default holds.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Sampling {
    /// Randomness; the range is the protocol's (0 to 2 at OpenAI, 0 to 1 at Anthropic).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling, in (0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The longest answer, in tokens, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Texts that end the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// A seed, for providers that take one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Sampling {
    /// Nothing set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is set.
    pub fn is_unset(&self) -> bool {
        *self == Self::default()
    }

    /// Sets the randomness.
    #[must_use]
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets nucleus sampling.
    #[must_use]
    pub fn top_p(mut self, top_p: f64) -> Self {
        self.top_p = Some(top_p);
        self
    }

    /// Sets the longest answer, in tokens.
    #[must_use]
    pub fn max_tokens(mut self, max_tokens: u32) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// Sets the texts that end the answer.
    #[must_use]
    pub fn stop(mut self, stop: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.stop = stop.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// These settings, and those of `defaults` where these are unset.
    #[must_use]
    pub fn or(self, defaults: &Self) -> Self {
        Self {
            temperature: self.temperature.or(defaults.temperature),
            top_p: self.top_p.or(defaults.top_p),
            max_tokens: self.max_tokens.or(defaults.max_tokens),
            stop: if self.stop.is_empty() { defaults.stop.clone() } else { self.stop },
            seed: self.seed.or(defaults.seed),
        }
    }

    /// Unsets one setting.
    pub fn unset(&mut self, setting: Setting) {
        match setting {
            Setting::Temperature => self.temperature = None,
            Setting::TopP => self.top_p = None,
            Setting::MaxTokens => self.max_tokens = None,
            Setting::Stop => self.stop.clear(),
            Setting::Seed => self.seed = None,
        }
    }
}

/// The name of a sampling setting, to leave out although a default exists.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Setting {
    /// [`Sampling::max_tokens`].
    MaxTokens,
    /// [`Sampling::seed`].
    Seed,
    /// [`Sampling::stop`].
    Stop,
    /// [`Sampling::temperature`].
    Temperature,
    /// [`Sampling::top_p`].
    TopP,
}
