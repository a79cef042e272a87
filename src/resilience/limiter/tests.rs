//! The limiter as the engine sees it: instants in, decisions out, wakers counted.

use super::*;
use crate::record::ConfigError;
use proptest::prelude::*;
use std::{
    mem,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, Wake, Waker},
};

/// A task: how often it was woken.
#[derive(Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

struct Waiting {
    id: usize,
    tokens: u32,
    ticket: Ticket,
    task: Arc<Task>,
    seen: usize,
    again_at: Option<Instant>,
}

impl Waiting {
    fn new(limiter: &Limiter, id: usize, tokens: u32, now: Instant) -> Self {
        let ticket = limiter.ticket(tokens, true, now);
        Self { id, tokens, ticket, task: Arc::default(), seen: 0, again_at: Some(now) }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.task.0.load(SeqCst) > self.seen || self.again_at.is_some_and(|at| at <= now)
    }

    fn poll(&mut self, now: Instant) -> Option<Result<Permit, LimitRefusal>> {
        self.seen = self.task.0.load(SeqCst);
        match self.ticket.poll_until(&mut Context::from_waker(&Waker::from(Arc::clone(&self.task))), now) {
            Turn::Served(answer) => Some(answer),
            Turn::Wait(again_at) => {
                self.again_at = again_at;
                None
            }
        }
    }

    fn woken(&self) -> usize {
        self.task.0.load(SeqCst)
    }

    fn is_served(&mut self, now: Instant) -> bool {
        self.poll(now).is_some_and(|answer| answer.is_ok())
    }
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn now_or_never(limiter: &Limiter, tokens: u32, now: Instant) -> Option<Permit> {
    limiter.try_acquire_at(tokens, now).and_then(Result::ok)
}

fn state_at(limiter: &Limiter, now: Instant) -> RateLimitState {
    match &limiter.0 {
        Source::Local(local) => local.state(now),
        Source::Shared(shared) => shared.state(),
    }
}

#[test]
fn starts_full_and_refills_continuously() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().requests_per_minute(60).burst(2).build()?;
    let start = Instant::now();
    for (millis, admitted) in
        [(0, true), (0, true), (0, false), (999, false), (1000, true), (1000, false), (9000, true)]
    {
        let permit = now_or_never(&limiter, 0, start + Duration::from_millis(millis));
        assert_eq!(permit.is_some(), admitted, "at {millis} ms");
    }
    assert_eq!(
        state_at(&limiter, start + secs(9)).requests_remaining,
        Some(1),
        "an idle bucket saves up the burst only"
    );
    Ok(())
}

#[test]
fn takes_all_buckets_or_none() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().requests_per_minute(10).tokens_per_minute(100).max_concurrent(1).build()?;
    let now = Instant::now();
    let first = now_or_never(&limiter, 60, now);
    assert!(now_or_never(&limiter, 10, now).is_none(), "no slot");
    drop(first);
    assert!(now_or_never(&limiter, 60, now).is_none(), "no tokens");
    assert_eq!(state_at(&limiter, now), RateLimitState::new(Some(9), Some(40), 0, 0));
    Ok(())
}

#[test]
fn settles_tokens_in_both_directions() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().tokens_per_minute(600).build()?;
    let start = Instant::now();
    let take = || now_or_never(&limiter, 100, start).ok_or("no room");
    let left = |after| state_at(&limiter, start + after).tokens_remaining;

    take().map(|permit| permit.settle(Some(30))).ok();
    assert_eq!(left(secs(0)), Some(570), "unspent tokens come back");
    take().map(|permit| permit.settle(None)).ok();
    assert_eq!(left(secs(0)), Some(470), "the estimate stays");
    take().map(drop).ok();
    assert_eq!(left(secs(0)), Some(370), "a drop keeps the estimate too");
    take().map(Permit::cancel).ok();
    assert_eq!(left(secs(0)), Some(370), "unsent, everything comes back");
    take().map(|permit| permit.settle(Some(500))).ok();
    assert_eq!(left(secs(0)), Some(0), "the bucket is 130 in debt");
    assert_eq!(left(secs(13)), Some(0));
    assert_eq!(left(secs(14)), Some(10));
    assert_eq!(left(secs(60)), Some(470));
    Ok(())
}

