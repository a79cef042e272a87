//! What Google refuses of tools, and of what does not go with them.

use super::Refusal;
use super::signature::generation;
use serde_json::{Map, Value};

/// What one of `tools` may hold.
const KINDS: [&str; 8] = [
    "codeExecution",
    "computerUse",
    "fileSearch",
    "functionDeclarations",
    "googleMaps",
    "googleSearch",
    "googleSearchRetrieval",
    "urlContext",
];
const FIELDS: [&str; 7] =
    ["behavior", "description", "name", "parameters", "parametersJsonSchema", "response", "responseJsonSchema"];

fn invalid<T>(message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(400, message))
}

/// Checks the tools, how they are called, and the form of the answer beside them.
pub(super) fn check(body: &Map<String, Value>, config: &Map<String, Value>, model: &str) -> Result<(), Refusal> {
    let tools = match body.get("tools") {
        None => &[][..],
        Some(Value::Array(tools)) => tools,
        Some(_) => return invalid("Invalid value at 'tools': a list is expected."),
    };
    let mut names = Vec::new();
    for (place, tool) in tools.iter().enumerate() {
        let at = format!("tools[{place}]");
        let tool = super::read::fields(tool.as_object().cloned().unwrap_or_default(), &KINDS, &at)?;
        let declarations = tool.get("functionDeclarations").and_then(Value::as_array).into_iter().flatten();
        for (place, declaration) in declarations.enumerate() {
            let name = check_function(declaration, &format!("{at}.function_declarations[{place}]"))?;
            if names.contains(&name) {
                return invalid(format!("Duplicate function declaration found: {name}"));
            }
            names.push(name);
        }
    }
    if model.starts_with("gemma-3") && !names.is_empty() {
        return invalid(format!("Function calling is not enabled for models/{model}"));
    }
    let mode = mode(body.get("toolConfig"), &names)?;
    let is_json = config.get("responseMimeType").is_some_and(|form| form == "application/json");
    match generation(model) {
        Some(..=2) if is_json && !names.is_empty() => {
            invalid("Function calling with a response mime type: 'application/json' is unsupported")
        }
        Some(3..) if is_json && !names.is_empty() && mode != "AUTO" => {
            invalid("Forced function calling with a response mime type: 'application/json' is unsupported")
        }
        _ => Ok(()),
    }
}

