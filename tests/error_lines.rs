//! The line of an error says each fact once.

use std::error::Error;
use steadfast::provider::OpenAiCompatible;
use steadfast::resilience::Retry;
use steadfast::testing::{Answer, FakeProvider, Fault};
use steadfast::{Client, Target};

async fn line(answer: Answer) -> Result<String, Box<dyn Error>> {
    let fake = FakeProvider::openai().otherwise(answer).start().await?;
    let target = Target::new(OpenAiCompatible::new(fake.base_url()), "m-1").name("only").retry(Retry::none());
    let outcome = Client::builder(target).build()?.call("Hello?").await;
    outcome.map(|_| "an answer".to_owned()).or_else(|error| Ok(error.to_string()))
}

#[tokio::test]
async fn an_answer_that_is_none_is_told_once() -> Result<(), Box<dyn Error>> {
    let page = Answer::raw(200).header("content-type", "text/html").body("<html>");
    let why = "a page came where JSON was expected; is the base URL right?";
    assert_eq!(line(page).await?, format!("only: response invalid (200): text/html, 6 bytes: {why}"));
    assert_eq!(line(Fault::empty()).await?, "only: empty response (200): application/json, 0 bytes");
    let cut = Answer::raw(200).header("content-type", "application/json").body("{\"choices\":[");
    assert_eq!(line(cut).await?, "only: response invalid (200): application/json, 12 bytes: the JSON is cut");
    Ok(())
}
