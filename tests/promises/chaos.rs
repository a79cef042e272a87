//! Whatever happens, a call ends in time, sends no more than it may, and leaves nothing behind.

use super::support::*;
use proptest::prelude::*;
use std::time::Duration;
use steadfast::resilience::{CircuitBreaker, CircuitState, Jitter, RateLimit, Retry, RetryBudget};
use steadfast::testing::{Answer, Fault, MemoryTransport, Piece};
use steadfast::{Call, Client, ErrorCode, ErrorKind, LlmError, Target};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// One thing that a provider may do.
fn answers() -> impl Strategy<Value = Answer> {
    let kind = prop_oneof![
        4 => Just(Answer::text("ok")),
        3 => prop::sample::select(vec![400_u16, 401, 404, 408, 409, 413, 429, 500, 501, 502, 503, 529]).prop_map(Fault::status),
        2 => (1_u64..90_000).prop_map(|wait| Fault::rate_limited(ms(wait))),
        1 => Just(Fault::quota_exhausted()),
        1 => Just(Fault::overloaded()),
        1 => Just(Fault::html(200)),
        1 => Just(Fault::html(502)),
        1 => Just(Fault::empty()),
        1 => Just(Fault::error_in_200("server_error", "m")),
        1 => Just(Fault::hang()),
        1 => Just(Fault::reset_before_head()),
        1 => Just(Fault::reset_in_body()),
        1 => Just(Fault::truncated_body()),
        1 => Just(Fault::connection_refused()),
        1 => (1_usize..40, 1_u64..400).prop_map(|(bytes, tick)| Fault::slow_drip(bytes, ms(tick))),
        1 => (1_u64..20_000).prop_map(|pause| {
            Answer::raw(500).pieces([Piece::from("{\"error\""), Piece::pause(ms(pause)), Piece::from(":{}}")]).chunked()
        }),
    ];
    (kind, prop_oneof![Just(0_u64), 0_u64..3_000]).prop_map(|(answer, delay)| answer.delay(ms(delay)))
}

#[derive(Clone, Debug)]
struct Settings {
    retries: u32,
    base: u64,
    jitter: Jitter,
    min_attempt: u64,
    idempotent: bool,
    timeout: Option<u64>,
    breaker: Option<(u32, bool, u64)>,
    budget: Option<(u32, f64)>,
    concurrent: Option<u32>,
    per_minute: Option<u32>,
    queue: u64,
}

fn settings() -> impl Strategy<Value = Settings> {
    let retry =
        (0_u32..5, 0_u64..2_000, prop::sample::select(vec![Jitter::None, Jitter::Equal, Jitter::Full]), 0_u64..500);
    let call = (prop::bool::weighted(0.9), prop::option::of(100_u64..10_000));
    let breaker = prop::option::of((1_u32..4, any::<bool>(), 0_u64..20_000));
    let budget = prop::option::of((0_u32..10, 0.0_f64..0.6));
    let limit = (prop::option::of(1_u32..4), prop::option::of(5_u32..600), 1_u64..20_000);
    (retry, call, breaker, budget, limit).prop_map(|(retry, call, breaker, budget, limit)| Settings {
        retries: retry.0,
        base: retry.1,
        jitter: retry.2,
        min_attempt: retry.3,
        idempotent: call.0,
        timeout: call.1,
        breaker,
        budget,
        concurrent: limit.0,
        per_minute: limit.1,
        queue: limit.2,
    })
}

impl Settings {
    fn retry(&self) -> Retry {
        let retry = Retry::new(self.retries).base_delay(ms(self.base)).jitter(self.jitter);
        retry.min_attempt_time(ms(self.min_attempt)).idempotent(self.idempotent)
    }

