//! The middleware, in a real client that talks to a provider over sockets.

use reqwest::Body;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use steadfast::http::Extensions;
use steadfast::integrations::{ResilientMiddleware, Stopped};
use steadfast::provider::RulePack;
use steadfast::resilience::{CircuitBreaker, Classify, Interrupt, Jitter, Policy, RateLimit, Retry, RetryBudget, Stop};
use steadfast::testing::{Answer, FakeProvider, Fault, Piece};
use tokio_util::sync::CancellationToken;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const ASK: &str = r#"{"model":"gpt-5-mini","messages":[{"role":"user","content":"Hello"}]}"#;

fn quick(retries: u32) -> Policy {
    Policy::new().retry(Retry::new(retries).base_delay(Duration::from_millis(5)).jitter(Jitter::None))
}

fn middleware(policy: Policy) -> Result<ResilientMiddleware, steadfast::ConfigError> {
    ResilientMiddleware::new(RulePack::openai(), policy)
}

fn client(middleware: &ResilientMiddleware) -> ClientWithMiddleware {
    ClientBuilder::new(reqwest::Client::new()).with(middleware.clone()).build()
}

fn url(fake: &FakeProvider) -> String {
    format!("{}/chat/completions", fake.base_url())
}

fn stopped(error: Error) -> Stopped {
    let Error::Middleware(error) = error else { panic!("not a refusal: {error:?}") };
    error.downcast().expect("a refusal")
}

#[tokio::test]
async fn a_rate_limit_is_waited_out_for_exactly_as_long_as_it_asks() -> Outcome {
    let wait = Duration::from_millis(80);
    let fake = FakeProvider::openai().then(Fault::rate_limited(wait)).then(Fault::status(503)).start().await?;
    let notices = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&notices);
    let policy = quick(3).on_retry(move |notice| {
        let notice = (notice.label, notice.advised, notice.delay);
        told.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    });
    let response = client(&middleware(policy)?).post(url(&fake)).body(ASK).send().await?;
    assert_eq!(response.status(), 200);
    let text = response.text().await?;
    assert!(text.contains("Hello"), "{text}");

    let expected = [("provider_rate_limited", true, wait), ("server_error", false, Duration::from_millis(10))];
    assert_eq!(*notices.lock().unwrap_or_else(PoisonError::into_inner), expected);
    let journal = fake.journal();
    assert!(journal.iter().all(|received| received.body == ASK), "every attempt sends the whole body");
    assert!(journal[1].at.saturating_sub(journal[0].at) >= wait, "not sooner than it was asked");
    assert!(
        journal[1].reused && journal[2].reused,
        "the failures were read to their end, so one connection served all"
    );
    Ok(())
}

#[tokio::test]
async fn a_spent_quota_is_not_retried_and_comes_back_whole() -> Outcome {
    let fake = FakeProvider::openai().then(Fault::quota_exhausted()).start().await?;
    let response = client(&middleware(quick(3))?).post(url(&fake)).body(ASK).send().await?;
    assert_eq!((response.status().as_u16(), response.url().as_str()), (429, url(&fake).as_str()));
    assert!(response.headers().contains_key("x-request-id"));
    assert_eq!(response.remote_addr(), Some(fake.address()));
    let error: serde_json::Value = serde_json::from_slice(&response.bytes().await?)?;
    assert_eq!(error["error"]["code"], "insufficient_quota");
    assert_eq!(fake.requests(), 1);
    Ok(())
}

#[tokio::test]
async fn the_last_failure_comes_back_whole() -> Outcome {
    let long = "x".repeat(3 << 20);
    let fake = FakeProvider::openai()
        .then(Fault::status(503))
        .then(Answer::raw(503).header("x-last", "yes").body(long.clone()))
        .start()
        .await?;
    let response = client(&middleware(quick(1))?).post(url(&fake)).body(ASK).send().await?;
    assert_eq!((response.status().as_u16(), &response.headers()["x-last"]), (503, &"yes".parse()?));
    assert!(response.text().await? == long, "also where it is longer than what is read of a failure");
    assert_eq!(fake.requests(), 2);
    Ok(())
}

#[tokio::test]
async fn a_failure_whose_body_breaks_off_still_breaks_off() -> Outcome {
    let fake = FakeProvider::http().then(Answer::raw(400).body("0123456789").cut_after(4)).start().await?;
    let response = client(&middleware(quick(1))?).get(fake.origin()).send().await?;
    assert_eq!(response.status(), 400);
    let mut response = response;
    assert_eq!(response.chunk().await?.as_deref(), Some(&b"0123"[..]));
    response.chunk().await.expect_err("the rest never came");
    Ok(())
}

