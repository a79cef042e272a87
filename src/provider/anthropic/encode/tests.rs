use crate::chat::{
    Content, Effort, EffortBudgets, JsonSchema, Media, Opaque, Output, Part, Reasoning, Request, Sampling, Tool,
    ToolCall, ToolChoice, ToolResult, Turn,
};
use crate::provider::{
    Anthropic, AnthropicFamily, AnthropicForcedTools, AnthropicSampling, AnthropicThinking, EncodeContext, HttpRequest,
    Provider,
};
use crate::record::Issues;
use crate::{ErrorCode, ErrorKind, LlmError};
use serde_json::{Value, json};

fn send(anthropic: &Anthropic, model: &str, request: &Request) -> Result<HttpRequest, LlmError> {
    anthropic.encode(request, &EncodeContext::new(model))
}

fn body(http: &HttpRequest) -> Value {
    serde_json::from_slice(&http.body).unwrap()
}

#[test]
fn requests_are_written_as_in_the_fixtures() {
    let plain = Request::user("Hello");
    let full = Request {
        system: Some("Be brief.".into()),
        history: vec![Turn::user("Hi"), Turn::assistant("Hello")],
        sampling: Sampling::new().temperature(0.5).top_p(0.9).max_tokens(100).stop(["END", "STOP"]),
        ..Request::user("Bye")
    };
    let turns = ["One", "Two"].map(Turn::user).into_iter().chain(["Three", "Four"].map(Turn::assistant));
    let merged = Request { history: turns.chain([Turn::user("Five")]).collect(), ..Request::user("Six") };
    let mut extra = Request::user("Hello");
    extra.extra.insert("max_tokens".into(), 9.into());
    extra.extra.insert("metadata".into(), json!({"user_id": "u-1"}));
    for (request, fixture) in [
        (&plain, include_str!("../../../../fixtures/anthropic/text.request.json")),
        (&full, include_str!("../../../../fixtures/anthropic/history_and_sampling.request.json")),
        (&merged, include_str!("../../../../fixtures/anthropic/merged_turns.request.json")),
        (&extra, include_str!("../../../../fixtures/anthropic/extra_fields.request.json")),
    ] {
        let http = send(&Anthropic::new("k"), "claude-sonnet-4-6", request).unwrap();
        assert_eq!(body(&http), serde_json::from_str::<Value>(fixture).unwrap());
    }
}

#[test]
fn version_and_beta_are_headers_and_the_key_is_not_written() {
    let anthropic = Anthropic::new("k-secret").beta(["one-2026-01-01", "two-2026-02-02"]);
    let http = send(&anthropic, "claude-x", &Request::user("Hi")).unwrap();
    assert_eq!((http.method.as_str(), http.url.as_str()), ("POST", "https://api.anthropic.com/v1/messages"));
    assert_eq!(http.headers["anthropic-version"], "2023-06-01");
    assert_eq!(http.headers["anthropic-beta"], "one-2026-01-01,two-2026-02-02");
    assert!(!format!("{http:?} {anthropic:?}").contains("k-secret"));
    let http = send(&anthropic.version("2026-10-21").beta([]), "claude-x", &Request::user("Hi")).unwrap();
    assert_eq!(http.headers["anthropic-version"], "2026-10-21");
}

#[test]
fn a_system_text_without_words_is_left_out() {
    let request = Request { system: Some(" \n".into()), ..Request::user("Hi") };
    let http = send(&Anthropic::new("k"), "claude-x", &request).unwrap();
    assert_eq!(body(&http).get("system"), None);
}

