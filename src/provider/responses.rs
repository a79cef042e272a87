//! OpenAI's Responses API.

mod decode;
mod encode;
mod items;
mod opaque;
mod stream;

use super::endpoint::Endpoint;
use super::openai::{BASE_URL, OPENAI, Place, account_settings, json_of};
use super::{
    Auth, Capabilities, EncodeContext, Failure, Head, HttpRequest, Provider, RulePack, StreamDecoder, settings_by,
};
use crate::LlmError;
use crate::chat::{Reply, Request};
use bytes::Bytes;
use secrecy::SecretString;

/// What this protocol's own blocks are marked with.
const PROTOCOL: &str = "openai_responses";

/// OpenAI's Responses API: the same calls and the same replies as [`OpenAi`](super::OpenAi), over the protocol in which
/// OpenAI's newer features appear first.
///
/// - `stop` and `seed` do not exist in this protocol: a call that sets one is refused before it is sent. The token limit
///   is `max_output_tokens`, reasoning included. What else a model takes is data, as for `OpenAi`.
/// - Summaries of reasoning, where a call asks for them (`extra {"reasoning": {"summary": "auto"}}`), are
///   [`Reply::reasoning`].
/// - Reasoning goes back with the turn that it led to ([`Reply::to_turn`]), to the model that it is of: other models and
///   providers do not get it.
/// - **OpenAI keeps what is asked and answered by this API unless told not to.** As everything that a call does not set,
///   `store` is left to the provider's default, which is `true`; `extra {"store": false}` switches it off. Reasoning that is
///   not stored goes back only if it came sealed, for which a call asks with
///   `extra {"include": ["reasoning.encrypted_content"]}` beside it.
/// - An answer with `"status": "failed"` comes with status 200; it is an error like any other, by its own code.
/// - A background response (`extra {"background": true}`) has no answer yet when it is accepted, so it is
///   `response_invalid`: this client does not wait for it.
///
/// Source: OpenAI's API reference ("Responses") and the types of its Node SDK, as of 2026-11.
///
/// ```
/// # use steadfast::{Call, Client, Target, provider::OpenAiResponses};
/// # use serde_json::json;
/// let client = Client::builder(Target::new(OpenAiResponses::new("sk-..."), "gpt-5-mini")).build()?;
/// let call = Call::user("Hello").extra(json!({"store": false, "include": ["reasoning.encrypted_content"]}));
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenAiResponses(Place);

impl OpenAiResponses {
    /// OpenAI with this key.
    pub fn new(api_key: impl Into<SecretString>) -> Self {
        let endpoint = Endpoint::new(BASE_URL, &["/responses"]).auth(Auth::bearer(api_key.into()));
        Self(Place::new("openai_responses", endpoint, OPENAI, RulePack::openai()))
    }

    fn at(self, change: impl FnOnce(Place) -> Place) -> Self {
        Self(change(self.0))
    }
}

account_settings!(OpenAiResponses);

impl Provider for OpenAiResponses {
    settings_by!(0);

    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
        encode::encode(&self.0, request, cx)
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        encode::capabilities(self.0.family(model))
    }

    fn decode<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        decode::decode(head, body)
    }

    fn stream_decoder(&self, _: &EncodeContext<'_>) -> Option<Box<dyn StreamDecoder>> {
        Some(Box::new(stream::ResponseStream::default()))
    }
}
