//! llmock, a server that injects faults and grades its client.
//!
//! For each scenario: the server forgets what was, gets the faults, the calls are made, and the server is asked for its
//! verdict. A scenario is good when the last call ended as it should, and the server found nothing wrong.

use super::Fault;
use super::adapter::Subject;
use super::expected::{Expected, Outcome, attempts};
use super::report::Report;
use super::way::Way;
use serde_json::{Value, json};
use std::time::Duration;
use steadfast::record::Next;
use steadfast::{Call, ErrorCode};

/// Nothing takes so long,
const PATIENCE: Duration = Duration::from_secs(60);
/// but an answer that is meant to come too late takes longer than this.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The longest silence of a stream; a stall is longer,
const SILENCE: Duration = Duration::from_millis(700);
/// by this, in seconds.
const STALL: f64 = 2.5;
const RETRIES: u32 = 4;
/// The server's limit (`LLMOCK_TPM`), of which a call may ask for a little more than half: the second has to wait until a
/// little is refilled.
const OVER_HALF_OF_THE_LIMIT: u32 = 30_600;

struct Scenario {
    name: &'static str,
    faults: Vec<Value>,
    call: Call,
    way: Way,
    timeout: Duration,
    /// The same call is made so often in a row, and the last one counts.
    calls: usize,
    expected: Expected,
    /// What the client should have been advised to wait before each retry.
    waits: Option<Vec<Duration>>,
    /// A finding that is no fault of the client, and why it is none.
    but: Option<(&'static str, &'static str)>,
}

impl Scenario {
    fn new(name: &'static str, fault: Value, expected: Expected) -> Self {
        let faults = if fault.is_null() { Vec::new() } else { vec![fault] };
        let call = Call::user(name).max_tokens(100).idle_timeout(SILENCE);
        let (way, timeout) = (Way::Whole, PATIENCE);
        Self { name, faults, call, way, timeout, calls: 1, expected, waits: None, but: None }
    }

    /// The call should end at once with this code.
    fn fatal(name: &'static str, fault: Value, code: ErrorCode) -> Self {
        Self::new(name, fault, Expected::error(code, 1))
    }

    /// The call should be answered, after so many attempts.
    fn answered(name: &'static str, fault: Value, attempts: usize) -> Self {
        Self::new(name, fault, Expected::any_answer(attempts))
    }

    /// Asked for as a stream.
    fn streamed(self) -> Self {
        Self { way: Way::Streamed, ..self }
    }

    /// With patience for silence.
    fn patient(self) -> Self {
        Self { call: self.call.idle_timeout(PATIENCE), ..self }
    }

    /// But for a finding that is no fault of the client.
    fn but(self, finding: &'static str, why: &'static str) -> Self {
        Self { but: Some((finding, why)), ..self }
    }

    /// With the waits that the server's advice means, in milliseconds.
    fn waits(self, millis: &[u64]) -> Self {
        Self { waits: Some(millis.iter().copied().map(Duration::from_millis).collect()), ..self }
    }
}

