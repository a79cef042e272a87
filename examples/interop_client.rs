//! Plays the scenarios of llmock, a server that injects faults and grades its client: `interop/run.sh faults`.
//!
//! For each scenario: the server forgets what was, gets the faults, one call is made, and the server is asked for its
//! verdict. A scenario is good when the call ended as it should, and the server found nothing wrong.

use serde_json::{Value, json};
use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;
use steadfast::chat::Reply;
use steadfast::provider::OpenAiCompatible;
use steadfast::resilience::Retry;
use steadfast::{Call, Client, ErrorCode, LlmError, Target};

/// Faults, and how a call among them should end: with an answer or this code, after so many attempts.
struct Scenario {
    name: &'static str,
    faults: Value,
    end: Option<ErrorCode>,
    attempts: usize,
    /// A finding that is no fault of the client, and why it is none.
    but: Option<(&'static str, &'static str)>,
}

impl Scenario {
    fn new(name: &'static str, faults: Value, end: Option<ErrorCode>, attempts: usize) -> Self {
        Self { name, faults, end, attempts, but: None }
    }
}

fn scenarios() -> Vec<Scenario> {
    let fail = |status: u16, times: u32| json!({"type": "fail", "status": status, "times": times});
    let limited = json!({"type": "fail", "status": 429, "retry_after": 1, "times": 2});
    let broke = json!({"type": "fail", "status": 429, "code": "insufficient_quota", "times": 5});
    let slow = json!({"type": "delay", "seconds": 3, "times": 1});
    vec![
        Scenario::new("no fault", json!({"type": "reply", "text": "Hello."}), None, 1),
        Scenario::new("429, come back in 1 s, twice", limited, None, 3),
        Scenario::new("an outage of three requests", fail(503, 3), None, 4),
        Scenario::new("500 once", fail(500, 1), None, 2),
        Scenario::new("500 for good", fail(500, 50), Some(ErrorCode::ServerError), 5),
        Scenario::new("529 once", fail(529, 1), None, 2),
        Scenario::new("a bad key", fail(401, 5), Some(ErrorCode::Authentication), 1),
        Scenario::new("a bad request", fail(400, 5), Some(ErrorCode::InvalidRequest), 1),
        Scenario {
            but: Some(("gave_up", "the server takes every 429 for one that is worth retrying")),
            ..Scenario::new("429, no money left", broke, Some(ErrorCode::ProviderQuotaExhausted), 1)
        },
        Scenario::new("an answer that comes too late, once", slow, None, 2),
    ]
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let origin = env::args().nth(1).ok_or("give the origin of the server, such as http://127.0.0.1:8401")?;
    let server = Server { origin: origin.trim_end_matches('/').to_owned(), http: reqwest::Client::new() };
    let target = Target::new(OpenAiCompatible::new(format!("{}/v1", server.origin)), "gpt-4o-mini")
        .name("llmock")
        .retry(Retry::new(4).base_delay(Duration::from_millis(200)))
        .timeout(Duration::from_secs(1));
    let client = Client::builder(target).build()?;

    let mut all_good = true;
    for scenario in scenarios() {
        server.post("reset", &json!({})).await?;
        server.post("scenario", &json!({"behaviors": [scenario.faults]})).await?;
        let outcome = client.call(Call::user(scenario.name)).await;
        let verdict = server.verdict().await?;

        let problems = problems(&scenario, &outcome, &verdict);
        println!("{:<4} {:<36} {}", if problems.is_empty() { "ok" } else { "FAIL" }, scenario.name, told(&outcome));
        if let (true, Some((finding, why))) = (problems.is_empty(), scenario.but) {
            println!("     but for `{finding}`: {why}");
        }
        for problem in &problems {
            println!("     {problem}");
        }
        all_good &= problems.is_empty();
    }
    Ok(if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is not as it should be.
fn problems(scenario: &Scenario, outcome: &Result<Reply, LlmError>, verdict: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let (end, attempts) = match outcome {
        Ok(reply) => (None, reply.attempts().len() + 1),
        Err(error) => (Some(error.code()), error.attempts().len().max(1)),
    };
    if end != scenario.end.map(Some) {
        problems.push(format!("ends with {end:?} in place of {:?}", scenario.end));
    }
    if attempts != scenario.attempts || verdict["attempts"] != attempts {
        let there = &verdict["attempts"];
        problems.push(format!("{} attempts expected, {attempts} made, {there} arrived", scenario.attempts));
    }
    for finding in verdict["findings"].as_array().into_iter().flatten() {
        if scenario.but.is_none_or(|(code, _)| finding["code"] != code) {
            problems.push(format!("the server says {}: {}", finding["code"], finding["title"]));
        }
    }
    problems
}

fn told(outcome: &Result<Reply, LlmError>) -> String {
    match outcome {
        Ok(reply) => {
            let by = reply.target();
            format!("answer at attempt {}, after {:.1} s", by.attempts, by.elapsed.as_secs_f64())
        }
        Err(error) => error.to_string(),
    }
}

/// The server's own controls.
struct Server {
    origin: String,
    http: reqwest::Client,
}

impl Server {
    async fn post(&self, what: &str, body: &Value) -> Result<(), Box<dyn Error>> {
        let url = format!("{}/_llmock/{what}", self.origin);
        self.http.post(url).body(body.to_string()).send().await?.error_for_status()?;
        Ok(())
    }

    async fn verdict(&self) -> Result<Value, Box<dyn Error>> {
        let answer = self.http.get(format!("{}/_llmock/verdict", self.origin)).send().await?.error_for_status()?;
        Ok(serde_json::from_str(&answer.text().await?)?)
    }
}
