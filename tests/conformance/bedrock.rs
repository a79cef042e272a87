//! Amazon Bedrock's Converse, signed and with a key.

use crate::beyond::{AskedBeyond, Beyond};
use crate::subject::{Asked, Parts, Raw, Subject, sampling, texts};
use serde_json::{Value, json};
use steadfast::chat::{FinishReason, ToolChoice};
use steadfast::provider::Bedrock;
use steadfast::testing::{Answer, FakeProvider, FakeProviderBuilder, Received};
use steadfast::{Call, ErrorCode};

/// With AWS credentials, whose secret is the key.
pub(crate) struct BedrockSigned;

/// With a Bedrock API key.
pub(crate) struct BedrockBearer;

macro_rules! bedrock {
    ($subject:ty, $model:literal, $encoded:literal, $adapter:expr) => {
        impl Subject for $subject {
            type Adapter = Bedrock;

            const MODEL: &'static str = $model;
            const SEED: bool = false;
            const MODEL_TOLD: bool = false;
            /// AWS answers 403 whatever is wrong with credentials.
            const BAD_KEY: ErrorCode = ErrorCode::Authorization;
            const REPLY_ID: bool = true;
            const ERROR_ID: bool = true;
            const PARTS: Parts = Parts { cached_input: true, cache_write: true, reasoning: false };
            const SERVER_ERROR: &'static str = "internalServerException";

            fn fake() -> FakeProviderBuilder {
                FakeProvider::bedrock()
            }

            fn adapter(base_url: &str, key: &str) -> Bedrock {
                $adapter(key).base_url(base_url)
            }

            fn asked(received: &Received) -> Asked {
                let mut asked = asked(received);
                let expected = format!("/model/{}/converse", $encoded);
                asked.model = if received.path.trim_end_matches("-stream") == expected { $model } else { &received.path }.to_owned();
                asked
            }

            fn extra() -> Value {
                json!({"additionalModelRequestFields": {"top_k": 5}, "requestMetadata": {"team": "blue"}})
            }

            fn finish_reasons() -> Vec<(&'static str, FinishReason)> {
                vec![
                    ("end_turn", FinishReason::Stop),
                    ("stop_sequence", FinishReason::Stop),
                    ("max_tokens", FinishReason::Length),
                    ("model_context_window_exceeded", FinishReason::Length),
                    ("tool_use", FinishReason::ToolCalls),
                    ("content_filtered", FinishReason::ContentFilter),
                    ("guardrail_intervened", FinishReason::ContentFilter),
                    ("malformed_model_output", FinishReason::Other),
                ]
            }

            fn answer(raw: Raw) -> Option<Answer> {
                answer(raw).map(|body| Answer::raw(200).json(body))
            }

            fn unsupported() -> Option<(&'static str, Call, &'static str)> {
                Some(("us.anthropic.claude-opus-5-v1:0", Call::user("Hello").temperature(0.3), "temperature"))
            }
        }
    };
}

bedrock!(
    BedrockSigned,
    "anthropic.claude-3-5-sonnet-20241022-v2:0",
    "anthropic.claude-3-5-sonnet-20241022-v2%3A0",
    |key: &str| Bedrock::with_credentials("us-east-1", "AKIDEXAMPLE", key, Some("session-token-1".to_owned().into()))
);
bedrock!(
    BedrockBearer,
    "arn:aws:bedrock:eu-west-1:111122223333:inference-profile/eu.vendor.model-v1:0",
    "arn%3Aaws%3Abedrock%3Aeu-west-1%3A111122223333%3Ainference-profile%2Feu.vendor.model-v1%3A0",
    |key: &str| Bedrock::bearer("eu-west-1", key)
);

/// All that is asked but the model, which is in the path.
fn asked(received: &Received) -> Asked {
    let mut body = received.json().unwrap_or_default();
    let config = &mut body["inferenceConfig"];
    config["top_p"] = config["topP"].take();
    let messages = body["messages"].as_array().into_iter().flatten();
    Asked {
        model: String::new(),
        system: body["system"].as_array().map(|_| texts(&body["system"]).concat()),
        turns: messages
            .flat_map(|message| texts(&message["content"]).into_iter().map(|text| (message["role"] == "user", text)))
            .collect(),
        sampling: sampling(&body["inferenceConfig"], "maxTokens", "stopSequences"),
    }
}

