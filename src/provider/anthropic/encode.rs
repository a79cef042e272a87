//! A request in this protocol's words.

use super::family::{AnthropicFamily, family};
use super::messages::{Message, Writer};
use super::thinking::Thinking;
use super::tools::{Choice, Declared, Format};
use super::{Anthropic, AnthropicSampling, thinking, tools};
use crate::LlmError;
use crate::chat::Request;
use crate::provider::refusal::{check_range, unsupported};
use crate::provider::{EncodeContext, HttpRequest, json};
use crate::record::ErrorCode;

/// The first version of the protocol that takes no sampling settings. Versions are dates, so they sort.
const NO_SAMPLING: &str = "2026-10-21";
/// Objects of which `extra` may add a field and keep the others.
const NESTED: &[&str] = &["output_config", "thinking"];

pub(super) fn encode(
    anthropic: &Anthropic,
    request: &Request,
    cx: &EncodeContext<'_>,
) -> Result<HttpRequest, LlmError> {
    let model = cx.model;
    let family = family(&anthropic.families, model);
    let thinking = thinking::plan(request, family, &anthropic.budgets, model)?;
    check_sampling(anthropic, request, model, family, thinking.is_on)?;
    let tools = tools::plan(request, family, thinking.is_on, model)?;
    let (url, headers) = anthropic.endpoint.request_line()?;
    let body = Body {
        model,
        max_tokens: thinking.max_tokens,
        // A text without words is refused by the provider, and says nothing.
        system: request.system.as_deref().filter(|system| !system.trim().is_empty()),
        messages: Writer::new(&anthropic.families, model).messages(request)?,
        tools: tools.tools,
        tool_choice: tools.choice,
        thinking: thinking.thinking,
        output_config: OutputConfig::of(thinking.effort, tools.format),
        temperature: request.sampling.temperature,
        top_p: request.sampling.top_p,
        stop_sequences: &request.sampling.stop,
        stream: cx.stream,
    };
    let body = json::write(&body, &request.extra, NESTED, json::capacity(request))?;
    Ok(HttpRequest::post(url, headers, body))
}

/// What the protocol or the model is known to refuse is refused here, before anything is sent.
fn check_sampling(
    anthropic: &Anthropic,
    request: &Request,
    model: &str,
    family: Option<&AnthropicFamily>,
    thinks: bool,
) -> Result<(), LlmError> {
    const NAME: &str = "anthropic";
    let sampling = &request.sampling;
    check_range(NAME, "temperature", sampling.temperature, 1.0)?;
    check_range(NAME, "top_p", sampling.top_p, 1.0)?;
    if sampling.stop.iter().any(|stop| stop.trim().is_empty()) {
        let message = "a stop text is blank; anthropic takes texts with more than white space";
        return Err(LlmError::of(ErrorCode::InvalidCall, message));
    }
    if sampling.seed.is_some() {
        return Err(unsupported(NAME, model, "seed", "leave it out: the protocol has none"));
    }
    if sampling.temperature.is_none() && sampling.top_p.is_none() {
        return Ok(());
    }
    if anthropic.version.as_str() >= NO_SAMPLING
        && let Some((setting, _)) = AnthropicSampling::Never.refusal(sampling)
    {
        let cure = format!("leave it out: anthropic-version {} takes none", anthropic.version);
        return Err(unsupported(NAME, model, setting, &cure));
    }
    let Some(family) = family else { return Ok(()) };
    if let Some((setting, cure)) = family.sampling.refusal(sampling) {
        return Err(unsupported(NAME, model, setting, cure));
    }
    if thinks
        && !family.sampling_beside_thinking
        && let Some((setting, _)) = AnthropicSampling::DefaultsOnly.refusal(sampling)
    {
        return Err(unsupported(NAME, model, setting, "leave it out, or ask for no reasoning"));
    }
    Ok(())
}

#[derive(serde::Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Declared<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(serde::Serialize)]
struct OutputConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format>,
}

impl OutputConfig {
    fn of(effort: Option<&'static str>, format: Option<Format>) -> Option<Self> {
        (effort.is_some() || format.is_some()).then_some(Self { effort, format })
    }
}

#[cfg(test)]
mod tests {
    use crate::chat::{Request, Sampling, Turn};
    use crate::provider::{Anthropic, AnthropicFamily, AnthropicSampling, EncodeContext, HttpRequest, Provider};
    use crate::record::Issues;
    use crate::{ErrorCode, ErrorKind, LlmError};
    use serde_json::{Value, json};

    fn send(anthropic: &Anthropic, model: &str, request: &Request) -> Result<HttpRequest, LlmError> {
        anthropic.encode(request, &EncodeContext::new(model))
    }

    fn body(http: &HttpRequest) -> Value {
        serde_json::from_slice(&http.body).unwrap()
    }

