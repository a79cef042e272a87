//! An answer in this protocol's words.

use crate::chat::{FinishReason, Reply, Usage};
use crate::provider::lenient::{Count, Fields, Present, Words};
use crate::provider::{AnswerFault, Failure, Head, json, request_id};
use bytes::Bytes;
use serde::Deserialize;

#[derive(Deserialize)]
struct Answer {
    /// A text, not an object.
    #[serde(default)]
    error: Present,
    #[serde(default)]
    model: Words,
    #[serde(default)]
    message: Fields<Message>,
    #[serde(default)]
    done_reason: Words,
    /// Left out when it is zero.
    #[serde(default)]
    prompt_eval_count: Count,
    /// Thinking included.
    #[serde(default)]
    eval_count: Count,
}

#[derive(Default, Deserialize)]
struct Message {
    #[serde(default)]
    content: Words,
    #[serde(default)]
    thinking: Words,
}

pub(super) fn decode<'a>(head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
    let failed = |fault| Failure::of(head, body).fault(fault);
    let answer: Answer = json::read(head, body)?;
    if answer.error.0 {
        return Err(failed(AnswerFault::Error));
    }
    let finish = finish_reason(answer.done_reason.0.as_deref().unwrap_or_default());
    let Fields(message) = answer.message;
    let text = message.content.0.unwrap_or_default();
    if text.is_empty() && finish != FinishReason::Length {
        return Err(failed(AnswerFault::Empty));
    }
    Ok(Reply::new(text)
        .with_reasoning(message.thinking.0.filter(|words| !words.is_empty()))
        .with_finish_reason(finish)
        .with_usage(usage(answer.prompt_eval_count, answer.eval_count))
        .with_model(answer.model.0)
        .with_provider_request_id(request_id(&head.headers).map(str::to_owned)))
}

/// The reason in neutral words.
pub(super) fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        // `load` and `unload` answer a request without messages; an older server may say nothing.
        _ => FinishReason::Other,
    }
}

/// The counts; nothing when nothing was counted.
pub(super) fn usage(input: Count, output: Count) -> Option<Usage> {
    (input.0.is_some() || output.0.is_some()).then(|| Usage::new(input.0.unwrap_or(0), output.0.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, StatusCode};

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