    fn apply(&self, provider: &MemoryTransport) -> Target {
        let mut target = target(provider).retry(self.retry()).timeout(self.timeout.map_or(secs(30), ms));
        if let Some((failures, recheck, cooldown)) = self.breaker {
            let breaker = CircuitBreaker::consecutive(failures).recheck(recheck).cooldown(ms(cooldown));
            target = target.circuit_breaker(breaker);
        }
        if let Some((min_calls, ratio)) = self.budget {
            target = target.retry_budget(RetryBudget::new(secs(600), min_calls, ratio));
        }
        if self.concurrent.is_some() || self.per_minute.is_some() {
            let mut limit = RateLimit::new().max_queue_time(ms(self.queue));
            if let Some(slots) = self.concurrent {
                limit = limit.max_concurrent(slots);
            }
            if let Some(rate) = self.per_minute {
                limit = limit.requests_per_minute(rate);
            }
            target = target.rate_limit(limit);
        }
        target
    }

    /// The longest that one call may spend on this target: attempts, queues, waits.
    fn longest(&self) -> Duration {
        let attempt = self.timeout.map_or(secs(30), ms) + ms(self.queue);
        attempt * (self.retries + 1) + secs(60) * self.retries
    }
}

/// What ends a call from outside.
#[derive(Clone, Copy, Debug)]
enum End {
    Deadline(u64),
    Cancel(u64),
    Drop(u64),
    Nothing,
}

fn ends() -> impl Strategy<Value = End> {
    let time = || 0_u64..30_000;
    prop_oneof![
        3 => Just(End::Nothing),
        2 => time().prop_map(End::Deadline),
        1 => time().prop_map(End::Cancel),
        1 => time().prop_map(End::Drop),
    ]
}

/// How many requests an error tells of.
fn told(error: &LlmError) -> usize {
    let of = |attempts: usize, request: bool| if attempts == 0 { usize::from(request) } else { attempts };
    if error.targets().is_empty() {
        return of(error.attempts().len(), error.request().is_some());
    }
    error.targets().iter().map(|target| of(target.attempts.len(), target.request.is_some())).sum()
}

/// Makes one call, ended as told. None where it was dropped.
async fn ended(client: &Client, end: End) -> Option<Result<steadfast::chat::Reply, LlmError>> {
    let call = Call::user("hi");
    match end {
        End::Nothing => Some(client.call(call).await),
        End::Deadline(after) => Some(client.call(call.deadline(ms(after))).await),
        End::Drop(after) => timeout(ms(after), client.call(call)).await.ok(),
        End::Cancel(after) => {
            let token = CancellationToken::new();
            let canceller = token.clone();
            tokio::spawn(async move {
                sleep(ms(after)).await;
                canceller.cancel();
            });
            Some(client.call(call.cancel_on(token)).await)
        }
    }
}

