//! References replaced by what they refer to.

use super::{Inexpressible, MAX_DEPTH, target, too_deep};
use serde_json::{Map, Value};

/// How many schemas the result may have: references to references can multiply.
const MOST: usize = 10_000;

pub(super) fn inline(schema: &Value) -> Result<Value, Inexpressible> {
    let mut inliner = Inliner { root: schema, within: Vec::new(), count: 0 };
    inliner.schema(schema, "", 0)
}

struct Inliner<'s> {
    root: &'s Value,
    /// The references on the way here.
    within: Vec<String>,
    count: usize,
}

impl Inliner<'_> {
    fn schema(&mut self, schema: &Value, at: &str, depth: usize) -> Result<Value, Inexpressible> {
        let inexpressible = |what: &str| Err(Inexpressible { at: at.to_owned(), what: what.to_owned() });
        if depth > MAX_DEPTH {
            return Err(too_deep(at.to_owned()));
        }
        self.count += 1;
        if self.count > MOST {
            return inexpressible("the schema is too large once its references are replaced");
        }
        match schema {
            Value::Object(keywords) => match keywords.get("$ref").and_then(Value::as_str) {
                None => self.keywords(keywords, at, depth).map(Value::Object),
                Some(reference) => {
                    let (pointer, meant) = target(self.root, reference, at)?;
                    if self.within.contains(&pointer) {
                        return inexpressible("a type that refers to itself cannot be written without references");
                    }
                    self.within.push(pointer);
                    let meant = self.schema(meant, at, depth + 1)?;
                    self.within.pop();
                    let mut beside = keywords.clone();
                    beside.remove("$ref");
                    let beside = self.keywords(&beside, at, depth)?;
                    match meant {
                        // What stands beside a reference is said of this place, and goes before.
                        Value::Object(mut meant) => {
                            meant.extend(beside);
                            Ok(Value::Object(meant))
                        }
                        other => Ok(other),
                    }
                }
            },
            Value::Array(schemas) => {
                let each = schemas.iter().enumerate();
                each.map(|(place, schema)| self.schema(schema, &format!("{at}/{place}"), depth + 1)).collect()
            }
            other => Ok(other.clone()),
        }
    }

    fn keywords(
        &mut self,
        keywords: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) -> Result<Map<String, Value>, Inexpressible> {
        let mut out = Map::new();
        for (key, value) in keywords {
            let at = format!("{at}/{key}");
            let value = match key.as_str() {
                "$defs" | "definitions" => continue,
                // Values, in which a `$ref` is a mere name.
                "const" | "default" | "enum" | "examples" => value.clone(),
                "properties" | "patternProperties" | "dependentSchemas" => match value {
                    Value::Object(schemas) => {
                        let mut inlined = Map::new();
                        for (name, schema) in schemas {
                            inlined.insert(name.clone(), self.schema(schema, &format!("{at}/{name}"), depth + 1)?);
                        }
                        Value::Object(inlined)
                    }
                    other => other.clone(),
                },
                _ => self.schema(value, &at, depth + 1)?,
            };
            out.insert(key.clone(), value);
        }
        Ok(out)
    }
}
