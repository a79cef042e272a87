//! A streamed answer in this protocol's words, frame by frame.
//!
//! Most frames of an answer carry a piece of text and nothing else: those are read through a [`Stencil`]. Every other
//! frame is parsed, and read in whatever shape it has been seen, as whole answers are.

use super::ChatApi;
use super::calls::{Calls, Fragments};
use super::echo::Kept;
use super::lenient::{Filtered, Finish, Object, Saying, Text};
use super::usage::Counts;
use crate::chat::FinishReason;
use crate::provider::lenient::{Brief, Count, Fields, First, Present};
use crate::provider::stream::Stencil;
use crate::provider::{AnswerFault, Draft, Frame, StreamDecoder, json};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Reads one stream.
#[derive(Debug, Default)]
pub(in crate::provider) struct ChatStream {
    reasoning_outside_output: bool,
    /// What the server's own blocks are marked with.
    protocol: String,
    usual: Stencil<Voice>,
    calls: Calls,
    kept: Kept,
    /// Which choice is read: the first one that is met. Others are alternatives, and nobody asked for them here.
    choice: Option<u64>,
}

/// Where words belong.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Voice {
    Reasoning,
    #[default]
    Text,
}

#[derive(Default, Deserialize)]
struct Event<'a> {
    #[serde(default)]
    error: Present,
    #[serde(default)]
    object: Object,
    #[serde(default, borrow)]
    id: Brief<'a>,
    #[serde(default, borrow)]
    model: Brief<'a>,
    #[serde(default, borrow)]
    choices: First<Choice<'a>>,
    #[serde(default)]
    usage: Fields<Counts>,
    #[serde(default)]
    x_groq: Fields<Groq>,
}

/// What Groq adds.
#[derive(Default, Deserialize)]
struct Groq {
    #[serde(default)]
    error: Present,
    #[serde(default)]
    usage: Fields<Counts>,
}

#[derive(Default, Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Count,
    #[serde(default, borrow)]
    delta: Option<Fields<Delta<'a>>>,
    /// Some servers answer a request for a stream with the whole message in one frame.
    #[serde(default, borrow)]
    message: Option<Fields<Delta<'a>>>,
    #[serde(default)]
    finish_reason: Finish,
    #[serde(default)]
    error: Present,
    #[serde(default)]
    content_filter_results: Filtered,
}

#[derive(Default, Deserialize)]
struct Delta<'a> {
    #[serde(default, borrow)]
    content: Saying<'a>,
    #[serde(default, borrow)]
    reasoning_content: Saying<'a>,
    #[serde(default, borrow)]
    reasoning: Saying<'a>,
    #[serde(default, borrow)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(default, borrow)]
    refusal: Brief<'a>,
    #[serde(default, borrow)]
    tool_calls: Fragments<'a>,
}

impl ChatApi {
    pub(super) fn stream(&self) -> ChatStream {
        ChatStream {
            reasoning_outside_output: self.quirks.reasoning_outside_output,
            protocol: self.protocol().to_owned(),
            kept: Kept::new(self.quirks.echo),
            ..ChatStream::default()
        }
    }
}

impl StreamDecoder for ChatStream {
    fn read(&mut self, frame: &Frame<'_>, draft: &mut Draft) -> Result<(), AnswerFault> {
        if let Some((voice, words)) = self.usual.read(frame.data) {
            self.speak(draft, voice, words);
            return Ok(());
        }
        let data = frame.data.trim_ascii();
        if data == b"[DONE]" {
            self.complete(draft);
            draft.done();
            return Ok(());
        }
        if frame.event == "error" {
            return Err(AnswerFault::Error);
        }
        // Nothing, or a comment that a relay took for data.
        if matches!(data.first(), None | Some(b':')) {
            return Ok(());
        }
        let event: Event<'_> = json::read_frame(data)?;
        self.event(event, frame.data, draft)
    }

    fn end(&mut self, draft: &mut Draft) -> bool {
        let complete = draft.finish_reason().is_some();
        if complete {
            self.complete(draft);
        }
        complete
    }
}