#[test]
fn what_a_model_or_the_protocol_refuses_is_not_sent() {
    let sampled = |sampling| Request { sampling, ..Request::user("Hi") };
    let (hot, seeded) = (Sampling::new().temperature(0.3), Sampling::new().seed(7));
    let both = Sampling::new().temperature(0.3).top_p(0.5);
    let anthropic = Anthropic::new("k");
    for (anthropic, model, sampling, capability) in [
        (anthropic.clone(), "claude-opus-5-5", &hot, Some("temperature")),
        (anthropic.clone(), "claude-sonnet-5", &hot, Some("temperature")),
        (anthropic.clone(), "claude-haiku-4-5", &both, Some("top_p")),
        (anthropic.clone(), "claude-haiku-4-5", &hot, None),
        (anthropic.clone(), "claude-nova-9", &both, None),
        (anthropic.clone(), "claude-nova-9", &seeded, Some("seed")),
        (anthropic.clone().version("2026-10-21"), "claude-nova-9", &hot, Some("temperature")),
        (anthropic.clone().families([]), "claude-opus-5-5", &hot, None),
        (
            anthropic.families([AnthropicFamily::new("nova-9").sampling(AnthropicSampling::Never)]),
            "claude-nova-9",
            &hot,
            Some("temperature"),
        ),
    ] {
        let error = send(&anthropic, model, &sampled(sampling.clone())).err();
        assert_eq!(error.as_ref().and_then(LlmError::code), capability.map(|_| ErrorCode::UnsupportedCapability));
        let issues = error.and_then(|error| error.issues().cloned());
        let named = capability.map(|name| Issues::Capability { capability: name.into(), model: model.into() });
        assert_eq!(issues, named, "{model}");
    }
}

#[test]
fn a_value_out_of_range_is_named() {
    for (sampling, named) in [
        (Sampling::new().temperature(1.5), "temperature 1.5 is out of range; anthropic takes 0 to 1"),
        (Sampling::new().temperature(f64::NAN), "temperature NaN is out of range"),
        (Sampling::new().top_p(-0.1), "top_p -0.1 is out of range"),
        (Sampling::new().stop(["END", "\n"]), "a stop text is blank"),
    ] {
        let request = Request { sampling, ..Request::user("Hi") };
        let error = send(&Anthropic::new("k"), "claude-x", &request).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidParams, Some(ErrorCode::InvalidCall)));
        assert!(error.to_string().contains(named), "{error}");
    }
}

#[test]
fn a_key_that_no_header_can_hold_is_found_before_the_first_call() {
    for key in ["", " ", "k\nx"] {
        let error = Anthropic::new(key).check().unwrap_err().to_string();
        assert!(error.contains("api_key") && !error.contains("k\n"), "{error}");
    }
    assert!(Anthropic::new("k").base_url("nowhere").check().unwrap_err().to_string().contains("base_url"));
}

/// What is written for this request, or the code and what it names.
fn written(anthropic: &Anthropic, model: &str, request: &Request) -> Result<Value, (Option<ErrorCode>, String)> {
    let named = |error: LlmError| match error.issues() {
        Some(Issues::Capability { capability, .. }) => capability.clone(),
        _ => error.to_string(),
    };
    send(anthropic, model, request).map(|http| body(&http)).map_err(|error| (error.code(), named(error)))
}

fn refused(model: &str, request: &Request) -> (Option<ErrorCode>, String) {
    written(&Anthropic::new("k"), model, request).expect_err("it is refused")
}

fn unsupported(capability: &str) -> (Option<ErrorCode>, String) {
    (Some(ErrorCode::UnsupportedCapability), capability.to_owned())
}

fn weather() -> Tool {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    Tool::new("get_weather", "Current weather").parameters(schema)
}

fn thought(thinking: &str, signature: &str) -> Value {
    json!({"type": "thinking", "thinking": thinking, "signature": signature})
}