fn check_function(declaration: &Value, at: &str) -> Result<String, Refusal> {
    let function = super::read::fields(declaration.as_object().cloned().unwrap_or_default(), &FIELDS, at)?;
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
    let is_name = name.len() <= 128
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.:-".contains(c));
    if !is_name {
        return invalid(format!(
            "* GenerateContentRequest.{at}.name: Invalid function name. Must start with a letter or an underscore. Must be \
             alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of \
             128.\n"
        ));
    }
    let schema = match (function.get("parameters"), function.get("parametersJsonSchema")) {
        (Some(_), Some(_)) => {
            return invalid(format!("{at}: only one of parameters and parameters_json_schema may be set."));
        }
        (Some(schema), None) | (None, Some(schema)) => schema,
        (None, None) => return Ok(name.to_owned()),
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    if schema["type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("object"))
        && properties.is_some_and(Map::is_empty)
    {
        let at = format!("* GenerateContentRequest.{at}.parameters.properties");
        return invalid(format!("{at}: should be non-empty for OBJECT type\n"));
    }
    let odd = properties
        .into_iter()
        .flat_map(Map::keys)
        .find(|name| name.len() > 64 || !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
    match odd {
        Some(odd) => invalid(format!("* GenerateContentRequest.{at}.parameters.properties[{odd}]: Invalid name.\n")),
        None => Ok(name.to_owned()),
    }
}

/// Whether functions are called.
fn mode<'a>(config: Option<&'a Value>, names: &[String]) -> Result<&'a str, Refusal> {
    let Some(calling) = config.and_then(|config| config.get("functionCallingConfig")) else { return Ok("AUTO") };
    let mode = calling.get("mode").map_or(Some("AUTO"), Value::as_str).unwrap_or_default();
    if !["ANY", "AUTO", "NONE", "VALIDATED"].contains(&mode) {
        return invalid(format!("Invalid value at 'tool_config.function_calling_config.mode': \"{mode}\""));
    }
    let allowed: Vec<_> = calling["allowedFunctionNames"].as_array().into_iter().flatten().collect();
    if !allowed.is_empty() && !["ANY", "VALIDATED"].contains(&mode) {
        return invalid("Please set the function calling mode to ANY when specifying allowed_function_names.");
    }
    if mode == "ANY" && names.is_empty() {
        return invalid("Function calling config is set without function_declarations.");
    }
    let is_declared = |name: &Value| names.iter().any(|declared| *name == **declared);
    match allowed.into_iter().find(|name| !is_declared(name)) {
        Some(name) => invalid(format!("Allowed function name {name} is not among the function declarations.")),
        None => Ok(mode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(body: Value, config: Value, model: &str) -> String {
        let (Value::Object(body), Value::Object(config)) = (body, config) else { return "no object".to_owned() };
        check(&body, &config, model).err().map(|refusal| refusal.message).unwrap_or_default()
    }

    #[allow(clippy::needless_pass_by_value)] // reads better with `json!`
    fn with(declaration: Value) -> Value {
        json!({"tools": [{"functionDeclarations": [declaration]}]})
    }

    #[test]
    fn a_declaration_is_one_that_google_takes() {
        let object = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        assert_eq!(refused(with(json!({"name": "a", "parametersJsonSchema": object})), json!({}), "m"), "");
        for (declaration, said) in [
            (json!({"name": "1st"}), "Invalid function name"),
            (json!({"description": "x"}), "Invalid function name"),
            (json!({"name": "a", "strict": true}), "Unknown name \"strict\""),
            (json!({"name": "a", "parameters": object, "parametersJsonSchema": object}), "only one of"),
            (json!({"name": "a", "parameters": {"type": "OBJECT", "properties": {}}}), "non-empty for OBJECT"),
            (json!({"name": "a", "parameters": {"type": "OBJECT", "properties": {"1": {}}}}), "Invalid name"),
        ] {
            let message = refused(with(declaration.clone()), json!({}), "m");
            assert!(message.contains(said), "{declaration}: {message}");
        }
        let twice = json!({"tools": [{"functionDeclarations": [{"name": "a"}, {"name": "a"}]}]});
        assert!(refused(twice, json!({}), "m").contains("Duplicate function declaration found: a"));
        assert!(refused(with(json!({"name": "a"})), json!({}), "gemma-3-27b-it").contains("not enabled"));
        assert!(refused(json!({"tools": [{"bash": {}}]}), json!({}), "m").contains("Unknown name"));
    }

    #[test]
    fn a_mode_fits_what_is_declared() {
        let ask = |calling: Value| {
            let mut body = with(json!({"name": "a"}));
            body["toolConfig"] = json!({"functionCallingConfig": calling});
            refused(body, json!({}), "m")
        };
        assert_eq!(ask(json!({"mode": "ANY", "allowedFunctionNames": ["a"]})), "");
        assert!(ask(json!({"mode": "any"})).contains("Invalid value"));
        assert!(ask(json!({"mode": "AUTO", "allowedFunctionNames": ["a"]})).contains("set the function calling mode"));
        assert!(ask(json!({"mode": "ANY", "allowedFunctionNames": ["b"]})).contains("not among"));
        let none = json!({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}});
        assert!(refused(none, json!({}), "m").contains("without function_declarations"));
    }

    #[test]
    fn json_goes_with_tools_on_late_models_that_are_free_to_call() {
        let json = || json!({"responseMimeType": "application/json"});
        let mut forced = with(json!({"name": "a"}));
        forced["toolConfig"] = json!({"functionCallingConfig": {"mode": "ANY"}});
        assert!(refused(with(json!({"name": "a"})), json(), "gemini-2.5-pro").contains("unsupported"));
        assert_eq!(refused(with(json!({"name": "a"})), json(), "gemini-4-argon"), "");
        assert!(refused(forced, json(), "gemini-4-argon").contains("unsupported"));
    }
}
