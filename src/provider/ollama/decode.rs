//! An answer in this protocol's words, whole or one line of it.

use super::PROTOCOL;
use super::calls::Call;
use crate::chat::{FinishReason, Opaque, Reply, ToolCallDelta, Usage};
use crate::provider::lenient::{Brief, Count, Fields, List, Present};
use crate::provider::{AnswerFault, Draft, Failure, Head, json, request_id};
use bytes::Bytes;
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Line<'a> {
    /// A text, not an object.
    #[serde(default)]
    error: Present,
    #[serde(borrow, default)]
    model: Brief<'a>,
    #[serde(borrow, default)]
    created_at: Brief<'a>,
    #[serde(borrow, default)]
    message: Fields<Message<'a>>,
    #[serde(default)]
    done: Present,
    #[serde(borrow, default)]
    done_reason: Brief<'a>,
    /// Left out when it is zero.
    #[serde(default)]
    prompt_eval_count: Count,
    /// Thinking included.
    #[serde(default)]
    eval_count: Count,
}

#[derive(Default, Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Brief<'a>,
    #[serde(borrow, default)]
    thinking: Brief<'a>,
    #[serde(borrow, default)]
    tool_calls: List<Call<'a>>,
}

/// Reads a whole answer: one line with all that a stream has in many.
pub(super) fn decode<'a>(head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
    let failed = |fault| Failure::of(head, body).fault(fault);
    let mut line: Line<'_> = json::read(head, body)?;
    line.done = Present(true);
    let mut draft = Draft::new();
    Reader::default().read(line, &mut draft).map_err(failed)?;
    let reply = draft.finished().map_err(|(fault, _)| failed(fault))?;
    Ok(reply.with_provider_request_id(request_id(&head.headers).map(str::to_owned)))
}

/// Reads the lines of one answer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// What the model thought, which goes back with its calls.
    thinking: String,
}

impl Reader {
    pub(super) fn read(&mut self, line: Line<'_>, draft: &mut Draft) -> Result<(), AnswerFault> {
        if line.error.0 {
            return Err(AnswerFault::Error);
        }
        draft.model(line.model.text());
        let Fields(message) = line.message;
        if draft.keeps_reply() {
            self.thinking.push_str(message.thinking.text());
        }
        draft.reasoning(message.thinking.into_text());
        draft.text(message.content.into_text());
        for call in &message.tool_calls.0 {
            let part = ToolCallDelta::new(draft.tool_calls()).id(call.id(line.created_at.text())).name(call.name());
            draft.tool_call(part.arguments(call.arguments()).complete());
        }
        if let Some(usage) = usage(line.prompt_eval_count, line.eval_count) {
            draft.usage(usage);
        }
        if line.done.0 {
            if draft.tool_calls() > 0 && !self.thinking.is_empty() {
                draft.opaque(Opaque::new(PROTOCOL, std::mem::take(&mut self.thinking)));
            }
            draft.finish(finish_reason(line.done_reason.text()));
            draft.done();
        }
        Ok(())
    }
}

/// The reason in neutral words.
fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        // `load` and `unload` answer a request without messages; an older server may say nothing.
        _ => FinishReason::Other,
    }
}

