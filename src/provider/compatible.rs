//! Any server that speaks OpenAI's chat completions.

use super::endpoint::Endpoint;
use super::env::{env_key, env_var};
use super::openai::{ChatApi, ModelFamily, Quirks, read_by};
use super::template::fill;
use super::{
    Auth, Capabilities, CredentialSource, EncodeContext, HttpRequest, Preset, Provider, RulePack, settings_by,
};
use crate::LlmError;
use crate::chat::{EffortBudgets, Request};
use crate::record::ConfigError;
use secrecy::SecretString;
use std::fmt;
use url::Url;

/// Any server that speaks OpenAI's chat completions: a preset, or a base URL.
///
/// ```
/// # use steadfast::provider::{OpenAiCompatible, Preset};
/// let groq = OpenAiCompatible::preset("groq")?.api_key("gsk_...");
/// let cloudflare = OpenAiCompatible::of(Preset::CLOUDFLARE).fill("account_id", "0123abcd").api_key("...");
/// let mine = OpenAiCompatible::new("http://localhost:8000/v1");
/// # Ok::<(), steadfast::ConfigError>(())
/// ```
///
/// A local server that loads a model first says nothing until it has: give its target a
/// [`timeout`](crate::Target::timeout) of minutes. While it is down, connections are refused at once and retries follow
/// the target's backoff; a circuit breaker keeps a crowd of calls from adding up.
#[derive(Clone)]
pub struct OpenAiCompatible {
    chat: ChatApi,
    /// The base URL as it was given, placeholders included.
    base_url: String,
    alternates: &'static [(&'static str, &'static str)],
    /// The variables that the key came from, if it did.
    key_from: Option<&'static [&'static str]>,
}

impl OpenAiCompatible {
    /// The server at `base_url`, without a key and without quirks. The path of the URL is kept: `/v1` is never assumed.
    /// A URL that does not parse is reported by `ClientBuilder::build`.
    pub fn new(base_url: impl AsRef<str>) -> Self {
        let base_url = base_url.as_ref();
        let endpoint = Endpoint::new(base_url, ChatApi::PATH);
        let chat = ChatApi::new("openai_compatible", endpoint, Quirks::none(), RulePack::openai());
        Self { chat, base_url: base_url.to_owned(), alternates: &[], key_from: None }
    }

    /// A known server, without its key. Reads no environment variable.
    pub fn of(preset: Preset) -> Self {
        let mut endpoint = Endpoint::new(preset.base_url, ChatApi::PATH);
        for (name, value) in preset.headers {
            endpoint = endpoint.header(name, value);
        }
        if preset.needs_key {
            let variables = preset.key_variables.join(" or ");
            let how = format!("a key (`api_key(..)`, or `from_env` with {variables})");
            endpoint = endpoint.auth(Err(ConfigError::new("api_key", "not given", how)));
        }
        let chat = ChatApi::new(preset.name, endpoint, preset.quirks, (preset.rules)());
        Self { chat, base_url: preset.base_url.to_owned(), alternates: preset.alternates, key_from: None }
    }

    /// A known server by name, without its key; [`Preset::ALL`] has them all. Reads no environment variable.
    ///
    /// # Errors
    ///
    /// When there is no preset of this name.
    pub fn preset(name: &str) -> Result<Self, ConfigError> {
        Preset::get(name).map(|preset| Self::of(preset.clone()))
    }

    /// A known server by name, with the key of its environment variable, and with the placeholders of its base URL
    /// filled from theirs, where they are set.
    ///
    /// # Errors
    ///
    /// When there is no preset of this name, or it needs a key and its variable is not set; the error names it.
    pub fn from_env(name: &str) -> Result<Self, ConfigError> {
        let preset = Preset::get(name)?;
        let mut this = Self::of(preset.clone());
        for placeholder in preset.placeholders {
            if let Some(value) = placeholder.variables.iter().find_map(|variable| env_var(variable)) {
                this = this.fill(placeholder.name, &value);
            }
        }
        match env_key(preset.key_variables) {
            Ok(key) => Ok(Self { key_from: Some(preset.key_variables), ..this.api_key(key) }),
            Err(missing) if preset.needs_key => Err(missing),
            Err(_) => Ok(this),
        }
    }

