//! Whether values fit schemas.

use super::*;
use serde_json::json;

fn faults(schema: &Value, value: &Value) -> Vec<String> {
    mismatches(schema, value).into_iter().map(|fault| format!("{}: {}", fault.path, fault.message)).collect()
}

fn shape() -> Value {
    json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
         "required": ["kind", "radius"]},
        {"type": "object", "properties": {"kind": {"const": "box"}, "width": {"type": "number"}, "height": {"type": "number"}},
         "required": ["kind", "width", "height"]},
    ]})
}

#[test]
fn each_keyword_is_held_against_the_value() {
    for (schema, fits, does_not, says) in [
        (json!({"type": "string"}), json!("a"), json!(1), ": is number, must be string"),
        (json!({"type": ["integer", "null"]}), json!(null), json!("a"), ": is string, must be integer or null"),
        (json!({"type": "integer"}), json!(4.0), json!(4.5), ": is number, must be integer"),
        (json!({"type": "number"}), json!(1), json!(true), ": is boolean, must be number"),
        (json!({"enum": ["a", 1]}), json!(1.0), json!("b"), ": must be one of \"a\", 1"),
        (json!({"const": {"a": [1]}}), json!({"a": [1.0]}), json!({"a": [2]}), ": must be {\"a\":[1]}"),
        (json!({"minimum": 2}), json!(2), json!(1), ": is 1, must be at least 2"),
        (json!({"maximum": 2}), json!(2), json!(3), ": is 3, must be at most 2"),
        (json!({"exclusiveMinimum": 2}), json!(3), json!(2), ": is 2, must be more than 2"),
        (json!({"exclusiveMaximum": 2}), json!(1), json!(2), ": is 2, must be less than 2"),
        (json!({"multipleOf": 3}), json!(9), json!(10), ": is 10, must be a multiple of 3"),
        (json!({"multipleOf": 0.1}), json!(0.7), json!(0.75), ": is 0.75, must be a multiple of 0.1"),
        (json!({"minLength": 2}), json!("éé"), json!("é"), ": has 1 characters, must have at least 2"),
        (json!({"maxLength": 2}), json!("éé"), json!("abc"), ": has 3 characters, must have at most 2"),
        (json!({"minItems": 1}), json!([1]), json!([]), ": has 0 items, must have at least 1"),
        (json!({"maxItems": 1}), json!([1]), json!([1, 2]), ": has 2 items, must have at most 1"),
        (json!({"uniqueItems": true}), json!([1, 2]), json!([1, 1]), ": has an item twice, must have each once"),
        (json!({"items": {"type": "string"}}), json!(["a"]), json!(["a", 1]), "/1: is number, must be string"),
        (
            json!({"prefixItems": [{"type": "string"}], "items": false}),
            json!(["a"]),
            json!(["a", 1]),
            "/1: must not be there",
        ),
        (json!({"items": [{"type": "string"}, true]}), json!(["a", 1]), json!([1]), "/0: is number, must be string"),
        (json!({"required": ["a"]}), json!({"a": 1}), json!({}), ": lacks \"a\""),
        (
            json!({"properties": {"a/b": {"type": "string"}}}),
            json!({"a/b": "x", "c": 1}),
            json!({"a/b": 1}),
            "/a~1b: is number, must be string",
        ),
        (
            json!({"properties": {"a": true}, "additionalProperties": false}),
            json!({"a": 1}),
            json!({"b": 1}),
            "/b: is not among the properties",
        ),
        (
            json!({"additionalProperties": {"type": "integer"}}),
            json!({"a": 1}),
            json!({"b": "x"}),
            "/b: is string, must be integer",
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"a": 1}),
            json!({"ab": 1}),
            "/ab: has 2 characters, must have at most 1",
        ),
        (json!({"minProperties": 1}), json!({"a": 1}), json!({}), ": has 0 properties, must have at least 1"),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({"a": 1, "b": 1}),
            json!({"a": 1}),
            ": has \"a\" and lacks \"b\"",
        ),
        (json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), json!(2), json!(3), ": is 3, must be at most 2"),
        (json!({"not": {"type": "string"}}), json!(1), json!("a"), ": is what the schema rules out"),
        (
            json!({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 5}}),
            json!("ab"),
            json!(4),
            ": is 4, must be at least 5",
        ),
        (
            json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}),
            json!(1.5),
            json!(1),
            ": fits 2 alternatives, must fit exactly one",
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!(null),
            json!(1),
            ": fits none of 2 alternatives: is number, must be string; is number, must be null",
        ),
        (
            json!({"contains": {"type": "string"}}),
            json!([1, "a"]),
            json!([1]),
            ": has 0 items of a kind of which the schema wants another number",
        ),
    ] {
        assert_eq!(faults(&schema, &fits), Vec::<String>::new(), "{schema} {fits}");
        assert_eq!(faults(&schema, &does_not), [says], "{schema} {does_not}");
    }
}

