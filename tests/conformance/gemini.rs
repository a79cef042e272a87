//! Gemini's `generateContent`, on the Developer API and on Vertex AI.

use crate::beyond::{AskedBeyond, Beyond};
use crate::openai::{list, text};
use crate::subject::{Asked, Parts, Raw, Subject, sampling, texts};
use futures_core::future::BoxFuture;
use serde_json::{Value, json};
use std::time::Duration;
use steadfast::chat::{FinishReason, ToolChoice};
use steadfast::provider::{Credential, CredentialSource, Gemini};
use steadfast::testing::{Answer, FakeProvider, FakeProviderBuilder, Received};
use steadfast::{Call, LlmError};

pub(crate) struct GeminiGenerate;

impl Subject for GeminiGenerate {
    type Adapter = Gemini;

    const MODEL: &'static str = "gemini-4-argon";
    const SEED: bool = true;
    const REPLY_ID: bool = true;
    const ERROR_ID: bool = false;
    const PARTS: Parts = Parts { cached_input: true, cache_write: false, reasoning: true };
    const SERVER_ERROR: &'static str = "INTERNAL";

    fn fake() -> FakeProviderBuilder {
        FakeProvider::gemini()
    }

    fn adapter(base_url: &str, key: &str) -> Gemini {
        Gemini::new(key).base_url(base_url)
    }

    fn asked(received: &Received) -> Asked {
        let body = received.json().unwrap_or_default();
        let contents = body["contents"].as_array().into_iter().flatten();
        let model = received.path.rsplit('/').next().and_then(|method| method.split(':').next());
        Asked {
            model: model.unwrap_or_default().to_owned(),
            system: texts(&body["systemInstruction"]["parts"]).pop().filter(|text| !text.is_empty()),
            turns: contents
                .flat_map(|content| texts(&content["parts"]).into_iter().map(|text| (content["role"] == "user", text)))
                .collect(),
            sampling: sampling(&camel(&body["generationConfig"]), "maxOutputTokens", "stopSequences"),
        }
    }

