//! What the provider checks of thinking, sampling, tools and the form of the answer.

use super::{Refusal, UNSAMPLED, has_words};
use crate::testing::protocol::Forced;
use serde_json::{Map, Value};

/// Families that are always forced to think, or think between tools at the least: they are not forced to anything else.
const UNFORCED: [&str; 4] = ["opus-5-5", "sonnet-5-5", "fable-5-1", "fable-5-2"];
/// Families that cannot be kept from thinking.
const UNSTOPPED: [&str; 3] = ["opus-5-5", "sonnet-5-5", "fable-5"];
/// Families that take no budget.
const UNBUDGETED: [&str; 7] = ["opus-5", "sonnet-5", "haiku-5", "fable-5", "opus-4-7", "opus-4-8", "-5-5"];
/// Families that take no sampling settings but those that change nothing.
const UNSAMPLED_MODELS: [&str; 6] = ["opus-5", "sonnet-5", "haiku-5", "fable-5", "opus-4-7", "opus-4-8"];

/// What a request says of thinking.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thinks {
    pub(super) at_all: bool,
    pub(super) with_budget: bool,
}

pub(super) fn check(body: &Map<String, Value>, model: &str, version: &str) -> Result<Thinks, Refusal> {
    let thinks = thinking(body, model)?;
    check_sampling(body, model, version, thinks)?;
    check_tools(body)?;
    check_choice(body, model, thinks)?;
    check_output(body)?;
    Ok(thinks)
}

fn is_of(model: &str, families: &[&str]) -> bool {
    families.iter().any(|family| model.contains(family))
}

fn thinking(body: &Map<String, Value>, model: &str) -> Result<Thinks, Refusal> {
    let Some(thinking) = body.get("thinking") else { return Ok(Thinks::default()) };
    let unsupported = |kind: &str| Err(format!("thinking.type: \"{kind}\" is not supported by {model}").into());
    match thinking["type"].as_str() {
        Some("adaptive") => Ok(Thinks { at_all: true, with_budget: false }),
        Some("between_tools") if !model.contains("sonnet-5-5") => unsupported("between_tools"),
        Some("disabled") if is_of(model, &UNSTOPPED) => unsupported("disabled"),
        Some("between_tools" | "disabled") => Ok(Thinks::default()),
        Some("enabled") if is_of(model, &UNBUDGETED) => unsupported("enabled"),
        Some("enabled") => match thinking["budget_tokens"].as_u64() {
            None => Err("thinking.enabled.budget_tokens: Field required".into()),
            Some(..1_024) => {
                Err("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024".into())
            }
            Some(budget) if body["max_tokens"].as_u64().is_some_and(|max| max <= budget) => {
                Err("`max_tokens` must be greater than `thinking.budget_tokens`".into())
            }
            Some(_) => Ok(Thinks { at_all: true, with_budget: true }),
        },
        _ => Err("thinking: Input tag does not match any of the expected tags".into()),
    }
}

fn check_sampling(body: &Map<String, Value>, model: &str, version: &str, thinks: Thinks) -> Result<(), Refusal> {
    for name in ["temperature", "top_p"] {
        let Some(value) = body.get(name) else { continue };
        if version == UNSAMPLED {
            return Err(format!("{name}: not supported in this version").into());
        }
        let Some(value) = value.as_f64().filter(|value| (0.0..=1.0).contains(value)) else {
            return Err(format!("{name}: Input should be a number between 0 and 1").into());
        };
        let least = if name == "temperature" { 1.0 } else { 0.95 };
        if thinks.at_all && value < least {
            return Err(format!("`{name}` may only be set to {least} or more when thinking is enabled").into());
        }
        if is_of(model, &UNSAMPLED_MODELS) && value < least {
            return Err(format!("`{name}` is not supported by {model}").into());
        }
    }
    let stops =
        body.get("stop_sequences").map(|stops| stops.as_array().ok_or("stop_sequences: Input should be a list"));
    if stops.transpose()?.is_some_and(|stops| stops.iter().any(|stop| !has_words(stop))) {
        return Err("stop_sequences: each stop sequence must contain non-whitespace".into());
    }
    Ok(())
}

