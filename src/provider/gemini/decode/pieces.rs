//! Arguments that come in pieces.
//!
//! On Vertex AI a call that asks for `streamFunctionCallArguments` gets each argument by its path, a text in several pieces.
//! They cannot be told as JSON before all are there: one may come before another is whole.

use crate::chat::ToolCallDelta;
use crate::provider::gemini::answer::Piece;
use crate::provider::lenient::Fields;
use serde_json::{Map, Value};

/// The most steps of a path: no deeper than JSON is read.
const MAX_DEPTH: usize = 64;

/// The arguments of a call, as far as they are known.
#[derive(Debug)]
pub(super) struct Pieces {
    index: usize,
    arguments: Value,
}

impl Pieces {
    /// None yet, of the call at `index`.
    pub(super) fn new(index: usize) -> Self {
        Self { index, arguments: Value::Object(Map::new()) }
    }

    pub(super) fn add(&mut self, pieces: Vec<Fields<Piece>>) {
        for Fields(piece) in pieces {
            let Some(place) = at(&mut self.arguments, &piece.json_path) else { continue };
            let Piece { string_value, number_value, bool_value, .. } = piece;
            match (place, string_value, number_value, bool_value) {
                (Value::String(text), Some(more), ..) => text.push_str(&more),
                (place, Some(text), ..) => *place = text.into(),
                (place, None, Some(number), _) => *place = number.into(),
                (place, None, None, Some(truth)) => *place = truth.into(),
                (_, None, None, None) => {} // null, which the place is made with
            }
        }
    }

    /// The arguments, whole.
    pub(super) fn whole(self) -> ToolCallDelta {
        ToolCallDelta::new(self.index).arguments(self.arguments.to_string()).complete()
    }
}

/// The place that a path leads to, such as `$.days[0].city`; it is made where it is not there, a list's elements one after
/// the other. None where the path is none.
fn at<'a>(root: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut steps = Vec::new();
    let mut rest = path.strip_prefix('$')?;
    while !rest.is_empty() && steps.len() < MAX_DEPTH {
        let (step, after) = step(rest)?;
        rest = after;
        steps.push(step);
    }
    if !rest.is_empty() || !matches!(steps.first(), Some(Step::Field(_))) {
        return None;
    }
    let mut place = root;
    for step in steps {
        place = match step {
            Step::Field(name) => {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                place.as_object_mut()?.entry(name).or_insert(Value::Null)
            }
            Step::Element(index) => {
                if !place.is_array() {
                    *place = Value::Array(Vec::new());
                }
                let list = place.as_array_mut()?;
                if index == list.len() {
                    list.push(Value::Null);
                }
                list.get_mut(index)?
            }
        };
    }
    Some(place)
}

enum Step {
    Element(usize),
    Field(String),
}

/// The first step of a path, and what follows it: `.name`, `['name']` or `[0]`.
fn step(path: &str) -> Option<(Step, &str)> {
    if let Some(rest) = path.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        return (!name.is_empty()).then(|| (Step::Field(name.to_owned()), after));
    }
    let rest = path.strip_prefix('[')?;
    for quote in ['\'', '"'] {
        if let Some(quoted) = rest.strip_prefix(quote) {
            let (name, after) = quoted.split_once(quote)?;
            return Some((Step::Field(name.to_owned()), after.strip_prefix(']')?));
        }
    }
    let (index, after) = rest.split_once(']')?;
    Some((Step::Element(index.parse().ok()?), after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn put_together(pieces: Value) -> Value {
        let mut open = Pieces::new(3);
        open.add(serde_json::from_value(pieces).unwrap());
        let whole = open.whole();
        assert!(whole.index == 3 && whole.complete);
        serde_json::from_str(&whole.arguments).unwrap()
    }

    #[test]
    fn each_argument_grows_at_its_path() {
        let arguments = put_together(json!([
            {"jsonPath": "$.city", "stringValue": "New ", "willContinue": true},
            {"jsonPath": "$.days[0]['a.b']", "boolValue": true},
            {"jsonPath": "$.days[1].n", "numberValue": 2},
            {"jsonPath": "$.city", "stringValue": "York"},
            {"jsonPath": "$.unit", "nullValue": "NULL_VALUE"},
        ]));
        assert_eq!(arguments, json!({"city": "New York", "days": [{"a.b": true}, {"n": 2}], "unit": null}));
    }

    #[test]
    fn a_path_that_is_none_costs_nothing() {
        let deep = format!("${}", ".a".repeat(1_000_000));
        for path in ["", "city", "$", "$.", "$..a", "$[", "$[x]", "$['a'", "$[0]", "$a", &deep] {
            let arguments = put_together(json!([{"jsonPath": path, "stringValue": "x"}]));
            assert_eq!(arguments, json!({}));
        }
        let arguments = put_together(json!([{"jsonPath": "$.a[9999999999]", "stringValue": "x"}]));
        assert_eq!(arguments, json!({"a": []}));
    }
}