#[tokio::test]
async fn a_spent_budget_hands_the_failure_back() -> Outcome {
    let fake = FakeProvider::openai().otherwise(Fault::status(503)).start().await?;
    let policy = quick(3).retry_budget(RetryBudget::new(Duration::from_secs(60), 0, 0.0));
    let response = client(&middleware(policy)?).post(url(&fake)).body(ASK).send().await?;
    assert_eq!((response.status().as_u16(), fake.requests()), (503, 1));
    Ok(())
}

#[tokio::test]
async fn a_stream_passes_through_untouched() -> Outcome {
    let events: [Piece; 2] = ["data: one\n\n".into(), "data: two\n\n".into()];
    let fake = FakeProvider::openai()
        .then(Fault::status(500))
        .then(Answer::raw(200).header("content-type", "text/event-stream").pieces(events).chunked().then_hang())
        .start()
        .await?;
    let policy = quick(1).rate_limit(RateLimit::new().max_concurrent(1)).timeout(Duration::from_secs(10));
    let middleware = middleware(policy)?;
    // The body never ends: whatever waited for its end would not come back.
    let mut response = client(&middleware).post(url(&fake)).body(ASK).send().await?;
    assert_eq!(response.status(), 200);
    let mut read = Vec::new();
    while read.len() < 22 {
        read.extend_from_slice(&response.chunk().await?.expect("it does not end"));
    }
    assert_eq!(read, b"data: one\n\ndata: two\n\n");
    let in_flight = middleware.guards().limiter.as_ref().map(|limiter| limiter.state().in_flight);
    assert_eq!(in_flight, Some(0), "the slot is given back at the head");
    drop(response);
    fake.wait_until_idle().await;
    Ok(())
}

#[tokio::test]
async fn a_body_that_cannot_be_cloned_is_sent_once() -> Outcome {
    let fake = FakeProvider::openai().otherwise(Fault::status(503)).start().await?;
    let client = client(&middleware(quick(3))?);
    let stream = || Body::wrap(ASK.to_owned()); // as a stream, although its bytes are known
    assert!(stream().as_bytes().is_none());
    let response = client.post(url(&fake)).body(stream()).send().await?;
    assert_eq!((response.status().as_u16(), fake.requests()), (503, 1));
    assert_eq!(fake.journal()[0].body, ASK);

    let nobody = FakeProvider::refused()?;
    let error = client.post(nobody.base_url()).body(stream()).send().await.expect_err("nobody listens");
    assert!(error.is_connect(), "{error:?}");
    Ok(())
}

#[tokio::test]
async fn an_open_circuit_is_an_error_and_sends_nothing() -> Outcome {
    let fake = FakeProvider::openai().otherwise(Fault::status(503)).start().await?;
    let client = client(&middleware(quick(0).circuit_breaker(CircuitBreaker::consecutive(2)))?);
    for _ in 0..2 {
        assert_eq!(client.post(url(&fake)).body(ASK).send().await?.status(), 503);
    }
    let refusal = stopped(client.post(url(&fake)).body(ASK).send().await.expect_err("the circuit is open"));
    assert!(matches!(refusal.stop(), Stop::Circuit(circuit) if circuit.failures == 2));
    assert!(refusal.retry_after().is_some_and(|wait| wait > Duration::from_secs(25)));
    assert!(!refusal.may_have_been_sent());
    assert_eq!(fake.requests(), 2);
    Ok(())
}

#[tokio::test]
async fn a_cancelled_token_ends_the_wait_at_once() -> Outcome {
    let fake = FakeProvider::openai().otherwise(Fault::rate_limited(Duration::from_secs(50))).start().await?;
    let token = CancellationToken::new();
    let cancel = token.clone();
    let policy = quick(3).cancel_on(token).on_retry(move |_| cancel.cancel());
    let error = client(&middleware(policy)?).post(url(&fake)).body(ASK).send().await.expect_err("it was cancelled");
    let refusal = stopped(error);
    assert_eq!((refusal.stop(), refusal.attempts(), refusal.last_status()), (Stop::Cancelled, 1, Some(429)));
    assert_eq!(fake.requests(), 1);
    Ok(())
}

#[tokio::test]
async fn a_cancelled_token_ends_the_attempt() -> Outcome {
    let fake = FakeProvider::openai().then(Fault::hang()).start().await?;
    let token = CancellationToken::new();
    let client = client(&middleware(quick(3).cancel_on(token.clone()))?);
    let (outcome, ()) = tokio::join!(client.post(url(&fake)).body(ASK).send(), async {
        fake.wait_for_requests(1).await;
        token.cancel();
    });
    assert_eq!(stopped(outcome.expect_err("it was cancelled")).stop(), Stop::Cancelled);
    fake.wait_until_idle().await;
    Ok(())
}

