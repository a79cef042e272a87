//! A request in this protocol's words.

use crate::LlmError;
use crate::chat::{Request, Sampling};
use crate::provider::endpoint::Endpoint;
use crate::provider::refusal::check_range;
use crate::provider::{EncodeContext, HttpRequest, json};
use serde::ser::{Serialize, SerializeSeq, Serializer};

/// Objects of which `extra` may add a field and keep the others.
const NESTED: &[&str] = &["options"];

pub(super) fn encode(endpoint: &Endpoint, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
    let sampling = &request.sampling;
    check_range("ollama", "temperature", sampling.temperature, f64::MAX)?;
    check_range("ollama", "top_p", sampling.top_p, 1.0)?;
    let (url, headers) = endpoint.request_line()?;
    let text: usize = request.turns().map(|turn| turn.text_len() + 32).sum();
    let capacity = text + text / 16 + request.system.as_ref().map_or(0, String::len) + 256;
    let messages = Messages(request);
    let body = Body { model: cx.model, messages, options: Options::of(sampling), stream: cx.stream };
    Ok(HttpRequest::post(url, headers, json::write(&body, &request.extra, NESTED, capacity)?))
}

#[derive(serde::Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Messages<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Options<'a>>,
    /// Left out, it would mean yes.
    stream: bool,
}

#[derive(serde::Serialize)]
struct Options<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

impl<'a> Options<'a> {
    fn of(sampling: &'a Sampling) -> Option<Self> {
        let Sampling { temperature, top_p, max_tokens, stop, seed } = sampling;
        (!sampling.is_unset()).then_some(Self {
            temperature: *temperature,
            top_p: *top_p,
            num_predict: *max_tokens,
            stop,
            seed: *seed,
        })
    }
}

/// System text and turns. Roles need not alternate.
struct Messages<'a>(&'a Request);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut seq = to.serialize_seq(None)?;
        if let Some(content) = &self.0.system {
            seq.serialize_element(&Message { role: "system", content })?;
        }
        for (is_user, content) in self.0.texts() {
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
    use crate::ErrorCode;
    use crate::chat::{Request, Sampling, Turn};
    use crate::provider::{Auth, EncodeContext, Ollama, Provider};
    use serde_json::{Value, json};

    #[test]
    fn requests_are_written_as_in_the_fixtures() {
        let plain = Request::user("Hello");
        let full = Request {
            system: Some("Be brief.".into()),
            history: vec![Turn::user("Hi"), Turn::user("You there?"), Turn::assistant("Hello")],
            sampling: Sampling::new().temperature(0.2).top_p(0.9).max_tokens(256).stop(["END"]).seed(7),
            ..Request::user("Bye")
        };
        let mut extra = Request { sampling: Sampling::new().temperature(0.2).seed(7), ..Request::user("Hello") };
        extra.extra.insert("keep_alive".into(), "5m".into());
        extra.extra.insert("options".into(), json!({"num_ctx": 8192, "seed": 8}));
        for (request, fixture) in [
            (&plain, include_str!("../../../fixtures/ollama/text.request.json")),
            (&full, include_str!("../../../fixtures/ollama/history_and_options.request.json")),
            (&extra, include_str!("../../../fixtures/ollama/extra_options.request.json")),
        ] {
            let http = Ollama::new().encode(request, &EncodeContext::new("example:8b")).unwrap();
            let body: Value = serde_json::from_slice(&http.body).unwrap();
            assert_eq!(body, serde_json::from_str::<Value>(fixture).unwrap());
            assert_eq!(http.url.as_str(), "http://localhost:11434/api/chat");
        }
    }

    #[test]
    fn a_value_out_of_range_is_named() {
        for (sampling, named) in [
            (Sampling::new().temperature(-1.0), "temperature -1 is out of range; ollama takes 0 or more"),
            (Sampling::new().temperature(f64::INFINITY), "temperature inf is out of range"),
            (Sampling::new().top_p(1.5), "top_p 1.5 is out of range; ollama takes 0 to 1"),
        ] {
            let request = Request { sampling, ..Request::user("Hi") };
            let error = Ollama::new().encode(&request, &EncodeContext::new("m")).unwrap_err();
            assert_eq!(error.code(), Some(ErrorCode::InvalidCall));
            assert!(error.to_string().contains(named), "{error}");
        }
    }

    #[test]
    fn a_key_is_optional() {
        assert!(matches!(Ollama::new().auth(), Auth::None));
        let cloud = Ollama::new().base_url("https://cloud.example/api").api_key("k-secret");
        assert!(matches!(cloud.auth(), Auth::Header(header) if header.name() == "authorization"));
        assert!(!format!("{cloud:?}").contains("k-secret"));
        let http = cloud.encode(&Request::user("Hi"), &EncodeContext::new("m")).unwrap();
        assert_eq!(http.url.as_str(), "https://cloud.example/api/chat");
    }
}