fn scenarios(provider: &str) -> Vec<Scenario> {
    use ErrorCode as Code;
    let fail = |status: u16, times: u32| json!({"type": "fail", "status": status, "times": times});
    let limited =
        |seconds: f64, times: u32| json!({"type": "fail", "status": 429, "retry_after": seconds, "times": times});
    let mut all = vec![
        Scenario::answered("no fault", json!({"type": "reply", "text": "Hello."}), 1),
        Scenario::answered("429, come back in 1 s, twice", limited(1.0, 2), 3).waits(&[1_000, 1_000]),
        // `retry-after` is rounded up to the second: only `retry-after-ms` says 400.
        Scenario::answered("429, come back in 400 ms", limited(0.4, 1), 2).waits(&[400]),
        Scenario {
            call: Call::user("a limit of tokens").max_tokens(OVER_HALF_OF_THE_LIMIT),
            calls: 2,
            ..Scenario::answered("a limit of tokens", Value::Null, 2)
        },
        Scenario::answered("an outage of three requests", fail(502, 3), 4),
        Scenario::answered("503 once, come back in 1 s", fail(503, 1), 2).waits(&[1_000]),
        Scenario::answered("500 once", fail(500, 1), 2),
        Scenario::new("500 for good", fail(500, 50), Expected::error(Code::ServerError, 5)),
        Scenario::answered("529 once", fail(529, 1), 2),
        Scenario::answered("408 once", fail(408, 1), 2),
        Scenario::answered("409 once", fail(409, 1), 2),
        Scenario::fatal("a bad request", fail(400, 5), Code::InvalidRequest),
        Scenario::fatal("a bad key", fail(401, 5), Code::Authentication),
        Scenario::fatal("no money left, 402", fail(402, 5), Code::ProviderQuotaExhausted),
        Scenario::fatal("not allowed", fail(403, 5), Code::Authorization),
        Scenario::fatal("no such model", fail(404, 5), Code::NotFound),
        Scenario::fatal("too large a request", fail(413, 5), Code::PayloadTooLarge),
        Scenario::fatal("not to be processed", fail(422, 5), Code::InvalidRequest),
        Scenario {
            // More than the server's window of context (`LLMOCK_CONTEXT_WINDOW`), which it says in the provider's words.
            call: Call::user("word ".repeat(10_000)).max_tokens(100),
            ..Scenario::fatal("too long a prompt", Value::Null, Code::ContextLengthExceeded)
        },
        Scenario {
            timeout: TIMEOUT,
            ..Scenario::answered("an answer that comes too late, once", json!({"type": "delay", "seconds": 1.5}), 2)
        },
    ];
    all.extend(no_money(provider));
    all.extend(streams(provider));
    all
}

/// Streams, and what breaks them: before the first words, where a retry answers, and after some, where nothing may be sent
/// again, since the caller may have shown them.
fn streams(provider: &str) -> Vec<Scenario> {
    use ErrorCode as Code;
    // So many events come before the first words.
    let opening = match provider {
        "openai" => 1,
        "anthropic" => 3,
        _ => 0,
    };
    let words = json!({"type": "reply", "text": "One two three four five six seven eight.", "times": 9});
    let fault =
        |kind, after: u32| json!({"type": "stream_fault", "kind": kind, "after_chunks": after, "stall_seconds": STALL});
    let broken = |name, end, kind, after| {
        let scenario = Scenario::new(name, fault(kind, after), end).streamed();
        Scenario { faults: [scenario.faults, vec![words.clone()]].concat(), ..scenario }
    };
    let early = |name, kind| broken(name, Expected::any_answer(2), kind, opening);
    let late = |name, kind, code| broken(name, Expected::error(code, 1), kind, opening + 3);
    vec![
        Scenario::answered("a stream", words.clone(), 1).streamed(),
        Scenario::answered("a stream, 503 once", json!({"type": "fail", "status": 503}), 2).streamed(),
        Scenario::answered(
            "a stream whose first words come late",
            json!({"type": "slow_first_token", "seconds": 2}),
            1,
        )
        .patient()
        .streamed(),
        Scenario {
            timeout: TIMEOUT,
            ..Scenario::answered(
                "a stream whose first words come too late, once",
                json!({"type": "slow_first_token", "seconds": 2}),
                2,
            )
            .patient()
            .streamed()
        },
        early("a stream, disconnected before its words", "disconnect"),
        early("a stream, ended before its words", "truncate"),
        early("a stream, silent before its words", "stall"),
        broken(
            "a stream, not JSON before its words",
            Expected::error(Code::StreamFrameInvalid, 1),
            "malformed",
            opening,
        )
        .but("malformed_chunk_ignored", "the client stopped reading, and said so: the error tells it"),
        late("a stream, disconnected after some words", "disconnect", Code::StreamInterrupted)
            .but("gave_up", AFTER_WORDS),
        late("a stream, ended after some words", "truncate", Code::StreamInterrupted)
            .but("truncated_stream_accepted", AFTER_WORDS),
        late("a stream, silent after some words", "stall", Code::IdleTimeout),
        late("a stream, not JSON after some words", "malformed", Code::StreamFrameInvalid)
            .but("malformed_chunk_ignored", AFTER_WORDS),
    ]
}

/// Why no stream is asked for again that has said something.
const AFTER_WORDS: &str = "the caller has words of it, so nothing may be sent again: it gets an error, and those words";

