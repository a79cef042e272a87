//! A request in the words of the Responses API.

mod input;

use crate::LlmError;
use crate::chat::{JsonSchema, Output, Request, Setting, Tool, ToolChoice};
use crate::provider::openai::{
    EffortField, LONGEST_NAME, MediaRules, ModelFamily, Place, UNKNOWN, form_schema, media_len,
};
use crate::provider::refusal::{check_tool_names, first_set, unsupported};
use crate::provider::schema::openai_strict;
use crate::provider::{Capabilities, EncodeContext, HttpRequest, json};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// The highest `temperature` that OpenAI documents.
const MAX_TEMPERATURE: f64 = 2.0;
/// What chat completions have and this protocol has not.
const MISSING: &[Setting] = &[Setting::Stop, Setting::Seed];
/// OpenAI documents that sampling settings beside reasoning are refused unless its effort is `none`.
const EFFORT: EffortField = EffortField(&["reasoning", "effort"]);

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    input: Vec<input::Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Declared<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

/// A tool: flat, where chat completions nest it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Declared<'a> {
    Function {
        name: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        parameters: Cow<'a, Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Named(Named<'a>),
    Word(&'static str),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Named<'a> {
    Function { name: &'a str },
}

#[derive(Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonObject,
    JsonSchema {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        schema: Cow<'a, Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

#[derive(Serialize)]
struct Reasoning {
    effort: &'static str,
}

pub(super) fn capabilities(family: Option<&ModelFamily>) -> Capabilities {
    let family = family.unwrap_or(&UNKNOWN);
    Capabilities {
        audio: false, // the protocol has no part for it
        documents: family.vision,
        images: family.vision,
        image_urls: family.vision,
        reasoning: !family.efforts.is_empty(),
        ..Capabilities::all()
    }
}

pub(super) fn encode(place: &Place, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
    let model = cx.model;
    if let Some(setting) = first_set(&request.sampling, MISSING) {
        let cure = "the protocol has none; leave it out, or use chat completions";
        return Err(unsupported(place.name(), model, setting, cure));
    }
    let family = place.family(model).unwrap_or(&UNKNOWN);
    place.check_sampling(request, model, family, MAX_TEMPERATURE, &EFFORT)?;
    check_tool_names(place.name(), model, &request.tools, LONGEST_NAME)?;
    MediaRules { provider: place.name(), model, document_urls: true, in_results: true }.check(request)?;
    let (url, headers) = place.request_line()?;
    let has_tools = !request.tools.is_empty();
    let effort = request.reasoning.map(|reasoning| family.levels().word(reasoning, place, model)).transpose()?;
    let body = Body {
        model,
        instructions: request.system.as_deref(),
        input: input::items(request, model),
        tools: request.tools.iter().map(|tool| declared(tool, model)).collect::<Result<_, _>>()?,
        tool_choice: choice(&request.tool_choice).filter(|_| has_tools),
        parallel_tool_calls: request.parallel_tool_calls.filter(|_| has_tools),
        text: format(&request.output, model)?.map(|format| Text { format }),
        reasoning: effort.flatten().map(|effort| Reasoning { effort }),
        max_output_tokens: request.sampling.max_tokens,
        temperature: request.sampling.temperature,
        top_p: request.sampling.top_p,
        stream: cx.stream,
    };
    let capacity = json::capacity(request) + media_len(request);
    let body = json::write(&body, &request.extra, &["reasoning", "text"], capacity)?;
    Ok(HttpRequest::post(url, headers, body))
}

fn declared<'a>(tool: &'a Tool, model: &str) -> Result<Declared<'a>, LlmError> {
    let parameters = if tool.strict == Some(true) {
        let strict = openai_strict(&tool.parameters);
        Cow::Owned(strict.map_err(|inexpressible| inexpressible.refuse(&format!("tool {:?}", tool.name), model))?)
    } else {
        Cow::Borrowed(&tool.parameters)
    };
    Ok(Declared::Function { name: &tool.name, description: &tool.description, parameters, strict: tool.strict })
}

fn choice(choice: &ToolChoice) -> Option<Choice<'_>> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::Named(name) => Some(Choice::Named(Named::Function { name })),
        ToolChoice::None => Some(Choice::Word("none")),
        ToolChoice::Required => Some(Choice::Word("required")),
    }
}