#[test]
fn an_idle_limiter_has_paid_off_its_debt() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().tokens_per_minute(600).build()?;
    let start = Instant::now();
    let permit = now_or_never(&limiter, 100, start);
    permit.map(|permit| permit.settle(Some(700))).unwrap_or_default();
    assert_eq!(state_at(&limiter, start + secs(130)).tokens_remaining, Some(600));
    Ok(())
}

#[test]
fn cancel_gives_the_request_back() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().requests_per_minute(1).build()?;
    let now = Instant::now();
    now_or_never(&limiter, 5, now).map(Permit::cancel).unwrap_or_default();
    assert!(now_or_never(&limiter, 5, now).is_some());
    assert!(now_or_never(&limiter, 5, now).is_none());
    Ok(())
}

#[test]
fn only_the_head_is_told_when_to_come_back() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().tokens_per_minute(60).max_queue_time(None).build()?;
    let now = Instant::now();
    let _spent = now_or_never(&limiter, 60, now);
    let mut first = Waiting::new(&limiter, 0, 10, now);
    let mut second = Waiting::new(&limiter, 1, 1, now);
    assert!(!first.is_served(now) && !second.is_served(now));
    assert_eq!(first.again_at, Some(now + secs(10)));
    assert_eq!(second.again_at, None, "it is woken when the head leaves");
    assert_eq!((first.ticket.bucket(), second.ticket.bucket()), (Bucket::Tokens, Bucket::Tokens));

    let later = now + secs(10);
    assert!(now_or_never(&limiter, 0, later).is_none(), "no barging past a waiter, however small");
    assert!(!second.is_served(later), "a small request stays behind a large one");
    assert!(first.is_served(later));
    assert_eq!(second.woken(), 1);
    assert!(!second.is_served(later));
    assert_eq!(second.again_at, Some(later + secs(1)));
    Ok(())
}

#[test]
fn a_freed_slot_wakes_the_head_only() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().max_concurrent(1).max_queue_time(None).build()?;
    let now = Instant::now();
    let permit = now_or_never(&limiter, 0, now);
    let mut waiting: Vec<_> = (0..3).map(|id| Waiting::new(&limiter, id, 0, now)).collect();
    for waiter in &mut waiting {
        assert!(waiter.poll(now).is_none());
        assert_eq!((waiter.again_at, waiter.ticket.bucket()), (None, Bucket::Concurrency));
    }
    assert_eq!(limiter.state(), RateLimitState::new(None, None, 1, 3));
    drop(permit);
    assert_eq!(waiting.iter().map(Waiting::woken).collect::<Vec<_>>(), [1, 0, 0]);
    assert!(waiting[0].is_served(now));
    Ok(())
}

#[test]
fn whoever_leaves_from_the_head_wakes_the_next() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().max_concurrent(1).max_queue_time(secs(5)).build()?;
    let now = Instant::now();
    let permit = now_or_never(&limiter, 0, now);
    let mut waiting: Vec<_> = (0..4).map(|id| Waiting::new(&limiter, id, 0, now + secs(id as u64))).collect();
    for waiter in &mut waiting {
        assert!(waiter.poll(now).is_none());
    }
    drop(waiting.remove(1));
    assert_eq!(waiting.iter().map(Waiting::woken).sum::<usize>(), 0, "nobody's turn has come");
    drop(waiting.remove(0));
    assert_eq!(waiting[0].woken(), 1, "cancelled");
    let refusal = LimitRefusal::new(LimitReason::QueueTimeout, Bucket::Concurrency, 1);
    assert_eq!(waiting[0].again_at, Some(now + secs(7)));
    assert_eq!(waiting[0].poll(now + secs(7)).and_then(Result::err), Some(refusal));
    assert_eq!(waiting[1].woken(), 1, "timed out");
    drop(permit);
    assert!(waiting[1].is_served(now + secs(7)));
    assert_eq!(state_at(&limiter, now), RateLimitState::default());
    Ok(())
}

