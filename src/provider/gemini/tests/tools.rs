//! Tools, media, forms of the answer and thinking: what is sent, what is refused, and what comes back.

use super::*;
use crate::chat::{
    Document, Effort, EffortBudgets, JsonSchema, Media, Opaque, Output, Part, Reasoning, Tool, ToolCall, ToolChoice,
    ToolResult,
};

fn weather() -> Tool {
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    Tool::new("get_weather", "The weather in a city").parameters(city)
}

fn tools() -> Vec<Tool> {
    vec![weather(), Tool::new("get_time", "The time")]
}

fn own(data: Value) -> Opaque {
    Opaque::new("gemini", data)
}

/// Two parallel calls that Gemini made, the first one signed, and their results the other way round.
fn signed_conversation() -> Request {
    let signature = json!({"id": "fc1", "thoughtSignature": "c2lnLWV4YW1wbGUy", "model": "gemini-4-argon"});
    let reply = Reply::new("Let me look.")
        .with_opaque([own(json!({"thoughtSignature": "c2ln", "model": "gemini-4-argon"}))])
        .with_tool_calls([
            ToolCall::new("fc1", "get_weather", json!({"city": "Oslo"})).with_opaque(own(signature)),
            ToolCall::new("fc2", "get_weather", json!({"city": "Lima"})).with_opaque(own(json!({"id": "fc2"}))),
        ]);
    let results = [ToolResult::error("fc2", "station offline"), ToolResult::json("fc1", json!({"temp_c": 4}))];
    Request {
        history: vec![Turn::user("Oslo and Lima?"), reply.to_turn(), Turn::tool_results(results)],
        tools: tools(),
        tool_choice: ToolChoice::Named("get_time".into()),
        ..Request::default()
    }
}

/// Calls that another provider's model made, with blocks of its own.
fn foreign_conversation() -> Request {
    let block = Opaque::new("anthropic", json!({"type": "thinking", "signature": "s"}));
    let reply = Reply::new("").with_opaque([block.clone()]).with_tool_calls([
        ToolCall::new("toolu_1", "get_weather", json!({"city": "Oslo"})).with_opaque(block),
        ToolCall::new("toolu_2", "get_time", Value::Null),
    ]);
    let results = [ToolResult::new("toolu_1", "4 degrees"), ToolResult::new("toolu_2", "12")];
    Request {
        history: vec![Turn::user("Oslo?"), reply.to_turn(), Turn::tool_results(results)],
        tools: tools(),
        ..Request::user("And?")
    }
}

#[test]
fn tools_their_calls_and_results_are_as_on_the_wire() {
    let gemini = Gemini::new("k");
    let body = body(&gemini, "gemini-4-argon", &signed_conversation());
    assert_eq!(body, golden(fixture!("tools.request")));
}

#[test]
fn calls_of_another_provider_are_taken_without_their_blocks() {
    let gemini = Gemini::new("k");
    let request = foreign_conversation();
    let expected = golden(fixture!("foreign_calls.request"));
    assert_eq!(body(&gemini, "gemini-4-argon", &request), expected);
    let older = body(&gemini, "gemini-2.5-flash", &request);
    assert_eq!(older["contents"][1]["parts"][0].get("thoughtSignature"), None, "older models know no stand-in");
}

#[test]
fn a_signature_goes_back_to_the_model_that_gave_it_and_to_no_other() {
    let gemini = Gemini::new("k");
    let signatures = |gemini: &Gemini, model: &str| -> Vec<Value> {
        let body = body(gemini, model, &signed_conversation());
        let parts = body["contents"][1]["parts"].as_array().cloned().unwrap_or_default();
        parts.iter().map(|part| part["thoughtSignature"].clone()).collect()
    };
    for model in
        ["gemini-4-argon", "models/gemini-4-argon", "gemini-4-argon-001", "gemini-flash-latest", "tunedModels/x"]
    {
        assert_eq!(signatures(&gemini, model), [json!("c2ln"), json!("c2lnLWV4YW1wbGUy"), Value::Null], "{model}");
    }
    let stand_in = [Value::Null, json!("skip_thought_signature_validator"), Value::Null];
    assert_eq!(signatures(&gemini, "gemini-4-carbon"), stand_in);
    assert_eq!(signatures(&Gemini::vertex("p", "eu", NoTokens), "gemini-4-argon"), stand_in);
}

