//! AWS's credentials: where they come from, how long they are good for, and what becomes of a request without good ones.

use super::support::*;
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, future};
use serde_json::{Value, json};
use std::env;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use steadfast::provider::Bedrock;
use steadfast::testing::{Answer, FakeProvider, Fault, MemoryTransport};
use steadfast::{Call, Client, ErrorCode, Target};

const MODEL: &str = "amazon.nova-pro-v1:0";
const SECRET: &str = "an/AWS+secret=1234";
const TOKEN: &str = "session/token+1234==";

/// Numbers its credentials, which are good until they are rejected.
#[derive(Clone, Debug, Default)]
struct Numbered(Arc<AtomicU32>);

impl ProvideCredentials for Numbered {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let id = format!("AKID{}", self.0.fetch_add(1, SeqCst));
        future::ProvideCredentials::ready(Ok(Credentials::new(id, SECRET, Some(TOKEN.to_owned()), None, "numbered")))
    }
}

fn fixed() -> Bedrock {
    Bedrock::with_credentials("us-east-1", "AKIDEXAMPLE", SECRET, Some(TOKEN.to_owned().into()))
}

fn client(bedrock: Bedrock, provider: &MemoryTransport, max_retries: u32) -> Client {
    client_of(provider, Target::new(bedrock.base_url(&provider.base_url()), MODEL).retry(retries(max_retries)))
}

fn answer() -> Answer {
    let message = json!({"role": "assistant", "content": [{"text": "Hello."}]});
    Answer::raw(200).json(json!({"output": {"message": message}, "stopReason": "end_turn"}))
}

fn exception(status: u16, name: &str) -> Answer {
    Answer::raw(status).header("x-amzn-errortype", name).json(json!({"message": "m"}))
}

/// The ids of the keys that requests were signed with.
fn ids(provider: &MemoryTransport) -> Vec<String> {
    let id = |header: &str| header.split(['=', '/']).nth(1).unwrap_or_default().to_owned();
    provider.journal().iter().map(|seen| id(seen.header("authorization").unwrap_or_default())).collect()
}