fn assert_nothing_is_left(client: &Client, providers: [&MemoryTransport; 2]) {
    for target in client.targets() {
        if let Some(limit) = target.rate_limit() {
            assert_eq!((limit.in_flight, limit.queued), (0, 0), "{}", target.name());
        }
    }
    for (target, provider) in client.targets().zip(providers) {
        assert_eq!(provider.exchanges_open(), 0);
        if let Some(budget) = target.retry_budget() {
            assert_eq!(budget.attempts, provider.requests() as u64, "the budget's books");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_call_ends_in_time_sends_no_more_than_it_may_and_tells_of_all_it_sent(
        first in prop::collection::vec(answers(), 0..8),
        second in prop::collection::vec(answers(), 0..8),
        one in settings(),
        two in settings(),
        end in ends(),
        reserve in 0.0_f64..0.9,
        seed: u64,
    ) {
        paused(async {
            let (primary, fallback) = (primary(), fallback());
            for (provider, script) in [(&primary, first), (&fallback, second)] {
                for answer in script {
                    provider.push(answer);
                }
                provider.set_otherwise(Fault::status(503));
            }
            let builder = chain(one.apply(&primary), two.apply(&fallback), &primary, &fallback);
            let client = built(builder.seed(seed).fallback_reserve(reserve));
            let start = Instant::now();
            let outcome = ended(&client, end).await;
            let took = start.elapsed();

            assert!(primary.requests() <= one.retries as usize + 1, "{} requests", primary.requests());
            assert!(fallback.requests() <= two.retries as usize + 1, "{} requests", fallback.requests());
            assert!(took <= one.longest() + two.longest(), "{took:?}");
            if let End::Deadline(after) = end {
                assert!(took <= ms(after), "{took:?} of {after} ms");
                let late = |seen: &steadfast::testing::Received| seen.at >= ms(after);
                assert!(!primary.journal().iter().chain(&fallback.journal()).any(late), "sent after the deadline");
            }
            if let (End::Cancel(after), Some(Err(error))) = (end, &outcome) {
                assert!(took <= ms(after), "{took:?} of {after} ms");
                assert!(error.kind() == ErrorKind::Aborted || took < ms(after));
            }
            let sent = primary.requests() + fallback.requests();
            match &outcome {
                Some(Ok(reply)) => {
                    assert_eq!(reply.attempts().len() + 1, sent, "every failure before it is told");
                    // What came before the answer was sent again, here or elsewhere: where that is not safe, nothing arrived.
                    let (here, there) = reply.attempts().split_at(primary.requests().min(reply.attempts().len()));
                    for (settings, attempts) in [(&one, here), (&two, there)] {
                        assert!(settings.idempotent || attempts.iter().all(|attempt| {
                            attempt.error.code == Some(ErrorCode::ConnectionFailed) || attempt.request.is_none()
                        }));
                    }
                }
                Some(Err(error)) => {
                    assert_eq!(told(error), sent, "{error}");
                    let json = serde_json::to_string(error).expect("serializable");
                    assert_eq!(serde_json::from_str::<steadfast::record::ErrorSnapshot>(&json).ok(), Some(error.to_snapshot()));
                    assert!(!error.to_string().contains('\n'));
                }
                None => {}
            }
            assert_nothing_is_left(&client, [&primary, &fallback]);
        });
    }

    #[test]
    fn many_calls_at_once_leave_nothing_and_keep_the_limits(
        script in prop::collection::vec(answers(), 0..40),
        one in settings(),
        two in settings(),
        ends in prop::collection::vec((ends(), 0_u64..500), 1..25),
        seed: u64,
    ) {
        paused(async {
            let (primary, fallback) = (primary(), fallback().otherwise(Answer::echo().delay(ms(50))));
            for answer in script {
                primary.push(answer);
            }
            primary.set_otherwise(Answer::echo().delay(ms(20)));
            let client = built(chain(one.apply(&primary), two.apply(&fallback), &primary, &fallback).seed(seed));
            let calls = ends.len();
            let mut running = JoinSet::new();
            for (end, apart) in ends {
                let calling = client.clone();
                running.spawn(async move { ended(&calling, end).await.is_some() });
                sleep(ms(apart)).await;
                if let (Some(slots), Some(limit)) = (one.concurrent, client.primary().rate_limit()) {
                    assert!(limit.in_flight <= slots);
                    assert!(primary.exchanges_open() <= slots as usize);
                }
            }
            running.join_all().await;
            assert!(primary.requests() <= calls * (one.retries as usize + 1));
            assert!(fallback.requests() <= calls * (two.retries as usize + 1));
            assert_nothing_is_left(&client, [&primary, &fallback]);
            // No trial is out: once it has cooled down, the circuit lets a call through.
            if client.primary().circuit().is_some_and(|state| state != CircuitState::Closed) {
                primary.set_otherwise(Answer::echo());
                sleep(secs(100)).await;
                // What is left of the script may still fail; the calls before may have used up any part of it.
                for _ in 0..40 {
                    if client.primary().circuit() == Some(CircuitState::Closed) {
                        break;
                    }
                    let _ = client.call("hi").await;
                    sleep(secs(100)).await;
                }
                assert_eq!(client.primary().circuit(), Some(CircuitState::Closed));
            }
        });
    }
}
