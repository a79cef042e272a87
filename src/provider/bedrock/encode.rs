//! A request in Converse's words.

use super::family::family;
use super::messages::{Block, Message, messages};
use super::reasoning::{self, Form};
use super::{Bedrock, tools};
use crate::LlmError;
use crate::chat::Request;
use crate::provider::refusal::{check_range, first_set, unsupported};
use crate::provider::{EncodeContext, HttpRequest, anthropic, json};
use crate::record::ErrorCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use url::Url;

pub(super) const NAME: &str = "bedrock";

/// What AWS encodes in a segment of a path: all but the unreserved characters of RFC 3986, so also the `:` of ids and the
/// `/` of ARNs.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Objects of the body into which `extra` fields are merged.
const MERGED: &[&str] = &["additionalModelRequestFields", "inferenceConfig", "outputConfig", "toolConfig"];

pub(super) fn encode(bedrock: &Bedrock, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
    let model = cx.model;
    check(bedrock, request, model)?;
    let (base, headers) = bedrock.endpoint.request_line()?;
    let url = url(base, model, if cx.stream { "converse-stream" } else { "converse" })?;
    let reasoning = reasoning::plan(bedrock, request, model)?;
    let mut tools = tools::plan(request, reasoning::Form::of(model) == Some(Form::Claude), model)?;
    tools.additional.extend(reasoning.fields);
    let body = Body {
        system: request.system.as_deref().filter(has_words).map(|text| [Block::Text(text.into())]),
        messages: messages(request, tools.tools.is_some(), model)?,
        inference_config: InferenceConfig {
            max_tokens: request.sampling.max_tokens.or(reasoning.max_tokens),
            temperature: request.sampling.temperature,
            top_p: request.sampling.top_p,
            stop_sequences: &request.sampling.stop,
        },
        tool_config: tools.tools,
        output_config: tools.output,
        additional_model_request_fields: tools.additional,
    };
    Ok(HttpRequest::post(url, headers, json::write(&body, &request.extra, MERGED, json::capacity(request))?))
}

/// The URL of an operation of a model. An id is one segment of the path whatever is in it, so it leads nowhere else.
fn url(mut base: Url, model: &str, operation: &str) -> Result<Url, LlmError> {
    if matches!(model, "." | "..") {
        // Their encoded forms mean the same to a server: a step in the path.
        let message =
            format!("`{model}` is no model; {NAME} takes the id of a model or of an inference profile, or an ARN");
        return Err(LlmError::of(ErrorCode::InvalidCall, message));
    }
    let (path, id) = (base.path().trim_end_matches('/'), utf8_percent_encode(model, SEGMENT));
    let path = format!("{path}/model/{id}/{operation}");
    base.set_path(&path);
    Ok(base)
}

/// What the protocol or the model is known to refuse is refused here, before anything is sent.
fn check(bedrock: &Bedrock, request: &Request, model: &str) -> Result<(), LlmError> {
    let sampling = &request.sampling;
    check_range(NAME, "temperature", sampling.temperature, 1.0)?;
    check_range(NAME, "top_p", sampling.top_p, 1.0)?;
    if sampling.stop.iter().any(String::is_empty) {
        let message = "a stop text is empty; bedrock takes texts of one character or more";
        return Err(LlmError::of(ErrorCode::InvalidCall, message));
    }
    if sampling.seed.is_some() {
        return Err(unsupported(NAME, model, "seed", "leave it out: the protocol has none"));
    }
    let refused = family(&bedrock.families, model).and_then(|family| first_set(sampling, &family.refused));
    if let Some(setting) = refused {
        return Err(unsupported(NAME, model, setting, "leave it out, or choose another model"));
    }
    let claude = anthropic::family(&bedrock.claude, model).and_then(|family| family.sampling.refusal(sampling));
    claude.map_or(Ok(()), |(setting, cure)| Err(unsupported(NAME, model, setting, cure)))
}

/// A text without words is refused by the provider, and says nothing.
pub(super) fn has_words(text: &&str) -> bool {
    !text.trim().is_empty()
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Block<'a>; 1]>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "InferenceConfig::is_empty")]
    inference_config: InferenceConfig<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    additional_model_request_fields: Map<String, Value>,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct InferenceConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
}

