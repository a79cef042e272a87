//! One adapter a protocol: what is asked in a provider's words, and what its answers and errors mean.
//!
//! An adapter is a pure function of its inputs: bytes in, bytes out. It opens no socket, reads no clock and no
//! environment, and never sees a credential on its way: [`Provider::auth`] says what to add, the client adds it.

mod anthropic;
mod arguments;
mod auth;
mod azure;
#[cfg(feature = "bedrock")]
mod bedrock;
mod capabilities;
mod compatible;
mod custom;
mod endpoint;
mod env;
mod failure;
mod gemini;
mod headers;
mod http;
mod json;
mod lenient;
mod made_up;
mod ollama;
mod openai;
mod preset;
mod refusal;
mod responses;
mod rules;
mod schema;
mod stream;
mod template;

pub(crate) use self::http::request_id;
pub use self::http::{Head, HttpRequest};
pub use anthropic::{Anthropic, AnthropicFamily, AnthropicForcedTools, AnthropicSampling, AnthropicThinking};
pub(crate) use auth::Kept;
pub use auth::{Auth, AuthHeader, AuthQuery, Authorize, Authorized, Credential, CredentialSource, SourceAuth};
pub use azure::AzureOpenAi;
#[cfg(feature = "bedrock")]
pub use bedrock::{Bedrock, BedrockFamily};
pub use capabilities::Capabilities;
pub use compatible::OpenAiCompatible;
pub use custom::{Custom, Encoded};
pub use failure::{AnswerFault, Failure, TransportFault};
pub use gemini::{Gemini, GeminiFamily, GeminiLevel, GeminiThinking, JsonBesideTools};
pub use headers::Headers;
pub use ollama::Ollama;
pub use openai::{
    ForcedTools, ModelFamily, OpenAi, Quirks, ReasoningEcho, ReasoningForm, SamplingRule, TokenField, ToolIds,
};
pub use preset::{Placeholder, Preset};
pub(crate) use refusal::unsupported;
pub use responses::OpenAiResponses;
pub use rules::{Basis, Classified, RulePack};
pub use stream::{CustomFraming, Cut, CutFrames, Draft, Frame, FrameFault, Framing, StreamDecoder};

use crate::LlmError;
use crate::chat::{Reply, Request};
use crate::record::ConfigError;
use bytes::Bytes;

/// The methods of [`Provider`] that an adapter leaves to the part of it that holds its settings.
macro_rules! settings_by {
    ($part:tt) => {
        fn name(&self) -> &str {
            self.$part.name()
        }

        fn check(&self) -> Result<(), $crate::record::ConfigError> {
            self.$part.check()
        }

        fn rules(&self) -> &$crate::provider::RulePack {
            self.$part.rules()
        }

        fn auth(&self) -> &$crate::provider::Auth {
            self.$part.auth()
        }
    };
}
use settings_by;

/// One protocol, spoken to one place.
///
/// Implement it for a protocol of your own; everything resilient comes from the client.
pub trait Provider: Send + Sync + 'static {
    /// A short stable name, such as `openai`.
    fn name(&self) -> &str;

    /// What is wrong with the adapter's own settings. `ClientBuilder::build` asks, and reports it.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// What can be asked of `model` through this adapter. A call that asks for more is refused before anything is sent.
    /// Default: text alone.
    fn capabilities(&self, model: &str) -> Capabilities {
        let _ = model;
        Capabilities::text()
    }

    /// Writes `request` in the provider's words, without credentials. [`EncodeContext::stream`] says whether the answer is
    /// wanted as a stream.
    ///
    /// # Errors
    ///
    /// `invalid_params` for what this protocol or model cannot take: `unsupported_capability` where another target
    /// could, `invalid_call` where a value is out of the protocol's range.
    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError>;

    /// Reads a complete answer of any status. What is not a usable reply is a [`Failure`]: evidence for the
    /// [rules](Self::rules), borrowed until it is known to be kept.
    fn decode<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>>;

    /// How the body of a streamed answer is cut into frames. Default: server-sent events.
    fn framing(&self) -> Framing {
        Framing::Sse
    }

    /// What reads the frames of one streamed answer; none where the adapter knows no streams.
    fn stream_decoder(&self, cx: &EncodeContext<'_>) -> Option<Box<dyn StreamDecoder>> {
        let _ = cx;
        None
    }

    /// What the provider's errors mean.
    fn rules(&self) -> &RulePack;

    /// The credentials to add.
    fn auth(&self) -> &Auth;
}

/// What an adapter is told about the call beside the request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EncodeContext<'a> {
    /// The model to ask.
    pub model: &'a str,
    /// Whether the answer is wanted as a stream.
    pub stream: bool,
}

impl<'a> EncodeContext<'a> {
    /// A context for `model`.
    pub fn new(model: &'a str) -> Self {
        Self { model, stream: false }
    }

    /// The same, with the answer wanted as a stream.
    #[must_use]
    pub fn streaming(mut self) -> Self {
        self.stream = true;
        self
    }
}

impl<P: Provider + ?Sized> Provider for std::sync::Arc<P> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn check(&self) -> Result<(), ConfigError> {
        (**self).check()
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        (**self).capabilities(model)
    }

    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
        (**self).encode(request, cx)
    }

    fn decode<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        (**self).decode(head, body)
    }

    fn framing(&self) -> Framing {
        (**self).framing()
    }

    fn stream_decoder(&self, cx: &EncodeContext<'_>) -> Option<Box<dyn StreamDecoder>> {
        (**self).stream_decoder(cx)
    }

    fn rules(&self) -> &RulePack {
        (**self).rules()
    }

    fn auth(&self) -> &Auth {
        (**self).auth()
    }
}
