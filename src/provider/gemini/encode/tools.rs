//! The tools of a request, whether they are called, and the form of the answer: what a model takes together.

use super::Target;
use crate::LlmError;
use crate::chat::{Output, Request, Tool, ToolChoice};
use crate::provider::gemini::JsonBesideTools;
use crate::provider::schema;
use crate::record::ErrorCode;
use serde::Serialize;
use serde_json::Value;

/// The longest name of a function, as the reference of `FunctionDeclaration` says.
const LONGEST_NAME: usize = 128;
/// The longest name of a parameter.
const LONGEST_PARAMETER: usize = 64;

/// One of `tools`. There is never more than one: functions of several are the same to Google.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Functions<'a> {
    function_declarations: Vec<Function<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    /// Left out where there are none: an object without properties is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Config<'a> {
    function_calling_config: Calling<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Calling<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[&'a str; 1]>,
}

/// `responseMimeType`, and the schema.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Form {
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<Value>,
}

impl Form {
    pub(super) fn is_text(&self) -> bool {
        self.response_mime_type.is_none()
    }

    pub(super) fn of(output: &Output, target: &Target<'_>) -> Result<Self, LlmError> {
        let json = Some("application/json");
        let (capability, form) = match output {
            Output::Text => return Ok(Self::default()),
            Output::Json => ("json", Self { response_mime_type: json, response_json_schema: None }),
            Output::Schema(output) => {
                let adapted = schema::gemini(&output.schema);
                let mut adapted = adapted.map_err(|fault| fault.refuse("output", target.model))?;
                if let (Some(words), Value::Object(root)) = (&output.description, &mut adapted) {
                    root.entry("description").or_insert_with(|| words.as_str().into());
                }
                ("schema", Self { response_mime_type: json, response_json_schema: Some(adapted) })
            }
        };
        if target.family.json {
            return Ok(form);
        }
        Err(target.unsupported(capability, "ask for JSON in the prompt, or choose another model"))
    }
}

/// The tools and whether they are called; none where there are none, or none may be called beside a form of the answer.
pub(super) fn of<'a>(
    request: &'a Request,
    form: &Form,
    target: &Target<'_>,
) -> Result<Option<(Functions<'a>, Option<Config<'a>>)>, LlmError> {
    if request.tools.is_empty() {
        return Ok(None);
    }
    if !target.family.tools {
        return Err(target.unsupported("tools", "leave them out, or choose another model"));
    }
    if request.parallel_tool_calls == Some(false) {
        let cure = "there is no such switch; leave it out, or choose another provider";
        return Err(target.unsupported("parallel_tool_calls = false", cure));
    }
    let calling = calling(request);
    if !form.is_text() {
        let mode = calling.as_ref().map_or("AUTO", |calling| calling.mode);
        let taken = match target.family.json_beside_tools {
            JsonBesideTools::Always => true,
            JsonBesideTools::Auto => mode == "AUTO",
            JsonBesideTools::Never => false,
        };
        // What may not be called need not be there.
        if !taken && mode == "NONE" {
            return Ok(None);
        }
        if !taken {
            let (what, cure) = match target.family.json_beside_tools {
                JsonBesideTools::Auto => {
                    ("a forced tool beside JSON", "leave the choice to the model, or ask for text")
                }
                _ => ("tools beside JSON", "ask for text, or choose a later model"),
            };
            return Err(target.unsupported(what, cure));
        }
    }
    let functions: Result<Vec<_>, LlmError> = request.tools.iter().map(|tool| function(tool, target)).collect();
    let config = calling.map(|function_calling_config| Config { function_calling_config });
    Ok(Some((Functions { function_declarations: functions? }, config)))
}

/// Whether functions are called; none where that is left to the model, which is Google's default.
fn calling(request: &Request) -> Option<Calling<'_>> {
    let (mode, allowed) = match &request.tool_choice {
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Named(name) => ("ANY", Some([name.as_str()])),
        // Calls are then held to their schema; in the other modes they are anyway, or there are none.
        ToolChoice::Auto if request.output.is_text() && request.tools.iter().any(|tool| tool.strict == Some(true)) => {
            ("VALIDATED", None)
        }
        ToolChoice::Auto => return None,
    };
    Some(Calling { mode, allowed_function_names: allowed })
}

fn function<'a>(tool: &'a Tool, target: &Target<'_>) -> Result<Function<'a>, LlmError> {
    let invalid = |message: String| Err(LlmError::of(ErrorCode::InvalidCall, message));
    let Tool { name, description, parameters, .. } = tool;
    if !is_name(name, LONGEST_NAME, "_.:-") {
        return invalid(format!(
            "tool {name:?}: a name at {} is at most {LONGEST_NAME} letters, digits, `_`, `.`, `:` or `-`, and begins with a \
             letter or `_`",
            target.provider
        ));
    }
    let subject = format!("tool {name:?}");
    let adapted = schema::gemini(parameters).map_err(|fault| fault.refuse(&subject, target.model))?;
    if let Some(parameter) = odd_parameter(&adapted) {
        return invalid(format!(
            "{subject}: a parameter is called {parameter:?}; a name at {} has at most {LONGEST_PARAMETER} characters, and \
             begins with a letter or `_`",
            target.provider
        ));
    }
    let has_some = |schema: &Value| {
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.is_some_and(|properties| !properties.is_empty())
            || ["$ref", "anyOf", "oneOf", "additionalProperties"].iter().any(|keyword| schema.get(keyword).is_some())
    };
    Ok(Function { name, description, parameters_json_schema: Some(adapted).filter(has_some) })
}

/// Whether this may be a name: so many ASCII letters, digits and these, a letter or `_` first.
fn is_name(name: &str, longest: usize, also: &str) -> bool {
    name.len() <= longest
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
}

/// The first name of a parameter that Google takes nowhere.
fn odd_parameter(schema: &Value) -> Option<&str> {
    let Value::Object(keywords) = schema else {
        return schema.as_array()?.iter().find_map(odd_parameter);
    };
    keywords.iter().find_map(|(keyword, value)| match (keyword.as_str(), value) {
        // What is listed here are values.
        ("enum" | "default" | "examples", _) => None,
        ("properties", Value::Object(properties)) => {
            let is_odd = |name: &str| {
                name.chars().count() > LONGEST_PARAMETER || !name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            };
            let odd = properties.keys().map(String::as_str).find(|name| is_odd(name));
            odd.or_else(|| properties.values().find_map(odd_parameter))
        }
        (_, value) => odd_parameter(value),
    })
}
