//! A request in this protocol's words.

use super::Ollama;
use super::messages::{Message, messages};
use crate::LlmError;
use crate::chat::{Effort, Output, Reasoning, Request, Sampling, Tool, ToolChoice};
use crate::provider::refusal::{check_range, unsupported};
use crate::provider::{EncodeContext, HttpRequest, json, schema};
use serde::Serialize;
use serde_json::Value;

const NAME: &str = "ollama";
/// Objects of which `extra` may add a field and keep the others.
const NESTED: &[&str] = &["options"];

pub(super) fn encode(ollama: &Ollama, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
    let sampling = &request.sampling;
    check_range(NAME, "temperature", sampling.temperature, f64::MAX)?;
    check_range(NAME, "top_p", sampling.top_p, 1.0)?;
    let (url, headers) = ollama.endpoint.request_line()?;
    let body = Body {
        model: cx.model,
        messages: messages(request, cx.model)?,
        tools: tools(request, cx.model)?,
        think: request.reasoning.map(|reasoning| think(ollama, reasoning, cx.model)).transpose()?,
        format: format(&request.output, cx.model)?,
        options: Options::of(sampling),
        stream: cx.stream,
    };
    let body = json::write(&body, &request.extra, NESTED, json::capacity(request))?;
    Ok(HttpRequest::post(url, headers, body))
}

/// The tools of a request. The protocol has no word for whether they are to be called: those that may not be are left out.
fn tools<'a>(request: &'a Request, model: &str) -> Result<Vec<Declared<'a>>, LlmError> {
    let cure = "the protocol has no word for it";
    match request.tool_choice {
        _ if request.tools.is_empty() => return Ok(Vec::new()),
        ToolChoice::None => return Ok(Vec::new()),
        ToolChoice::Auto => {}
        ToolChoice::Named(_) | ToolChoice::Required => return Err(unsupported(NAME, model, "tool_choice", cure)),
    }
    if request.parallel_tool_calls == Some(false) {
        return Err(unsupported(NAME, model, "parallel_tool_calls", cure));
    }
    Ok(request.tools.iter().map(|function| Declared { kind: "function", function: function.into() }).collect())
}

fn think(ollama: &Ollama, reasoning: Reasoning, model: &str) -> Result<Think, LlmError> {
    let effort = match reasoning {
        Reasoning::Off => {
            let name = model.rsplit_once('/').map_or(model, |(_, name)| name);
            if ollama.always_thinking.iter().any(|stem| name.starts_with(&**stem)) {
                let cure = "it always thinks; ask for Effort::Low, or choose another model";
                return Err(unsupported(NAME, model, "reasoning off", cure));
            }
            return Ok(Think::Switch(false));
        }
        Reasoning::Budget(budget) => ollama.budgets.effort(budget),
        Reasoning::Effort(effort) => effort,
    };
    Ok(Think::Level(match effort {
        Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::XHigh | Effort::Max => "max",
    }))
}