    fn extra() -> Value {
        json!({"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]})
    }

    fn finish_reasons() -> Vec<(&'static str, FinishReason)> {
        vec![
            ("STOP", FinishReason::Stop),
            ("MAX_TOKENS", FinishReason::Length),
            ("CONTINUATION", FinishReason::Length),
            ("SAFETY", FinishReason::ContentFilter),
            ("RECITATION", FinishReason::ContentFilter),
            ("PROHIBITED_CONTENT", FinishReason::ContentFilter),
            ("MALFORMED_RESPONSE", FinishReason::Other),
            ("OTHER", FinishReason::Other),
        ]
    }

    fn answer(raw: Raw) -> Option<Answer> {
        let candidate = |reason: &str, parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}]});
        let mut body = match raw {
            Raw::Empty => json!({"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}),
            Raw::Cut => json!({"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]}),
            Raw::Filtered => json!({"promptFeedback": {"blockReason": "SAFETY"}}),
            Raw::FilteredText => candidate("SAFETY", json!([{"text": "Half"}])),
            Raw::Reasoning => candidate("STOP", json!([{"text": "Hm", "thought": true}, {"text": "Done"}])),
            Raw::Refusal => return None,
            Raw::Strange => candidate(
                "STOP",
                json!([{"brandNew": {"text": "no"}}, {"text": null}, {"text": "Hi", "thought": null}, null]),
            ),
            Raw::Usage => candidate("STOP", json!([{"text": "Hi"}])),
        };
        match raw {
            Raw::Strange => {
                body["promptFeedback"] = Value::Null;
                body["error"] = Value::Null;
                body["brandNew"] = json!([{}]);
                body["usageMetadata"] = json!({"promptTokenCount": null, "brandNew": [1]});
            }
            Raw::Usage => {
                body["usageMetadata"] = json!({
                    "promptTokenCount": 120, "cachedContentTokenCount": 40, "candidatesTokenCount": 10,
                    "thoughtsTokenCount": 20, "totalTokenCount": 150,
                });
            }
            _ => {}
        }
        Some(Answer::raw(200).json(body))
    }

    fn unsupported() -> Option<(&'static str, Call, &'static str)> {
        let extra = json!({"generationConfig": {"presencePenalty": 0.5}});
        Some(("gemini-2.5-flash", Call::user("Hello").extra(extra), "presencePenalty"))
    }
}

impl Beyond for GeminiGenerate {
    const THINKER: Option<&'static str> = Some(Self::MODEL);
    const REASONING_GOES_BACK: bool = true;
    const PARALLEL: bool = false;

    fn asked_beyond(received: &Received) -> AskedBeyond {
        let body = received.json().unwrap_or_default();
        let config = &body["generationConfig"];
        let functions = list(&body["tools"]).flat_map(|tool| list(&tool["functionDeclarations"]));
        let calling = &body["toolConfig"]["functionCallingConfig"];
        let parts: Vec<_> = list(&body["contents"]).flat_map(|content| list(&content["parts"])).collect();
        let calls = parts.iter().map(|part| &part["functionCall"]).filter(|call| !call.is_null());
        let results = parts.iter().map(|part| &part["functionResponse"]).filter(|result| !result.is_null());
        let schema = config.get("responseJsonSchema");
        AskedBeyond {
            tools: functions
                .map(|function| (text(&function["name"]), function["parametersJsonSchema"].clone()))
                .collect(),
            choice: match (calling["mode"].as_str(), calling["allowedFunctionNames"][0].as_str()) {
                (Some("ANY"), Some(name)) => Some(ToolChoice::Named(name.to_owned())),
                (Some("ANY"), None) => Some(ToolChoice::Required),
                (Some("NONE"), _) => Some(ToolChoice::None),
                _ => None,
            },
            parallel: None,
            calls: calls.map(|call| (text(&call["id"]), text(&call["name"]), call["args"].clone())).collect(),
            results: results.map(|result| (text(&result["id"]), result["response"].to_string())).collect(),
            images: parts.iter().filter_map(|part| part["inlineData"]["data"].as_str()).map(str::to_owned).collect(),
            json: config["responseMimeType"] == "application/json" && schema.is_none(),
            schema: schema.cloned(),
            reasoning: config.get("thinkingConfig").cloned(),
            reasoned: parts.iter().any(|part| part["thoughtSignature"].is_string()),
        }
    }
}

/// The settings with the one that the protocol spells otherwise under its neutral name.
fn camel(config: &Value) -> Value {
    let mut config = config.clone();
    if let Some(fields) = config.as_object_mut()
        && let Some(top_p) = fields.remove("topP")
    {
        fields.insert("top_p".to_owned(), top_p);
    }
    config
}

/// The same on Vertex AI: the secret is a token, and models are elsewhere.
pub(crate) struct VertexGenerate;

/// Always the same token, fetched for each attempt: a 401 to one that was kept would be worth another attempt.
struct Token(String);

impl CredentialSource for Token {
    fn fetch(&self) -> BoxFuture<'_, Result<Credential, LlmError>> {
        Box::pin(async { Ok(Credential::new(self.0.clone()).expires_in(Duration::ZERO)) })
    }
}

impl Subject for VertexGenerate {
    type Adapter = Gemini;

    const MODEL: &'static str = GeminiGenerate::MODEL;
    const SEED: bool = GeminiGenerate::SEED;
    const REPLY_ID: bool = GeminiGenerate::REPLY_ID;
    const ERROR_ID: bool = GeminiGenerate::ERROR_ID;
    const PARTS: Parts = GeminiGenerate::PARTS;
    const SERVER_ERROR: &'static str = GeminiGenerate::SERVER_ERROR;

    fn fake() -> FakeProviderBuilder {
        GeminiGenerate::fake()
    }

    fn adapter(base_url: &str, key: &str) -> Gemini {
        Gemini::vertex("p-1", "europe-west4", Token(key.to_owned())).base_url(base_url).api_version("v1")
    }

    fn asked(received: &Received) -> Asked {
        GeminiGenerate::asked(received)
    }

    fn extra() -> Value {
        json!({"labels": {"team": "t-1"}})
    }

    fn finish_reasons() -> Vec<(&'static str, FinishReason)> {
        GeminiGenerate::finish_reasons()
    }

    fn answer(raw: Raw) -> Option<Answer> {
        GeminiGenerate::answer(raw)
    }

    fn unsupported() -> Option<(&'static str, Call, &'static str)> {
        None
    }
}

impl Beyond for VertexGenerate {
    const THINKER: Option<&'static str> = GeminiGenerate::THINKER;
    const REASONING_GOES_BACK: bool = GeminiGenerate::REASONING_GOES_BACK;
    const PARALLEL: bool = GeminiGenerate::PARALLEL;

    fn asked_beyond(received: &Received) -> AskedBeyond {
        GeminiGenerate::asked_beyond(received)
    }
}
