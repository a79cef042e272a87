//! A call that is dropped, at whichever await, leaves nothing behind.

use super::support::*;
use std::time::Duration;
use steadfast::resilience::{CircuitBreaker, CircuitState, Limiter, RateLimit, RetryBudget};
use steadfast::testing::{Answer, FakeProvider, Fault, MemoryTransport, Piece};
use steadfast::{Call, Client, Target, provider::OpenAiCompatible};
use tokio::time::{advance, sleep, timeout};

/// A body in three pieces with pauses between them.
fn in_pieces(status: u16) -> Answer {
    let body = r#"{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
    let (head, rest) = body.split_at(20);
    let (middle, tail) = rest.split_at(30);
    let pause = || Piece::pause(ms(40));
    Answer::raw(status)
        .pieces([head.to_owned().into(), pause(), middle.to_owned().into(), pause(), tail.to_owned().into()])
        .chunked()
        .delay(ms(15))
}

struct World {
    primary: MemoryTransport,
    fallback: MemoryTransport,
    limiter: Limiter,
    client: Client,
}

/// A chain with every guard, whose call meets a queue, failures with and without advice, slow bodies, and the fallback.
fn world() -> World {
    let primary = primary()
        .then(in_pieces(503))
        .then(Fault::rate_limited(ms(700)).delay(ms(5)))
        .then(Fault::connection_refused().delay(ms(5)))
        .then(Fault::truncated_body().delay(ms(5)))
        .otherwise(Fault::status(404).delay(ms(5)));
    let fallback = fallback().then(in_pieces(500)).otherwise(in_pieces(200));
    let limit = RateLimit::new().max_concurrent(1).tokens_per_minute(100_000).requests_per_minute(600).burst(2);
    let limiter = limit.max_queue_time(secs(60)).build().expect("a limiter");
    let first = target(&primary)
        .retry(retries(5))
        .rate_limit(limiter.clone())
        .circuit_breaker(CircuitBreaker::consecutive(1).recheck(true))
        .retry_budget(RetryBudget::new(secs(600), 1_000, 0.5));
    let second = target(&fallback).retry(retries(2)).rate_limit(RateLimit::new().max_concurrent(1));
    let client = built(chain(first, second, &primary, &fallback));
    World { primary, fallback, limiter, client }
}

impl World {
    fn check(&self, at: &str) {
        for target in self.client.targets() {
            let limit = target.rate_limit().expect("a limiter");
            assert_eq!((limit.in_flight, limit.queued), (0, 0), "{at}: {}", target.name());
        }
        assert_eq!((self.primary.exchanges_open(), self.fallback.exchanges_open()), (0, 0), "{at}");
        let budget = self.client.primary().retry_budget().expect("a budget");
        let made = self.primary.requests() as u64;
        assert_eq!((budget.attempts, budget.retries), (made, made.saturating_sub(1)), "{at}: marks");
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_after_any_number_of_polls_a_call_leaves_nothing() {
    let mut finished = false;
    let mut polls = 0;
    while !finished {
        let world = world();
        // Somebody else has the slot first.
        let held = world.limiter.acquire(10).await.expect("there is room");
        tokio::spawn(async move {
            sleep(ms(300)).await;
            held.settle(Some(10));
        });
        let outcome = polled(polls, world.client.call("hi")).await;
        if let Some(outcome) = outcome {
            assert_eq!(outcome.map(|reply| reply.text().to_owned()).ok().as_deref(), Some("ok"));
            finished = true;
        }
        sleep(ms(301)).await;
        world.check(&format!("after {polls} polls"));
        // And the circuit has no trial out.
        if world.client.primary().circuit() == Some(CircuitState::Open) {
            advance(secs(30)).await;
        }
        world.primary.set_otherwise(Answer::text("again"));
        while world.primary.requests() < 4 {
            world.client.call("use up the script").await.expect("the fallback answers");
        }
        let again = reply(&world.client, Call::user("hi").deadline(secs(600))).await;
        assert_eq!((again.text(), again.target().index), ("again", 0), "after {polls} polls");
        polls += 1;
    }
    assert!(polls > 15, "the call has many awaits: {polls}");
}

#[tokio::test(start_paused = true)]
async fn a_trial_dropped_after_any_number_of_polls_gives_its_slot_back() {
    for polls in 0.. {
        let provider = memory().then(Fault::status(500));
        let target = target(&provider)
            .circuit_breaker(CircuitBreaker::consecutive(1))
            .rate_limit(RateLimit::new().max_concurrent(1))
            .retry(retries(3));
        let client = client_of(&provider, target);
        failure(&client, Call::user("hi").max_retries(0)).await;
        advance(secs(30)).await;
        provider.push(in_pieces(200));
        let done = polled(polls, client.call("hi")).await.is_some();
        let limit = client.primary().rate_limit().expect("a limiter");
        assert_eq!((limit.in_flight, limit.queued, provider.exchanges_open()), (0, 0, 0), "after {polls} polls");
        let next = timeout(secs(1), client.call("hi")).await.expect("at once");
        assert!(next.is_ok(), "after {polls} polls: {next:?}");
        assert_eq!(client.primary().circuit(), Some(CircuitState::Closed), "after {polls} polls");
        if done {
            assert!(polls > 3);
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_never_polled_sends_nothing() {
    let world = world();
    drop(world.client.call("hi"));
    world.check("unpolled");
    assert_eq!(world.primary.requests(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_dropped_lets_the_next_one_through_at_once() {
    let provider = memory().otherwise(Answer::echo().delay(secs(2)));
    let limit = RateLimit::new().max_concurrent(1).max_queue_time(None);
    let client = client_of(&provider, target(&provider).rate_limit(limit));
    let call = |words: &'static str| {
        let client = client.clone();
        tokio::spawn(async move { client.call(words).await.is_ok() })
    };
    let first = call("first");
    sleep(ms(1)).await;
    let second = call("second");
    sleep(ms(1)).await;
    let third = call("third");
    sleep(ms(1)).await;
    second.abort();
    assert!(first.await.expect("no panic") && third.await.expect("no panic"));
    let asked: Vec<_> = provider.journal().iter().map(|seen| seen.at).collect();
    assert_eq!(asked, [Duration::ZERO, secs(2)]);
}

#[tokio::test]
async fn over_sockets_no_connection_and_no_task_is_left() -> std::io::Result<()> {
    let fake = FakeProvider::openai()
        .otherwise_with(|received| match received.connection % 3 {
            0 => in_pieces(200),
            1 => in_pieces(503).then_close(),
            _ => Fault::hang(),
        })
        .start()
        .await?;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for polls in 0..12 {
        let target = Target::new(OpenAiCompatible::new(fake.base_url()), "m")
            .retry(retries(2).base_delay(ms(5)))
            .timeout(ms(60))
            .rate_limit(RateLimit::new().max_concurrent(2));
        let client = built(Client::builder(target));
        let calls: Vec<_> = (0..3).map(|_| polled(polls, client.call("hi"))).collect();
        for call in calls {
            let _ = call.await;
        }
        timeout(secs(5), fake.wait_until_idle()).await.expect("no call is being answered");
        let limit = client.primary().rate_limit().expect("a limiter");
        assert_eq!((limit.in_flight, limit.queued), (0, 0), "after {polls} polls");
        // What is kept alive lives in the client's pool.
        drop(client);
        timeout(secs(5), fake.wait_until_disconnected()).await.expect("no connection");
    }
    let idle = async {
        while tasks() > before {
            sleep(ms(2)).await;
        }
    };
    timeout(secs(5), idle).await.expect("no task is left");
    Ok(())
}
