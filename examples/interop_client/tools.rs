//! A conversation with tools, and an answer by a schema.

use super::expected::{Answer, Expected, Outcome, compare};
use super::report::Report;
use super::way::Way;
use serde_json::{Value, json};
use steadfast::chat::{FinishReason, Tool, ToolResult, Turn};
use steadfast::{Call, Client};

const PLACES: [&str; 2] = ["Oslo", "Lima"];

/// Two calls of a tool at once, of which one fails; the model is told, and answers.
pub(crate) async fn converse(client: &Client, way: Way, report: &mut Report) {
    let question = "How is the weather in Oslo, and in Lima?";
    let tool = Tool::new("get_weather", "How the weather is somewhere").parameters(json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    }));
    let (outcome, mut problems) = way.ask(client, Call::user(question).tool(tool.clone())).await;
    problems.extend(calls(&outcome));
    report.scenario(&way.name("two tools at once"), &outcome, &problems);
    let Ok(reply) = outcome else { return };
    let [oslo, lima] = reply.tool_calls() else { return };

    let results = [
        ToolResult::json(&oslo.id, json!({"degrees": 4, "sky": "rain"})),
        ToolResult::error(&lima.id, "the station does not answer"),
    ];
    let call = Call::user(question).then(reply.to_turn()).then(Turn::tool_results(results)).tool(tool);
    let (outcome, mut problems) = way.ask(client, call).await;
    let text = "It rains in Oslo; of Lima nothing is known.";
    let expected = Expected::answer(Answer { text: Some(text), finish: Some(FinishReason::Stop), ..Answer::default() });
    problems.extend(expected.problems(&outcome));
    report.scenario(&way.name("what came of them"), &outcome, &problems);
}

/// What is wrong with the calls.
fn calls(outcome: &Outcome) -> Vec<String> {
    let Ok(reply) = outcome else { return vec!["an error in place of calls".to_owned()] };
    let mut problems = Vec::new();
    compare(&mut problems, "finish reason", &reply.finish_reason(), &FinishReason::ToolCalls);
    let named: Vec<_> = reply.tool_calls().iter().map(|call| (call.name.as_str(), call.arguments.clone())).collect();
    compare(&mut problems, "calls", &named, &PLACES.map(|city| ("get_weather", json!({"city": city}))).to_vec());
    if let [first, second] = reply.tool_calls()
        && (first.id.is_empty() || first.id == second.id)
    {
        problems.push(format!("ids {:?} and {:?}", first.id, second.id));
    }
    problems
}

/// An answer by a schema.
pub(crate) async fn structure(client: &Client, way: Way, report: &mut Report) {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "born": {"type": "integer"}},
        "required": ["name", "born"],
        "additionalProperties": false,
    });
    let call = Call::user("Who wrote the first program?").schema("person", schema);
    let (outcome, mut problems) = way.ask(client, call).await;
    let value = outcome.as_ref().ok().and_then(|reply| reply.json_value()).cloned().unwrap_or(Value::Null);
    compare(&mut problems, "JSON", &value, &json!({"name": "Ada Lovelace", "born": 1815}));
    report.scenario(&way.name("an answer by a schema"), &outcome, &problems);
}