#[tokio::test(start_paused = true)]
async fn each_attempt_is_signed_when_it_is_sent() {
    let provider = MemoryTransport::http()
        .then(exception(429, "ThrottlingException").header("retry-after", "40"))
        .otherwise(answer());
    reply(&client(fixed(), &provider, 1), "hi").await;
    let dates: Vec<_> = provider.journal().iter().map(|seen| seen.header("x-amz-date").map(str::to_owned)).collect();
    let [Some(first), Some(second)] = &dates[..] else { panic!("two signed requests: {dates:?}") };
    let time = |date: &str| {
        let part = |range: std::ops::Range<usize>| date[range].parse::<u32>().expect("digits");
        part(9..11) * 3_600 + part(11..13) * 60 + part(13..15)
    };
    // Across midnight too.
    assert_eq!((time(second) + 86_400 - time(first)) % 86_400, 40, "{first} {second}");
    let signatures: Vec<_> =
        provider.journal().iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect();
    assert_ne!(signatures[0], signatures[1]);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_have_expired_are_fetched_again_once() {
    let numbered = Numbered::default();
    let provider =
        MemoryTransport::http().then(answer()).then(exception(403, "ExpiredTokenException")).otherwise(answer());
    let client = client(Bedrock::with_provider("us-east-1", numbered.clone()), &provider, 3);
    let start = tokio::time::Instant::now();
    reply(&client, "hi").await;
    let second = reply(&client, "hi").await;
    assert_eq!((codes(second.attempts()), start.elapsed()), (vec!["authentication"], Duration::ZERO), "at once");
    reply(&client, "hi").await;
    assert_eq!(ids(&provider), ["AKID0", "AKID0", "AKID1", "AKID1"]);

    // What was fetched for the attempt itself is not fetched again.
    provider.set_otherwise(exception(403, "ExpiredTokenException"));
    let error = failure(&client, "hi").await;
    assert_eq!((code(&error), error.status(), error.is_retryable()), ("authentication", Some(403), false));
    assert_eq!((ids(&provider).len(), numbered.0.load(SeqCst)), (6, 3));

    // Fixed ones cannot be.
    let provider = MemoryTransport::http().otherwise(exception(403, "ExpiredTokenException"));
    let error = failure(&super::bedrock::client(fixed(), &provider, 2), "hi").await;
    assert_eq!((code(&error), error.is_retryable(), provider.requests()), ("authentication", false, 1));
}

#[tokio::test(start_paused = true)]
async fn many_calls_share_what_was_fetched() {
    let numbered = Numbered::default();
    let provider = MemoryTransport::http().otherwise(answer());
    let client = client(Bedrock::with_provider("us-east-1", numbered.clone()), &provider, 0);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let client = client.clone();
        calls.spawn(async move { client.call("hi").await.is_ok() });
    }
    assert!(calls.join_all().await.into_iter().all(|good| good));
    assert_eq!((numbered.0.load(SeqCst), provider.requests()), (1, 20));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_secret_is_authorization_and_never_retried() {
    for (status, name) in [
        (403, "InvalidSignatureException"),
        (403, "UnrecognizedClientException"),
        (403, "SignatureDoesNotMatch"),
        (403, "AccessDeniedException"),
        (400, "IncompleteSignature"),
    ] {
        let provider = MemoryTransport::http().then(answer()).otherwise(exception(status, name));
        let client = client(Bedrock::with_provider("us-east-1", Numbered::default()), &provider, 3);
        reply(&client, "hi").await;
        let error = failure(&client, "hi").await;
        assert_eq!((error.code(), error.provider_type()), (Some(ErrorCode::Authorization), Some(name)));
        assert_eq!((error.is_retryable(), provider.requests()), (false, 2), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_aws_echoes_of_a_signature_is_not_told() {
    // As AWS does: with the canonical request, the headers that were signed among it.
    let provider = MemoryTransport::http().otherwise_with(|seen| {
        let header = |name: &str| seen.header(name).unwrap_or_default().to_owned();
        let (signed, token) = (header("authorization"), header("x-amz-security-token"));
        let said =
            format!("The signature does not match. Expected: x-amz-security-token:{token}; got {signed}; {SECRET}");
        Answer::raw(403).header("x-amzn-errortype", "InvalidSignatureException").json(json!({"message": said}))
    });
    let error = failure(&client(fixed(), &provider, 0), "hi").await;
    let seen = &provider.journal()[0];
    let signature = seen.header("authorization").and_then(|header| header.split("Signature=").nth(1)).expect("signed");
    assert_eq!(seen.header("x-amz-security-token"), Some(TOKEN));
    let printed = printed(&error);
    for secret in [signature, TOKEN, SECRET] {
        assert!(!printed.contains(secret), "{secret} in {printed}");
    }
    assert!(error.provider_message().is_some_and(|says| says.contains("x-amz-security-token:REDACTED")), "{error}");
    let headers = &error.request().expect("sent").headers;
    assert!(!headers.contains_key("authorization") && !headers.contains_key("x-amz-security-token"), "{headers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_calls_own_authorization_is_sent_in_place_of_a_signature() {
    let provider = MemoryTransport::http().otherwise(exception(403, "AccessDeniedException"));
    let error =
        failure(&client(fixed(), &provider, 0), Call::user("hi").header("authorization", "Bearer own-key-1")).await;
    let seen = &provider.journal()[0];
    assert_eq!((seen.header("authorization"), seen.header("x-amz-date")), (Some("Bearer own-key-1"), None));
    assert_eq!((code(&error), error.counts_toward_breaker()), ("authorization", false), "the call's own fault");
}

/// Where [`a_child`] calls.
const ENDPOINT: &str = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME";

/// Run by [`credentials_are_found_where_aws_looks_for_them`] with an environment of its own.
#[tokio::test]
#[ignore = "a part of another test"]
async fn a_child() {
    if env::var_os(ENDPOINT).is_none() {
        return;
    }
    let target = Target::new(Bedrock::from_env().expect("a region"), MODEL).retry(retries(0));
    match built(Client::builder(target)).call("hi").await {
        Ok(reply) => println!("answered: {}", reply.text()),
        Err(error) => println!("failed: {error}"),
    }
}

/// What a process with this environment, and nothing else, says.
async fn child(fake: &FakeProvider, environment: &[(&str, &str)]) -> std::io::Result<String> {
    let mut command = tokio::process::Command::new(env::current_exe()?);
    command.args(["--exact", "bedrock::a_child", "--ignored", "--nocapture"]).env_clear();
    command.env(ENDPOINT, fake.base_url()).env("AWS_EC2_METADATA_DISABLED", "true");
    for name in ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"] {
        command.env(name, "/nonexistent");
    }
    // What a program needs to start at all, on some systems.
    for name in ["PATH", "SystemRoot", "LD_LIBRARY_PATH"] {
        command.envs(env::var_os(name).map(|value| (name, value)));
    }
    let output = command.envs(environment.iter().copied()).stdin(Stdio::null()).output().await?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test]
async fn credentials_are_found_where_aws_looks_for_them() -> std::io::Result<()> {
    let task: Value = json!({
        "AccessKeyId": "AKIDTASK", "SecretAccessKey": SECRET, "Token": TOKEN, "Expiration": "2126-01-01T00:00:00Z",
    });
    let metadata = FakeProvider::http().otherwise(Answer::raw(200).json(task)).start().await?;
    let uri = format!("{}/credentials", metadata.origin());
    let region = ("AWS_DEFAULT_REGION", "eu-west-1");
    let keys = [("AWS_ACCESS_KEY_ID", "AKIDENV"), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    for (environment, begins, token) in [
        (vec![region, keys[0], keys[1]], "AWS4-HMAC-SHA256 Credential=AKIDENV/", None),
        (
            vec![region, keys[0], keys[1], ("AWS_SESSION_TOKEN", TOKEN)],
            "AWS4-HMAC-SHA256 Credential=AKIDENV/",
            Some(TOKEN),
        ),
        (
            vec![region, ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &uri)],
            "AWS4-HMAC-SHA256 Credential=AKIDTASK/",
            Some(TOKEN),
        ),
        (vec![region, keys[0], keys[1], ("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key-1")], "Bearer bedrock-key-1", None),
    ] {
        let fake = FakeProvider::bedrock().start().await?;
        let said = child(&fake, &environment).await?;
        assert!(said.contains("answered: hi"), "{said}");
        let seen = &fake.journal()[0];
        let authorization = seen.header("authorization").unwrap_or_default();
        assert!(authorization.starts_with(begins), "{authorization}");
        assert!(authorization.contains("/eu-west-1/bedrock/aws4_request") || authorization.starts_with("Bearer"));
        assert_eq!(seen.header("x-amz-security-token"), token);
    }
    assert_eq!(metadata.requests(), 1);

    let fake = FakeProvider::bedrock().otherwise(Fault::status(500)).start().await?;
    let said = child(&fake, &[region]).await?;
    assert!(said.contains("failed: bedrock/") && said.contains("AWS_ACCESS_KEY_ID"), "{said}");
    assert_eq!(fake.requests(), 0);
    Ok(())
}