fn format<'a>(output: &'a Output, model: &str) -> Result<Option<Format<'a>>, LlmError> {
    Ok(match output {
        Output::Json => Some(Format::JsonObject),
        Output::Schema(JsonSchema { name, description, schema }) => {
            let (schema, strict) = form_schema(schema, true, model)?;
            Some(Format::JsonSchema { name, description: description.as_deref(), schema, strict })
        }
        Output::Text => None,
    })
}

#[cfg(test)]
mod tests {
    use crate::chat::{
        Content, Effort, JsonSchema, Media, Output, Part, Reasoning, Reply, Request, Sampling, Tool, ToolCall,
        ToolChoice, ToolResult, Turn,
    };
    use crate::provider::stream::testing::Read;
    use crate::provider::{EncodeContext, Framing, OpenAiResponses, Provider};
    use crate::{ErrorCode, LlmError};
    use serde_json::{Value, json};

    fn encode(model: &str, request: &Request) -> Result<Value, LlmError> {
        let http = OpenAiResponses::new("k").encode(request, &EncodeContext::new(model))?;
        assert_eq!(http.url.as_str(), "https://api.openai.com/v1/responses");
        Ok(serde_json::from_slice(&http.body).unwrap())
    }

    #[test]
    fn requests_are_written_as_in_the_fixtures() {
        let full = Request {
            system: Some("Be brief.".into()),
            history: vec![Turn::user("Hi"), Turn::assistant("Hello")],
            sampling: Sampling::new().temperature(0.5).top_p(0.9).max_tokens(100),
            ..Request::user("Bye")
        };
        let mut stateless = Request::user("Hi");
        stateless.extra.insert("store".into(), false.into());
        stateless.extra.insert("reasoning".into(), json!({"effort": "low", "summary": "auto"}));
        for (model, request, golden) in [
            ("gpt-6-sol", &Request::user("Hi"), include_str!("../../../fixtures/responses/text.request.json")),
            ("gpt-4.1", &full, include_str!("../../../fixtures/responses/history_and_sampling.request.json")),
            ("gpt-6-sol", &stateless, include_str!("../../../fixtures/responses/extra_fields.request.json")),
        ] {
            assert_eq!(encode(model, request).unwrap(), serde_json::from_str::<Value>(golden).unwrap());
        }
    }

    fn weather() -> Tool {
        Tool::new("get_weather", "The weather at a place").parameters(json!({
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        }))
    }

    /// The reply of a fixture that is a stream, as a turn.
    fn reasoned() -> Turn {
        let body = include_str!("../../../fixtures/responses/reasoning_and_call.sse");
        let read = Read::once(Framing::Sse, body, super::super::stream::ResponseStream::default());
        read.reply().unwrap().to_turn()
    }

    fn round(turn: Turn) -> Request {
        let result = Turn::tool_results([ToolResult::error("call_fx10", "no such station")]);
        Request { history: vec![Turn::user("What is the weather in Oslo?"), turn, result], ..Request::default() }
    }

