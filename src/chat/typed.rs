//! Schemas and tools from Rust types.

use super::{JsonSchema, Tool};
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The longest name that providers take.
const LONGEST_NAME: usize = 64;

impl Tool {
    /// A tool whose arguments are a `T`: named as the type in `snake_case`, described by its doc comment, its parameters
    /// described by those of the fields. `#[schemars(rename = "..")]` on the type gives another name. `T` is a struct with
    /// named fields.
    ///
    /// ```
    /// use steadfast::chat::{Tool, ToolCall};
    /// use steadfast::schemars::{self, JsonSchema};
    ///
    /// /// Fetch one invoice.
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct GetInvoice {
    ///     /// The number on the invoice.
    ///     id: String,
    /// }
    ///
    /// let tool = Tool::of::<GetInvoice>();
    /// assert_eq!((&*tool.name, &*tool.description), ("get_invoice", "Fetch one invoice."));
    ///
    /// # let call = ToolCall::new("1", "get_invoice", serde_json::json!({"id": "a-7"}));
    /// let arguments: GetInvoice = call.parse()?; // a call of the reply
    /// # assert_eq!(arguments.id, "a-7");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn of<T: schemars::JsonSchema>() -> Self {
        let mut schema = schema_of::<T>();
        let description = match schema.as_object_mut().and_then(|keywords| keywords.remove("description")) {
            Some(Value::String(description)) => description,
            _ => String::new(),
        };
        Self::new(snake_case(&T::schema_name()), description).parameters(schema)
    }
}

impl JsonSchema {
    /// The schema of a type, named as it, described by its doc comment.
    ///
    /// ```
    /// use steadfast::chat::JsonSchema;
    ///
    /// /// Where something is.
    /// #[derive(steadfast::schemars::JsonSchema)]
    /// # #[schemars(crate = "steadfast::schemars")]
    /// struct Place {
    ///     city: String,
    /// }
    ///
    /// let schema = JsonSchema::of::<Place>();
    /// assert_eq!(schema.name, "Place");
    /// assert_eq!(schema.schema["properties"]["city"]["type"], "string");
    /// ```
    pub fn of<T: schemars::JsonSchema>() -> Self {
        let schema = schema_of::<T>();
        let description = schema.get("description").and_then(Value::as_str).map(str::to_owned);
        Self { name: plain(&T::schema_name()), description, schema }
    }
}

/// What `T` is read from.
fn schema_of<T: schemars::JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
    let mut schema: Value = settings.into_generator().into_root_schema_for::<T>().into();
    if let Some(keywords) = schema.as_object_mut() {
        keywords.remove("title"); // it is the name
    }
    schema
}

/// A name of letters, digits, `_` and `-`, of bounded length.
fn plain(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    name.chars().map(allowed).take(LONGEST_NAME).collect()
}

fn snake_case(name: &str) -> String {
    let name: Vec<char> = plain(name).chars().collect();
    let mut out = String::new();
    for (place, c) in name.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| name[before]);
        let after = name.get(place + 1);
        let begins_word = c.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase))
            });
        if begins_word {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out.chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_named_as_its_type_in_snake_case() {
        for (name, snake) in [
            ("GetInvoice", "get_invoice"),
            ("get_invoice", "get_invoice"),
            ("HTTPCall", "http_call"),
            ("Page_of_Item", "page_of_item"),
            ("Top10Lists", "top10_lists"),
            ("Größe", "gr__e"),
        ] {
            assert_eq!(snake_case(name), snake);
        }
    }
}