#[test]
fn refuses_at_once_what_cannot_be_served() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().tokens_per_minute(100).token_burst(50).max_queue_len(1).build()?;
    let now = Instant::now();
    let capacity = LimitRefusal::new(LimitReason::Capacity, Bucket::Tokens, 50);
    assert_eq!(limiter.try_acquire_at(51, now).and_then(Result::err), Some(capacity));
    assert_eq!(limiter.predicted_wait_at(51, now), Duration::MAX);
    let _spent = now_or_never(&limiter, 50, now);
    let mut first = Waiting::new(&limiter, 0, 1, now);
    assert!(first.poll(now).is_none());
    let full = LimitRefusal::new(LimitReason::QueueFull, Bucket::Tokens, 50);
    assert_eq!(Waiting::new(&limiter, 1, 1, now).poll(now).and_then(Result::err), Some(full));
    assert_eq!(Waiting::new(&limiter, 1, 51, now).poll(now).and_then(Result::err), Some(capacity));
    drop(first);
    assert!(Waiting::new(&limiter, 2, 1, now).poll(now).is_none());
    Ok(())
}

#[test]
fn whoever_may_not_wait_is_refused_instead() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().max_concurrent(1).build()?;
    let now = Instant::now();
    let mut cx = Context::from_waker(Waker::noop());
    let served = limiter.ticket(0, false, now).poll_until(&mut cx, now);
    let refused = limiter.ticket(0, false, now).poll_until(&mut cx, now);
    assert!(matches!(served, Turn::Served(Ok(_))));
    let full = LimitRefusal::new(LimitReason::QueueFull, Bucket::Concurrency, 1);
    assert!(matches!(refused, Turn::Served(Err(refusal)) if refusal == full));
    Ok(())
}

#[test]
fn predicts_the_wait_behind_the_queue() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().requests_per_minute(60).burst(1).tokens_per_minute(600).build()?;
    let now = Instant::now();
    assert_eq!(limiter.predicted_wait_at(600, now), Duration::ZERO);
    let _spent = now_or_never(&limiter, 600, now);
    assert_eq!(limiter.predicted_wait_at(0, now), secs(1));
    assert_eq!(limiter.predicted_wait_at(300, now), secs(30));
    let mut waiting: Vec<_> = (0..5).map(|id| Waiting::new(&limiter, id, 100, now)).collect();
    assert!(waiting.iter_mut().all(|waiter| waiter.poll(now).is_none()));
    assert_eq!(limiter.predicted_wait_at(100, now), secs(60));
    Ok(())
}

#[test]
fn aimd_lowers_once_a_minute_and_rises_with_success() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().requests_per_minute(100).aimd(Aimd::new(5.0, 0.5, 20, 110)).build()?;
    let start = Instant::now();
    let full = |after| state_at(&limiter, start + after).requests_remaining;
    for _ in 0..10 {
        limiter.throttled_at(start);
    }
    assert_eq!(full(secs(0)), Some(50), "one burst counts once, and the saved-up requests are capped too");
    limiter.throttled_at(start + secs(60));
    limiter.throttled_at(start + secs(120));
    assert_eq!(full(secs(1000)), Some(20), "not below the minimum");
    limiter.succeeded();
    assert_eq!(full(secs(1000)), Some(20), "higher from now on");
    assert_eq!(full(secs(2000)), Some(25));
    for _ in 0..100 {
        limiter.succeeded();
    }
    full(secs(2000));
    assert_eq!(full(secs(9000)), Some(110), "not above the maximum");
    Ok(())
}

#[test]
fn a_success_wakes_a_head_that_waits_at_a_lowered_rate() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().requests_per_minute(60).aimd(Aimd::new(60.0, 0.1, 1, 60)).build()?;
    let now = Instant::now();
    limiter.throttled_at(now);
    while now_or_never(&limiter, 0, now).is_some() {}
    let mut head = Waiting::new(&limiter, 0, 0, now);
    assert!(head.poll(now).is_none());
    assert_eq!(head.again_at, Some(now + secs(10)));
    limiter.succeeded();
    assert_eq!(head.woken(), 1);
    assert!(head.poll(now).is_none());
    assert_eq!(head.again_at, Some(now + secs(1)));
    Ok(())
}

