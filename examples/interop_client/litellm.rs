//! `LiteLLM`, a gateway, set up by `interop/litellm.yaml`: a real model behind it, and providers that fail as their models'
//! names say. What it makes of their failures should come out by the same codes, whatever protocol it is asked in.

use super::Fault;
use super::adapter::Subject;
use super::expected::{Answer, Expected, Outcome, compare};
use super::report::Report;
use super::way::Way;
use std::time::Duration;
use steadfast::{Call, ErrorCode};

/// A model of a few million parameters on a busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(60);
/// The slow provider takes longer.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Requests that the limit may let pass, although it is one in a minute: the minute may end between two.
const PASSED: usize = 2;

pub(crate) async fn play(subject: &Subject, report: &mut Report) -> Result<(), Fault> {
    let local = subject.with_model("local").client(PATIENCE, 0)?;
    for way in Way::BOTH {
        let question = Call::user("Why is the sky blue? Answer in one sentence.").max_tokens(20);
        let (outcome, mut problems) = way.ask(&local, question).await;
        problems.extend(Expected::answer(Answer::default()).problems(&outcome));
        if !outcome.as_ref().is_ok_and(|reply| reply.usage().is_some_and(|usage| usage.input > 0 && usage.output > 0)) {
            problems.push("no usage".to_owned());
        }
        report.scenario(&way.name("the model behind it"), &outcome, &problems);
        let (outcome, mut problems) = way.ask(&local, Call::user("word ".repeat(6_000)).max_tokens(20)).await;
        problems.extend(fails(ErrorCode::ContextLengthExceeded, &outcome));
        report.scenario(&way.name("too long a prompt for it"), &outcome, &problems);
    }

    for (model, code) in failures(&subject.provider) {
        let timeout = if code == ErrorCode::RequestTimeout { TIMEOUT } else { PATIENCE };
        for way in Way::BOTH {
            let (outcome, mut problems) = way.ask(&subject.with_model(model).client(timeout, 0)?, "Anyone?").await;
            problems.extend(fails(code, &outcome));
            if let (Some(wait), Err(error)) = (advised(&subject.provider, model), &outcome) {
                compare(&mut problems, "advised wait", &error.retry_after(), &Some(wait));
            }
            report.scenario(&way.name(model), &outcome, &problems);
        }
    }

    let client = subject.with_model(&format!("limited-{}", subject.provider)).client(PATIENCE, 0)?;
    let mut outcome = client.call("Anyone?").await;
    for _ in 0..PASSED {
        if outcome.is_ok() {
            outcome = client.call("Anyone?").await;
        }
    }
    report.scenario("its own limit", &outcome, &fails(ErrorCode::ProviderRateLimited, &outcome));
    Ok(())
}

/// The models that fail, and how.
fn failures(provider: &str) -> [(&'static str, ErrorCode); 7] {
    use ErrorCode as Code;
    [
        ("always-429", Code::ProviderRateLimited),
        // Gemini says the same of a minute's quota, so that by its rules a retry may help.
        ("always-quota", if provider == "gemini" { Code::ProviderRateLimited } else { Code::ProviderQuotaExhausted }),
        ("always-500", Code::ServerError),
        ("always-503", Code::Overloaded),
        ("always-context", Code::ContextLengthExceeded),
        ("down", Code::ServerError),
        ("slow", Code::RequestTimeout),
    ]
}

/// The wait that the provider behind the gateway has advised. It is passed on under a name of the gateway's own; where the
/// gateway speaks Anthropic's protocol, under none (its pull request 37767).
fn advised(provider: &str, model: &str) -> Option<Duration> {
    (provider != "anthropic" && model == "always-429").then_some(Duration::from_secs(7))
}

fn fails(code: ErrorCode, outcome: &Outcome) -> Vec<String> {
    Expected::error(code, 1).problems(outcome)
}
