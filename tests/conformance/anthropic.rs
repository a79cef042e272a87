//! Anthropic's messages.

use crate::beyond::{AskedBeyond, Beyond};
use crate::openai::{list, text};
use crate::subject::{Asked, Parts, Raw, Subject, sampling, texts};
use serde_json::{Value, json};
use steadfast::Call;
use steadfast::chat::{FinishReason, Sampling, ToolChoice};
use steadfast::provider::Anthropic;
use steadfast::testing::{Answer, FakeProvider, FakeProviderBuilder, Received};

pub(crate) struct AnthropicMessages;

impl Subject for AnthropicMessages {
    type Adapter = Anthropic;

    const MODEL: &'static str = "claude-sonnet-4-6";
    const SEED: bool = false;
    const REPLY_ID: bool = true;
    const ERROR_ID: bool = true;
    const PARTS: Parts = Parts { cached_input: true, cache_write: true, reasoning: true };
    const SERVER_ERROR: &'static str = "api_error";

    fn fake() -> FakeProviderBuilder {
        FakeProvider::anthropic()
    }

    fn adapter(base_url: &str, key: &str) -> Anthropic {
        Anthropic::new(key).base_url(base_url)
    }

    fn asked(received: &Received) -> Asked {
        let body = received.json().unwrap_or_default();
        let messages = body["messages"].as_array().into_iter().flatten();
        Asked {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            system: body["system"].as_str().map(str::to_owned),
            turns: messages
                .flat_map(|message| {
                    texts(&message["content"]).into_iter().map(|text| (message["role"] == "user", text))
                })
                .collect(),
            sampling: sampling(&body, "max_tokens", "stop_sequences"),
        }
    }

    fn required() -> Sampling {
        Sampling::new().max_tokens(4_096)
    }

    fn extra() -> Value {
        json!({"metadata": {"user_id": "u-1"}})
    }

    fn finish_reasons() -> Vec<(&'static str, FinishReason)> {
        vec![
            ("end_turn", FinishReason::Stop),
            ("stop_sequence", FinishReason::Stop),
            ("max_tokens", FinishReason::Length),
            ("model_context_window_exceeded", FinishReason::Length),
            ("tool_use", FinishReason::ToolCalls),
            ("refusal", FinishReason::ContentFilter),
            ("pause_turn", FinishReason::Other),
        ]
    }

    fn answer(raw: Raw) -> Option<Answer> {
        let message = |reason: &str, content: Value| json!({"type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason});
        let text = |text: &str| json!({"type": "text", "text": text, "citations": null});
        let thinking = json!({"type": "thinking", "thinking": "Hm", "signature": "c2ln"});
        let mut body = match raw {
            Raw::Empty => message("end_turn", json!([])),
            Raw::Cut => message("max_tokens", json!([thinking])),
            Raw::Filtered | Raw::Refusal => message("refusal", json!([])),
            Raw::FilteredText => message("refusal", json!([text("Half")])),
            Raw::Reasoning => {
                message("end_turn", json!([thinking, {"type": "redacted_thinking", "data": "b3BhcXVl"}, text("Done")]))
            }
            Raw::Strange => json!({
                "id": null, "type": "message", "error": null, "container": null, "brand_new": [{}],
                "content": [{"type": "brand_new", "text": "no"}, {"type": "text", "text": null}, text("Hi"), null],
                "stop_reason": "end_turn", "stop_sequence": null, "stop_details": null,
                "usage": {"input_tokens": 1, "cache_creation_input_tokens": null, "output_tokens": 1, "brand_new": null},
            }),
            Raw::Usage => message("end_turn", json!([text("Hi")])),
        };
        match raw {
            Raw::Filtered => {
                body["stop_details"] = json!({"type": "refusal", "category": "cyber", "explanation": null});
            }
            Raw::Refusal => {
                body["stop_details"] =
                    json!({"type": "refusal", "category": null, "explanation": "I cannot help with that."});
            }
            Raw::Usage => {
                body["usage"] = json!({
                    "input_tokens": 70, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 40,
                    "output_tokens": 30, "output_tokens_details": {"thinking_tokens": 20},
                });
            }
            _ => {}
        }
        Some(Answer::raw(200).json(body))
    }

    fn unsupported() -> Option<(&'static str, Call, &'static str)> {
        Some(("claude-opus-5-5", Call::user("Hello").temperature(0.3), "temperature"))
    }
}

impl Beyond for AnthropicMessages {
    const THINKER: Option<&'static str> = Some("claude-sonnet-4-6");
    const REASONING_GOES_BACK: bool = true;

    fn asked_beyond(received: &Received) -> AskedBeyond {
        let body = received.json().unwrap_or_default();
        let choice = &body["tool_choice"];
        let mut asked = AskedBeyond {
            tools: list(&body["tools"]).map(|tool| (text(&tool["name"]), tool["input_schema"].clone())).collect(),
            choice: match choice["type"].as_str() {
                Some("any") => Some(ToolChoice::Required),
                Some("none") => Some(ToolChoice::None),
                Some("tool") => Some(ToolChoice::Named(text(&choice["name"]))),
                _ => None,
            },
            parallel: choice["disable_parallel_tool_use"].as_bool().map(|disabled| !disabled),
            json: choice["name"] == "answer_as_json_value",
            schema: body.pointer("/output_config/format/schema").cloned(),
            reasoning: body.pointer("/thinking/budget_tokens").or(body.pointer("/output_config/effort")).cloned(),
            ..AskedBeyond::default()
        };
        for block in list(&body["messages"]).flat_map(|message| list(&message["content"])) {
            match block["type"].as_str() {
                Some("tool_use") => {
                    asked.calls.push((text(&block["id"]), text(&block["name"]), block["input"].clone()));
                }
                Some("tool_result") => asked.results.push((text(&block["tool_use_id"]), text(&block["content"]))),
                Some("image") => asked.images.push(text(&block["source"]["data"])),
                Some("thinking") => asked.reasoned = true,
                _ => {}
            }
        }
        asked
    }
}