/// The counts; nothing when nothing was counted.
fn usage(input: Count, output: Count) -> Option<Usage> {
    (input.0.is_some() || output.0.is_some()).then(|| Usage::new(input.0.unwrap_or(0), output.0.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ToolCall;
    use http::{HeaderMap, StatusCode};
    use serde_json::json;

    fn read(status: u16, body: &str) -> Result<Reply, (Option<u16>, Option<AnswerFault>)> {
        let head = Head::new(StatusCode::from_u16(status).unwrap(), HeaderMap::new());
        decode(&head, &Bytes::copy_from_slice(body.as_bytes())).map_err(|failure| (failure.status, failure.fault))
    }

    #[test]
    fn answers_are_read_as_in_the_fixtures() {
        let reply = |text: &str, finish| Reply::new(text).with_finish_reason(finish);
        for (fixture, expected) in [
            (
                include_str!("../../../fixtures/ollama/thinking.response.json"),
                reply("Hello there.", FinishReason::Stop)
                    .with_reasoning("Greet back.".to_owned())
                    .with_usage(Usage::new(12, 11)),
            ),
            (
                include_str!("../../../fixtures/ollama/cut.response.json"),
                reply("", FinishReason::Length).with_reasoning("Greet".to_owned()).with_usage(Usage::new(0, 2)),
            ),
        ] {
            assert_eq!(read(200, fixture), Ok(expected.with_model("example:8b".to_owned())));
        }
    }

    #[test]
    fn calls_are_read_and_the_thoughts_before_them_kept() {
        let reply = read(200, include_str!("../../../fixtures/ollama/tool_call.response.json")).unwrap();
        let [first, second] = reply.tool_calls() else { panic!("{reply:?}") };
        assert_eq!(first, &ToolCall::new("call_fx1", "get_weather", json!({"city": "Oslo"})));
        assert_eq!((second.name.as_str(), &second.arguments), ("get_time", &json!({})));
        assert!(second.id.starts_with("call_"), "{second:?}");
        assert_eq!((reply.finish_reason(), reply.reasoning()), (FinishReason::ToolCalls, Some("Need it.")));
        assert_eq!(reply.opaque(), [Opaque::new("ollama", "Need it.")]);
        let body =
            r#"{"message":{"tool_calls":[{"function":{"name":"f","arguments":"{\"city\": Oslo"}}]},"done":true}"#;
        let fault = read(200, body).map_err(|(_, fault)| fault);
        assert!(matches!(fault, Err(Some(AnswerFault::ToolArguments(_)))), "{fault:?}");
    }

    #[test]
    fn every_reason_has_a_neutral_word() {
        for (reason, finish) in [
            (r#""stop""#, FinishReason::Stop),
            (r#""length""#, FinishReason::Length),
            (r#""load""#, FinishReason::Other),
            (r#""brand_new""#, FinishReason::Other),
            ("null", FinishReason::Other),
        ] {
            let body = format!(r#"{{"message":{{"content":"x"}},"done":true,"done_reason":{reason}}}"#);
            assert_eq!(read(200, &body).map(|reply| reply.finish_reason()), Ok(finish), "{reason}");
        }
    }

    #[test]
    fn what_is_no_answer_says_why() {
        for (body, fault) in [
            ("", AnswerFault::Empty),
            ("{}", AnswerFault::Empty),
            (r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"load"}"#, AnswerFault::Empty),
            (r#"{"message":{"content":"","thinking":"Hm"},"done":true,"done_reason":"stop"}"#, AnswerFault::Empty),
            (r#"{"error":"not enough memory"}"#, AnswerFault::Error),
        ] {
            assert_eq!(read(200, body), Err((Some(200), Some(fault))), "{body}");
        }
        // The last is what a server sends that streams although it was told not to.
        for body in ["<html></html>", r#"{"message":{"con"#, "{\"done\":false}\n{\"done\":true}\n"] {
            let fault = read(200, body).map_err(|(_, fault)| fault);
            assert!(matches!(fault, Err(Some(AnswerFault::Invalid(_)))), "{body}");
        }
        assert_eq!(read(404, r#"{"error":"model 'x' not found"}"#), Err((Some(404), None)));
    }

    #[test]
    fn nulls_and_odd_shapes_cost_nothing() {
        let body = r#"{"error":null,"model":null,"created_at":7,"done":null,"brand_new":{},
            "message":{"role":null,"content":"Hi","thinking":null,"tool_calls":null},"eval_count":null}"#;
        let reply = read(200, body).unwrap();
        assert_eq!((reply.text(), reply.reasoning(), reply.usage(), reply.model()), ("Hi", None, None, None));
    }
}
