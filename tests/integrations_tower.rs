//! The layer over services in memory, on paused time. Over a real client: `integrations_async_openai.rs`.

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use steadfast::ConfigError;
use steadfast::http::{HeaderMap, Request, Response};
use steadfast::integrations::{Replayed, Resilient, ResilientError, ResilientLayer};
use steadfast::provider::RulePack;
use steadfast::resilience::{
    CircuitBreaker, CircuitState, Interrupt, Jitter, LimitReason, Policy, RateLimit, Retry, RetryBudget, Stop, Verdict,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tower::{Layer, Service, ServiceExt};

type Failure = Box<dyn Error + Send + Sync>;
type Outcome = Result<(), Failure>;
type Sent = Response<BoxBody<Bytes, io::Error>>;

/// What a service in memory does with one request.
enum Then {
    Answer(Sent),
    Fail(io::Error),
    Hang,
}

/// A service that answers as it is told, and says when it was asked.
#[derive(Clone)]
struct Scripted(Arc<Script>);

struct Script {
    then: Mutex<VecDeque<Then>>,
    asked: Mutex<Vec<(Instant, Bytes)>>,
}

impl Scripted {
    fn new(then: impl IntoIterator<Item = Then>) -> Self {
        Self(Arc::new(Script { then: Mutex::new(then.into_iter().collect()), asked: Mutex::default() }))
    }

    fn asked(&self) -> Vec<(Instant, Bytes)> {
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Service<Request<Bytes>> for Scripted {
    type Response = Sent;
    type Error = io::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Sent, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), request.into_body()));
        let then = self.0.then.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Box::pin(async move {
            match then {
                Some(Then::Answer(response)) => Ok(response),
                Some(Then::Fail(error)) => Err(error),
                Some(Then::Hang) | None => std::future::pending().await,
            }
        })
    }
}

fn answer(status: u16, headers: &[(&str, &str)], body: &'static str) -> Then {
    with_body(status, headers, Full::from(body).map_err(|never: Infallible| match never {}).boxed())
}

fn with_body(status: u16, headers: &[(&str, &str)], body: BoxBody<Bytes, io::Error>) -> Then {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    Then::Answer(response.body(body).expect("a valid response"))
}

fn layer(policy: Policy) -> Result<ResilientLayer, ConfigError> {
    ResilientLayer::new(RulePack::openai(), policy)
}

fn over(service: &Scripted, policy: Policy) -> Result<Resilient<Scripted>, ConfigError> {
    Ok(layer(policy)?.layer(service.clone()))
}

fn quick(retries: u32) -> Policy {
    Policy::new().retry(Retry::new(retries).base_delay(Duration::from_millis(100)).jitter(Jitter::None))
}

fn ask(body: &'static str) -> Request<Bytes> {
    Request::post("/v1/chat/completions").body(Bytes::from(body)).expect("a valid request")
}

async fn text(body: Replayed<BoxBody<Bytes, io::Error>>) -> Result<String, Failure> {
    Ok(String::from_utf8(body.collect().await?.to_bytes().to_vec())?)
}

const SPENT: &str = r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
const OVERLOADED: &str = r#"{"error":{"message":"The server is overloaded","type":"server_error"}}"#;