fn format(output: &Output, model: &str) -> Result<Option<Value>, LlmError> {
    match output {
        Output::Json => Ok(Some("json".into())),
        Output::Schema(output) => {
            schema::ollama(&output.schema).map(Some).map_err(|inexpressible| inexpressible.refuse("output", model))
        }
        Output::Text => Ok(None),
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Declared<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Think>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Options<'a>>,
    /// Left out, it would mean yes.
    stream: bool,
}

#[derive(Serialize)]
struct Declared<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> From<&'a Tool> for Function<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self { name: &tool.name, description: &tool.description, parameters: &tool.parameters }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Think {
    Level(&'static str),
    Switch(bool),
}

#[derive(Serialize)]
struct Options<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

impl<'a> Options<'a> {
    fn of(sampling: &'a Sampling) -> Option<Self> {
        let Sampling { temperature, top_p, max_tokens, stop, seed } = sampling;
        (!sampling.is_unset()).then_some(Self {
            temperature: *temperature,
            top_p: *top_p,
            num_predict: *max_tokens,
            stop,
            seed: *seed,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::ErrorCode;
    use crate::chat::{
        Content, Effort, JsonSchema, Media, Opaque, Output, Part, Reasoning, Request, Sampling, Tool, ToolCall,
        ToolChoice, ToolResult, Turn,
    };
    use crate::provider::{Auth, EncodeContext, Ollama, Provider};
    use crate::record::Issues;
    use serde_json::{Value, json};

    #[test]
    fn requests_are_written_as_in_the_fixtures() {
        let plain = Request::user("Hello");
        let full = Request {
            system: Some("Be brief.".into()),
            history: vec![Turn::user("Hi"), Turn::user("You there?"), Turn::assistant("Hello")],
            sampling: Sampling::new().temperature(0.2).top_p(0.9).max_tokens(256).stop(["END"]).seed(7),
            ..Request::user("Bye")
        };
        let mut extra = Request { sampling: Sampling::new().temperature(0.2).seed(7), ..Request::user("Hello") };
        extra.extra.insert("keep_alive".into(), "5m".into());
        extra.extra.insert("options".into(), json!({"num_ctx": 8192, "seed": 8}));
        for (request, fixture) in [
            (&plain, include_str!("../../../fixtures/ollama/text.request.json")),
            (&full, include_str!("../../../fixtures/ollama/history_and_options.request.json")),
            (&extra, include_str!("../../../fixtures/ollama/extra_options.request.json")),
        ] {
            let http = Ollama::new().encode(request, &EncodeContext::new("example:8b")).unwrap();
            let body: Value = serde_json::from_slice(&http.body).unwrap();
            assert_eq!(body, serde_json::from_str::<Value>(fixture).unwrap());
            assert_eq!(http.url.as_str(), "http://localhost:11434/api/chat");
        }
    }

    fn written(ollama: &Ollama, model: &str, request: &Request) -> Result<Value, String> {
        match ollama.encode(request, &EncodeContext::new(model)) {
            Ok(http) => Ok(serde_json::from_slice(&http.body).unwrap()),
            Err(error) => match error.issues() {
                Some(Issues::Capability { capability, .. }) => Err(capability.clone()),
                _ => Err(error.to_string()),
            },
        }
    }

    #[test]
    fn tools_calls_and_results_are_written_as_in_the_fixture() {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let said = vec![
            Part::Reasoning(Opaque::new("ollama", "Look up both.")),
            Part::Reasoning(Opaque::new("anthropic", json!({"of": "another"}))),
            Part::text("Let me look."),
        ];
        let calls = vec![
            ToolCall::new("call_1", "get_weather", json!({"city": "Oslo"})),
            ToolCall::new("call_2", "get_time", Value::Null),
        ];
        let results =
            [ToolResult::json("call_1", json!({"temp_c": 4})), ToolResult::error("call_2", "station offline")];
        let request = Request {
            system: Some("Be brief.".into()),
            history: vec![
                Turn::user("Oslo or Lima?"),
                Turn::Assistant { content: Some(Content::Parts(said)), tool_calls: calls },
                Turn::tool_results(results),
            ],
            tools: vec![Tool::new("get_weather", "Current weather").parameters(schema), Tool::new("get_time", "")],
            reasoning: Some(Reasoning::Budget(16_000)),
            ..Request::user("Please compare.")
        };
        let fixture = include_str!("../../../fixtures/ollama/tools.request.json");
        assert_eq!(written(&Ollama::new(), "example:8b", &request), Ok(serde_json::from_str(fixture).unwrap()));
        let none = Request { tool_choice: ToolChoice::None, ..request.clone() };
        assert_eq!(written(&Ollama::new(), "m", &none).unwrap().get("tools"), None);
        let forced = Request { tool_choice: ToolChoice::Required, ..request.clone() };
        assert_eq!(written(&Ollama::new(), "m", &forced), Err("tool_choice".to_owned()));
        let single = Request { parallel_tool_calls: Some(false), ..request };
        assert_eq!(written(&Ollama::new(), "m", &single), Err("parallel_tool_calls".to_owned()));
    }

    #[test]
    fn parts_and_a_schema_are_written_as_in_the_fixture() {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let parts = vec![
            Part::text("What is this?"),
            Part::image("image/png", b"hi"),
            Part::text("And that?"),
            Part::image("image/png", b"ho"),
        ];
        let request = Request {
            output: Output::Schema(JsonSchema::new("place", schema)),
            reasoning: Some(Reasoning::Off),
            ..Request::user(parts)
        };
        let http = Ollama::new().encode(&request, &EncodeContext::new("example:8b").streaming()).unwrap();
        let fixture = include_str!("../../../fixtures/ollama/parts_and_schema.request.json");
        assert_eq!(
            serde_json::from_slice::<Value>(&http.body).unwrap(),
            serde_json::from_str::<Value>(fixture).unwrap()
        );
        let json = Request { output: Output::Json, ..Request::user("Hi") };
        assert_eq!(written(&Ollama::new(), "m", &json).unwrap()["format"], "json");
        for (part, named) in [
            (Part::image_url("https://example.com/cat.png"), "image_urls"),
            (Part::Audio(Media::bytes("audio/wav", b"hi")), "audio"),
            (Part::document("d", Media::bytes("text/plain", b"hi")), "documents"),
        ] {
            assert_eq!(written(&Ollama::new(), "m", &Request::user(part)), Err(named.to_owned()));
        }
    }

    #[test]
    fn reasoning_is_a_level_or_a_switch() {
        let asking = |reasoning: Reasoning| Request { reasoning: Some(reasoning), ..Request::user("Hi") };
        for (reasoning, think) in [
            (Reasoning::Off, json!(false)),
            (Effort::Minimal.into(), json!("low")),
            (Effort::High.into(), json!("high")),
            (Effort::XHigh.into(), json!("max")),
            (Reasoning::Budget(5_000), json!("low")),
        ] {
            assert_eq!(written(&Ollama::new(), "m", &asking(reasoning)).unwrap()["think"], think);
        }
        let off = asking(Reasoning::Off);
        assert_eq!(written(&Ollama::new(), "someone/gpt-oss:20b", &off), Err("reasoning off".to_owned()));
        assert!(written(&Ollama::new().always_thinking(["thinker"]), "gpt-oss:20b", &off).is_ok());
    }

    #[test]
    fn a_value_out_of_range_is_named() {
        for (sampling, named) in [
            (Sampling::new().temperature(-1.0), "temperature -1 is out of range; ollama takes 0 or more"),
            (Sampling::new().temperature(f64::INFINITY), "temperature inf is out of range"),
            (Sampling::new().top_p(1.5), "top_p 1.5 is out of range; ollama takes 0 to 1"),
        ] {
            let request = Request { sampling, ..Request::user("Hi") };
            let error = Ollama::new().encode(&request, &EncodeContext::new("m")).unwrap_err();
            assert_eq!(error.code(), Some(ErrorCode::InvalidCall));
            assert!(error.to_string().contains(named), "{error}");
        }
    }

    #[test]
    fn a_key_is_optional() {
        assert!(matches!(Ollama::new().auth(), Auth::None));
        let cloud = Ollama::new().base_url("https://cloud.example/api").api_key("k-secret");
        assert!(matches!(cloud.auth(), Auth::Header(header) if header.name() == "authorization"));
        assert!(!format!("{cloud:?}").contains("k-secret"));
        let http = cloud.encode(&Request::user("Hi"), &EncodeContext::new("m")).unwrap();
        assert_eq!(http.url.as_str(), "https://cloud.example/api/chat");
    }
}