impl InferenceConfig<'_> {
    fn is_empty(&self) -> bool {
        let Self { max_tokens, temperature, top_p, stop_sequences } = self;
        max_tokens.is_none() && temperature.or(*top_p).is_none() && stop_sequences.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use crate::chat::{Request, Sampling, Turn};
    use crate::provider::{
        AnthropicFamily, AnthropicSampling, Bedrock, BedrockFamily, EncodeContext, HttpRequest, Provider,
    };
    use crate::record::Issues;
    use crate::{ErrorCode, LlmError};
    use serde_json::{Value, json};

    const CLAUDE: &str = "anthropic.claude-3-5-sonnet-20241022-v2:0";

    fn send(bedrock: &Bedrock, model: &str, request: &Request) -> Result<HttpRequest, LlmError> {
        bedrock.encode(request, &EncodeContext::new(model))
    }

    fn bedrock() -> Bedrock {
        Bedrock::bearer("us-east-1", "k")
    }

    #[test]
    fn requests_are_written_as_in_the_fixtures() {
        let plain = Request { sampling: Sampling::new().max_tokens(16), ..Request::user("Hello") };
        let full = Request {
            system: Some("Be brief.".into()),
            history: vec![Turn::user("Hi"), Turn::assistant("Hello")],
            sampling: Sampling::new().temperature(0.5).top_p(0.9).max_tokens(100).stop(["END", "STOP"]),
            ..Request::user("Bye")
        };
        let turns = ["One", "Two"].map(Turn::user).into_iter().chain(["Three", "Four"].map(Turn::assistant));
        let merged = Request { history: turns.chain([Turn::user("Five")]).collect(), ..Request::user("Grüße") };
        let mut extra = Request { sampling: Sampling::new().max_tokens(16), ..Request::user("Hello") };
        extra.extra.insert("inferenceConfig".into(), json!({"temperature": 0.2}));
        extra.extra.insert("additionalModelRequestFields".into(), json!({"top_k": 5}));
        extra.extra.insert("performanceConfig".into(), json!({"latency": "optimized"}));
        for (request, fixture) in [
            (&plain, include_str!("../../../fixtures/bedrock/text.request.json")),
            (&full, include_str!("../../../fixtures/bedrock/history_and_sampling.request.json")),
            (&merged, include_str!("../../../fixtures/bedrock/merged_turns.request.json")),
            (&extra, include_str!("../../../fixtures/bedrock/extra_fields.request.json")),
        ] {
            let http = send(&bedrock(), CLAUDE, request).unwrap();
            let body: Value = serde_json::from_slice(&http.body).unwrap();
            assert_eq!(body, serde_json::from_str::<Value>(fixture).unwrap());
        }
    }

    #[test]
    fn a_system_text_without_words_is_left_out() {
        let request = Request { system: Some(" \n".into()), ..Request::user("Hi") };
        let http = send(&bedrock(), CLAUDE, &request).unwrap();
        assert_eq!(http.body, r#"{"messages":[{"role":"user","content":[{"text":"Hi"}]}]}"#);
    }

    #[test]
    fn a_model_is_one_segment_of_the_path_whatever_is_in_its_name() {
        let arn = "arn:aws:bedrock:us-east-1:111122223333:inference-profile/us.example.model-v1:0";
        let host = "https://bedrock-runtime.us-east-1.amazonaws.com";
        for (model, id) in [
            (CLAUDE, "anthropic.claude-3-5-sonnet-20241022-v2%3A0"),
            (arn, "arn%3Aaws%3Abedrock%3Aus-east-1%3A111122223333%3Ainference-profile%2Fus.example.model-v1%3A0"),
            ("../../x?y=z#a", "..%2F..%2Fx%3Fy%3Dz%23a"),
            ("%2e%2e", "%252e%252e"),
            ("a b~ü", "a%20b~%C3%BC"),
        ] {
            let http = send(&bedrock(), model, &Request::user("Hi")).unwrap();
            assert_eq!(http.url.as_str(), format!("{host}/model/{id}/converse"), "{model}");
        }
        for model in [".", ".."] {
            let error = send(&bedrock(), model, &Request::user("Hi")).unwrap_err();
            assert_eq!(error.code(), Some(ErrorCode::InvalidCall));
        }
    }

    #[test]
    fn the_base_url_keeps_its_path() {
        for base in ["http://h/aws", "http://h/aws/"] {
            let http = send(&bedrock().base_url(base), "m", &Request::user("Hi")).unwrap();
            assert_eq!(http.url.as_str(), "http://h/aws/model/m/converse");
        }
        let http = send(&Bedrock::bearer("cn-north-1", "k"), "m", &Request::user("Hi")).unwrap();
        assert_eq!(http.url.host_str(), Some("bedrock-runtime.cn-north-1.amazonaws.com.cn"));
    }

    #[test]
    fn what_a_model_or_the_protocol_refuses_is_not_sent() {
        let (hot, seeded) = (Sampling::new().temperature(0.3), Sampling::new().seed(7));
        let (stop, both) = (Sampling::new().stop(["END"]), Sampling::new().temperature(0.3).top_p(0.5));
        let own = BedrockFamily::new("vendor.nova-9").refusing([crate::chat::Setting::MaxTokens]);
        let claude = AnthropicFamily::new("nova-9").sampling(AnthropicSampling::Never);
        for (bedrock, model, sampling, capability) in [
            (bedrock(), "amazon.nova-pro-v1:0", &seeded, Some("seed")),
            (bedrock(), "amazon.nova-pro-v1:0", &both, None),
            (bedrock(), "openai.gpt-oss-120b-1:0", &stop, Some("stop")),
            (bedrock(), "openai.gpt-oss-120b-1:0", &both, None),
            (bedrock(), "us.openai.gpt-9-v1:0", &hot, Some("temperature")),
            (bedrock(), "us.openai.gpt-9-v1:0", &Sampling::new().top_p(0.5), Some("top_p")),
            (bedrock(), "global.anthropic.claude-opus-5-v1:0", &hot, Some("temperature")),
            (bedrock(), "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", &both, Some("top_p")),
            (bedrock(), CLAUDE, &both, None),
            (bedrock().families([]), "openai.gpt-oss-120b-1:0", &stop, None),
            (bedrock().families([own]), "eu.vendor.nova-9:0", &Sampling::new().max_tokens(1), Some("max_tokens")),
            (bedrock().claude_families([claude]), "anthropic.claude-nova-9-v1:0", &hot, Some("temperature")),
        ] {
            let request = Request { sampling: sampling.clone(), ..Request::user("Hi") };
            let error = send(&bedrock, model, &request).err();
            let issues = error.and_then(|error| error.issues().cloned());
            let named = capability.map(|name| Issues::Capability { capability: name.into(), model: model.into() });
            assert_eq!(issues, named, "{model}");
        }
    }

    #[test]
    fn a_value_out_of_range_is_named() {
        for (sampling, named) in [
            (Sampling::new().temperature(1.5), "temperature 1.5 is out of range; bedrock takes 0 to 1"),
            (Sampling::new().top_p(f64::NAN), "top_p NaN is out of range"),
            (Sampling::new().stop(["END", ""]), "a stop text is empty"),
        ] {
            let request = Request { sampling, ..Request::user("Hi") };
            let error = send(&bedrock(), CLAUDE, &request).unwrap_err();
            assert_eq!(error.code(), Some(ErrorCode::InvalidCall));
            assert!(error.to_string().contains(named), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_a_region_or_a_key_is_found_before_the_first_call() {
        for region in ["", "evil.example/", "us east", "US-EAST-1", "user@host", "-x"] {
            let error = Bedrock::bearer(region, "k").check().unwrap_err().to_string();
            assert!(error.contains("region"), "{region}: {error}");
        }
        for (id, secret, token, named) in [
            ("", "secret", None, "access_key_id"),
            ("AK\nID", "secret", None, "access_key_id"),
            ("AKID", " ", None, "secret_access_key"),
            ("AKID", "secret", Some("to\nken"), "session_token"),
        ] {
            let token = token.map(|token: &str| token.to_owned().into());
            let error = Bedrock::with_credentials("us-east-1", id, secret, token).check().unwrap_err().to_string();
            assert!(error.contains(named) && !error.contains("to\nken"), "{error}");
        }
        assert!(Bedrock::bearer("us-east-1", "").check().unwrap_err().to_string().contains("api_key"));
        assert!(Bedrock::new("us-gov-west-1").check().is_ok());
    }
}
