//! The adapters by name, and a client of one.

use super::Fault;
use futures_core::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
#[cfg(feature = "bedrock")]
use steadfast::provider::Bedrock;
use steadfast::provider::{
    Anthropic, AzureOpenAi, Credential, CredentialSource, Gemini, Ollama, OpenAi, OpenAiCompatible, OpenAiResponses,
    Provider,
};
use steadfast::resilience::Retry;
use steadfast::{Client, LlmError, Target};

/// Every adapter that can be asked for.
pub(crate) const NAMES: &[&str] = &[
    "anthropic",
    "azure",
    "azure_deployment",
    #[cfg(feature = "bedrock")]
    "bedrock",
    "gemini",
    "ollama",
    "openai",
    "openai_compatible",
    "responses",
    "vertex",
];

/// Who is asked, and where.
#[derive(Clone, Default)]
pub(crate) struct Subject {
    /// One of [`NAMES`].
    pub provider: String,
    /// The adapter's base URL.
    pub base_url: String,
    /// The model, where a scenario names none.
    pub model: String,
    /// The key that the server knows; for Bedrock `ID:SECRET`.
    pub key: String,
    /// Whether each request has a connection of its own.
    pub connects_anew: bool,
}

impl Subject {
    /// The same with a key, or the secret of one, that the server does not know.
    pub(crate) fn with_wrong_key(&self) -> Self {
        let id = self.key.split_inclusive(':').next().filter(|id| id.ends_with(':')).unwrap_or_default();
        Self { key: format!("{id}not-the-key"), ..self.clone() }
    }

    /// The same, for a server that ends connections without a word: what is asked on one that it is about to end is lost.
    pub(crate) fn connecting_anew(&self) -> Self {
        Self { connects_anew: true, ..self.clone() }
    }

    /// The same, asking another model.
    pub(crate) fn with_model(&self, model: &str) -> Self {
        Self { model: model.to_owned(), ..self.clone() }
    }

    /// A client for one scenario: nothing of the one before it is left in a circuit or a budget.
    pub(crate) fn client(&self, timeout: Duration, retries: u32) -> Result<Client, Fault> {
        let target = Target::new(self.adapter()?, &self.model)
            .retry(Retry::new(retries).base_delay(Duration::from_millis(100)))
            .timeout(timeout);
        let mut client = Client::builder(target);
        if self.connects_anew {
            let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
            client = client.http_client(http.retry(reqwest::retry::never()).pool_max_idle_per_host(0).build()?);
        }
        Ok(client.build()?)
    }

    fn adapter(&self) -> Result<Arc<dyn Provider>, String> {
        let (url, key) = (self.base_url.as_str(), self.key.as_str());
        Ok(match self.provider.as_str() {
            "anthropic" => Arc::new(Anthropic::new(key).base_url(url)),
            "azure" => Arc::new(AzureOpenAi::new(url).api_key(key)),
            "azure_deployment" => Arc::new(AzureOpenAi::new(url).api_key(key).api_version("2024-10-21")),
            #[cfg(feature = "bedrock")]
            "bedrock" => {
                let (id, secret) = key.split_once(':').ok_or("a key for Bedrock is ID:SECRET")?;
                Arc::new(Bedrock::with_credentials("us-east-1", id, secret, None).base_url(url))
            }
            "gemini" => Arc::new(Gemini::new(key).base_url(url)),
            "ollama" => Arc::new(Ollama::new().api_key(key).base_url(url)),
            "openai" => Arc::new(OpenAi::new(key).base_url(url)),
            "openai_compatible" => Arc::new(OpenAiCompatible::new(url).api_key(key)),
            "responses" => Arc::new(OpenAiResponses::new(key).base_url(url)),
            "vertex" => Arc::new(Gemini::vertex("a-project", "global", Token(key.to_owned())).base_url(url)),
            other => return Err(format!("there is no adapter {other}: {}", NAMES.join(", "))),
        })
    }
}

/// A token that is good for ever.
struct Token(String);

impl CredentialSource for Token {
    fn fetch(&self) -> BoxFuture<'_, Result<Credential, LlmError>> {
        Box::pin(async { Ok(Credential::new(self.0.clone())) })
    }
}
