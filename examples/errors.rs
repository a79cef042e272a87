//! One error value, and what to do about it: match on its kind and code, print its tree, keep its JSON.
//!
//! Offline: the providers are fakes on loopback ports.

mod report;

use std::error::Error;
use std::time::Duration;
use steadfast::provider::OpenAiCompatible;
use steadfast::resilience::Retry;
use steadfast::testing::{FakeProvider, Fault};
use steadfast::{Client, ErrorCode, ErrorKind, LlmError, Target};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("what to do:\n");
    for fault in [
        Fault::unauthorized(),
        Fault::quota_exhausted(),
        Fault::rate_limited(Duration::from_secs(90)), // longer than is worth waiting within a call
        Fault::bad_request("`messages` is not what it should be"),
        Fault::hang(),
        Fault::html(200),
    ] {
        let fake = FakeProvider::openai().otherwise(fault).start().await?;
        let only = target(&fake, "only").timeout(Duration::from_millis(200)).retry(Retry::none());
        let client = Client::builder(only).build()?;
        if let Err(error) = client.call("Hello?").await {
            println!("  {:<22} {}", what_to_do(&error), error);
        }
    }

    // Every target of a chain fails: one error, with everything that was tried in it.
    let down = FakeProvider::openai().otherwise(Fault::status(503)).start().await?;
    let broke = FakeProvider::openai().otherwise(Fault::quota_exhausted()).start().await?;
    let lying = FakeProvider::openai().then(Fault::empty()).otherwise(Fault::html(200)).start().await?;
    let client = Client::builder(target(&down, "primary"))
        .fallback(target(&broke, "second"))
        .fallback(target(&lying, "third"))
        .retry(Retry::new(2).base_delay(Duration::from_millis(20)))
        .build()?;
    let Err(error) = client.call("Hello?").await else { return Err("it was to fail".into()) };
    println!("\nthe tree:\n");
    report::failure(&error);
    println!("\nas JSON:\n\n{}", serde_json::to_string_pretty(&error)?);
    Ok(())
}

/// What an application would do about a failure.
fn what_to_do(error: &LlmError) -> String {
    match (error.kind(), error.code()) {
        (_, Some(ErrorCode::Authentication | ErrorCode::Authorization)) => "check the key".to_owned(),
        (_, Some(ErrorCode::ProviderQuotaExhausted)) => "pay the bill".to_owned(),
        (_, Some(ErrorCode::ContextLengthExceeded)) => "shorten the prompt".to_owned(),
        (ErrorKind::Timeout | ErrorKind::Network | ErrorKind::Parse, _) => "look at the provider".to_owned(),
        _ if error.is_retryable() => {
            error.retry_after().map_or("queue it".to_owned(), |wait| format!("queue it for {wait:?}"))
        }
        _ => "fix the call".to_owned(),
    }
}

fn target(fake: &FakeProvider, name: &str) -> Target {
    Target::new(OpenAiCompatible::new(fake.base_url()), "any-model").name(name)
}
