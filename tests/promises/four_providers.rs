//! One chain over four protocols, and one call that all of them understand.

use super::support::*;
use steadfast::chat::Turn;
use steadfast::provider::{Anthropic, Bedrock, Gemini, OpenAiCompatible};
use steadfast::record::{Issues, QuotaScope};
use steadfast::testing::{Answer, FakeProvider, Fault};
use steadfast::{Call, Client, ErrorKind, Target};

const PROVIDERS: [&str; 4] = ["openai_compatible", "anthropic", "gemini", "bedrock"];

/// The four in the order of the chain, and the chain.
async fn chain() -> std::io::Result<([FakeProvider; 4], Client)> {
    let fakes = [
        FakeProvider::openai().start().await?,
        FakeProvider::anthropic().start().await?,
        FakeProvider::gemini().start().await?,
        FakeProvider::bedrock().start().await?,
    ];
    let at = |place: usize| fakes[place].base_url();
    let bedrock = Bedrock::with_credentials("us-east-1", "AKIDEXAMPLE", "bedrock-secret-1", None);
    let targets = [
        Target::new(OpenAiCompatible::new(at(0)).api_key("openai-secret-1"), "model-1"),
        Target::new(Anthropic::new("anthropic-secret-1").base_url(&at(1)), "claude-sonnet-4-6"),
        Target::new(Gemini::new("gemini-secret-1").base_url(&at(2)), "gemini-4-argon"),
        Target::new(bedrock.base_url(&at(3)), "amazon.nova-pro-v1:0"),
    ];
    let [first, rest @ ..] = targets.map(|target| target.retry(retries(0)));
    let client = built(rest.into_iter().fold(Client::builder(first), steadfast::ClientBuilder::fallback));
    Ok((fakes, client))
}

fn call() -> Call {
    Call::user("What holds a bridge up?")
        .system("Be brief.")
        .history([Turn::user("Hi"), Turn::assistant("Hello")])
        .temperature(0.5)
        .top_p(0.9)
        .max_tokens(64)
        .stop(["END"])
}

#[tokio::test]
async fn each_fails_in_its_own_way_and_one_error_names_each_cause() -> std::io::Result<()> {
    let openai = |status: u16, body: serde_json::Value| Answer::raw(status).json(body);
    let gemini = |status: u16, fixture: &str| {
        Answer::raw(status).header("content-type", "application/json").body(fixture.to_owned())
    };
    let aws = |status: u16, name: &str, said: &str| {
        Answer::raw(status).header("x-amzn-errortype", name).json(serde_json::json!({"message": said}))
    };
    let blocked = include_str!("../../fixtures/gemini/blocked_prompt.response.json");
    for (answers, codes, retryable) in [
        (
            [
                Fault::quota_exhausted(),
                Fault::overloaded(),
                gemini(400, include_str!("../../fixtures/gemini/invalid_key.response.json")),
                aws(429, "ThrottlingException:http://internal.example/", "Too many tokens per day, please wait."),
            ],
            ["provider_quota_exhausted", "overloaded", "authentication", "provider_quota_exhausted"],
            true,
        ),
        (
            [
                openai(200, serde_json::json!({"error": {"message": "m", "code": 502}})),
                Fault::quota_exhausted(),
                gemini(200, blocked),
                aws(403, "InvalidSignatureException", "The signature does not match."),
            ],
            ["server_error", "provider_quota_exhausted", "content_filtered", "authorization"],
            true,
        ),
        (
            [
                Fault::html(200),
                Fault::status(404),
                gemini(429, include_str!("../../fixtures/gemini/quota_per_day.response.json")),
                aws(400, "ValidationException", "Input is too long for requested model."),
            ],
            ["response_invalid", "not_found", "provider_quota_exhausted", "context_length_exceeded"],
            false,
        ),
        (
            [Fault::reset_before_head(), Fault::empty(), Fault::status(503), aws(424, "ModelErrorException", "m")],
            ["connection_interrupted", "empty_response", "overloaded", "server_error"],
            true,
        ),
    ] {
        let (fakes, client) = chain().await?;
        for (fake, answer) in fakes.iter().zip(answers) {
            fake.set_otherwise(answer);
        }
        let error = failure(&client, call()).await;
        assert_eq!((error.kind(), code(&error)), (ErrorKind::FallbackExhausted, "fallback_exhausted"));
        assert_eq!(target_codes(&error), codes);
        assert_eq!(error.is_retryable(), retryable, "{codes:?}");
        let providers: Vec<_> = error.targets().iter().map(|target| &*target.provider).collect();
        assert_eq!(providers, PROVIDERS);
        for (target, fake) in error.targets().iter().zip(&fakes) {
            assert_eq!(fake.requests(), 1);
            let sent = target.request.as_ref().expect("it was sent");
            let seen = &fake.journal()[0];
            assert_eq!(sent.url, format!("{}{}", fake.origin(), seen.path));
            assert_eq!(sent.body.as_ref().map(steadfast::record::Body::bytes), Some(&seen.body));
        }
        let printed = printed(&error);
        for secret in ["openai-secret-1", "anthropic-secret-1", "gemini-secret-1", "bedrock-secret-1", "AWS4-HMAC"] {
            assert!(!printed.contains(secret), "{secret} in {printed}");
        }
        if codes[3] == "provider_quota_exhausted" {
            assert!(matches!(error.targets()[3].error.issues, Some(Issues::Quota { scope: QuotaScope::Day, .. })));
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_same_call_is_answered_by_whichever_is_left() -> std::io::Result<()> {
    for good in 0..4 {
        let (fakes, client) = chain().await?;
        for fake in &fakes[..good] {
            fake.set_otherwise(Fault::overloaded());
        }
        let reply = reply(&client, call()).await;
        // Its own refusal would have been sent in place of the echo, had it not understood the call.
        assert_eq!(reply.text(), "What holds a bridge up?");
        assert_eq!((reply.target().index, &*reply.target().provider), (good, PROVIDERS[good]));
        assert_eq!(reply.attempts().len(), good);
        let requests: Vec<_> = fakes.iter().map(FakeProvider::requests).collect();
        assert_eq!(requests, (0..4).map(|place| usize::from(place <= good)).collect::<Vec<_>>());
        assert_eq!(fakes[good].journal()[0].answered, "200 echo");
    }
    Ok(())
}
