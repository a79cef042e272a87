//! What the tests share: targets on memory transports, and short words for what came of a call.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use steadfast::chat::Reply;
use steadfast::provider::{AnswerFault, Capabilities, Custom, Failure, OpenAiCompatible};
use steadfast::record::{Attempt, Next};
use steadfast::resilience::{Jitter, Retry};
use steadfast::testing::{Answer, MemoryTransport};
use steadfast::{Call, Client, ClientBuilder, ErrorCode, LlmError, Target};

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// So many retries, 100 ms after the first failure, then 200, 400, ..
pub(crate) fn retries(max: u32) -> Retry {
    Retry::new(max).base_delay(ms(100)).jitter(Jitter::None)
}

pub(crate) fn memory() -> MemoryTransport {
    MemoryTransport::openai()
}

/// A target on this provider, called by its host, without retries.
pub(crate) fn target(provider: &MemoryTransport) -> Target {
    let url = provider.base_url();
    let name = url.trim_start_matches("http://").split('.').next().unwrap_or_default();
    Target::new(OpenAiCompatible::new(&url), "model-1").name(name).retry(retries(0))
}

/// A target that can do everything, in a protocol that is the crate's own data: a request goes as it is, a reply comes as it
/// is, and a stream is the words of one.
pub(crate) fn able(provider: &MemoryTransport) -> Target {
    able_of(provider, Capabilities::all())
}

/// The same with these capabilities alone.
pub(crate) fn able_of(provider: &MemoryTransport, capabilities: Capabilities) -> Target {
    let plain = Custom::new("plain", provider.base_url())
        .api_key("sk-the-plain-key")
        .capabilities(capabilities)
        .encode(|request, _| Ok(serde_json::to_value(request).expect("a request is serializable")))
        .decode(|head, body| {
            let invalid = |why: serde_json::Error| Failure::of(head, body).fault(AnswerFault::Invalid(why.to_string()));
            serde_json::from_slice(body).map_err(invalid)
        })
        .stream_event(|frame, draft| {
            draft.text(String::from_utf8_lossy(frame.data).into_owned());
            draft.finish(steadfast::chat::FinishReason::Stop);
            Ok(())
        });
    let name = provider.base_url().trim_start_matches("http://").split('.').next().unwrap_or_default().to_owned();
    Target::new(plain, "model-1").name(name).retry(retries(0))
}

/// The answer of such a target.
pub(crate) fn plainly(reply: &Reply) -> Answer {
    Answer::raw(200).json(serde_json::to_value(reply).expect("a reply is serializable"))
}

/// A client of such a target that answers this.
pub(crate) fn answering(replies: impl IntoIterator<Item = Reply>) -> (MemoryTransport, Client) {
    let provider = MemoryTransport::http().host("primary.invalid");
    replies.into_iter().for_each(|reply| provider.push(plainly(&reply)));
    let client = client_of(&provider, able(&provider));
    (provider, client)
}

/// A client of one target.
pub(crate) fn client_of(provider: &MemoryTransport, target: Target) -> Client {
    built(Client::builder(target).transport(provider.clone()))
}

pub(crate) fn built(builder: ClientBuilder) -> Client {
    builder.build().expect("the settings are right")
}

/// Two providers, and a client builder whose primary and fallback they are.
pub(crate) fn pair(primary: &MemoryTransport, fallback: &MemoryTransport) -> ClientBuilder {
    chain(target(primary), target(fallback), primary, fallback)
}

pub(crate) fn chain(
    first: Target,
    second: Target,
    primary: &MemoryTransport,
    fallback: &MemoryTransport,
) -> ClientBuilder {
    let network = steadfast::testing::MemoryNetwork::new([primary, fallback]);
    Client::builder(first).fallback(second).transport(network)
}

pub(crate) fn primary() -> MemoryTransport {
    memory().host("primary.invalid")
}

pub(crate) fn fallback() -> MemoryTransport {
    memory().host("fallback.invalid")
}

/// The error of a call that must fail.
pub(crate) async fn failure(client: &Client, call: impl Into<Call> + Send) -> LlmError {
    client.call(call).await.expect_err("the call must fail")
}

/// The reply of a call that must succeed.
pub(crate) async fn reply(client: &Client, call: impl Into<Call> + Send) -> Reply {
    client.call(call).await.expect("the call must succeed")
}

/// When each request was made, in milliseconds since the provider was made.
pub(crate) fn times(provider: &MemoryTransport) -> Vec<u128> {
    provider.journal().iter().map(|received| received.at.as_millis()).collect()
}

pub(crate) fn codes(attempts: &[Attempt]) -> Vec<&'static str> {
    attempts.iter().map(|attempt| attempt.error.code.map_or("none", ErrorCode::as_str)).collect()
}

pub(crate) fn target_codes(error: &LlmError) -> Vec<&'static str> {
    error.targets().iter().map(|target| target.error.code.map_or("none", ErrorCode::as_str)).collect()
}

pub(crate) fn next_of(attempts: &[Attempt]) -> Vec<Next> {
    attempts.iter().map(|attempt| attempt.next).collect()
}

pub(crate) fn code(error: &LlmError) -> &'static str {
    error.code().map_or("none", ErrorCode::as_str)
}

/// Polls a future so many times, then drops it. None where it was not ready by then.
pub(crate) async fn polled<F: Future>(times: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polls = 0;
    poll_fn(|cx| {
        if polls == times {
            return Poll::Ready(None);
        }
        polls += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            // Not woken again for this poll: it is dropped as it is.
            Poll::Pending if polls == times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Every text that can be printed of an error: its own, its sources', its attempts', as JSON.
pub(crate) fn printed(error: &LlmError) -> String {
    let mut out = format!("{error}\n{error:?}\n{error:#?}\n{:?}\n", error.to_snapshot());
    out.push_str(&serde_json::to_string(error).expect("an error is serializable"));
    out.push_str(&serde_json::to_string_pretty(&error.to_snapshot()).expect("a snapshot is serializable"));
    for attempt in error.attempts() {
        _ = write!(out, "{attempt:?}{attempt:#?}{}", attempt.error);
    }
    for target in error.targets() {
        _ = write!(out, "{target:?}{target:#?}{}", target.error);
    }
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        _ = writeln!(out, "{cause}\n{cause:?}\n{cause:#?}");
        source = cause.source();
    }
    out
}

/// The items that occur more than once.
pub(crate) fn repeated<'a>(items: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    items.into_iter().filter(|item| !seen.insert(*item)).collect()
}

/// Runs on a runtime of its own, with a paused clock: for properties, whose tests are not async.
pub(crate) fn paused(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(test);
}
