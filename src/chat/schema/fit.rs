//! The walk over a value and its schema.

use super::number::{is_multiple, is_whole, same};
use super::resolve;
use crate::record::SchemaMismatch;
use serde_json::{Map, Number, Value};
use std::collections::HashSet;
use std::fmt::Write as _;

type Keywords = Map<String, Value>;

/// How deep the walk goes: several steps for each level of the value, which parsers hold to 128.
const MAX_DEPTH: usize = 500;
/// How many steps it takes: choices within choices can multiply.
const MAX_STEPS: u32 = 500_000;
/// How many faults are listed.
const MOST: usize = 50;
/// How much of a list of allowed values is told, in characters.
const TOLD: usize = 200;

/// Where the value does not fit.
pub(crate) fn mismatches(schema: &Value, value: &Value) -> Vec<SchemaMismatch> {
    Walk::of(schema, value).faults()
}

/// Where the value does not fit. If it does, each null that stands for the absence of an optional property is taken out.
pub(crate) fn fit(schema: &Value, value: &mut Value) -> Vec<SchemaMismatch> {
    let walk = Walk::of(schema, value);
    if walk.found.is_empty() {
        for pointer in &walk.absent {
            remove(value, pointer);
        }
    }
    walk.faults()
}

fn remove(value: &mut Value, pointer: &str) {
    if let Some((parent, name)) = pointer.rsplit_once('/')
        && let Some(Value::Object(fields)) = value.pointer_mut(parent)
    {
        fields.remove(&name.replace("~1", "/").replace("~0", "~"));
    }
}

struct Walk<'s> {
    root: &'s Value,
    /// Where in the value it is.
    path: String,
    steps: u32,
    found: Vec<Fault>,
    /// The nulls that stand for absence.
    absent: Vec<String>,
}

struct Fault {
    path: String,
    message: String,
    /// Whether it is a single allowed value that was missed, as the tag of an alternative is.
    tag: bool,
}

impl<'s> Walk<'s> {
    fn of(schema: &'s Value, value: &Value) -> Self {
        let mut walk = Self { root: schema, path: String::new(), steps: 0, found: Vec::new(), absent: Vec::new() };
        walk.visit(schema, value, 0);
        walk
    }

    fn faults(self) -> Vec<SchemaMismatch> {
        self.found.into_iter().map(|fault| SchemaMismatch { path: fault.path, message: fault.message }).collect()
    }

    fn fault(&mut self, message: impl Into<String>) {
        if self.found.len() < MOST {
            self.found.push(Fault { path: self.path.clone(), message: message.into(), tag: false });
        }
    }

    /// Looks at a part of the value.
    fn at(&mut self, step: &str, visit: impl FnOnce(&mut Self)) {
        let before = self.path.len();
        self.path.push('/');
        if step.contains(['~', '/']) {
            self.path.push_str(&step.replace('~', "~0").replace('/', "~1"));
        } else {
            self.path.push_str(step);
        }
        visit(self);
        self.path.truncate(before);
    }

    /// Tries a schema without holding its faults against the value.
    fn attempt(&mut self, schema: &'s Value, value: &Value, depth: usize) -> Vec<Fault> {
        let (before, absent) = (std::mem::take(&mut self.found), self.absent.len());
        self.visit(schema, value, depth);
        let found = std::mem::replace(&mut self.found, before);
        if !found.is_empty() {
            self.absent.truncate(absent);
        }
        found
    }

    /// Whether the value fits, for a condition.
    fn fits(&mut self, schema: &'s Value, value: &Value, depth: usize) -> bool {
        let absent = self.absent.len();
        let fits = self.attempt(schema, value, depth).is_empty();
        self.absent.truncate(absent);
        fits
    }

