//! Requests, as golden JSON and refused.

use crate::chat::{
    Document, Effort, EffortBudgets, JsonSchema, Media, Opaque, Output, Part, Reasoning, Request, Sampling, Tool,
    ToolCall, ToolChoice, ToolResult, Turn,
};
use crate::provider::{EncodeContext, OpenAi, OpenAiCompatible, Preset, Provider, Quirks, ReasoningForm, TokenField};
use crate::{ErrorCode, ErrorKind, LlmError};
use serde_json::{Value, json};

fn encode(provider: &impl Provider, model: &str, request: &Request) -> Result<Value, LlmError> {
    let http = provider.encode(request, &EncodeContext::new(model))?;
    Ok(serde_json::from_slice(&http.body).unwrap())
}

fn full() -> Request {
    Request {
        system: Some("Be brief.".into()),
        history: vec![Turn::user("Hi"), Turn::assistant("Hello")],
        sampling: Sampling::new().temperature(0.7).top_p(0.9).max_tokens(100).stop(["END"]).seed(7),
        ..Request::user("Bye")
    }
}

#[test]
fn requests_are_written_as_in_the_fixtures() {
    let mut reasoning = Request { system: Some("Be brief.".into()), ..Request::user("Hi") };
    reasoning.sampling = Sampling::new().max_tokens(50).temperature(0.2);
    reasoning.extra.insert("reasoning_effort".into(), "none".into());
    for (model, request, golden) in [
        ("gpt-5-mini", &Request::user("Hi"), include_str!("../../../../fixtures/openai/text.request.json")),
        ("gpt-4.1", &full(), include_str!("../../../../fixtures/openai/history_and_sampling.request.json")),
        ("gpt-6-luna", &reasoning, include_str!("../../../../fixtures/openai/reasoning_model.request.json")),
    ] {
        let body = encode(&OpenAi::new("k"), model, request).unwrap();
        assert_eq!(body, serde_json::from_str::<Value>(golden).unwrap());
    }
}

#[test]
fn the_model_that_was_asked_first_does_not_decide_for_the_next() {
    let (openai, mut request) = (OpenAi::new("k"), Request::user("Hi"));
    request.sampling.max_tokens = Some(5);
    for (model, field) in
        [("gpt-4.1", "max_tokens"), ("gpt-5-mini", "max_completion_tokens"), ("gpt-4.1", "max_tokens")]
    {
        assert_eq!(encode(&openai, model, &request).unwrap()[field], 5, "{model}");
    }
}

#[test]
fn a_reasoning_model_has_its_own_fields_and_refusals() {
    let openai = OpenAi::new("k");
    let mut request = Request { system: Some("S".into()), ..Request::user("Hi") };
    request.sampling.max_tokens = Some(50);
    let body = encode(&openai, "gpt-5-mini", &request).unwrap();
    assert_eq!(body["max_completion_tokens"], 50);
    assert_eq!(body["messages"][0]["role"], "developer");

    request.sampling.temperature = Some(0.2);
    let error = encode(&openai, "gpt-5-mini", &request).unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UnsupportedCapability));
    assert!(error.to_string().contains("gpt-5-mini does not take temperature"), "{error}");

    assert!(encode(&openai, "gpt-5.4", &request).is_err());
    request.extra.insert("reasoning_effort".into(), "none".into());
    assert_eq!(encode(&openai, "gpt-5.4", &request).unwrap()["temperature"], 0.2);
}

#[test]
fn a_value_out_of_range_is_named() {
    for (temperature, top_p) in [(Some(2.5), None), (Some(f64::NAN), None), (None, Some(1.5)), (Some(-0.1), None)] {
        let mut request = Request::user("Hi");
        request.sampling.temperature = temperature;
        request.sampling.top_p = top_p;
        let error = encode(&OpenAi::new("k"), "gpt-4.1", &request).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidParams, Some(ErrorCode::InvalidCall)));
        assert!(error.to_string().contains("out of range; openai takes 0 to"), "{error}");
    }
    let request = Request { sampling: Sampling::new().stop(["a", "b", "c", "d", "e"]), ..Request::user("Hi") };
    assert!(encode(&OpenAi::new("k"), "gpt-4.1", &request).is_err());
}

#[test]
fn extra_fields_come_last() {
    let mut request = full();
    request.extra.insert("seed".into(), 8.into());
    request.extra.insert("verbosity".into(), "low".into());
    let body = encode(&OpenAi::new("k"), "gpt-4.1", &request).unwrap();
    assert_eq!((&body["seed"], &body["verbosity"]), (&json!(8), &json!("low")));
}

