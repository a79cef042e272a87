//! What an answer is held to, beside the tools and the form that the request names.

use super::Call;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A check of the caller's own.
pub(crate) type ValueCheck = Arc<dyn Fn(&Value) -> Result<(), String> + Send + Sync>;

/// A parser of the caller's own.
pub(crate) type ParseJson = Arc<dyn Fn(&str) -> Result<Value, String> + Send + Sync>;

/// What an answer is held to, beside the tools and the form that the request names.
#[derive(Clone, Default)]
pub(crate) struct Expected {
    pub(crate) validate_arguments: bool,
    pub(crate) lenient_json: bool,
    /// Whether a refusal or tool calls will not do in place of JSON.
    pub(crate) must_answer: bool,
    /// How often the model is asked again after an answer that does not fit.
    pub(crate) reask: u32,
    pub(crate) checks: Vec<ValueCheck>,
    pub(crate) parse_json: Option<ParseJson>,
}

impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expected")
            .field("validate_arguments", &self.validate_arguments)
            .field("lenient_json", &self.lenient_json)
            .field("must_answer", &self.must_answer)
            .field("reask", &self.reask)
            .field("checks", &self.checks.len())
            .field("parse_json", &self.parse_json.is_some())
            .finish()
    }
}

impl Call {
    /// Whether the arguments of tool calls are validated against the tools' schemas. Default: no. Arguments that do not fit
    /// are `schema_mismatch`, listed beside the other faults of the answer's calls.
    pub fn validate_arguments(mut self, validate: bool) -> Self {
        self.options.expected.validate_arguments = validate;
        self
    }

    /// Adds a check of the JSON that was answered, after the schema's. What it returns as an error is `schema_mismatch`
    /// with this message; a panic in it too. It takes [`json`](Self::json) or [`schema`](Self::schema): a check of an answer
    /// that is to be text is `invalid_call`.
    ///
    /// ```
    /// # use steadfast::Call;
    /// let call = Call::user("Three primes above 100, as a JSON array.").json().validate(|value| {
    ///     match value.as_array() {
    ///         Some(primes) if primes.len() == 3 => Ok(()),
    ///         _ => Err("three of them, in an array".into()),
    ///     }
    /// });
    /// ```
    pub fn validate(mut self, check: impl Fn(&Value) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.options.expected.checks.push(Arc::new(check));
        self
    }

    /// Whether JSON is also found in one fenced block, or with words around it, if the text holds one object or array.
    /// Default: no, the text is JSON and nothing else.
    pub fn lenient_json(mut self, lenient: bool) -> Self {
        self.options.expected.lenient_json = lenient;
        self
    }

    /// Reads the JSON of an answer with a parser of your own. What it returns as an error is `json_parse_failed`.
    pub fn parse_json(mut self, parse: impl Fn(&str) -> Result<Value, String> + Send + Sync + 'static) -> Self {
        self.options.expected.parse_json = Some(Arc::new(parse));
        self
    }

    /// Sets how often the model is told what is wrong with its answer and asked again, on the same target: after an answer
    /// that is no JSON or does not fit its schema, the schema of a tool's arguments or your own check. Default: never.
    ///
    /// Each time takes its place in the limiter; neither retries nor the retry budget are used, since no provider has
    /// failed. An answer that was cut by the token limit is not asked for again: it would be cut again. Streams are never
    /// asked again: their answer has been shown.
    pub fn reask(mut self, times: u32) -> Self {
        self.options.expected.reask = times;
        self
    }
}
