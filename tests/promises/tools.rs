//! What a call says of tools, and what a reply may do with them.

use super::support::*;
use serde_json::json;
use steadfast::chat::{FinishReason, Reply, Request, Tool, ToolCall, ToolChoice, ToolResult, Turn};
use steadfast::record::{Issues, ToolProblem};
use steadfast::{Call, ErrorCode, ErrorKind, LlmError};

fn weather() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
        "required": ["city"],
    });
    Tool::new("get_weather", "The weather of a city").parameters(parameters)
}

fn calling(calls: impl IntoIterator<Item = ToolCall>) -> Reply {
    Reply::new("").with_tool_calls(calls).with_finish_reason(FinishReason::ToolCalls)
}

fn oslo(id: &str) -> ToolCall {
    ToolCall::new(id, "get_weather", json!({"city": "Oslo"}))
}

fn problems(error: &LlmError) -> Vec<ToolProblem> {
    match error.issues() {
        Some(Issues::Tools { problems }) => problems.clone(),
        issues => panic!("{issues:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn tools_that_cannot_be_meant_are_found_before_anything_is_sent() {
    let (provider, client) = answering([]);
    for (call, code_, says) in [
        (Call::user("hi").tool(Tool::new(" ", "")), "invalid_call", "tools[0] has no name"),
        (
            Call::user("hi").tool(Tool::new("list", "").parameters(json!({"type": "array"}))),
            "invalid_call",
            "tool \"list\": its parameters are a schema of type \"array\"; they take the schema of an object",
        ),
        (
            Call::user("hi").tool(Tool::new("any", "").parameters(json!({}))),
            "invalid_call",
            "its parameters name no type; they take the schema of an object (\"type\": \"object\")",
        ),
        (
            Call::user("hi").tools([weather(), Tool::new("b", ""), weather(), Tool::new("b", ""), weather()]),
            "duplicate_tool_names",
            "more than one tool is called get_weather, b; give each a name of its own",
        ),
        (
            Call::user("hi").tool(weather()).tool_choice(ToolChoice::Named("launch".into())),
            "unknown_tool_choice",
            "tool_choice names \"launch\", which is not among the tools; there are: get_weather",
        ),
        (Call::user("hi").tool_choice(ToolChoice::Named("launch".into())), "unknown_tool_choice", "there are: none"),
        (
            Call::user("hi").tool_choice(ToolChoice::Required),
            "invalid_call",
            "requires a tool, but the call has none; add one, or leave the choice out",
        ),
        (
            Call::user("hi")
                .tool(Tool::new("x", "").parameters(json!({"type": "object", "properties": {"a": {"$ref": "#/none"}}})))
                .validate_arguments(true),
            "invalid_call",
            "the parameters of tool \"x\" cannot be used: \"#/none\" refers to nothing",
        ),
    ] {
        let error = failure(&client, call).await;
        assert_eq!((error.kind(), code(&error)), (ErrorKind::InvalidParams, code_), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(provider.requests(), 0);

    let twice = failure(&client, Call::user("hi").tools([weather(), weather()])).await;
    assert_eq!(twice.issues(), Some(&Issues::ToolNames { names: vec!["get_weather".to_owned()] }));
    let unknown = Call::user("hi").tool(weather()).tool_choice(ToolChoice::Named("launch".into()));
    let issues = Issues::ToolChoice { requested: "launch".to_owned(), available: vec!["get_weather".to_owned()] };
    assert_eq!(failure(&client, unknown).await.issues(), Some(&issues));
}

#[tokio::test(start_paused = true)]
async fn every_problem_with_the_calls_of_a_reply_is_reported_at_once() {
    let broken = calling([oslo("1"), ToolCall::new("1", "launch_rocket", json!({})), oslo("2")]);
    let (provider, client) = answering([broken.clone()]);
    let error = failure(&client, Call::user("hi").tool(weather()).max_retries(3)).await;
    assert_eq!((error.kind(), error.code()), (ErrorKind::Validation, Some(ErrorCode::UnknownTool)));
    let codes: Vec<_> = problems(&error).iter().map(|problem| (problem.tool.clone(), problem.code)).collect();
    let rocket = "launch_rocket".to_owned();
    assert_eq!(codes, [(rocket.clone(), ErrorCode::UnknownTool), (rocket, ErrorCode::DuplicateToolCallId)]);
    assert!(!error.is_retryable() && !error.counts_toward_breaker());
    assert_eq!((provider.requests(), error.status()), (1, Some(200)), "the same answer would come again");
    assert!(error.request().is_some_and(|request| request.body.is_some()));
    assert_eq!(error.partial().map(Reply::tool_calls), Some(broken.tool_calls()), "the reply is not lost");
    assert_eq!(
        error.to_string(),
        "primary: unknown tool: \"launch_rocket\" (1) is not among the tools: there are: get_weather; \"launch_rocket\" \
         (1) was called with an id that another call has"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_that_nobody_asked_for_break_the_contract() {
    let (_, client) = answering([calling([oslo("1")]), calling([oslo("1")]), calling([oslo("1")])]);
    let error = failure(&client, "hi").await;
    assert_eq!(code(&error), "unexpected_tool_calls");
    let error = failure(&client, Call::user("hi").tool(weather()).tool_choice(ToolChoice::None)).await;
    assert_eq!(code(&error), "tool_choice_none_violated");
    // Who declares tools in the provider's own words takes their calls.
    let own = Call::user("hi").extra(json!({"tools": [{"type": "web_search"}]}));
    assert_eq!(reply(&client, own).await.tool_calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn arguments_are_validated_when_that_is_asked_for() {
    let wrong = ToolCall::new("2", "get_weather", json!({"unit": "K"}));
    let (_, client) = answering(std::iter::repeat_n(calling([oslo("1"), wrong]), 2));
    let call = Call::user("hi").tool(weather());
    assert_eq!(reply(&client, call.clone()).await.tool_calls().len(), 2);
    let error = failure(&client, call.validate_arguments(true)).await;
    assert_eq!((error.kind(), code(&error)), (ErrorKind::Validation, "schema_mismatch"));
    let [problem] = &problems(&error)[..] else { panic!("{error}") };
    assert_eq!((&*problem.tool_call_id, problem.code), ("2", ErrorCode::SchemaMismatch));
    assert_eq!(problem.detail.as_deref(), Some("lacks \"city\"; /unit must be one of \"C\", \"F\""));
}

#[tokio::test(start_paused = true)]
async fn a_null_that_a_strict_tool_was_given_for_an_optional_argument_is_left_out() {
    let call = ToolCall::new("1", "get_weather", json!({"city": "Oslo", "unit": null}));
    let (_, client) = answering(std::iter::repeat_n(calling([call]), 3));
    let arguments = async |call: Call| reply(&client, call).await.tool_calls()[0].arguments.clone();
    assert_eq!(arguments(Call::user("hi").tool(weather().strict(true))).await, json!({"city": "Oslo"}));
    assert_eq!(arguments(Call::user("hi").tool(weather()).validate_arguments(true)).await, json!({"city": "Oslo"}));
    assert_eq!(arguments(Call::user("hi").tool(weather())).await, json!({"city": "Oslo", "unit": null}));
}

#[tokio::test(start_paused = true)]
async fn a_conversation_with_tools_is_carried_on_turn_by_turn() {
    let (provider, client) = answering([calling([oslo("1"), oslo("2")]), Reply::new("Rain.")]);
    let call = Call::user("Weather?").tool(weather()).parallel_tool_calls(true);
    let asked = reply(&client, call.clone()).await;
    let results = asked.tool_calls().iter().map(|call| ToolResult::new(&*call.id, "rain"));
    let call = call.then(asked.to_turn()).then(Turn::tool_results(results));
    assert_eq!(reply(&client, call).await.text(), "Rain.");
    let sent: Request = serde_json::from_slice(&provider.journal()[1].body).expect("sent");
    assert_eq!((sent.history.len(), sent.user), (3, None));
}

#[tokio::test(start_paused = true)]
async fn arguments_that_break_their_schema_are_sent_back_as_results_when_reasked() {
    let wrong = ToolCall::new("2", "get_weather", json!({}));
    let (provider, client) = answering([calling([oslo("1"), wrong]), calling([oslo("3")])]);
    let call = Call::user("Weather?").tool(weather()).validate_arguments(true).reask(1);
    let answer = reply(&client, call).await;
    assert_eq!(answer.tool_calls()[0].id, "3");
    let sent: Request = serde_json::from_slice(&provider.journal()[1].body).expect("sent");
    let Some(Turn::Tool { results, .. }) = sent.history.last() else { panic!("{:?}", sent.history) };
    assert!(results.iter().all(|result| result.is_error));
    assert_eq!(results[0].content.text(), "not run, since another call beside it cannot be; call it again");
    assert_eq!(results[1].content.text(), "not run: lacks \"city\"");
}