#[test]
fn a_request_that_only_lowered_buckets_cannot_hold_waits() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().tokens_per_minute(600).follow_provider(true).build()?;
    let now = Instant::now();
    limiter.follow_at(&LimitHint { tokens_remaining: Some(10), ..LimitHint::default() }, now);
    let mut waiter = Waiting::new(&limiter, 0, 600, now);
    assert!(waiter.poll(now).is_none());
    assert_eq!(waiter.again_at, Some(now + secs(30)), "its queue bound");
    assert!(waiter.is_served(now + secs(59)));
    Ok(())
}

#[test]
fn follows_the_provider_down_but_never_up() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().requests_per_minute(60).follow_provider(true).build()?;
    let now = Instant::now();
    let hint = |remaining, reset| LimitHint {
        requests_remaining: Some(remaining),
        requests_reset: Some(secs(reset)),
        ..LimitHint::default()
    };
    limiter.follow_at(&hint(1_000, 1), now);
    assert_eq!(state_at(&limiter, now).requests_remaining, Some(60));
    limiter.follow_at(&hint(7, 1), now);
    assert_eq!(state_at(&limiter, now).requests_remaining, Some(7));
    limiter.follow_at(&hint(0, 20), now);
    limiter.follow_at(&hint(9, 20), now); // an older answer, overtaken by the zero
    assert_eq!(limiter.predicted_wait_at(0, now), secs(20));
    assert_eq!(state_at(&limiter, now + secs(19)).requests_remaining, Some(0));
    assert!(now_or_never(&limiter, 0, now + secs(19)).is_none());
    assert_eq!(state_at(&limiter, now + secs(20)).requests_remaining, Some(20), "what has come back since");
    assert!(now_or_never(&limiter, 0, now + secs(20)).is_some());
    Ok(())
}

#[test]
fn a_hint_knows_its_window() -> Result<(), ConfigError> {
    let day = secs(24 * 60 * 60);
    let limiter = RateLimit::new().requests_per_minute(60).follow_provider(true).build()?;
    let now = Instant::now();
    let hint = LimitHint {
        requests_limit: Some(14_400),
        requests_remaining: Some(2),
        requests_reset: Some(day),
        requests_window: Some(day),
        ..LimitHint::default()
    };
    limiter.follow_at(&hint, now);
    let later = now + secs(600); // refilled here, but not there
    assert!(now_or_never(&limiter, 0, later).is_some());
    now_or_never(&limiter, 0, later).map(Permit::cancel).unwrap_or_default();
    assert!(now_or_never(&limiter, 0, later).is_some());
    assert!(now_or_never(&limiter, 0, later).is_none());
    assert!(now_or_never(&limiter, 0, now + day).is_some());
    Ok(())
}

#[test]
fn what_the_provider_lets_out_is_left_until_its_reset() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().requests_per_minute(60).follow_provider(true).build()?;
    let now = Instant::now();
    let hint = LimitHint {
        requests_remaining: Some(5),
        requests_reset: Some(secs(100)),
        requests_window: Some(secs(86_400)),
        ..LimitHint::default()
    };
    limiter.follow_at(&hint, now);
    assert_eq!(state_at(&limiter, now + secs(99)).requests_remaining, Some(5), "of the day, however much refills");
    assert_eq!(state_at(&limiter, now + secs(100)).requests_remaining, Some(60));
    Ok(())
}

#[test]
fn its_users_can_ask_which_share_of_an_estimate_to_reserve() -> Result<(), ConfigError> {
    assert!((RateLimit::new().estimate_fraction(0.25).build()?.estimate_fraction() - 0.25).abs() < f64::EPSILON);
    assert!((RateLimit::new().build()?.estimate_fraction() - 1.0).abs() < f64::EPSILON);
    Ok(())
}

#[test]
fn hints_and_holds_count_only_where_asked_for() -> Result<(), ConfigError> {
    let now = Instant::now();
    let hint = LimitHint { requests_remaining: Some(0), requests_reset: Some(secs(9)), ..LimitHint::default() };
    for (follow, admitted) in [(false, true), (true, false)] {
        for told in
            [|l: &Limiter, _, now| l.hold_until(now + secs(9)), |l: &Limiter, hint: &_, now| l.follow_at(hint, now)]
        {
            let limiter = RateLimit::new().max_concurrent(9).follow_provider(follow).build()?;
            assert_eq!(limiter.follows(), follow);
            told(&limiter, &hint, now);
            assert_eq!(now_or_never(&limiter, 0, now + secs(8)).is_some(), admitted);
            assert!(now_or_never(&limiter, 0, now + secs(9)).is_some());
        }
    }
    Ok(())
}

