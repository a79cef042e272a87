//! Azure `OpenAI`: chat completions, at another place and with filters.

use crate::beyond::{AskedBeyond, Beyond};
use crate::openai::OpenAiChat;
use crate::subject::{Asked, Parts, Raw, Subject};
use serde_json::Value;
use steadfast::Call;
use steadfast::chat::FinishReason;
use steadfast::provider::AzureOpenAi;
use steadfast::testing::{Answer, FakeProvider, FakeProviderBuilder, Received};

/// The v1 endpoint.
pub(crate) struct AzureChat;

/// The path of a deployment, whose name tells nothing.
pub(crate) struct AzureDeployment;

macro_rules! azure {
    ($subject:ty, $deployment:literal, $unable:literal, $adapter:expr) => {
        impl Subject for $subject {
            type Adapter = AzureOpenAi;

            const MODEL: &'static str = $deployment;
            const SEED: bool = OpenAiChat::SEED;
            const REPLY_ID: bool = OpenAiChat::REPLY_ID;
            const ERROR_ID: bool = OpenAiChat::ERROR_ID;
            const PARTS: Parts = OpenAiChat::PARTS;
            const SERVER_ERROR: &'static str = OpenAiChat::SERVER_ERROR;

            fn fake() -> FakeProviderBuilder {
                FakeProvider::azure()
            }

            fn adapter(base_url: &str, key: &str) -> AzureOpenAi {
                $adapter(AzureOpenAi::new(base_url).api_key(key))
            }

            fn asked(received: &Received) -> Asked {
                OpenAiChat::asked(received)
            }

            fn extra() -> Value {
                OpenAiChat::extra()
            }

            fn finish_reasons() -> Vec<(&'static str, FinishReason)> {
                OpenAiChat::finish_reasons()
            }

            fn answer(raw: Raw) -> Option<Answer> {
                OpenAiChat::answer(raw)
            }

            fn unsupported() -> Option<(&'static str, Call, &'static str)> {
                Some(($unable, Call::user("Hello").temperature(0.3), "temperature"))
            }
        }
    };
}

azure!(AzureChat, "gpt-4.1", "gpt-5-mini", |azure| azure);
azure!(AzureDeployment, "prod", "thinker", |azure: AzureOpenAi| {
    azure.api_version("2024-10-21").deployment("prod", "gpt-4.1").deployment("thinker", "gpt-5-mini")
});

impl Beyond for AzureChat {
    const THINKER: Option<&'static str> = OpenAiChat::THINKER;

    fn asked_beyond(received: &Received) -> AskedBeyond {
        OpenAiChat::asked_beyond(received)
    }
}
