//! Chat completions at one place, with its quirks.

use super::family::{self, ModelFamily};
use super::{ForcedTools, Place, Quirks, ReasoningForm};
use crate::LlmError;
use crate::chat::{Reply, Request};
use crate::provider::endpoint::Endpoint;
use crate::provider::{
    Auth, Capabilities, EncodeContext, Failure, Head, HttpRequest, Provider, RulePack, StreamDecoder, settings_by,
};
use bytes::Bytes;
use http::HeaderName;
use secrecy::SecretString;
use std::borrow::Cow;

/// One place that speaks chat completions.
#[derive(Clone, Debug)]
pub(in crate::provider) struct ChatApi {
    pub(in crate::provider) place: Place,
    pub(super) quirks: Quirks,
    /// What this server's own blocks are marked with.
    protocol: String,
}

impl ChatApi {
    /// What follows the base URL of most.
    pub(in crate::provider) const PATH: &'static [&'static str] = &["/chat/completions"];

    /// Chat completions at this endpoint.
    pub(in crate::provider) fn new(
        name: impl Into<Cow<'static, str>>,
        endpoint: Endpoint,
        quirks: Quirks,
        rules: RulePack,
    ) -> Self {
        let place = Place::new(name, endpoint, families(&quirks), rules);
        Self { protocol: protocol(&place), place, quirks }
    }

    /// What this server's own blocks are marked with: they go back to no other.
    pub(super) fn protocol(&self) -> &str {
        &self.protocol
    }

    /// The same at another place.
    pub(in crate::provider) fn at(mut self, change: impl FnOnce(Place) -> Place) -> Self {
        self.place = change(self.place);
        self.protocol = protocol(&self.place);
        self
    }

    /// With this key, in the header that the server wants it in.
    pub(in crate::provider) fn api_key(self, key: SecretString) -> Self {
        let auth = match self.quirks.key_header {
            None => Auth::bearer(key),
            Some(name) => Auth::header(HeaderName::from_static(name), key),
        };
        self.at(|place| place.with_auth(auth))
    }

    pub(in crate::provider) fn quirks(mut self, quirks: Quirks) -> Self {
        if quirks.openai_models != self.quirks.openai_models {
            self.place = self.place.with_families(families(&quirks));
        }
        self.quirks = quirks;
        self
    }
}

fn protocol(place: &Place) -> String {
    format!("chat_completions/{}", place.name())
}

fn families(quirks: &Quirks) -> &'static [ModelFamily] {
    if quirks.openai_models { family::OPENAI } else { &[] }
}

impl Provider for ChatApi {
    settings_by!(place);

    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
        self.write(request, cx, self.place.family(cx.model))
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        let (family, quirks) = (self.place.family(model), &self.quirks);
        let knows = family.unwrap_or(&family::UNKNOWN);
        let by_tool = quirks.tools && quirks.forced_tools == ForcedTools::Named;
        Capabilities {
            audio: knows.audio,
            documents: knows.vision,
            images: knows.vision,
            image_urls: knows.vision,
            json: quirks.json,
            parallel_tool_calls: quirks.tools && quirks.parallel_tool_calls,
            reasoning: quirks.reasoning != ReasoningForm::None && !knows.efforts.is_empty(),
            schema: quirks.schema || by_tool,
            stream: true,
            tool_choice: quirks.tools && quirks.forced_tools != ForcedTools::Never,
            tools: quirks.tools,
        }
    }

    fn decode<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        self.read(head, body)
    }

    fn stream_decoder(&self, _: &EncodeContext<'_>) -> Option<Box<dyn StreamDecoder>> {
        Some(Box::new(self.stream()))
    }
}
