//! Schemas as each provider takes them.

use super::*;
use serde_json::json;

#[allow(clippy::needless_pass_by_value)] // reads better with `json!`
fn strict(schema: Value) -> Value {
    openai_strict(&schema).expect("expressible")
}

fn refused(adapted: Result<Value, Inexpressible>) -> String {
    adapted.expect_err("inexpressible").to_string()
}

/// A type that holds others of its kind.
fn tree(children: &str, required: bool) -> Value {
    let required = if required { json!(["name", children]) } else { json!(["name"]) };
    json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, children: {"type": "array", "items": {"$ref": "#"}}},
        "required": required,
    })
}

/// An enum with data, as `schemars` writes one.
fn shape() -> Value {
    json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"type": "string", "const": "circle"}, "radius": {"type": "number"}},
         "required": ["kind", "radius"]},
        {"type": "object", "properties": {"kind": {"const": "point"}}, "required": ["kind"]},
    ]})
}

#[allow(clippy::needless_pass_by_value)] // reads better with `json!`
fn within(schema: Value) -> Value {
    json!({"type": "object", "properties": {"it": schema}, "required": ["it"]})
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
            "planet": {"const": "Earth", "description": "Which one"},
            "mayor": {"$ref": "#/definitions/person"},
            "twin": {"anyOf": [{"type": "string"}, {"type": "null"}]},
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
                "planet": {
                    "anyOf": [{"type": "string", "const": "Earth"}, {"type": "null"}],
                    "description": "Which one",
                },
                "mayor": {"anyOf": [{"$ref": "#/$defs/person"}, {"type": "null"}]},
                "twin": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["city", "country", "kind", "mayor", "planet", "size", "twin"],
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

#[test]
fn a_strict_schema_takes_recursion_and_enums_with_data() {
    let root = json!({"$ref": "#/$defs/Root"});
    let adapted = strict(tree("children", true));
    assert_eq!(adapted["properties"]["children"], json!({"type": "array", "items": root}));
    assert_eq!(adapted["$defs"]["Root"]["properties"], adapted["properties"]);

    let adapted = strict(within(shape()));
    let branches = &adapted["properties"]["it"]["anyOf"];
    assert_eq!(branches[0]["properties"]["kind"], json!({"type": "string", "const": "circle"}));
    assert_eq!(branches[1]["properties"]["kind"], json!({"type": "string", "const": "point"}), "the type is inferred");
    assert_eq!(branches[1]["additionalProperties"], json!(false));
}

#[test]
fn what_a_strict_schema_has_no_keyword_for_is_told_in_the_description() {
    let adapted = strict(within(json!({
        "type": "array",
        "prefixItems": [{"type": "string", "pattern": "^(?=a)"}, {"type": "integer"}],
        "uniqueItems": true,
        "description": "A pair",
    })));
    let items = json!({"anyOf": [{"type": "string", "description": "(pattern: ^(?=a))"}, {"type": "integer"}]});
    let it = &adapted["properties"]["it"];
    assert_eq!(it["items"], items);
    let told = it["description"].as_str().expect("a description");
    assert!(told.starts_with("A pair (uniqueItems: true, in this order: "), "{told}");
    assert!(told.ends_with(", 2 items)"), "{told}");
    assert_eq!(
        strict(within(json!({"type": "string", "pattern": "^a+$"})))["properties"]["it"]["pattern"],
        json!("^a+$")
    );
}

#[test]
fn an_all_of_is_put_into_one() {
    let adapted = strict(json!({
        "allOf": [
            {"$ref": "#/$defs/named"},
            {"properties": {"age": {"type": "integer"}}, "required": ["age"]},
        ],
        "type": "object",
        "$defs": {"named": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
    }));
    assert_eq!(adapted["properties"], json!({"age": {"type": "integer"}, "name": {"type": "string"}}));

    // One reference with words beside it stays a reference.
    let adapted = strict(json!({
        "type": "object",
        "properties": {"it": {"allOf": [{"$ref": "#/$defs/a~1b"}], "description": "Words"}},
        "required": ["it"],
        "$defs": {"a/b": {"type": "string"}},
    }));
    assert_eq!(adapted["properties"]["it"], json!({"anyOf": [{"$ref": "#/$defs/a_b"}], "description": "Words"}));
    assert_eq!(adapted["$defs"], json!({"a_b": {"type": "string"}}));

    let twice = json!({"allOf": [{"type": "string"}, {"type": "integer"}]});
    assert_eq!(
        refused(openai_strict(&within(twice))),
        "at /properties/it: an `allOf` whose parts differ in `type` cannot be expressed for a strict schema; put what \
         they say into one"
    );
}

#[test]
fn what_a_strict_schema_cannot_express_is_refused_with_its_place() {
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    for (schema, says) in [
        (within(map.clone()), "at /properties/it: an object with properties that are not listed (a map)"),
        (within(json!({"type": "object"})), "at /properties/it: an object with properties that are not listed"),
        (within(json!(true)), "at /properties/it: a value of any type"),
        (within(json!({})), "at /properties/it: a value of any type"),
        (within(json!({"type": "array"})), "at /properties/it: an array of anything"),
        (within(json!({"$ref": "#/$defs/none"})), "at /properties/it: \"#/$defs/none\" refers to nothing"),
        (within(json!({"$ref": "other.json"})), "at /properties/it: \"other.json\" refers to another document"),
        (within(json!({"allOf": [{"$ref": "#/properties/it"}], "type": "object"})), "an `allOf` that leads back"),
        (shape(), "at the root: the root is no object"),
        (json!({"type": "array", "items": map}), "at /items: an object with properties"),
        (json!([]), "at the root: a schema is an object or a boolean"),
        (json!({"type": "object", "properties": {}, "required": ["x"]}), "\"x\" is required and not among"),
    ] {
        let refused = refused(openai_strict(&schema));
        assert!(refused.contains(says), "{schema}: {refused}");
    }
}

#[test]
fn a_tool_without_parameters_is_a_closed_object() {
    assert_eq!(
        strict(json!({"type": "object", "properties": {}})),
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false})
    );
}

