//! Two ways to get an answer: whole, or as a stream. What comes of both should be the same.

use super::expected::{Outcome, compare};
use steadfast::chat::{Chunk, Usage};
use steadfast::{Call, Client};

/// How an answer is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    Whole,
    Streamed,
}

impl Way {
    pub(crate) const BOTH: [Self; 2] = [Self::Whole, Self::Streamed];

    /// A scenario's name, asked so.
    pub(crate) fn name(self, scenario: &str) -> String {
        match self {
            Self::Whole => scenario.to_owned(),
            Self::Streamed => format!("{scenario}, streamed"),
        }
    }

    /// What came of a call, and what was wrong on the way to it.
    pub(crate) async fn ask(self, client: &Client, call: impl Into<Call>) -> (Outcome, Vec<String>) {
        match self {
            Self::Whole => (client.call(call.into()).await, Vec::new()),
            Self::Streamed => stream(client, call.into()).await,
        }
    }
}

/// What the chunks of a stream said.
#[derive(Default)]
struct Heard {
    text: String,
    reasoning: String,
    /// The tools that were called, each with the arguments so far.
    calls: Vec<(String, String)>,
    usage: Option<Usage>,
}

impl Heard {
    fn hear(&mut self, chunk: Chunk, problems: &mut Vec<String>) {
        if self.usage.is_some() {
            problems.push(format!("{chunk:?} after the usage"));
        }
        match chunk {
            Chunk::Text(words) => self.text.push_str(&words),
            Chunk::Reasoning(words) => self.reasoning.push_str(&words),
            Chunk::ToolCall(delta) => {
                if self.calls.len() <= delta.index {
                    self.calls.resize_with(delta.index + 1, Default::default);
                }
                let (name, arguments) = &mut self.calls[delta.index];
                name.push_str(delta.name.as_deref().unwrap_or_default());
                arguments.push_str(&delta.arguments);
            }
            Chunk::Usage(usage) => self.usage = Some(usage),
            _ => problems.push(format!("what is {chunk:?}?")),
        }
    }

    /// What of it is not in the outcome, or not as it was said.
    fn compare(&self, outcome: &Outcome, problems: &mut Vec<String>) {
        let reply = match outcome {
            Ok(reply) => reply,
            Err(error) => {
                let partial = error.partial().map_or("", |partial| partial.text());
                compare(problems, "the text up to the error", &partial, &self.text.as_str());
                return;
            }
        };
        compare(problems, "the text", &reply.text(), &self.text.as_str());
        compare(problems, "the reasoning", &reply.reasoning().unwrap_or_default(), &self.reasoning.as_str());
        compare(problems, "the usage", &reply.usage(), &self.usage.as_ref());
        let parsed =
            self.calls.iter().map(|(name, said)| (name.clone(), serde_json::from_str(said).unwrap_or_default()));
        let calls = reply.tool_calls().iter().map(|call| (call.name.clone(), call.arguments.clone()));
        compare(problems, "the tool calls", &calls.collect::<Vec<_>>(), &parsed.collect::<Vec<(_, _)>>());
    }
}

/// Reads a stream to its end, chunk by chunk.
async fn stream(client: &Client, call: Call) -> (Outcome, Vec<String>) {
    let mut stream = match client.stream(call).await {
        Ok(stream) => stream,
        Err(error) => return (Err(error), Vec::new()),
    };
    let (mut heard, mut problems, mut broken) = (Heard::default(), Vec::new(), None);
    while let Some(chunk) = stream.next().await {
        if broken.is_some() {
            problems.push("more after an error".to_owned());
        }
        match chunk {
            Ok(chunk) => heard.hear(chunk, &mut problems),
            Err(error) => broken = Some(error.code()),
        }
    }
    let outcome = stream.into_reply().await;
    let ended = outcome.as_ref().err().map(steadfast::LlmError::code);
    compare(&mut problems, "the end of the stream", &broken, &ended);
    heard.compare(&outcome, &mut problems);
    (outcome, problems)
}
