//! Another library's client, `async-openai`, made resilient in each of the three ways. Its own retries are taken out: by
//! `with_http_service`, which replaces the service that has them.

use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::{HttpRequestFactory, ReqwestService};
use async_openai::types::chat::{
    ChatCompletionRequestUserMessageArgs, CreateChatCompletionRequest, CreateChatCompletionRequestArgs,
};
use async_openai::{Client, error::ApiErrorResponse};
use bytes::Bytes;
use std::time::Duration;
use steadfast::http::{HeaderMap, Request, Response};
use steadfast::integrations::{ResilientLayer, ResilientMiddleware, Stopped};
use steadfast::provider::{Failure, RulePack};
use steadfast::resilience::{CircuitBreaker, Classify, Jitter, Policy, Retry, Stop, Verdict};
use steadfast::testing::{Answer, FakeProvider, Fault};
use tower::{Layer, ServiceExt, service_fn};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn policy() -> Policy {
    let retry = Retry::new(4).base_delay(Duration::from_millis(2)).jitter(Jitter::None);
    Policy::new().retry(retry).circuit_breaker(CircuitBreaker::consecutive(1))
}

fn config(fake: &FakeProvider) -> OpenAIConfig {
    OpenAIConfig::new().with_api_base(fake.base_url()).with_api_key("sk-test")
}

fn hello() -> Result<CreateChatCompletionRequest, OpenAIError> {
    let message = ChatCompletionRequestUserMessageArgs::default().content("Hello there.").build()?;
    CreateChatCompletionRequestArgs::default().model("gpt-5-mini").messages([message.into()]).build()
}

/// Its client on a middleware client of `reqwest`.
fn by_middleware(fake: &FakeProvider) -> Result<Client<OpenAIConfig>, Box<dyn std::error::Error>> {
    let http = reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
        .with(ResilientMiddleware::new(RulePack::openai(), policy())?)
        .build();
    let service = service_fn(move |factory: HttpRequestFactory| {
        let http = http.clone();
        async move {
            http.execute(factory.build().await?).await.map_err(|error| match error {
                reqwest_middleware::Error::Reqwest(error) => OpenAIError::Reqwest(error),
                // `anyhow` keeps a type to itself when it is boxed whole.
                reqwest_middleware::Error::Middleware(error) => OpenAIError::Boxed(match error.downcast::<Stopped>() {
                    Ok(stopped) => stopped.into(),
                    Err(error) => error.into(),
                }),
            })
        }
    });
    Ok(Client::with_config(config(fake)).with_http_service(service))
}

/// Its client on a layer over a service of `http` types.
fn by_layer(fake: &FakeProvider) -> Result<Client<OpenAIConfig>, Box<dyn std::error::Error>> {
    let http = reqwest::Client::new();
    let send = service_fn(move |request: Request<Bytes>| {
        let http = http.clone();
        async move {
            let response = http.execute(request.try_into()?).await?;
            Ok::<Response<reqwest::Body>, reqwest::Error>(response.into())
        }
    });
    let resilient = ResilientLayer::new(RulePack::openai(), policy())?.layer(send);
    let service = service_fn(move |factory: HttpRequestFactory| {
        let resilient = resilient.clone();
        async move {
            let built = factory.build().await?;
            let body = built.body().and_then(reqwest::Body::as_bytes).map(Bytes::copy_from_slice).unwrap_or_default();
            let mut request = Request::new(body);
            *request.method_mut() = built.method().clone();
            *request.headers_mut() = built.headers().clone();
            *request.uri_mut() = built.url().as_str().parse().map_err(|e| OpenAIError::Boxed(Box::new(e)))?;
            let response = resilient.oneshot(request).await.map_err(|error| OpenAIError::Boxed(error.into()))?;
            Ok::<reqwest::Response, OpenAIError>(response.map(reqwest::Body::wrap).into())
        }
    });
    Ok(Client::with_config(config(fake)).with_http_service(service))
}

