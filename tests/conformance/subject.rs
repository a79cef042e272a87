//! What the suite has to know of an adapter.

use serde_json::Value;
use steadfast::chat::{FinishReason, Sampling};
use steadfast::provider::Provider;
use steadfast::testing::{Answer, FakeProviderBuilder, Received};
use steadfast::{Call, ErrorCode};

/// An adapter, and its protocol.
pub(crate) trait Subject {
    type Adapter: Provider + std::fmt::Debug;

    /// A model that takes every setting that the protocol has.
    const MODEL: &'static str;
    /// Whether the protocol has a seed.
    const SEED: bool;
    /// Whether the protocol has texts that end an answer.
    const STOP: bool = true;
    /// Whether replies name the model that answered.
    const MODEL_TOLD: bool = true;
    /// What a bad key is: most providers say so with a 401.
    const BAD_KEY: ErrorCode = ErrorCode::Authentication;
    /// Whether replies carry a request id.
    const REPLY_ID: bool;
    /// Whether errors do.
    const ERROR_ID: bool;
    /// Which parts of the totals the protocol reports.
    const PARTS: Parts;
    /// The code or type of a failure of the server, in an error object.
    const SERVER_ERROR: &'static str;

    /// A fake that speaks the protocol.
    fn fake() -> FakeProviderBuilder;

    /// The adapter, for this place and with this secret.
    fn adapter(base_url: &str, key: &str) -> Self::Adapter;

    /// What a request asks, in neutral words.
    fn asked(received: &Received) -> Asked;

    /// The settings that the protocol wants in every request, as the adapter sends them where a call sets none.
    fn required() -> Sampling {
        Sampling::new()
    }

    /// Fields of the protocol's own, for a call's `extra`.
    fn extra() -> Value;

    /// Words of the protocol for why an answer ends that has text, and what they mean.
    fn finish_reasons() -> Vec<(&'static str, FinishReason)>;

    /// An answer as the protocol writes it; none where the protocol has no such answer.
    fn answer(raw: Raw) -> Option<Answer>;

    /// A model, a call that it cannot serve, and the capability that it lacks; none where nothing is known to be lacking.
    fn unsupported() -> Option<(&'static str, Call, &'static str)>;
}

/// Parts of the totals of tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) cached_input: bool,
    pub(crate) cache_write: bool,
    pub(crate) reasoning: bool,
}

/// A request, read back.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) system: Option<String>,
    /// Who said it (the user, or the model), and what: a turn that is one of several blocks of a message is one here.
    pub(crate) turns: Vec<(bool, String)>,
    pub(crate) sampling: Sampling,
}

/// Answers that each protocol writes in its own way. All have status 200.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Raw {
    /// No text, for no reason.
    Empty,
    /// No text, since the token limit was reached before.
    Cut,
    /// No text, since a filter withheld it.
    Filtered,
    /// The text `Half`, which a filter cut.
    FilteredText,
    /// The text `Done`, and before it the reasoning `Hm`.
    Reasoning,
    /// No text, but the words `I cannot help with that.` in a field of their own.
    Refusal,
    /// The text `Hi` among fields, parts and words that do not exist, and `null` wherever there may be one.
    Strange,
    /// The text `Hi`; 120 tokens of input (40 of them from the cache, 10 written to it), 30 of output (20 of them
    /// reasoning), as far as the protocol reports parts.
    Usage,
}

/// The text of content given as a text, or the texts of its blocks.
pub(crate) fn texts(content: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match content {
        Value::Array(blocks) => blocks.iter().map(|block| text(&block["text"])).collect(),
        content => vec![text(content)],
    }
}

/// The sampling settings among these fields, by the names that the protocol has for them.
pub(crate) fn sampling(fields: &Value, max_tokens: &str, stop: &str) -> Sampling {
    let mut sampling = Sampling::new();
    sampling.temperature = fields["temperature"].as_f64();
    sampling.top_p = fields["top_p"].as_f64();
    sampling.max_tokens = fields[max_tokens].as_u64().and_then(|max| max.try_into().ok());
    sampling.stop =
        fields[stop].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    sampling.seed = fields["seed"].as_u64();
    sampling
}