impl ChatStream {
    fn event<'a>(&mut self, event: Event<'a>, data: &'a [u8], draft: &mut Draft) -> Result<(), AnswerFault> {
        if event.error.0 || event.object.is_error || event.x_groq.0.error.0 {
            return Err(AnswerFault::Error);
        }
        draft.model(event.model.text());
        self.calls.answer(event.id.text());
        let counts = event.usage.0.usage(self.reasoning_outside_output);
        let usage = counts.or_else(|| event.x_groq.0.usage.0.usage(self.reasoning_outside_output));
        // A count of nothing is a placeholder.
        let usage = usage.filter(|usage| usage.total > 0 || draft.usage_so_far().is_none());
        let Some(choice) = event.choices.0 else {
            if let Some(usage) = usage {
                draft.usage(usage);
            }
            return Ok(());
        };
        if choice.error.0 || choice.finish_reason.is_failure() {
            return Err(AnswerFault::Error);
        }
        let said_only = usage.is_none() && choice.finish_reason.is_unsaid() && choice.content_filter_results.is_none();
        if let Some(usage) = usage {
            draft.usage(usage);
        }
        let index = choice.index.0.unwrap_or(0);
        if *self.choice.get_or_insert(index) != index {
            return Ok(());
        }
        draft.filtered(choice.content_filter_results.0);
        let Fields(delta) = choice.delta.or(choice.message).unwrap_or_default();
        let said = self.delta(delta, draft);
        if let Some((voice, words)) = said.filter(|_| said_only) {
            self.usual.keep(data, words, voice);
        }
        if !choice.finish_reason.is_unsaid() {
            let reason = choice.finish_reason.reason();
            if let Some(problem) = self.calls.cut().filter(|_| reason == FinishReason::Length) {
                return Err(AnswerFault::ToolArguments(vec![problem]));
            }
            self.calls.complete(draft);
            draft.finish(reason);
        }
        Ok(())
    }

    /// Reads what was said; gives the words where they are all that there is, and borrowed from the frame.
    fn delta<'a>(&mut self, delta: Delta<'a>, draft: &mut Draft) -> Option<(Voice, &'a str)> {
        let Delta { content, reasoning_content, reasoning, reasoning_details, refusal, tool_calls } = delta;
        let blocks = reasoning_details.filter(|_| self.kept.wants_blocks());
        let is_bare = refusal.text().is_empty() && tool_calls.0.is_empty() && blocks.is_none();
        // The same words may be in both.
        let thought = if reasoning_content.is_empty() { reasoning } else { reasoning_content };
        let usual = match (&content, &thought) {
            (Saying::Plain(words), thought) if is_bare && thought.is_empty() => Some((Voice::Text, *words)),
            (content, Saying::Plain(words)) if is_bare && content.is_empty() => Some((Voice::Reasoning, *words)),
            _ => None,
        };
        let Text { text, reasoning } = content.into_text();
        for (voice, words) in [
            (Voice::Reasoning, thought.into_text().text),
            (Voice::Reasoning, reasoning.unwrap_or_default()),
            (Voice::Text, text),
        ] {
            self.speak(draft, voice, words);
        }
        if let Some(blocks) = blocks.filter(|_| draft.keeps_reply()) {
            self.kept.blocks(blocks);
        }
        draft.refusal(refusal.text());
        self.calls.add(&tool_calls, &self.protocol, draft);
        usual.filter(|(_, words)| !words.is_empty())
    }

    fn speak(&mut self, draft: &mut Draft, voice: Voice, words: String) {
        match voice {
            Voice::Reasoning => {
                if draft.keeps_reply() {
                    self.kept.words(&words);
                }
                draft.reasoning(words);
            }
            Voice::Text => draft.text(words),
        }
    }

    /// Nothing more follows.
    fn complete(&mut self, draft: &mut Draft) {
        self.calls.complete(draft);
        self.kept.take(&self.protocol).into_iter().for_each(|block| draft.opaque(block));
    }
}

#[cfg(test)]
mod tests;
