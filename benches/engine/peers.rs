//! What to measure against: the machine's own prices, and crates that do a part of the work.

use crate::bench::{Bench, pending_once, spin};
use backon::{ExponentialBuilder, Retryable};
use failsafe::CircuitBreaker as _;
use governor::{Quota, RateLimiter};
use recloser::Recloser;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;
use tower_resilience_circuitbreaker::CircuitBreakerLayer;
use tower_service::Service;

const LONG: Duration = Duration::from_secs(30);

/// What the machine and the runtime ask for what every design is made of.
pub(crate) fn yardsticks(bench: &Bench) {
    bench.heading("yardsticks");
    bench.case("a thousand steps, six at a time", || {
        || {
            let [mut one, mut two] = black_box([(1_u64, 2_u64, 3_u64); 2]);
            for n in 0..167 {
                one = (black_box(one.0 + n), one.1 ^ (one.0 + n), one.2 + (one.1 ^ n));
                two = (black_box(two.0 ^ n), two.1 + (two.0 ^ n), two.2 ^ (two.1 + n));
            }
            black_box([one, two]);
        }
    });
    let counter = AtomicU64::new(0);
    bench.case("atomic add", || {
        || {
            counter.fetch_add(1, Relaxed);
        }
    });
    let mutex = Mutex::new(0_u64);
    bench.case("mutex lock, add, unlock", || || *mutex.lock().expect("nobody panics") += 1);
    bench.case("Instant::now", || {
        || {
            #[allow(clippy::disallowed_methods)] // it is what is measured
            black_box(std::time::Instant::now());
        }
    });
    bench.case("tokio timeout, ready at once", || || spin(timeout(LONG, ready(()))).expect("in time"));
    bench.case("tokio timeout, armed and dropped", || || spin(timeout(LONG, pending_once())).expect("in time"));
}

/// Crates around an operation that succeeds at once.
pub(crate) fn crates(bench: &Bench) {
    bench.heading("other crates");
    let limiter = RateLimiter::direct(Quota::per_second(NonZeroU32::MAX));
    bench.case("governor: check", || || assert!(limiter.check().is_ok()));
    let breaker = Recloser::custom().build();
    bench.case("recloser: call", || || assert!(breaker.call(|| black_box(Ok::<_, ()>(1))).is_ok()));
    let breaker = failsafe::Config::new().build();
    bench.case("failsafe: call", || || assert!(breaker.call(|| black_box(Ok::<_, ()>(1))).is_ok()));
    let breaker = CircuitBreakerLayer::builder().build().expect("the defaults hold").layer_fn(Nothing);
    bench.case("tower-resilience: circuit breaker", || {
        let mut breaker = breaker.clone();
        move || {
            let mut context = Context::from_waker(std::task::Waker::noop());
            assert!(matches!(breaker.poll_ready(&mut context), Poll::Ready(Ok(()))));
            assert!(spin(breaker.call(1)).is_ok());
        }
    });
    bench.case("backon: retry", || {
        || assert!(spin((|| ready(black_box(Ok::<_, ()>(1)))).retry(ExponentialBuilder::default())).is_ok())
    });
}

/// A service that answers at once.
#[derive(Clone)]
struct Nothing;

impl Service<u32> for Nothing {
    type Response = u32;
    type Error = Infallible;
    type Future = Ready<Result<u32, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u32) -> Self::Future {
        ready(black_box(Ok(request)))
    }
}
