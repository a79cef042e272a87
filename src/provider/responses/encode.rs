//! A request in the words of the Responses API.

use crate::LlmError;
use crate::chat::{Request, Setting};
use crate::provider::openai::{Place, ReasoningSwitch, UNKNOWN};
use crate::provider::refusal::{first_set, unsupported};
use crate::provider::{EncodeContext, HttpRequest, json};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

/// The highest `temperature` that OpenAI documents.
const MAX_TEMPERATURE: f64 = 2.0;
/// What chat completions have and this protocol has not.
const MISSING: &[Setting] = &[Setting::Stop, Setting::Seed];
/// OpenAI documents that sampling settings beside reasoning are refused unless its effort is `none`.
const REASONING: ReasoningSwitch =
    ReasoningSwitch { field: &["reasoning", "effort"], example: r#"{"reasoning": {"effort": "none"}}"# };

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    input: Input<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

/// The turns, as items.
struct Input<'a>(&'a Request);

#[derive(Serialize)]
struct Message<'a> {
    r#type: &'static str,
    role: &'static str,
    content: Words<'a>,
}

/// What a message says: the user's words as they are, the model's in parts, as the protocol has them.
#[derive(Serialize)]
#[serde(untagged)]
enum Words<'a> {
    User(&'a str),
    Model([Part<'a>; 1]),
}

#[derive(Serialize)]
struct Part<'a> {
    r#type: &'static str,
    text: &'a str,
}

impl Serialize for Input<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut items = to.serialize_seq(None)?;
        for (is_user, text) in self.0.texts() {
            let (role, content) = if is_user {
                ("user", Words::User(text))
            } else {
                ("assistant", Words::Model([Part { r#type: "output_text", text }]))
            };
            items.serialize_element(&Message { r#type: "message", role, content })?;
        }
        items.end()
    }
}

pub(super) fn encode(place: &Place, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
    let model = cx.model;
    if let Some(setting) = first_set(&request.sampling, MISSING) {
        let cure = "the protocol has none; leave it out, or use chat completions";
        return Err(unsupported(place.name(), model, setting, cure));
    }
    let family = place.family(model).unwrap_or(&UNKNOWN);
    place.check_sampling(request, model, family, MAX_TEMPERATURE, &REASONING)?;
    let (url, headers) = place.request_line()?;
    let body = Body {
        model,
        instructions: request.system.as_deref(),
        input: Input(request),
        max_output_tokens: request.sampling.max_tokens,
        temperature: request.sampling.temperature,
        top_p: request.sampling.top_p,
        stream: cx.stream,
    };
    let body = json::write(&body, &request.extra, &[], json::capacity(request))?;
    Ok(HttpRequest::post(url, headers, body))
}

#[cfg(test)]
mod tests {
    use crate::chat::{Request, Sampling, Turn};
    use crate::provider::{EncodeContext, OpenAiResponses, Provider};
    use crate::{ErrorCode, LlmError};
    use serde_json::{Value, json};

    fn encode(model: &str, request: &Request) -> Result<Value, LlmError> {
        let http = OpenAiResponses::new("k").encode(request, &EncodeContext::new(model))?;
        assert_eq!(http.url.as_str(), "https://api.openai.com/v1/responses");
        Ok(serde_json::from_slice(&http.body).unwrap())
    }

    #[test]
    fn requests_are_written_as_in_the_fixtures() {
        let full = Request {
            system: Some("Be brief.".into()),
            history: vec![Turn::user("Hi"), Turn::assistant("Hello")],
            sampling: Sampling::new().temperature(0.5).top_p(0.9).max_tokens(100),
            ..Request::user("Bye")
        };
        let mut stateless = Request::user("Hi");
        stateless.extra.insert("store".into(), false.into());
        stateless.extra.insert("reasoning".into(), json!({"effort": "low", "summary": "auto"}));
        for (model, request, golden) in [
            ("gpt-6-sol", &Request::user("Hi"), include_str!("../../../fixtures/responses/text.request.json")),
            ("gpt-4.1", &full, include_str!("../../../fixtures/responses/history_and_sampling.request.json")),
            ("gpt-6-sol", &stateless, include_str!("../../../fixtures/responses/extra_fields.request.json")),
        ] {
            assert_eq!(encode(model, request).unwrap(), serde_json::from_str::<Value>(golden).unwrap());
        }
    }

    #[test]
    fn what_the_protocol_has_not_is_refused() {
        for sampling in [Sampling::new().stop(["END"]), Sampling::new().seed(7)] {
            let error = encode("gpt-4.1", &Request { sampling, ..Request::user("Hi") }).unwrap_err();
            assert_eq!(error.code(), Some(ErrorCode::UnsupportedCapability));
            assert!(error.to_string().contains("the protocol has none"), "{error}");
        }
    }

    #[test]
    fn sampling_goes_with_effort_none_alone() {
        let mut request = Request { sampling: Sampling::new().temperature(0.2), ..Request::user("Hi") };
        let error = encode("gpt-6-sol", &request).unwrap_err();
        assert!(error.to_string().contains(r#"extra {"reasoning": {"effort": "none"}}"#), "{error}");
        // The field of the other protocol does not count.
        request.extra.insert("reasoning_effort".into(), "none".into());
        assert!(encode("gpt-6-sol", &request).is_err());
        request.extra.insert("reasoning".into(), json!({"effort": "none"}));
        assert_eq!(encode("gpt-6-sol", &request).unwrap()["temperature"], 0.2);
        assert!(encode("gpt-6.2-sol", &request).is_err());
    }
}
