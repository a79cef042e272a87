//! OpenAI's Responses API.

use crate::beyond::{AskedBeyond, Beyond};
use crate::openai::{choice, list, text};
use crate::subject::{Asked, Parts, Raw, Subject, sampling, texts};
use serde_json::{Value, json};
use steadfast::Call;
use steadfast::chat::FinishReason;
use steadfast::provider::OpenAiResponses;
use steadfast::testing::{Answer, FakeProvider, FakeProviderBuilder, Received};

pub(crate) struct Responses;

impl Subject for Responses {
    type Adapter = OpenAiResponses;

    const MODEL: &'static str = "gpt-4.1";
    const SEED: bool = false;
    const STOP: bool = false;
    const REPLY_ID: bool = true;
    const ERROR_ID: bool = true;
    const PARTS: Parts = Parts { cached_input: true, cache_write: true, reasoning: true };
    const SERVER_ERROR: &'static str = "server_error";

    fn fake() -> FakeProviderBuilder {
        FakeProvider::responses()
    }

    fn adapter(base_url: &str, key: &str) -> OpenAiResponses {
        OpenAiResponses::new(key).base_url(base_url)
    }

    fn asked(received: &Received) -> Asked {
        let body = received.json().unwrap_or_default();
        let items = body["input"].as_array().into_iter().flatten();
        Asked {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            system: body["instructions"].as_str().map(str::to_owned),
            turns: items
                .flat_map(|item| texts(&item["content"]).into_iter().map(|text| (item["role"] == "user", text)))
                .collect(),
            sampling: sampling(&body, "max_output_tokens", "stop"),
        }
    }

    fn extra() -> Value {
        json!({"store": false, "reasoning": {"summary": "auto"}})
    }

    /// A complete answer has no reason; these are of incomplete ones.
    fn finish_reasons() -> Vec<(&'static str, FinishReason)> {
        vec![
            ("max_output_tokens", FinishReason::Length),
            ("max_messages", FinishReason::Length),
            ("content_filter", FinishReason::ContentFilter),
            ("steered", FinishReason::Other),
        ]
    }

    fn answer(raw: Raw) -> Option<Answer> {
        let message = |part: Value| json!({"type": "message", "role": "assistant", "content": [part]});
        let text = |text: &str| message(json!({"type": "output_text", "text": text, "annotations": []}));
        let thinking = json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]});
        let complete = |items: Value| json!({"status": "completed", "model": "m", "output": items, "usage": null});
        let incomplete = |reason: &str, items: Value| json!({"status": "incomplete", "incomplete_details": {"reason": reason}, "output": items});
        let mut body = match raw {
            Raw::Empty => complete(json!([])),
            Raw::Cut => incomplete("max_output_tokens", json!([thinking])),
            Raw::Filtered => incomplete("content_filter", json!([])),
            Raw::FilteredText => incomplete("content_filter", json!([text("Half")])),
            Raw::Reasoning => complete(json!([thinking, text("Done")])),
            Raw::Refusal => {
                complete(json!([message(json!({"type": "refusal", "refusal": "I cannot help with that."}))]))
            }
            Raw::Strange => json!({
                "id": null, "error": null, "incomplete_details": null, "status": "completed", "brand_new": {"a": [1]},
                "output": [
                    {"type": "brand_new", "content": {"text": "no"}, "summary": 1},
                    {"type": "message", "status": null, "content": [
                        null,
                        {"type": "brand_new", "words": "no"},
                        {"type": "output_text", "text": "Hi", "annotations": null, "logprobs": null},
                        {"type": "output_text", "text": null},
                    ]},
                    null,
                ],
                "usage": {"input_tokens": 1, "input_tokens_details": null, "output_tokens": 1, "brand_new": 2},
            }),
            Raw::Usage => complete(json!([text("Hi")])),
        };
        if raw == Raw::Usage {
            body["usage"] = json!({
                "input_tokens": 120, "output_tokens": 30, "total_tokens": 150,
                "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 10},
                "output_tokens_details": {"reasoning_tokens": 20},
            });
        }
        Some(Answer::raw(200).json(body))
    }

    fn unsupported() -> Option<(&'static str, Call, &'static str)> {
        Some(("gpt-4.1", Call::user("Hello").stop(["END"]), "stop"))
    }
}

impl Beyond for Responses {
    const THINKER: Option<&'static str> = Some("gpt-6-luna");
    const REASONING_GOES_BACK: bool = true;

    fn asked_beyond(received: &Received) -> AskedBeyond {
        let body = received.json().unwrap_or_default();
        let format = &body["text"]["format"];
        let mut asked = AskedBeyond {
            tools: list(&body["tools"]).map(|tool| (text(&tool["name"]), tool["parameters"].clone())).collect(),
            choice: choice(&body["tool_choice"], &body["tool_choice"]["name"]),
            parallel: body["parallel_tool_calls"].as_bool(),
            json: format["type"] == "json_object",
            schema: format.get("schema").cloned(),
            reasoning: body.pointer("/reasoning/effort").cloned(),
            ..AskedBeyond::default()
        };
        for item in list(&body["input"]) {
            match item["type"].as_str() {
                Some("function_call") => {
                    let arguments = serde_json::from_str(&text(&item["arguments"])).unwrap_or_default();
                    asked.calls.push((text(&item["call_id"]), text(&item["name"]), arguments));
                }
                Some("function_call_output") => asked.results.push((text(&item["call_id"]), text(&item["output"]))),
                Some("reasoning") => asked.reasoned = true,
                _ => {
                    let urls = list(&item["content"]).filter_map(|part| part["image_url"].as_str());
                    asked.images.extend(urls.map(|url| url.rsplit(',').next().unwrap_or_default().to_owned()));
                }
            }
        }
        asked
    }
}