#[tokio::test]
async fn a_head_that_does_not_come_in_time_is_tried_again() -> Outcome {
    let fake = FakeProvider::openai().then(Fault::hang()).times(2).start().await?;
    let policy = quick(1).timeout(Duration::from_millis(60));
    let client = client(&middleware(policy)?);
    let refusal = stopped(client.post(url(&fake)).body(ASK).send().await.expect_err("nobody answers"));
    assert_eq!(refusal.interrupt(), Some(Interrupt::Timeout(Duration::from_millis(60))));
    assert_eq!((refusal.attempts(), fake.requests()), (2, 2));
    assert_eq!(client.post(url(&fake)).body(ASK).send().await?.status(), 200);
    Ok(())
}

#[tokio::test]
async fn a_broken_connection_is_tried_again_and_then_told_unchanged() -> Outcome {
    let fake = FakeProvider::openai().then(Fault::reset_before_head()).start().await?;
    let client = client(&middleware(quick(1))?);
    assert_eq!(client.post(url(&fake)).body(ASK).send().await?.status(), 200);
    assert_eq!(fake.requests(), 2);

    let nobody = FakeProvider::refused()?;
    let error = client.post(nobody.base_url()).body(ASK).send().await.expect_err("nobody listens");
    assert!(matches!(&error, Error::Reqwest(error) if error.is_connect()), "{error:?}");
    assert_eq!(Classify::classify(&RulePack::openai(), &error).label, "connection_failed");
    Ok(())
}

#[tokio::test]
async fn the_cost_is_read_from_the_request_and_given_back_for_a_failure() -> Outcome {
    let fake = FakeProvider::openai().then(Fault::status(400)).start().await?;
    let policy = quick(0).rate_limit(RateLimit::new().tokens_per_minute(1_000));
    let middleware = middleware(policy)?.cost(|request| {
        let bytes = request.body().and_then(Body::as_bytes).map_or(0, <[u8]>::len);
        u32::try_from(bytes).unwrap_or(u32::MAX)
    });
    let left = || middleware.guards().limiter.as_ref().and_then(|limiter| limiter.state().tokens_remaining);
    let client = client(&middleware);
    assert_eq!(client.post(url(&fake)).body(ASK).send().await?.status(), 400);
    assert_eq!(left(), Some(1_000));
    assert_eq!(client.post(url(&fake)).body(ASK).send().await?.status(), 200);
    // What came back within the time of the test is a token or two.
    let left = left().expect("tokens are limited");
    assert!((1_000 - ASK.len() as u64..=1_000 - ASK.len() as u64 + 5).contains(&left), "{left}");
    Ok(())
}

/// Counts the requests that pass, and fails some.
struct Counting(Arc<AtomicUsize>, fn(usize) -> bool);

#[async_trait::async_trait]
impl Middleware for Counting {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let count = self.0.fetch_add(1, SeqCst);
        if (self.1)(count) {
            return Err(Error::middleware(std::io::Error::other("no token")));
        }
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn middleware_after_it_sees_every_attempt_and_before_it_one() -> Outcome {
    let fake = FakeProvider::openai().then(Fault::status(503)).times(2).start().await?;
    let (before, after) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let client = ClientBuilder::new(reqwest::Client::new())
        .with(Counting(Arc::clone(&before), |_| false))
        .with(middleware(quick(2))?)
        .with(Counting(Arc::clone(&after), |_| false))
        .build();
    assert_eq!(client.post(url(&fake)).body(ASK).send().await?.status(), 200);
    assert_eq!((before.load(SeqCst), after.load(SeqCst)), (1, 3));
    Ok(())
}

#[tokio::test]
async fn another_middlewares_own_error_is_final_and_unchanged() -> Outcome {
    let fake = FakeProvider::openai().start().await?;
    let seen = Arc::new(AtomicUsize::new(0));
    let client = ClientBuilder::new(reqwest::Client::new())
        .with(middleware(quick(2))?)
        .with(Counting(Arc::clone(&seen), |_| true))
        .build();
    let error = client.post(url(&fake)).body(ASK).send().await.expect_err("there is no token");
    assert!(matches!(&error, Error::Middleware(error) if error.is::<std::io::Error>()), "{error:?}");
    assert_eq!((seen.load(SeqCst), fake.requests()), (1, 0));
    Ok(())
}
