//! A request in Gemini's words.

mod contents;
mod thinking;
mod tools;

use super::family::family;
use super::place::Place;
use super::{Gemini, GeminiFamily};
use crate::LlmError;
use crate::chat::Request;
use crate::provider::refusal::check_range;
use crate::provider::{EncodeContext, HttpRequest, json, unsupported};
use crate::record::ErrorCode;
use contents::Said;
use serde::Serialize;
use thinking::Thinking;
use tools::{Form, Functions};

/// The most `stopSequences`, as the reference of `GenerationConfig` says.
const MAX_STOP: usize = 5;
/// Numbers are `int32` there.
const MAX_INT: u64 = i32::MAX as u64;

pub(super) fn encode(gemini: &Gemini, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
    let place = gemini.place.as_ref().map_err(Clone::clone)?;
    let target = Target { provider: gemini.name, model: cx.model, family: family(&gemini.families, cx.model), place };
    check(request, &target)?;
    let (base, headers) = gemini.endpoint.request_line()?;
    let method = if cx.stream { "streamGenerateContent" } else { "generateContent" };
    let mut url = place.url(base, gemini.version.as_deref(), cx.model, method);
    if cx.stream {
        // Without it the answer is a JSON list, flushed piece by piece.
        url.query_pairs_mut().append_pair("alt", "sse");
    }
    let body = Body::of(request, gemini, &target)?;
    let capacity = json::capacity(request) + contents::media_len(request);
    Ok(HttpRequest::post(url, headers, json::write(&body, &request.extra, &["generationConfig"], capacity)?))
}

/// Who is asked.
struct Target<'a> {
    /// The adapter's name.
    provider: &'static str,
    model: &'a str,
    family: &'a GeminiFamily,
    place: &'a Place,
}

impl Target<'_> {
    /// The refusal of what the model does not take.
    fn unsupported(&self, what: &str, cure: &str) -> LlmError {
        unsupported(self.provider, self.model, what, cure)
    }

    /// Refuses a URL that Google is known not to fetch from.
    fn check_url(&self, url: &str, media_type: Option<&str>, what: &str) -> Result<(), LlmError> {
        // Files that were uploaded, and videos of Google's own.
        const OWN: [&str; 4] = ["generativelanguage.googleapis.com", "www.youtube.com", "youtube.com", "youtu.be"];
        let is_vertex = matches!(self.place, Place::Vertex { .. });
        if is_vertex && media_type.is_none() {
            let message = format!("{what} by a URL that tells no media type; {} wants one, so name it", self.provider);
            return Err(LlmError::of(ErrorCode::InvalidCall, message));
        }
        let parsed = url::Url::parse(url).ok();
        let host = parsed.as_ref().and_then(url::Url::host_str).unwrap_or_default();
        let scheme = parsed.as_ref().map_or("", url::Url::scheme);
        match scheme {
            "https" if OWN.contains(&host) => Ok(()),
            "https" | "http" if self.family.public_urls => Ok(()),
            "gs" if is_vertex => Ok(()),
            _ => Err(self.unsupported(&format!("{what} from {scheme}://{host}"), "send the bytes instead")),
        }
    }
}

/// What the protocol or the model is known to refuse is refused here, before anything is sent.
fn check(request: &Request, target: &Target<'_>) -> Result<(), LlmError> {
    let (name, sampling) = (target.provider, &request.sampling);
    let invalid = |message: String| Err(LlmError::of(ErrorCode::InvalidCall, message));
    check_range(name, "temperature", sampling.temperature, 2.0)?;
    check_range(name, "top_p", sampling.top_p, 1.0)?;
    for (setting, value) in [("max_tokens", sampling.max_tokens.map(u64::from)), ("seed", sampling.seed)] {
        if let Some(value) = value.filter(|value| *value > MAX_INT) {
            return invalid(format!("{setting} {value} is out of range; {name} takes 0 to {MAX_INT}"));
        }
    }
    if sampling.stop.len() > MAX_STOP {
        return invalid(format!("{} stop texts are set; {name} takes {MAX_STOP}", sampling.stop.len()));
    }
    // Google refuses these together: system text and tools are part of what was cached.
    if request.extra.contains_key("cachedContent") && (request.system.is_some() || !request.tools.is_empty()) {
        let what = if request.system.is_some() { "system text" } else { "tools" };
        return invalid(format!("{name} takes no {what} beside cachedContent; put it into what is cached"));
    }
    let asked = [
        ("temperature", "temperature", sampling.temperature.is_some()),
        ("top_p", "topP", sampling.top_p.is_some()),
        ("max_tokens", "maxOutputTokens", sampling.max_tokens.is_some()),
        ("stop", "stopSequences", !sampling.stop.is_empty()),
        ("seed", "seed", sampling.seed.is_some()),
    ];
    let own = request.extra.get("generationConfig").and_then(|config| config.as_object());
    let own = own.into_iter().flat_map(serde_json::Map::keys).map(|field| (field.as_str(), field.as_str()));
    let mut asked = asked.into_iter().filter(|(.., set)| *set).map(|(setting, field, _)| (setting, field)).chain(own);
    match asked.find(|(_, field)| target.family.refused.iter().any(|refused| refused == field)) {
        Some((setting, _)) => Err(target.unsupported(setting, "leave it out, or choose another model")),
        None => Ok(()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Said<'a>>,
    contents: Vec<Said<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Functions<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<tools::Config<'a>>,
    #[serde(skip_serializing_if = "Config::is_empty")]
    generation_config: Config<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_field_names)] // the provider's names
struct Config<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(flatten)]
    form: Form,
    #[serde(skip_serializing_if = "Thinking::is_unset")]
    thinking_config: Thinking,
}

impl Config<'_> {
    fn is_empty(&self) -> bool {
        let Self { temperature, top_p, max_output_tokens, stop_sequences, seed, form, thinking_config } = self;
        let is_sampled = temperature.or(*top_p).is_some() || max_output_tokens.is_some() || seed.is_some();
        !is_sampled && stop_sequences.is_empty() && form.is_text() && thinking_config.is_unset()
    }
}

impl<'a> Body<'a> {
    fn of(request: &'a Request, gemini: &Gemini, target: &Target<'_>) -> Result<Self, LlmError> {
        let sampling = &request.sampling;
        let system = request.system.as_deref().filter(|system| !system.trim().is_empty());
        let (instruction, preface) = if target.family.system_instruction { (system, None) } else { (None, system) };
        let form = Form::of(&request.output, target)?;
        let (tools, tool_config) = tools::of(request, &form, target)?.unzip();
        let who = (target.provider, target.model);
        let thinking_config =
            Thinking::of(request.reasoning, target.family, gemini.effort_budgets, gemini.include_thoughts, who)?;
        Ok(Self {
            system_instruction: instruction.map(Said::system),
            contents: contents::contents(request, preface, target)?,
            tools: tools.map(|functions| [functions]),
            tool_config: tool_config.flatten(),
            generation_config: Config {
                temperature: sampling.temperature,
                top_p: sampling.top_p,
                max_output_tokens: sampling.max_tokens,
                stop_sequences: &sampling.stop,
                seed: sampling.seed,
                form,
                thinking_config,
            },
        })
    }
}