#[test]
fn while_the_provider_wants_silence_nothing_is_left() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().requests_per_minute(60).tokens_per_minute(600).follow_provider(true).build()?;
    let now = Instant::now();
    limiter.hold_until(now + secs(9));
    limiter.hold_until(now + secs(3)); // an older answer
    let left = |after| {
        let state = state_at(&limiter, now + secs(after));
        (state.requests_remaining, state.tokens_remaining)
    };
    assert_eq!(left(8), (Some(0), Some(0)));
    assert_eq!(left(9), (Some(60), Some(600)));
    Ok(())
}

#[test]
fn who_needs_no_tokens_does_not_wait_for_them() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().requests_per_minute(60).burst(2).tokens_per_minute(600).build()?;
    let now = Instant::now();
    now_or_never(&limiter, 600, now).map(|permit| permit.settle(Some(6_000))).unwrap_or_default();
    assert!(now_or_never(&limiter, 1, now).is_none());
    assert!(now_or_never(&limiter, 0, now).is_some());
    // Nor once it waits for its request.
    let mut waiter = Waiting::new(&limiter, 0, 0, now);
    assert!(waiter.poll(now).is_none());
    assert_eq!((waiter.ticket.bucket(), waiter.again_at), (Bucket::Requests, Some(now + secs(1))));
    Ok(())
}

#[test]
fn of_two_buckets_without_room_the_one_that_takes_longer_is_named() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().requests_per_minute(60).burst(1).tokens_per_minute(60).token_burst(2).build()?;
    let now = Instant::now();
    let _spent = now_or_never(&limiter, 2, now);
    for (tokens, bucket) in [(0, Bucket::Requests), (1, Bucket::Requests), (2, Bucket::Tokens)] {
        let mut waiter = Waiting::new(&limiter, 0, tokens, now);
        assert!(waiter.poll(now).is_none());
        assert_eq!((waiter.ticket.bucket(), waiter.again_at), (bucket, Some(now + secs(u64::from(tokens.max(1))))));
    }
    Ok(())
}

#[test]
fn a_proactive_floor_slows_down_before_a_429() -> Result<(), ConfigError> {
    let aimd = Aimd::new(1.0, 0.5, 10, 100).proactive_floor(0.2);
    let limiter = RateLimit::new().requests_per_minute(100).aimd(aimd).build()?;
    assert!(limiter.follows());
    let without = RateLimit::new().requests_per_minute(100).aimd(Aimd::new(1.0, 0.5, 10, 100)).build()?;
    assert!(!without.follows(), "headers need not be read in vain");
    let now = Instant::now();
    let hint = |remaining, window| LimitHint {
        requests_limit: Some(1_000),
        requests_remaining: Some(remaining),
        requests_window: window,
        ..LimitHint::default()
    };
    for (remaining, window, left) in [(200, None, 100), (10, Some(secs(86_400)), 100), (199, None, 50), (100, None, 50)]
    {
        limiter.follow_at(&hint(remaining, window), now);
        assert_eq!(state_at(&limiter, now).requests_remaining, Some(left), "{remaining} of 1000 in {window:?}");
    }
    Ok(())
}

