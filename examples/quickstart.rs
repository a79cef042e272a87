//! A call that survives: `cargo run --example quickstart`. No key, no setup.
//!
//! The primary is a fake provider on a loopback port that rate-limits, fails and breaks off; a fallback answers. Printed are
//! the reply, who gave it, and everything that was tried before.
//!
//! Against a real server instead:
//!
//! | variable | meaning |
//! |---|---|
//! | `OPENAI_API_KEY` | asks OpenAI |
//! | `STEADFAST_BASE_URL` | asks any server that speaks its protocol (`http://localhost:8080/v1`), with `STEADFAST_API_KEY` if that is set |
//! | `STEADFAST_MODEL` | the model; default `gpt-5-mini` at OpenAI, `local` elsewhere |
//! | `STEADFAST_TIMEOUT_MS`, `STEADFAST_RETRIES` | one attempt (default 30000), and how often to try again (default 2) |

mod report;

use report::human;
use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;
use steadfast::observe::{Event, EventKind};
use steadfast::provider::{OpenAi, OpenAiCompatible};
use steadfast::resilience::Retry;
use steadfast::testing::{Answer, FakeProvider, Fault};
use steadfast::{Call, Client, Target};

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let question = "Why does a suspension bridge stand up in a storm? Answer in one sentence.";
    println!("asking:   {question}");
    if let Some(target) = real_server()? {
        return ask(&Client::builder(target).on_event(progress).build()?, question).await;
    }

    // The primary is having a bad day.
    let troubled = FakeProvider::openai()
        .then(Fault::rate_limited(Duration::from_millis(120)))
        .then(Fault::status(503))
        .times(2)
        .otherwise(Fault::reset_before_head())
        .start()
        .await?;
    let healthy = FakeProvider::openai()
        .otherwise(Answer::text("Because it gives way a little everywhere, and so breaks nowhere."))
        .start()
        .await?;

    let primary = Target::new(OpenAiCompatible::new(troubled.base_url()), "model-a").name("primary");
    let fallback = Target::new(OpenAiCompatible::new(healthy.base_url()), "model-b").name("fallback");
    let client = Client::builder(primary)
        .retry(Retry::new(3).base_delay(Duration::from_millis(50)))
        .fallback(fallback)
        .build()?;
    ask(&client, question).await
}

/// Says why it takes so long.
fn progress(event: &Event) {
    if let EventKind::RetryScheduled { attempt, max_retries, delay, reason, .. } = &event.kind {
        eprintln!("          {reason}: retry {attempt} of {max_retries} in {}", human(*delay));
    }
}

/// Asks, and prints what came of it.
async fn ask(client: &Client, question: &str) -> Result<ExitCode, Box<dyn Error>> {
    let reply = match client.call(Call::user(question).max_tokens(800)).await {
        Ok(reply) => reply,
        Err(error) => {
            println!("\nno answer\n");
            report::failure(&error);
            return Ok(ExitCode::FAILURE);
        }
    };
    println!("reply:    {}", reply.text().trim());
    let by = reply.target();
    println!("given by: {} (target {}), {} after the call began", by.name, by.index, human(by.elapsed));
    match reply.attempts() {
        [] => println!("\nThe first attempt succeeded."),
        failed => {
            println!("\nfailed before it:\n");
            report::attempts(failed, "  ");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The server that the environment names, if it names one.
fn real_server() -> Result<Option<Target>, Box<dyn Error>> {
    let model = |default: &str| variable("STEADFAST_MODEL").unwrap_or_else(|| default.to_owned());
    let target = if let Some(url) = variable("STEADFAST_BASE_URL") {
        let server = OpenAiCompatible::new(url);
        let server = match variable("STEADFAST_API_KEY") {
            Some(key) => server.api_key(key),
            None => server, // a key for OpenAI is not for others to see
        };
        Target::new(server, model("local"))
    } else if variable("OPENAI_API_KEY").is_some() {
        Target::new(OpenAi::from_env()?, model("gpt-5-mini"))
    } else {
        return Ok(None);
    };
    let timeout = Duration::from_millis(number("STEADFAST_TIMEOUT_MS", 30_000)?);
    let retry = Retry::new(u32::try_from(number("STEADFAST_RETRIES", 2)?)?);
    Ok(Some(target.timeout(timeout).retry(retry)))
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn number(name: &str, default: u64) -> Result<u64, String> {
    variable(name)
        .map_or(Ok(default), |text| text.trim().parse().map_err(|_| format!("{name} is not a number: {text}")))
}
