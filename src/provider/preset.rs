//! Servers that speak OpenAI's protocol, as one table of data.

use super::{Quirks, RulePack, TokenField};

/// A known server: where it is, which key it wants, and how it differs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Its base URL, as the provider documents it.
    pub base_url: &'static str,
    /// Environment variables that may hold the key, the usual one first.
    pub key_variables: &'static [&'static str],
    /// Whether it wants a key at all; local servers do not unless they were started with one.
    pub needs_key: bool,
    /// How it differs from the protocol.
    pub quirks: Quirks,
    /// What its errors mean.
    pub rules: fn() -> RulePack,
}

impl Preset {
    /// Every preset.
    pub const ALL: &'static [Self] = PRESETS;

    /// The preset of this name. Case, dots, dashes and underscores do not matter: `llama.cpp` is `llamacpp`.
    pub fn named(name: &str) -> Option<&'static Self> {
        let plain = |name: &str| -> String {
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
        };
        let wanted = plain(name);
        PRESETS.iter().find(|preset| plain(preset.name) == wanted)
    }
}

const MT: Quirks = Quirks::none();
const MCT: Quirks = Quirks::none().token_field(TokenField::MaxCompletionTokens);

const fn hosted(
    name: &'static str,
    base_url: &'static str,
    key_variables: &'static [&'static str],
    quirks: Quirks,
    rules: fn() -> RulePack,
) -> Preset {
    Preset { name, base_url, key_variables, needs_key: true, quirks, rules }
}

const fn local(
    name: &'static str,
    base_url: &'static str,
    key_variables: &'static [&'static str],
    rules: fn() -> RulePack,
) -> Preset {
    Preset { name, base_url, key_variables, needs_key: false, quirks: MT, rules }
}

const PRESETS: &[Preset] = &[
    hosted(
        "azure",
        "https://{resource}.openai.azure.com/openai/v1",
        &["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"],
        Quirks::openai().key_header("api-key"),
        RulePack::azure,
    ),
    hosted("deepseek", "https://api.deepseek.com", &["DEEPSEEK_API_KEY"], MT, RulePack::deepseek),
    hosted(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        &["FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"],
        MT,
        RulePack::fireworks,
    ),
    hosted("groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"], MCT.max_stop(4), RulePack::groq),
    hosted(
        "mistral",
        "https://api.mistral.ai/v1",
        &["MISTRAL_API_KEY"],
        MT.seed_field("random_seed"),
        RulePack::mistral,
    ),
    hosted("openrouter", "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"], MT, RulePack::openrouter),
    hosted(
        "together",
        "https://api.together.ai/v1",
        &["TOGETHER_API_KEY", "TOGETHER_AI_API_KEY"],
        MT,
        RulePack::together,
    ),
    hosted("xai", "https://api.x.ai/v1", &["XAI_API_KEY"], MCT.reasoning_outside_output(), RulePack::xai),
    local("llama.cpp", "http://localhost:8080/v1", &[], RulePack::llama_cpp),
    local("lm-studio", "http://localhost:1234/v1", &["LM_API_TOKEN", "LM_STUDIO_API_KEY"], RulePack::openai),
    local("ollama", "http://localhost:11434/v1", &[], RulePack::ollama),
    local("vllm", "http://localhost:8000/v1", &["HOSTED_VLLM_API_KEY"], RulePack::vllm),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{OpenAiCompatible, Provider};

    #[test]
    fn every_row_is_well_formed() {
        for preset in Preset::ALL {
            assert!(Preset::named(preset.name).is_some_and(|found| found.name == preset.name), "{}", preset.name);
            assert!(!preset.needs_key || !preset.key_variables.is_empty(), "{}", preset.name);
            let server = OpenAiCompatible::preset(preset.name).unwrap();
            assert_eq!(server.check().is_err(), preset.needs_key, "{}", preset.name);
            let is_template = preset.base_url.contains('{');
            assert_eq!(server.clone().api_key("a-key").check().is_err(), is_template, "{}", preset.name);
            assert!(server.api_key("a-key").base_url("https://host/v1").check().is_ok(), "{}", preset.name);
        }
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        for name in ["llama.cpp", "llamacpp", "LM_Studio", "lmstudio", "xAI"] {
            assert!(Preset::named(name).is_some(), "{name}");
        }
        assert!(Preset::named("nobody").is_none());
    }
}