    #[test]
    fn requests_are_written_as_in_the_fixtures() {
        let plain = Request::user("Hello");
        let full = Request {
            system: Some("Be brief.".into()),
            history: vec![Turn::user("Hi"), Turn::assistant("Hello")],
            sampling: Sampling::new().temperature(0.5).top_p(0.9).max_tokens(100).stop(["END", "STOP"]),
            ..Request::user("Bye")
        };
        let turns = ["One", "Two"].map(Turn::user).into_iter().chain(["Three", "Four"].map(Turn::assistant));
        let merged = Request { history: turns.chain([Turn::user("Five")]).collect(), ..Request::user("Six") };
        let mut extra = Request::user("Hello");
        extra.extra.insert("max_tokens".into(), 9.into());
        extra.extra.insert("metadata".into(), json!({"user_id": "u-1"}));
        for (request, fixture) in [
            (&plain, include_str!("../../../fixtures/anthropic/text.request.json")),
            (&full, include_str!("../../../fixtures/anthropic/history_and_sampling.request.json")),
            (&merged, include_str!("../../../fixtures/anthropic/merged_turns.request.json")),
            (&extra, include_str!("../../../fixtures/anthropic/extra_fields.request.json")),
        ] {
            let http = send(&Anthropic::new("k"), "claude-sonnet-4-6", request).unwrap();
            assert_eq!(body(&http), serde_json::from_str::<Value>(fixture).unwrap());
        }
    }

    #[test]
    fn version_and_beta_are_headers_and_the_key_is_not_written() {
        let anthropic = Anthropic::new("k-secret").beta(["one-2026-01-01", "two-2026-02-02"]);
        let http = send(&anthropic, "claude-x", &Request::user("Hi")).unwrap();
        assert_eq!((http.method.as_str(), http.url.as_str()), ("POST", "https://api.anthropic.com/v1/messages"));
        assert_eq!(http.headers["anthropic-version"], "2023-06-01");
        assert_eq!(http.headers["anthropic-beta"], "one-2026-01-01,two-2026-02-02");
        assert!(!format!("{http:?} {anthropic:?}").contains("k-secret"));
        let http = send(&anthropic.version("2026-10-21").beta([]), "claude-x", &Request::user("Hi")).unwrap();
        assert_eq!(http.headers["anthropic-version"], "2026-10-21");
    }

    #[test]
    fn a_system_text_without_words_is_left_out() {
        let request = Request { system: Some(" \n".into()), ..Request::user("Hi") };
        let http = send(&Anthropic::new("k"), "claude-x", &request).unwrap();
        assert_eq!(body(&http).get("system"), None);
    }

    #[test]
    fn what_a_model_or_the_protocol_refuses_is_not_sent() {
        let sampled = |sampling| Request { sampling, ..Request::user("Hi") };
        let (hot, seeded) = (Sampling::new().temperature(0.3), Sampling::new().seed(7));
        let both = Sampling::new().temperature(0.3).top_p(0.5);
        let anthropic = Anthropic::new("k");
        for (anthropic, model, sampling, capability) in [
            (anthropic.clone(), "claude-opus-5-5", &hot, Some("temperature")),
            (anthropic.clone(), "claude-sonnet-5", &hot, Some("temperature")),
            (anthropic.clone(), "claude-haiku-4-5", &both, Some("top_p")),
            (anthropic.clone(), "claude-haiku-4-5", &hot, None),
            (anthropic.clone(), "claude-nova-9", &both, None),
            (anthropic.clone(), "claude-nova-9", &seeded, Some("seed")),
            (anthropic.clone().version("2026-10-21"), "claude-nova-9", &hot, Some("temperature")),
            (anthropic.clone().families([]), "claude-opus-5-5", &hot, None),
            (
                anthropic.families([AnthropicFamily::new("nova-9").sampling(AnthropicSampling::Never)]),
                "claude-nova-9",
                &hot,
                Some("temperature"),
            ),
        ] {
            let error = send(&anthropic, model, &sampled(sampling.clone())).err();
            assert_eq!(error.as_ref().and_then(LlmError::code), capability.map(|_| ErrorCode::UnsupportedCapability));
            let issues = error.and_then(|error| error.issues().cloned());
            let named = capability.map(|name| Issues::Capability { capability: name.into(), model: model.into() });
            assert_eq!(issues, named, "{model}");
        }
    }

    #[test]
    fn a_value_out_of_range_is_named() {
        for (sampling, named) in [
            (Sampling::new().temperature(1.5), "temperature 1.5 is out of range; anthropic takes 0 to 1"),
            (Sampling::new().temperature(f64::NAN), "temperature NaN is out of range"),
            (Sampling::new().top_p(-0.1), "top_p -0.1 is out of range"),
            (Sampling::new().stop(["END", "\n"]), "a stop text is blank"),
        ] {
            let request = Request { sampling, ..Request::user("Hi") };
            let error = send(&Anthropic::new("k"), "claude-x", &request).unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidParams, Some(ErrorCode::InvalidCall)));
            assert!(error.to_string().contains(named), "{error}");
        }
    }

    #[test]
    fn a_key_that_no_header_can_hold_is_found_before_the_first_call() {
        for key in ["", " ", "k\nx"] {
            let error = Anthropic::new(key).check().unwrap_err().to_string();
            assert!(error.contains("api_key") && !error.contains("k\n"), "{error}");
        }
        assert!(Anthropic::new("k").base_url("nowhere").check().unwrap_err().to_string().contains("base_url"));
    }
}