#[test]
fn absurd_values_are_survived() -> Result<(), ConfigError> {
    let limiter = RateLimit::new()
        .requests_per_minute(u32::MAX)
        .tokens_per_minute(u64::MAX)
        .max_concurrent(u32::MAX)
        .max_queue_time(Duration::MAX)
        .aimd(Aimd::new(f64::MAX, f64::MIN_POSITIVE, 1, u32::MAX))
        .follow_provider(true)
        .build()?;
    let now = Instant::now();
    let far = now + secs(1 << 40);
    let hint = LimitHint {
        requests_limit: Some(u64::MAX),
        requests_remaining: Some(0),
        requests_reset: Some(Duration::MAX),
        tokens_remaining: Some(u64::MAX),
        tokens_reset: Some(Duration::MAX),
        tokens_window: Some(Duration::MAX),
        ..LimitHint::default()
    };
    for at in [now, far, now, far + secs(1)] {
        if let Some(permit) = now_or_never(&limiter, u32::MAX, at) {
            permit.settle(Some(0));
        }
        if let Some(permit) = now_or_never(&limiter, 0, at) {
            permit.settle(Some(u32::MAX));
        }
        limiter.throttled_at(at);
        limiter.succeeded();
        let _ = (limiter.predicted_wait_at(u32::MAX, at), state_at(&limiter, at));
        let _ = Waiting::new(&limiter, 0, u32::MAX, at).poll(at);
    }
    limiter.follow_at(&hint, now);
    limiter.hold_until(far + secs(1 << 40));
    assert!(Waiting::new(&limiter, 0, 1, now).poll(now).is_none());

    let debt = RateLimit::new().tokens_per_minute(1).max_queue_time(None).build()?;
    for _ in 0..100 {
        now_or_never(&debt, 0, now).map(|permit| permit.settle(Some(u32::MAX))).unwrap_or_default();
    }
    let mut waiter = Waiting::new(&debt, 0, 1, now);
    assert!(waiter.poll(now).is_none());
    assert!(waiter.again_at > Some(now + secs(1 << 32)));
    Ok(())
}

#[test]
fn time_that_runs_backwards_refills_nothing_twice() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().requests_per_minute(60).burst(1).build()?;
    let start = Instant::now();
    let admitted = (0..10).filter(|i| now_or_never(&limiter, 0, start + secs(5 * (i % 2))).is_some()).count();
    assert_eq!(admitted, 2, "the burst, and one in five seconds");
    Ok(())
}

#[test]
fn who_comes_with_an_older_time_is_told_to_come_back_when_it_is_true() -> Result<(), ConfigError> {
    let limiter = RateLimit::new().requests_per_minute(60).burst(1).build()?;
    let start = Instant::now() + secs(60);
    // Older than the first time of all, and than the last.
    for (newest, older) in [(start, start - secs(5)), (start + secs(30), start + secs(20))] {
        assert!(now_or_never(&limiter, 0, newest).is_some());
        let mut waiter = Waiting::new(&limiter, 0, 0, older);
        assert!(waiter.poll(older).is_none());
        assert_eq!(waiter.again_at, Some(newest + secs(1)));
    }
    Ok(())
}

#[test]
fn a_hundred_thousand_waiters_come_and_go() -> Result<(), ConfigError> {
    const WAITERS: usize = 100_000;
    let limiter = RateLimit::new().max_concurrent(1).max_queue_time(None).build()?;
    let now = Instant::now();
    let mut permit = now_or_never(&limiter, 0, now);
    let mut waiting: Vec<_> = (0..WAITERS).map(|id| Waiting::new(&limiter, id, 0, now)).collect();
    assert!(waiting.iter_mut().all(|waiter| waiter.poll(now).is_none()));
    assert_eq!(limiter.state().queued, WAITERS);
    let mut index = 0;
    waiting.retain(|_| {
        index += 1;
        index % 3 == 0
    });
    for waiter in &mut waiting {
        drop(permit.take());
        permit = waiter.poll(now).and_then(Result::ok);
        assert!(permit.is_some());
    }
    drop(permit);
    assert!(waiting.iter().all(|waiter| waiter.woken() == 1), "nobody is woken but in turn");
    assert_eq!(limiter.state(), RateLimitState::default());
    Ok(())
}

/// What may happen to a limiter.
#[derive(Clone, Debug)]
enum Step {
    Arrive(u32),
    Cancel(usize),
    Finish(usize, Option<u32>),
    Unsent(usize),
    Pass(u64),
    Throttled,
    Succeeded,
    Hint(u64, u64),
    Hold(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..40_u32).prop_map(Step::Arrive),
        2 => any::<usize>().prop_map(Step::Cancel),
        3 => (any::<usize>(), proptest::option::of(0..40_u32)).prop_map(|(i, spent)| Step::Finish(i, spent)),
        1 => any::<usize>().prop_map(Step::Unsent),
        4 => (0..3_000_000_000_u64).prop_map(Step::Pass),
        1 => Just(Step::Throttled),
        1 => Just(Step::Succeeded),
        1 => (0..5_u64, 0..5_000_u64).prop_map(|(left, reset)| Step::Hint(left, reset)),
        1 => (0..5_000_u64).prop_map(Step::Hold),
    ]
}