async fn troubled() -> std::io::Result<FakeProvider> {
    FakeProvider::openai()
        .then(Fault::rate_limited(Duration::from_millis(40)))
        .then(Fault::status(503))
        .then(Fault::reset_before_head())
        .then(Answer::text("General Kenobi."))
        .then(Fault::quota_exhausted())
        .start()
        .await
}

/// Asks through the trouble, then into a spent quota, then against the circuit that it opened.
async fn survives(client: Client<OpenAIConfig>, fake: &FakeProvider) -> Outcome {
    let reply = client.chat().create(hello()?).await?;
    assert_eq!(reply.choices[0].message.content.as_deref(), Some("General Kenobi."));
    let journal = fake.journal();
    assert_eq!(journal.len(), 4);
    assert!(journal[1].at.saturating_sub(journal[0].at) >= Duration::from_millis(40), "not sooner than it was asked");

    // It still reads the failure as its own error.
    let error = client.chat().create(hello()?).await.expect_err("the money is spent");
    assert!(
        matches!(&error, OpenAIError::ApiError(error) if error.api_error.code.as_deref() == Some("insufficient_quota"))
    );
    assert_eq!(fake.requests(), 5);

    let error = client.chat().create(hello()?).await.expect_err("the circuit is open");
    let mut cause: &(dyn std::error::Error + 'static) = match &error {
        OpenAIError::Boxed(error) => &**error,
        other => panic!("{other:?}"),
    };
    while !cause.is::<Stopped>() {
        cause = cause.source().expect("a refusal among the causes");
    }
    let stop = cause.downcast_ref::<Stopped>().map(Stopped::stop);
    assert!(matches!(stop, Some(Stop::Circuit(_))), "{stop:?}");
    assert_eq!(fake.requests(), 5);
    Ok(())
}

#[tokio::test]
async fn behind_the_middleware_it_survives() -> Outcome {
    let fake = troubled().await?;
    survives(by_middleware(&fake)?, &fake).await
}

#[tokio::test]
async fn behind_the_layer_it_survives() -> Outcome {
    let fake = troubled().await?;
    survives(by_layer(&fake)?, &fake).await
}

/// What its errors mean. It keeps the words of the provider, not the headers: an advised wait is known from the text only.
fn verdict(rules: &RulePack, error: &OpenAIError) -> Verdict {
    match error {
        OpenAIError::Reqwest(error) => Classify::classify(rules, error),
        OpenAIError::ApiError(ApiErrorResponse { status_code, api_error }) => {
            let body = serde_json::json!({ "error": api_error }).to_string();
            rules.verdict(&Failure::answer(status_code.as_u16(), &HeaderMap::new(), body.as_bytes()))
        }
        _ => Verdict::permanent("sdk"),
    }
}

#[tokio::test]
async fn inside_a_policy_it_survives() -> Outcome {
    let fake = troubled().await?;
    let client = Client::with_config(config(&fake)).with_http_service(ReqwestService::new(reqwest::Client::new()));
    let rules = RulePack::openai();
    let policy = policy().classify(move |error: &OpenAIError| verdict(&rules, error));
    let request = hello()?;

    let reply = policy.run(|_attempt| async { client.chat().create(request.clone()).await }).await?;
    assert_eq!(reply.choices[0].message.content.as_deref(), Some("General Kenobi."));
    let journal = fake.journal();
    assert_eq!(journal.len(), 4);
    assert!(journal[1].at.saturating_sub(journal[0].at) >= Duration::from_millis(40), "not sooner than it was asked");

    let error = policy.run(|_attempt| async { client.chat().create(request.clone()).await }).await;
    let error = error.expect_err("the money is spent");
    assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::NotRetryable), 1));
    assert!(matches!(error.into_operation(), Some(OpenAIError::ApiError(_))));
    let error = policy.run(|_attempt| async { client.chat().create(request.clone()).await }).await;
    assert!(matches!(error.expect_err("the circuit is open").stop(), Some(Stop::Circuit(_))));
    assert_eq!(fake.requests(), 5);
    Ok(())
}