#[test]
fn quirks_are_data() {
    let quirks =
        Quirks::none().token_field(TokenField::MaxCompletionTokens).seed_field("random_seed").max_temperature(1.0);
    let server = OpenAiCompatible::new("http://localhost:8000/v1").quirks(quirks);
    let mut request = full();
    let body = encode(&server, "any", &request).unwrap();
    assert_eq!((&body["max_completion_tokens"], &body["random_seed"]), (&json!(100), &json!(7)));
    request.sampling.temperature = Some(1.5);
    assert!(encode(&server, "any", &request).is_err());
}

#[test]
fn the_path_of_the_base_url_is_kept() {
    for (base, url) in [
        ("https://h/v3/openai", "https://h/v3/openai/chat/completions"),
        ("https://h/api/paas/v4/", "https://h/api/paas/v4/chat/completions"),
        ("https://h", "https://h/chat/completions"),
        ("https://h/v1?api-version=1", "https://h/v1/chat/completions?api-version=1"),
    ] {
        let http = OpenAiCompatible::new(base).encode(&Request::user("Hi"), &EncodeContext::new("m")).unwrap();
        assert_eq!(http.url.as_str(), url);
    }
}

#[test]
fn a_bad_url_is_named_without_its_secrets() {
    for url in
        ["nonsense", "https://{resource}.example.com/v1", "ftp://host/v1", "http://user:pass-word@", "http://:k@:x/"]
    {
        let error = OpenAiCompatible::new(url).check().unwrap_err().to_string();
        assert!(error.contains("base_url"), "{error}");
        assert!(!error.contains("pass-word"), "{error}");
    }
}

fn weather() -> Tool {
    Tool::new("get_weather", "The weather at a place").parameters(json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    }))
}

fn place() -> Output {
    Output::Schema(JsonSchema::new(
        "place",
        json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "country": {"type": "string"}},
            "required": ["city"],
        }),
    ))
}

fn call(id: &str, city: &str) -> ToolCall {
    ToolCall::new(id, "get_weather", json!({"city": city}))
}

macro_rules! golden {
    ($name:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!("../../../../fixtures/", $name, ".request.json"))).unwrap()
    };
}

#[test]
fn a_round_of_tools_is_written_as_in_the_fixture() {
    let said =
        crate::chat::Reply::new("One moment.").with_tool_calls([call("call_a1", "Oslo"), call("call_a2", "Lima")]);
    let request = Request {
        history: vec![
            Turn::user("What is the weather in Oslo and Lima?"),
            said.to_turn(),
            Turn::tool_results([
                ToolResult::new("call_a1", "4 degrees, rain"),
                ToolResult::error("call_a2", "no such station"),
            ]),
            Turn::assistant_tool_calls([ToolCall::new("call_a3", "now", json!({}))]),
            Turn::tool_results([ToolResult::json("call_a3", json!({"time": "12:00"}))]),
        ],
        tools: vec![weather().strict(true), Tool::new("now", "")],
        tool_choice: ToolChoice::Named("now".into()),
        parallel_tool_calls: Some(false),
        ..Request::default()
    };
    assert_eq!(encode(&OpenAi::new("k"), "gpt-4.1", &request).unwrap(), golden!("openai/tool_round"));
    // Without tools, nothing is said of their choice.
    let request = Request { tools: Vec::new(), ..request };
    let body = encode(&OpenAi::new("k"), "gpt-4.1", &request).unwrap();
    assert!(["tools", "tool_choice", "parallel_tool_calls"].iter().all(|field| body.get(field).is_none()), "{body}");
}

#[test]
fn parts_are_written_as_in_the_fixtures() {
    let request = Request::user([
        Part::text("What are these?"),
        Part::image_base64("image/png", "aGVsbG8="),
        Part::image_url("https://host/cat.jpg"),
        Part::document("report.pdf", Media::base64("application/pdf", "aGVsbG8=")),
    ]);
    assert_eq!(encode(&OpenAi::new("k"), "gpt-4.1", &request).unwrap(), golden!("openai/parts"));
    let request = Request::user([Part::text("Who is this?"), Part::Audio(Media::base64("audio/mpeg", "aGVsbG8="))]);
    assert_eq!(encode(&OpenAi::new("k"), "gpt-4o-audio-preview", &request).unwrap(), golden!("openai/sound"));
    let one = Request::user(Part::text("Hi"));
    assert_eq!(encode(&OpenAi::new("k"), "gpt-4.1", &one).unwrap()["messages"][0]["content"], "Hi");
}

#[test]
fn a_schema_and_an_effort_are_written_as_in_the_fixture() {
    let Output::Schema(schema) = place() else { unreachable!() };
    let request = Request {
        system: Some("Extract the place.".into()),
        output: Output::Schema(schema.description("A place")),
        reasoning: Some(Effort::Low.into()),
        sampling: Sampling::new().max_tokens(200),
        ..Request::user("We met in Oslo.")
    };
    let body = encode(&OpenAi::new("k"), "gpt-6-luna", &request).unwrap();
    assert_eq!(body, golden!("openai/schema_and_reasoning"));
}

