//! An answer of the Responses API.
//!
//! What was generated is a list of items of many types. Those that are read are found by their type; what is in others,
//! of which there are more with every release, never costs the answer.

use crate::chat::{FinishReason, Reply};
use crate::provider::lenient::{Fields, List, Present, Words};
use crate::provider::openai::{Counts, Said};
use crate::provider::{AnswerFault, Failure, Head, json};
use bytes::Bytes;
use serde::Deserialize;

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    status: Words,
    #[serde(default)]
    error: Present,
    #[serde(default)]
    incomplete_details: Fields<Incomplete>,
    #[serde(default)]
    model: Words,
    #[serde(default)]
    output: List<Item>,
    #[serde(default)]
    usage: Option<Counts>,
}

#[derive(Default, Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: Words,
}

#[derive(Default, Deserialize)]
struct Item {
    #[serde(default)]
    r#type: Words,
    #[serde(default)]
    content: List<Part>,
    #[serde(default)]
    summary: List<Part>,
}

#[derive(Default, Deserialize)]
struct Part {
    #[serde(default)]
    text: Words,
    #[serde(default)]
    refusal: Words,
}

/// What the items say, together.
#[derive(Default)]
struct Output {
    text: String,
    refusal: Option<String>,
    reasoning: Option<String>,
    calls: bool,
}

impl Output {
    fn of(items: Vec<Item>) -> Self {
        let mut all = Self::default();
        for item in items {
            match item.r#type.0.as_deref() {
                Some("message") => all.message(item.content.0),
                // The summary is for reading; open models give the thoughts themselves, and no summary.
                Some("reasoning") if item.summary.0.is_empty() => all.reason(item.content.0),
                Some("reasoning") => all.reason(item.summary.0),
                Some("function_call" | "custom_tool_call") => all.calls = true,
                _ => {}
            }
        }
        all
    }

    fn message(&mut self, parts: Vec<Part>) {
        for part in parts {
            self.text.push_str(part.text.0.as_deref().unwrap_or_default());
            if let Some(words) = part.refusal.0 {
                self.refusal.get_or_insert_default().push_str(&words);
            }
        }
    }

    /// Each part is a paragraph.
    fn reason(&mut self, parts: Vec<Part>) {
        for words in parts.into_iter().filter_map(|part| part.text.0) {
            match &mut self.reasoning {
                Some(reasoning) => {
                    reasoning.push_str("\n\n");
                    reasoning.push_str(&words);
                }
                None => self.reasoning = Some(words),
            }
        }
    }
}

