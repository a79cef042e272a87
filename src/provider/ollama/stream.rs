//! A streamed answer in this protocol's words: one object a line, the last of them marked as done.

use super::decode::Reader;
use crate::provider::{AnswerFault, Draft, Frame, StreamDecoder, json};

/// Reads the lines of one answer.
#[derive(Debug, Default)]
pub(super) struct Decoder(Reader);

impl StreamDecoder for Decoder {
    fn read(&mut self, frame: &Frame<'_>, draft: &mut Draft) -> Result<(), AnswerFault> {
        self.0.read(json::read_frame(frame.data)?, draft)
    }

    fn end(&mut self, _: &mut Draft) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Chunk, FinishReason, Reply, ToolCall, ToolCallDelta, Usage};
    use crate::provider::Framing;
    use crate::provider::stream::testing::Read;
    use serde_json::json;

    fn read(ndjson: &str) -> Read {
        Read::of(&Framing::Ndjson, ndjson, Decoder::default)
    }

    #[test]
    fn streams_are_read_as_in_the_fixtures() {
        let seen = read(include_str!("../../../fixtures/ollama/thinking_text.ndjson"));
        let chunks =
            [Chunk::Reasoning("Greet back.".into()), Chunk::Text("Hello".into()), Chunk::Text(" \"there\".\n".into())];
        assert_eq!((&seen.fault, seen.complete, seen.chunks.as_slice()), (&None, true, &chunks[..]));
        let expected = Reply::new("Hello \"there\".\n")
            .with_reasoning("Greet back.".to_owned())
            .with_usage(Usage::new(12, 11))
            .with_model("example:8b".to_owned());
        assert_eq!(seen.reply(), Ok(expected));
    }

    #[test]
    fn calls_come_whole_and_get_ids_where_they_have_none() {
        let fixture = include_str!("../../../fixtures/ollama/tool_calls.ndjson");
        let seen = Read::once(Framing::Ndjson, fixture, Decoder::default());
        let first =
            ToolCallDelta::new(0).id("call_fx2").name("get_weather").arguments("{\"city\":\"Oslo\"}").complete();
        assert_eq!((seen.complete, &seen.chunks[0]), (true, &Chunk::ToolCall(first)));
        let reply = seen.reply().unwrap();
        assert_eq!((reply.finish_reason(), reply.usage()), (FinishReason::ToolCalls, Some(&Usage::new(64, 18))));
        let [first, second, third] = reply.tool_calls() else { panic!("{reply:?}") };
        assert_eq!(first, &ToolCall::new("call_fx2", "get_weather", json!({"city": "Oslo"})));
        assert_eq!((second.name.as_str(), &second.arguments), ("get_time", &json!({})));
        assert_eq!((third.name.as_str(), &third.arguments), ("get_weather", &json!({"city": "Lima"})));
        assert!(second.id.starts_with("call_") && second.id != third.id, "{reply:?}");
        let again = Read::once(Framing::Ndjson, fixture, Decoder::default()).reply().unwrap();
        assert_ne!(again.tool_calls()[1].id, second.id, "the same answer twice has two ids");
    }

    #[test]
    fn an_error_line_is_an_error_and_a_body_without_done_is_cut() {
        let seen = read(include_str!("../../../fixtures/ollama/error_midway.ndjson"));
        assert_eq!((seen.fault, seen.complete), (Some(AnswerFault::Error), false));
        assert_eq!(seen.chunks, [Chunk::Text("Hel".into())]);
        let seen = read(r#"{"message":{"content":"Hel"},"done":false}"#);
        assert_eq!((seen.fault, seen.complete), (None, false));
    }

    #[test]
    fn a_model_that_was_only_loaded_said_nothing() {
        let line = r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"load"}"#;
        let (fault, reply) = read(line).reply().unwrap_err();
        assert_eq!((fault, reply.finish_reason()), (AnswerFault::Empty, FinishReason::Other));
        let line = r#"{"message":{"content":""},"done":true,"done_reason":"length"}"#;
        assert_eq!(read(line).reply().map(|reply| reply.finish_reason()), Ok(FinishReason::Length));
    }

    #[test]
    fn nulls_and_odd_shapes_cost_nothing_and_broken_lines_are_named() {
        for odd in [
            r#"{"model":null,"message":null,"done":null,"error":null}"#,
            r#"{"message":{"content":null,"thinking":7,"tool_calls":null,"images":null}}"#,
            r#"{"message":{"content":[],"tool_calls":{}},"brand_new":1,"eval_count":null}"#,
        ] {
            let seen = read(odd);
            assert_eq!((seen.fault, seen.chunks), (None, Vec::new()), "{odd}");
        }
        for (broken, why) in [("<html>", "is not JSON"), (r#"{"message":{"con"#, "is cut"), ("7", "another shape")] {
            let fault = read(broken).fault;
            assert!(matches!(&fault, Some(AnswerFault::Frame(said)) if said.contains(why)), "{broken}: {fault:?}");
        }
    }
}
