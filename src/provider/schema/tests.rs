//! Schemas as each provider takes them.

use super::*;
use serde_json::json;

fn strict(schema: Value) -> Value {
    openai_strict(&schema).expect("expressible")
}

fn refused(adapted: Result<Value, Inexpressible>) -> String {
    adapted.expect_err("inexpressible").to_string()
}

fn tree(required: bool) -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": if required { json!(["name", "children"]) } else { json!(["name"]) },
    })
}

#[test]
fn a_strict_schema_requires_every_property_and_lets_the_optional_ones_be_null() {
    let adapted = strict(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "country": {"type": "string", "description": "Where it is", "minLength": 2},
            "size": {"type": "integer", "format": "uint32", "minimum": 0},
            "kind": {"enum": ["town", "village"]},
            "mayor": {"$ref": "#/definitions/person"},
        },
        "required": ["city"],
        "definitions": {"person": {"type": "object", "properties": {"name": {"type": ["string", "null"]}}}},
    }));
    assert_eq!(
        adapted,
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "country": {"type": ["string", "null"], "description": "Where it is (minLength: 2)"},
                "size": {"type": ["integer", "null"], "minimum": 0},
                "kind": {"type": ["string", "null"], "enum": ["town", "village", null]},
                "mayor": {"anyOf": [{"$ref": "#/$defs/person"}, {"type": "null"}]},
            },
            "required": ["city", "country", "kind", "mayor", "size"],
            "additionalProperties": false,
            "$defs": {"person": {
                "type": "object",
                "properties": {"name": {"type": ["string", "null"]}},
                "required": ["name"],
                "additionalProperties": false,
            }},
        })
    );
}