#[test]
fn a_signature_in_a_part_of_its_own_goes_back_in_one_behind_the_words() {
    let apart = own(json!({"thoughtSignature": "b", "text": ""}));
    let thought = own(json!({"thoughtSignature": "a", "text": "", "thought": true}));
    let turn = Reply::new("Hello").with_opaque([apart, thought]).to_turn();
    let request = Request { history: vec![Turn::user("Hi"), turn], ..Request::user("Bye") };
    let parts = body(&Gemini::new("k"), "gemini-4-argon", &request)["contents"][1]["parts"].take();
    let expected = json!([
        {"text": "", "thought": true, "thoughtSignature": "a"}, {"text": "Hello"}, {"text": "", "thoughtSignature": "b"},
    ]);
    assert_eq!(parts, expected);
}

#[test]
fn what_was_read_goes_back_as_it_was() {
    let content = json!({"role": "model", "parts": [
        {"text": "Let me look.", "thoughtSignature": "c2ln"},
        {"functionCall": {"id": "fc1", "name": "get_weather", "args": {"city": "Oslo"}}, "thoughtSignature": "c2lnMg=="},
        {"functionCall": {"name": "get_time", "args": {}}},
    ]});
    let candidate = json!({"content": content, "finishReason": "STOP"});
    let answer = json!({"candidates": [candidate], "modelVersion": "gemini-4-argon", "responseId": "r"});
    let reply = read(&answer.to_string()).unwrap();
    let results = reply.tool_calls().iter().map(|call| ToolResult::new(&*call.id, "x"));
    let history = vec![Turn::user("Hi"), reply.to_turn(), Turn::tool_results(results)];
    let sent = body(&Gemini::new("k"), "gemini-4-argon", &Request { history, tools: tools(), ..Request::default() });
    assert_eq!(sent["contents"][1], content);
    let ids: Vec<_> = (0..2).map(|n| sent["contents"][2]["parts"][n]["functionResponse"].get("id").cloned()).collect();
    assert_eq!(ids, [Some(json!("fc1")), None], "an id that was made up is not sent back");
}

#[test]
fn each_choice_has_its_mode() {
    let config = |choice: ToolChoice, strict: bool| {
        let tools = vec![weather().strict(strict)];
        let request = Request { tools, tool_choice: choice, ..Request::user("Hi") };
        body(&Gemini::new("k"), "gemini-4-argon", &request)["toolConfig"]["functionCallingConfig"].take()
    };
    assert_eq!(config(ToolChoice::Auto, false), Value::Null, "it is the default");
    assert_eq!(config(ToolChoice::Auto, true), json!({"mode": "VALIDATED"}));
    assert_eq!(config(ToolChoice::None, true), json!({"mode": "NONE"}));
    assert_eq!(config(ToolChoice::Required, false), json!({"mode": "ANY"}));
    let named = json!({"mode": "ANY", "allowedFunctionNames": ["get_weather"]});
    assert_eq!(config(ToolChoice::Named("get_weather".into()), true), named);
}

#[test]
fn media_goes_inline_or_as_a_file() {
    let parts = vec![
        Part::text("What are these?"),
        Part::image_base64("image/png", "AAAA"),
        Part::document("a.pdf", Media::base64("application/pdf", "JVBE")),
        Part::Audio(Media::base64("audio/wav", "UklG")),
        Part::image_url("https://example.com/cat.jpeg?x=1"),
        Part::document("video", Media::url("https://youtu.be/abc")),
    ];
    let body = body(&Gemini::new("k"), "gemini-4-argon", &Request::user(parts));
    assert_eq!(body, golden(fixture!("media.request")));
}

#[test]
fn media_that_google_does_not_fetch_is_refused() {
    let gemini = Gemini::new("k");
    let vertex = Gemini::vertex("p", "eu", NoTokens);
    for (adapter, model, url, code) in [
        (&gemini, "gemini-4-argon", "gs://bucket/a.png", Some(ErrorCode::UnsupportedCapability)),
        (&gemini, "gemini-2.0-flash", "https://example.com/a.png", Some(ErrorCode::UnsupportedCapability)),
        (&gemini, "gemini-4-argon", "ftp://example.com/a.png", Some(ErrorCode::UnsupportedCapability)),
        (&gemini, "gemini-2.0-flash", "https://generativelanguage.googleapis.com/v1beta/files/x", None),
        (&vertex, "gemini-4-argon", "gs://bucket/a.png", None),
        (&vertex, "gemini-4-argon", "https://example.com/a", Some(ErrorCode::InvalidCall)),
    ] {
        let refused = encode(adapter, model, &Request::user(Part::image_url(url))).err();
        assert_eq!(refused.as_ref().and_then(LlmError::code), code, "{url}: {refused:?}");
    }
    let gif = encode(&gemini, "gemini-4-argon", &Request::user(Part::image_base64("image/gif", "AAAA"))).unwrap_err();
    assert!(gif.to_string().contains("does not take image/gif"), "{gif}");
}