#[tokio::test(start_paused = true)]
async fn waits_exactly_as_long_as_the_headers_or_the_body_ask() -> Outcome {
    const SAID: &str = r#"{"error":{"message":"Please try again in 7.66s.","code":"rate_limit_exceeded"}}"#;
    let service = Scripted::new([
        answer(429, &[("retry-after-ms", "1500")], ""),
        answer(429, &[], SAID),
        answer(503, &[], OVERLOADED),
        answer(200, &[], "done"),
    ]);
    let notices = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&notices);
    let policy = quick(3).on_retry(move |notice| {
        told.lock().unwrap_or_else(PoisonError::into_inner).push((notice.label, notice.advised, notice.delay));
    });
    let response = over(&service, policy)?.oneshot(ask("hello")).await?;
    assert_eq!(response.status(), 200);
    assert_eq!(text(response.into_body()).await?, "done");

    let asked = service.asked();
    let waits: Vec<_> = asked.windows(2).map(|two| (two[1].0 - two[0].0).as_millis()).collect();
    assert_eq!(waits, [1_500, 7_660, 400]);
    assert!(asked.iter().all(|(_, body)| body == "hello"), "every attempt sends the whole body");
    let ms = Duration::from_millis;
    assert_eq!(
        *notices.lock().unwrap_or_else(PoisonError::into_inner),
        [
            ("provider_rate_limited", true, ms(1_500)),
            ("provider_rate_limited", true, ms(7_660)),
            ("overloaded", false, ms(400))
        ]
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_spent_quota_is_not_retried_and_comes_back_whole() -> Outcome {
    let service = Scripted::new([answer(429, &[("retry-after", "1"), ("x-request-id", "r1")], SPENT)]);
    let response = over(&service, quick(3))?.oneshot(ask("hello")).await?;
    assert_eq!((response.status().as_u16(), &response.headers()["x-request-id"]), (429, &"r1".parse()?));
    assert!(matches!(response.body(), Replayed::Read(bytes) if bytes == SPENT));
    assert_eq!(text(response.into_body()).await?, SPENT);
    assert_eq!(service.asked().len(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_last_failure_comes_back_when_retries_are_used_up() -> Outcome {
    let service = Scripted::new([answer(503, &[], "first"), answer(503, &[], OVERLOADED)]);
    let response = over(&service, quick(1))?.oneshot(ask("hello")).await?;
    assert_eq!(response.status(), 503);
    assert_eq!(text(response.into_body()).await?, OVERLOADED);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_last_failure_comes_back_when_the_budget_or_the_time_is_spent() -> Outcome {
    let service = Scripted::new([answer(503, &[], OVERLOADED)]);
    let policy = quick(3).retry_budget(RetryBudget::new(Duration::from_secs(60), 0, 0.0));
    let response = over(&service, policy)?.oneshot(ask("hello")).await?;
    assert_eq!((response.status().as_u16(), text(response.into_body()).await?.as_str()), (503, OVERLOADED));

    let service = Scripted::new([answer(429, &[("retry-after", "30")], "wait")]);
    let response = over(&service, quick(3).deadline(Duration::from_secs(10)))?.oneshot(ask("hello")).await?;
    assert_eq!((response.status().as_u16(), text(response.into_body()).await?.as_str()), (429, "wait"));
    assert_eq!(service.asked().len(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_status_lists_of_the_policy_are_kept_to() -> Outcome {
    let retry = Retry::new(1).retry_status([404]).non_retryable_status([503]);
    let service = Scripted::new([answer(404, &[], "not yet"), answer(503, &[], OVERLOADED)]);
    let response = over(&service, Policy::new().retry(retry))?.oneshot(ask("hello")).await?;
    assert_eq!((response.status().as_u16(), service.asked().len()), (503, 2));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_streamed_success_passes_through_as_it_comes() -> Outcome {
    let (pieces, frames) = tokio::sync::mpsc::unbounded_channel::<&'static str>();
    let body = BoxBody::new(Channel(frames));
    let service = Scripted::new([with_body(200, &[("content-type", "text/event-stream")], body)]);
    let policy = quick(1).rate_limit(RateLimit::new().max_concurrent(1)).timeout(Duration::from_secs(1));
    let layer = layer(policy)?;
    let response = layer.layer(service).oneshot(ask("hello")).await?;
    assert!(matches!(response.body(), Replayed::Live(_)));
    let in_flight = layer.guards().limiter.as_ref().map(|limiter| limiter.state().in_flight);
    assert_eq!(in_flight, Some(0), "the slot is given back at the head");

    // The timeout was that of the head: the body may take as long as it likes.
    let mut body = response.into_body();
    for piece in ["data: one\n\n", "data: two\n\n"] {
        sleep(Duration::from_secs(60)).await;
        pieces.send(piece)?;
        assert_eq!(body.frame().await.transpose()?.and_then(|frame| frame.into_data().ok()), Some(piece.into()));
    }
    drop(pieces);
    assert!(body.frame().await.is_none());
    Ok(())
}

/// A body whose pieces come through a channel.
struct Channel(tokio::sync::mpsc::UnboundedReceiver<&'static str>);

impl http_body::Body for Channel {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(http_body::Frame::data(piece.into()))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_long_or_slow_comes_back_whole_too() -> Outcome {
    // Longer than what is read of a failure.
    let long = "x".repeat(3 << 20);
    let piece: &'static str = Box::leak(long[..1 << 19].to_owned().into_boxed_str());
    let (pieces, frames) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..6 {
        pieces.send(piece)?;
    }
    drop(pieces);
    let service = Scripted::new([with_body(400, &[], BoxBody::new(Channel(frames)))]);
    let response = over(&service, quick(1))?.oneshot(ask("hello")).await?;
    assert!(matches!(response.body(), Replayed::Begun(begun) if begun.read().len() == 1 << 20));
    assert_eq!(text(response.into_body()).await?, long);

    // Slower than it is waited for.
    let (pieces, frames) = tokio::sync::mpsc::unbounded_channel();
    pieces.send("first, ")?;
    let service = Scripted::new([with_body(400, &[], BoxBody::new(Channel(frames)))]);
    let started = Instant::now();
    let response = over(&service, quick(1))?.oneshot(ask("hello")).await?;
    assert_eq!(started.elapsed().as_secs(), 5);
    pieces.send("last")?;
    drop(pieces);
    assert_eq!(text(response.into_body()).await?, "first, last");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_timeout_while_a_failure_is_read_leaves_its_status() -> Outcome {
    let (pieces, frames) = tokio::sync::mpsc::unbounded_channel();
    pieces.send("slow")?;
    let service = Scripted::new([with_body(503, &[], BoxBody::new(Channel(frames)))]);
    let policy = quick(0).timeout(Duration::from_secs(2));
    let started = Instant::now();
    let response = over(&service, policy)?.oneshot(ask("hello")).await?;
    assert_eq!((started.elapsed().as_secs(), response.status().as_u16()), (2, 503));
    drop(pieces);
    assert_eq!(text(response.into_body()).await?, "slow");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn trailers_and_errors_of_a_failures_body_are_kept() -> Outcome {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-trailer", "t".parse()?);
    let with_trailers = Full::from("bad").map_err(|never: Infallible| match never {});
    let with_trailers = with_trailers.with_trailers(std::future::ready(Some(Ok(trailers.clone()))));
    let service = Scripted::new([with_body(400, &[], with_trailers.boxed())]);
    let collected = over(&service, quick(0))?.oneshot(ask("hello")).await?.into_body().collect().await?;
    assert_eq!((collected.trailers().cloned(), collected.to_bytes()), (Some(trailers), "bad".into()));

    let broken: Vec<Result<http_body::Frame<Bytes>, io::Error>> =
        vec![Ok(http_body::Frame::data("ba".into())), Err(io::ErrorKind::ConnectionReset.into())];
    let service = Scripted::new([with_body(400, &[], BoxBody::new(StreamBody::new(Frames(broken.into()))))]);
    let mut body = over(&service, quick(0))?.oneshot(ask("hello")).await?.into_body();
    assert_eq!(body.frame().await.transpose()?.and_then(|frame| frame.into_data().ok()), Some("ba".into()));
    let error = body.frame().await.expect("the error").expect_err("the error");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(body.frame().await.is_none());
    Ok(())
}

struct Frames(VecDeque<Result<http_body::Frame<Bytes>, io::Error>>);

impl futures_core::Stream for Frames {
    type Item = Result<http_body::Frame<Bytes>, io::Error>;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front())
    }
}

/// A body that tells when it is let go.
struct Held(Arc<AtomicBool>);

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, io::Error>>> {
        Poll::Pending
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn no_connection_is_held_during_a_wait() -> Outcome {
    let gone = Arc::new(AtomicBool::new(false));
    let service = Scripted::new([with_body(503, &[], BoxBody::new(Held(Arc::clone(&gone)))), answer(200, &[], "done")]);
    let seen = Arc::new(AtomicUsize::new(0));
    let (gone_then, seen_then) = (Arc::clone(&gone), Arc::clone(&seen));
    let policy = quick(1).on_retry(move |_| {
        seen_then.fetch_add(if gone_then.load(SeqCst) { 1 } else { 100 }, SeqCst);
    });
    let response = over(&service, policy)?.oneshot(ask("hello")).await?;
    assert_eq!((response.status().as_u16(), seen.load(SeqCst)), (200, 1));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_services_own_error_comes_back_unchanged() -> Outcome {
    let reset = || Then::Fail(io::Error::new(io::ErrorKind::ConnectionReset, "reset by a test"));
    let service = Scripted::new([reset(), reset()]);
    let error = over(&service, quick(1))?.oneshot(ask("hello")).await.expect_err("it failed");
    let ResilientError::Service(error) = error else { panic!("{error:?}") };
    assert_eq!(error.downcast_ref::<io::Error>().map(ToString::to_string).as_deref(), Some("reset by a test"));
    assert_eq!(service.asked().len(), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_the_services_errors_mean_can_be_said() -> Outcome {
    let service = Scripted::new([Then::Fail(io::Error::other("a bad template"))]);
    let layer = layer(quick(3))?.classify_errors(|error| match error.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::Other => Verdict::permanent("template"),
        _ => Verdict::transient("service"),
    });
    layer.layer(service.clone()).oneshot(ask("hello")).await.expect_err("it failed");
    assert_eq!(service.asked().len(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_open_circuit_is_an_error_that_says_when_to_come_back() -> Outcome {
    let service = Scripted::new([answer(503, &[], OVERLOADED), answer(200, &[], "well again")]);
    let breaker = CircuitBreaker::consecutive(1).cooldown(Duration::from_secs(30));
    let layer = layer(quick(0).circuit_breaker(breaker))?;
    let resilient = layer.layer(service.clone());
    assert_eq!(resilient.clone().oneshot(ask("hello")).await?.status(), 503);

    let error = resilient.clone().oneshot(ask("hello")).await.expect_err("the circuit is open");
    let ResilientError::Stopped(stopped) = error else { panic!("{error:?}") };
    assert!(matches!(stopped.stop(), Stop::Circuit(refusal) if refusal.last_tag == Some(503)));
    assert_eq!((stopped.attempts(), stopped.may_have_been_sent()), (0, false));
    assert_eq!(stopped.retry_after(), Some(Duration::from_secs(30)));
    assert_eq!(service.asked().len(), 1);

    sleep(Duration::from_secs(30)).await;
    assert_eq!(resilient.oneshot(ask("hello")).await?.status(), 200);
    let state = layer.guards().breaker.as_ref().map(steadfast::resilience::Breaker::state);
    assert!(matches!(state, Some(CircuitState::Closed)), "{state:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_callers_mistake_does_not_open_the_circuit() -> Outcome {
    let service = Scripted::new([answer(400, &[], "no model"), answer(200, &[], "done")]);
    let resilient = over(&service, quick(0).circuit_breaker(CircuitBreaker::consecutive(1)))?;
    assert_eq!(resilient.clone().oneshot(ask("hello")).await?.status(), 400);
    assert_eq!(resilient.oneshot(ask("hello")).await?.status(), 200);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_cost_is_read_from_the_request() -> Outcome {
    let service = Scripted::new([answer(200, &[], "done"), answer(503, &[], OVERLOADED)]);
    let policy = quick(0).rate_limit(RateLimit::new().tokens_per_minute(10));
    let layer = layer(policy)?.cost(|request: &Request<Bytes>| u32::try_from(request.body().len()).unwrap_or(u32::MAX));
    let left = || layer.guards().limiter.as_ref().and_then(|limiter| limiter.state().tokens_remaining);
    let resilient = layer.layer(service.clone());

    resilient.clone().oneshot(ask("hello")).await?;
    assert_eq!(left(), Some(5), "the estimate stays");
    resilient.clone().oneshot(ask("bye")).await?;
    assert_eq!(left(), Some(5), "a failure costs nothing");
    let error = resilient.oneshot(ask("much too long")).await.expect_err("it never fits");
    let ResilientError::Stopped(stopped) = error else { panic!("{error:?}") };
    assert!(matches!(stopped.stop(), Stop::Limit(refusal) if refusal.reason == LimitReason::Capacity));
    assert_eq!(service.asked().len(), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_token_ends_a_wait_and_an_attempt() -> Outcome {
    let token = CancellationToken::new();
    let service = Scripted::new([answer(429, &[("retry-after", "30")], "")]);
    let resilient = over(&service, quick(3).cancel_on(token.clone()))?;
    let (outcome, ()) = tokio::join!(resilient.oneshot(ask("hello")), async {
        sleep(Duration::from_secs(1)).await;
        token.cancel();
    });
    let ResilientError::Stopped(stopped) = outcome.expect_err("it was cancelled") else { panic!("not stopped") };
    assert_eq!((stopped.stop(), stopped.attempts(), stopped.last_status()), (Stop::Cancelled, 1, Some(429)));

    let token = CancellationToken::new();
    let service = Scripted::new([Then::Hang]);
    let resilient = over(&service, quick(3).cancel_on(token.clone()))?;
    let (outcome, ()) = tokio::join!(resilient.oneshot(ask("hello")), async { token.cancel() });
    let ResilientError::Stopped(stopped) = outcome.expect_err("it was cancelled") else { panic!("not stopped") };
    assert_eq!((stopped.stop(), stopped.may_have_been_sent()), (Stop::Cancelled, true));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_token_ends_the_reading_of_a_failure() -> Outcome {
    let (_pieces, frames) = tokio::sync::mpsc::unbounded_channel();
    let token = CancellationToken::new();
    let service = Scripted::new([with_body(400, &[], BoxBody::new(Channel(frames)))]);
    let resilient = over(&service, quick(3).cancel_on(token.clone()))?;
    let (outcome, ()) = tokio::join!(resilient.oneshot(ask("hello")), async {
        sleep(Duration::from_secs(1)).await;
        token.cancel();
    });
    let ResilientError::Stopped(stopped) = outcome.expect_err("it was cancelled") else { panic!("not stopped") };
    assert_eq!((stopped.stop(), stopped.last_status()), (Stop::Cancelled, Some(400)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_costs_nothing_and_may_always_be_tried_again() -> Outcome {
    let refused = || Then::Fail(io::ErrorKind::ConnectionRefused.into());
    let reset = || Then::Fail(io::ErrorKind::ConnectionReset.into());
    let retry = Retry::new(1).base_delay(Duration::ZERO).idempotent(false);
    let service = Scripted::new([refused(), refused(), reset()]);
    let layer = layer(Policy::new().retry(retry).rate_limit(RateLimit::new().tokens_per_minute(100)).cost(|| 30))?;
    let left = || layer.guards().limiter.as_ref().and_then(|limiter| limiter.state().tokens_remaining);
    let resilient = layer.layer(service.clone());

    resilient.clone().oneshot(ask("hello")).await.expect_err("refused twice");
    assert_eq!((service.asked().len(), left()), (2, Some(100)));
    resilient.oneshot(ask("hello")).await.expect_err("reset");
    assert_eq!((service.asked().len(), left()), (3, Some(70)), "it may have arrived: once, and the estimate stays");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_is_a_timeout() -> Outcome {
    let service = Scripted::new([Then::Hang, Then::Hang]);
    let policy = quick(1).timeout(Duration::from_secs(2));
    let error = over(&service, policy)?.oneshot(ask("hello")).await.expect_err("nobody answered");
    let ResilientError::Stopped(stopped) = error else { panic!("{error:?}") };
    assert_eq!(stopped.interrupt(), Some(Interrupt::Timeout(Duration::from_secs(2))));
    assert_eq!((stopped.stop(), stopped.attempts()), (Stop::UsedUp, 2));
    assert_eq!(stopped.to_string(), "timed out after 2s, after 2 attempts");

    let service = Scripted::new([Then::Hang]);
    let policy = quick(1).deadline(Duration::from_secs(2));
    let error = over(&service, policy)?.oneshot(ask("hello")).await.expect_err("nobody answered");
    let ResilientError::Stopped(stopped) = error else { panic!("{error:?}") };
    assert_eq!((stopped.stop(), stopped.interrupt()), (Stop::Deadline, Some(Interrupt::Deadline)));
    Ok(())
}

/// Ready at the second poll only, and broken when it is called before that.
struct Reluctant {
    polled: usize,
    calls: Arc<AtomicUsize>,
}

impl Clone for Reluctant {
    fn clone(&self) -> Self {
        Self { polled: 0, calls: Arc::clone(&self.calls) }
    }
}

impl Service<Request<Bytes>> for Reluctant {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.polled += 1;
        if self.polled > 1 {
            return Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn call(&mut self, _: Request<Bytes>) -> Self::Future {
        assert!(self.polled > 1, "called before it was ready");
        let status = if self.calls.fetch_add(1, SeqCst) == 0 { 503 } else { 204 };
        std::future::ready(Ok(Response::builder().status(status).body(Empty::new()).expect("a valid response")))
    }
}

#[tokio::test(start_paused = true)]
async fn a_clone_is_driven_to_readiness_for_each_attempt() -> Outcome {
    let calls = Arc::new(AtomicUsize::new(0));
    let service = layer(quick(1))?.layer(Reluctant { polled: 0, calls: Arc::clone(&calls) });
    assert_eq!((service.oneshot(ask("hello")).await?.status().as_u16(), calls.load(SeqCst)), (204, 2));
    Ok(())
}

#[tokio::test]
async fn settings_that_are_out_of_range_are_an_error_at_once() {
    let policy = Policy::new().retry(Retry::new(1).factor(0.5)).timeout(Duration::ZERO);
    let error = layer(policy).expect_err("two settings are wrong").to_string();
    assert!(error.contains("factor") && error.contains("timeout"), "{error}");
}
