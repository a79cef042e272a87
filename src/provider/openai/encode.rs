//! A request in this protocol's words.

use super::family::UNKNOWN;
use super::place::ReasoningSwitch;
use super::{ChatApi, ModelFamily};
use crate::LlmError;
use crate::chat::Request;
use crate::provider::refusal::{first_set, unsupported};
use crate::provider::{EncodeContext, HttpRequest, json};
use crate::record::ErrorCode;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// OpenAI documents that sampling settings beside reasoning are refused unless its effort is `none`.
const REASONING: ReasoningSwitch =
    ReasoningSwitch { field: &["reasoning_effort"], example: r#"{"reasoning_effort": "none"}"# };

impl ChatApi {
    /// Writes a request for a model that is of `family` where that is known.
    pub(in crate::provider) fn write(
        &self,
        request: &Request,
        cx: &EncodeContext<'_>,
        family: Option<&ModelFamily>,
    ) -> Result<HttpRequest, LlmError> {
        let token_field = family.map_or(self.quirks.token_field, |family| family.token_field).name();
        let family = family.unwrap_or(&UNKNOWN);
        self.check_settings(request, cx.model, family)?;
        let (url, headers) = self.place.request_line()?;
        let body = Body { api: self, request, cx, token_field, developer: family.developer };
        Ok(HttpRequest::post(url, headers, body.to_bytes()?))
    }

    /// What the server or the model is known to refuse is refused here, before anything is sent.
    fn check_settings(&self, request: &Request, model: &str, family: &ModelFamily) -> Result<(), LlmError> {
        let name = self.place.name();
        if let Some(setting) = first_set(&request.sampling, self.quirks.refuses) {
            return Err(unsupported(name, model, setting, "leave it out, or choose another provider"));
        }
        let (given, max) = (request.sampling.stop.len(), self.quirks.max_stop);
        if given > max {
            let message = format!("{given} stop texts are set; {name} takes {max}");
            return Err(LlmError::of(ErrorCode::InvalidCall, message));
        }
        self.place.check_sampling(request, model, family, self.quirks.max_temperature, &REASONING)
    }
}

/// The body, written straight from the request.
struct Body<'a> {
    api: &'a ChatApi,
    request: &'a Request,
    cx: &'a EncodeContext<'a>,
    token_field: &'static str,
    developer: bool,
}

impl Body<'_> {
    fn to_bytes(&self) -> Result<Vec<u8>, LlmError> {
        json::write(self, &self.request.extra, &["stream_options"], json::capacity(self.request))
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let sampling = &self.request.sampling;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("model", self.cx.model)?;
        map.serialize_entry("messages", &Messages { request: self.request, developer: self.developer })?;
        if let Some(max) = sampling.max_tokens {
            map.serialize_entry(self.token_field, &max)?;
        }
        if let Some(temperature) = sampling.temperature {
            map.serialize_entry("temperature", &temperature)?;
        }
        if let Some(top_p) = sampling.top_p {
            map.serialize_entry("top_p", &top_p)?;
        }
        if !sampling.stop.is_empty() {
            map.serialize_entry("stop", &sampling.stop)?;
        }
        if let Some(seed) = sampling.seed {
            map.serialize_entry(self.api.quirks.seed_field, &seed)?;
        }
        if self.cx.stream {
            map.serialize_entry("stream", &true)?;
            if self.api.quirks.stream_options {
                map.serialize_entry("stream_options", &StreamOptions { include_usage: true })?;
            }
        }
        map.end()
    }
}

/// What is asked of a stream beside the answer.
#[derive(serde::Serialize)]
struct StreamOptions {
    include_usage: bool,
}

struct Messages<'a> {
    request: &'a Request,
    developer: bool,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut seq = to.serialize_seq(None)?;
        if let Some(system) = &self.request.system {
            let role = if self.developer { "developer" } else { "system" };
            seq.serialize_element(&Message { role, content: system })?;
        }
        for (is_user, content) in self.request.texts() {
            let role = if is_user { "user" } else { "assistant" };
            seq.serialize_element(&Message { role, content })?;
        }
        seq.end()
    }
}

#[derive(serde::Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[cfg(test)]
mod tests {
    use crate::chat::{Request, Sampling, Turn};
    use crate::provider::{EncodeContext, OpenAi, OpenAiCompatible, Provider, Quirks, TokenField};
    use crate::{ErrorCode, ErrorKind, LlmError};
    use serde_json::{Value, json};

    fn encode(provider: &impl Provider, model: &str, request: &Request) -> Result<Value, LlmError> {
        let http = provider.encode(request, &EncodeContext::new(model))?;
        Ok(serde_json::from_slice(&http.body).unwrap())
    }

    fn full() -> Request {
        Request {
            system: Some("Be brief.".into()),
            history: vec![Turn::user("Hi"), Turn::assistant("Hello")],
            sampling: Sampling::new().temperature(0.7).top_p(0.9).max_tokens(100).stop(["END"]).seed(7),
            ..Request::user("Bye")
        }
    }