#[test]
fn anthropic_keeps_optional_properties_and_tells_bounds_in_words() {
    let adapted = anthropic(&json!({
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 9},
            "link": {"type": "string", "format": "uri"},
            "zone": {"type": "string", "format": "iri"},
            "shape": shape(),
        },
        "required": ["size"],
    }))
    .expect("expressible");
    let properties = &adapted["properties"];
    assert_eq!(properties["size"], json!({"type": "integer", "description": "(maximum: 9, minimum: 1)"}));
    assert_eq!(properties["link"], json!({"type": "string", "format": "uri"}));
    assert_eq!(properties["zone"], json!({"type": "string", "description": "(format: iri)"}));
    assert!(properties["shape"]["anyOf"].is_array());
    assert_eq!(adapted["required"], json!(["size"]));
    assert!(refused(anthropic(&tree("children", false))).contains("a type that refers to itself"));
}

#[test]
fn gemini_takes_maps_and_one_of_and_recursion_through_an_optional_property() {
    let adapted = gemini(&json!({
        "type": "object",
        "properties": {
            "sizes": {"type": "object", "additionalProperties": {"type": "integer", "exclusiveMinimum": 0}},
            "kind": {"const": "a"},
            "mode": {"enum": ["x", null]},
            "flag": {"const": true},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            "any": {},
        },
    }))
    .expect("expressible");
    assert_eq!(
        adapted["properties"],
        json!({
            "sizes": {
                "type": "object",
                "additionalProperties": {"type": "integer", "description": "(exclusiveMinimum: 0)"},
            },
            "kind": {"type": "string", "enum": ["a"]},
            "mode": {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "null"}]},
            "flag": {"type": "boolean", "description": "(one of: [true])"},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            "any": {},
        })
    );
    assert!(gemini(&shape()).expect("expressible")["oneOf"].is_array());
    assert!(gemini(&tree("children", false)).is_ok());
    assert_eq!(
        refused(gemini(&tree("children", true))),
        "at /properties/children/items: a type that refers to itself cannot be expressed for Gemini; make a property on \
         the way back optional"
    );
}

#[test]
fn ollama_takes_nearly_everything_as_it_is() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 1, "pattern": "^x$"}, "b": {"type": "string", "pattern": "x"}},
        "required": ["a"],
    });
    let adapted = ollama(&schema).expect("expressible");
    assert_eq!(adapted["properties"]["a"], schema["properties"]["a"]);
    assert_eq!(adapted["properties"]["b"], json!({"type": "string", "description": "(pattern: x)"}));
    // llama.cpp does not know the reference to the root.
    let tree = ollama(&tree("children", true)).expect("expressible");
    assert_eq!(tree["properties"]["children"]["items"], json!({"$ref": "#/$defs/Root"}));
}

#[test]
fn references_are_replaced_unless_a_type_refers_to_itself() {
    let inlined = inline_refs(&json!({
        "type": "object",
        "properties": {"from": {"$ref": "#/$defs/place", "description": "Start"}, "$ref": {"type": "string"}},
        "$defs": {
            "place": {"type": "object", "properties": {"zip": {"$ref": "#/$defs/zip"}}, "description": "A place"},
            "zip": {"type": "string", "enum": ["1", "2"]},
        },
    }))
    .expect("no recursion");
    assert_eq!(
        inlined,
        json!({
            "type": "object",
            "properties": {
                "from": {
                    "type": "object",
                    "properties": {"zip": {"type": "string", "enum": ["1", "2"]}},
                    "description": "Start",
                },
                "$ref": {"type": "string"},
            },
        })
    );
    assert!(refused(inline_refs(&tree("children", false))).contains("refers to itself"));
}

#[test]
fn neither_depth_nor_multiplication_is_followed_without_end() {
    let mut deep = json!({"type": "string"});
    for _ in 0..400 {
        deep = json!({"type": "array", "items": deep});
    }
    for adapt in [openai_strict, anthropic, gemini, ollama, inline_refs] {
        assert!(refused(adapt(&within(deep.clone()))).contains("deeper than 100 levels"));
    }

    let mut defs = serde_json::Map::new();
    for level in 0..30 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
    }
    defs.insert("d30".to_owned(), json!({"type": "string"}));
    let many = json!({"$ref": "#/$defs/d0", "$defs": defs});
    assert!(refused(inline_refs(&many)).contains("too large"));
    assert!(openai_strict(&many).is_ok());
    let itself = json!({"$ref": "#"});
    assert!(refused(openai_strict(&itself)).contains("at the root"), "it says nothing at all");
}

#[test]
fn a_refusal_names_what_cannot_be_expressed_and_for_which_model() {
    let fault = openai_strict(&within(json!({"type": "object"}))).expect_err("a map");
    let error = fault.refuse("tool \"save\"", "gpt-5");
    assert_eq!(error.code(), Some(ErrorCode::UnsupportedCapability));
    assert_eq!(
        error.issues(),
        Some(&Issues::Capability { capability: "schema".to_owned(), model: "gpt-5".to_owned() })
    );
    assert!(
        error.to_string().starts_with("tool \"save\" has a schema that gpt-5 cannot be given: at /properties/it: ")
    );
}