/// Claude has a format for its answers, and a switch for parallel calls.
impl Beyond for BedrockSigned {
    const CAPABLE: &'static str = "anthropic.claude-3-7-sonnet-20250219-v1:0";
    const THINKER: Option<&'static str> = Some("anthropic.claude-3-7-sonnet-20250219-v1:0");
    const REASONING_GOES_BACK: bool = true;
    /// Arguments are an object by the protocol.
    const ARGUMENTS_ARE_TEXT: bool = false;

    fn asked_beyond(received: &Received) -> AskedBeyond {
        asked_beyond(received)
    }
}

impl Beyond for BedrockBearer {
    const ARGUMENTS_ARE_TEXT: bool = false;
    const PARALLEL: bool = false;

    fn asked_beyond(received: &Received) -> AskedBeyond {
        asked_beyond(received)
    }
}

fn asked_beyond(received: &Received) -> AskedBeyond {
    let body = received.json().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let blocks: Vec<_> = list(&body["messages"]).iter().flat_map(|message| list(&message["content"])).collect();
    let of = |kind: &str| blocks.iter().filter_map(|block| block.get(kind).cloned()).collect::<Vec<_>>();
    let tools: Vec<_> = list(&body["toolConfig"]["tools"])
        .iter()
        .map(|tool| (text(&tool["toolSpec"]["name"]), tool["toolSpec"]["inputSchema"]["json"].clone()))
        .collect();
    let choice = &body["toolConfig"]["toolChoice"];
    // The tool that stands for the form of the answer.
    let form = tools.iter().find(|(name, _)| name == "answer_as_json").map(|(_, schema)| schema.clone());
    let format = &body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"];
    let format = format.as_str().and_then(|schema| serde_json::from_str(schema).ok());
    let any = form == Some(json!({"type": "object"}));
    AskedBeyond {
        choice: match (choice["tool"]["name"].as_str(), choice.get("any")) {
            (Some(name), _) => Some(ToolChoice::Named(name.to_owned())),
            (None, Some(_)) => Some(ToolChoice::Required),
            // There is no word for none: the tools are left out.
            (None, None) => tools.is_empty().then_some(ToolChoice::None),
        },
        parallel: body["additionalModelRequestFields"]["tool_choice"]["disable_parallel_tool_use"]
            .as_bool()
            .map(|off| !off),
        calls: of("toolUse").iter().map(|c| (text(&c["toolUseId"]), text(&c["name"]), c["input"].clone())).collect(),
        results: of("toolResult").iter().map(|r| (text(&r["toolUseId"]), r["content"].to_string())).collect(),
        images: of("image").iter().map(|image| text(&image["source"]["bytes"])).collect(),
        json: any,
        schema: format.or(form.filter(|_| !any)),
        reasoning: {
            let fields = &body["additionalModelRequestFields"];
            let (form, effort) = (&fields["thinking"], &fields["output_config"]);
            (!form.is_null() || !effort.is_null()).then(|| json!([form, effort]))
        },
        reasoned: !of("reasoningContent").is_empty(),
        tools,
    }
}

fn answer(raw: Raw) -> Option<Value> {
    let message = |reason: &str, content: Value| {
        json!({
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": reason, "metrics": {"latencyMs": 9},
        })
    };
    let text = |text: &str| json!({"text": text});
    let thinking = json!({"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "c2ln"}}});
    let redacted = json!({"reasoningContent": {"redactedContent": "b3BhcXVl"}});
    Some(match raw {
        Raw::Empty => message("end_turn", json!([])),
        Raw::Cut => message("max_tokens", json!([thinking])),
        Raw::Filtered => message("content_filtered", json!([])),
        Raw::FilteredText => message("guardrail_intervened", json!([text("Half")])),
        Raw::Reasoning => message("end_turn", json!([thinking, redacted, text("Done")])),
        // A model's own refusal is told in its text alone.
        Raw::Refusal => return None,
        Raw::Strange => json!({
            "brandNew": [{}], "trace": null, "additionalModelResponseFields": null,
            "output": {"message": {"role": null, "content": [{"brandNew": {"text": "no"}}, {"text": null}, text("Hi"), null]}},
            "stopReason": "end_turn", "metrics": null,
            "usage": {"inputTokens": 1, "cacheReadInputTokens": null, "outputTokens": 1, "brandNew": null},
        }),
        Raw::Usage => {
            let mut body = message("end_turn", json!([text("Hi")]));
            body["usage"] = json!({
                "inputTokens": 70, "outputTokens": 30, "totalTokens": 100,
                "cacheReadInputTokens": 40, "cacheWriteInputTokens": 10,
            });
            body
        }
    })
}
