//! The tools of a request, and the form of its answer.

use super::super::{ChatApi, ForcedTools};
use crate::LlmError;
use crate::chat::{JsonSchema, Output, Request, Tool, ToolChoice};
use crate::provider::refusal::{check_tool_names, unsupported};
use crate::provider::schema::openai_strict;
use crate::record::ErrorCode;
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;
use std::borrow::Cow;

/// The longest name of a tool.
pub(in crate::provider) const LONGEST_NAME: usize = 64;

/// What is sent of them.
#[derive(Default)]
pub(super) struct Plan<'a> {
    tools: Vec<Declared<'a>>,
    tool_choice: Option<Choice<'a>>,
    parallel_tool_calls: Option<bool>,
    response_format: Option<Format<'a>>,
}

impl Plan<'_> {
    /// Writes the fields that are set.
    pub(super) fn write<M: SerializeMap>(&self, body: &mut M) -> Result<(), M::Error> {
        if !self.tools.is_empty() {
            body.serialize_entry("tools", &self.tools)?;
        }
        if let Some(choice) = &self.tool_choice {
            body.serialize_entry("tool_choice", choice)?;
        }
        if let Some(parallel) = self.parallel_tool_calls {
            body.serialize_entry("parallel_tool_calls", &parallel)?;
        }
        if let Some(format) = &self.response_format {
            body.serialize_entry("response_format", format)?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Declared<'a> {
    Function { function: Function<'a> },
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Named(NamedChoice<'a>),
    Word(&'static str),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum NamedChoice<'a> {
    Function { function: Named<'a> },
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonObject,
    JsonSchema { json_schema: Form<'a> },
}

#[derive(Serialize)]
struct Form<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

impl ChatApi {
    /// What is sent of the tools and of the form of the answer; what the server is known to refuse is refused here.
    pub(super) fn plan<'a>(&self, request: &'a Request, model: &str) -> Result<Plan<'a>, LlmError> {
        let (name, quirks) = (self.place.name(), &self.quirks);
        let has_tools = !request.tools.is_empty();
        if has_tools {
            check_tool_names(name, model, &request.tools, LONGEST_NAME)?;
        }
        if request.tools.len() > quirks.max_tools {
            let message = format!("{} tools are given; {name} takes {}", request.tools.len(), quirks.max_tools);
            return Err(LlmError::of(ErrorCode::InvalidCall, message));
        }
        if has_tools && !request.output.is_text() && !quirks.json_beside_tools {
            return Err(unsupported(name, model, "a form of the answer beside tools", "leave out one of them"));
        }
        let tools = request.tools.iter().map(|tool| self.declared(tool, model)).collect::<Result<_, _>>()?;
        let mut plan = Plan { tools, ..Plan::default() };
        if has_tools {
            plan.tool_choice = self.choice(&request.tool_choice, model)?;
            plan.parallel_tool_calls = request.parallel_tool_calls;
        }
        match &request.output {
            Output::Text => {}
            Output::Json => plan.response_format = Some(Format::JsonObject),
            Output::Schema(output) if quirks.schema => {
                plan.response_format = Some(Format::JsonSchema { json_schema: self.form(output, model)? });
            }
            Output::Schema(output) => self.by_tool(&mut plan, output, model)?,
        }
        Ok(plan)
    }

    fn declared<'a>(&self, tool: &'a Tool, model: &str) -> Result<Declared<'a>, LlmError> {
        let strict = tool.strict.filter(|_| self.quirks.strict);
        let parameters = match strict {
            Some(true) => Cow::Owned(
                openai_strict(&tool.parameters).map_err(|e| e.refuse(&format!("tool {:?}", tool.name), model))?,
            ),
            _ => Cow::Borrowed(&tool.parameters),
        };
        let (name, description) = (&tool.name, &tool.description);
        Ok(Declared::Function { function: Function { name, description, parameters, strict } })
    }

    fn choice<'a>(&self, choice: &'a ToolChoice, model: &str) -> Result<Option<Choice<'a>>, LlmError> {
        Ok(match (choice, self.quirks.forced_tools) {
            (ToolChoice::Auto, _) => None,
            (ToolChoice::None, _) => Some(Choice::Word("none")),
            (ToolChoice::Required, ForcedTools::Named | ForcedTools::Required) => {
                Some(Choice::Word(self.quirks.required))
            }
            (ToolChoice::Named(name), ForcedTools::Named) => {
                Some(Choice::Named(NamedChoice::Function { function: Named { name } }))
            }
            (ToolChoice::Named(_), _) | (_, ForcedTools::Never) => {
                let cure = "leave the choice to the model, or choose another provider";
                return Err(unsupported(self.place.name(), model, "tool_choice", cure));
            }
        })
    }

    /// The form of an answer: strict where the server can hold a model to it and the schema can be said so.
    fn form<'a>(&self, output: &'a JsonSchema, model: &str) -> Result<Form<'a>, LlmError> {
        let (schema, strict) = form_schema(&output.schema, self.quirks.strict, model)?;
        Ok(Form { name: &output.name, description: output.description.as_deref(), schema, strict })
    }

    /// A tool whose arguments are the answer, for servers without answers of a schema.
    fn by_tool<'a>(&self, plan: &mut Plan<'a>, output: &'a JsonSchema, model: &str) -> Result<(), LlmError> {
        if self.quirks.forced_tools != ForcedTools::Named || !self.quirks.tools || !plan.tools.is_empty() {
            let cure = "ask for JSON with the schema in the prompt, or choose another provider";
            return Err(unsupported(self.place.name(), model, "schema", cure));
        }
        let parameters = Cow::Borrowed(&output.schema);
        if parameters.get("type").is_none_or(|kind| kind != "object") {
            let cure =
                "its answer is put together from the arguments of a tool, so the schema has to be that of an object";
            return Err(unsupported(self.place.name(), model, "schema", cure));
        }
        let (name, description) = (&*output.name, output.description.as_deref().unwrap_or_default());
        plan.tools = vec![Declared::Function { function: Function { name, description, parameters, strict: None } }];
        plan.tool_choice = Some(Choice::Named(NamedChoice::Function { function: Named { name } }));
        Ok(())
    }
}

/// The schema of an answer as it is sent, and whether the model is held to it: where the server can, and where the schema can
/// be said in its narrower words. Both of OpenAI's protocols take the same.
pub(in crate::provider) fn form_schema<'a>(
    schema: &'a Value,
    can_be_strict: bool,
    model: &str,
) -> Result<(Cow<'a, Value>, Option<bool>), LlmError> {
    if !can_be_strict {
        return Ok((Cow::Borrowed(schema), None));
    }
    match openai_strict(schema) {
        Ok(strict) => Ok((Cow::Owned(strict), Some(true))),
        Err(_) if schema.get("type").is_some_and(|kind| kind == "object") => Ok((Cow::Borrowed(schema), Some(false))),
        Err(inexpressible) => Err(inexpressible.refuse("output", model)),
    }
}
