//! A conversation with tools, and an answer of a Rust type. What a server with canned answers says is known; of a model's
//! own answers the form is, which is what a client has to get right.

use super::expected::{Answer, Expected, Outcome, compare};
use super::report::Report;
use super::way::Way;
use serde::Deserialize;
use serde_json::json;
use steadfast::chat::{FinishReason, JsonSchema, Output, Reply, Tool, ToolCall, ToolChoice, ToolResult, Turn};
use steadfast::{Call, Client, ErrorCode};

const PLACES: [&str; 2] = ["Oslo", "Lima"];
/// The longest answer, in tokens: a call that is cut is none.
const LIMIT: u32 = 200;

/// Whose words the answers are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mind {
    /// Those of `interop/aimock.json`.
    Canned,
    /// A model's own.
    Own,
}

#[derive(Debug, Deserialize, PartialEq, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Person {
    name: String,
    born: i64,
}

/// Two calls of tools at once, of which one fails; the model is told, and answers.
pub(crate) async fn converse(client: &Client, way: Way, mind: Mind, report: &mut Report) {
    let question = Call::user("How is the weather in Oslo, and in Lima?").tools(tools());
    let question = question.validate_arguments(true).temperature(0.0).max_tokens(LIMIT);
    // Not one by its name: llama.cpp's server takes no notice of that.
    let first = match mind {
        Mind::Canned => question.clone(),
        Mind::Own => question.clone().tool_choice(ToolChoice::Required),
    };
    let (outcome, mut problems) = way.ask(client, first).await;
    problems.extend(called(&outcome, mind));
    report.scenario(&way.name("two tools at once"), &outcome, &problems);
    let Ok(reply) = outcome else { return };

    let (turn, calls) = at_least_two(&reply);
    let Some((failed, done)) = calls.split_last() else { return };
    let results = done.iter().map(|call| ToolResult::json(&call.id, json!({"degrees": 4, "sky": "rain"})));
    let results = results.chain([ToolResult::error(&failed.id, "the station does not answer")]);
    let (outcome, mut problems) = way.ask(client, question.then(turn).then(Turn::tool_results(results))).await;
    problems.extend(match &outcome {
        // It may want to know more.
        Ok(reply) if mind == Mind::Own && !reply.tool_calls().is_empty() => called(&outcome, mind),
        _ => told(&outcome, mind, "It rains in Oslo; of Lima nothing is known."),
    });
    report.scenario(&way.name("what came of them"), &outcome, &problems);
}

fn tools() -> [Tool; 2] {
    let place = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    [("get_weather", "How the weather is somewhere"), ("get_time", "What time it is somewhere")]
        .map(|(name, what)| Tool::new(name, what).parameters(place.clone()))
}

/// The turn of a reply with its calls; beside a single one is another, since a model of its own mind may make but one.
fn at_least_two(reply: &Reply) -> (Turn, Vec<ToolCall>) {
    let mut calls = reply.tool_calls().to_vec();
    if calls.len() != 1 {
        return (reply.to_turn(), calls);
    }
    calls.push(ToolCall::new("call_beside_it", "get_time", json!({"city": "Lima"})));
    (Turn::assistant_tool_calls(calls.clone()), calls)
}

/// What is wrong with the calls. That their arguments fit the schemas is the client's to see, and seen here once more.
fn called(outcome: &Outcome, mind: Mind) -> Vec<String> {
    let Ok(reply) = outcome else { return vec!["an error in place of calls".to_owned()] };
    let mut problems = Vec::new();
    compare(&mut problems, "finish reason", &reply.finish_reason(), &FinishReason::ToolCalls);
    let calls = reply.tool_calls();
    if mind == Mind::Canned {
        let named: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.arguments.clone())).collect();
        compare(&mut problems, "calls", &named, &PLACES.map(|city| ("get_weather", json!({"city": city}))).to_vec());
    } else {
        problems.extend(counted(reply));
        if calls.is_empty() {
            problems.push("no calls".to_owned());
        }
    }
    for (at, call) in calls.iter().enumerate() {
        if !tools().iter().any(|tool| tool.name == call.name) || !call.arguments["city"].is_string() {
            problems.push(format!("what is {call:?}?"));
        }
        if call.id.is_empty() || calls[..at].iter().any(|before| before.id == call.id) {
            problems.push(format!("the id {:?} is none, or that of two calls", call.id));
        }
    }
    problems
}

/// What is wrong with an answer in words: `canned`, or a model's own.
fn told(outcome: &Outcome, mind: Mind, canned: &'static str) -> Vec<String> {
    if mind == Mind::Canned {
        let answer = Answer { text: Some(canned), finish: Some(FinishReason::Stop), ..Answer::default() };
        return Expected::answer(answer).problems(outcome);
    }
    let mut problems = Expected::answer(Answer::default()).problems(outcome);
    if let Ok(reply) = outcome {
        if !matches!(reply.finish_reason(), FinishReason::Stop | FinishReason::Length) {
            problems.push(format!("finish reason {:?}", reply.finish_reason()));
        }
        problems.extend(counted(reply));
    }
    problems
}

/// What is wrong with the tokens of an answer.
fn counted(reply: &Reply) -> Option<String> {
    let is_counted = reply.usage().is_some_and(|usage| usage.input > 0 && usage.output > 0);
    (!is_counted).then(|| format!("usage {:?}", reply.usage()))
}

/// The call that asks for a person.
pub(crate) fn who() -> Call {
    Call::user("Ada Lovelace, born in 1815, wrote the first program. Who was it?").temperature(0.0).max_tokens(LIMIT)
}

/// The schema of a person.
pub(crate) fn person() -> JsonSchema {
    JsonSchema::of::<Person>()
}

/// An answer of a Rust type, to [`who`] asked in some way or other.
pub(crate) async fn extract(client: &Client, way: Way, mind: Mind, call: Call, report: &mut Report) {
    let (outcome, mut problems, person) = ask_who(client, way, call).await;
    let is_right = match mind {
        Mind::Canned => person == Some(Person { name: "Ada Lovelace".to_owned(), born: 1815 }),
        Mind::Own => person.is_some(),
    };
    if !is_right {
        problems.push(format!("the value is {person:?}"));
    }
    if let (Mind::Own, Ok(reply)) = (mind, &outcome) {
        compare(&mut problems, "finish reason", &reply.finish_reason(), &FinishReason::Stop);
        problems.extend(counted(reply));
    }
    report.scenario(&way.name("an answer of a type"), &outcome, &problems);
}

/// The same of a server that is known to take no notice of the schema: its words are no such value, and no value comes of
/// them.
pub(crate) async fn extract_in_vain(client: &Client, way: Way, report: &mut Report) {
    let (outcome, mut problems, _) = ask_who(client, way, who()).await;
    problems.extend(Expected::error(ErrorCode::JsonParseFailed, 1).problems(&outcome));
    report.scenario(&way.name("a type that it takes no notice of"), &outcome, &problems);
}

/// A stream has no `extract`: it is asked for by the same schema, and read at its end.
async fn ask_who(client: &Client, way: Way, call: Call) -> (Outcome, Vec<String>, Option<Person>) {
    if way == Way::Whole {
        return match client.extract(call).await {
            Ok(extracted) => (Ok(extracted.reply), Vec::new(), Some(extracted.value)),
            Err(error) => (Err(error), Vec::new(), None),
        };
    }
    let (outcome, problems) = way.ask(client, call.output(Output::Schema(person()))).await;
    let person = outcome.as_ref().ok().and_then(|reply| reply.json().ok());
    (outcome, problems, person)
}
