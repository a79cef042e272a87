//! An answer in Converse's words.
//!
//! What is needed is read in every shape in which it has been seen, and blocks, fields and reasons that are not known cost
//! nothing.

use super::stream::PROTOCOL;
use super::tools::OUTPUT_TOOL;
use crate::chat::{FinishReason, Opaque, Reply, ToolCall, Usage};
use crate::provider::lenient::{Count, Fields, List, Words};
use crate::provider::{AnswerFault, Failure, Head, json, request_id};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

/// The header that names an exception.
const ERROR_TYPE: &str = "x-amzn-errortype";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    /// The name of an exception.
    #[serde(default, rename = "__type")]
    exception: Words,
    #[serde(default)]
    output: Fields<Output>,
    #[serde(default)]
    stop_reason: Words,
    #[serde(default)]
    usage: Fields<Counts>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Output {
    message: Fields<Message>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    content: List<Block>,
}

/// A block has one of these keys, or one that is not known.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Block {
    text: Words,
    reasoning_content: Option<Value>,
    tool_use: Option<ToolUse>,
    citations_content: Fields<Cited>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_field_names)] // the provider's names
struct ToolUse {
    tool_use_id: Words,
    name: Words,
    input: Option<Value>,
}

/// Text with its sources.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Cited {
    content: List<Text>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Text {
    text: Words,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_field_names)] // the provider's names
pub(super) struct Counts {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_write_input_tokens: Count,
}

pub(super) fn decode<'a>(head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
    let failed = |fault| Failure::of(head, body).fault(fault);
    let answer: Answer = json::read(head, body)?;
    if answer.exception.0.is_some() || head.headers.contains_key(ERROR_TYPE) {
        return Err(failed(AnswerFault::Error));
    }
    let said = answer.output.0.message.0.said();
    let reason = answer.stop_reason.0.unwrap_or_default();
    let mut finish = finish_reason(&reason);
    if said.calls.is_empty() && said.as_json && finish == FinishReason::ToolCalls {
        finish = FinishReason::Stop;
    }
    if said.text.is_empty() && said.calls.is_empty() && finish != FinishReason::Length {
        return Err(failed(match finish {
            FinishReason::ContentFilter => AnswerFault::Filtered(vec![reason]),
            _ => AnswerFault::Empty,
        }));
    }
    Ok(Reply::new(said.text)
        .with_reasoning(Some(said.reasoning).filter(|words| !words.is_empty()))
        .with_tool_calls(said.calls)
        .with_opaque(said.opaque)
        .with_finish_reason(finish)
        .with_usage(answer.usage.0.usage())
        .with_provider_request_id(request_id(&head.headers).map(str::to_owned)))
}

/// The reason in neutral words.
pub(super) fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "content_filtered" | "guardrail_intervened" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

/// What a message says.
#[derive(Default)]
struct Said {
    text: String,
    reasoning: String,
    calls: Vec<ToolCall>,
    opaque: Vec<Opaque>,
    /// Whether the text was a tool's that stood for the form of the answer.
    as_json: bool,
}

impl Message {
    fn said(self) -> Said {
        let mut said = Said::default();
        for block in self.content.0 {
            append(&mut said.text, block.text);
            for part in block.citations_content.0.content.0 {
                append(&mut said.text, part.text);
            }
            if let Some(thought @ Value::Object(_)) = block.reasoning_content {
                said.reasoning.push_str(thought["reasoningText"]["text"].as_str().unwrap_or_default());
                // It goes back as it was, its signature included.
                said.opaque.push(Opaque::new(PROTOCOL, thought));
            }
            if let Some(call) = block.tool_use {
                let name = call.name.0.unwrap_or_default();
                let input = call.input.filter(|input| !input.is_null());
                if name == OUTPUT_TOOL {
                    said.as_json = true;
                    said.text = match input.unwrap_or_default() {
                        Value::String(text) => text,
                        input => input.to_string(),
                    };
                } else {
                    let input = input.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
                    said.calls.push(ToolCall::new(call.tool_use_id.0.unwrap_or_default(), name, input));
                }
            }
        }
        said
    }
}