fn tools(body: &Map<String, Value>) -> &[Value] {
    body.get("tools").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn check_tools(body: &Map<String, Value>) -> Result<(), Refusal> {
    if body.get("tools").is_some_and(|tools| !tools.is_array()) {
        return Err("tools: Input should be a valid list".into());
    }
    let mut names = Vec::new();
    for (place, tool) in tools(body).iter().enumerate() {
        let at = format!("tools.{place}.custom");
        let name = tool["name"].as_str().ok_or_else(|| format!("{at}.name: Field required"))?;
        if names.contains(&name) {
            return Err("tools: Tool names must be unique.".into());
        }
        names.push(name);
        // The provider's own tools have other fields.
        if tool.get("type").is_some_and(|kind| kind != "custom") {
            continue;
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !matches!(name.len(), 1..=128) || !name.chars().all(is_word) {
            return Err(format!("{at}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'").into());
        }
        let schema = &tool["input_schema"];
        if schema["type"] != "object" {
            return Err(format!("{at}.input_schema.type: Input should be 'object'").into());
        }
        if tool["strict"] == true {
            check_schema(schema, &format!("{at}.input_schema"))?;
        }
    }
    Ok(())
}

fn check_choice(body: &Map<String, Value>, model: &str, thinks: Thinks) -> Result<(), Refusal> {
    let Some(choice) = body.get("tool_choice") else { return Ok(()) };
    if tools(body).is_empty() {
        return Err("tool_choice: may only be specified while providing tools".into());
    }
    let kind = choice["type"].as_str().unwrap_or_default();
    match kind {
        "none" if choice.get("disable_parallel_tool_use").is_some() => {
            return Err("tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted".into());
        }
        "any" | "tool" if thinks.at_all => {
            return Err("Thinking may not be enabled when tool_choice forces tool use.".into());
        }
        "any" | "tool" if is_of(model, &UNFORCED) => {
            return Err(format!("tool_choice.type: \"{kind}\" is not supported by {model}").into());
        }
        "tool" if !tools(body).iter().any(|tool| tool["name"] == choice["name"]) => {
            return Err(format!("Tool '{}' not found in provided tools", choice["name"].as_str().unwrap_or("")).into());
        }
        "any" | "auto" | "none" | "tool" => {}
        _ => return Err("tool_choice: Input tag does not match any of the expected tags".into()),
    }
    Ok(())
}

/// The tool that the model is forced to call.
pub(super) fn forced(body: &Map<String, Value>) -> Option<Forced> {
    let choice = body.get("tool_choice").filter(|choice| choice["type"] == "tool")?;
    let tool = tools(body).iter().find(|tool| tool["name"] == choice["name"])?;
    let only = match tool["input_schema"]["properties"].as_object() {
        Some(properties) if properties.len() == 1 => properties.keys().next().cloned(),
        _ => None,
    };
    Some(Forced { name: tool["name"].as_str()?.to_owned(), only })
}

fn check_output(body: &Map<String, Value>) -> Result<(), Refusal> {
    let Some(config) = body.get("output_config") else { return Ok(()) };
    let fields = config.as_object().ok_or("output_config: Input should be a valid dictionary")?;
    if let Some(field) = fields.keys().find(|field| !matches!(field.as_str(), "effort" | "format")) {
        return Err(format!("output_config.{field}: Extra inputs are not permitted").into());
    }
    if let Some(effort) = fields.get("effort")
        && !matches!(effort.as_str(), Some("low" | "medium" | "high" | "xhigh" | "max"))
    {
        return Err("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'".into());
    }
    let Some(format) = fields.get("format") else { return Ok(()) };
    if format["type"] != "json_schema" {
        return Err("output_config.format.type: Input should be 'json_schema'".into());
    }
    if let Some(field) = format.as_object().and_then(|f| f.keys().find(|f| !matches!(f.as_str(), "type" | "schema"))) {
        return Err(format!("output_config.format.{field}: Extra inputs are not permitted").into());
    }
    check_schema(&format["schema"], "output_config.format.schema")
}

/// Every object is closed, and nothing is asked that the grammar has no words for.
fn check_schema(schema: &Value, at: &str) -> Result<(), Refusal> {
    const UNKNOWN: [&str; 12] = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "maxItems",
        "uniqueItems",
        "not",
        "oneOf",
    ];
    let Some(fields) = schema.as_object() else {
        return if schema.is_boolean() {
            Ok(())
        } else {
            Err(format!("{at}: Input should be a valid dictionary").into())
        };
    };
    if let Some(word) = UNKNOWN.iter().find(|word| fields.contains_key(**word)) {
        return Err(format!("{at}: property '{word}' is not supported").into());
    }
    if schema["type"] == "object" && schema["additionalProperties"] != false {
        return Err(format!("{at}: For 'object' type, 'additionalProperties' must be explicitly set to false").into());
    }
    for (word, inner) in fields {
        let at = format!("{at}.{word}");
        match (word.as_str(), inner) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.iter().try_for_each(|(name, schema)| check_schema(schema, &format!("{at}.{name}")))?;
            }
            ("anyOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter().try_for_each(|schema| check_schema(schema, &at))?;
            }
            ("items", schema) => check_schema(schema, &at)?,
            _ => {}
        }
    }
    Ok(())
}
