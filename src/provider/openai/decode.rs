//! An answer in this protocol's words, whatever the server made of them.
//!
//! Servers that speak "the same" protocol send numbers as strings, text as parts, null for anything. A field that is
//! needed is read in every shape in which it has been seen; a field that nobody needs never costs the answer.

use super::lenient::{Finish, Object, Text};
use super::usage::Counts;
use super::{ChatApi, Said};
use crate::chat::Reply;
use crate::provider::lenient::{Count, Fields, Present, Words};
use crate::provider::{AnswerFault, Failure, Head, json};
use bytes::Bytes;
use serde::Deserialize;

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    error: Present,
    #[serde(default)]
    object: Object,
    #[serde(default)]
    model: Words,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Counts>,
    /// `MiniMax` says here what went wrong.
    #[serde(default)]
    base_resp: Fields<BaseResp>,
}

#[derive(Default, Deserialize)]
struct BaseResp {
    #[serde(default)]
    status_code: Count,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    finish_reason: Finish,
    #[serde(default)]
    error: Present,
}

#[derive(Default, Deserialize)]
struct Message {
    #[serde(default)]
    content: Text,
    #[serde(default)]
    refusal: Words,
    #[serde(default)]
    reasoning_content: Words,
    #[serde(default)]
    reasoning: Words,
}

impl ChatApi {
    pub(super) fn read<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        let failed = |fault| Failure::of(head, body).fault(fault);
        let answer: Answer = json::read(head, body)?;
        let Some(choice) = answer.choices.and_then(|choices| choices.into_iter().next()) else {
            let code = answer.base_resp.0.status_code.0.unwrap_or(0);
            let is_error = answer.error.0 || answer.object.is_error || code != 0;
            return Err(failed(if is_error { AnswerFault::Error } else { AnswerFault::Empty }));
        };
        if answer.error.0 || choice.error.0 || choice.finish_reason.is_failure() {
            return Err(failed(AnswerFault::Error));
        }
        let message = choice.message.unwrap_or_default();
        let said = Said {
            text: message.content.text,
            reasoning: message.reasoning_content.0.or(message.reasoning.0).or(message.content.reasoning),
            refusal: message.refusal.0,
            finish: choice.finish_reason.reason(),
            usage: answer.usage.and_then(|counts| counts.usage(self.quirks.reasoning_outside_output)),
            model: answer.model.0,
        };
        said.reply(head, body)
    }
}

#[cfg(test)]
mod tests {
    use crate::ErrorCode;
    use crate::chat::{FinishReason, Reply, Usage};
    use crate::provider::{Classified, Head, OpenAi, Provider};
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, StatusCode};

    fn read(body: &str) -> Result<Reply, Box<Classified>> {
        let (openai, mut headers) = (OpenAi::new("k"), HeaderMap::new());
        headers.insert("x-request-id", HeaderValue::from_static("req_1"));
        let head = Head::new(StatusCode::OK, headers);
        openai.decode(&head, &Bytes::copy_from_slice(body.as_bytes())).map_err(|f| openai.rules().classify(&f).into())
    }

    #[test]
    fn answers_are_read_as_in_the_fixtures() {
        let mut usage = Usage::new(1200, 40);
        (usage.cached_input, usage.cache_write, usage.reasoning) = (Some(1024), Some(0), Some(32));
        let reply = read(include_str!("../../../fixtures/openai/text.response.json")).unwrap();
        assert_eq!((reply.text(), reply.finish_reason()), ("Hello there.", FinishReason::Stop));
        assert_eq!((reply.usage(), reply.model()), (Some(&usage), Some("gpt-6-luna")));
        assert_eq!(reply.provider_request_id(), Some("req_1"));

        let reply = read(include_str!("../../../fixtures/openai/refusal.response.json")).unwrap();
        assert_eq!((reply.text(), reply.refusal()), ("", Some("I cannot help with that.")));

        let reply = read(include_str!("../../../fixtures/openai/cut.response.json")).unwrap();
        assert_eq!((reply.text(), reply.finish_reason()), ("", FinishReason::Length));
        assert_eq!(reply.usage().and_then(|usage| usage.reasoning), Some(200));

        let mut usage = Usage::new(64, 18);
        usage.cached_input = Some(8);
        let reply = read(include_str!("../../../fixtures/openai/odd_shapes.response.json")).unwrap();
        assert_eq!((reply.text(), reply.reasoning()), ("Hello there.", Some("Greet back.")));
        assert_eq!((reply.finish_reason(), reply.usage()), (FinishReason::Length, Some(&usage)));
    }

    #[test]
    fn minimax_says_in_a_200_what_went_wrong() {
        let body = r#"{"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#;
        let seen = read(body).unwrap_err();
        assert_ne!(seen.code, Some(ErrorCode::EmptyResponse));
        assert_eq!(seen.provider_message.as_deref(), Some("insufficient balance"));
        let fine = r#"{"choices":[{"message":{"content":"Hi"}}],"base_resp":{"status_code":0,"status_msg":""}}"#;
        assert_eq!(read(fine).unwrap().text(), "Hi");
    }
}
