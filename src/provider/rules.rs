//! Rule packs: what a provider's errors mean.
//!
//! A [`RulePack`] is a stack of dialects, each of them data: rules (a status, the words for machines, the wording of a
//! message), the names of limit headers. `generic` is at the bottom, `openai` over it, most providers over that; a user's
//! own rules lie on top. Evidence comes before status: a body is read, then its rules are asked from the top, and only
//! where none holds does the status decide.

mod anthropic;
mod azure;
mod bedrock;
mod body;
mod classified;
mod compatible;
mod duration;
mod gemini;
mod generic;
mod groq;
mod limits;
mod openai;
mod openrouter;
mod rule;
mod wait;

#[cfg(test)]
mod tests;

pub use classified::{Basis, Classified};

use super::Failure;
use crate::resilience::{Advice, LimitHint, Verdict};
use http::HeaderMap;
use rule::Dialect;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

type Refine = Arc<dyn Fn(&Failure<'_>, Classified) -> Classified + Send + Sync>;

/// What a provider's errors mean: a table of statuses, the wording and the headers that it uses.
///
/// A pack is a pure function of what arrived, so it can be used with any HTTP client. Making one and cloning one is cheap.
///
/// Rules of your own go on top of any pack:
///
/// ```
/// use steadfast::provider::{Failure, RulePack};
/// use steadfast::{ErrorCode, http::HeaderMap};
///
/// let rules = RulePack::generic().named("in-house").refine(|failure, seen| match failure.status {
///     Some(418) => seen.with_code(ErrorCode::Overloaded),
///     _ => seen,
/// });
/// let headers = HeaderMap::new();
/// let seen = rules.classify(&Failure::answer(418, &headers, b"short and stout"));
/// assert_eq!(seen.code, Some(ErrorCode::Overloaded));
/// assert!(seen.is_retryable());
/// ```
#[derive(Clone)]
pub struct RulePack {
    name: Cow<'static, str>,
    dialect: &'static Dialect,
    layers: Vec<Refine>,
}

/// Every dialect, for finding one by name.
static DIALECTS: &[&Dialect] = &[
    &generic::GENERIC,
    &openai::OPENAI,
    &azure::AZURE,
    &openrouter::OPENROUTER,
    &groq::GROQ,
    &compatible::MISTRAL,
    &compatible::DEEPSEEK,
    &compatible::TOGETHER,
    &compatible::FIREWORKS,
    &compatible::XAI,
    &compatible::CEREBRAS,
    &compatible::PERPLEXITY,
    &compatible::VLLM,
    &compatible::LLAMA_CPP,
    &compatible::OLLAMA,
    &anthropic::ANTHROPIC,
    &gemini::GEMINI,
    &bedrock::BEDROCK,
];

impl RulePack {
    /// What HTTP itself means, and what providers commonly say: for servers without a pack of their own.
    pub fn generic() -> Self {
        Self::of(&generic::GENERIC)
    }

    /// `OpenAI`, chat completions and responses. Over [`generic`](Self::generic): waits are also read from the text of a
    /// 429's message ("Please try again in 7.66s"), here and in every pack over this one.
    pub fn openai() -> Self {
        Self::of(&openai::OPENAI)
    }

    /// Azure `OpenAI`. Over [`openai`](Self::openai): quotas of free tiers.
    pub fn azure() -> Self {
        Self::of(&azure::AZURE)
    }

    /// `OpenRouter`. Over [`openai`](Self::openai): whose limit it was, the one 402 that is worth waiting for, moderation.
    pub fn openrouter() -> Self {
        Self::of(&openrouter::OPENROUTER)
    }

    /// Groq. Over [`openai`](Self::openai): 498, tool calls that failed to parse, request limits by the day.
    pub fn groq() -> Self {
        Self::of(&groq::GROQ)
    }

    /// Mistral. Over [`openai`](Self::openai): its own limit headers.
    pub fn mistral() -> Self {
        Self::of(&compatible::MISTRAL)
    }

    /// `DeepSeek`. As [`openai`](Self::openai).
    pub fn deepseek() -> Self {
        Self::of(&compatible::DEEPSEEK)
    }

    /// Together. Over [`openai`](Self::openai): the type `credit_limit`, which may be a plain rate limit.
    pub fn together() -> Self {
        Self::of(&compatible::TOGETHER)
    }

    /// Fireworks. Over [`openai`](Self::openai): 412 for suspended accounts, limits by prompt and generated tokens.
    pub fn fireworks() -> Self {
        Self::of(&compatible::FIREWORKS)
    }

    /// xAI. Over [`openai`](Self::openai): a wrong key is a 400, moderation is told in words.
    pub fn xai() -> Self {
        Self::of(&compatible::XAI)
    }

    /// Cerebras. Over [`openai`](Self::openai): limit headers by minute, hour and day.
    pub fn cerebras() -> Self {
        Self::of(&compatible::CEREBRAS)
    }

    /// Perplexity. Over [`openai`](Self::openai): a 401 may mean spent credit.
    pub fn perplexity() -> Self {
        Self::of(&compatible::PERPLEXITY)
    }

    /// vLLM. As [`openai`](Self::openai).
    pub fn vllm() -> Self {
        Self::of(&compatible::VLLM)
    }

    /// llama.cpp, and the servers built on it. As [`openai`](Self::openai).
    pub fn llama_cpp() -> Self {
        Self::of(&compatible::LLAMA_CPP)
    }

    /// Ollama, by either of its protocols. Over [`generic`](Self::generic): usage limits of its cloud.
    pub fn ollama() -> Self {
        Self::of(&compatible::OLLAMA)
    }

    /// Anthropic. Over [`generic`](Self::generic): spend limits among the rate limits, limit headers with RFC 3339 resets.
    pub fn anthropic() -> Self {
        Self::of(&anthropic::ANTHROPIC)
    }

    /// Gemini, on the Developer API and on Vertex. Over [`generic`](Self::generic): quotas by their window, keys that are
    /// wrong with a 400. (`RetryInfo` waits are read by every pack.)
    pub fn gemini() -> Self {
        Self::of(&gemini::GEMINI)
    }

    /// Amazon Bedrock. Over [`generic`](Self::generic): the names of exceptions. An exception in an event stream is read
    /// from a body with its name in `__type`, or from a header `x-amzn-errortype`.
    pub fn bedrock() -> Self {
        Self::of(&bedrock::BEDROCK)
    }

    /// The pack of this name, however it is written: `llama_cpp`, `llama.cpp` and `LlamaCpp` are one.
    ///
    /// ```
    /// use steadfast::provider::RulePack;
    /// assert_eq!(RulePack::by_name("llama.cpp").map(|p| p.name().to_owned()).as_deref(), Some("llama_cpp"));
    /// assert!(RulePack::by_name("opnai").is_none());
    /// ```
    pub fn by_name(name: &str) -> Option<Self> {
        let is = |candidate: &str| body::is_word(candidate, name);
        DIALECTS.iter().find(|d| is(d.name) || d.aliases.iter().any(|alias| is(alias))).map(|d| Self::of(d))
    }

    /// The names of all packs.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DIALECTS.iter().map(|dialect| dialect.name)
    }

    /// The same rules under another name.
    #[must_use]
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Rules of your own over these: called with the evidence and with what the rules below found, it gives what is found
    /// instead. It has the last word, save that nothing is retried once output was delivered.
    #[must_use]
    pub fn refine(mut self, f: impl Fn(&Failure<'_>, Classified) -> Classified + Send + Sync + 'static) -> Self {
        self.layers.push(Arc::new(f));
        self
    }

    /// The name of the pack.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a failure is.
    ///
    /// Whether to try again is decided in this order: output was delivered: no; `x-should-retry: false`: no; evidence of a
    /// used-up quota: no; `x-should-retry: true`: yes; the table. The status lists of a target come between, by
    /// [`Classified::advice`].
    pub fn classify(&self, failure: &Failure<'_>) -> Classified {
        let found = classified::classify(self.dialect, failure);
        let mut seen = self.layers.iter().fold(found, |seen, layer| layer(failure, seen));
        if failure.delivered {
            (seen.retry, seen.basis) = (Advice::Never, Basis::Delivered);
        }
        seen
    }

    /// What the engine is told about a failure.
    pub fn verdict(&self, failure: &Failure<'_>) -> Verdict {
        self.classify(failure).verdict(failure.status)
    }

    /// The wait that the provider advises, first match wins: `retry-after-ms`; `retry-after` in seconds or as an HTTP date;
    /// Google's `RetryInfo` in the body; on a 429, the text of the message (packs over [`openai`](Self::openai)) and the
    /// reset of a limit bucket that is empty. Zero, negative numbers, words and past dates are no advice; absurd lengths
    /// saturate. Moments are measured from `now`, and not read without it.
    ///
    /// It says only how long, not whether: a used-up quota may come with a wait too. For that, see
    /// [`classify`](Self::classify).
    ///
    /// ```
    /// use std::time::Duration;
    /// use steadfast::http::{HeaderMap, HeaderValue};
    /// use steadfast::provider::RulePack;
    ///
    /// let rules = RulePack::openai();
    /// let mut headers = HeaderMap::new();
    /// let body = br#"{"error":{"message":"Rate limit reached. Please try again in 7.66s."}}"#;
    /// assert_eq!(rules.retry_after(&headers, body, Some(429), None), Some(Duration::from_millis(7_660)));
    /// headers.insert("retry-after", HeaderValue::from_static("8"));
    /// assert_eq!(rules.retry_after(&headers, body, Some(429), None), Some(Duration::from_secs(8)));
    /// ```
    pub fn retry_after(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        status: Option<u16>,
        now: Option<SystemTime>,
    ) -> Option<Duration> {
        let failure = Failure { status, headers: Some(headers), body, at: now, ..Failure::default() };
        rule::Evidence::gather(self.dialect, &failure).wait
    }

    /// What the provider says about its own limits, in the headers of any answer.
    pub fn limits(&self, headers: &HeaderMap, now: Option<SystemTime>) -> Option<LimitHint> {
        let hint = limits::read(self.dialect.buckets(), |name| headers.get(name)?.to_str().ok(), now);
        (!hint.is_empty()).then_some(hint)
    }

    fn of(dialect: &'static Dialect) -> Self {
        Self { name: Cow::Borrowed(dialect.name), dialect, layers: Vec::new() }
    }
}

impl Default for RulePack {
    fn default() -> Self {
        Self::generic()
    }
}

impl fmt::Debug for RulePack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RulePack")
            .field("name", &self.name)
            .field("refined", &self.layers.len())
            .finish_non_exhaustive()
    }
}
