//! OpenAI's chat completions.

use crate::beyond::{AskedBeyond, Beyond};
use crate::subject::{Asked, Parts, Raw, Subject, sampling, texts};
use serde_json::{Value, json};
use steadfast::Call;
use steadfast::chat::{FinishReason, ToolChoice};
use steadfast::provider::OpenAi;
use steadfast::testing::{Answer, FakeProvider, FakeProviderBuilder, Received};

pub(crate) struct OpenAiChat;

impl Subject for OpenAiChat {
    type Adapter = OpenAi;

    const MODEL: &'static str = "gpt-4.1";
    const SEED: bool = true;
    const REPLY_ID: bool = true;
    const ERROR_ID: bool = true;
    const PARTS: Parts = Parts { cached_input: true, cache_write: true, reasoning: true };
    const SERVER_ERROR: &'static str = "server_error";

    fn fake() -> FakeProviderBuilder {
        FakeProvider::openai()
    }

    fn adapter(base_url: &str, key: &str) -> OpenAi {
        OpenAi::new(key).base_url(base_url)
    }

    fn asked(received: &Received) -> Asked {
        let body = received.json().unwrap_or_default();
        let mut asked = Asked {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            sampling: sampling(&body, "max_tokens", "stop"),
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
        json!({"user": "u-1"})
    }

    fn finish_reasons() -> Vec<(&'static str, FinishReason)> {
        vec![
            ("stop", FinishReason::Stop),
            ("length", FinishReason::Length),
            ("tool_calls", FinishReason::ToolCalls),
            ("content_filter", FinishReason::ContentFilter),
        ]
    }

    fn answer(raw: Raw) -> Option<Answer> {
        let message = |finish: &str, message: Value| json!({"model": "m", "choices": [{"index": 0, "finish_reason": finish, "message": message}]});
        let mut body = match raw {
            Raw::Empty => message("stop", json!({"role": "assistant", "content": ""})),
            Raw::Cut => message("length", json!({"role": "assistant", "content": null})),
            Raw::Filtered => message("content_filter", json!({"role": "assistant", "content": ""})),
            Raw::FilteredText => message("content_filter", json!({"role": "assistant", "content": "Half"})),
            // OpenAI keeps its reasoning to itself; this is how others put it into this protocol.
            Raw::Reasoning => message("stop", json!({"content": "Done", "reasoning_content": "Hm"})),
            Raw::Refusal => message("stop", json!({"content": null, "refusal": "I cannot help with that."})),
            Raw::Strange => json!({
                "id": null, "object": "brand.new", "error": null, "brand_new": {"a": [1]},
                "choices": [{
                    "index": null, "logprobs": null, "finish_reason": "stop", "brand_new": 1,
                    "message": {"role": null, "content": "Hi", "refusal": null, "tool_calls": null, "audio": null},
                }],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": null, "brand_new": 2},
            }),
            Raw::Usage => message("stop", json!({"content": "Hi"})),
        };
        if raw == Raw::Usage {
            body["usage"] = json!({
                "prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150,
                "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 10},
                "completion_tokens_details": {"reasoning_tokens": 20},
            });
        }
        Some(Answer::raw(200).json(body))
    }

    fn unsupported() -> Option<(&'static str, Call, &'static str)> {
        Some(("gpt-5-mini", Call::user("Hello").temperature(0.3), "temperature"))
    }
}

impl Beyond for OpenAiChat {
    /// The fake tells reasoning as `DeepSeek` does; OpenAI itself keeps it, and nothing goes back.
    const THINKER: Option<&'static str> = Some("gpt-6-luna");

    fn asked_beyond(received: &Received) -> AskedBeyond {
        let body = received.json().unwrap_or_default();
        let format = &body["response_format"];
        let mut asked = AskedBeyond {
            tools: list(&body["tools"])
                .map(|tool| (text(&tool["function"]["name"]), tool["function"]["parameters"].clone()))
                .collect(),
            choice: choice(&body["tool_choice"], &body["tool_choice"]["function"]["name"]),
            parallel: body["parallel_tool_calls"].as_bool(),
            json: format["type"] == "json_object",
            schema: body.pointer("/response_format/json_schema/schema").cloned(),
            reasoning: body.get("reasoning_effort").cloned(),
            ..AskedBeyond::default()
        };
        for message in list(&body["messages"]) {
            asked.calls.extend(list(&message["tool_calls"]).map(|call| {
                let arguments = serde_json::from_str(&text(&call["function"]["arguments"])).unwrap_or_default();
                (text(&call["id"]), text(&call["function"]["name"]), arguments)
            }));
            if message["role"] == "tool" {
                asked.results.push((text(&message["tool_call_id"]), text(&message["content"])));
            }
            let urls = list(&message["content"]).filter_map(|part| part["image_url"]["url"].as_str());
            asked.images.extend(urls.map(|url| url.rsplit(',').next().unwrap_or_default().to_owned()));
        }
        asked
    }
}

/// The elements of a list; none of anything else.
pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The choice of tools in the words of either protocol; `named` is where the name is.
pub(crate) fn choice(value: &Value, named: &Value) -> Option<ToolChoice> {
    match value.as_str() {
        Some("none") => Some(ToolChoice::None),
        Some("auto") => Some(ToolChoice::Auto),
        Some("required") => Some(ToolChoice::Required),
        _ => named.as_str().map(|name| ToolChoice::Named(name.to_owned())),
    }
}
