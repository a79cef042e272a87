//! aimock, a server that speaks the protocols of many providers and answers from `interop/aimock.json`.

use super::Fault;
use super::adapter::Subject;
use super::expected::{Answer, Expected};
use super::report::Report;
use super::tools::{self, Mind};
use super::way::Way;
use std::time::Duration;
use steadfast::chat::{FinishReason, Turn};
use steadfast::{Call, ErrorCode};

/// Nothing takes so long,
const PATIENCE: Duration = Duration::from_secs(60);
/// but what is meant to come too late takes longer than this.
const TIMEOUT: Duration = Duration::from_millis(700);

struct Scenario {
    name: &'static str,
    call: Call,
    retries: u32,
    timeout: Duration,
    expected: Expected,
}

impl Scenario {
    fn new(name: &'static str, call: impl Into<Call>, expected: Expected) -> Self {
        Self { name, call: call.into(), retries: 0, timeout: PATIENCE, expected }
    }

    /// The call should be answered so.
    fn answer(name: &'static str, call: impl Into<Call>, answer: Answer) -> Self {
        Self::new(name, call, Expected::answer(answer))
    }

    /// The call should fail so, after one retry where that may help.
    fn error(name: &'static str, code: ErrorCode, is_retried: bool) -> Self {
        Self { retries: 1, ..Self::new(name, name, Expected::error(code, if is_retried { 2 } else { 1 })) }
    }
}

fn scenarios(provider: &str) -> Vec<Scenario> {
    use ErrorCode as Code;
    let text = |text| Answer { text: Some(text), finish: Some(FinishReason::Stop), ..Answer::default() };
    let persona = Call::user("And who are you?")
        .system("You are a lighthouse keeper.")
        .history([Turn::user("Is anybody there?"), Turn::assistant("I am.")]);
    vec![
        Scenario::answer(
            "a question",
            "What holds a bridge up?",
            spoken(provider, Answer { usage: Some((21, 6)), ..text("Its towers, and the ground.") }),
        ),
        Scenario::answer("Grüße, 世界 🌍", "Grüße, 世界 🌍", text("Zurück: \"世界\" 🌍\n\\o/")),
        Scenario::answer(
            "cut by the limit",
            Call::user("Count to a hundred.").max_tokens(7),
            spoken(
                provider,
                Answer { finish: Some(FinishReason::Length), usage: Some((11, 7)), ..text("One, two, three,") },
            ),
        ),
        Scenario::answer("instructions and history", persona, text("I keep the light.")),
        Scenario::answer(
            "a thought before the answer",
            "Think first: what is 6 times 7?",
            spoken(provider, Answer { reasoning: Some("Six sevens are forty-two."), ..text("42") }),
        ),
        Scenario {
            retries: 1,
            ..Scenario::new(
                "429 once, come back in 1 s",
                "limited once",
                Expected { end: Ok(text("Now there is room.")), attempts: 2 },
            )
        },
        Scenario::error("a bad request", Code::InvalidRequest, false),
        Scenario::error("not allowed", Code::Authorization, false),
        Scenario::error("no such model", Code::NotFound, false),
        Scenario::error("too long a prompt", Code::ContextLengthExceeded, false),
        Scenario::error("an internal error", Code::ServerError, true),
        Scenario::error("overloaded, 529", Code::Overloaded, true),
        Scenario::error("not JSON under a 200", Code::ResponseInvalid, false),
        Scenario::error("cut off without an answer", Code::ConnectionInterrupted, true),
        Scenario { timeout: TIMEOUT, ..Scenario::error("too late", Code::RequestTimeout, true) },
    ]
}

/// What this server makes of an answer in a provider's protocol. In Ollama's it counts no tokens, gives no reason but `stop`,
/// and puts thoughts into a field that Ollama does not have; in the Responses API it does not say why an answer is
/// incomplete.
fn spoken(provider: &str, answer: Answer) -> Answer {
    match (provider, answer.finish) {
        ("ollama", _) => Answer { finish: Some(FinishReason::Stop), usage: Some((0, 0)), reasoning: None, ..answer },
        ("responses", Some(FinishReason::Length)) => Answer { finish: Some(FinishReason::Other), ..answer },
        _ => answer,
    }
}

/// Streams that break, and how each should end.
const BROKEN: [(&str, ErrorCode); 2] = [
    // Nothing may be sent again then: the caller may have shown the words.
    ("broken off after some words", ErrorCode::StreamInterrupted),
    ("silent for too long", ErrorCode::IdleTimeout),
];

pub(crate) async fn play(subject: &Subject, report: &mut Report) -> Result<(), Fault> {
    for way in Way::BOTH {
        for Scenario { name, call, retries, timeout, expected } in scenarios(&subject.provider) {
            // The gate does not pass on the header by which the server counts: its one failure is used up by then.
            if way == Way::Streamed && subject.provider == "bedrock" && name.starts_with("429 once") {
                continue;
            }
            // The server counts by this header which of several answers is next.
            let call = call.header("x-test-id", way.name(&subject.provider));
            let (outcome, mut problems) = way.ask(&subject.client(timeout, retries)?, call).await;
            let expected = match (way, subject.provider.as_str(), &expected.end) {
                // A line that is no JSON is a frame that is none.
                (Way::Streamed, "ollama", Err(ErrorCode::ResponseInvalid)) => {
                    Expected::error(ErrorCode::StreamFrameInvalid, expected.attempts)
                }
                _ => expected,
            };
            problems.extend(expected.problems(&outcome));
            report.scenario(&way.name(name), &outcome, &problems);
        }
        let client = subject.client(PATIENCE, 0)?;
        tools::converse(&client, way, Mind::Canned, report).await;
        tools::extract(&client, way, Mind::Canned, tools::who(), report).await;
    }
    for (name, code) in BROKEN {
        // In some protocols the silence comes before the words, so that a retry would be right.
        let retries = u32::from(code == ErrorCode::StreamInterrupted);
        let call = Call::user(name).idle_timeout(TIMEOUT);
        let (outcome, mut problems) = Way::Streamed.ask(&subject.client(PATIENCE, retries)?, call).await;
        problems.extend(Expected::error(code, 1).problems(&outcome));
        report.scenario(name, &outcome, &problems);
    }
    // The gate before Bedrock answers as AWS does.
    let refused = if subject.provider == "bedrock" { ErrorCode::Authorization } else { ErrorCode::Authentication };
    for way in Way::BOTH {
        // A client each: a token that was kept from the first call would be worth another attempt.
        let stranger = subject.with_wrong_key().client(PATIENCE, 1)?;
        let (outcome, mut problems) = way.ask(&stranger, "What holds a bridge up?").await;
        problems.extend(Expected::error(refused, 1).problems(&outcome));
        report.scenario(&way.name("a wrong key"), &outcome, &problems);
    }
    Ok(())
}
