//! The one walk that turns a schema into a provider's dialect.

use super::dialect::{Dialect, RESTRICTING};
use super::nullable::nullable;
use super::recursion::{Link, check_recursion};
use super::{Inexpressible, MAX_DEPTH, target, too_deep};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

pub(super) type Keywords = Map<String, Value>;

/// The schema in this dialect. Definitions that are used stand under `$defs`, wherever they stood before.
pub(super) fn adapt(dialect: &Dialect, schema: &Value) -> Result<Value, Inexpressible> {
    let mut walk = Walk {
        dialect,
        root: schema,
        path: String::new(),
        depth: 0,
        inside: String::new(),
        optional: 0,
        names: BTreeMap::new(),
        open: Vec::new(),
        links: Vec::new(),
    };
    // A root that is nothing but a reference is what it refers to.
    let (mut at, mut root) = (String::new(), schema);
    for _ in 0..MAX_DEPTH {
        match root.get("$ref").and_then(Value::as_str) {
            Some(reference) if is_mere_reference(root) => (at, root) = target(schema, reference, &at)?,
            _ => break,
        }
    }
    walk.inside.clone_from(&at);
    walk.path = at;
    let mut adapted = walk.schema(root)?;
    if dialect.object_root && adapted.get("type").and_then(Value::as_str) != Some("object") {
        let what = format!("the root is no object, which {} needs; put it into a property of one", dialect.who);
        return Err(Inexpressible { at: String::new(), what });
    }
    let mut definitions = Keywords::new();
    while let Some(pointer) = walk.open.pop() {
        let Some(definition) = schema.pointer(&pointer) else { continue }; // was found when it was noted
        (walk.path, walk.inside, walk.optional) = (pointer.clone(), pointer.clone(), 0);
        let definition = walk.schema(definition)?;
        definitions.insert(walk.names[&pointer].clone(), definition);
    }
    check_recursion(dialect, &walk.links)?;
    if let (false, Value::Object(root)) = (definitions.is_empty(), &mut adapted) {
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Ok(adapted)
}

/// Whether all that it says is where to look, apart from definitions.
pub(super) fn is_mere_reference(schema: &Value) -> bool {
    let about = |key: &str| matches!(key, "$ref" | "$defs" | "definitions" | "$schema" | "$id" | "title" | "$comment");
    schema.as_object().is_some_and(|keywords| keywords.keys().all(|key| about(key)))
}

pub(super) struct Walk<'s> {
    dialect: &'s Dialect,
    pub(super) root: &'s Value,
    /// Where in the original it is.
    pub(super) path: String,
    depth: usize,
    /// The definition that it is in, as a pointer.
    inside: String,
    /// How many properties that are not required it is within, in this definition.
    optional: usize,
    /// The definitions that are referred to, by their pointer, with their name under `$defs`.
    names: BTreeMap<String, String>,
    /// Those that are still to be adapted.
    open: Vec<String>,
    links: Vec<Link>,
}

