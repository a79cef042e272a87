//! Servers that speak OpenAI's protocol, as one table of data.

mod table;

use super::{Quirks, RulePack};
use crate::record::ConfigError;

/// A known server: where it is, which key it wants, and how it differs.
///
/// Nothing in it is fixed: whatever [`OpenAiCompatible`](super::OpenAiCompatible) is made of can be set otherwise.
///
/// ```
/// # use steadfast::provider::Preset;
/// assert_eq!(Preset::named("llama.cpp").map(|preset| preset.base_url), Some("http://localhost:8080/v1"));
/// for (name, url) in Preset::MOONSHOT.alternates {
///     println!("moonshot has a place {name} at {url}");
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Other names that find it.
    pub aliases: &'static [&'static str],
    /// Its base URL, as the provider documents it. It may have `{placeholders}`.
    pub base_url: &'static str,
    /// Other places of the same provider by name, such as regions.
    pub alternates: &'static [(&'static str, &'static str)],
    /// What has to be filled into its URLs.
    pub placeholders: &'static [Placeholder],
    /// Environment variables that may hold the key, the usual one first.
    pub key_variables: &'static [&'static str],
    /// Whether it wants a key at all; local servers do not unless they were started with one.
    pub needs_key: bool,
    /// Headers that it wants in every request.
    pub headers: &'static [(&'static str, &'static str)],
    /// How it differs from the protocol.
    pub quirks: Quirks,
    /// What its errors mean.
    pub rules: fn() -> RulePack,
}

/// A `{placeholder}` in the URL of a preset.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Placeholder {
    /// Its name, without the braces.
    pub name: &'static str,
    /// Environment variables that may hold what to fill in, the usual one first.
    pub variables: &'static [&'static str],
}

impl Preset {
    /// The preset of this name. Case, dots, dashes and underscores do not matter: `llama.cpp` is `llamacpp`.
    pub fn named(name: &str) -> Option<&'static Self> {
        let wanted = plain(name);
        Self::ALL.iter().copied().find(|preset| preset.names().any(|name| plain(name) == wanted))
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.name].into_iter().chain(self.aliases.iter().copied())
    }

    /// The preset of this name, or an error that helps to find it.
    pub(super) fn get(name: &str) -> Result<&'static Self, ConfigError> {
        Self::named(name).ok_or_else(|| {
            let wanted = plain(name);
            let common = |known: &str| plain(known).chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
            let near: Vec<_> = Self::ALL.iter().map(|preset| preset.name).filter(|known| common(known) >= 3).collect();
            let near = if near.is_empty() { String::new() } else { format!("; perhaps {}", near.join(" or ")) };
            let allowed = format!("the name of one of the {} presets (`Preset::ALL`){near}", Self::ALL.len());
            ConfigError::new("preset", format!("`{name}`"), allowed)
        })
    }

    const fn hosted(name: &'static str, base_url: &'static str, key_variables: &'static [&'static str]) -> Self {
        Self {
            name,
            aliases: &[],
            base_url,
            alternates: &[],
            placeholders: &[],
            key_variables,
            needs_key: true,
            headers: &[],
            quirks: Quirks::none(),
            rules: RulePack::openai,
        }
    }

    const fn local(name: &'static str, base_url: &'static str, key_variables: &'static [&'static str]) -> Self {
        Self { needs_key: false, ..Self::hosted(name, base_url, key_variables) }
    }

    const fn rules(self, rules: fn() -> RulePack) -> Self {
        Self { rules, ..self }
    }

    const fn quirks(self, quirks: Quirks) -> Self {
        Self { quirks, ..self }
    }

    const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn alternates(self, alternates: &'static [(&'static str, &'static str)]) -> Self {
        Self { alternates, ..self }
    }

    const fn placeholders(self, placeholders: &'static [Placeholder]) -> Self {
        Self { placeholders, ..self }
    }

    const fn headers(self, headers: &'static [(&'static str, &'static str)]) -> Self {
        Self { headers, ..self }
    }
}

