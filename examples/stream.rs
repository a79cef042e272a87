//! Words as they come, then what they cost: `cargo run --example stream`. No key, no setup.
//!
//! The provider is a fake one on a loopback port that takes its time between words. With `OPENAI_API_KEY`, or
//! `STEADFAST_BASE_URL` (and `STEADFAST_API_KEY`, `STEADFAST_MODEL`) for any server that speaks OpenAI's protocol, that one
//! is asked.

use std::env;
use std::error::Error;
use std::io::{Write, stdout};
use std::time::Duration;
use steadfast::chat::Chunk;
use steadfast::provider::{OpenAi, OpenAiCompatible};
use steadfast::testing::{Answer, FakeProvider, Mishap};
use steadfast::{Call, Client, Target};

const STORY: &str =
    "A keeper lit the lamp each night for forty years. No ship was ever lost, so no one ever thanked her.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let pauses = (1..22)
        .fold(Answer::text(STORY), |answer, word| answer.after_events(word, Mishap::pause(Duration::from_millis(25))));
    let fake = FakeProvider::openai().otherwise(pauses).start().await?;
    let client = Client::builder(target(&fake)?).build()?;

    let call = Call::user("Tell me a story about a lighthouse, in two sentences.").max_tokens(200);
    let mut stream = client.stream(call).await?;
    while let Some(chunk) = stream.next().await {
        if let Chunk::Text(words) = chunk? {
            print!("{words}");
            stdout().flush()?;
        }
    }
    let reply = stream.into_reply().await?;
    println!("\n\nended with {:?}, by {}", reply.finish_reason(), reply.target().name);
    if let Some(usage) = reply.usage() {
        println!("{} tokens in, {} out", usage.input, usage.output);
    }
    Ok(())
}

fn target(fake: &FakeProvider) -> Result<Target, Box<dyn Error>> {
    let model = |default: &str| env::var("STEADFAST_MODEL").unwrap_or_else(|_| default.to_owned());
    if let Ok(url) = env::var("STEADFAST_BASE_URL") {
        let mut server = OpenAiCompatible::new(url);
        if let Ok(key) = env::var("STEADFAST_API_KEY") {
            server = server.api_key(key);
        }
        return Ok(Target::new(server, model("local")));
    }
    if env::var_os("OPENAI_API_KEY").is_some() {
        return Ok(Target::new(OpenAi::from_env()?, model("gpt-5-mini")));
    }
    Ok(Target::new(OpenAiCompatible::new(fake.base_url()), "model-a").name("fake"))
}