    /// Fills in a `{placeholder}` of the preset's base URL. One that is not there, a value that is no plain part of a URL,
    /// and placeholders that are left are reported by `ClientBuilder::build`.
    #[must_use]
    pub fn fill(self, placeholder: &str, value: &str) -> Self {
        match fill(&self.base_url, placeholder, value) {
            Ok(url) => self.moved(&url),
            Err(fault) => self.faulty(fault),
        }
    }

    /// Another of the preset's own places, such as a region: one of those that its row has. Another name than those is
    /// reported by `ClientBuilder::build`.
    #[must_use]
    pub fn alternate(self, name: &str) -> Self {
        if let Some((_, url)) = self.alternates.iter().find(|(known, _)| *known == name) {
            return self.moved(url);
        }
        let known: Vec<_> = self.alternates.iter().map(|(known, _)| *known).collect();
        let allowed = if known.is_empty() { "nothing: it has none".to_owned() } else { known.join(", ") };
        self.faulty(ConfigError::new("alternate", format!("`{name}`"), allowed))
    }

    /// The key, sent as a bearer token, or in the header that the server wants it in.
    #[must_use]
    pub fn api_key(self, key: impl Into<SecretString>) -> Self {
        Self { chat: self.chat.api_key(key.into()), key_from: None, ..self }
    }

    /// Where tokens come from that are sent as bearer tokens, for servers whose keys expire.
    #[must_use]
    pub fn token_source(self, source: impl CredentialSource) -> Self {
        let chat = self.chat.at(|place| place.with_auth(Ok(Auth::bearer_from(source))));
        Self { chat, key_from: None, ..self }
    }

    /// Another place than the preset's.
    ///
    /// A key that [`from_env`](Self::from_env) found is not taken along to another origin: give the one for that place
    /// with [`api_key`](Self::api_key), or `ClientBuilder::build` refuses.
    #[must_use]
    pub fn base_url(self, url: &str) -> Self {
        let Some(variables) = self.key_from.filter(|_| !same_origin(&self.base_url, url)) else {
            return self.moved(url);
        };
        let is = format!("that of {}, which is for another place", variables.join(" or "));
        let foreign =
            ConfigError::new("api_key", is, "the key for this base URL (`api_key(..)`, after `base_url(..)`)");
        let this = self.moved(url);
        Self { chat: this.chat.at(|place| place.with_auth(Err(foreign))), ..this }
    }

    /// Another name than the preset's, for errors and events.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { chat: self.chat.at(|place| place.named(name.into())), ..self }
    }

    /// A header for every request. Not for secrets: those go into [`api_key`](Self::api_key).
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        Self { chat: self.chat.at(|place| place.header(name, value)), ..self }
    }

    /// How the server differs from the protocol.
    #[must_use]
    pub fn quirks(self, quirks: Quirks) -> Self {
        Self { chat: self.chat.quirks(quirks), ..self }
    }

    /// What models take: the server's own, or OpenAI's by other names.
    #[must_use]
    pub fn families(self, families: impl Into<Vec<ModelFamily>>) -> Self {
        Self { chat: self.chat.at(|place| place.with_families(families.into())), ..self }
    }

    /// What efforts of reasoning are worth in tokens, where a call gives the one and the server takes the other.
    #[must_use]
    pub fn effort_budgets(self, budgets: EffortBudgets) -> Self {
        Self { chat: self.chat.at(|place| place.with_budgets(budgets)), ..self }
    }

    /// What its errors mean.
    #[must_use]
    pub fn rule_pack(self, rules: RulePack) -> Self {
        Self { chat: self.chat.at(|place| place.with_rules(rules)), ..self }
    }

    fn moved(self, url: &str) -> Self {
        Self { chat: self.chat.at(|place| place.base_url(url)), base_url: url.to_owned(), ..self }
    }

    fn faulty(self, fault: ConfigError) -> Self {
        Self { chat: self.chat.at(|place| place.fault(fault)), ..self }
    }
}

