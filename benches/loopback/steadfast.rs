//! The crate itself.

use crate::subject::{KEY, MAX_TOKENS, MODEL, QUESTION, SYSTEM, Streaming, Subject, TEMPERATURE};
use std::hint::black_box;
use std::time::Duration;
use steadfast::chat::FinishReason;
use steadfast::provider::OpenAi;
use steadfast::resilience::{CircuitBreaker, RateLimit, Retry, RetryBudget};
use steadfast::{Call, Client, ClientBuilder, ReplyStream, Target};

/// One client, as an application holds it.
pub(crate) struct Steadfast(Client);

impl Steadfast {
    /// As it comes, with retries and a timeout, and with a fallback.
    pub(crate) fn new(base: &str) -> Self {
        let target = || Target::new(OpenAi::new(KEY).base_url(base), MODEL);
        Self::with(Client::builder(target()).fallback(target()))
    }

    /// Everything that can guard a target, none of which ever refuses.
    pub(crate) fn guarded(base: &str) -> Self {
        Self::with(Client::builder(Self::guarded_target(base)).fallback(Self::guarded_target(base)))
    }

    /// The same, and somebody who is told of every event.
    pub(crate) fn observed(base: &str) -> Self {
        let client = Client::builder(Self::guarded_target(base)).fallback(Self::guarded_target(base));
        Self::with(client.on_event(|event| {
            black_box(event);
        }))
    }

    fn guarded_target(base: &str) -> Target {
        Target::new(OpenAi::new(KEY).base_url(base), MODEL)
            .retry(Retry::new(3).base_delay(Duration::from_millis(200)))
            .circuit_breaker(CircuitBreaker::consecutive(5).cooldown(Duration::from_secs(30)))
            .retry_budget(RetryBudget::new(Duration::from_secs(60), 10, 0.1))
            .rate_limit(
                RateLimit::new().requests_per_minute(u32::MAX).tokens_per_minute(1 << 50).max_concurrent(100_000),
            )
            .timeout(Duration::from_secs(30))
    }

    fn with(client: ClientBuilder) -> Self {
        Self(client.build().expect("the settings hold"))
    }
}

fn question() -> Call {
    Call::user(QUESTION).system(SYSTEM).max_tokens(MAX_TOKENS).temperature(f64::from(TEMPERATURE))
}

impl Streaming for Steadfast {
    type Stream = (ReplyStream, usize);

    async fn open(&self) -> Self::Stream {
        let mut stream = self.0.stream(question()).await.expect("the loopback server streams");
        let first = stream.next().await.expect("it has text").expect("the stream is sound");
        (stream, first.text().len())
    }

    async fn drain(&self, (mut stream, mut length): Self::Stream) -> usize {
        while let Some(chunk) = stream.next().await {
            length += chunk.expect("the stream is sound").text().len();
        }
        let reply = stream.into_reply().await.expect("the stream was whole");
        assert!(reply.finish_reason() == FinishReason::Stop);
        assert!(reply.usage().is_some_and(|usage| usage.total == 138));
        length
    }
}

impl Subject for Steadfast {
    async fn call(&self) -> usize {
        let reply = self.0.call(question()).await.expect("the loopback server answers");
        assert!(reply.finish_reason() == FinishReason::Stop);
        assert!(reply.model().is_some_and(|model| model.starts_with(MODEL)));
        assert!(reply.usage().is_some_and(|usage| usage.total == 138));
        reply.text().len()
    }
}
