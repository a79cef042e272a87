//! Streams as they are on the wire, whole and cut at every byte.

use super::*;
use crate::ErrorCode;
use crate::chat::{Chunk, FinishReason, Reply, ToolCall, Usage};
use crate::provider::stream::testing::Read;
use crate::provider::{Failure, Framing, RulePack};
use http::HeaderMap;
use serde_json::json;

macro_rules! stream {
    ($name:literal) => {
        include_str!(concat!("../../../../fixtures/responses/", $name, ".sse"))
    };
}

fn read(body: &str) -> Read {
    Read::of(&Framing::Sse, body, ResponseStream::default)
}

fn reply(body: &str) -> Reply {
    let read = read(body);
    assert!(read.complete, "{read:?}");
    read.reply().unwrap()
}

#[test]
fn text_comes_in_the_pieces_in_which_it_was_sent() {
    let told = read(stream!("text"));
    assert_eq!(told.chunks.iter().map(Chunk::text).collect::<Vec<_>>(), ["Hello", " there."]);
    let reply = told.reply().unwrap();
    assert_eq!(
        (reply.text(), reply.finish_reason(), reply.model()),
        ("Hello there.", FinishReason::Stop, Some("gpt-6-sol"))
    );
    assert_eq!(reply.usage().map(|usage| (usage.total, usage.reasoning)), Some((15, Some(0))));
    assert!(reply.opaque().is_empty());
}

#[test]
fn a_tool_call_is_put_together() {
    let reply = reply(stream!("tool_call"));
    assert_eq!(reply.tool_calls(), [ToolCall::new("call_fx6", "get_weather", json!({"city": "Oslo"}))]);
    assert_eq!((reply.finish_reason(), reply.usage()), (FinishReason::ToolCalls, Some(&Usage::new(64, 18))));
}

/// llama.cpp's server numbers no items: its events name them by their ids, and all items end after the last has begun.
/// Taken for the item spoken of last, a second call took the place of the first, which never ended.
#[test]
fn items_that_are_not_numbered_are_told_apart_by_their_ids() {
    let item = |status, arguments, n| {
        json!({"type": "function_call", "id": format!("fc_{n}"), "call_id": format!("call_{n}"), "name": "get_weather",
            "status": status, "arguments": arguments})
    };
    let done = |n| item("completed", r#"{"city":"Oslo"}"#, n);
    let begins = |n| json!({"type": "response.output_item.added", "item": item("in_progress", "", n)});
    let piece = |n, words| json!({"type": "response.function_call_arguments.delta", "item_id": format!("fc_{n}"), "delta": words});
    let ends = |n| json!({"type": "response.output_item.done", "item": done(n)});
    let last = json!({"status": "completed", "output": [done(1), done(2)]});
    let events = [
        begins(1),
        piece(1, r#"{"city":"#),
        begins(2),
        piece(2, r#"{"city":"#),
        piece(1, r#""Oslo"}"#),
        piece(2, r#""Oslo"}"#),
        ends(1),
        ends(2),
        json!({"type": "response.completed", "response": last}),
    ];
    let events = events.map(|event| format!("data: {event}\n\n"));
    let reply = reply(&events.concat());
    let call = |id| ToolCall::new(id, "get_weather", json!({"city": "Oslo"}));
    assert_eq!(reply.tool_calls(), [call("call_1"), call("call_2")]);
}

#[test]
fn reasoning_is_told_in_paragraphs_and_goes_back_with_what_it_led_to() {
    let reply = reply(stream!("reasoning_and_call"));
    assert_eq!((reply.text(), reply.reasoning()), ("One moment.", Some("The weather first.\n\nAsk the tool.")));
    assert_eq!(reply.tool_calls(), [ToolCall::new("call_fx10", "get_weather", json!({"city": "Oslo"}))]);
    let [kept] = reply.opaque() else { panic!("{:?}", reply.opaque()) };
    assert_eq!((&*kept.protocol, kept.model.as_deref()), ("openai_responses", Some("gpt-6-sol")));
    assert_eq!(kept.data[0]["encrypted_content"], "ZW5jLWV4YW1wbGU=");
    assert_eq!(
        kept.data.as_array().unwrap()[1..],
        [
            json!({"type": "message", "id": "msg_fx10", "phase": "commentary", "len": 11}),
            json!({"type": "function_call", "id": "fc_fx10", "call_id": "call_fx10"}),
        ]
    );
}

#[test]
fn an_answer_without_its_last_event_is_not_complete() {
    let (before, _) = stream!("text").split_once("event: response.completed").unwrap();
    for end in ["", "data: [DONE]\n\n"] {
        assert!(!read(&format!("{before}{end}")).complete);
    }
    let cut = reply(stream!("cut"));
    assert_eq!((cut.text(), cut.finish_reason()), ("The first ha", FinishReason::Length));
}

#[test]
fn what_no_event_told_is_read_from_the_last_one() {
    let alone = reply(stream!("last_event_alone"));
    assert_eq!((alone.text(), alone.reasoning()), ("Hello there.", Some("Hm.")));
}

#[test]
fn an_error_means_the_same_in_every_shape() {
    for (body, code) in [
        (stream!("failed"), ErrorCode::ServerError),
        (stream!("error"), ErrorCode::ProviderRateLimited),
        (
            r#"data: {"type":"error","error":{"type":"server_error","code":"rate_limit_exceeded","message":"m"}}"#,
            ErrorCode::ProviderRateLimited,
        ),
        (
            r#"data: {"type":"response.failed","response":{"status":"failed","error":{"code":"bio_policy","message":"m"}}}"#,
            ErrorCode::ContentFiltered,
        ),
        (r#"data: {"error":{"code":"server_error","message":"m"}}"#, ErrorCode::ServerError),
    ] {
        let read = read(body);
        assert_eq!((&read.fault, read.complete), (&Some(AnswerFault::Error), false));
        let data = body.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let headers = HeaderMap::new();
        let failure = Failure::answer(200, &headers, data.as_bytes()).fault(AnswerFault::Error);
        assert_eq!(RulePack::openai().classify(&failure).code, Some(code), "{data}");
    }
}

#[test]
fn a_call_that_was_cut_is_malformed_whatever_came_of_its_arguments() {
    let item = r#"{"type":"function_call","status":"incomplete","call_id":"c","name":"wipe","arguments":""}"#;
    let body = format!(
        r#"data: {{"type":"response.incomplete","response":{{"status":"incomplete","incomplete_details":{{"reason":"max_output_tokens"}},"output":[{item}]}}}}"#
    );
    assert!(matches!(read(&body).fault, Some(AnswerFault::ToolArguments(_))));
}