fn same_origin(a: &str, b: &str) -> bool {
    matches!((Url::parse(a), Url::parse(b)), (Ok(a), Ok(b)) if a.origin() == b.origin())
}

/// Without the base URL as it was given: it may hold user info. The chat's own shows it without.
impl fmt::Debug for OpenAiCompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiCompatible").field("chat", &self.chat).finish_non_exhaustive()
    }
}

impl Provider for OpenAiCompatible {
    settings_by!(chat);
    read_by!(chat);

    fn capabilities(&self, model: &str) -> Capabilities {
        self.chat.capabilities(model)
    }

    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
        self.chat.encode(request, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(server: &OpenAiCompatible) -> String {
        server.encode(&Request::user("Hi"), &EncodeContext::new("m")).unwrap().url.into()
    }

    #[test]
    fn placeholders_are_filled_in_or_reported() {
        let cloudflare = OpenAiCompatible::of(Preset::CLOUDFLARE).api_key("k");
        let error = cloudflare.check().unwrap_err().to_string();
        assert!(error.contains("{account_id}"), "{error}");
        let filled = cloudflare.clone().fill("account_id", "0a1b");
        assert!(filled.check().is_ok());
        assert_eq!(url(&filled), "https://api.cloudflare.com/client/v4/accounts/0a1b/ai/v1/chat/completions");
        for (name, value) in [("account", "0a1b"), ("account_id", "evil/../x")] {
            assert!(filled.clone().fill(name, value).check().is_err(), "{name} {value}");
            assert!(cloudflare.clone().fill(name, value).check().is_err(), "{name} {value}");
        }
    }

    #[test]
    fn alternates_are_known_by_name() {
        let moonshot = OpenAiCompatible::of(Preset::MOONSHOT).api_key("k");
        assert_eq!(url(&moonshot), "https://api.moonshot.ai/v1/chat/completions");
        assert_eq!(url(&moonshot.clone().alternate("cn")), "https://api.moonshot.cn/v1/chat/completions");
        let error = moonshot.alternate("mars").check().unwrap_err().to_string();
        assert!(error.contains("`mars`; allowed: cn"), "{error}");
    }

    #[test]
    fn a_key_of_the_environment_stays_at_its_own_origin() {
        let groq = || OpenAiCompatible {
            key_from: Some(Preset::GROQ.key_variables),
            ..OpenAiCompatible::of(Preset::GROQ).api_key("k")
        };
        assert!(groq().base_url("https://api.groq.com/other/v1").check().is_ok());
        for url in ["https://elsewhere.example/v1", "http://api.groq.com/openai/v1"] {
            let moved = groq().base_url(url);
            assert!(matches!(moved.auth(), Auth::None), "{url}");
            let error = moved.check().unwrap_err().to_string();
            assert!(error.contains("GROQ_API_KEY"), "{error}");
            assert!(moved.api_key("mine").check().is_ok());
        }
        let given = OpenAiCompatible::of(Preset::GROQ).api_key("k").base_url("https://elsewhere.example/v1");
        assert!(given.check().is_ok());
    }

    #[test]
    fn optional_headers_are_sent_only_when_set() {
        let plain = OpenAiCompatible::of(Preset::OPENROUTER).api_key("k");
        let named = plain.clone().header("x-title", "App");
        for (server, expected) in [(plain, None), (named, Some("App"))] {
            let http = server.encode(&Request::user("Hi"), &EncodeContext::new("m")).unwrap();
            assert_eq!(http.headers.get("x-title").map(|value| value.to_str().unwrap()), expected);
            assert!(http.headers.get("http-referer").is_none());
        }
    }
}