pub(super) fn decode<'a>(head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
    let failed = |fault| Failure::of(head, body).fault(fault);
    let answer: Answer = json::read(head, body)?;
    let status = answer.status.0.as_deref();
    if status == Some("failed") || answer.error.0 {
        return Err(failed(AnswerFault::Error));
    }
    if let Some(status @ ("queued" | "in_progress")) = status {
        let why = format!("the response is {status}: background responses are not waited for");
        return Err(failed(AnswerFault::Invalid(why)));
    }
    let output = Output::of(answer.output.0);
    let reason = answer.incomplete_details.0.reason.0;
    let finish = match (status, reason.as_deref()) {
        _ if output.calls => FinishReason::ToolCalls,
        _ if output.refusal.is_some() => FinishReason::Refusal,
        (Some("incomplete"), Some("max_output_tokens" | "max_messages")) => FinishReason::Length,
        (Some("incomplete"), Some("content_filter")) => FinishReason::ContentFilter,
        (Some("completed"), _) => FinishReason::Stop,
        _ => FinishReason::Other,
    };
    let said = Said {
        text: output.text,
        reasoning: output.reasoning,
        refusal: output.refusal,
        finish,
        usage: answer.usage.and_then(|counts| counts.usage(false)),
        model: answer.model.0,
    };
    said.reply(head, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::chat::Usage;
    use crate::provider::{Classified, RulePack};
    use http::{HeaderMap, HeaderValue, StatusCode};

    fn read(body: &str) -> Result<Reply, Box<Classified>> {
        let mut headers = HeaderMap::new();
        headers.insert("x-request-id", HeaderValue::from_static("req_1"));
        let head = Head::new(StatusCode::OK, headers);
        decode(&head, &Bytes::copy_from_slice(body.as_bytes())).map_err(|f| RulePack::openai().classify(&f).into())
    }

    #[test]
    fn answers_are_read_as_in_the_fixtures() {
        let mut usage = Usage::new(1200, 40);
        (usage.cached_input, usage.cache_write, usage.reasoning) = (Some(1024), Some(0), Some(32));
        let reply = read(include_str!("../../../fixtures/responses/reasoning.response.json")).unwrap();
        assert_eq!((reply.text(), reply.reasoning()), ("Hello there.", Some("A greeting is enough.\n\nSay it.")));
        assert_eq!((reply.finish_reason(), reply.usage()), (FinishReason::Stop, Some(&usage)));
        assert_eq!((reply.model(), reply.provider_request_id()), (Some("gpt-6-sol"), Some("req_1")));

        let reply = read(include_str!("../../../fixtures/responses/cut.response.json")).unwrap();
        assert_eq!((reply.text(), reply.finish_reason()), ("", FinishReason::Length));
        assert_eq!(reply.usage().and_then(|usage| usage.reasoning), Some(200));

        let reply = read(include_str!("../../../fixtures/responses/refusal.response.json")).unwrap();
        assert_eq!((reply.text(), reply.refusal()), ("", Some("I cannot help with that.")));
        assert_eq!(reply.finish_reason(), FinishReason::Refusal);

        let reply = read(include_str!("../../../fixtures/responses/unknown_items.response.json")).unwrap();
        assert_eq!((reply.text(), reply.reasoning()), ("First. Second.", Some("Thought aloud.")));

        let failed = read(include_str!("../../../fixtures/responses/failed.response.json")).unwrap_err();
        assert_eq!((failed.code, failed.is_retryable()), (Some(ErrorCode::ProviderRateLimited), true));
        assert_eq!(failed.provider_code.as_deref(), Some("rate_limit_exceeded"));
    }

    #[test]
    fn a_finish_reason_is_the_first_that_holds() {
        let said = r#"{"type":"message","content":[{"type":"output_text","text":"Hi"}]}"#;
        let call = r#"{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}"#;
        for (rest, items, finish) in [
            (r#""status":"completed""#, said.to_owned(), FinishReason::Stop),
            (r#""status":"completed""#, format!("{said},{call}"), FinishReason::ToolCalls),
            (
                r#""status":"incomplete","incomplete_details":{"reason":"max_messages"}"#,
                said.to_owned(),
                FinishReason::Length,
            ),
            (
                r#""status":"incomplete","incomplete_details":{"reason":"content_filter"}"#,
                said.to_owned(),
                FinishReason::ContentFilter,
            ),
            (
                r#""status":"incomplete","incomplete_details":{"reason":"steered"}"#,
                said.to_owned(),
                FinishReason::Other,
            ),
            (r#""status":"cancelled","incomplete_details":null"#, said.to_owned(), FinishReason::Other),
        ] {
            let reply = read(&format!("{{{rest},\"output\":[{items}],\"usage\":null}}")).unwrap();
            assert_eq!((reply.text(), reply.finish_reason()), ("Hi", finish), "{rest}");
        }
    }

    #[test]
    fn nothing_usable_is_an_error_by_its_reason() {
        for (body, code, retried) in [
            (r#"{"status":"completed","output":[]}"#, ErrorCode::EmptyResponse, true),
            ("{}", ErrorCode::EmptyResponse, true),
            (
                r#"{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}"#,
                ErrorCode::ContentFiltered,
                false,
            ),
            (r#"{"status":"failed","error":{"code":"server_error","message":"m"}}"#, ErrorCode::ServerError, true),
            (r#"{"status":"failed","error":null}"#, ErrorCode::ServerError, true),
            (r#"{"status":"failed","error":{"code":"bio_policy","message":"m"}}"#, ErrorCode::ContentFiltered, false),
            (r#"{"status":"queued","output":[]}"#, ErrorCode::ResponseInvalid, false),
            (r#"{"status":"completed","output":["#, ErrorCode::ResponseInvalid, false),
        ] {
            let seen = read(body).unwrap_err();
            assert_eq!((seen.code, seen.is_retryable()), (Some(code), retried), "{body}");
        }
    }
}
