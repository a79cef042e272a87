//! A model that calls tools until it can answer: `cargo run --example tool_loop`. No key, no setup.
//!
//! The client runs no tool by itself. `run_tools` is the loop to copy: each round is a call of its own with its own retries,
//! the calls of a round run at the same time, a tool that fails is told to the model, and the rounds are bounded. A round
//! that has to be sent again never runs a tool twice: the tools ran before it.

use serde::Deserialize;
use serde_json::json;
use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use steadfast::chat::{Reply, Tool, ToolCall, ToolChoice, ToolResult, Turn};
use steadfast::provider::Anthropic;
use steadfast::resilience::Retry;
use steadfast::testing::{Answer, FakeProvider, Fault};
use steadfast::{Call, Client, LlmError, Target};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How often the model may ask for tools before it has to answer.
const MOST_ROUNDS: usize = 6;
/// How long a tool may take.
const TOOL_TIME: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let both = Answer::tool_call("get_weather", json!({"city": "Oslo"}))
        .and_tool_call("get_weather", json!({"city": "Atlantis"}));
    let fake = FakeProvider::anthropic()
        .then(both)
        .then(Fault::status(503)) // the round with the results has to be sent twice
        .then(Answer::text("Take an umbrella to Oslo. I could find no weather for Atlantis."))
        .start()
        .await?;
    let target = Target::new(Anthropic::new("a-key").base_url(&fake.base_url()), "claude-sonnet-4-6")
        .retry(Retry::new(2).base_delay(Duration::from_millis(5)));
    let client = Client::builder(target).build()?;

    let call = Call::user("Do I need an umbrella in Oslo, and in Atlantis?").tools(tools()).max_tokens(500);
    let reply = run_tools(&client, call).await?;

    println!("\n{}", reply.text());
    let (runs, requests) = (RUNS.load(Ordering::Relaxed), fake.requests());
    println!("\n{runs} tools ran, {requests} requests were sent, {} of them failed", reply.attempts().len());
    Ok(())
}

/// Calls, runs the tools that the reply asks for, and calls again, until the model answers.
async fn run_tools(client: &Client, mut call: Call) -> Result<Reply, LlmError> {
    for _ in 0..MOST_ROUNDS {
        let reply = client.call(call.clone()).await?;
        if reply.tool_calls().is_empty() {
            return Ok(reply);
        }
        let results = run_all(reply.tool_calls()).await;
        call = call.then(reply.to_turn()).then(Turn::tool_results(results));
    }
    // Enough: what it knows by now has to do.
    client.call(call.tool_choice(ToolChoice::None)).await
}

/// Runs the calls of a round at the same time. Whatever happens, each has a result.
async fn run_all(calls: &[ToolCall]) -> Vec<ToolResult> {
    let mut running = JoinSet::new(); // dropped, it stops them all
    for (place, call) in calls.iter().cloned().enumerate() {
        running.spawn(async move {
            let ran = timeout(TOOL_TIME, run(&call)).await.unwrap_or_else(|_| Err("it took too long".into()));
            println!("{}({}) = {ran:?}", call.name, call.arguments);
            let result = match ran {
                Ok(words) => ToolResult::new(call.id, words),
                Err(why) => ToolResult::error(call.id, why.to_string()),
            };
            (place, result)
        });
    }
    // A tool that panics has no result of its own.
    let mut results: Vec<_> = calls.iter().map(|call| ToolResult::error(&*call.id, "it crashed")).collect();
    while let Some(ran) = running.join_next().await {
        if let Ok((place, result)) = ran {
            results[place] = result;
        }
    }
    results
}

fn tools() -> Vec<Tool> {
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    vec![Tool::new("get_weather", "The weather in a city now").parameters(city)]
}

/// Runs one tool. That the reply calls only tools that there are was checked by the client.
async fn run(call: &ToolCall) -> Result<String, Box<dyn Error + Send + Sync>> {
    match &*call.name {
        "get_weather" => get_weather(&call.parse::<InCity>()?.city).await,
        name => Err(format!("there is no tool {name}").into()),
    }
}

#[derive(Deserialize)]
struct InCity {
    city: String,
}

async fn get_weather(city: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
    RUNS.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(20)).await; // a service that takes its time
    match city {
        "Oslo" => Ok("4 degrees, rain".to_owned()),
        _ => Err(format!("no station in {city}").into()),
    }
}

static RUNS: AtomicU32 = AtomicU32::new(0);