/// The first text is taken as it is: mostly there is one.
fn append(whole: &mut String, part: Words) {
    match part.0 {
        Some(part) if whole.is_empty() => *whole = part,
        Some(part) => whole.push_str(&part),
        None => {}
    }
}

impl Counts {
    /// The counts with the cache within the input; nothing when nothing was counted. Whether Bedrock's own total has the
    /// cache in it differs by model, so it is not read.
    pub(super) fn usage(&self) -> Option<Usage> {
        if self.input_tokens.0.is_none() && self.output_tokens.0.is_none() {
            return None;
        }
        let (read, written) = (self.cache_read_input_tokens.0, self.cache_write_input_tokens.0);
        let input = [self.input_tokens.0, read, written].into_iter().flatten().fold(0, u64::saturating_add);
        let mut usage = Usage::new(input, self.output_tokens.0.unwrap_or(0));
        usage.cached_input = read;
        usage.cache_write = written;
        Some(usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue, StatusCode};

    fn read(status: u16, body: &str) -> Result<Reply, (Option<u16>, Option<AnswerFault>)> {
        let mut headers = HeaderMap::new();
        headers.insert("x-amzn-requestid", HeaderValue::from_static("00000000-1"));
        let head = Head::new(StatusCode::from_u16(status).unwrap(), headers);
        decode(&head, &Bytes::copy_from_slice(body.as_bytes())).map_err(|failure| (failure.status, failure.fault))
    }

    /// Reasoning as it goes back.
    fn thought(text: &str, signature: Option<&str>) -> Opaque {
        let mut whole = serde_json::json!({"text": text});
        if let Some(signature) = signature {
            whole["signature"] = signature.into();
        }
        Opaque::new(PROTOCOL, serde_json::json!({"reasoningText": whole}))
    }

    fn usage(input: u64, output: u64, cached: Option<u64>, written: Option<u64>) -> Usage {
        Usage { cached_input: cached, cache_write: written, ..Usage::new(input, output) }
    }

    #[test]
    fn answers_are_read_as_in_the_fixtures() {
        let reply = |text: &str, finish| Reply::new(text).with_finish_reason(finish);
        for (fixture, expected) in [
            (
                include_str!("../../../fixtures/bedrock/reasoning_and_cache.response.json"),
                reply("Hello there.", FinishReason::Stop)
                    .with_reasoning("A greeting is enough.".to_owned())
                    .with_opaque([thought("A greeting is enough.", Some("c2lnLWV4YW1wbGU="))])
                    .with_usage(usage(1112, 40, Some(1000), Some(100))),
            ),
            (
                include_str!("../../../fixtures/bedrock/citations.response.json"),
                reply("Oslo is the capital. Bergen is not.", FinishReason::Stop).with_usage(usage(64, 9, None, None)),
            ),
            (
                include_str!("../../../fixtures/bedrock/guardrail.response.json"),
                reply("Blocked by policy.", FinishReason::ContentFilter).with_usage(usage(9, 4, None, None)),
            ),
            (
                include_str!("../../../fixtures/bedrock/cut.response.json"),
                reply("", FinishReason::Length)
                    .with_reasoning("Let me see".to_owned())
                    .with_opaque([thought("Let me see", None)])
                    .with_usage(usage(10, 64, Some(0), Some(0))),
            ),
        ] {
            assert_eq!(read(200, fixture), Ok(expected.with_provider_request_id("00000000-1".to_owned())));
        }
    }

    #[test]
    fn every_reason_has_a_neutral_word() {
        for (reason, finish) in [
            (r#""end_turn""#, FinishReason::Stop),
            (r#""stop_sequence""#, FinishReason::Stop),
            (r#""max_tokens""#, FinishReason::Length),
            (r#""model_context_window_exceeded""#, FinishReason::Length),
            (r#""tool_use""#, FinishReason::ToolCalls),
            (r#""content_filtered""#, FinishReason::ContentFilter),
            (r#""guardrail_intervened""#, FinishReason::ContentFilter),
            (r#""malformed_model_output""#, FinishReason::Other),
            (r#""malformed_tool_use""#, FinishReason::Other),
            (r#""brand_new""#, FinishReason::Other),
            ("null", FinishReason::Other),
            ("7", FinishReason::Other),
        ] {
            let body = format!(r#"{{"output":{{"message":{{"content":[{{"text":"x"}}]}}}},"stopReason":{reason}}}"#);
            assert_eq!(read(200, &body).map(|reply| reply.finish_reason()), Ok(finish), "{reason}");
        }
    }

    #[test]
    fn what_is_no_answer_says_why() {
        let said = |content: &str, reason: &str| {
            format!(r#"{{"output":{{"message":{{"content":{content}}}}},"stopReason":"{reason}"}}"#)
        };
        for (body, fault) in [
            (String::new(), AnswerFault::Empty),
            ("{}".to_owned(), AnswerFault::Empty),
            (said("[]", "end_turn"), AnswerFault::Empty),
            (said("null", "end_turn"), AnswerFault::Empty),
            (said(r#"[{"text":""}]"#, "end_turn"), AnswerFault::Empty),
            (said(r#"[{"reasoningContent":{"reasoningText":{"text":"Hm"}}}]"#, "end_turn"), AnswerFault::Empty),
            (said("[]", "malformed_model_output"), AnswerFault::Empty),
            (said("[]", "guardrail_intervened"), AnswerFault::Filtered(vec!["guardrail_intervened".to_owned()])),
            (said("[]", "content_filtered"), AnswerFault::Filtered(vec!["content_filtered".to_owned()])),
            (r#"{"__type":"throttlingException","message":"m"}"#.to_owned(), AnswerFault::Error),
        ] {
            assert_eq!(read(200, &body), Err((Some(200), Some(fault))), "{body}");
        }
        for body in ["<html></html>", r#"{"output":{"message":{"con"#, "7", "data: {}"] {
            let fault = read(200, body).map_err(|(_, fault)| fault);
            assert!(matches!(fault, Err(Some(AnswerFault::Invalid(_)))), "{body}");
        }
        assert_eq!(read(503, "{}"), Err((Some(503), None)));
        assert_eq!(read(201, &said(r#"[{"text":"x"}]"#, "end_turn")), Err((Some(201), None)));
    }

    #[test]
    fn an_exception_named_in_a_header_is_an_error_under_a_200_too() {
        let mut headers = HeaderMap::new();
        headers.insert(ERROR_TYPE, HeaderValue::from_static("ThrottlingException"));
        let (head, body) = (Head::new(StatusCode::OK, headers), Bytes::from_static(br#"{"message":"m"}"#));
        assert_eq!(decode(&head, &body).unwrap_err().fault, Some(AnswerFault::Error));
    }

    #[test]
    fn nulls_and_odd_shapes_cost_nothing() {
        let body = r#"{"__type":null,"output":{"message":{"role":null,"content":[null,"odd",7,[1],{},{"text":null},
                {"brandNew":{"text":"no"}},{"toolUse":{"text":"no"}},{"reasoningContent":{"redactedContent":"b3BhcXVl"}},
                {"text":"Hi"},{"citationsContent":null}]},"other":1},"stopReason":"end_turn","trace":null,
            "usage":{"inputTokens":null,"outputTokens":"4","totalTokens":null,"cacheReadInputTokens":null}}"#;
        let reply = read(200, body).unwrap();
        assert_eq!((reply.text(), reply.reasoning(), reply.model()), ("Hi", None, None));
        assert_eq!(reply.usage(), Some(&usage(0, 4, None, None)));
        let body = r#"{"output":{"message":{"content":[{"text":"Hi"}]}},"usage":null}"#;
        assert_eq!(read(200, body).map(|reply| reply.usage().copied()), Ok(None));
    }
}