/// A name without what does not matter in it.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{
        Effort, JsonSchema, Output, Reply, Request, Sampling, Setting, Tool, ToolCall, ToolChoice, ToolResult, Turn,
    };
    use crate::provider::template::names;
    use crate::provider::{
        Auth, EncodeContext, ForcedTools, Head, OpenAiCompatible, Provider, ReasoningEcho, ReasoningForm, TokenField,
        ToolIds,
    };
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};
    use serde_json::json;
    use std::collections::BTreeSet;

    /// The server with every placeholder of this URL filled in.
    fn filled(url: &str, server: OpenAiCompatible) -> OpenAiCompatible {
        names(url).fold(server, |server, name| server.fill(name, "some-part"))
    }

    fn is_variable(name: &str) -> bool {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
            && !name.ends_with('_')
    }

    #[test]
    fn there_are_at_least_ninety_and_none_twice() {
        assert!(Preset::ALL.len() >= 90, "{}", Preset::ALL.len());
        let names: Vec<_> = Preset::ALL.iter().flat_map(|preset| preset.names()).map(plain).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn every_row_is_well_formed() {
        for preset in Preset::ALL {
            let name = preset.name;
            assert!(
                name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.')),
                "{name}"
            );
            assert!(Preset::named(name).is_some_and(|found| found.name == name), "{name}");
            assert!(RulePack::by_name((preset.rules)().name()).is_some(), "{name}");

            assert!(!preset.needs_key || !preset.key_variables.is_empty(), "{name}");
            for variable in preset.key_variables {
                let tells =
                    ["KEY", "TOKEN", "JWT", "PAT"].iter().any(|word| variable.split('_').any(|part| part == *word));
                assert!(tells && is_variable(variable), "{name}: {variable}");
            }
            for placeholder in preset.placeholders {
                assert!(placeholder.variables.iter().all(|variable| is_variable(variable)), "{name}");
            }

            let urls = || preset.alternates.iter().map(|(_, url)| *url).chain([preset.base_url]);
            let used: BTreeSet<_> = urls().flat_map(names).collect();
            let declared: BTreeSet<_> = preset.placeholders.iter().map(|placeholder| placeholder.name).collect();
            assert_eq!(used, declared, "{name}");
            for url in urls() {
                let secure = url.starts_with("https://") || url.starts_with("{host}");
                assert!(secure || !preset.needs_key && url.starts_with("http://"), "{name}: {url}");
                assert!(!url.ends_with('/') && !url.contains("/chat/completions"), "{name}: {url}");
            }
        }
    }

    #[test]
    fn every_row_works_once_it_has_its_key_and_its_parts() {
        for preset in Preset::ALL {
            let name = preset.name;
            let server = OpenAiCompatible::preset(name).unwrap();
            let is_template = names(preset.base_url).next().is_some();
            assert_eq!(server.check().is_err(), preset.needs_key || is_template, "{name}");
            let server = server.api_key("a-key");
            assert_eq!(server.check().is_err(), is_template, "{name}");
            for (alternate, url) in preset.alternates {
                assert_eq!(filled(url, server.clone().alternate(alternate)).check(), Ok(()), "{name} {alternate}");
            }
            let server = filled(preset.base_url, server);
            assert_eq!(server.check(), Ok(()), "{name}");
            let http = server.encode(&Request::user("Hi"), &EncodeContext::new("m")).unwrap();
            assert!(http.url.path().ends_with("/chat/completions"), "{name}");
            for (header, value) in preset.headers {
                assert_eq!(http.headers.get(*header).and_then(|value| value.to_str().ok()), Some(*value), "{name}");
            }
        }
    }

    /// What a server of these quirks makes of calls, of an answer and of a key.
    fn traits_of(quirks: &Quirks) -> Vec<String> {
        let server = OpenAiCompatible::new("http://host/v1").quirks(quirks.clone()).api_key("k");
        let written = |model: &str, request: &Request, stream: bool| {
            let cx = EncodeContext::new(model);
            match server.encode(request, &if stream { cx.streaming() } else { cx }) {
                Ok(http) => String::from_utf8(http.body.to_vec()).unwrap(),
                Err(error) => error.to_string(),
            }
        };
        let sampled =
            |model: &str, sampling: Sampling| written(model, &Request { sampling, ..Request::user("Hi") }, false);
        let tooled = |choice: ToolChoice, output: Output| {
            let tools = ["a", "b"].map(|name| Tool::new(name, "").strict(true)).into();
            written("m", &Request { tools, tool_choice: choice, output, ..Request::user("Hi") }, false)
        };
        let schema = Output::Schema(JsonSchema::new("form", json!({"type": "object", "properties": {}})));
        let turns = vec![
            Turn::assistant_tool_calls([ToolCall::new("call_1", "a", json!({}))]),
            Turn::tool_results([ToolResult::new("call_1", "4")]),
        ];
        let body = r#"{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":1,"completion_tokens":9,
            "completion_tokens_details":{"reasoning_tokens":5}}}"#;
        let head = Head::new(StatusCode::OK, HeaderMap::new());
        let reply: Option<Reply> = server.decode(&head, &Bytes::from_static(body.as_bytes())).ok();
        let Auth::Header(header) = server.auth() else { unreachable!() };
        vec![
            sampled("m", Sampling::new().max_tokens(9).seed(7).stop(["a", "b"])),
            sampled("m", Sampling::new().temperature(1.5)),
            sampled("gpt-5", Sampling::new().max_tokens(9)),
            written("m", &Request::user("Hi"), true),
            tooled(ToolChoice::Required, Output::Text),
            tooled(ToolChoice::Named("a".into()), Output::Json),
            written("m", &Request { output: schema, ..Request::user("Hi") }, false),
            written("m", &Request { reasoning: Some(Effort::Max.into()), ..Request::user("Hi") }, false),
            written("m", &Request { history: turns, ..Request::default() }, false),
            format!("{:?}", server.capabilities("m")),
            format!("{:?}", reply.and_then(|reply| reply.usage().copied())),
            header.name().to_string(),
        ]
    }

    #[test]
    fn every_quirk_changes_a_request_or_a_reply() {
        let none = Quirks::none;
        // A new quirk has to be named here, and to be shown to be read below.
        let Quirks {
            token_field: _,
            openai_models: _,
            max_temperature: _,
            seed_field: _,
            max_stop: _,
            key_header: _,
            refuses: _,
            tools: _,
            max_tools: _,
            forced_tools: _,
            required: _,
            parallel_tool_calls: _,
            tool_ids: _,
            strict: _,
            json: _,
            schema: _,
            json_beside_tools: _,
            reasoning: _,
            echo: _,
            stream_options: _,
            reasoning_outside_output: _,
        } = none();
        for (name, quirks) in [
            ("token_field", none().token_field(TokenField::MaxCompletionTokens)),
            ("openai_models", Quirks { openai_models: true, ..none() }),
            ("max_temperature", none().max_temperature(1.0)),
            ("seed_field", none().seed_field("random_seed")),
            ("max_stop", none().max_stop(1)),
            ("key_header", none().key_header("api-key")),
            ("refuses", none().refuses(&[Setting::Seed])),
            ("tools", none().without_tools()),
            ("max_tools", none().max_tools(1)),
            ("forced_tools", none().forced_tools(ForcedTools::Required)),
            ("required", none().required("any")),
            ("parallel_tool_calls", none().without_parallel_tool_calls()),
            ("tool_ids", none().tool_ids(ToolIds::Nine)),
            ("strict", none().strict(true)),
            ("json", none().without_json()),
            ("schema", none().without_schema()),
            ("json_beside_tools", none().without_json_beside_tools()),
            ("reasoning", none().reasoning(ReasoningForm::Switch)),
            ("echo", none().echo(ReasoningEcho::new("reasoning_content").always())),
            ("stream_options", none().without_stream_options()),
            ("reasoning_outside_output", none().reasoning_outside_output()),
        ] {
            assert_ne!(traits_of(&quirks), traits_of(&none()), "{name}");
        }
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        for name in ["llama.cpp", "llamacpp", "LM_Studio", "lmstudio", "xAI", "azure_openai", "Azure"] {
            assert!(Preset::named(name).is_some(), "{name}");
        }
        let error = OpenAiCompatible::preset("fireworx").unwrap_err().to_string();
        assert!(error.contains("perhaps fireworks"), "{error}");
        assert!(OpenAiCompatible::preset("nobody").is_err());
    }
}
