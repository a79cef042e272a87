//! OpenAI's chat completions, and the many servers that speak nearly the same.

mod api;
mod calls;
mod decode;
mod echo;
mod encode;
mod family;
mod lenient;
mod media;
mod place;
mod quirks;
mod reasoning;
mod said;
mod settings;
mod stream;
mod usage;

pub(super) use api::ChatApi;
pub(super) use calls::json_of;
pub(super) use encode::{LONGEST_NAME, form_schema, result_text};
pub use family::{ModelFamily, SamplingRule};
pub(super) use family::{OPENAI, UNKNOWN};
pub(super) use lenient::Saying;
pub(super) use media::{DataUrl, MediaRules, media_len};
pub(super) use place::{EffortField, Place};
pub use quirks::{ForcedTools, Quirks, ReasoningEcho, ReasoningForm, TokenField, ToolIds};
use said::Said;
pub(super) use settings::{account_settings, from_account};
pub(super) use usage::Counts;

use super::endpoint::Endpoint;
use super::{Capabilities, EncodeContext, HttpRequest, Provider, RulePack, settings_by};
use crate::LlmError;
use crate::chat::Request;
use secrecy::SecretString;

/// The methods of [`Provider`] that read answers, of an adapter that leaves them to its [`ChatApi`].
macro_rules! read_by {
    ($chat:tt) => {
        fn decode<'a>(
            &self,
            head: &'a $crate::provider::Head,
            body: &'a bytes::Bytes,
        ) -> Result<$crate::chat::Reply, $crate::provider::Failure<'a>> {
            self.$chat.decode(head, body)
        }

        fn stream_decoder(
            &self,
            cx: &$crate::provider::EncodeContext<'_>,
        ) -> Option<Box<dyn $crate::provider::StreamDecoder>> {
            self.$chat.stream_decoder(cx)
        }
    };
}
pub(super) use read_by;

/// Where OpenAI is.
pub(super) const BASE_URL: &str = "https://api.openai.com/v1";

/// OpenAI's chat completions.
///
/// Which token-limit field and which sampling settings a model takes is data ([`ModelFamily`]): a setting that a known
/// model refuses is an error before anything is sent; an unknown model is sent whatever was set.
///
/// Source: OpenAI's API reference ("Chat") and the types of its Node SDK, as of 2026-11.
///
/// ```
/// # use steadfast::{Client, Target, provider::OpenAi};
/// let client = Client::builder(Target::new(OpenAi::new("sk-..."), "gpt-5-mini")).build()?;
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenAi(ChatApi);

impl OpenAi {
    /// OpenAI with this key.
    pub fn new(api_key: impl Into<SecretString>) -> Self {
        let endpoint = Endpoint::new(BASE_URL, ChatApi::PATH);
        Self(ChatApi::new("openai", endpoint, Quirks::openai(), RulePack::openai()).api_key(api_key.into()))
    }

    fn at(self, change: impl FnOnce(Place) -> Place) -> Self {
        Self(self.0.at(change))
    }
}

account_settings!(OpenAi);

impl Provider for OpenAi {
    settings_by!(0);
    read_by!(0);

    fn capabilities(&self, model: &str) -> Capabilities {
        self.0.capabilities(model)
    }

    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
        self.0.encode(request, cx)
    }
}
