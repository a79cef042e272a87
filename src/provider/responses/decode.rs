//! An answer of the Responses API, whole.

use super::items::Items;
use crate::chat::Reply;
use crate::provider::lenient::{Brief, Fields, Present, skip_object};
use crate::provider::openai::Counts;
use crate::provider::{AnswerFault, Draft, Failure, Head, json, request_id};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;

/// A response: an answer by itself, and what the last event of a stream carries.
#[derive(Default, Deserialize)]
pub(super) struct Answer<'a> {
    #[serde(default, borrow)]
    pub(super) status: Brief<'a>,
    #[serde(default)]
    error: Present,
    #[serde(default, borrow)]
    incomplete_details: Fields<Incomplete<'a>>,
    #[serde(default, borrow)]
    pub(super) model: Brief<'a>,
    #[serde(default, borrow)]
    output: Raws<'a>,
    #[serde(default)]
    usage: Fields<Counts>,
}

#[derive(Default, Deserialize)]
struct Incomplete<'a> {
    #[serde(default, borrow)]
    reason: Brief<'a>,
}

/// The elements of a list as they are written; none where something else came.
#[derive(Default)]
struct Raws<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Raws<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Reader<'a> {
            type Value = Raws<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raws<'a>, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    elements.push(element);
                }
                Ok(Raws(elements))
            }

            fn visit_unit<E: Error>(self) -> Result<Raws<'a>, E> {
                Ok(Raws::default())
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<Raws<'a>, E> {
                Ok(Raws::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Raws<'a>, A::Error> {
                skip_object(object).map(|_| Raws::default())
            }
        }
        from.deserialize_any(Reader(PhantomData))
    }
}

impl Answer<'_> {
    /// Reads what the response says, but for what `items` have told already.
    pub(super) fn conclude(&self, items: &mut Items, status: &str, draft: &mut Draft) -> Result<(), AnswerFault> {
        if status == "failed" || self.error.0 {
            return Err(AnswerFault::Error);
        }
        draft.model(self.model.text());
        // The Responses API counts reasoning as output.
        self.usage.0.usage(false).into_iter().for_each(|usage| draft.usage(usage));
        for (place, raw) in (0..).zip(&self.output.0) {
            items.close(place, raw, draft)?;
        }
        items.end(self.model.text(), status, self.incomplete_details.0.reason.text(), draft);
        draft.done();
        Ok(())
    }
}

pub(super) fn decode<'a>(head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
    let failed = |fault| Failure::of(head, body).fault(fault);
    let answer: Answer<'_> = json::read(head, body)?;
    let status = answer.status.text();
    if let "queued" | "in_progress" = status {
        let why = format!("the response is {status}: background responses are not waited for");
        return Err(failed(AnswerFault::Invalid(why)));
    }
    let mut draft = Draft::new();
    answer.conclude(&mut Items::default(), status, &mut draft).map_err(failed)?;
    let reply = draft.finished().map_err(|(fault, _)| failed(fault))?;
    Ok(reply.with_provider_request_id(request_id(&head.headers).map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::chat::{FinishReason, Usage};
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
