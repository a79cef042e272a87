//! What a stream survives, and what it does not: `cargo run --example stream_failover`. No key, no setup.
//!
//! First the primary dies before its first word: the fallback answers, and the reader sees one whole answer. Then it dies in
//! the middle: nothing is sent again, and the error says what had come.

use std::error::Error;
use std::io::{Write, stdout};
use std::time::Duration;
use steadfast::resilience::Retry;
use steadfast::testing::{Answer, FakeProvider, Fault, Mishap};
use steadfast::{Client, LlmError, Target, provider::OpenAiCompatible};

const WORDS: &str = "The bridge gives way a little everywhere, and so breaks nowhere.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let primary = FakeProvider::openai()
        .then(Answer::text(WORDS).after_events(0, Mishap::overloaded()))
        .then(Fault::reset_before_head())
        .otherwise(Answer::text(WORDS).after_events(6, Mishap::reset()))
        .start()
        .await?;
    let fallback = FakeProvider::openai().otherwise(Answer::text(WORDS)).start().await?;
    let target =
        |fake: &FakeProvider, name: &str| Target::new(OpenAiCompatible::new(fake.base_url()), "model").name(name);
    let client = Client::builder(target(&primary, "primary"))
        .fallback(target(&fallback, "fallback"))
        .retry(Retry::new(1).base_delay(Duration::from_millis(20)))
        .build()?;

    println!("1. The primary dies before its first word.\n");
    show(&client).await?;

    println!("\n2. The primary dies in the middle.\n");
    let error = show(&client).await.expect_err("it breaks");
    println!("\n\n   {error}");
    let kept = error.partial().map(|reply| reply.text().to_owned()).unwrap_or_default();
    println!("   kept: {kept:?}; sent to the fallback: {} request(s), as before", fallback.requests());
    Ok(())
}

/// Prints the words as they come, and what came before them.
async fn show(client: &Client) -> Result<(), LlmError> {
    let mut stream = client.stream("Why does the bridge stand?").await?;
    for attempt in stream.attempts() {
        println!("   failed before it: {}", attempt.error);
    }
    print!("   {}: ", stream.target().name);
    while let Some(chunk) = stream.next().await {
        print!("{}", chunk?.text());
        _ = stdout().flush();
    }
    println!();
    Ok(())
}