fn settings() -> impl Strategy<Value = RateLimit> {
    let limits =
        (proptest::option::of(1..200_u32), proptest::option::of(40..2_000_u64), proptest::option::of(1..4_u32));
    (limits, 0.0..1.0, any::<bool>(), any::<bool>()).prop_map(|((requests, tokens, slots), share, aimd, follow)| {
        let mut settings = RateLimit::new().max_queue_time(None).follow_provider(follow);
        settings.requests_per_minute = requests;
        settings.tokens_per_minute = tokens;
        settings.max_concurrent = slots;
        if let (Some(requests), true) = (requests, share < 0.5) {
            settings = settings.burst(requests.min(3));
        }
        if let (Some(tokens), true) = (tokens, share < 0.5) {
            settings = settings.token_burst(tokens.min(60));
        }
        if let (Some(requests), true) = (requests, aimd) {
            settings = settings.aimd(Aimd::new(1.0, 0.5, 1, requests));
        }
        settings
    })
}

/// What went out, or came back.
struct Entry {
    at: Instant,
    requests: i64,
    tokens: i64,
}

/// One limiter, everybody around it, and the books.
struct World {
    limiter: Limiter,
    settings: RateLimit,
    now: Instant,
    arrivals: usize,
    waiting: Vec<Waiting>,
    running: Vec<(u32, Permit)>,
    last: Option<usize>,
    books: Vec<Entry>,
}

impl World {
    fn admit(&mut self, id: usize, tokens: u32, permit: Permit) {
        assert!(self.last.is_none_or(|last| last < id), "served out of turn");
        self.last = Some(id);
        self.book(1, tokens.into());
        self.running.push((tokens, permit));
        if let Some(slots) = self.settings.max_concurrent {
            assert!(self.running.len() <= slots as usize, "too many at a time");
        }
    }

    fn book(&mut self, requests: i64, tokens: i64) {
        self.books.push(Entry { at: self.now, requests, tokens });
    }

    fn apply(&mut self, step: &Step) {
        let pick = |len: usize, i: usize| (len > 0).then(|| i % len);
        match *step {
            Step::Arrive(tokens) => {
                let id = self.arrivals;
                self.arrivals += 1;
                match self.limiter.try_acquire_at(tokens, self.now) {
                    Some(Ok(permit)) => self.admit(id, tokens, permit),
                    Some(Err(refusal)) => panic!("{refusal}"),
                    None => {
                        let mut waiter = Waiting::new(&self.limiter, id, tokens, self.now);
                        assert!(waiter.poll(self.now).is_none());
                        self.waiting.push(waiter);
                    }
                }
            }
            Step::Cancel(i) => {
                if let Some(i) = pick(self.waiting.len(), i) {
                    drop(self.waiting.remove(i));
                }
            }
            Step::Finish(i, spent) => {
                if let Some(i) = pick(self.running.len(), i) {
                    let (tokens, permit) = self.running.remove(i);
                    let spent = spent.map(|spent| spent.min(tokens));
                    permit.settle(spent);
                    self.book(0, i64::from(spent.unwrap_or(tokens)) - i64::from(tokens));
                }
            }
            Step::Unsent(i) => {
                if let Some(i) = pick(self.running.len(), i) {
                    let (tokens, permit) = self.running.remove(i);
                    permit.cancel();
                    self.book(-1, -i64::from(tokens));
                }
            }
            Step::Pass(nanos) => self.now += Duration::from_nanos(nanos),
            Step::Throttled => self.limiter.throttled_at(self.now),
            Step::Succeeded => self.limiter.succeeded(),
            Step::Hint(left, reset) => {
                let hint = LimitHint {
                    requests_remaining: Some(left),
                    requests_reset: Some(Duration::from_millis(reset)),
                    tokens_remaining: Some(left * 10),
                    tokens_reset: Some(Duration::from_millis(reset)),
                    ..LimitHint::default()
                };
                self.limiter.follow_at(&hint, self.now);
            }
            Step::Hold(millis) => self.limiter.hold_until(self.now + Duration::from_millis(millis)),
        }
    }