    #[test]
    fn a_round_of_tools_is_written_as_in_the_fixture() {
        let place = json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "country": {"type": "string"}},
            "required": ["city"],
        });
        let request = Request {
            tools: vec![weather().strict(true)],
            tool_choice: ToolChoice::Required,
            parallel_tool_calls: Some(true),
            output: Output::Schema(JsonSchema::new("place", place)),
            reasoning: Some(Effort::Max.into()),
            ..round(reasoned())
        };
        let golden = include_str!("../../../fixtures/responses/tool_round.request.json");
        assert_eq!(encode("gpt-6-sol", &request).unwrap(), serde_json::from_str::<Value>(golden).unwrap());
    }

    #[test]
    fn parts_are_written_as_in_the_fixture() {
        let picture = || Part::image_base64("image/png", "aGVsbG8=");
        let request = Request {
            history: vec![
                Turn::user([
                    Part::text("What are these?"),
                    picture(),
                    Part::image_url("https://host/cat.jpg"),
                    Part::document("report.pdf", Media::base64("application/pdf", "aGVsbG8=")),
                    Part::document("report.pdf", Media::url("https://host/report.pdf")),
                ]),
                Reply::new("Let me look.").with_tool_calls([ToolCall::new("call_1", "look", json!({}))]).to_turn(),
                Turn::tool_results([ToolResult::new("call_1", [Part::text("This:"), picture()])]),
            ],
            ..Request::default()
        };
        let golden = include_str!("../../../fixtures/responses/parts.request.json");
        assert_eq!(encode("gpt-4.1", &request).unwrap(), serde_json::from_str::<Value>(golden).unwrap());
        let sound = Request::user(Part::Audio(Media::url("https://host/a.mp3")));
        assert_eq!(encode("gpt-4.1", &sound).unwrap_err().code(), Some(ErrorCode::UnsupportedCapability));
    }

    /// The types of the items of a request, and whether each has an id of its own.
    fn kinds(model: &str, request: &Request) -> Vec<(String, bool)> {
        let body = encode(model, request).unwrap();
        let items = body["input"].as_array().unwrap().iter();
        items.map(|item| (item["type"].as_str().unwrap().to_owned(), item.get("id").is_some())).collect()
    }

    #[test]
    fn reasoning_goes_back_with_what_it_led_to_or_not_at_all() {
        let known =
            |kinds: &[(&str, bool)]| kinds.iter().map(|(kind, id)| ((*kind).to_owned(), *id)).collect::<Vec<_>>();
        let whole = known(&[
            ("message", false),
            ("reasoning", true),
            ("message", true),
            ("function_call", true),
            ("function_call_output", false),
        ]);
        let plain =
            known(&[("message", false), ("message", false), ("function_call", false), ("function_call_output", false)]);
        assert_eq!(kinds("gpt-6-sol", &round(reasoned())), whole);
        assert_eq!(kinds("gpt-6-sol-2026-10-01", &round(reasoned())), whole);
        // It is bound to its model.
        for other in ["gpt-6-luna", "gpt-6", "gpt-6-sol-mini"] {
            assert_eq!(kinds(other, &round(reasoned())), plain, "{other}");
        }
        // What is not stored goes back only where it is sealed.
        let mut stateless = round(reasoned());
        stateless.extra.insert("store".into(), false.into());
        assert_eq!(kinds("gpt-6-sol", &stateless), whole);
        if let Turn::Assistant { content: Some(Content::Parts(parts)), .. } = &mut stateless.history[1]
            && let Part::Reasoning(opaque) = &mut parts[0]
        {
            opaque.data[0].as_object_mut().unwrap().remove("encrypted_content");
        }
        assert_eq!(kinds("gpt-6-sol", &stateless), plain);
        // Without what it led to, it stays behind.
        let Turn::Assistant { content, .. } = reasoned() else { unreachable!() };
        let Some(Content::Parts(mut parts)) = content else { unreachable!() };
        parts.truncate(1);
        let alone = Request { history: vec![Turn::assistant(parts)], ..Request::user("And?") };
        assert_eq!(kinds("gpt-6-sol", &alone), known(&[("message", false)]));
    }

    #[test]
    fn words_that_were_changed_are_sent_as_they_are_now() {
        let Turn::Assistant { content: Some(Content::Parts(mut parts)), tool_calls, .. } = reasoned() else {
            unreachable!()
        };
        parts[1] = Part::text("Another moment, please.");
        let mut changed = Turn::assistant(parts);
        if let Turn::Assistant { tool_calls: calls, .. } = &mut changed {
            *calls = tool_calls;
        }
        let body = encode("gpt-6-sol", &round(changed)).unwrap();
        assert_eq!(body["input"][2]["content"][0]["text"], "Another moment, please.");
    }

    #[test]
    fn what_the_protocol_has_not_is_refused() {
        for sampling in [Sampling::new().stop(["END"]), Sampling::new().seed(7)] {
            let error = encode("gpt-4.1", &Request { sampling, ..Request::user("Hi") }).unwrap_err();
            assert_eq!(error.code(), Some(ErrorCode::UnsupportedCapability));
            assert!(error.to_string().contains("the protocol has none"), "{error}");
        }
    }

    #[test]
    fn sampling_goes_with_effort_none_alone() {
        let mut request = Request { sampling: Sampling::new().temperature(0.2), ..Request::user("Hi") };
        let error = encode("gpt-6-sol", &request).unwrap_err();
        assert!(error.to_string().contains("switch reasoning off"), "{error}");
        // The field of the other protocol does not count.
        request.extra.insert("reasoning_effort".into(), "none".into());
        assert!(encode("gpt-6-sol", &request).is_err());
        request.extra.insert("reasoning".into(), json!({"effort": "none"}));
        assert_eq!(encode("gpt-6-sol", &request).unwrap()["temperature"], 0.2);
        assert!(encode("gpt-6.2-sol", &request).is_err());
        request.extra.clear();
        request.reasoning = Some(Reasoning::Off);
        assert_eq!(encode("gpt-6-sol", &request).unwrap()["reasoning"], json!({"effort": "none"}));
    }
}
