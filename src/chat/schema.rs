//! Whether a JSON value fits a JSON schema.
//!
//! It knows the keywords that models are given: types, properties, items, values, choices, references with recursion,
//! bounds and conditions. It does not know `pattern` and `patternProperties` (a regular expression would cost a crate that
//! nothing else here needs), `format` (an annotation, by the standard's own default), `unevaluated*`, `$dynamicRef` and other
//! documents; what it does not know is taken to fit. A whole validator (the crate `jsonschema`) would double the
//! dependencies of this crate. Who needs more checks it by [`Call::validate`](crate::Call::validate).
//!
//! Values come from models and schemas from callers: the depth and the number of steps are bounded, whatever they are.

mod fit;
mod number;

#[cfg(test)]
mod tests;

pub(crate) use fit::{fit, mismatches};

use super::{JsonSchema, Tool};
use crate::record::SchemaMismatch;
use serde_json::Value;

/// How deep a schema may be nested.
pub(crate) const MAX_DEPTH: usize = 100;

impl JsonSchema {
    /// Where a value does not fit the schema; nothing if it does. The module's docs say which keywords are known.
    ///
    /// A null stands for absence where a property is optional and may not be null: some providers make it so.
    ///
    /// ```
    /// use serde_json::json;
    /// use steadfast::chat::JsonSchema;
    /// let schema = JsonSchema::new("place", json!({"type": "object", "properties": {"city": {"type": "string"}}}));
    /// assert!(schema.mismatches(&json!({"city": "Oslo"})).is_empty());
    /// assert_eq!(schema.mismatches(&json!({"city": 4}))[0].path, "/city");
    /// ```
    pub fn mismatches(&self, value: &Value) -> Vec<SchemaMismatch> {
        mismatches(&self.schema, value)
    }

    /// Why the schema cannot be used at all.
    pub(crate) fn check(&self) -> Result<(), String> {
        check(&self.schema)
    }
}

impl Tool {
    /// Why the schema of the arguments cannot be used at all.
    pub(crate) fn check_schema(&self) -> Result<(), String> {
        check(&self.parameters)
    }
}

/// What a reference within a schema points to, and its pointer. `#/$defs/a%20b` has its escapes as URLs do.
pub(crate) fn resolve<'s>(root: &'s Value, reference: &str) -> Result<(String, &'s Value), String> {
    let Some(pointer) = reference.strip_prefix('#') else {
        return Err(format!("{reference:?} refers to another document; put it under `$defs`"));
    };
    let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8_lossy();
    match root.pointer(&pointer) {
        Some(schema) => Ok((pointer.into_owned(), schema)),
        None => Err(format!("{reference:?} refers to nothing")),
    }
}

/// Whether every reference leads somewhere, and the schema is of a sensible depth.
fn check(schema: &Value) -> Result<(), String> {
    check_below(schema, schema, 0)
}

fn check_below(root: &Value, schema: &Value, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("it is nested deeper than {MAX_DEPTH} levels"));
    }
    match schema {
        Value::Array(schemas) => schemas.iter().try_for_each(|schema| check_below(root, schema, depth + 1)),
        Value::Object(keywords) => {
            if let Some(Value::String(reference)) = keywords.get("$ref") {
                resolve(root, reference)?;
            }
            keywords.iter().try_for_each(|(key, value)| match (key.as_str(), value) {
                // Values, in which a `$ref` is a mere name.
                ("const" | "default" | "enum" | "examples", _) => Ok(()),
                // Names to schemas.
                (
                    "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties",
                    Value::Object(named),
                ) => named.values().try_for_each(|schema| check_below(root, schema, depth + 1)),
                _ => check_below(root, value, depth + 1),
            })
        }
        _ => Ok(()),
    }
}