    /// Polls whoever was woken or is due, until nobody is. The last first, to try the order.
    fn run(&mut self) {
        while let Some(i) = self.waiting.iter().rposition(|waiter| waiter.is_due(self.now)) {
            if let Some(Ok(permit)) = self.waiting[i].poll(self.now) {
                let Waiting { id, tokens, .. } = self.waiting.remove(i);
                self.admit(id, tokens, permit);
            }
        }
    }

    /// Ends everything, and lets time pass as far as the head asks: whoever still waits must be served.
    fn wind_down(&mut self) {
        loop {
            self.run();
            for (_, permit) in mem::take(&mut self.running) {
                drop(permit);
            }
            self.run();
            if self.waiting.is_empty() && self.running.is_empty() {
                break;
            }
            if self.running.is_empty() {
                let again_at = self.waiting.iter().filter_map(|waiter| waiter.again_at).min();
                self.now = again_at.expect("somebody waits, and nothing will ever wake the queue");
            }
        }
    }

    fn check_every_window(&self) {
        let check = |limit: Option<u64>, burst: Option<u64>, size: fn(&Entry) -> i64| {
            let Some(limit) = limit else { return };
            for (i, first) in self.books.iter().enumerate() {
                let mut sum = 0;
                for last in &self.books[i..] {
                    sum += i128::from(size(last));
                    let time = last.at - first.at;
                    let most = i128::from(burst.unwrap_or(limit)) * 60_000_000_000
                        + i128::from(limit) * i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
                    assert!(sum * 60_000_000_000 <= most, "{sum} in {time:?}");
                }
            }
        };
        let settings = &self.settings;
        check(settings.requests_per_minute.map(u64::from), settings.burst.map(u64::from), |entry| entry.requests);
        check(settings.tokens_per_minute, settings.token_burst, |entry| entry.tokens);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens: never more than the buckets allow in any window (less what comes back in it), never too many at a time, served in order of
    /// arrival, nobody forgotten, and in the end nothing leaked.
    #[test]
    fn keeps_its_promises(settings in settings(), steps in proptest::collection::vec(step(), 1..120)) {
        let limiter = settings.build().expect("settings that work");
        let (now, waiting, running, books) = (Instant::now(), Vec::new(), Vec::new(), Vec::new());
        let mut world = World { limiter, settings, now, arrivals: 0, waiting, running, last: None, books };
        for step in &steps {
            world.apply(step);
            world.run();
        }
        world.wind_down();
        world.check_every_window();
        let state = state_at(&world.limiter, world.now + secs(10));
        prop_assert_eq!((state.in_flight, state.queued), (0, 0));
    }

    /// Cancelling anybody keeps the order of the rest.
    #[test]
    fn cancelling_any_subset_keeps_the_order(stays in proptest::collection::vec(any::<bool>(), 1..60)) {
        let limiter = RateLimit::new().max_concurrent(1).max_queue_time(None).build().expect("settings that work");
        let now = Instant::now();
        let first = now_or_never(&limiter, 0, now);
        let mut waiting: Vec<_> = (0..stays.len()).map(|id| Waiting::new(&limiter, id, 0, now)).collect();
        for waiter in &mut waiting {
            prop_assert!(waiter.poll(now).is_none());
        }
        waiting.retain(|waiter| stays[waiter.id]);
        drop(first);
        let mut served = Vec::new();
        while let Some(i) = waiting.iter().position(|waiter| waiter.is_due(now) && waiter.woken() > 0) {
            prop_assert!(waiting[i].is_served(now));
            served.push(waiting.remove(i).id);
        }
        prop_assert_eq!(served, (0..stays.len()).filter(|id| stays[*id]).collect::<Vec<_>>());
        prop_assert_eq!(limiter.state(), RateLimitState::default());
    }
}
