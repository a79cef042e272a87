//! The bare client: what a sensible engineer writes with reqwest and serde, without an SDK.

use crate::subject::{KEY, MAX_TOKENS, MODEL, QUESTION, SYSTEM, Streaming, Subject, TEMPERATURE};
use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use std::error::Error;

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    messages: [Message<'a>; 2],
    max_tokens: u32,
    temperature: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
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

#[derive(Deserialize)]
struct Event {
    choices: Vec<Delta>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Delta {
    delta: Word,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Word {
    content: Option<String>,
}

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// reqwest + `serde_json`, as most programs call a model.
pub(crate) struct Bare {
    client: reqwest::Client,
    url: String,
}

impl Bare {
    pub(crate) fn new(base: &str) -> Self {
        Self { client: reqwest::Client::new(), url: format!("{base}/chat/completions") }
    }

    async fn send(&self, stream: bool) -> Result<reqwest::Response> {
        let question = Question {
            model: MODEL,
            messages: [Message { role: "system", content: SYSTEM }, Message { role: "user", content: QUESTION }],
            max_tokens: MAX_TOKENS,
            temperature: TEMPERATURE,
            stream: stream.then_some(true),
            stream_options: stream.then_some(StreamOptions { include_usage: true }),
        };
        // What `.json(&question)` does; steadfast builds reqwest without that feature.
        let request = self
            .client
            .post(&self.url)
            .bearer_auth(KEY)
            .header(CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(&question)?);
        Ok(request.send().await?.error_for_status()?)
    }

    async fn ask(&self) -> Result<Answer> {
        Ok(serde_json::from_slice(&self.send(false).await?.bytes().await?)?)
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

impl Streaming for Bare {
    type Stream = Streamed;

    async fn open(&self) -> Streamed {
        let response = self.send(true).await.expect("the loopback server answers");
        let mut stream =
            Streamed { response, buffer: Vec::new(), read: 0, finish_reason: None, usage: None, text_len: 0 };
        let first = stream.next().await.expect("the stream is sound").expect("it has text");
        stream.text_len = first.len();
        stream
    }

    async fn drain(&self, mut stream: Streamed) -> usize {
        while let Some(text) = stream.next().await.expect("the stream is sound") {
            stream.text_len += text.len();
        }
        assert_eq!(stream.finish_reason.as_deref(), Some("stop"));
        assert!(stream.usage.is_some_and(|usage| usage.prompt_tokens + usage.completion_tokens == 138));
        stream.text_len
    }
}

/// Reads server-sent events line by line, as far as this API needs it.
pub(crate) struct Streamed {
    response: reqwest::Response,
    buffer: Vec<u8>,
    /// How much of the buffer has been read.
    read: usize,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    text_len: usize,
}

impl Streamed {
    /// The next text that is not empty.
    async fn next(&mut self) -> Result<Option<String>> {
        loop {
            while let Some(length) = memchr::memchr(b'\n', &self.buffer[self.read..]) {
                let line = &self.buffer[self.read..self.read + length];
                self.read += length + 1;
                let Some(data) = line.strip_prefix(b"data: ") else { continue };
                if data == b"[DONE]" {
                    return Ok(None);
                }
                let event: Event = serde_json::from_slice(data)?;
                if event.usage.is_some() {
                    self.usage = event.usage;
                }
                if let Some(choice) = event.choices.into_iter().next() {
                    if choice.finish_reason.is_some() {
                        self.finish_reason = choice.finish_reason;
                    }
                    if let Some(text) = choice.delta.content.filter(|text| !text.is_empty()) {
                        return Ok(Some(text));
                    }
                }
            }
            self.buffer.drain(..self.read);
            self.read = 0;
            let Some(bytes) = self.response.chunk().await? else { return Ok(None) };
            self.buffer.extend_from_slice(&bytes);
        }
    }
}
