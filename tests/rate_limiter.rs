//! The limiter alone, under load: on paused time, and with real threads.

use std::{
    error::Error,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use steadfast::resilience::{
    Bucket, LimitReason, LimitRefusal, Limiter, LimiterAdmission, Permit, RateLimit, RateLimitState, Settlement,
    SharedLimiter, SharedPermit,
};
use tokio::{
    task::JoinSet,
    time::{Instant, advance, sleep, timeout},
};

type Outcome = Result<(), Box<dyn Error>>;

/// The first that makes it more than `burst + limit × t` in any window: `to - from - t × limit` has grown by more than
/// the burst above its lowest value so far.
fn first_too_many(sent: &[Instant], limit: i128, burst: i128) -> Option<usize> {
    let start = *sent.first()?;
    let mut lowest = i128::MAX;
    sent.iter().zip(0_i128..).position(|(at, before)| {
        let earned = limit * i128::try_from((*at - start).as_nanos()).unwrap_or(i128::MAX);
        let ahead = before * 60_000_000_000 - earned;
        lowest = lowest.min(ahead);
        ahead + 60_000_000_000 - lowest > burst * 60_000_000_000
    })
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_callers_keep_the_limit_and_their_order() -> Outcome {
    const CALLERS: usize = 10_000;
    let limiter = RateLimit::new()
        .requests_per_minute(3_000)
        .burst(50)
        .tokens_per_minute(300_000)
        .max_concurrent(40)
        .max_queue_time(None)
        .build()?;
    let sent = Arc::new(Mutex::new(Vec::new()));
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (limiter, sent, running, most) = (limiter.clone(), sent.clone(), running.clone(), most.clone());
        callers.spawn(async move {
            let permit = limiter.acquire(100).await?;
            sent.lock().unwrap_or_else(PoisonError::into_inner).push((caller, Instant::now()));
            most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
            sleep(Duration::from_millis(caller as u64 % 900)).await;
            running.fetch_sub(1, SeqCst);
            permit.settle(Some(100));
            Ok::<_, LimitRefusal>(())
        });
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    let sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(sent.len(), CALLERS);
    assert!(sent.is_sorted(), "served in order of arrival");
    let instants: Vec<_> = sent.iter().map(|(_, at)| *at).collect();
    assert_eq!(first_too_many(&instants, 3_000, 50), None);
    assert!(first_too_many(&instants, 3_000, 49).is_some(), "the burst was used");
    assert_eq!(most.load(SeqCst), 40);
    let state = limiter.state();
    assert_eq!((state.in_flight, state.queued), (0, 0));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn waits_no_longer_than_it_may() -> Outcome {
    let limiter = RateLimit::new().requests_per_minute(1).build()?;
    limiter.acquire(0).await?.settle(None);
    let start = Instant::now();
    let refusal = limiter.acquire(0).await.err();
    assert_eq!(refusal, Some(LimitRefusal::new(LimitReason::QueueTimeout, Bucket::Requests, 1)));
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    let full = LimitRefusal::new(LimitReason::QueueFull, Bucket::Requests, 1);
    assert_eq!(limiter.acquire_now(0).await.err(), Some(full));
    advance(Duration::from_secs(1)).await;
    assert!(limiter.acquire(0).await.is_ok());
    assert_eq!(start.elapsed(), Duration::from_secs(60));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_dropped_waiter_leaves_the_queue_at_once() -> Outcome {
    let limiter = RateLimit::new().max_concurrent(1).build()?;
    let permit = limiter.acquire(0).await?;
    let waiter = tokio::spawn({
        let limiter = limiter.clone();
        async move { timeout(Duration::from_secs(20), limiter.acquire(0)).await.map(drop) }
    });
    assert!(timeout(Duration::from_secs(1), limiter.acquire(0)).await.is_err());
    assert_eq!(limiter.state().queued, 1);
    drop(permit);
    assert!(waiter.await?.is_ok());
    assert_eq!(limiter.state(), RateLimitState::default());
    Ok(())
}

/// Permits are taken, settled, cancelled and dropped, and waiters give up, on threads that race for it all. Nobody may
/// be forgotten, and at the end everything is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_between_threads() -> Outcome {
    let limiter = RateLimit::new().max_concurrent(3).tokens_per_minute(1_000_000_000).max_queue_time(None).build()?;
    let running = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for caller in 0..16_usize {
        let (limiter, running) = (limiter.clone(), running.clone());
        callers.spawn(async move {
            for round in 0..2_000_usize {
                let taken = if (caller + round) % 5 == 0 {
                    timeout(Duration::from_micros(50), limiter.acquire(10)).await.ok()
                } else {
                    Some(limiter.acquire(10).await)
                };
                let Some(permit) = taken.transpose()? else { continue };
                assert!(running.fetch_add(1, SeqCst) < 3);
                if round % 3 == 0 {
                    tokio::task::yield_now().await;
                }
                running.fetch_sub(1, SeqCst);
                match round % 4 {
                    0 => permit.settle(Some(7)),
                    1 => permit.settle(Some(12)),
                    2 => permit.cancel(),
                    _ => drop(permit),
                }
            }
            Ok::<_, LimitRefusal>(())
        });
    }
    let all = async {
        while let Some(done) = callers.join_next().await {
            done??;
        }
        Ok::<_, Box<dyn Error>>(())
    };
    timeout(Duration::from_secs(60), all).await.map_err(|_| "somebody was forgotten in the queue")??;
    let state = limiter.state();
    assert_eq!((state.in_flight, state.queued), (0, 0));
    Ok(())
}

#[derive(Debug, Default)]
struct Elsewhere(Mutex<Vec<Settlement>>);

#[derive(Debug)]
struct Lent(Arc<Elsewhere>);

impl SharedLimiter for Elsewhere {
    fn admit(self: Arc<Self>, tokens: u32, wait: bool) -> LimiterAdmission {
        Box::pin(async move {
            if !wait {
                return Err(LimitRefusal::new(LimitReason::QueueFull, Bucket::Tokens, 9));
            }
            sleep(Duration::from_secs(u64::from(tokens))).await;
            Ok(Permit::shared(Lent(self)))
        })
    }

    fn predicted_wait(&self, tokens: u32) -> Duration {
        Duration::from_secs(tokens.into())
    }

    fn waiting_for(&self) -> Bucket {
        Bucket::Tokens
    }

    fn state(&self) -> RateLimitState {
        RateLimitState::new(None, Some(9), 0, 0)
    }
}

impl SharedPermit for Lent {
    fn settle(self: Box<Self>, settlement: Settlement) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(settlement);
    }
}

#[tokio::test(start_paused = true)]
async fn a_shared_limiter_may_wait_to_admit_and_settles_once() -> Outcome {
    let elsewhere = Arc::new(Elsewhere::default());
    let limiter = Limiter::shared(elsewhere.clone());
    let start = Instant::now();
    limiter.acquire(5).await?.settle(Some(3));
    assert_eq!(start.elapsed(), limiter.predicted_wait(5));
    limiter.acquire(1).await?.settle(None);
    limiter.acquire(1).await?.cancel();
    drop(limiter.acquire(1).await?);
    assert!(limiter.acquire_now(1).await.is_err());
    let settled = elsewhere.0.lock().unwrap_or_else(PoisonError::into_inner);
    let expected = [Settlement::Spent(3), Settlement::Estimate, Settlement::Unsent, Settlement::Estimate];
    assert_eq!(*settled, expected);
    assert_eq!(limiter.state().tokens_remaining, Some(9));
    Ok(())
}
