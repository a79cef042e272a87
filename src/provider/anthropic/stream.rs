//! A streamed answer in this protocol's words: named events, of which unknown ones are passed over, as Anthropic asks.

use super::answer::{Answer, BlockFields, Called, StopDetails, redacted, thought};
use super::counts::Counts;
use crate::provider::lenient::{Brief, Fields, Present};
use crate::provider::{AnswerFault, Draft, Frame, StreamDecoder, json};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Events that the data need not be asked about.
const KNOWN: [&str; 8] = [
    "content_block_delta",
    "content_block_start",
    "content_block_stop",
    "error",
    "message_delta",
    "message_start",
    "message_stop",
    "ping",
];

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    answer: Answer,
    counts: Counts,
    /// Blocks that have begun; mostly there is one at a time.
    open: Vec<(Option<u64>, Block)>,
}

/// A block that has begun.
#[derive(Debug)]
enum Block {
    /// A call, and the arguments that the caller has not seen: those that came with its beginning, which count where no part
    /// follows, or all of them.
    Call { called: Called, unseen: String, parts: bool },
    /// Reasoning, kept to go back as it was.
    Thinking { thinking: String, signature: String },
    /// Words, which need no memory, or a block that is of no use here.
    Other,
}

impl StreamDecoder for Decoder {
    fn read(&mut self, frame: &Frame<'_>, draft: &mut Draft) -> Result<(), AnswerFault> {
        if let Some(words) = text_delta(frame.data) {
            self.answer.say(words, draft);
            return Ok(());
        }
        match &*name(frame)? {
            "content_block_delta" => return self.delta(&json::read_frame(frame.data)?, draft),
            "content_block_start" => self.start(json::read_frame(frame.data)?, draft),
            "content_block_stop" => {
                let at: At = json::read_frame(frame.data)?;
                if let Some(place) = self.place(at.index) {
                    let (_, block) = self.open.remove(place);
                    self.close(block, draft);
                }
            }
            "error" => return Err(AnswerFault::Error),
            "message_delta" => {
                let MessageDelta { delta: Fields(delta), usage: Fields(counts) } = json::read_frame(frame.data)?;
                if let Some(reason) = delta.stop_reason.get() {
                    self.answer.stop(reason, delta.stop_details.0, draft);
                }
                self.count(&counts, draft);
            }
            "message_start" => {
                let MessageStart { message: Fields(message) } = json::read_frame(frame.data)?;
                draft.model(message.model.text());
                self.answer.model = message.model.get().map(str::to_owned);
                self.count(&message.usage.0, draft);
            }
            "message_stop" => {
                self.flush(draft);
                draft.done();
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, draft: &mut Draft) -> bool {
        self.flush(draft);
        false
    }
}

impl Decoder {
    /// The block that this belongs to; without an index, the last that has begun.
    fn place(&self, index: Option<u64>) -> Option<usize> {
        self.open.iter().rposition(|(have, _)| index.is_none() || *have == index)
    }

    fn start(&mut self, start: Start<'_>, draft: &mut Draft) {
        let Fields(block) = start.content_block;
        let begun = match block.kind.text() {
            "text" => {
                self.answer.say(block.text.into_text(), draft);
                Block::Other
            }
            "thinking" => {
                draft.reasoning(block.thinking.text().to_owned());
                Block::Thinking { thinking: block.thinking.into_text(), signature: block.signature.into_text() }
            }
            "redacted_thinking" => {
                self.answer.think(redacted(block.data.text()), draft);
                Block::Other
            }
            "tool_use" => {
                let called = self.answer.call(block.id.into_text(), block.name.into_text(), draft);
                let whole = block.input.map(RawValue::get).filter(|json| *json != "null");
                Block::Call { called, unseen: whole.unwrap_or_default().to_owned(), parts: false }
            }
            _ => Block::Other,
        };
        self.open.push((start.index, begun));
    }

    fn delta(&mut self, delta: &Delta<'_>, draft: &mut Draft) -> Result<(), AnswerFault> {
        let Fields(part) = &delta.delta;
        let place = self.place(delta.index);
        let block = place.map(|place| &mut self.open[place].1);
        match (part.kind.text(), block) {
            ("text_delta", _) => self.answer.say(part.text.text().to_owned(), draft),
            ("thinking_delta", block) => {
                draft.reasoning(part.thinking.text().to_owned());
                if let Some(Block::Thinking { thinking, .. }) = block
                    && draft.keeps_reply()
                {
                    thinking.push_str(part.thinking.text());
                }
            }
            ("signature_delta", Some(Block::Thinking { signature, .. })) => signature.push_str(part.signature.text()),
            ("input_json_delta", Some(Block::Call { called, unseen, parts })) => {
                let fragment = part.partial_json.text();
                if fragment.is_empty() {
                    return Ok(());
                }
                if !std::mem::replace(parts, true) {
                    unseen.clear();
                }
                match called {
                    Called::Wrapped => unseen.push_str(fragment),
                    called => Answer::more(*called, fragment, draft),
                }
            }
            // `Other`: the input of a tool that runs at the provider's.
            ("input_json_delta", Some(Block::Thinking { .. }) | None) => {
                return Err(AnswerFault::Frame("a part of a tool call came without its beginning".to_owned()));
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, block: Block, draft: &mut Draft) {
        match block {
            Block::Call { called, unseen, .. } => Answer::last(called, unseen, draft),
            Block::Thinking { thinking, signature } => self.answer.think(thought(&thinking, &signature), draft),
            Block::Other => {}
        }
    }

    fn count(&mut self, counts: &Counts, draft: &mut Draft) {
        self.counts.update(counts);
        if let Some(usage) = self.counts.usage() {
            draft.usage(usage);
        }
    }

    /// Closes what the server left open.
    fn flush(&mut self, draft: &mut Draft) {
        for (_, block) in std::mem::take(&mut self.open) {
            self.close(block, draft);
        }
        self.answer.end(draft);
    }
}

/// The words of a frame that holds some in the form in which Anthropic writes them, spaces for padding included. Most frames
/// do, and this spares them the search for fields; any other form is left to the reader of all of them.
fn text_delta(data: &[u8]) -> Option<String> {
    let rest = data.strip_prefix(br#"{"type":"content_block_delta","index":"#)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = rest[digits..].strip_prefix(br#","delta":{"type":"text_delta","text":"#)?;
    let rest = rest.strip_suffix(b"}")?.trim_ascii_end().strip_suffix(b"}")?;
    // More fields would be characters behind the text.
    serde_json::from_slice(rest).ok()
}

/// What a frame is: by its event's name, and where that says nothing, by its data.
fn name<'a>(frame: &Frame<'a>) -> Result<Cow<'a, str>, AnswerFault> {
    if KNOWN.contains(&frame.event) {
        return Ok(Cow::Borrowed(frame.event));
    }
    match json::read_frame::<Fields<Kind>>(frame.data) {
        Ok(Fields(Kind { kind, error })) if kind.text().is_empty() && error.0 => Ok(Cow::Borrowed("error")),
        Ok(Fields(Kind { kind, .. })) => Ok(kind.0),
        // An event that this adapter knows nothing of, or the end in OpenAI's words.
        Err(_) if !frame.event.is_empty() || frame.data.trim_ascii() == b"[DONE]" => Ok(Cow::Borrowed("")),
        Err(fault) => Err(fault),
    }
}

#[derive(Default, Deserialize)]
struct Kind<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Brief<'a>,
    #[serde(default)]
    error: Present,
}

#[derive(Deserialize)]
struct At {
    #[serde(default)]
    index: Option<u64>,
}

#[derive(Deserialize)]
struct MessageStart<'a> {
    #[serde(borrow, default)]
    message: Fields<Message<'a>>,
}

#[derive(Default, Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    model: Brief<'a>,
    #[serde(default)]
    usage: Fields<Counts>,
}