fn fixture(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn tools_calls_thoughts_and_results_are_written_as_in_the_fixture() {
    let opaque = |data: Value| Opaque::new("anthropic", data).of_model("claude-sonnet-4-6-20260201".to_owned());
    let said = vec![
        Part::Reasoning(opaque(thought("Look up both.", "c2lnLTE="))),
        Part::Reasoning(opaque(json!({"type": "redacted_thinking", "data": "b3BhcXVl"}))),
        Part::Reasoning(Opaque::new("gemini", json!({"signature": "of another"}))),
        Part::text("Let me look."),
    ];
    let calls = vec![
        ToolCall::new("toolu_1", "get_weather", json!({"city": "Oslo"})),
        ToolCall::new("toolu_2", "get_weather", json!({"city": "Lima"}))
            .with_opaque(opaque(json!([thought("Then Lima.", "c2lnLTI=")]))),
    ];
    let results = [ToolResult::json("toolu_1", json!({"temp_c": 4})), ToolResult::error("toolu_2", "station offline")];
    let zone = json!({"type": "object", "properties": {"zone": {"type": "string", "minLength": 1}}});
    let request = Request {
        system: Some("Be brief.".into()),
        history: vec![
            Turn::user("Oslo or Lima?"),
            Turn::Assistant { content: Some(Content::Parts(said)), tool_calls: calls },
            Turn::tool_results(results),
        ],
        tools: vec![weather(), Tool::new("get_time", "").parameters(zone).strict(true)],
        tool_choice: ToolChoice::Required,
        parallel_tool_calls: Some(false),
        ..Request::user("Please compare.")
    };
    let mut body = written(&Anthropic::new("k"), "claude-sonnet-4-6", &request).unwrap();
    // What the strict dialect has no words for is told in the description.
    let zone = body["tools"][1]["input_schema"]["properties"]["zone"].as_object_mut().unwrap();
    assert!(zone.remove("description").is_some_and(|words| words.to_string().contains('1')), "{zone:?}");
    assert_eq!(body, fixture(include_str!("../../../../fixtures/anthropic/tools.request.json")));
}

#[test]
fn parts_are_written_as_in_the_fixture() {
    let parts = vec![
        Part::text("What are these?"),
        Part::image("image/png", b"hi"),
        Part::image_url("https://example.com/cat.png"),
        Part::document("report", Media::bytes("application/pdf", b"%PDF")),
        Part::document("table", Media::bytes("text/csv", b"a,b\n1,2")),
        Part::document("far", Media::url("https://example.com/a.pdf")),
    ];
    let body = written(&Anthropic::new("k"), "claude-sonnet-4-6", &Request::user(parts)).unwrap();
    assert_eq!(body, fixture(include_str!("../../../../fixtures/anthropic/parts.request.json")));
    for (part, expected) in [
        (Part::Audio(Media::bytes("audio/wav", b"hi")), unsupported("audio")),
        (Part::document("d", Media::bytes("application/zip", b"hi")), unsupported("documents of type application/zip")),
    ] {
        assert_eq!(refused("claude-sonnet-4-6", &Request::user(part)), expected);
    }
    let (code, said) = refused("m", &Request::user(Part::document("d", Media::bytes("text/plain", [0xff]))));
    assert!(code == Some(ErrorCode::InvalidCall) && said.contains("not UTF-8"), "{said}");
}

#[test]
fn the_form_of_the_answer_and_reasoning_are_written_as_in_the_fixtures() {
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let native = Request {
        output: Output::Schema(JsonSchema::new("place", city)),
        reasoning: Some(Effort::Low.into()),
        sampling: Sampling::new().max_tokens(2_048),
        ..Request::user("We met in Oslo.")
    };
    let open = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let by_tool = Request {
        output: Output::Schema(JsonSchema::new("place", open).description("A place.")),
        ..Request::user("We met in Oslo.")
    };
    let anthropic = Anthropic::new("k");
    for (model, request, expected) in [
        ("claude-opus-5-5", &native, include_str!("../../../../fixtures/anthropic/schema_and_effort.request.json")),
        ("claude-opus-4-1", &by_tool, include_str!("../../../../fixtures/anthropic/schema_by_tool.request.json")),
    ] {
        assert_eq!(written(&anthropic, model, request), Ok(fixture(expected)));
    }
    let budget = Request { reasoning: Some(Effort::Medium.into()), ..Request::user("Think.") };
    let http = anthropic.encode(&budget, &EncodeContext::new("claude-haiku-4-5").streaming()).unwrap();
    assert_eq!(body(&http), fixture(include_str!("../../../../fixtures/anthropic/budget.request.json")));
}

#[test]
fn reasoning_is_asked_for_in_the_form_that_the_family_knows() {
    let (low, high, max) = (Reasoning::Effort(Effort::Low), Reasoning::Effort(Effort::High), Effort::Max.into());
    let minimal = Reasoning::Effort(Effort::Minimal);
    let budget = Reasoning::Budget(20_000);
    let adaptive = json!({"type": "adaptive"});
    let enabled = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    for (model, reasoning, thinking, effort, max_tokens) in [
        ("claude-opus-5-5", low, Value::Null, json!("low"), 4_096),
        ("claude-opus-5-5", budget, Value::Null, json!("medium"), 4_096),
        ("claude-sonnet-5-5", max, Value::Null, json!("max"), 4_096),
        ("claude-sonnet-5-5", Reasoning::Off, json!({"type": "between_tools"}), Value::Null, 4_096),
        ("claude-sonnet-5", high, adaptive.clone(), json!("high"), 4_096),
        ("claude-opus-4-7", budget, adaptive.clone(), json!("medium"), 4_096),
        ("claude-haiku-5-5", Reasoning::Off, json!({"type": "disabled"}), Value::Null, 4_096),
        ("claude-opus-4-6", minimal, adaptive.clone(), json!("low"), 4_096),
        ("claude-opus-4-6", budget, enabled(20_000), Value::Null, 24_096),
        ("claude-haiku-4-5", high, enabled(32_000), Value::Null, 36_096),
        ("claude-haiku-4-5", Reasoning::Off, json!({"type": "disabled"}), Value::Null, 4_096),
        ("claude-nova-9", high, adaptive, json!("high"), 4_096),
        ("claude-nova-9", Reasoning::Budget(1_024), enabled(1_024), Value::Null, 5_120),
    ] {
        let request = Request { reasoning: Some(reasoning), ..Request::user("Hi") };
        let body = written(&Anthropic::new("k"), model, &request).unwrap();
        let asked = (&body["thinking"], &body["output_config"]["effort"], &body["max_tokens"]);
        assert_eq!(asked, (&thinking, &effort, &json!(max_tokens)), "{model} {reasoning:?}");
    }
    for model in ["claude-opus-5-5", "claude-fable-5"] {
        let off = Request { reasoning: Some(Reasoning::Off), ..Request::user("Hi") };
        assert_eq!(refused(model, &off), unsupported("reasoning off"));
    }
    let own = Anthropic::new("k").effort_budgets(EffortBudgets::new(2_000, 3_000, 4_000, 5_000));
    let request = Request { reasoning: Some(Effort::Low.into()), ..Request::user("Hi") };
    assert_eq!(written(&own, "claude-haiku-4-5", &request).unwrap()["thinking"], enabled(3_000));
}

#[test]
fn a_budget_stays_below_the_limit_of_the_answer() {
    let asking = |reasoning: Reasoning, limit| Request {
        reasoning: Some(reasoning),
        sampling: Sampling::new().max_tokens(limit),
        ..Request::user("Hi")
    };
    for (reasoning, limit, named) in [
        (Reasoning::Budget(8_000), 8_000, "not below max_tokens 8000"),
        (Reasoning::Budget(1_000), 8_000, "at least 1024"),
        (Reasoning::Effort(Effort::Low), 1_024, "not below max_tokens 1024"),
    ] {
        let (code, said) = refused("claude-haiku-4-5", &asking(reasoning, limit));
        assert!(code == Some(ErrorCode::InvalidCall) && said.contains(named), "{said}");
    }
    let body = written(&Anthropic::new("k"), "claude-haiku-4-5", &asking(Effort::High.into(), 10_000)).unwrap();
    assert_eq!((&body["thinking"]["budget_tokens"], &body["max_tokens"]), (&json!(5_000), &json!(10_000)));
}

#[test]
fn what_a_model_does_not_take_beside_reasoning_is_not_sent() {
    let thinking = || Request { reasoning: Some(Effort::Low.into()), tools: vec![weather()], ..Request::user("Hi") };
    let hot = Request { sampling: Sampling::new().temperature(0.3), ..thinking() };
    let forced = Request { tool_choice: ToolChoice::Required, ..thinking() };
    let named = Request { tool_choice: ToolChoice::Named("get_weather".into()), reasoning: None, ..thinking() };
    assert_eq!(refused("claude-opus-4-6", &hot), unsupported("temperature"));
    assert_eq!(refused("claude-opus-4-6", &forced), unsupported("tool_choice"));
    assert_eq!(refused("claude-opus-5-5", &named), unsupported("tool_choice"));
    let anthropic = Anthropic::new("k");
    let calm = Request { sampling: Sampling::new().temperature(1.0), ..thinking() };
    for (model, request) in [
        ("claude-opus-4-6", &calm),
        ("claude-opus-4-6", &named),
        ("claude-opus-4-6", &Request { reasoning: Some(Reasoning::Off), ..forced.clone() }),
        // Nothing is known of these.
        ("claude-nova-9", &hot),
        ("claude-nova-9", &forced),
    ] {
        assert!(written(&anthropic, model, request).is_ok(), "{model} {request:?}");
    }
    let own = AnthropicFamily::new("nova-9")
        .thinking(AnthropicThinking::Budget)
        .forced_tools(AnthropicForcedTools::WithoutThinking)
        .sampling_beside_thinking(false);
    let own = anthropic.families([own]);
    assert_eq!(written(&own, "claude-nova-9", &hot), Err(unsupported("temperature")));
    assert_eq!(written(&own, "claude-nova-9", &forced), Err(unsupported("tool_choice")));
    assert!(written(&own, "claude-opus-5-5", &named).is_ok(), "the built-in table is replaced");
}

#[test]
fn every_choice_has_its_word() {
    for (choice, parallel, expected) in [
        (ToolChoice::Auto, None, Value::Null),
        (ToolChoice::Auto, Some(true), Value::Null),
        (ToolChoice::Auto, Some(false), json!({"type": "auto", "disable_parallel_tool_use": true})),
        (ToolChoice::None, Some(false), json!({"type": "none"})),
        (ToolChoice::Required, None, json!({"type": "any"})),
        (ToolChoice::Named("get_weather".into()), None, json!({"type": "tool", "name": "get_weather"})),
    ] {
        let request = Request {
            tools: vec![weather()],
            tool_choice: choice,
            parallel_tool_calls: parallel,
            ..Request::user("Hi")
        };
        let body = written(&Anthropic::new("k"), "claude-sonnet-4-6", &request).unwrap();
        assert_eq!(body["tool_choice"], expected, "{:?} {parallel:?}", request.tool_choice);
    }
}

#[test]
fn a_tool_is_named_and_shaped_as_the_protocol_wants() {
    let with = |tool: Tool| Request { tools: vec![tool], ..Request::user("Hi") };
    let long = "x".repeat(129);
    for name in ["get.weather", "a b", long.as_str()] {
        assert_eq!(refused("m", &with(Tool::new(name, ""))), unsupported(&format!("the tool name {name:?}")));
    }
    let (code, said) = refused("m", &with(Tool::new("answer_as_json", "")));
    assert!(code == Some(ErrorCode::InvalidCall) && said.contains("answer_as_json"), "{said}");
    let referring = json!({"$ref": "#/$defs/args", "$defs": {"args": {"type": "object", "properties": {"a": {}}}}});
    let body = written(&Anthropic::new("k"), "m", &with(Tool::new("f", "").parameters(referring))).unwrap();
    assert_eq!(body["tools"][0]["input_schema"]["type"], "object");
    let map = json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}});
    let (code, _) = refused("m", &with(Tool::new("f", "").parameters(map.clone()).strict(true)));
    assert_eq!(code, Some(ErrorCode::UnsupportedCapability));
    assert!(written(&Anthropic::new("k"), "m", &with(Tool::new("f", "").parameters(map))).is_ok());
}