    fn visit(&mut self, schema: &'s Value, value: &Value, depth: usize) {
        self.steps = self.steps.saturating_add(1);
        if depth > MAX_DEPTH || self.steps > MAX_STEPS {
            self.fault("is too deep or too manifold to be validated");
            return;
        }
        let depth = depth + 1;
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(false) => return self.fault("must not be there"),
            _ => return,
        };
        if let Some(Value::String(reference)) = keywords.get("$ref") {
            match resolve(self.root, reference) {
                Ok((_, meant)) => self.visit(meant, value, depth),
                Err(fault) => self.fault(fault),
            }
        }
        if !self.is_of_type(keywords, value) {
            return; // what else could be said of it follows from that
        }
        self.values(keywords, value);
        match value {
            Value::Number(number) => self.number(keywords, number),
            Value::String(text) => self.text(keywords, text),
            Value::Array(items) => self.array(keywords, items, depth),
            Value::Object(fields) => self.object(keywords, fields, value, depth),
            Value::Null | Value::Bool(_) => {}
        }
        self.choices(keywords, value, depth);
    }

    fn is_of_type(&mut self, keywords: &Keywords, value: &Value) -> bool {
        let is = |wanted: &str| match (wanted, value) {
            ("number", Value::Number(_)) => true,
            ("integer", Value::Number(number)) => is_whole(number),
            _ => wanted == kind(value),
        };
        let wanted = match keywords.get("type") {
            Some(Value::String(wanted)) if !is(wanted) => wanted.clone(),
            Some(Value::Array(wanted)) if !wanted.iter().filter_map(Value::as_str).any(is) => {
                wanted.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
            }
            _ => return true,
        };
        self.fault(format!("is {}, must be {wanted}", kind(value)));
        false
    }

    fn values(&mut self, keywords: &Keywords, value: &Value) {
        let allowed = match (keywords.get("const"), keywords.get("enum")) {
            (Some(only), _) => std::slice::from_ref(only),
            (None, Some(Value::Array(allowed))) => allowed,
            _ => return,
        };
        if allowed.iter().any(|allowed| same(allowed, value)) {
            return;
        }
        let mut told = String::new();
        for allowed in allowed {
            if told.len() > TOLD {
                told.push_str(", ...");
                break;
            }
            let comma = if told.is_empty() { "" } else { ", " };
            _ = write!(told, "{comma}{allowed}");
        }
        self.fault(if allowed.len() == 1 { format!("must be {told}") } else { format!("must be one of {told}") });
        if let (1, Some(fault)) = (allowed.len(), self.found.last_mut()) {
            fault.tag = true;
        }
    }

    fn number(&mut self, keywords: &Keywords, number: &Number) {
        let Some(value) = number.as_f64() else { return };
        let bound = |key: &str| keywords.get(key).and_then(Value::as_f64);
        if let Some(least) = bound("minimum").filter(|least| value < *least) {
            self.fault(format!("is {number}, must be at least {least}"));
        }
        if let Some(most) = bound("maximum").filter(|most| value > *most) {
            self.fault(format!("is {number}, must be at most {most}"));
        }
        if let Some(least) = bound("exclusiveMinimum").filter(|least| value <= *least) {
            self.fault(format!("is {number}, must be more than {least}"));
        }
        if let Some(most) = bound("exclusiveMaximum").filter(|most| value >= *most) {
            self.fault(format!("is {number}, must be less than {most}"));
        }
        if let Some(Value::Number(of)) = keywords.get("multipleOf")
            && !is_multiple(number, of)
        {
            self.fault(format!("is {number}, must be a multiple of {of}"));
        }
    }

    fn text(&mut self, keywords: &Keywords, text: &str) {
        if keywords.contains_key("minLength") || keywords.contains_key("maxLength") {
            self.count(keywords, text.chars().count(), "minLength", "maxLength", "characters");
        }
    }

    /// Checks a number of things against its bounds.
    fn count(&mut self, keywords: &Keywords, count: usize, least: &str, most: &str, of: &str) {
        let bound = |key: &str| keywords.get(key).and_then(Value::as_u64);
        let long = count as u64;
        if let Some(least) = bound(least).filter(|least| long < *least) {
            self.fault(format!("has {count} {of}, must have at least {least}"));
        }
        if let Some(most) = bound(most).filter(|most| long > *most) {
            self.fault(format!("has {count} {of}, must have at most {most}"));
        }
    }

    fn array(&mut self, keywords: &'s Keywords, items: &[Value], depth: usize) {
        self.count(keywords, items.len(), "minItems", "maxItems", "items");
        // Before 2020 the first ones were a list of `items`.
        let (first, rest) = match keywords.get("items") {
            Some(Value::Array(first)) => (Some(first), keywords.get("additionalItems")),
            rest => (keywords.get("prefixItems").and_then(Value::as_array), rest),
        };
        let first = first.map_or(&[][..], Vec::as_slice);
        for (place, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(place).or(rest) {
                self.at(&place.to_string(), |walk| walk.visit(schema, item, depth));
            }
        }
        if keywords.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = HashSet::new();
            if !items.iter().all(|item| seen.insert(item.to_string())) {
                self.fault("has an item twice, must have each once");
            }
        }
        if let Some(schema) = keywords.get("contains") {
            let mut count = 0;
            for item in items {
                count += u64::from(self.fits(schema, item, depth));
            }
            let bound = |key: &str| keywords.get(key).and_then(Value::as_u64);
            if count < bound("minContains").unwrap_or(1) || bound("maxContains").is_some_and(|most| count > most) {
                self.fault(format!("has {count} items of a kind of which the schema wants another number"));
            }
        }
    }

    fn object(&mut self, keywords: &'s Keywords, fields: &Keywords, value: &Value, depth: usize) {
        self.count(keywords, fields.len(), "minProperties", "maxProperties", "properties");
        let names = |key: &str| keywords.get(key).and_then(Value::as_array).into_iter().flatten();
        let is_required = |name: &str| names("required").any(|required| required == name);
        for name in names("required").filter_map(Value::as_str).filter(|name| !fields.contains_key(*name)) {
            self.fault(format!("lacks {name:?}"));
        }
        let properties = keywords.get("properties").and_then(Value::as_object);
        // Which properties these are is beyond this validator.
        let by_pattern = keywords.contains_key("patternProperties");
        let more = keywords.get("additionalProperties").filter(|_| !by_pattern);
        for (name, field) in fields {
            let schema = properties.and_then(|properties| properties.get(name));
            if let Some(schema) = keywords.get("propertyNames") {
                let name = Value::String(name.clone());
                self.at(name.as_str().unwrap_or_default(), |walk| walk.visit(schema, &name, depth));
            }
            self.at(name, |walk| match (schema, more) {
                (Some(schema), _) if field.is_null() && !is_required(name) => {
                    if !walk.attempt(schema, field, depth).is_empty() {
                        walk.absent.push(walk.path.clone());
                    }
                }
                (None, Some(Value::Bool(false))) => walk.fault("is not among the properties"),
                (Some(schema), _) | (None, Some(schema)) => walk.visit(schema, field, depth),
                (None, None) => {}
            });
        }
        for (name, needed) in keywords.get("dependentRequired").and_then(Value::as_object).into_iter().flatten() {
            let needed = needed.as_array().into_iter().flatten().filter_map(Value::as_str);
            for needed in needed.filter(|needed| fields.contains_key(name) && !fields.contains_key(*needed)) {
                self.fault(format!("has {name:?} and lacks {needed:?}"));
            }
        }
        for (name, schema) in keywords.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten() {
            if fields.contains_key(name) {
                self.visit(schema, value, depth);
            }
        }
    }

    fn choices(&mut self, keywords: &'s Keywords, value: &Value, depth: usize) {
        let list = |key: &str| keywords.get(key).and_then(Value::as_array);
        for schema in list("allOf").into_iter().flatten() {
            self.visit(schema, value, depth);
        }
        if let Some(schemas) = list("anyOf") {
            self.one_among(schemas, value, depth, false);
        }
        if let Some(schemas) = list("oneOf") {
            self.one_among(schemas, value, depth, true);
        }
        if let Some(schema) = keywords.get("not")
            && self.fits(schema, value, depth)
        {
            self.fault("is what the schema rules out");
        }
        if let Some(condition) = keywords.get("if") {
            let branch = if self.fits(condition, value, depth) { "then" } else { "else" };
            if let Some(schema) = keywords.get(branch) {
                self.visit(schema, value, depth);
            }
        }
    }

    /// The value has to fit one of these; `only`: no more than one.
    fn one_among(&mut self, schemas: &'s [Value], value: &Value, depth: usize, only: bool) {
        let mut fitting = 0;
        let mut closest: Option<Vec<Fault>> = None;
        let mut all = Vec::new();
        // Whether an alternative was ruled out by its tag: then the one that was not is the one that was meant.
        let mut told_apart = false;
        for schema in schemas {
            let absent = self.absent.len();
            let faults = self.attempt(schema, value, depth);
            if faults.is_empty() {
                fitting += 1;
                if !only {
                    return;
                }
                if fitting > 1 {
                    self.absent.truncate(absent);
                }
                continue;
            }
            all.push(faults[0].message.clone());
            told_apart |= faults.iter().any(|fault| fault.tag);
            let far = |faults: &[Fault]| (faults.iter().any(|fault| fault.tag), faults.len());
            if closest.as_ref().is_none_or(|closest| far(&faults) < far(closest)) {
                closest = Some(faults);
            }
        }
        match (fitting, closest) {
            (1, _) => {}
            (0, Some(closest)) => {
                let is_meant = told_apart && !closest.iter().any(|fault| fault.tag);
                if !is_meant && closest.iter().all(|fault| fault.path == self.path) && schemas.len() > 1 {
                    all.dedup();
                    all.truncate(5);
                    self.fault(format!("fits none of {} alternatives: {}", schemas.len(), all.join("; ")));
                    // So that a choice within a choice is told apart by its tags too.
                    if let Some(fault) = self.found.last_mut() {
                        fault.tag = closest.iter().any(|fault| fault.tag);
                    }
                } else {
                    let room = MOST.saturating_sub(self.found.len());
                    self.found.extend(closest.into_iter().take(room));
                }
            }
            (0, None) => self.fault("has no alternative that it could fit"),
            (fitting, _) => self.fault(format!("fits {fitting} alternatives, must fit exactly one")),
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
