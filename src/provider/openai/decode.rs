//! An answer in this protocol's words, whatever the server made of them.
//!
//! Servers that speak "the same" protocol send numbers as strings, text as parts, null for anything. A field that is
//! needed is read in every shape in which it has been seen; a field that nobody needs never costs the answer.

use super::calls::{self, Fragments};
use super::echo::Kept;
use super::lenient::{Finish, Object, Text};
use super::usage::Counts;
use super::{ChatApi, Said};
use crate::chat::{FinishReason, Reply};
use crate::provider::lenient::{Brief, Count, Fields, Present, Words};
use crate::provider::{AnswerFault, Failure, Head, json};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(default)]
    error: Present,
    #[serde(default)]
    object: Object,
    #[serde(default, borrow)]
    id: Brief<'a>,
    #[serde(default)]
    model: Words,
    #[serde(default, borrow)]
    choices: Option<Vec<Choice<'a>>>,
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
struct Choice<'a> {
    #[serde(default, borrow)]
    message: Option<Message<'a>>,
    #[serde(default)]
    finish_reason: Finish,
    #[serde(default)]
    error: Present,
}

#[derive(Default, Deserialize)]
struct Message<'a> {
    #[serde(default)]
    content: Text,
    #[serde(default)]
    refusal: Words,
    #[serde(default)]
    reasoning_content: Words,
    #[serde(default)]
    reasoning: Words,
    #[serde(default, borrow)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(default, borrow)]
    tool_calls: Fragments<'a>,
}

impl ChatApi {
    pub(super) fn read<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        let failed = |fault| Failure::of(head, body).fault(fault);
        let answer: Answer<'_> = json::read(head, body)?;
        let Some(choice) = answer.choices.and_then(|choices| choices.into_iter().next()) else {
            let code = answer.base_resp.0.status_code.0.unwrap_or(0);
            let is_error = answer.error.0 || answer.object.is_error || code != 0;
            return Err(failed(if is_error { AnswerFault::Error } else { AnswerFault::Empty }));
        };
        if answer.error.0 || choice.error.0 || choice.finish_reason.is_failure() {
            return Err(failed(AnswerFault::Error));
        }
        let message = choice.message.unwrap_or_default();
        let finish = choice.finish_reason.reason();
        let cut = finish == FinishReason::Length;
        let tool_calls = calls::whole(&message.tool_calls, answer.id.text(), self.protocol(), cut)
            .map_err(|problems| failed(AnswerFault::ToolArguments(problems)))?;
        let reasoning = message.reasoning_content.0.or(message.reasoning.0).or(message.content.reasoning);
        let mut kept = Kept::new(self.quirks.echo);
        kept.words(reasoning.as_deref().unwrap_or_default());
        message.reasoning_details.into_iter().for_each(|blocks| kept.blocks(blocks));
        let said = Said {
            text: message.content.text,
            reasoning,
            tool_calls,
            opaque: kept.take(self.protocol()),
            refusal: message.refusal.0,
            finish,
            usage: answer.usage.and_then(|counts| counts.usage(self.quirks.reasoning_outside_output)),
            model: answer.model.0,
        };
        said.reply(head, body)
    }
}

#[cfg(test)]
mod tests {
    use crate::ErrorCode;
    use crate::chat::{FinishReason, Reply, Request, ToolCall, Usage};
    use crate::provider::{Classified, EncodeContext, Head, OpenAi, OpenAiCompatible, Preset, Provider};
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, StatusCode};
    use serde_json::{Value, json};

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
    fn tool_calls_are_read_in_every_shape() {
        let reply = read(include_str!("../../../fixtures/openai/tool_calls.response.json")).unwrap();
        let call = |id: &str, city: &str| ToolCall::new(id, "get_weather", json!({"city": city}));
        assert_eq!(reply.tool_calls(), [call("call_a1", "Oslo"), call("call_a2", "Lima")]);
        assert_eq!((reply.text(), reply.finish_reason()), ("", FinishReason::ToolCalls));

        let reply = read(include_str!("../../../fixtures/compatible/mistral_tool_call.response.json")).unwrap();
        assert_eq!(reply.tool_calls(), [call("a1B2c3D4e", "Oslo")]);
        assert_eq!(reply.reasoning(), Some("Need the weather."));

        // Calls without ids get some, and what the server wants back stays beside each.
        let reply = read(include_str!("../../../fixtures/compatible/gemini_door.response.json")).unwrap();
        let [called] = reply.tool_calls() else { panic!("{reply:?}") };
        assert!(called.id.starts_with("call_"), "{}", called.id);
        let kept = called.opaque.as_ref().unwrap();
        assert_eq!(kept.data, json!({"extra_content": {"google": {"thought_signature": "c2ln"}}}));
        assert_eq!(reply.finish_reason(), FinishReason::ToolCalls);
        let again = Request { history: vec![reply.to_turn()], ..Request::default() };
        for (provider, goes_back) in
            [(&OpenAi::new("k") as &dyn Provider, true), (&OpenAiCompatible::new("http://host/v1"), false)]
        {
            let body = provider.encode(&again, &EncodeContext::new("m")).unwrap().body;
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["messages"][0]["tool_calls"][0].get("extra_content").is_some(), goes_back);
        }
    }

    #[test]
    fn malformed_arguments_are_told_with_their_text() {
        let body = |finish: &str, arguments: &str| {
            format!(
                r#"{{"choices":[{{"finish_reason":"{finish}","message":{{"tool_calls":[{{"id":"c","function":{{"name":"wipe","arguments":{arguments}}}}}]}}}}]}}"#
            )
        };
        for (finish, arguments, fits) in [
            ("tool_calls", r#""{\"path\": \"a""#, false),
            ("tool_calls", r#""""#, true),
            ("tool_calls", "null", true),
            ("tool_calls", r#"" \n""#, true),
            // What the limit cut before its first letter is not a call without arguments.
            ("length", r#""""#, false),
            ("length", r#""{}""#, true),
        ] {
            match read(&body(finish, arguments)) {
                Ok(reply) => assert!(fits && reply.tool_calls()[0].arguments == json!({}), "{finish} {arguments}"),
                Err(seen) => {
                    assert!(!fits, "{finish} {arguments}");
                    assert_eq!(seen.code, Some(ErrorCode::ToolArgumentsParseFailed));
                }
            }
        }
    }

    #[test]
    fn reasoning_goes_back_where_the_server_wants_it() {
        let openrouter = OpenAiCompatible::of(Preset::OPENROUTER);
        let body = r#"{"choices":[{"message":{"content":"Hi","reasoning":"Greet.","reasoning_details":[{"type":"reasoning.text","text":"Greet.","signature":"c2ln"}]}}]}"#;
        let head = Head::new(StatusCode::OK, HeaderMap::new());
        let reply = openrouter.decode(&head, &Bytes::from_static(body.as_bytes())).unwrap();
        let again = Request { history: vec![reply.to_turn()], ..Request::user("And?") };
        let body = openrouter.encode(&again, &EncodeContext::new("m")).unwrap().body;
        let body: Value = serde_json::from_slice(&body).unwrap();
        let details = json!([{"type": "reasoning.text", "text": "Greet.", "signature": "c2ln"}]);
        assert_eq!(body["messages"][0], json!({"role": "assistant", "content": "Hi", "reasoning_details": details}));
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
