//! Schemas as each provider takes them.
//!
//! No provider takes all of JSON schema. What one does not understand is said in words, in the description beside it, so
//! that the model reads it; the reply is validated against the original all the same. What can be said in no way (a map,
//! where every object has to list its properties) is an error that names the place.
//!
//! Where an optional property has to be required (OpenAI), it may be null in its place; the validation of a reply takes such
//! a null for absence.

mod adapt;
mod dialect;
mod fold;
mod inline;
mod nullable;
mod recursion;

#[cfg(test)]
mod tests;

use crate::LlmError;
use crate::chat::schema::{MAX_DEPTH, resolve};
use crate::record::{ErrorCode, Issues};
use adapt::adapt;
use serde_json::Value;
use std::fmt;

/// What OpenAI takes where `strict` is set, of an output and of a tool: every object closed, every property required (an
/// optional one may be null instead), no maps; recursion is fine. Source: OpenAI, "Structured Outputs", supported schemas.
///
/// # Errors
///
/// What cannot be expressed. The same schema can still be sent without `strict`, if its root is an object.
pub(crate) fn openai_strict(schema: &Value) -> Result<Value, Inexpressible> {
    adapt(&dialect::OPENAI_STRICT, schema)
}

/// What Anthropic takes as an output format, and of a tool that is `strict`: every object closed, no maps, no recursion. A
/// tool that is not strict takes any schema as it is. Source: Anthropic, "Structured outputs", JSON schema limitations.
///
/// # Errors
///
/// What cannot be expressed. A forced tool that is not strict can still take the schema, if its root is an object.
pub(crate) fn anthropic(schema: &Value) -> Result<Value, Inexpressible> {
    adapt(&dialect::ANTHROPIC, schema)
}

/// What Gemini takes as `responseJsonSchema` and `parametersJsonSchema`. A type may refer to itself only through a property
/// that is not required. Source: Gemini API reference, `GenerationConfig.responseJsonSchema`.
///
/// # Errors
///
/// What cannot be expressed.
pub(crate) fn gemini(schema: &Value) -> Result<Value, Inexpressible> {
    adapt(&dialect::GEMINI, schema)
}

/// What Ollama takes as `format`: what llama.cpp can turn into a grammar, which is nearly all.
///
/// # Errors
///
/// What cannot be expressed.
pub(crate) fn ollama(schema: &Value) -> Result<Value, Inexpressible> {
    adapt(&dialect::OLLAMA, schema)
}

/// The schema with every reference replaced by what it refers to, for a model that knows no `$ref`.
///
/// # Errors
///
/// A type that refers to itself, a reference that leads nowhere, a result of more than 10,000 schemas.
pub(crate) fn inline_refs(schema: &Value) -> Result<Value, Inexpressible> {
    inline::inline(schema)
}

/// What a provider has no words for, and where in the schema it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Inexpressible {
    /// JSON pointer into the schema; empty for the root.
    pub(crate) at: String,
    /// What it is, and what to do about it.
    pub(crate) what: String,
}

impl Inexpressible {
    /// The refusal of a call: `unsupported_capability`, since another target may take the schema. `subject` is what has the
    /// schema, such as `tool "get_invoice"` or `output`.
    pub(crate) fn refuse(&self, subject: &str, model: &str) -> LlmError {
        let message = format!("{subject} has a schema that {model} cannot be given: {self}");
        LlmError::of(ErrorCode::UnsupportedCapability, message)
            .with_issues(Issues::Capability { capability: "schema".to_owned(), model: model.to_owned() })
    }
}

impl fmt::Display for Inexpressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.at.is_empty() { "the root" } else { &self.at };
        write!(f, "at {at}: {}", self.what)
    }
}

fn too_deep(at: String) -> Inexpressible {
    Inexpressible { at, what: format!("the schema is nested deeper than {MAX_DEPTH} levels") }
}

/// What a reference at `at` points to.
fn target<'s>(root: &'s Value, reference: &str, at: &str) -> Result<(String, &'s Value), Inexpressible> {
    resolve(root, reference).map_err(|what| Inexpressible { at: at.to_owned(), what })
}
