//! A request in Gemini's words.

use super::family::family;
use super::{Gemini, GeminiFamily};
use crate::LlmError;
use crate::chat::Request;
use crate::provider::refusal::{check_range, unsupported};
use crate::provider::{EncodeContext, HttpRequest, json};
use crate::record::ErrorCode;
use serde::Serialize;

/// The most `stopSequences`, as the reference of `GenerationConfig` says.
const MAX_STOP: usize = 5;
/// Numbers are `int32` there.
const MAX_INT: u64 = i32::MAX as u64;

pub(super) fn encode(gemini: &Gemini, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
    let family = family(&gemini.families, cx.model);
    check(gemini.name, request, cx.model, family)?;
    let (base, headers) = gemini.endpoint.request_line()?;
    let method = if cx.stream { "streamGenerateContent" } else { "generateContent" };
    let mut url = gemini.place.clone()?.url(base, gemini.version.as_deref(), cx.model, method);
    if cx.stream {
        // Without it the answer is a JSON list, flushed piece by piece.
        url.query_pairs_mut().append_pair("alt", "sse");
    }
    let body = Body::of(request, family);
    let capacity = body.parts().map(|part| part.text.len() + part.text.len() / 16 + 48).sum::<usize>() + 256;
    Ok(HttpRequest::post(url, headers, json::write(&body, &request.extra, &["generationConfig"], capacity)?))
}

/// What the protocol or the model is known to refuse is refused here, before anything is sent.
fn check(name: &str, request: &Request, model: &str, family: &GeminiFamily) -> Result<(), LlmError> {
    let sampling = &request.sampling;
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
    // Google refuses the pair: the system text is part of what was cached.
    if request.extra.contains_key("cachedContent") && request.system.is_some() {
        return invalid(format!("{name} takes no system text beside cachedContent; put it into what is cached"));
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
    match asked.find(|(_, field)| family.refused.iter().any(|refused| refused == field)) {
        Some((setting, _)) => Err(unsupported(name, model, setting, "leave it out, or choose another model")),
        None => Ok(()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Turn<'a>>,
    contents: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Config::is_empty")]
    generation_config: Config<'a>,
}

#[derive(Serialize)]
struct Turn<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
struct Part<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
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
}

impl Config<'_> {
    fn is_empty(&self) -> bool {
        let Self { temperature, top_p, max_output_tokens, stop_sequences, seed } = self;
        temperature.or(*top_p).is_none() && max_output_tokens.is_none() && stop_sequences.is_empty() && seed.is_none()
    }
}

impl<'a> Body<'a> {
    fn of(request: &'a Request, family: &GeminiFamily) -> Self {
        let sampling = &request.sampling;
        let system = request.system.as_deref().filter(|system| !system.trim().is_empty()).map(|text| Part { text });
        let (instruction, preface) = if family.system_instruction { (system, None) } else { (None, system) };
        Self {
            system_instruction: instruction.map(|part| Turn { role: None, parts: vec![part] }),
            contents: contents(request, preface),
            generation_config: Config {
                temperature: sampling.temperature,
                top_p: sampling.top_p,
                max_output_tokens: sampling.max_tokens,
                stop_sequences: &sampling.stop,
                seed: sampling.seed,
            },
        }
    }

    fn parts(&self) -> impl Iterator<Item = &Part<'a>> {
        self.system_instruction.iter().chain(&self.contents).flat_map(|turn| &turn.parts)
    }
}

/// The turns. Those of one role that follow each other are one turn in several parts, as Google's reference wants it. The
/// preface comes before the first words of the user.
fn contents<'a>(request: &'a Request, mut preface: Option<Part<'a>>) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::with_capacity(request.history.len() + 1);
    for (is_user, text) in request.texts() {
        let role = if is_user { "user" } else { "model" };
        let preface = if is_user { preface.take() } else { None };
        let parts = preface.into_iter().chain([Part { text }]);
        match turns.last_mut() {
            Some(last) if last.role == Some(role) => last.parts.extend(parts),
            _ => turns.push(Turn { role: Some(role), parts: parts.collect() }),
        }
    }
    turns
}