#[test]
fn a_forced_tool_stands_for_a_form_that_the_model_does_not_have() {
    let map = json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}});
    let asking = |output: Output| Request { output, ..Request::user("Hi") };
    let map = || asking(Output::Schema(JsonSchema::new("map", map.clone())));
    let anthropic = Anthropic::new("k");
    let list = json!({"type": "array", "items": {"$ref": "#/$defs/word"}, "$defs": {"word": {"type": "string"}}});
    let list = asking(Output::Schema(JsonSchema::new("list", list)));
    for (model, request, name) in [
        ("claude-sonnet-4-6", &map(), "answer_as_json"),
        ("claude-sonnet-4", &map(), "answer_as_json"),
        ("claude-sonnet-4", &list, "answer_as_json_value"),
        ("m", &asking(Output::Json), "answer_as_json_value"),
    ] {
        let body = written(&anthropic, model, request).unwrap();
        assert_eq!(body["tool_choice"]["name"], name, "{model}");
        assert_eq!((&body["output_config"], body["tools"].as_array().map(Vec::len)), (&Value::Null, Some(1)));
    }
    let beside_tools = Request { tools: vec![weather()], ..asking(Output::Json) };
    assert_eq!(refused("m", &beside_tools), unsupported("json beside tools"));
    let thinking = Request { reasoning: Some(Effort::Low.into()), ..asking(Output::Json) };
    assert_eq!(refused("claude-sonnet-4-6", &thinking), unsupported("json"));
    assert_eq!(refused("claude-opus-5-5", &map()), unsupported("schema"));
    let body = written(&anthropic, "claude-sonnet-4", &list).unwrap();
    let schema = json!({
        "type": "object",
        "properties": {"value": {"type": "array", "items": {"$ref": "#/$defs/word"}}},
        "required": ["value"],
        "$defs": {"word": {"type": "string"}},
    });
    assert_eq!(body["tools"][0]["input_schema"], schema);
}