#[test]
fn every_fault_is_listed_with_its_place() {
    let schema = json!({
        "type": "object",
        "properties": {"lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}, "total": {"type": "number"}},
        "required": ["lines", "total"],
        "$defs": {"line": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}},
    });
    let value = json!({"lines": [{"count": 1}, {"count": "two"}, {}]});
    assert_eq!(
        faults(&schema, &value),
        [": lacks \"total\"", "/lines/1/count: is string, must be integer", "/lines/2: lacks \"count\""]
    );
}

#[test]
fn of_alternatives_the_one_that_was_meant_says_what_is_wrong() {
    let almost = json!({"kind": "box", "width": "wide"});
    assert_eq!(faults(&shape(), &almost), [": lacks \"height\"", "/width: is string, must be number"]);
}

#[test]
fn recursion_is_followed_as_deep_as_the_value_goes() {
    let tree = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name"],
    });
    let value = json!({"name": "a", "children": [{"name": "b", "children": [{"name": 3}]}]});
    assert_eq!(faults(&tree, &value), ["/children/0/children/0/name: is number, must be string"]);

    let mut deep = json!({"name": "leaf"});
    for _ in 0..60 {
        deep = json!({"name": "n", "children": [deep]}); // 120 levels, about as deep as a parser goes
    }
    assert_eq!(faults(&tree, &deep), Vec::<String>::new());
}

#[test]
fn a_null_in_place_of_an_optional_property_is_taken_for_absence() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": ["string", "null"]},
            "c": {"type": "string"},
            "d": {"$ref": "#/$defs/d"},
        },
        "required": ["c"],
        "$defs": {"d": {"anyOf": [
            {"type": "object", "properties": {"x": {"type": "string"}, "y~/": {"type": "integer"}}, "required": ["x"]},
            {"type": "object", "properties": {"x": {"type": "integer"}, "y~/": {"type": "integer"}}},
        ]}},
    });
    let mut value = json!({"a": null, "b": null, "c": "x", "d": {"x": null, "y~/": null}});
    assert!(fit(&schema, &mut value).is_empty());
    assert_eq!(value, json!({"b": null, "c": "x", "d": {}}));

    let mut wrong = json!({"a": null, "c": null});
    assert_eq!(fit(&schema, &mut wrong)[0].path, "/c");
    assert_eq!(wrong, json!({"a": null, "c": null}), "what does not fit is left as it is");
}

#[test]
fn neither_depth_nor_choices_are_followed_without_end() {
    let itself = json!({"$ref": "#"});
    assert_eq!(faults(&itself, &json!(1)), [": is too deep or too manifold to be validated"]);

    // Each level tries both branches, and both fail only at the bottom.
    let branch = json!({"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]});
    let choices = json!({"anyOf": [branch, branch, branch]});
    let mut value = json!(1);
    for _ in 0..40 {
        value = json!({"n": value});
    }
    assert!(!mismatches(&choices, &value).is_empty());

    let many: Vec<_> = (0..10_000).map(|n| json!(n)).collect();
    assert_eq!(mismatches(&json!({"items": {"type": "string"}}), &Value::Array(many)).len(), 50);
}

#[test]
fn a_schema_that_cannot_be_used_is_known_before_it_is() {
    assert!(
        check(&json!({"properties": {"$ref": {"type": "string"}, "a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}))
            .is_ok()
    );
    assert!(check(&json!({"enum": [{"$ref": "#/nowhere"}]})).is_ok(), "a value, not a schema");
    assert_eq!(check(&json!({"items": {"$ref": "#/$defs/a"}})), Err("\"#/$defs/a\" refers to nothing".to_owned()));
    assert!(check(&json!({"anyOf": [{"$ref": "http://x/y"}]})).is_err_and(|why| why.contains("another document")));
}
