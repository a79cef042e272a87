//! A small real model behind llama.cpp's own server. What it says nobody knows, but that it says something, in so many
//! tokens, and why it stopped.

use super::Fault;
use super::adapter::Subject;
use super::expected::{Answer, Expected, Outcome, compare};
use super::report::Report;
use std::time::Duration;
use steadfast::chat::{FinishReason, Reply, Turn, Usage};
use steadfast::{Call, ErrorCode};

/// A busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest answer, in tokens.
const LIMIT: u32 = 24;

pub(crate) async fn play(subject: &Subject, report: &mut Report) -> Result<(), Fault> {
    let client = subject.client(PATIENCE, 0)?;
    let ask = |call: Call| client.call(call.temperature(0.0).max_tokens(LIMIT));

    let question =
        Call::user("Why does a suspension bridge stand up in a storm?").system("You answer in one sentence.");
    let outcome = ask(question).await;
    report.scenario("a question", &outcome, &answered(&outcome));
    let short = usage(&outcome).map_or(0, |usage| usage.input);

    let history = [Turn::user("What is a lighthouse?"), Turn::assistant("A tower with a light that warns ships.")];
    let question = Call::user("Who works there?").system("You answer in one sentence.").history(history);
    let outcome = ask(question).await;
    let mut problems = answered(&outcome);
    if usage(&outcome).is_none_or(|usage| usage.input <= short) {
        problems.push(format!("the turns before are not in the prompt: no more than {short} tokens"));
    }
    report.scenario("a conversation", &outcome, &problems);

    let outcome = ask(Call::user("Tell me a long story about the sea.")).await;
    let mut problems = answered(&outcome);
    compare(&mut problems, "tokens", &usage(&outcome).map(|usage| usage.output), &Some(LIMIT.into()));
    if subject.provider != "responses" {
        // There this server calls every answer complete.
        let finish = outcome.as_ref().ok().map(Reply::finish_reason);
        compare(&mut problems, "finish reason", &finish, &Some(FinishReason::Length));
    }
    report.scenario("cut by the limit", &outcome, &problems);

    let outcome = ask(Call::user("word ".repeat(6_000))).await;
    let expected = Expected::error(ErrorCode::ContextLengthExceeded, 1);
    report.scenario("too long a prompt", &outcome, &expected.problems(&outcome));

    let outcome = subject.with_wrong_key().client(PATIENCE, 1)?.call("Hello?").await;
    let expected = Expected::error(ErrorCode::Authentication, 1);
    report.scenario("a wrong key", &outcome, &expected.problems(&outcome));
    Ok(())
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
