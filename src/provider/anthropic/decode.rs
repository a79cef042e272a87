//! An answer in this protocol's words.
//!
//! What is needed is read in every shape in which it has been seen (look-alike servers send `null` for anything), and
//! blocks, fields and reasons that are not known cost nothing.

use super::answer::{Answer, BlockFields, StopDetails, is_output, redacted, thought};
use super::counts::Counts;
use crate::chat::Reply;
use crate::provider::arguments::arguments;
use crate::provider::lenient::{Brief, Fields, Present};
use crate::provider::{AnswerFault, Draft, Failure, Head, json, request_id};
use bytes::Bytes;
use serde::Deserialize;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Brief<'a>,
    #[serde(default)]
    error: Present,
    #[serde(borrow, default)]
    model: Brief<'a>,
    #[serde(borrow, default)]
    content: Option<Vec<Fields<BlockFields<'a>>>>,
    #[serde(borrow, default)]
    stop_reason: Brief<'a>,
    #[serde(default)]
    stop_details: Fields<StopDetails>,
    #[serde(default)]
    usage: Fields<Counts>,
}

pub(super) fn decode<'a>(head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
    let failed = |fault| Failure::of(head, body).fault(fault);
    let message: Message<'_> = json::read(head, body)?;
    if message.error.0 || message.kind.text() == "error" {
        return Err(failed(AnswerFault::Error));
    }
    let (mut answer, mut draft) = (Answer::default(), Draft::new());
    draft.model(message.model.text());
    answer.model = message.model.get().map(str::to_owned);
    let blocks = message.content.unwrap_or_default();
    // Words before the form of the answer are none of it.
    let by_tool = blocks.iter().any(|Fields(block)| block.kind.text() == "tool_use" && is_output(block.name.text()));
    for Fields(block) in blocks {
        match block.kind.text() {
            "text" if !by_tool => answer.say(block.text.into_text(), &mut draft),
            "thinking" => {
                answer.think(thought(block.thinking.text(), block.signature.text()), &mut draft);
                draft.reasoning(block.thinking.into_text());
            }
            "redacted_thinking" => answer.think(redacted(block.data.text()), &mut draft),
            "tool_use" => {
                let called = answer.call(block.id.into_text(), block.name.into_text(), &mut draft);
                Answer::last(called, arguments(block.input).into_owned(), &mut draft);
            }
            _ => {}
        }
    }
    answer.stop(message.stop_reason.text(), message.stop_details.0, &mut draft);
    answer.end(&mut draft);
    if let Some(usage) = message.usage.0.usage() {
        draft.usage(usage);
    }
    let reply = draft.finished().map_err(|(fault, _)| failed(fault))?;
    Ok(reply.with_provider_request_id(request_id(&head.headers).map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{FinishReason, Opaque, ToolCall, Usage};
    use http::{HeaderMap, HeaderValue, StatusCode};
    use serde_json::{Value, json};

    fn read(status: u16, body: &str) -> Result<Reply, (Option<u16>, Option<AnswerFault>)> {
        let mut headers = HeaderMap::new();
        headers.insert("request-id", HeaderValue::from_static("req_1"));
        let head = Head::new(StatusCode::from_u16(status).unwrap(), headers);
        decode(&head, &Bytes::copy_from_slice(body.as_bytes())).map_err(|failure| (failure.status, failure.fault))
    }

    fn usage(input: u64, output: u64, cached: Option<u64>, written: Option<u64>, reasoning: Option<u64>) -> Usage {
        Usage { cached_input: cached, cache_write: written, reasoning, ..Usage::new(input, output) }
    }

    #[test]
    fn answers_are_read_as_in_the_fixtures() {
        let reply = |text: &str, finish| Reply::new(text).with_finish_reason(finish);
        for (fixture, expected) in [
            (
                include_str!("../../../fixtures/anthropic/thinking_and_cache.response.json"),
                reply("Hello there.", FinishReason::Stop)
                    .with_reasoning("A greeting is enough.".to_owned())
                    .with_opaque([
                        block(thinking("A greeting is enough.", "c2lnLWV4YW1wbGU=")),
                        block(json!({"type": "redacted_thinking", "data": "b3BhcXVl"})),
                    ])
                    .with_usage(usage(1112, 40, Some(1000), Some(100), Some(32))),
            ),
            (
                include_str!("../../../fixtures/anthropic/unknown_blocks.response.json"),
                reply("One and two.", FinishReason::Other).with_usage(usage(10, 5, None, None, None)),
            ),
            (
                include_str!("../../../fixtures/anthropic/cut.response.json"),
                reply("", FinishReason::Length)
                    .with_reasoning("Let me see".to_owned())
                    .with_opaque([block(thinking("Let me see", "c2lnLWV4YW1wbGUy"))])
                    .with_usage(usage(10, 64, Some(0), Some(0), Some(64))),
            ),
            (
                include_str!("../../../fixtures/anthropic/refusal.response.json"),
                reply("", FinishReason::ContentFilter)
                    .with_refusal("The request was declined.".to_owned())
                    .with_usage(usage(30, 1, None, None, None)),
            ),
        ] {
            let expected =
                expected.with_model("claude-opus-5-5".to_owned()).with_provider_request_id("req_1".to_owned());
            assert_eq!(read(200, fixture), Ok(expected));
        }
    }

    fn block(data: Value) -> Opaque {
        Opaque::new("anthropic", data).of_model("claude-opus-5-5".to_owned())
    }

    fn thinking(thinking: &str, signature: &str) -> Value {
        json!({"type": "thinking", "thinking": thinking, "signature": signature})
    }

    #[test]
    fn calls_are_read_with_the_thoughts_before_them() {
        let reply = read(200, include_str!("../../../fixtures/anthropic/tool_calls.response.json")).unwrap();
        let calls = [
            ToolCall::new("toolu_fx1", "get_weather", json!({"city": "Oslo"})),
            ToolCall::new("toolu_fx2", "get_weather", json!({}))
                .with_opaque(block(json!([thinking("Now Lima.", "c2lnLWV4YW1wbGUz")]))),
        ];
        assert_eq!(reply.tool_calls(), calls);
        assert_eq!(reply.opaque(), [block(thinking("", "c2lnLWV4YW1wbGUy"))]);
        assert_eq!((reply.finish_reason(), reply.reasoning()), (FinishReason::ToolCalls, Some("Now Lima.")));
    }

    #[test]
    fn a_tool_that_stands_for_the_form_gives_the_text() {
        let reply = read(200, include_str!("../../../fixtures/anthropic/schema_by_tool.response.json")).unwrap();
        assert_eq!((reply.finish_reason(), reply.tool_calls().len()), (FinishReason::Stop, 0));
        assert_eq!(reply.json::<Value>().unwrap(), json!({"city": "Oslo"}));
        for (input, text) in [(r#"{"value":[1, 2]}"#, "[1,2]"), (r#"{"list":1}"#, r#"{"list":1}"#), ("7", "7")] {
            let body = format!(
                r#"{{"content":[{{"type":"tool_use","id":"a","name":"answer_as_json_value","input":{input}}}]}}"#
            );
            assert_eq!(read(200, &body).map(Reply::into_text), Ok(text.to_owned()));
        }
    }

    #[test]
    fn arguments_that_are_no_json_are_an_error_with_their_text() {
        let body = r#"{"content":[{"type":"tool_use","id":"a","name":"f","input":"{\"city\": Oslo"},
            {"type":"tool_use","id":"b","name":"g","input":"{\"x\":1}"}],"stop_reason":"tool_use"}"#;
        let Err((_, Some(AnswerFault::ToolArguments(problems)))) = read(200, body) else { panic!("{body}") };
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert_eq!((problem.tool.as_str(), problem.tool_call_id.as_str()), ("f", "a"));
        assert_eq!(problem.detail.as_deref(), Some("{\"city\": Oslo"));
    }

    #[test]
    fn every_reason_has_a_neutral_word() {
        for (reason, finish) in [
            (r#""end_turn""#, FinishReason::Stop),
            (r#""stop_sequence""#, FinishReason::Stop),
            (r#""max_tokens""#, FinishReason::Length),
            (r#""model_context_window_exceeded""#, FinishReason::Length),
            (r#""tool_use""#, FinishReason::ToolCalls),
            (r#""refusal""#, FinishReason::ContentFilter),
            (r#""pause_turn""#, FinishReason::Other),
            (r#""brand_new""#, FinishReason::Other),
            ("null", FinishReason::Other),
            ("7", FinishReason::Other),
        ] {
            let body = format!(r#"{{"content":[{{"type":"text","text":"x"}}],"stop_reason":{reason}}}"#);
            assert_eq!(read(200, &body).map(|reply| reply.finish_reason()), Ok(finish), "{reason}");
        }
    }

    #[test]
    fn what_is_no_answer_says_why() {
        for (body, fault) in [
            ("", AnswerFault::Empty),
            (r#"{"content":[],"stop_reason":"end_turn"}"#, AnswerFault::Empty),
            (r#"{"content":null}"#, AnswerFault::Empty),
            (r#"{"content":[{"type":"text","text":""}],"stop_reason":"end_turn"}"#, AnswerFault::Empty),
            (r#"{"content":[{"type":"thinking","thinking":"Hm"}],"stop_reason":"end_turn"}"#, AnswerFault::Empty),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, AnswerFault::Error),
            (r#"{"type":"error"}"#, AnswerFault::Error),
            (r#"{"error":"m"}"#, AnswerFault::Error),
            (r#"{"content":[],"stop_reason":"refusal"}"#, AnswerFault::Filtered(Vec::new())),
            (
                r#"{"content":[],"stop_reason":"refusal","stop_details":{"category":"bio","explanation":null}}"#,
                AnswerFault::Filtered(vec!["bio".to_owned()]),
            ),
        ] {
            assert_eq!(read(200, body), Err((Some(200), Some(fault))), "{body}");
        }
        for body in ["<html></html>", r#"{"content":[{"type":"te"#, "7", r#"{"content":7}"#, "data: {}"] {
            let fault = read(200, body).map_err(|(_, fault)| fault);
            assert!(matches!(fault, Err(Some(AnswerFault::Invalid(_)))), "{body}");
        }
        assert_eq!(read(529, "{}"), Err((Some(529), None)));
        assert_eq!(read(201, r#"{"content":[{"type":"text","text":"x"}]}"#), Err((Some(201), None)));
    }

    #[test]
    fn nulls_and_odd_shapes_cost_nothing() {
        let body = r#"{"type":null,"error":null,"model":null,"stop_reason":"end_turn","stop_details":"odd",
            "content":[null,"odd",7,[1],{},{"type":null},{"type":"text","text":"Hi","citations":null},
                {"type":"text","text":null},{"type":"tool_use","input":{"text":"no"}}],
            "usage":{"input_tokens":null,"output_tokens":"4","output_tokens_details":null,
                "cache_read_input_tokens":null,"server_tool_use":{"web_search_requests":1}}}"#;
        let reply = read(200, body).unwrap();
        assert_eq!((reply.text(), reply.model()), ("Hi", None));
        assert_eq!(reply.usage(), Some(&usage(0, 4, None, None, None)));
        let body = r#"{"content":[{"type":"text","text":"Hi"}],"usage":null}"#;
        assert_eq!(read(200, body).map(|reply| reply.usage().copied()), Ok(None));
    }
}
