//! Ollama's own chat protocol.

use crate::beyond::{AskedBeyond, Beyond};
use crate::openai::{list, text};
use crate::subject::{Asked, Parts, Raw, Subject, sampling, texts};
use serde_json::{Value, json};
use steadfast::Call;
use steadfast::chat::FinishReason;
use steadfast::provider::Ollama;
use steadfast::testing::{Answer, FakeProvider, FakeProviderBuilder, Received};

pub(crate) struct OllamaChat;

impl Subject for OllamaChat {
    type Adapter = Ollama;

    const MODEL: &'static str = "example:8b";
    const SEED: bool = true;
    const REPLY_ID: bool = false;
    const ERROR_ID: bool = false;
    const PARTS: Parts = Parts { cached_input: false, cache_write: false, reasoning: false };
    const SERVER_ERROR: &'static str = "";

    fn fake() -> FakeProviderBuilder {
        FakeProvider::ollama()
    }

    fn adapter(base_url: &str, key: &str) -> Ollama {
        Ollama::new().api_key(key).base_url(base_url)
    }

    fn asked(received: &Received) -> Asked {
        let body = received.json().unwrap_or_default();
        let mut asked = Asked {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            sampling: sampling(&body["options"], "num_predict", "stop"),
            ..Asked::default()
        };
        for message in body["messages"].as_array().into_iter().flatten() {
            let said = texts(&message["content"]);
            match message["role"].as_str() {
                Some("system") => asked.system = said.into_iter().next(),
                role => asked.turns.extend(said.into_iter().map(|text| (role == Some("user"), text))),
            }
        }
        asked
    }

    fn extra() -> Value {
        json!({"keep_alive": "5m", "options": {"num_ctx": 8192}})
    }

    fn finish_reasons() -> Vec<(&'static str, FinishReason)> {
        vec![("stop", FinishReason::Stop), ("length", FinishReason::Length), ("load", FinishReason::Other)]
    }

    fn answer(raw: Raw) -> Option<Answer> {
        let message = |reason: &str, message: Value| json!({"model": "m", "message": message, "done": true, "done_reason": reason});
        let mut body = match raw {
            Raw::Empty => message("load", json!({"role": "assistant", "content": ""})),
            Raw::Cut => message("length", json!({"role": "assistant", "content": "", "thinking": "Hm"})),
            Raw::Reasoning => message("stop", json!({"role": "assistant", "content": "Done", "thinking": "Hm"})),
            Raw::Strange => json!({
                "model": null, "created_at": null, "error": null, "brand_new": {"a": [1]}, "done": null,
                "message": {"role": null, "content": "Hi", "thinking": null, "images": null, "brand_new": 1},
                "done_reason": "stop", "prompt_eval_count": null, "eval_count": 1,
            }),
            Raw::Usage => message("stop", json!({"role": "assistant", "content": "Hi"})),
            // The models refuse in plain text, and nothing filters them.
            Raw::Filtered | Raw::FilteredText | Raw::Refusal => return None,
        };
        if raw == Raw::Usage {
            (body["prompt_eval_count"], body["eval_count"]) = (120.into(), 30.into());
        }
        Some(Answer::raw(200).json(body))
    }

    /// What a model of Ollama's takes is known to its server alone.
    fn unsupported() -> Option<(&'static str, Call, &'static str)> {
        None
    }
}

impl Beyond for OllamaChat {
    const THINKER: Option<&'static str> = Some("example:8b");
    const REASONING_GOES_BACK: bool = true;
    const CHOICE: bool = false;
    const PARALLEL: bool = false;
    /// Names are whatever the model's template makes of them.
    const BAD_TOOL_NAME: Option<&'static str> = None;

    fn asked_beyond(received: &Received) -> AskedBeyond {
        let body = received.json().unwrap_or_default();
        let mut asked = AskedBeyond {
            tools: list(&body["tools"])
                .map(|tool| (text(&tool["function"]["name"]), tool["function"]["parameters"].clone()))
                .collect(),
            json: body["format"] == "json",
            schema: body.get("format").filter(|format| format.is_object()).cloned(),
            reasoning: body.get("think").cloned(),
            ..AskedBeyond::default()
        };
        for message in list(&body["messages"]) {
            asked.calls.extend(list(&message["tool_calls"]).map(|call| {
                (text(&call["id"]), text(&call["function"]["name"]), call["function"]["arguments"].clone())
            }));
            if message["role"] == "tool" {
                asked.results.push((text(&message["tool_call_id"]), text(&message["content"])));
            }
            asked.images.extend(list(&message["images"]).map(text));
            asked.reasoned |= message.get("thinking").is_some();
        }
        asked
    }
}
