//! The bare client: what a sensible engineer writes with reqwest and serde, without an SDK.

use crate::subject::{KEY, MAX_TOKENS, MODEL, QUESTION, SYSTEM, Subject, TEMPERATURE};
use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use std::error::Error;

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    messages: [Message<'a>; 2],
    max_tokens: u32,
    temperature: f32,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(Deserialize)]
struct Answer {
    model: String,
    choices: Vec<Choice>,
    usage: Usage,
}

#[derive(Deserialize)]
struct Choice {
    message: Said,
    finish_reason: String,
}

#[derive(Deserialize)]
struct Said {
    content: String,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
}

/// reqwest + `serde_json`, as most programs call a model.
pub(crate) struct Bare {
    client: reqwest::Client,
    url: String,
}

impl Bare {
    pub(crate) fn new(url: &str) -> Self {
        Self { client: reqwest::Client::new(), url: url.to_owned() }
    }

    async fn ask(&self) -> Result<Answer, Box<dyn Error + Send + Sync>> {
        let question = Question {
            model: MODEL,
            messages: [Message { role: "system", content: SYSTEM }, Message { role: "user", content: QUESTION }],
            max_tokens: MAX_TOKENS,
            temperature: TEMPERATURE,
        };
        // What `.json(&question)` and `.json::<Answer>()` do; steadfast builds reqwest without that feature.
        let response = self
            .client
            .post(&self.url)
            .bearer_auth(KEY)
            .header(CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(&question)?)
            .send()
            .await?
            .error_for_status()?;
        Ok(serde_json::from_slice(&response.bytes().await?)?)
    }
}

impl Subject for Bare {
    async fn call(&self) -> usize {
        let answer = self.ask().await.expect("the loopback server answers");
        let choice = &answer.choices[0];
        assert!(choice.finish_reason == "stop" && answer.model.starts_with(MODEL));
        assert!(answer.usage.prompt_tokens + answer.usage.completion_tokens == 138);
        choice.message.content.len()
    }
}