#[test]
fn what_the_protocol_has_no_words_for_is_refused() {
    let document_url = Part::Document(Document { name: None, media: Media::url("https://host/a.pdf") });
    let picture = || Part::image_base64("image/png", "aGVsbG8=");
    let with_result = |content: Vec<Part>| Request {
        history: vec![
            Turn::assistant_tool_calls([call("1", "Oslo")]),
            Turn::tool_results([ToolResult::new("1", content)]),
        ],
        ..Request::default()
    };
    for (request, what) in [
        (Request::user(document_url), "a document by its URL"),
        (Request::user(Part::Audio(Media::url("https://host/a.mp3"))), "sound by its URL"),
        (Request::user(Part::Audio(Media::base64("audio/ogg", "aGVsbG8="))), "sound of type audio/ogg"),
        (with_result(vec![Part::text("This:"), picture()]), "a picture in the result of a tool"),
        (
            Request {
                tools: vec![Tool::new("get weather", "")],
                reasoning: Some(Reasoning::Off),
                ..Request::user("Hi")
            },
            "\"get weather\"",
        ),
        (Request { tools: vec![weather()], ..Request::user("Hi") }, "tools beside reasoning"),
        (
            Request {
                output: Output::Schema(JsonSchema::new("map", json!({"type": "array", "items": {"type": "string"}}))),
                ..Request::user("Hi")
            },
            "output has a schema",
        ),
    ] {
        let error = encode(&OpenAi::new("k"), "gpt-5.6-terra", &request).unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::UnsupportedCapability), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
    let without_reasoning = Request { tools: vec![weather()], reasoning: Some(Reasoning::Off), ..Request::user("Hi") };
    let body = encode(&OpenAi::new("k"), "gpt-5.6-terra", &without_reasoning).unwrap();
    assert_eq!(body["reasoning_effort"], "none");
}

#[test]
fn a_schema_that_cannot_be_strict_is_sent_as_it_is() {
    let map = json!({"type": "object", "additionalProperties": {"type": "number"}});
    let request = Request { output: Output::Schema(JsonSchema::new("map", map.clone())), ..Request::user("Hi") };
    let body = encode(&OpenAi::new("k"), "gpt-4.1", &request).unwrap();
    assert_eq!(body["response_format"]["json_schema"], json!({"name": "map", "schema": map, "strict": false}));
    let server = OpenAiCompatible::new("http://host/v1");
    let request = Request { output: place(), ..Request::user("Hi") };
    let Output::Schema(schema) = &request.output else { unreachable!() };
    let body = encode(&server, "m", &request).unwrap();
    assert_eq!(body["response_format"]["json_schema"], json!({"name": "place", "schema": schema.schema}));
}

#[test]
fn an_effort_becomes_the_nearest_that_the_model_takes() {
    let (minimal, max) = (Reasoning::Effort(Effort::Minimal), Reasoning::Effort(Effort::Max));
    for (model, reasoning, word) in [
        ("o3", minimal, Ok("low")),
        ("o3", max, Ok("high")),
        ("o3", Reasoning::Off, Err("reasoning switched off")),
        ("gpt-5-mini", minimal, Ok("minimal")),
        ("gpt-5.1", max, Ok("high")),
        ("gpt-5.4", max, Ok("xhigh")),
        ("gpt-5.4", Reasoning::Off, Ok("none")),
        ("gpt-6-luna", max, Ok("max")),
        ("gpt-6-astra", max, Ok("xhigh")),
        ("gpt-6-luna", Reasoning::Budget(500), Ok("low")),
        ("gpt-6-luna", Reasoning::Budget(20_000), Ok("medium")),
        ("gpt-4.1", Reasoning::Off, Ok("")),
        ("gpt-4.1", max, Err("does not take reasoning")),
        ("a-new-model", max, Ok("max")),
    ] {
        let request = Request { reasoning: Some(reasoning), ..Request::user("Hi") };
        match (encode(&OpenAi::new("k"), model, &request), word) {
            (Ok(body), Ok(word)) => {
                assert_eq!(body["reasoning_effort"].as_str().unwrap_or_default(), word, "{model} {reasoning:?}");
            }
            (Err(error), Err(what)) => assert!(error.to_string().contains(what), "{error}"),
            (outcome, _) => panic!("{model} {reasoning:?}: {outcome:?}"),
        }
    }
    let generous = OpenAi::new("k").effort_budgets(EffortBudgets::new(10, 20, 30, 40));
    let request = Request { reasoning: Some(Reasoning::Budget(40)), ..Request::user("Hi") };
    assert_eq!(encode(&generous, "gpt-6-luna", &request).unwrap()["reasoning_effort"], "high");
}

