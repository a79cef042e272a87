//! What each provider understands of JSON schema, as data.

use serde_json::Value;

/// What one provider understands of JSON schema.
#[allow(clippy::struct_excessive_bools)] // each is an answer of its own
pub(super) struct Dialect {
    /// Who it is, for messages.
    pub(super) who: &'static str,
    /// The keywords that restrict a value and are passed on as they are. Those that structure it are handled one by one.
    pub(super) keeps: &'static [&'static str],
    /// The formats of strings that are understood; `None`: all may be sent.
    pub(super) formats: Option<&'static [&'static str]>,
    /// Whether a regular expression is understood.
    pub(super) pattern: fn(&str) -> bool,
    /// Whether this value may stand in an `enum`.
    pub(super) enumerable: fn(&Value) -> bool,
    /// Whether every object lists all of its properties: no maps.
    pub(super) closed: bool,
    /// Whether every property is required, so that an optional one has to be nullable instead.
    pub(super) all_required: bool,
    /// Whether every schema has to say its type.
    pub(super) typed: bool,
    /// Whether the root has to be an object.
    pub(super) object_root: bool,
    /// `const`; else it is an `enum` of one.
    pub(super) consts: bool,
    /// `oneOf`; else it is an `anyOf`.
    pub(super) one_of: bool,
    /// `prefixItems`; else it is an array of any of these.
    pub(super) tuples: bool,
    pub(super) recursion: Recursion,
}

/// Whether a type may refer to itself.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Recursion {
    Any,
    None,
    /// Only through a property that is not required.
    Optional,
}

/// OpenAI, and everything that took over its `strict`.
pub(super) const OPENAI_STRICT: Dialect = Dialect {
    who: "a strict schema",
    keeps: &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"],
    formats: Some(&["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]),
    // No look-around.
    pattern: |pattern| !["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| pattern.contains(look)),
    enumerable: is_scalar,
    closed: true,
    all_required: true,
    typed: true,
    object_root: true,
    consts: true,
    one_of: false,
    tuples: false,
    recursion: Recursion::Any,
};

pub(super) const ANTHROPIC: Dialect = Dialect {
    who: "Anthropic",
    keeps: &[],
    formats: Some(&["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"]),
    pattern: |_| false,
    enumerable: is_scalar,
    closed: true,
    all_required: false,
    typed: true,
    object_root: true,
    consts: true,
    one_of: false,
    tuples: false,
    recursion: Recursion::None,
};

pub(super) const GEMINI: Dialect = Dialect {
    who: "Gemini",
    keeps: &["minItems", "maxItems", "minimum", "maximum", "propertyOrdering"],
    formats: Some(&["date-time", "date", "time"]),
    pattern: |_| false,
    // Strings and numbers; a null among them becomes a choice of its own.
    enumerable: |value| value.is_string() || value.is_number(),
    closed: false,
    all_required: false,
    typed: false,
    object_root: false,
    consts: false,
    one_of: true,
    tuples: true,
    recursion: Recursion::Optional,
};

pub(super) const OLLAMA: Dialect = Dialect {
    who: "Ollama",
    keeps: &[
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
    ],
    formats: Some(&["date-time", "time", "date", "uuid"]),
    // A grammar has no place before or after the text.
    pattern: |pattern| pattern.starts_with('^') && pattern.ends_with('$'),
    enumerable: |_| true,
    closed: false,
    all_required: false,
    typed: false,
    object_root: false,
    consts: true,
    one_of: true,
    tuples: true,
    recursion: Recursion::Any,
};

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

/// Keywords that restrict a value. What a provider does not know of them is told in the description.
pub(super) const RESTRICTING: &[&str] = &[
    "contains",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "pattern",
    "patternProperties",
    "propertyNames",
    "then",
    "uniqueItems",
];

/// Keywords that say something about a value without restricting it.
pub(super) const ANNOTATING: &[&str] =
    &["$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"];