    #[test]
    fn requests_are_written_as_in_the_fixtures() {
        let mut reasoning = Request { system: Some("Be brief.".into()), ..Request::user("Hi") };
        reasoning.sampling = Sampling::new().max_tokens(50).temperature(0.2);
        reasoning.extra.insert("reasoning_effort".into(), "none".into());
        for (model, request, golden) in [
            ("gpt-5-mini", &Request::user("Hi"), include_str!("../../../fixtures/openai/text.request.json")),
            ("gpt-4.1", &full(), include_str!("../../../fixtures/openai/history_and_sampling.request.json")),
            ("gpt-6-luna", &reasoning, include_str!("../../../fixtures/openai/reasoning_model.request.json")),
        ] {
            let body = encode(&OpenAi::new("k"), model, request).unwrap();
            assert_eq!(body, serde_json::from_str::<Value>(golden).unwrap());
        }
    }

    #[test]
    fn a_reasoning_model_has_its_own_fields_and_refusals() {
        let openai = OpenAi::new("k");
        let mut request = Request { system: Some("S".into()), ..Request::user("Hi") };
        request.sampling.max_tokens = Some(50);
        let body = encode(&openai, "gpt-5-mini", &request).unwrap();
        assert_eq!(body["max_completion_tokens"], 50);
        assert_eq!(body["messages"][0]["role"], "developer");

        request.sampling.temperature = Some(0.2);
        let error = encode(&openai, "gpt-5-mini", &request).unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::UnsupportedCapability));
        assert!(error.to_string().contains("gpt-5-mini does not take temperature"), "{error}");

        assert!(encode(&openai, "gpt-5.4", &request).is_err());
        request.extra.insert("reasoning_effort".into(), "none".into());
        assert_eq!(encode(&openai, "gpt-5.4", &request).unwrap()["temperature"], 0.2);
    }

    #[test]
    fn a_value_out_of_range_is_named() {
        for (temperature, top_p) in [(Some(2.5), None), (Some(f64::NAN), None), (None, Some(1.5)), (Some(-0.1), None)] {
            let mut request = Request::user("Hi");
            request.sampling.temperature = temperature;
            request.sampling.top_p = top_p;
            let error = encode(&OpenAi::new("k"), "gpt-4.1", &request).unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidParams, Some(ErrorCode::InvalidCall)));
            assert!(error.to_string().contains("out of range; openai takes 0 to"), "{error}");
        }
        let request = Request { sampling: Sampling::new().stop(["a", "b", "c", "d", "e"]), ..Request::user("Hi") };
        assert!(encode(&OpenAi::new("k"), "gpt-4.1", &request).is_err());
    }

    #[test]
    fn extra_fields_come_last() {
        let mut request = full();
        request.extra.insert("seed".into(), 8.into());
        request.extra.insert("verbosity".into(), "low".into());
        let body = encode(&OpenAi::new("k"), "gpt-4.1", &request).unwrap();
        assert_eq!((&body["seed"], &body["verbosity"]), (&json!(8), &json!("low")));
    }

    #[test]
    fn quirks_are_data() {
        let quirks =
            Quirks::none().token_field(TokenField::MaxCompletionTokens).seed_field("random_seed").max_temperature(1.0);
        let server = OpenAiCompatible::new("http://localhost:8000/v1").quirks(quirks);
        let mut request = full();
        let body = encode(&server, "any", &request).unwrap();
        assert_eq!((&body["max_completion_tokens"], &body["random_seed"]), (&json!(100), &json!(7)));
        request.sampling.temperature = Some(1.5);
        assert!(encode(&server, "any", &request).is_err());
    }

    #[test]
    fn the_path_of_the_base_url_is_kept() {
        for (base, url) in [
            ("https://h/v3/openai", "https://h/v3/openai/chat/completions"),
            ("https://h/api/paas/v4/", "https://h/api/paas/v4/chat/completions"),
            ("https://h", "https://h/chat/completions"),
            ("https://h/v1?api-version=1", "https://h/v1/chat/completions?api-version=1"),
        ] {
            let http = OpenAiCompatible::new(base).encode(&Request::user("Hi"), &EncodeContext::new("m")).unwrap();
            assert_eq!(http.url.as_str(), url);
        }
    }

    #[test]
    fn a_bad_url_is_named_without_its_secrets() {
        for url in [
            "nonsense",
            "https://{resource}.example.com/v1",
            "ftp://host/v1",
            "http://user:pass-word@",
            "http://:k@:x/",
        ] {
            let error = OpenAiCompatible::new(url).check().unwrap_err().to_string();
            assert!(error.contains("base_url"), "{error}");
            assert!(!error.contains("pass-word"), "{error}");
        }
    }
}
