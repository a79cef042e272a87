//! The engine, and each of its parts alone.
//!
//! The parts by themselves are asked through their public methods, each of which reads the clock where it needs the time;
//! the engine reads it once for all of them.

use crate::bench::{Bench, pending_once, spin};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use steadfast::provider::OpenAi;
use steadfast::resilience::{
    CircuitBreaker, LimitRefusal, Limiter, Outcome, Permit, Policy, RateLimit, Retry, RetryBudget,
};
use steadfast::{Client, ErrorCode, Target};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

fn breaker() -> CircuitBreaker {
    CircuitBreaker::consecutive(5).cooldown(Duration::from_secs(30))
}

fn rolling_breaker() -> CircuitBreaker {
    CircuitBreaker::rolling(Duration::from_secs(60), 20, 0.5)
}

fn budget() -> RetryBudget {
    RetryBudget::new(Duration::from_secs(60), 10, 0.1)
}

/// Limits of every kind, none of which is ever reached.
fn limits() -> RateLimit {
    RateLimit::new().requests_per_minute(u32::MAX).tokens_per_minute(1 << 50).max_concurrent(100_000)
}

fn everything() -> Policy {
    Policy::new().circuit_breaker(breaker()).retry_budget(budget()).rate_limit(limits()).cost(|| 300)
}

/// Breaker, budget and limiter, each by itself.
pub(crate) fn parts(bench: &Bench) {
    bench.heading("steadfast's parts");
    for (name, settings) in [
        ("steadfast: breaker, consecutive: admit, record", breaker()),
        ("steadfast: breaker, rolling: admit, record", rolling_breaker()),
    ] {
        let breaker = settings.build().expect("the settings hold");
        bench.case(name, || {
            || {
                let admission = spin(breaker.admit("gpt-5-mini")).expect("the circuit is closed");
                breaker.record(black_box(admission), Outcome::Success);
            }
        });
    }
    let budget = budget().build().expect("the settings hold");
    bench.case("steadfast: budget: record a first attempt", || || budget.record_first());
    let limiter = limits().build().expect("the settings hold");
    bench.case("steadfast: limiter: acquire, settle", || {
        || black_box(spin(limiter.acquire(300)).expect("there is room")).settle(Some(200))
    });
    let limiter = RateLimit::new().max_concurrent(100_000).build().expect("the settings hold");
    bench.case("steadfast: limiter of slots alone: acquire, settle", || {
        || black_box(spin(limiter.acquire(300)).expect("there is room")).settle(Some(200))
    });
}

/// A policy around an operation that does nothing.
pub(crate) fn policies(bench: &Bench) {
    bench.heading("steadfast's engine, around nothing");
    let at_once = |policy: &Policy| assert!(spin(policy.run(|_| async { black_box(Ok::<_, Infallible>(1)) })).is_ok());
    let bare = Policy::new();
    let policies = [
        ("breaker, consecutive", Policy::new().circuit_breaker(breaker())),
        ("breaker, rolling", Policy::new().circuit_breaker(rolling_breaker())),
        ("budget", Policy::new().retry_budget(budget())),
        ("limiter", Policy::new().rate_limit(limits()).cost(|| 300)),
        ("everything", everything()),
    ];
    bench.case("steadfast: retry alone, ready at once", || || at_once(&bare));
    for (name, policy) in &policies {
        bench.case(&format!("steadfast: {name}, ready at once"), || || at_once(policy));
    }
    for (name, policy) in &policies {
        bench.difference(
            &format!("steadfast: {name}, beyond retry alone"),
            || || at_once(&bare),
            || || at_once(policy),
        );
    }
    let policy = everything();
    bench.case("steadfast: everything, timer armed", || || assert!(spin(policy.run(|_| later())).is_ok()));
    let policy = everything().deadline(Duration::from_secs(9)).cancel_on(CancellationToken::new());
    bench.case("steadfast: everything, armed, deadline, token", || || assert!(spin(policy.run(|_| later())).is_ok()));

    let policy = everything().retry(Retry::new(0));
    for _ in 0..5 {
        assert!(spin(policy.run(|_| async { Err::<(), _>(()) })).is_err());
    }
    bench.case("steadfast: refused by an open circuit", || {
        || {
            let refused = spin(policy.run(|_| async { Ok::<_, ()>(()) }));
            assert!(black_box(refused).is_err());
        }
    });
}

/// A client whose only target is cut off, with the error value that its caller gets.
pub(crate) fn refusals(bench: &Bench) {
    bench.heading("steadfast's client, refused");
    let target = Target::new(OpenAi::new("sk-bench").base_url("http://127.0.0.1:9/v1"), "gpt-5-mini");
    let open = |breaker: CircuitBreaker| {
        let client = Client::builder(target.clone().circuit_breaker(breaker)).build().expect("the settings hold");
        assert!(client.primary().open_circuit());
        client
    };
    let client = open(breaker());
    bench.case("steadfast: a call, refused by an open circuit", || {
        || {
            let refused = spin(client.call("Hello")).expect_err("it is cut off");
            assert!(black_box(refused).code() == Some(ErrorCode::CircuitCoolingDown));
        }
    });
}

async fn later() -> Result<u32, Infallible> {
    pending_once().await;
    black_box(Ok(1))
}

/// A queue far longer than it should ever be.
pub(crate) fn queue(bench: &Bench) {
    bench.heading("steadfast's queue, by waiter");
    for waiters in [1_000, 100_000] {
        for (name, limits) in
            [("", RateLimit::new()), (", no queue time", RateLimit::new().max_queue_time(None::<Duration>))]
        {
            let limiter = limits.max_concurrent(1).build().expect("the settings hold");
            bench.large(&format!("steadfast: {waiters} waiters{name}"), waiters, || crowd(&limiter, waiters));
        }
    }
}

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Permit, LimitRefusal>> + 'a>>;

/// So many wait for one slot. Every second one leaves; the others get their turn, in order.
fn crowd(limiter: &Limiter, waiters: u32) -> [(&'static str, Duration); 3] {
    let mut context = Context::from_waker(Waker::noop());
    let held = spin(limiter.acquire(1)).expect("the slot is free");

    let start = Instant::now();
    let mut waiting: VecDeque<Waiting<'_>> =
        (0..waiters).map(|_| -> Waiting<'_> { Box::pin(limiter.acquire(1)) }).collect();
    for waiter in &mut waiting {
        assert!(waiter.as_mut().poll(&mut context).is_pending());
    }
    let queued = start.elapsed();

    let (stay, leave): (VecDeque<_>, VecDeque<_>) =
        waiting.into_iter().zip(0_u32..).partition(|(_, place)| place.is_multiple_of(2));
    let start = Instant::now();
    let leaving = leave.len();
    drop(leave);
    let left = start.elapsed();

    let start = Instant::now();
    drop(held);
    for (mut waiter, _) in stay {
        let Poll::Ready(turn) = waiter.as_mut().poll(&mut context) else { panic!("turns come in order") };
        drop(turn.expect("the slot is free"));
    }
    let served = start.elapsed();
    assert_eq!((limiter.state().queued, limiter.state().in_flight, leaving), (0, 0, waiters as usize / 2));
    [("queue", queued), ("leave", 2 * left), ("serve", 2 * served)]
}