impl Walk<'_> {
    fn fail<T>(&self, what: impl Into<String>) -> Result<T, Inexpressible> {
        Err(Inexpressible { at: self.path.clone(), what: what.into() })
    }

    /// Something that the dialect has no words for, and what to do about it.
    pub(super) fn inexpressible<T>(&self, what: &str, cure: &str) -> Result<T, Inexpressible> {
        self.fail(format!("{what} cannot be expressed for {}; {cure}", self.dialect.who))
    }

    /// Does something one step deeper.
    fn within<T>(
        &mut self,
        step: &str,
        visit: impl FnOnce(&mut Self) -> Result<T, Inexpressible>,
    ) -> Result<T, Inexpressible> {
        let before = self.path.len();
        _ = write!(self.path, "/{}", step.replace('~', "~0").replace('/', "~1"));
        self.depth += 1;
        let done = if self.depth > MAX_DEPTH { Err(too_deep(self.path.clone())) } else { visit(self) };
        self.depth -= 1;
        self.path.truncate(before);
        done
    }

    fn schema(&mut self, schema: &Value) -> Result<Value, Inexpressible> {
        match schema {
            Value::Bool(true) => self.keywords(&Keywords::new()),
            Value::Object(keywords) => {
                let folded = self.folded(keywords)?;
                self.keywords(&folded)
            }
            Value::Bool(false) => self.inexpressible("a value that cannot exist", "leave it out"),
            _ => self.fail("a schema is an object or a boolean"),
        }
    }

    fn keywords(&mut self, keywords: &Keywords) -> Result<Value, Inexpressible> {
        if let Some(reference) = keywords.get("$ref") {
            return self.reference(keywords, reference);
        }
        let mut out = Keywords::new();
        let mut told = Vec::new();
        for (key, value) in keywords {
            self.keyword(key, value, &mut out, &mut told);
        }
        self.choices(keywords, &mut out)?;
        self.array(keywords, &mut out, &mut told)?;
        self.object(keywords, &mut out)?;
        let or_null = self.values(keywords, &mut out, &mut told);
        if self.dialect.typed && !["type", "anyOf", "oneOf"].iter().any(|key| out.contains_key(*key)) {
            return self.inexpressible("a value of any type", "give it a `type`");
        }
        tell(&mut out, &told);
        let out = Value::Object(out);
        Ok(if or_null { nullable(self.dialect, out) } else { out })
    }

    /// A keyword that stands for itself.
    fn keyword(&self, key: &str, value: &Value, out: &mut Keywords, told: &mut Vec<String>) {
        let is_known = match key {
            "type" | "title" | "description" => true,
            "format" => match (self.dialect.formats, value.as_str()) {
                (Some(known), Some(format)) => known.contains(&format),
                _ => self.dialect.formats.is_none(),
            },
            "pattern" => value.as_str().is_some_and(self.dialect.pattern),
            _ => self.dialect.keeps.contains(&key),
        };
        // The widths of numbers (`uint32`) say nothing to a model.
        let is_width = key == "format" && value.as_str().is_some_and(is_width);
        if is_known {
            out.insert(key.to_owned(), value.clone());
        } else if RESTRICTING.contains(&key) && !is_width && !value.is_null() {
            told.push(match value {
                Value::String(text) => format!("{key}: {text}"),
                _ => format!("{key}: {value}"),
            });
        }
    }

    /// `$ref`, with what is said beside it.
    fn reference(&mut self, keywords: &Keywords, reference: &Value) -> Result<Value, Inexpressible> {
        let Some(reference) = reference.as_str() else { return self.fail("`$ref` is a string") };
        let (pointer, _) = target(self.root, reference, &self.path)?;
        let name = self.name(&pointer);
        self.links.push(Link {
            from: self.inside.clone(),
            to: pointer,
            optional: self.optional > 0,
            at: self.path.clone(),
        });
        let link = json!({"$ref": format!("#/$defs/{name}")});
        let (mut beside, mut told) = (Keywords::new(), Vec::new());
        for (key, value) in keywords {
            self.keyword(key, value, &mut beside, &mut told);
        }
        tell(&mut beside, &told);
        if beside.is_empty() {
            return Ok(link);
        }
        // Most providers take nothing beside a reference.
        beside.insert("anyOf".to_owned(), Value::Array(vec![link]));
        Ok(Value::Object(beside))
    }

    /// The name under `$defs` of what stands at this pointer.
    fn name(&mut self, pointer: &str) -> String {
        if let Some(name) = self.names.get(pointer) {
            return name.clone();
        }
        let last = pointer.rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or("Root");
        let last = last.replace("~1", "_").replace("~0", "_");
        let plain: String =
            last.chars().map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' }).collect();
        let mut name = plain.clone();
        let mut number = 1;
        while self.names.values().any(|taken| *taken == name) {
            number += 1;
            name = format!("{plain}_{number}");
        }
        self.names.insert(pointer.to_owned(), name.clone());
        self.open.push(pointer.to_owned());
        name
    }

    /// `anyOf` and `oneOf`.
    fn choices(&mut self, keywords: &Keywords, out: &mut Keywords) -> Result<(), Inexpressible> {
        for key in ["anyOf", "oneOf"] {
            let Some(branches) = keywords.get(key).and_then(Value::as_array) else { continue };
            let branches = self.within(key, |walk| {
                let each = branches.iter().enumerate();
                each.map(|(place, branch)| walk.within(&place.to_string(), |walk| walk.schema(branch))).collect()
            })?;
            let key = if self.dialect.one_of { key } else { "anyOf" };
            if out.insert(key.to_owned(), Value::Array(branches)).is_some() {
                return self.inexpressible("`anyOf` beside `oneOf`", "use one of them");
            }
        }
        Ok(())
    }

    /// `items` and `prefixItems`; before 2020 the latter was a list of `items`.
    fn array(&mut self, keywords: &Keywords, out: &mut Keywords, told: &mut Vec<String>) -> Result<(), Inexpressible> {
        let (mut first, mut rest) = (keywords.get("prefixItems"), keywords.get("items"));
        let mut first_key = "prefixItems";
        if rest.is_some_and(Value::is_array) {
            (first, rest, first_key) = (rest, keywords.get("additionalItems"), "items");
        }
        let is_array = Self::is_of_type(keywords, "array") || first.is_some() || rest.is_some();
        if !is_array {
            return Ok(());
        }
        let first = match first.and_then(Value::as_array) {
            None => Vec::new(),
            Some(schemas) => self.within(first_key, |walk| {
                let each = schemas.iter().enumerate();
                each.map(|(place, schema)| walk.within(&place.to_string(), |walk| walk.schema(schema))).collect()
            })?,
        };
        let closed = rest == Some(&Value::Bool(false));
        let rest = match rest.filter(|rest| !rest.is_boolean()) {
            None => None,
            Some(rest) => Some(self.within("items", |walk| walk.schema(rest))?),
        };
        Self::add_type(out, "array");
        match (first.is_empty(), rest) {
            (true, None) if self.dialect.typed => {
                return self.inexpressible("an array of anything", "give it `items`");
            }
            (true, None) => {}
            (true, Some(rest)) => _ = out.insert("items".to_owned(), rest),
            (false, rest) if self.dialect.tuples => {
                out.insert("prefixItems".to_owned(), Value::Array(first));
                if let Some(rest) = rest {
                    out.insert("items".to_owned(), rest);
                }
            }
            (false, rest) => {
                told.push(format!("in this order: {}", Value::Array(first.clone())));
                if closed || rest.is_none() {
                    let length = first.len();
                    told.push(format!("{length} items"));
                }
                let mut kinds: Vec<Value> = Vec::new();
                for kind in first.into_iter().chain(rest) {
                    if !kinds.contains(&kind) {
                        kinds.push(kind);
                    }
                }
                let any = if kinds.len() == 1 { kinds.remove(0) } else { json!({"anyOf": kinds}) };
                out.insert("items".to_owned(), any);
            }
        }
        Ok(())
    }

    /// `properties` and what says which of them there are.
    fn object(&mut self, keywords: &Keywords, out: &mut Keywords) -> Result<(), Inexpressible> {
        let properties = keywords.get("properties").and_then(Value::as_object);
        let more = keywords.get("additionalProperties");
        if !Self::is_of_type(keywords, "object") && properties.is_none() && more.is_none() {
            return Ok(());
        }
        Self::add_type(out, "object");
        let required: Vec<&str> = keywords
            .get("required")
            .and_then(Value::as_array)
            .map_or_else(Vec::new, |names| names.iter().filter_map(Value::as_str).collect());
        let anything = |schema: &Value| schema == &Value::Bool(true) || schema == &json!({});
        if self.dialect.closed {
            let is_map = keywords.contains_key("patternProperties")
                || more.is_some_and(|more| !anything(more) && more != &Value::Bool(false))
                || (properties.is_none_or(Map::is_empty) && more.is_some_and(anything))
                || (properties.is_none() && more.is_none());
            if is_map {
                return self.inexpressible(
                    "an object with properties that are not listed (a map)",
                    "list them, or use an array of objects with a name and a value",
                );
            }
            if let Some(unknown) = required.iter().find(|name| properties.is_none_or(|p| !p.contains_key(**name))) {
                return self.fail(format!("{unknown:?} is required and not among the properties"));
            }
            out.insert("additionalProperties".to_owned(), Value::Bool(false));
        } else if let Some(more) = more {
            let more = match more {
                Value::Bool(_) => more.clone(),
                schema => self.within("additionalProperties", |walk| walk.schema(schema))?,
            };
            out.insert("additionalProperties".to_owned(), more);
        }
        let mut adapted = Keywords::new();
        for (name, schema) in properties.into_iter().flatten() {
            let optional = !required.contains(&name.as_str());
            self.optional += usize::from(optional);
            let schema = self.within("properties", |walk| walk.within(name, |walk| walk.schema(schema)))?;
            self.optional -= usize::from(optional);
            let schema = if optional && self.dialect.all_required { nullable(self.dialect, schema) } else { schema };
            adapted.insert(name.clone(), schema);
        }
        if self.dialect.all_required {
            out.insert("required".to_owned(), adapted.keys().cloned().collect());
        } else if !required.is_empty() {
            out.insert("required".to_owned(), json!(required));
        }
        if properties.is_some() || self.dialect.closed {
            out.insert("properties".to_owned(), Value::Object(adapted));
        }
        Ok(())
    }

    /// `enum` and `const`. Whether null is to be added to what may stand there.
    fn values(&self, keywords: &Keywords, out: &mut Keywords, told: &mut Vec<String>) -> bool {
        let constant = keywords.get("const");
        let values = match (constant, keywords.get("enum")) {
            (Some(value), _) => std::slice::from_ref(value),
            (None, Some(Value::Array(values))) => values,
            _ => return false,
        };
        let takes = |value: &Value| (self.dialect.enumerable)(value);
        let nullable = values.contains(&Value::Null) && !takes(&Value::Null);
        let kept: Vec<&Value> = values.iter().filter(|value| !nullable || !value.is_null()).collect();
        if !out.contains_key("type") && !kept.is_empty() {
            let kinds: BTreeSet<&str> = kept.iter().map(|value| kind(value)).collect();
            let kinds: Vec<&str> = kinds.into_iter().collect();
            out.insert("type".to_owned(), if let [kind] = kinds[..] { json!(kind) } else { json!(kinds) });
        }
        if kept.is_empty() {
            out.insert("type".to_owned(), json!("null"));
            return false;
        }
        if !kept.iter().all(|value| takes(value)) {
            told.push(format!("one of: {}", json!(values)));
            return false;
        }
        match constant {
            Some(value) if self.dialect.consts => out.insert("const".to_owned(), value.clone()),
            _ => out.insert("enum".to_owned(), json!(kept)),
        };
        nullable
    }

    fn is_of_type(keywords: &Keywords, wanted: &str) -> bool {
        match keywords.get("type") {
            Some(Value::String(kind)) => kind == wanted,
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
            _ => false,
        }
    }

    /// Says the type where it only follows from another keyword.
    fn add_type(out: &mut Keywords, kind: &str) {
        if !out.contains_key("type") && !out.contains_key("anyOf") && !out.contains_key("oneOf") {
            out.insert("type".to_owned(), json!(kind));
        }
    }
}

/// Puts what the dialect has no keyword for into the description.
fn tell(out: &mut Keywords, told: &[String]) {
    if told.is_empty() {
        return;
    }
    let told = format!("({})", told.join(", "));
    let description = match out.get("description").and_then(Value::as_str) {
        Some(words) if !words.is_empty() => format!("{words} {told}"),
        _ => told,
    };
    out.insert("description".to_owned(), Value::String(description));
}

fn is_width(format: &str) -> bool {
    let digits = format.trim_start_matches("uint").trim_start_matches("int");
    matches!(format, "int" | "uint" | "float" | "double")
        || (digits.len() < format.len() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
