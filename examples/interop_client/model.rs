//! A small real model behind llama.cpp's own server. What it says nobody knows, but that it says something, in so many
//! tokens, and why it stopped; that it calls tools by their schemas, where it has to; and that its JSON is of the type asked
//! for, where the server holds it to a schema.

use super::Fault;
use super::adapter::Subject;
use super::expected::{Answer, Expected, Outcome, compare};
use super::report::Report;
use super::tools::{self, Mind};
use super::way::Way;
use serde_json::json;
use std::time::Duration;
use steadfast::chat::{FinishReason, Reply, Turn, Usage};
use steadfast::{Call, Client, ErrorCode};

/// A busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest answer, in tokens.
const LIMIT: u32 = 24;

pub(crate) async fn play(subject: &Subject, report: &mut Report) -> Result<(), Fault> {
    // llama.cpp's server keeps no connection after a stream, whatever it says: see `Preset`'s `LLAMA_CPP`.
    let subject = &subject.connecting_anew();
    let client = subject.client(PATIENCE, 0)?;
    let mut said = Vec::new();
    for way in Way::BOTH {
        said.push(converse(subject, &client, way, report).await?);
    }
    if let [whole, streamed] = &said[..] {
        let mut problems = Vec::new();
        compare(&mut problems, "what is streamed", streamed, whole);
        report.note("the same both ways", &problems);
    }
    for way in Way::BOTH {
        tools::converse(&client, way, Mind::Own, report).await;
        extract(subject, &client, way, report).await?;
    }
    Ok(())
}

/// What an answer says, why it ends, and the tokens of both sides.
type Said = Option<(String, FinishReason, Option<(u64, u64)>)>;

/// Plays all of it one way, and gives what was said.
async fn converse(subject: &Subject, client: &Client, way: Way, report: &mut Report) -> Result<Vec<Said>, Fault> {
    let ask = |call: Call| way.ask(client, call.temperature(0.0).max_tokens(LIMIT));

    let question =
        Call::user("Why does a suspension bridge stand up in a storm?").system("You answer in one sentence.");
    let (outcome, mut problems) = ask(question).await;
    problems.extend(answered(&outcome));
    report.scenario(&way.name("a question"), &outcome, &problems);
    let short = usage(&outcome).map_or(0, |usage| usage.input);
    let mut said = vec![words(&outcome)];

    let history = [Turn::user("What is a lighthouse?"), Turn::assistant("A tower with a light that warns ships.")];
    let question = Call::user("Who works there?").system("You answer in one sentence.").history(history);
    let (outcome, mut problems) = ask(question).await;
    problems.extend(answered(&outcome));
    if usage(&outcome).is_none_or(|usage| usage.input <= short) {
        problems.push(format!("the turns before are not in the prompt: no more than {short} tokens"));
    }
    report.scenario(&way.name("a conversation"), &outcome, &problems);
    said.push(words(&outcome));

    let (outcome, mut problems) = ask(Call::user("Tell me a long story about the sea.")).await;
    problems.extend(answered(&outcome));
    compare(&mut problems, "tokens", &usage(&outcome).map(|usage| usage.output), &Some(LIMIT.into()));
    if subject.provider != "responses" {
        // There this server calls every answer complete.
        let finish = outcome.as_ref().ok().map(Reply::finish_reason);
        compare(&mut problems, "finish reason", &finish, &Some(FinishReason::Length));
    }
    report.scenario(&way.name("cut by the limit"), &outcome, &problems);
    said.push(words(&outcome));

    let (outcome, mut problems) = ask(Call::user("word ".repeat(6_000))).await;
    problems.extend(Expected::error(ErrorCode::ContextLengthExceeded, 1).problems(&outcome));
    report.scenario(&way.name("too long a prompt"), &outcome, &problems);

    let (outcome, mut problems) = way.ask(&subject.with_wrong_key().client(PATIENCE, 1)?, "Hello?").await;
    problems.extend(Expected::error(ErrorCode::Authentication, 1).problems(&outcome));
    report.scenario(&way.name("a wrong key"), &outcome, &problems);
    Ok(said)
}

/// An answer of a type. In chat completions the server holds the model to the schema. In the other protocols it takes no
/// notice of their own fields for it; what helps there is for the caller to know, as it is done here.
async fn extract(subject: &Subject, client: &Client, way: Way, report: &mut Report) -> Result<(), Fault> {
    let who = tools::who();
    match subject.provider.as_str() {
        "responses" => {
            tools::extract_in_vain(client, way, report).await;
            // A field of the server's own.
            let held = who.extra(json!({"json_schema": tools::person().schema}));
            tools::extract(client, way, Mind::Own, held, report).await;
        }
        "anthropic" => {
            tools::extract_in_vain(client, way, report).await;
            // A model that has no format for it is made to call a tool in its place. The server answers to any name.
            let caller = subject.with_model("claude-sonnet-4").client(PATIENCE, 0)?;
            tools::extract(&caller, way, Mind::Own, who, report).await;
        }
        _ => tools::extract(client, way, Mind::Own, who, report).await,
    }
    Ok(())
}

fn words(outcome: &Outcome) -> Said {
    let reply = outcome.as_ref().ok()?;
    let usage = reply.usage().map(|usage| (usage.input, usage.output));
    Some((reply.text().to_owned(), reply.finish_reason(), usage))
}

/// What is wrong with an answer of this model.
fn answered(outcome: &Outcome) -> Vec<String> {
    let mut problems = Expected::answer(Answer::default()).problems(outcome);
    let Ok(reply) = outcome else { return problems };
    if !matches!(reply.finish_reason(), FinishReason::Stop | FinishReason::Length) {
        problems.push(format!("finish reason {:?}", reply.finish_reason()));
    }
    if !reply.usage().is_some_and(|usage| usage.input > 0 && (1..=LIMIT.into()).contains(&usage.output)) {
        problems.push(format!("usage {:?}", reply.usage()));
    }
    problems
}

fn usage(outcome: &Outcome) -> Option<&Usage> {
    outcome.as_ref().ok()?.usage()
}
