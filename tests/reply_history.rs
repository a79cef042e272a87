//! A reply tells what it took: every failed attempt before it, on every target.

use std::error::Error;
use std::time::Duration;
use steadfast::provider::OpenAiCompatible;
use steadfast::record::{Next, StopReason};
use steadfast::resilience::Retry;
use steadfast::testing::{Answer, FakeProvider, Fault};
use steadfast::{Client, Target};

type Outcome = Result<(), Box<dyn Error>>;

fn target(fake: &FakeProvider, name: &str) -> Target {
    let retry = Retry::new(3).base_delay(Duration::from_millis(2));
    Target::new(OpenAiCompatible::new(fake.base_url()), "m-1").name(name).retry(retry)
}

#[tokio::test]
async fn failures_on_the_target_that_answers_are_listed() -> Outcome {
    let fake = FakeProvider::openai()
        .then(Fault::rate_limited(Duration::from_millis(5)))
        .then(Fault::status(503))
        .otherwise(Answer::text("Hello."))
        .start()
        .await?;
    let reply = Client::builder(target(&fake, "only")).build()?.call("Hello?").await?;

    let statuses: Vec<_> = reply.attempts().iter().map(|attempt| attempt.error.status).collect();
    assert_eq!(statuses, [Some(429), Some(503)]);
    let advised = Next::Retried { after: Duration::from_millis(5), advised: true };
    assert_eq!(reply.attempts()[0].next, advised);
    assert!(matches!(reply.attempts()[1].next, Next::Retried { advised: false, .. }));
    assert!(reply.attempts().iter().all(|attempt| attempt.request.as_ref().is_some_and(|r| r.name == "only")));
    assert_eq!(reply.target().attempts, 3);
    Ok(())
}

#[tokio::test]
async fn failures_on_every_target_are_listed_in_order() -> Outcome {
    let down = FakeProvider::openai().otherwise(Fault::unauthorized()).start().await?;
    let busy = FakeProvider::openai().then(Fault::status(500)).otherwise(Answer::text("Hello.")).start().await?;
    let client = Client::builder(target(&down, "first")).fallback(target(&busy, "second")).build()?;
    let reply = client.call("Hello?").await?;

    let where_and_what: Vec<_> = reply
        .attempts()
        .iter()
        .map(|attempt| (attempt.request.as_ref().map(|r| r.name.as_str()), attempt.index, attempt.error.status))
        .collect();
    assert_eq!(where_and_what, [(Some("first"), 0, Some(401)), (Some("second"), 0, Some(500))]);
    assert_eq!(reply.attempts()[0].next, Next::Stopped(StopReason::NotRetryable));
    assert_eq!((reply.target().index, reply.target().attempts), (1, 2));
    Ok(())
}

#[tokio::test]
async fn a_reply_at_the_first_attempt_lists_nothing() -> Outcome {
    let fake = FakeProvider::openai().otherwise(Answer::text("Hello.")).start().await?;
    let reply = Client::builder(target(&fake, "only")).build()?.call("Hello?").await?;
    assert!(reply.attempts().is_empty());
    assert_eq!(reply.target().attempts, 1);
    Ok(())
}