#[test]
fn thoughts_go_back_only_to_the_model_that_takes_them() {
    let turn = |opaque: Opaque| Turn::assistant(vec![Part::Reasoning(opaque), Part::text("Hi")]);
    let opaque = |protocol: &str, giver: Option<&str>| {
        Opaque::new(protocol, thought("Hm", "c2ln")).of_model(giver.map(str::to_owned))
    };
    for (model, opaque, kept) in [
        ("claude-opus-4-6", opaque("anthropic", Some("claude-sonnet-4-6")), true),
        ("claude-opus-5-5", opaque("anthropic", Some("claude-opus-5-5-20261101")), true),
        ("claude-opus-5-5", opaque("anthropic", None), true),
        ("claude-opus-5-5", opaque("anthropic", Some("claude-sonnet-5-5")), false),
        ("claude-opus-4-6", opaque("anthropic", Some("claude-sonnet-5-5")), false),
        ("claude-nova-9", opaque("anthropic", Some("claude-nova-8")), true),
        ("claude-opus-4-6", opaque("gemini", None), false),
    ] {
        let request = Request { history: vec![Turn::user("Hey"), turn(opaque)], ..Request::user("Bye") };
        let body = written(&Anthropic::new("k"), model, &request).unwrap();
        let expected = if kept { json!([thought("Hm", "c2ln"), {"type": "text", "text": "Hi"}]) } else { json!("Hi") };
        assert_eq!(body["messages"][1]["content"], expected, "{model}");
    }
}

