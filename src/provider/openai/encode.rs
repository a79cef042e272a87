//! A request in this protocol's words.

mod messages;
mod tools;

pub(in crate::provider) use messages::result_text;
pub(in crate::provider) use tools::{LONGEST_NAME, form_schema};

use super::family::UNKNOWN;
use super::media::{MediaRules, media_len};
use super::place::EffortField;
use super::{ChatApi, ModelFamily};
use crate::LlmError;
use crate::chat::Request;
use crate::provider::refusal::{first_set, unsupported};
use crate::provider::{EncodeContext, HttpRequest, json};
use crate::record::ErrorCode;
use messages::Messages;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;
use tools::Plan;

/// OpenAI documents that sampling settings beside reasoning are refused unless its effort is `none`.
const EFFORT: EffortField = EffortField(&["reasoning_effort"]);

impl ChatApi {
    /// Writes a request for a model that is of `family` where that is known.
    pub(in crate::provider) fn write(
        &self,
        request: &Request,
        cx: &EncodeContext<'_>,
        family: Option<&ModelFamily>,
    ) -> Result<HttpRequest, LlmError> {
        let reasoning = self.reasoning_fields(request.reasoning, cx.model, family)?;
        let token_field = family.map_or(self.quirks.token_field, |family| family.token_field).name();
        let family = family.unwrap_or(&UNKNOWN);
        self.check_settings(request, cx.model, family)?;
        let plan = self.plan(request, cx.model)?;
        let (url, headers) = self.place.request_line()?;
        let body = Body { api: self, request, cx, token_field, developer: family.developer, plan, reasoning };
        let capacity = json::capacity(request) + media_len(request);
        let body = json::write(&body, &request.extra, &["stream_options"], capacity)?;
        Ok(HttpRequest::post(url, headers, body))
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
        if family.tools_without_reasoning && !request.tools.is_empty() && !EFFORT.is_off(request) {
            let cure = "switch reasoning off (`Reasoning::Off`), or use the Responses API";
            return Err(unsupported(name, model, "tools beside reasoning", cure));
        }
        MediaRules { provider: name, model, document_urls: false, in_results: false }.check(request)?;
        self.place.check_sampling(request, model, family, self.quirks.max_temperature, &EFFORT)
    }
}

/// The body, written straight from the request.
struct Body<'a> {
    api: &'a ChatApi,
    request: &'a Request,
    cx: &'a EncodeContext<'a>,
    token_field: &'static str,
    developer: bool,
    plan: Plan<'a>,
    reasoning: Vec<(&'static str, Value)>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { api, request, cx, developer, .. } = *self;
        let sampling = &request.sampling;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("model", cx.model)?;
        map.serialize_entry("messages", &Messages { api, request, model: cx.model, developer })?;
        self.plan.write(&mut map)?;
        for (name, value) in &self.reasoning {
            map.serialize_entry(name, value)?;
        }
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
            map.serialize_entry(api.quirks.seed_field, &seed)?;
        }
        if cx.stream {
            map.serialize_entry("stream", &true)?;
            if api.quirks.stream_options {
                map.serialize_entry("stream_options", &StreamOptions { include_usage: true })?;
            }
        }
        map.end()
    }
}

/// What is asked of a stream beside the answer.
#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[cfg(test)]
mod tests;
