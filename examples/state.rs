//! What protects a target, seen while its provider fails: retry budget, circuit breaker, rate limiter; then by hand.
//!
//! Offline: the provider is a fake on a loopback port.

use std::error::Error;
use std::time::Duration;
use steadfast::provider::OpenAiCompatible;
use steadfast::resilience::{CircuitBreaker, RateLimit, Retry, RetryBudget};
use steadfast::testing::{Answer, FakeProvider, Fault};
use steadfast::{Client, Target, TargetHandle};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cooldown = Duration::from_millis(100);
    let troubled = FakeProvider::openai().otherwise(Fault::status(503)).start().await?;
    let healthy = FakeProvider::openai().otherwise(Answer::text("Here I am.")).start().await?;

    let primary = Target::new(OpenAiCompatible::new(troubled.base_url()), "model-a")
        .name("primary")
        .retry(Retry::new(2).base_delay(Duration::from_millis(5)))
        .retry_budget(RetryBudget::new(Duration::from_secs(60), 4, 0.4))
        .circuit_breaker(CircuitBreaker::consecutive(4).cooldown(cooldown))
        .rate_limit(RateLimit::new().requests_per_minute(60).tokens_per_minute(100_000).max_concurrent(4));
    let fallback = Target::new(OpenAiCompatible::new(healthy.base_url()), "model-b")
        .name("fallback")
        .circuit_breaker(CircuitBreaker::consecutive(4));
    let client = Client::builder(primary).fallback(fallback).build()?;

    println!("the primary fails, until its circuit opens:\n");
    for number in 1..=6 {
        ask(&client, &format!("call {number}")).await;
    }
    println!("\nits failures by code: {:?}", client.primary().failure_breakdown());

    println!("\nit is well again; after the cooldown one trial closes its circuit:\n");
    troubled.set_otherwise(Answer::text("Here I am again."));
    tokio::time::sleep(cooldown).await;
    ask(&client, "trial").await;
    ask(&client, "after it").await;

    println!("\nby hand, for maintenance:\n");
    client.primary().hold_circuit_open();
    ask(&client, "held open").await;
    client.primary().close_circuit();
    ask(&client, "closed").await;
    Ok(())
}

/// Makes a call, and prints a line for it and one for each target.
async fn ask(client: &Client, what: &str) {
    let line = match client.call("Who is there?").await {
        Ok(reply) => format!("{} answered, {} failed before", reply.target().name, reply.attempts().len()),
        Err(error) => error.to_string(),
    };
    println!("  {what:<10} {line}");
    client.targets().for_each(show);
}

fn show(target: TargetHandle<'_>) {
    let none = || "none".to_owned();
    let circuit = target.circuit().map_or_else(none, |state| format!("{state:?}"));
    let budget = target.retry_budget().map_or_else(none, |budget| {
        format!("{} of {} attempts were retries ({:.0} %)", budget.retries, budget.attempts, budget.retry_ratio * 100.0)
    });
    let limit = target.rate_limit().map_or_else(none, |limit| {
        let left = |left: Option<u64>| left.map_or("any number of".to_owned(), |left| left.to_string());
        format!("{} requests, {} tokens left", left(limit.requests_remaining), left(limit.tokens_remaining))
    });
    println!("    {:<9} circuit {circuit:<9} budget {budget:<40} limiter {limit}", target.name());
}
