//! A streamed answer in Converse's words: binary frames whose names say what they are.

use super::decode::{Counts, finish_reason};
use super::tools::OUTPUT_TOOL;
use crate::chat::{FinishReason, Opaque, ToolCallDelta};
use crate::provider::lenient::{Brief, Fields};
use crate::provider::{AnswerFault, Draft, Frame, StreamDecoder, json};
use serde::Deserialize;
use serde_json::json;

/// What is kept to go back is this protocol's.
pub(super) const PROTOCOL: &str = "bedrock";

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// Tool calls that have begun: the index of their block, and their place in the answer.
    calls: Vec<(u64, usize)>,
    /// The block of reasoning that is being written.
    thought: Thought,
    /// The block of the tool that stands for the form of the answer: its input is the text.
    output: Option<u64>,
    as_json: bool,
    /// Whether the model has stopped. The counts come after it, and then the body ends.
    stopped: bool,
}

#[derive(Debug, Default)]
struct Thought {
    text: String,
    signature: String,
    redacted: String,
}

impl StreamDecoder for Decoder {
    fn read(&mut self, frame: &Frame<'_>, draft: &mut Draft) -> Result<(), AnswerFault> {
        if frame.exception {
            return Err(AnswerFault::Error);
        }
        match frame.event {
            "contentBlockDelta" => self.delta(&json::read_frame(frame.data)?, draft),
            "contentBlockStart" => self.start(json::read_frame(frame.data)?, draft),
            "contentBlockStop" => {
                let At { content_block_index: index } = json::read_frame(frame.data)?;
                if let Some(place) = self.calls.iter().position(|(block, _)| *block == index) {
                    let (_, call) = self.calls.remove(place);
                    draft.tool_call(ToolCallDelta::new(call).complete());
                }
                self.end_thought(draft);
            }
            "messageStop" => {
                let Stop { stop_reason } = json::read_frame(frame.data)?;
                let mut reason = finish_reason(stop_reason.text());
                if reason == FinishReason::ToolCalls && self.as_json && draft.tool_calls() == 0 {
                    reason = FinishReason::Stop;
                }
                draft.finish(reason);
                if reason == FinishReason::ContentFilter {
                    draft.filtered([stop_reason.text().to_owned()]);
                }
                self.stopped = true;
            }
            "metadata" => {
                let Metadata { usage: Fields(counts) } = json::read_frame(frame.data)?;
                if let Some(usage) = counts.usage() {
                    draft.usage(usage);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, draft: &mut Draft) -> bool {
        self.end_thought(draft);
        if self.stopped {
            for (_, call) in std::mem::take(&mut self.calls) {
                draft.tool_call(ToolCallDelta::new(call).complete());
            }
        }
        self.stopped
    }
}

impl Decoder {
    fn start(&mut self, start: Start<'_>, draft: &mut Draft) {
        let Fields(begun) = start.start;
        if let Some(tool) = begun.tool_use {
            if tool.name.text() == OUTPUT_TOOL {
                (self.output, self.as_json) = (Some(start.content_block_index), true);
                return;
            }
            let call = draft.tool_calls();
            let (id, name) = (tool.tool_use_id.0.into_owned(), tool.name.0.into_owned());
            draft.tool_call(ToolCallDelta::new(call).id(id).name(name));
            self.calls.push((start.content_block_index, call));
        }
    }

    fn delta(&mut self, delta: &Delta<'_>, draft: &mut Draft) {
        let Fields(part) = &delta.delta;
        if !part.text.text().is_empty() {
            draft.text(part.text.text().to_owned());
        }
        let input = part.tool_use.0.input.text();
        if !input.is_empty() && self.output == Some(delta.content_block_index) {
            draft.text(input.to_owned());
        } else if !input.is_empty()
            && let Some((_, call)) = self.calls.iter().find(|(block, _)| *block == delta.content_block_index)
        {
            draft.tool_call(ToolCallDelta::new(*call).arguments(input));
        }
        let Fields(thought) = &part.reasoning_content;
        if !thought.text.text().is_empty() {
            draft.reasoning(thought.text.text().to_owned());
        }
        if draft.keeps_reply() {
            self.thought.text.push_str(thought.text.text());
            self.thought.signature.push_str(thought.signature.text());
            self.thought.redacted.push_str(thought.redacted_content.text());
        }
    }

    /// A block of reasoning goes back as it was.
    fn end_thought(&mut self, draft: &mut Draft) {
        let Thought { text, signature, redacted } = std::mem::take(&mut self.thought);
        if !redacted.is_empty() {
            draft.opaque(Opaque::new(PROTOCOL, json!({"redactedContent": redacted})));
        }
        if !text.is_empty() || !signature.is_empty() {
            let mut whole = json!({"text": text});
            if !signature.is_empty() {
                whole["signature"] = signature.into();
            }
            draft.opaque(Opaque::new(PROTOCOL, json!({"reasoningText": whole})));
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct At {
    content_block_index: u64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Start<'a> {
    content_block_index: u64,
    #[serde(borrow)]
    start: Fields<Begun<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Begun<'a> {
    #[serde(borrow)]
    tool_use: Option<ToolUse<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ToolUse<'a> {
    #[serde(borrow)]
    tool_use_id: Brief<'a>,
    #[serde(borrow)]
    name: Brief<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Delta<'a> {
    content_block_index: u64,
    #[serde(borrow)]
    delta: Fields<Part<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Part<'a> {
    #[serde(borrow)]
    text: Brief<'a>,
    #[serde(borrow)]
    tool_use: Fields<Input<'a>>,
    #[serde(borrow)]
    reasoning_content: Fields<ThoughtPart<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Input<'a> {
    #[serde(borrow)]
    input: Brief<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ThoughtPart<'a> {
    #[serde(borrow)]
    text: Brief<'a>,
    #[serde(borrow)]
    signature: Brief<'a>,
    #[serde(borrow)]
    redacted_content: Brief<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Stop<'a> {
    #[serde(borrow)]
    stop_reason: Brief<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    usage: Fields<Counts>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Chunk, Usage};
    use crate::provider::Framing;
    use crate::transport::framing::Framer;
    use base64::Engine as _;
    use bytes::Bytes;

    /// What is read of a body in base64, cut in two at this place.
    fn read(base64: &str, at: usize) -> (Vec<Chunk>, bool, Draft) {
        let text: String = base64.split_whitespace().collect();
        let body = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
        let (mut framer, mut decoder, mut draft) =
            (Framer::new(Framing::AwsEventStream), Decoder::default(), Draft::new());
        let mut chunks = Vec::new();
        for piece in [&body[..at.min(body.len())], &body[at.min(body.len())..]] {
            framer.push(Bytes::copy_from_slice(piece));
            while let Some(frame) = framer.next_frame().unwrap() {
                decoder.read(&frame, &mut draft).unwrap();
                chunks.extend(std::iter::from_fn(|| draft.next_chunk()));
            }
        }
        framer.end();
        let complete = decoder.end(&mut draft) && !framer.is_mid_frame();
        (chunks, complete, draft)
    }

    #[test]
    fn streams_are_read_as_in_the_fixtures_wherever_they_are_cut() {
        let (text, tool) = (
            include_str!("../../../fixtures/bedrock/text.stream.base64"),
            include_str!("../../../fixtures/bedrock/tool_call.stream.base64"),
        );
        for at in 0..=1_100 {
            let (chunks, complete, mut draft) = read(text, at);
            assert_eq!((chunks.as_slice(), complete), (&[Chunk::Text("Hi".into())][..], true), "{at}");
            let reply = draft.finished().unwrap();
            assert_eq!((reply.text(), reply.usage()), ("Hi", Some(&Usage::new(9, 2))), "{at}");

            let (_, complete, mut draft) = read(tool, at);
            let reply = draft.finished().unwrap();
            let [call] = reply.tool_calls() else { panic!("{reply:?}") };
            assert_eq!((complete, call.id.as_str(), call.name.as_str()), (true, "tooluse_fx1", "get_weather"), "{at}");
            assert_eq!((&call.arguments, reply.finish_reason()), (&json!({"city": "Oslo"}), FinishReason::ToolCalls));
        }
    }
}
