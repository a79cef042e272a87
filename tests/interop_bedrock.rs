//! Signatures, checked by botocore: a gate that refuses what AWS would refuse, and passes the rest on to a fake Bedrock.
//!
//! It is not part of this project. Where `STEADFAST_BEDROCK_GATE` names its origin, these tests call it; otherwise they
//! say so and pass. The gate knows one key, whose secret is AWS's own example.

use std::env;
use std::error::Error;
use std::time::Duration;
use steadfast::chat::{Reply, Turn};
use steadfast::provider::Bedrock;
use steadfast::resilience::Retry;
use steadfast::{Call, Client, ConfigError, ErrorCode, ErrorKind, LlmError, Target};

const GATE: &str = "STEADFAST_BEDROCK_GATE";
const REGION: &str = "us-east-1";
const ID: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

const MODELS: &[&str] = &[
    "anthropic.claude-3-5-sonnet-20241022-v2:0",
    "eu.amazon.nova-pro-v1:0",
    "arn:aws:bedrock:us-east-1:111122223333:inference-profile/us.meta.llama4-maverick-17b-instruct-v1:0",
    "arn:aws:bedrock:us-east-1:111122223333:application-inference-profile/abc123def456",
    "a b+c~d=e&f%41ü",
];

/// The gate's origin; none is said once a test.
fn gate() -> Option<String> {
    let origin = env::var(GATE).ok().filter(|origin| !origin.is_empty());
    if origin.is_none() {
        println!("SKIPPED: {GATE} names no gate");
    }
    origin
}

fn client(bedrock: Bedrock, origin: &str, model: &str, retries: u32) -> Result<Client, ConfigError> {
    let retry = Retry::new(retries).base_delay(Duration::from_millis(10));
    Client::builder(Target::new(bedrock.base_url(origin), model).retry(retry)).build()
}

fn signed(secret: &str, token: Option<&str>) -> Bedrock {
    Bedrock::with_credentials(REGION, ID, secret, token.map(Into::into))
}

/// The gate let it pass. What stands behind it may have no answer to these words: that is its own matter.
fn passes(outcome: Result<Reply, LlmError>) -> Result<(), Box<dyn Error>> {
    match outcome {
        Err(error) if error.status().is_none_or(|status| status == 403) => Err(error.into()),
        _ => Ok(()),
    }
}

#[tokio::test]
async fn every_model_body_and_token_is_signed_as_botocore_signs_it() -> Result<(), Box<dyn Error>> {
    let Some(origin) = gate() else { return Ok(()) };
    for model in MODELS {
        for token in [None, Some("FwoGZXIvYXdzEBYaDHVz+/=")] {
            let client = client(signed(SECRET, token), &origin, model, 0)?;
            for words in ["hi", "Grüße aus Tromsø, 你好 🦀 \u{1}\t\"\\", &"long ".repeat(5_000)] {
                let call = Call::user(words)
                    .system("Antworte kürzer.")
                    .history([Turn::user("Ça va ?"), Turn::assistant("Oui.")])
                    .temperature(0.5)
                    .extra(serde_json::json!({"requestMetadata": {"ünit": "blüe"}}));
                passes(client.call(call).await)?;
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_headers_of_a_call_do_not_spoil_its_signature() -> Result<(), Box<dyn Error>> {
    let Some(origin) = gate() else { return Ok(()) };
    let call = Call::user("hi")
        .header("x-amzn-bedrock-trace", "ENABLED")
        .header("x-amz-custom", "  two   spaces ")
        .header("traceparent", "00-abc-def-01")
        .header("user-agent", "own/1")
        .request_id("call-1");
    passes(client(signed(SECRET, None), &origin, MODELS[0], 0)?.call(call).await)
}

#[tokio::test]
async fn a_wrong_secret_or_key_is_authorization_and_not_retried() -> Result<(), Box<dyn Error>> {
    let Some(origin) = gate() else { return Ok(()) };
    let unknown = Bedrock::with_credentials(REGION, "AKIDOTHER", SECRET, None);
    let elsewhere = Bedrock::with_credentials("eu-west-1", ID, SECRET, None);
    for (bedrock, kind) in [
        (signed("another-secret", Some("session-token-1")), "InvalidSignatureException"),
        (unknown, "UnrecognizedClientException"),
        (elsewhere, "InvalidSignatureException"),
        (Bedrock::bearer(REGION, "no-signature"), "MissingAuthenticationTokenException"),
    ] {
        let outcome = client(bedrock, &origin, MODELS[0], 2)?.call("hi").await;
        let error = outcome.err().ok_or("it succeeded")?;
        assert_eq!((error.kind(), error.code()), (ErrorKind::Api, Some(ErrorCode::Authorization)), "{error}");
        assert_eq!((error.status(), error.provider_type()), (Some(403), Some(kind)));
        assert_eq!((error.is_retryable(), error.attempts().len()), (false, 0), "one request was made");
        // The gate quotes the canonical request, with the session token in it.
        let printed = format!("{error}{error:#?}{}", serde_json::to_string(&error)?);
        assert!(!printed.contains("session-token-1") && !printed.contains("another-secret"), "{printed}");
    }
    Ok(())
}