#[test]
fn a_turn_of_which_nothing_is_left_is_left_out() {
    let foreign = Part::Reasoning(Opaque::new("openai_responses", json!({"id": "rs_1"})));
    let request = Request {
        history: vec![Turn::user("One"), Turn::assistant(foreign), Turn::user("Two"), Turn::assistant("Three")],
        ..Request::user("Four")
    };
    let body = written(&Anthropic::new("k"), "m", &request).unwrap();
    let text = |text: &str| json!({"type": "text", "text": text});
    let expected = json!([
        {"role": "user", "content": [text("One"), text("Two")]},
        {"role": "assistant", "content": "Three"},
        {"role": "user", "content": "Four"},
    ]);
    assert_eq!(body["messages"], expected);
}

#[test]
fn ids_and_results_are_written_in_a_form_that_is_taken() {
    let calls = ["call.1", "call:1", "ok-1"].map(|id| ToolCall::new(id, "f", Value::Null));
    let results = [
        ToolResult::new("call.1", ""),
        ToolResult::error("call:1", " "),
        ToolResult::new("ok-1", vec![Part::text("A picture"), Part::image("image/png", b"hi")]),
    ];
    let history = vec![Turn::user("Hi"), Turn::assistant_tool_calls(calls), Turn::tool_results(results)];
    let request = Request { history, tools: vec![Tool::new("f", "")], ..Request::default() };
    let body = written(&Anthropic::new("k"), "m", &request).unwrap();
    let (uses, results) = (&body["messages"][1]["content"], &body["messages"][2]["content"]);
    let ids = [0, 1, 2].map(|at| uses[at]["id"].as_str().unwrap());
    assert_eq!([0, 1, 2].map(|at| results[at]["tool_use_id"].as_str().unwrap()), ids);
    assert!(ids[0].starts_with("call_1_") && ids[1].starts_with("call_1_") && ids[0] != ids[1], "{ids:?}");
    assert_eq!((ids[2], &uses[2]["input"]), ("ok-1", &json!({})));
    assert_eq!((results[0].get("content"), &results[1]["content"]), (None, &json!("The tool failed.")));
    assert_eq!(results[2]["content"][1]["type"], "image");
}