#[test]
fn a_result_may_hold_a_picture_on_models_that_take_it() {
    let call = ToolCall::new("c", "take_screenshot", json!({}));
    let result = ToolResult::new("c", vec![Part::text("done"), Part::image_base64("image/png", "AAAA")]);
    let history = vec![Turn::user("Hi"), Turn::assistant_tool_calls([call]), Turn::tool_results([result])];
    let request = Request { history, tools: vec![Tool::new("take_screenshot", "")], ..Request::default() };
    let sent = body(&Gemini::new("k"), "gemini-4-argon", &request)["contents"][2]["parts"][0].take();
    let parts = json!([{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]);
    let response = json!({"name": "take_screenshot", "response": {"output": "done"}, "parts": parts});
    assert_eq!(sent, json!({"functionResponse": response}));
    assert!(encode(&Gemini::new("k"), "gemini-2.5-flash", &request).is_err());
}

#[test]
fn a_form_of_the_answer_and_an_effort_are_as_on_the_wire() {
    let schema = json!({
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false,
    });
    let request = Request {
        system: Some("Extract the place.".into()),
        output: Output::Schema(JsonSchema::new("place", schema)),
        reasoning: Some(Reasoning::Effort(Effort::Low)),
        sampling: Sampling::new().max_tokens(1024),
        ..Request::user("We met in Oslo.")
    };
    assert_eq!(body(&Gemini::new("k"), "gemini-4-argon", &request), golden(fixture!("structured.request")));

    let json_only = Request { output: Output::Json, ..Request::user("Hi") };
    let config = body(&Gemini::new("k"), "gemini-4-argon", &json_only)["generationConfig"].take();
    assert_eq!(config, json!({"responseMimeType": "application/json"}));

    let told = JsonSchema::new("n", json!({"type": "integer"})).description("How many.");
    let config = body(&Gemini::new("k"), "m", &Request { output: Output::Schema(told), ..Request::user("Hi") });
    let schema = json!({"type": "integer", "description": "How many."});
    assert_eq!(config["generationConfig"]["responseJsonSchema"], schema);
}

#[test]
fn efforts_and_thoughts_are_the_adapters_to_change() {
    let request = Request { reasoning: Some(Reasoning::Effort(Effort::High)), ..Request::user("Hi") };
    let gemini = Gemini::new("k").effort_budgets(EffortBudgets::new(1, 2, 3, 4)).include_thoughts(true);
    let config = body(&gemini, "gemini-2.5-flash", &request)["generationConfig"].take();
    assert_eq!(config, json!({"thinkingConfig": {"thinkingBudget": 4, "includeThoughts": true}}));
    let mut own = request;
    own.extra = extra(json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": -1}}}));
    let config = body(&gemini, "gemini-2.5-flash", &own)["generationConfig"].take();
    assert_eq!(config, json!({"thinkingConfig": {"thinkingBudget": -1}}), "the caller's own comes last");
}

#[test]
fn what_google_refuses_together_is_not_sent() {
    let gemini = Gemini::new("k");
    let asked = |output: Output, choice: ToolChoice| Request {
        tools: tools(),
        tool_choice: choice,
        output,
        ..Request::user("Hi")
    };
    for (model, request, said) in [
        ("gemini-2.5-flash", asked(Output::Json, ToolChoice::Auto), "tools beside JSON"),
        ("gemini-4-argon", asked(Output::Json, ToolChoice::Required), "a forced tool beside JSON"),
        ("gemma-3-27b-it", asked(Output::Text, ToolChoice::Auto), "does not take tools"),
        ("gemma-3-27b-it", Request { output: Output::Json, ..Request::user("Hi") }, "does not take json"),
        (
            "gemini-4-argon",
            Request { parallel_tool_calls: Some(false), ..asked(Output::Text, ToolChoice::Auto) },
            "parallel_tool_calls = false",
        ),
    ] {
        let error = encode(&gemini, model, &request).unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::UnsupportedCapability));
        assert!(error.to_string().contains(said), "{error}");
    }
    assert!(encode(&gemini, "gemini-4-argon", &asked(Output::Json, ToolChoice::Auto)).is_ok());
    assert!(encode(&gemini, "m-1", &asked(Output::Json, ToolChoice::Required)).is_ok());
    let several = Request { parallel_tool_calls: Some(true), ..asked(Output::Text, ToolChoice::Auto) };
    assert!(encode(&gemini, "gemini-4-argon", &several).is_ok());
    let free = body(&gemini, "gemini-2.5-flash", &asked(Output::Json, ToolChoice::None));
    assert_eq!((free.get("tools"), free.get("toolConfig")), (None, None), "what may not be called is left out");
    let mut cached = asked(Output::Text, ToolChoice::Auto);
    cached.extra = extra(json!({"cachedContent": "cachedContents/1"}));
    assert!(encode(&gemini, "gemini-4-argon", &cached).unwrap_err().to_string().contains("takes no tools beside"));
}

