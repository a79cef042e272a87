//! `allOf`, which hardly any provider knows: its parts put into one.

use super::adapt::{Keywords, Walk, is_mere_reference};
use super::dialect::ANNOTATING;
use super::{Inexpressible, MAX_DEPTH, target};
use serde_json::{Value, json};
use std::borrow::Cow;

/// Whether something restricts the value, beside a reference.
fn restricts(whole: &Keywords) -> bool {
    let about = |key: &str| matches!(key, "$ref" | "$defs" | "definitions" | "$schema" | "$id");
    whole.keys().any(|key| !about(key) && !ANNOTATING.contains(&&**key))
}

impl Walk<'_> {
    /// The keywords with those of every part of an `allOf` among them, since hardly anyone knows `allOf`.
    pub(super) fn folded<'k>(&self, keywords: &'k Keywords) -> Result<Cow<'k, Keywords>, Inexpressible> {
        if !(keywords.contains_key("allOf") || keywords.contains_key("$ref") && restricts(keywords)) {
            return Ok(Cow::Borrowed(keywords));
        }
        let mut whole = keywords.clone();
        for _ in 0..MAX_DEPTH {
            let mut parts = match whole.remove("allOf") {
                Some(Value::Array(parts)) => parts,
                _ => Vec::new(),
            };
            // A reference with nothing but words beside it stays one.
            if let [part] = &parts[..]
                && part.as_object().is_some_and(|part| part.len() == 1 && part.contains_key("$ref"))
                && !whole.contains_key("$ref")
                && !restricts(&whole)
            {
                whole.extend(part.as_object().cloned().into_iter().flatten());
                parts.clear();
            }
            if restricts(&whole)
                && let Some(reference) = whole.remove("$ref")
            {
                parts.push(json!({"$ref": reference}));
            }
            if parts.is_empty() {
                return Ok(Cow::Owned(whole));
            }
            for part in &parts {
                let part = match part.get("$ref").and_then(Value::as_str) {
                    Some(reference) if is_mere_reference(part) => target(self.root, reference, &self.path)?.1,
                    _ => part,
                };
                let Some(part) = part.as_object() else { continue };
                for (key, value) in part {
                    self.merge(&mut whole, key, value)?;
                }
            }
        }
        self.inexpressible("an `allOf` that leads back to itself", "list the properties instead")
    }

    fn merge(&self, whole: &mut Keywords, key: &str, value: &Value) -> Result<(), Inexpressible> {
        match (whole.get_mut(key), value) {
            (None, _) => _ = whole.insert(key.to_owned(), value.clone()),
            (Some(there), value) if there == value => {}
            (Some(_), _) if ANNOTATING.contains(&key) => {}
            (Some(Value::Object(there)), Value::Object(more)) if matches!(key, "properties" | "$defs") => {
                for (name, schema) in more {
                    if there.get(name).is_some_and(|there| there != schema) {
                        return self.inexpressible(
                            &format!("an `allOf` with two schemas for {name:?}"),
                            "put what they say into one",
                        );
                    }
                    there.insert(name.clone(), schema.clone());
                }
            }
            (Some(Value::Array(there)), Value::Array(more)) if matches!(key, "required" | "allOf") => {
                for name in more {
                    if !there.contains(name) {
                        there.push(name.clone());
                    }
                }
            }
            (Some(_), _) => {
                return self
                    .inexpressible(&format!("an `allOf` whose parts differ in `{key}`"), "put what they say into one");
            }
        }
        Ok(())
    }
}
