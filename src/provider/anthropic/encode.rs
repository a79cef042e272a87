//! A request in this protocol's words.

use super::family::{AnthropicFamily, family};
use super::messages::{Message, Writer};
use super::thinking::Thinking;
use super::tools::{Choice, Declared, Format};
use super::{Anthropic, AnthropicSampling, PROTOCOL, thinking, tools};
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
    let thinking = thinking::plan(request, family, &anthropic.budgets, model, PROTOCOL)?;
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
mod tests;