#[test]
fn a_turn_that_called_tools_without_a_thought_goes_on_without_one() {
    let called =
        |content: Option<Content>| Turn::Assistant { content, tool_calls: vec![ToolCall::new("a", "f", json!({}))] };
    let asking = |turn: Turn| Request {
        history: vec![Turn::user("Hi"), turn, Turn::tool_results([ToolResult::new("a", "1")])],
        tools: vec![Tool::new("f", "")],
        reasoning: Some(Effort::Low.into()),
        ..Request::default()
    };
    let anthropic = Anthropic::new("k");
    let opaque = Opaque::new("anthropic", thought("Hm", "c2ln"));
    let thoughtful = asking(called(Some(vec![Part::Reasoning(opaque), Part::text("Wait")].into())));
    let thoughtless = asking(called(None));
    for (request, thinks) in [(&thoughtful, true), (&thoughtless, false)] {
        let body = written(&anthropic, "claude-haiku-4-5", request).unwrap();
        assert_eq!(body.get("thinking").is_some(), thinks);
    }
    let body = written(&anthropic, "claude-opus-4-6", &thoughtless).unwrap();
    assert_eq!(body["thinking"]["type"], "adaptive", "only budgets need them");
}

#[test]
fn fields_of_extra_join_those_of_thinking_and_output_config() {
    let mut request = Request { reasoning: Some(Effort::Low.into()), ..Request::user("Hi") };
    request.extra.insert("thinking".into(), json!({"display": "summarized"}));
    request.extra.insert("output_config".into(), json!({"effort": "high"}));
    let body = written(&Anthropic::new("k"), "claude-opus-4-6", &request).unwrap();
    assert_eq!(body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!(body["output_config"], json!({"effort": "high"}));
}

#[test]
fn capabilities_are_those_of_the_family() {
    let (anthropic, own) = (Anthropic::new("k"), Anthropic::new("k").families([]));
    let can = |anthropic: &Anthropic, model| {
        let can = anthropic.capabilities(model);
        (
            can.tools && can.stream && can.images && can.image_urls && can.documents,
            can.tool_choice,
            can.json,
            can.schema,
        )
    };
    assert_eq!(can(&anthropic, "claude-opus-5-5"), (true, false, false, true));
    assert_eq!(can(&anthropic, "claude-opus-4-1"), (true, true, true, true));
    assert_eq!(can(&own, "claude-opus-5-5"), (true, true, true, true));
    assert!(!anthropic.capabilities("m").audio);
}
