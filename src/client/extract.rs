//! An answer as a value of a Rust type.

use super::{Call, Client};
use crate::LlmError;
use crate::chat::{JsonSchema, Output, Reply};
use crate::record::{ErrorCode, Issues, SchemaMismatch};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// A value that a model gave, and the reply that it came in.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Extracted<T> {
    /// The value.
    pub value: T,
    /// The reply.
    pub reply: Reply,
}

impl Client {
    /// Asks for a value of type `T`: the schema is that of the type, the answer is parsed and validated, and fields that
    /// serde cannot read are faults as those that do not fit the schema. It takes the place of the call's own
    /// [`output`](Call::output).
    ///
    /// A type that is no object (a list, an enum with data) is asked for within one, as `{"value": ..}`, since most providers
    /// want an object.
    ///
    /// ```no_run
    /// # async fn run(client: &steadfast::Client) -> Result<(), steadfast::LlmError> {
    /// /// An invoice.
    /// #[derive(serde::Deserialize, steadfast::schemars::JsonSchema)]
    /// # #[schemars(crate = "steadfast::schemars")]
    /// struct Invoice {
    ///     number: String,
    ///     /// In cents.
    ///     total: u64,
    ///     due: Option<String>,
    /// }
    ///
    /// let invoice: Invoice = client.extract("Invoice 7: 12.50 EUR, due on 1 May").await?.value;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call): `json_parse_failed` and `schema_mismatch` where the answer is no such value; a model that declines
    /// or calls tools instead is `schema_mismatch` too. [`LlmError::partial`] has the reply. `unsupported_capability` where the
    /// provider cannot be given the schema.
    pub async fn extract<T>(&self, call: impl Into<Call> + Send) -> Result<Extracted<T>, LlmError>
    where
        T: DeserializeOwned + schemars::JsonSchema + Send + 'static,
    {
        let (schema, is_wrapped) = object(JsonSchema::of::<T>());
        let mut call = call.into().output(Output::Schema(schema));
        call.options.expected.must_answer = true;
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        // Read where it is validated, so that what serde cannot read is a fault of the answer, and is read once.
        let call = call.validate(move |value| {
            let value = read(value, is_wrapped)?;
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            Ok(())
        });
        let reply = self.call(call).await?;
        let value = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        match value {
            Some(value) => Ok(Extracted { value, reply }),
            None => Err(never_read(reply)),
        }
    }
}

fn read<T: DeserializeOwned>(value: &Value, is_wrapped: bool) -> Result<T, String> {
    T::deserialize(if is_wrapped { &value["value"] } else { value }).map_err(|error| error.to_string())
}

/// A reply that came by another way than a target.
fn never_read(reply: Reply) -> LlmError {
    let message = "the reply was not validated against the schema";
    let mismatches = vec![SchemaMismatch { path: String::new(), message: message.to_owned() }];
    LlmError::of(ErrorCode::SchemaMismatch, message).with_issues(Issues::Schema { mismatches }).with_partial(reply)
}

/// The schema, or that of an object with the value in it; and whether it is the latter.
fn object(mut schema: JsonSchema) -> (JsonSchema, bool) {
    if schema.schema.get("type").and_then(Value::as_str) == Some("object") {
        return (schema, false);
    }
    let mut inner = schema.schema.take();
    let definitions = inner.as_object_mut().and_then(|keywords| keywords.remove("$defs"));
    let mut definitions = match definitions {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    let name = format!("{}_value", schema.name);
    let here = format!("#/$defs/{name}");
    let refers = definitions
        .values_mut()
        .fold(move_root(&mut inner, &here), |refers, definition| move_root(definition, &here) || refers);
    let value = if refers {
        definitions.insert(name, inner);
        json!({"$ref": here})
    } else {
        inner
    };
    schema.schema = json!({
        "type": "object",
        "properties": {"value": value},
        "required": ["value"],
        "additionalProperties": false,
    });
    if !definitions.is_empty() {
        schema.schema["$defs"] = Value::Object(definitions);
    }
    (schema, true)
}

/// Rewrites what refers to the root, which is elsewhere from now on; whether anything does.
fn move_root(schema: &mut Value, to: &str) -> bool {
    match schema {
        Value::Object(keywords) => keywords.iter_mut().fold(false, |refers, (key, value)| {
            if key == "$ref" && value == "#" {
                *value = Value::String(to.to_owned());
                return true;
            }
            move_root(value, to) || refers
        }),
        Value::Array(items) => items.iter_mut().filter_map(|item| move_root(item, to).then_some(())).count() > 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, schemars::JsonSchema)]
    #[allow(dead_code)]
    struct Tree {
        name: String,
        children: Vec<Tree>,
    }

    #[derive(Debug, Deserialize, PartialEq, schemars::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Sum {
        Number(f64),
        Plus(Box<Sum>, Box<Sum>),
    }

    #[test]
    fn an_object_is_asked_for_as_it_is() {
        let (schema, is_wrapped) = object(JsonSchema::of::<Tree>());
        assert!(!is_wrapped);
        assert_eq!(schema.name, "Tree");
        let value = json!({"name": "a", "children": [{"name": "b", "children": []}]});
        assert_eq!(schema.mismatches(&value), []);
        assert_eq!(schema.mismatches(&json!({"name": "a", "children": [{"name": "b"}]}))[0].path, "/children/0");
    }

    #[test]
    fn what_is_no_object_is_asked_for_within_one() {
        let (list, is_wrapped) = object(JsonSchema::of::<Vec<Tree>>());
        assert!(is_wrapped && list.mismatches(&json!({"value": [{"name": "a", "children": []}]})).is_empty());
        assert_eq!(list.mismatches(&json!({"value": [{}]})).len(), 2);

        let (sum, _) = object(JsonSchema::of::<Sum>());
        let value = json!({"value": {"plus": [{"number": 1}, {"plus": [{"number": 2}, {"number": 3}]}]}});
        assert_eq!(sum.mismatches(&value), []);
        assert!(!sum.mismatches(&json!({"value": {"plus": [{"number": 1}, {"number": "2"}]}})).is_empty());
        let number = |n: f64| Box::new(Sum::Number(n));
        let three = Box::new(Sum::Plus(number(2.0), number(3.0)));
        assert_eq!(read::<Sum>(&value, true), Ok(Sum::Plus(number(1.0), three)));
    }
}