#[test]
fn reasoning_is_asked_for_in_the_form_of_the_server() {
    use ReasoningForm::{None, Object, Switch, Thinking};
    let low_or_max = Thinking { efforts: &[Effort::Low, Effort::Max] };
    let budget = Reasoning::Budget(5_000);
    for (form, reasoning, fields) in [
        (Object, Effort::High.into(), json!({"reasoning": {"effort": "high"}})),
        (Object, budget, json!({"reasoning": {"max_tokens": 5_000}})),
        (Object, Reasoning::Off, json!({"reasoning": {"enabled": false}})),
        (low_or_max, Effort::High.into(), json!({"thinking": {"type": "enabled"}, "reasoning_effort": "low"})),
        (Thinking { efforts: &[] }, budget, json!({"thinking": {"type": "enabled"}})),
        (low_or_max, Reasoning::Off, json!({"thinking": {"type": "disabled"}})),
        (Switch, budget, json!({"enable_thinking": true, "thinking_budget": 5_000})),
        (Switch, Effort::Low.into(), json!({"enable_thinking": true, "thinking_budget": 4_096})),
        (Switch, Reasoning::Off, json!({"enable_thinking": false})),
        (None, Reasoning::Off, json!({})),
    ] {
        let server = OpenAiCompatible::new("http://host/v1").quirks(Quirks::none().reasoning(form));
        let request = Request { reasoning: Some(reasoning), ..Request::user("Hi") };
        let Ok(Value::Object(mut body)) = encode(&server, "m", &request) else { panic!("{form:?} {reasoning:?}") };
        body.retain(|name, _| !["model", "messages"].contains(&&**name));
        assert_eq!(Value::Object(body), fields, "{form:?} {reasoning:?}");
    }
}

#[test]
fn deepseek_gets_its_reasoning_back_and_schemas_as_tools() {
    let deepseek = OpenAiCompatible::of(Preset::DEEPSEEK);
    let kept = |protocol: &str| {
        let opaque = Opaque::new(protocol, json!({"reasoning_content": "Ask the tool."}));
        crate::chat::Reply::new("").with_tool_calls([call("call_1", "Oslo")]).with_opaque([opaque]).to_turn()
    };
    let request = |protocol: &str| Request {
        history: vec![
            Turn::user("Hi"),
            Turn::assistant("Hello"),
            Turn::user("What is the weather in Oslo?"),
            kept(protocol),
            Turn::tool_results([ToolResult::new("call_1", "rain")]),
        ],
        reasoning: Some(Effort::High.into()),
        ..Request::default()
    };
    let own = request("chat_completions/deepseek");
    assert_eq!(encode(&deepseek, "deepseek-flash", &own).unwrap(), golden!("compatible/deepseek_round"));
    // Another server's goes to nobody, and an older model takes none.
    let foreign = encode(&deepseek, "deepseek-flash", &request("chat_completions/openrouter")).unwrap();
    assert_eq!(foreign["messages"][3]["reasoning_content"], "");
    let older = encode(&deepseek, "deepseek-reasoner", &own).unwrap();
    assert!(older["messages"][3].get("reasoning_content").is_none(), "{older}");

    let request = Request { output: place(), reasoning: Some(Reasoning::Off), ..Request::user("We met in Oslo.") };
    assert_eq!(encode(&deepseek, "deepseek-flash", &request).unwrap(), golden!("compatible/deepseek_schema"));
    let beside_tools = Request { tools: vec![weather()], ..request };
    assert!(encode(&deepseek, "deepseek-flash", &beside_tools).unwrap_err().to_string().contains("schema"));
}

#[test]
fn ids_of_others_are_made_to_fit_the_same_way_each_time() {
    let request = Request {
        history: vec![
            Turn::assistant_tool_calls([call("call_from_openai", "Oslo"), call("a1B2c3D4e", "Lima")]),
            Turn::tool_results([ToolResult::new("call_from_openai", "rain"), ToolResult::new("a1B2c3D4e", "sun")]),
        ],
        ..Request::default()
    };
    let body = encode(&OpenAiCompatible::of(Preset::MISTRAL), "m", &request).unwrap();
    let calls = &body["messages"][0]["tool_calls"];
    let made = calls[0]["id"].as_str().unwrap();
    assert!(made.len() == 9 && made.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{made}");
    assert_eq!(body["messages"][1]["tool_call_id"], made);
    assert_eq!((&calls[1]["id"], &body["messages"][2]["tool_call_id"]), (&json!("a1B2c3D4e"), &json!("a1B2c3D4e")));
}