#[test]
fn a_name_that_google_does_not_take_is_told() {
    let ask =
        |tool: Tool| encode(&Gemini::new("k"), "gemini-4-argon", &Request { tools: vec![tool], ..Request::user("Hi") });
    let long = "a".repeat(129);
    for name in ["1st", "-x", "get weather", "wetter\u{fc}", &long] {
        let error = ask(Tool::new(name, "")).unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::InvalidCall), "{name}");
    }
    for name in ["_x", "a.b:c-d_e1", &long[1..]] {
        assert!(ask(Tool::new(name, "")).is_ok(), "{name}");
    }
    let with = |parameter: &str| {
        let inner = json!({"type": "object", "properties": {parameter: {"type": "string"}}});
        Tool::new("t", "")
            .parameters(json!({"type": "object", "properties": {"list": {"type": "array", "items": inner}}}))
    };
    let error = ask(with("1st")).unwrap_err();
    assert!(error.to_string().contains("a parameter is called \"1st\""), "{error}");
    assert!(ask(with("first")).is_ok());
}

#[test]
fn results_that_fit_no_call_are_told() {
    let call = ToolCall::new("c", "get_time", json!({}));
    let history =
        |results: Vec<ToolResult>| vec![Turn::assistant_tool_calls([call.clone()]), Turn::tool_results(results)];
    for (results, code) in
        [(vec![ToolResult::new("d", "x")], ErrorCode::UnknownToolResultIds), (vec![], ErrorCode::MissingToolResults)]
    {
        let request = Request { history: history(results), tools: tools(), ..Request::default() };
        assert_eq!(encode(&Gemini::new("k"), "m", &request).unwrap_err().code(), Some(code));
    }
}

#[test]
fn results_are_objects_whatever_a_tool_gave() {
    let sent = |result: &str| {
        let history = vec![
            Turn::assistant_tool_calls([ToolCall::new("c", "get_time", json!({}))]),
            Turn::tool_results([ToolResult::new("c", result)]),
        ];
        let request = Request { history, tools: tools(), ..Request::default() };
        body(&Gemini::new("k"), "m", &request)["contents"][1]["parts"][0]["functionResponse"]["response"].take()
    };
    for (result, output) in [
        ("12", json!("12")),
        ("{\"a\":1}", json!({"a": 1})),
        (" [1]", json!([1])),
        ("{broken", json!("{broken")),
        ("", json!("")),
    ] {
        assert_eq!(sent(result), json!({"output": output}), "{result}");
    }
}

#[test]
fn a_turn_of_which_nothing_is_left_is_left_out() {
    let block = Part::Reasoning(Opaque::new("anthropic", json!({})));
    let request = Request { history: vec![Turn::user("One"), Turn::assistant(block)], ..Request::user("Two") };
    let contents = body(&Gemini::new("k"), "m", &request)["contents"].take();
    assert_eq!(contents, json!([{"role": "user", "parts": [{"text": "One"}, {"text": "Two"}]}]));
}

#[test]
fn what_a_model_can_do_is_its_familys() {
    let gemini = Gemini::new("k");
    let of = |model: &str| gemini.capabilities(model);
    assert_eq!(of("gemini-4-argon"), Capabilities::all());
    let gemma = of("gemma-3-27b-it");
    assert!(!gemma.tools && !gemma.tool_choice && !gemma.json && !gemma.schema && !gemma.reasoning && gemma.stream);
    assert!(!of("gemini-2.0-flash").reasoning && of("gemini-2.0-flash").tools);
}

#[test]
fn a_call_that_the_model_wrote_badly_is_told_with_its_text() {
    let body = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":"{\"x\":"}}]}}]}"#;
    let Err(Some(AnswerFault::ToolArguments(problems))) = read(body) else { panic!("{:?}", read(body)) };
    assert_eq!((problems[0].tool.as_str(), problems[0].detail.as_deref()), ("a", Some("{\"x\":")));
    let text = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":"{\"x\":1}"}}]}}]}"#;
    assert_eq!(read(text).unwrap().tool_calls()[0].arguments, json!({"x": 1}));
}

#[test]
fn documents_without_a_name_are_taken() {
    let document = Part::Document(Document { name: None, media: Media::base64("text/plain", "aGk=") });
    let sent = body(&Gemini::new("k"), "m", &Request::user(document))["contents"][0]["parts"][0].take();
    assert_eq!(sent, json!({"inlineData": {"mimeType": "text/plain", "data": "aGk="}}));
}