#[derive(Deserialize)]
struct Start<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    content_block: Fields<BlockFields<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    delta: Fields<BlockFields<'a>>,
}

#[derive(Deserialize)]
struct MessageDelta<'a> {
    #[serde(borrow, default)]
    delta: Fields<Stop<'a>>,
    #[serde(default)]
    usage: Fields<Counts>,
}

#[derive(Default, Deserialize)]
struct Stop<'a> {
    #[serde(borrow, default)]
    stop_reason: Brief<'a>,
    #[serde(default)]
    stop_details: Fields<StopDetails>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::chat::{Chunk, FinishReason, Opaque, Reply, ToolCall, ToolCallDelta, Usage};
    use crate::provider::stream::testing::Read;
    use crate::provider::{Failure, Framing, RulePack};
    use http::HeaderMap;
    use serde_json::{Value, json};

    fn read(sse: &str) -> Read {
        Read::of(&Framing::Sse, sse, Decoder::default)
    }

    fn block(data: Value) -> Opaque {
        Opaque::new("anthropic", data).of_model("claude-opus-5-5".to_owned())
    }

    fn thinking(thinking: &str, signature: &str) -> Value {
        json!({"type": "thinking", "thinking": thinking, "signature": signature})
    }

    #[test]
    fn streams_are_read_as_in_the_fixtures() {
        let mut cached = Usage::new(1012, 15);
        (cached.cached_input, cached.cache_write, cached.reasoning) = (Some(1000), Some(0), Some(9));
        let oslo = || json!({"city": "Oslo"});
        for (fixture, expected) in [
            (
                include_str!("../../../fixtures/anthropic/thinking_text.sse"),
                Reply::new("Hello \"there\" é é\n")
                    .with_reasoning("Greet back.".to_owned())
                    .with_opaque([block(thinking("Greet back.", "c2lnLWV4YW1wbGUz"))])
                    .with_usage(cached),
            ),
            (
                include_str!("../../../fixtures/anthropic/tool_call.sse"),
                Reply::new("Let me look.")
                    .with_tool_calls([
                        ToolCall::new("toolu_fx3", "get_weather", oslo()),
                        ToolCall::new("toolu_fx4", "get_time", json!({})),
                    ])
                    .with_finish_reason(FinishReason::ToolCalls)
                    .with_usage(Usage::new(64, 18)),
            ),
            (
                include_str!("../../../fixtures/anthropic/interleaved.sse"),
                Reply::new("Checking.")
                    .with_reasoning("Oslo first.Then Lima.".to_owned())
                    .with_opaque([
                        block(json!({"type": "redacted_thinking", "data": "b3BhcXVl"})),
                        block(thinking("", "c2lnLTE=")),
                    ])
                    .with_tool_calls([
                        ToolCall::new("toolu_a", "get_weather", oslo())
                            .with_opaque(block(json!([thinking("Oslo first.", "c2lnLTI=")]))),
                        ToolCall::new("toolu_b", "get_weather", json!({"city": "Lima"}))
                            .with_opaque(block(json!([thinking("Then Lima.", "c2lnLTM=")]))),
                    ])
                    .with_finish_reason(FinishReason::ToolCalls)
                    .with_usage(Usage::new(80, 40)),
            ),
            (
                include_str!("../../../fixtures/anthropic/refusal.sse"),
                Reply::new("")
                    .with_refusal("The request was declined.".to_owned())
                    .with_finish_reason(FinishReason::ContentFilter)
                    .with_usage(Usage::new(30, 1)),
            ),
        ] {
            let mut seen = read(fixture);
            assert_eq!((seen.fault.take(), seen.complete), (None, true));
            assert_eq!(seen.reply(), Ok(expected.with_model("claude-opus-5-5".to_owned())));
        }
    }

    #[test]
    fn a_tool_that_stands_for_the_form_streams_text() {
        let seen = read(include_str!("../../../fixtures/anthropic/schema_by_tool.sse"));
        assert_eq!(seen.chunks, ["{\"city\":", "\"Oslo\"}"].map(|words| Chunk::Text(words.into())));
        let reply = seen.reply().unwrap();
        assert_eq!((reply.finish_reason(), reply.tool_calls().len()), (FinishReason::Stop, 0));
        // Of one that is wrapped, at its end.
        let wrapped = include_str!("../../../fixtures/anthropic/schema_by_tool.sse");
        let wrapped = wrapped.replace("answer_as_json", "answer_as_json_value").replace("city", "value");
        assert_eq!(read(&wrapped).chunks, [Chunk::Text("\"Oslo\"".into())]);
    }

    #[test]
    fn a_call_comes_in_parts_of_which_only_the_first_names_it() {
        let seen = read(include_str!("../../../fixtures/anthropic/tool_call.sse"));
        let part = ToolCallDelta::new;
        let expected = [
            Chunk::Text("Let me look.".into()),
            Chunk::ToolCall(part(0).id("toolu_fx3").name("get_weather")),
            Chunk::ToolCall(part(0).arguments("{\"city\":")),
            Chunk::ToolCall(part(0).arguments(" \"Oslo\"}")),
            Chunk::ToolCall(part(0).complete()),
            Chunk::ToolCall(part(1).id("toolu_fx4").name("get_time")),
            Chunk::ToolCall(part(1).complete()),
        ];
        assert_eq!(seen.chunks, expected);
    }

    #[test]
    fn an_overload_in_the_stream_keeps_its_code_and_what_came_before_it() {
        let sse = include_str!("../../../fixtures/anthropic/overloaded_midway.sse");
        let mut seen = read(sse);
        assert_eq!(
            (seen.fault.take(), seen.chunks.as_slice()),
            (Some(AnswerFault::Error), &[Chunk::Text("Half".into())][..])
        );
        let (_, data) = sse.rsplit_once("data: ").unwrap();
        let headers = HeaderMap::new();
        let failure = Failure::answer(200, &headers, data.as_bytes()).fault(AnswerFault::Error).event("error");
        let seen = RulePack::anthropic().classify(&failure.delivered(true));
        assert_eq!((seen.code, seen.is_retryable()), (Some(ErrorCode::Overloaded), false));
    }

    #[test]
    fn a_body_without_its_last_event_is_cut() {
        let whole = include_str!("../../../fixtures/anthropic/thinking_text.sse");
        let cut = whole.replace("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", "");
        let seen = read(&cut);
        assert_eq!((seen.fault, seen.complete), (None, false));
    }

    #[test]
    fn events_without_names_are_known_by_their_data() {
        let named = include_str!("../../../fixtures/anthropic/tool_call.sse");
        let nameless = named.lines().filter(|line| !line.starts_with("event:")).collect::<Vec<_>>().join("\n") + "\n";
        assert_eq!(read(&nameless).reply(), read(named).reply());
        for error in
            [r#"{"type":"error","error":{"type":"api_error"}}"#, r#"{"error":{"message":"m"}}"#, r#"{"error":"m"}"#]
        {
            assert_eq!(read(&format!("data: {error}\n\n")).fault, Some(AnswerFault::Error), "{error}");
        }
    }

    #[test]
    fn odd_frames_cost_nothing_and_broken_ones_are_named() {
        for odd in [
            "event: ping\ndata:\n\n",
            "event: brand_new\ndata: not json\n\n",
            "data: {\"type\":null}\n\n",
            "data: [DONE]\n\n",
            "event: content_block_delta\ndata: {\"index\":0,\"delta\":null}\n\n",
            "event: content_block_delta\ndata: {\"delta\":{\"type\":\"text_delta\",\"text\":null}}\n\n",
            "event: content_block_delta\ndata: {\"index\":9,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"s\"}}\n\n",
            "event: content_block_start\ndata: {\"index\":0,\"content_block\":7}\n\n",
            "event: content_block_stop\ndata: {\"index\":5}\n\n",
            "event: message_delta\ndata: {\"delta\":null,\"usage\":null}\n\n",
        ] {
            let seen = read(odd);
            assert_eq!((seen.fault, seen.chunks), (None, Vec::new()), "{odd}");
        }
        for (broken, why) in [
            ("data: <html>\n\n", "is not JSON"),
            (
                "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"typ\n\n",
                "is cut",
            ),
            ("event: content_block_delta\ndata: {\"index\":\"a\"}\n\n", "another shape"),
            (
                "event: content_block_delta\ndata: {\"index\":3,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\n",
                "without its beginning",
            ),
        ] {
            let fault = read(broken).fault;
            assert!(matches!(&fault, Some(AnswerFault::Frame(said)) if said.contains(why)), "{broken}: {fault:?}");
        }
    }

    #[test]
    fn arguments_may_come_whole_and_blocks_may_stay_open() {
        let sse = concat!(
            "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"x\":1}}}\n\n",
            "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"g\",\"input\":null}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"y\\\":2}\"}}\n\n",
            "data: {\"type\":\"message_stop\"}\n\n",
        );
        let calls = [ToolCall::new("a", "f", json!({"x": 1})), ToolCall::new("b", "g", json!({"y": 2}))];
        assert_eq!(read(sse).reply().map(|reply| reply.tool_calls().to_vec()), Ok(calls.to_vec()));
    }

    #[test]
    fn arguments_that_are_no_json_are_an_error_with_their_text() {
        let whole = include_str!("../../../fixtures/anthropic/tool_call.sse");
        let (fault, reply) = read(&whole.replace("Oslo\\\"}", "Oslo")).reply().unwrap_err();
        let AnswerFault::ToolArguments(problems) = fault else { panic!("{fault:?}") };
        assert_eq!(
            (problems[0].tool.as_str(), problems[0].detail.as_deref()),
            ("get_weather", Some("{\"city\": \"Oslo"))
        );
        assert_eq!((reply.text(), reply.tool_calls().len()), ("Let me look.", 1));
    }

    /// The quick way has to give what the slow one gives.
    #[test]
    fn words_are_the_same_by_either_way() {
        for words in ["", "Hello", " \u{e9}\u{1f600}", "a \"quoted\" \\ \n\t}}", "}}", "\u{0}"] {
            let text = serde_json::to_string(words).unwrap();
            let quick = format!(
                r#"{{"type":"content_block_delta","index":12,"delta":{{"type":"text_delta","text":{text}}}   }}"#
            );
            let slow =
                format!(r#"{{"index":12,"type":"content_block_delta","delta":{{"type":"text_delta","text":{text}}}}}"#);
            assert_eq!(text_delta(quick.as_bytes()).as_deref(), Some(words));
            assert_eq!(text_delta(slow.as_bytes()), None);
            assert_eq!(read(&format!("data: {quick}\n\n")).chunks, read(&format!("data: {slow}\n\n")).chunks);
        }
        for other in [
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","more":"b"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":null}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}"#,
            r#"{"type":"content_block_delta","index":,"delta":{"type":"text_delta","text":"a"},"x":1}"#,
        ] {
            assert_eq!(text_delta(other.as_bytes()), None, "{other}");
        }
    }
}
