//! Replies held to what was asked.

use super::*;
use crate::chat::{JsonSchema, Tool, ToolCall, ToolChoice};
use serde_json::json;
use std::sync::Arc;

fn asked(output: Output) -> Request {
    Request { output, ..Request::user("Hi") }
}

fn place() -> Output {
    Output::Schema(JsonSchema::new(
        "place",
        json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "zip": {"type": "string"}},
            "required": ["city"],
        }),
    ))
}

fn weather() -> Tool {
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    Tool::new("get_weather", "The weather").parameters(city)
}

fn breach(request: &Request, expected: &Expected, mut reply: Reply) -> Breach {
    validate(request, expected, &mut reply).expect_err("a breach")
}

#[test]
fn the_json_is_kept_so_that_it_is_parsed_once() {
    let mut reply = Reply::new("{\"city\": \"Oslo\", \"zip\": null}");
    assert!(validate(&asked(place()), &Expected::default(), &mut reply).is_ok());
    assert_eq!(reply.json_value(), Some(&json!({"city": "Oslo"})), "null was written for what is left out");
    assert_eq!(reply.text(), "{\"city\": \"Oslo\", \"zip\": null}");
}

#[test]
fn text_that_is_no_json_is_told_with_its_place_and_whether_the_limit_cut_it() {
    let plain = breach(&asked(Output::Json), &Expected::default(), Reply::new("{\n  \"city\": Oslo}"));
    assert_eq!(plain.code, ErrorCode::JsonParseFailed);
    assert_eq!(
        plain.issues,
        Issues::Json { text_head: "{\n  \"city\": Oslo}".to_owned(), line: 2, column: 11, cut_by_length: false }
    );
    let cut = Reply::new("{\"city\": \"Os").with_finish_reason(FinishReason::Length);
    let cut = breach(&asked(Output::Json), &Expected::default(), cut);
    assert!(matches!(cut.issues, Issues::Json { cut_by_length: true, .. }));
    assert!(cut.what.contains("cut by the token limit: raise `max_tokens`"), "{}", cut.what);
    // Reasoning ate the limit: a success as text, but no JSON.
    let nothing =
        breach(&asked(Output::Json), &Expected::default(), Reply::new("").with_finish_reason(FinishReason::Length));
    assert!(matches!(nothing.issues, Issues::Json { cut_by_length: true, .. }));
}

#[test]
fn what_does_not_fit_the_schema_is_told_with_its_places() {
    let breach = breach(&asked(place()), &Expected::default(), Reply::new("{\"zip\": 1}"));
    assert_eq!(breach.code, ErrorCode::SchemaMismatch);
    assert_eq!(breach.what, "schema mismatch: lacks \"city\"; /zip is number, must be string");
    let Issues::Schema { mismatches } = breach.issues else { panic!("{:?}", breach.issues) };
    assert_eq!(mismatches[1].path, "/zip");
}

#[test]
fn the_callers_own_checks_run_after_the_schemas_and_may_panic() {
    let expected = Expected {
        checks: vec![
            Arc::new(|value: &Value| if value["city"] == "Oslo" { Ok(()) } else { Err("only Oslo".to_owned()) }),
            Arc::new(|value: &Value| if value["city"] == "Rome" { panic!("oh") } else { Ok(()) }),
        ],
        ..Expected::default()
    };
    assert!(validate(&asked(place()), &expected, &mut Reply::new("{\"city\": \"Oslo\"}")).is_ok());
    let breach = breach(&asked(place()), &expected, Reply::new("{\"city\": \"Rome\"}"));
    assert_eq!(breach.what, "schema mismatch: only Oslo; the check panicked");
}

#[test]
fn a_refusal_or_a_tool_call_is_no_bad_json_unless_an_answer_is_a_must() {
    let request = Request { tools: vec![weather()], ..asked(place()) };
    let declined = Reply::new("").with_refusal("I cannot.".to_owned());
    let called = Reply::new("").with_tool_calls([ToolCall::new("1", "get_weather", json!({"city": "Oslo"}))]);
    let must = Expected { must_answer: true, ..Expected::default() };
    for (reply, says) in [(declined, "the model declined: I cannot."), (called, "the model called tools")] {
        assert!(validate(&request, &Expected::default(), &mut reply.clone()).is_ok());
        assert!(breach(&request, &must, reply).what.contains(says));
    }
}

#[test]
fn a_parser_of_the_callers_own_takes_the_place_of_ours() {
    let expected = Expected {
        parse_json: Some(Arc::new(|text: &str| {
            text.strip_prefix("= ").map(|n| json!({"city": n})).ok_or("no =".to_owned())
        })),
        ..Expected::default()
    };
    let mut reply = Reply::new("= Oslo");
    assert!(validate(&asked(place()), &expected, &mut reply).is_ok());
    assert_eq!(reply.json_value(), Some(&json!({"city": "Oslo"})));
    assert!(breach(&asked(place()), &expected, Reply::new("{}")).what.ends_with("not JSON: no ="));
}

#[test]
fn every_problem_with_tools_is_told_at_once_and_the_first_names_the_error() {
    let calls = [
        ToolCall::new("1", "get_weather", json!({"city": 4})),
        ToolCall::new("1", "launch_rocket", json!({})),
        ToolCall::new("2", "get_weather", json!({"city": "Oslo"})),
    ];
    let request = Request { tools: vec![weather()], ..Request::user("Hi") };
    let reply = Reply::new("").with_tool_calls(calls);
    let strict = Expected { validate_arguments: true, ..Expected::default() };
    let breach = breach(&request, &strict, reply.clone());
    assert_eq!(breach.code, ErrorCode::SchemaMismatch);
    let Issues::Tools { problems } = &breach.issues else { panic!("{:?}", breach.issues) };
    let codes: Vec<_> = problems.iter().map(|problem| (&*problem.tool_call_id, problem.code)).collect();
    assert_eq!(
        codes,
        [("1", ErrorCode::SchemaMismatch), ("1", ErrorCode::UnknownTool), ("1", ErrorCode::DuplicateToolCallId)]
    );
    assert_eq!(problems[0].detail.as_deref(), Some("/city is number, must be string"));

    let lax = super::tests::breach(&request, &Expected::default(), reply.clone());
    assert_eq!(lax.code, ErrorCode::UnknownTool);
    let none = Request { tool_choice: ToolChoice::None, ..request };
    assert_eq!(
        super::tests::breach(&none, &Expected::default(), reply.clone()).code,
        ErrorCode::ToolChoiceNoneViolated
    );
    let bare = Request::user("Hi");
    assert_eq!(super::tests::breach(&bare, &Expected::default(), reply.clone()).code, ErrorCode::UnexpectedToolCalls);
    let own = Request { extra: serde_json::Map::from_iter([("tools".to_owned(), json!([]))]), ..bare };
    assert_eq!(super::tests::breach(&own, &Expected::default(), reply).code, ErrorCode::DuplicateToolCallId);
}