/// How a provider says in its own way that the money is gone, or a quota of days.
fn no_money(provider: &str) -> Option<Scenario> {
    let quota = |name, fault| Scenario::fatal(name, fault, ErrorCode::ProviderQuotaExhausted);
    let but = ("gave_up", "the server takes every 429 for one that is worth retrying");
    match provider {
        "openai" => {
            let fault = json!({"type": "fail", "status": 429, "code": "insufficient_quota", "times": 5});
            Some(quota("no money left, 429", fault).but(but.0, but.1))
        }
        "anthropic" => {
            let said = "Your credit balance is too low to access the API. Please go to Plans & Billing.";
            Some(quota("no money left, 400", json!({"type": "fail", "status": 400, "message": said, "times": 5})))
        }
        "gemini" => {
            let said = "Quota exceeded for metric: generate_content_requests, limit: 20 per day.";
            let fault = json!({"type": "fail", "status": 429, "message": said, "times": 5});
            Some(quota("a day's quota is used up, 429", fault).but(but.0, but.1))
        }
        _ => None,
    }
}

pub(crate) async fn play(subject: &Subject, report: &mut Report) -> Result<(), Fault> {
    let server = Server::of(&subject.base_url)?;
    for scenario in scenarios(&subject.provider) {
        server.post("reset", &json!({})).await?;
        if !scenario.faults.is_empty() {
            server.post("scenario", &json!({"behaviors": scenario.faults})).await?;
        }
        let client = subject.client(scenario.timeout, RETRIES)?;
        for _ in 1..scenario.calls {
            client.call(scenario.call.clone()).await?;
        }
        let (outcome, mut wrong) = scenario.way.ask(&client, scenario.call.clone()).await;
        wrong.extend(problems(&scenario, &outcome, &server.verdict().await?));
        let but = scenario.but.map(|(finding, why)| format!("the finding `{finding}`: {why}"));
        report.scenario_but(scenario.name, &outcome, &wrong, but.as_deref());
    }
    Ok(())
}

/// What is not as it should be.
fn problems(scenario: &Scenario, outcome: &Outcome, verdict: &Value) -> Vec<String> {
    let mut problems = scenario.expected.problems(outcome);
    let (made, arrived) = (attempts(outcome) + scenario.calls - 1, &verdict["attempts"]);
    if arrived != made {
        problems.push(format!("{made} attempts made, {arrived} arrived"));
    }
    if let (Some(waits), Ok(reply)) = (&scenario.waits, outcome) {
        let advised: Vec<_> = reply.attempts().iter().map(|attempt| attempt.next).collect();
        let expected: Vec<_> = waits.iter().map(|&after| Next::Retried { after, advised: true }).collect();
        super::expected::compare(&mut problems, "what was decided", &advised, &expected);
    }
    let findings: Vec<_> = verdict["findings"].as_array().into_iter().flatten().collect();
    let is_excused = |finding: &Value| scenario.but.is_some_and(|(code, _)| finding["code"] == code);
    for finding in findings.iter().filter(|finding| !is_excused(finding)) {
        problems.push(format!("the server says {}: {}", finding["code"], finding["title"]));
    }
    if let Some((code, _)) = scenario.but.filter(|_| !findings.iter().any(|finding| is_excused(finding))) {
        problems.push(format!("no `{code}`, which is excused"));
    }
    problems
}

/// The server's own controls.
struct Server {
    origin: String,
    http: reqwest::Client,
}

impl Server {
    /// The server that this URL of it is at.
    fn of(base_url: &str) -> Result<Self, Fault> {
        let origin = reqwest::Url::parse(base_url)?.origin().ascii_serialization();
        Ok(Self { origin, http: reqwest::Client::new() })
    }

    async fn post(&self, what: &str, body: &Value) -> Result<(), Fault> {
        let url = format!("{}/_llmock/{what}", self.origin);
        self.http.post(url).body(body.to_string()).send().await?.error_for_status()?;
        Ok(())
    }

    async fn verdict(&self) -> Result<Value, Fault> {
        let answer = self.http.get(format!("{}/_llmock/verdict", self.origin)).send().await?.error_for_status()?;
        Ok(serde_json::from_str(&answer.text().await?)?)
    }
}
