//! Every interleaving of threads that queue, give up and give back. Only this crate is built with loom:
//! `cargo rustc --lib --profile test -- --cfg loom`, then the program it makes, with `interleavings` as its argument.

use super::*;
use loom::{model::Builder, thread};
use std::task::{Context, Wake, Waker};

/// A thread that sleeps until it is woken. One that nobody wakes is a deadlock, which loom finds.
struct Sleeper(loom::sync::Notify);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

fn sleeper() -> (Arc<Sleeper>, Waker) {
    let sleeper = Arc::new(Sleeper(loom::sync::Notify::new()));
    (sleeper.clone(), Waker::from(sleeper))
}

/// Waits on wake-ups alone: time stands still.
fn acquire(limiter: &Limiter, tokens: u32, now: Instant) -> Permit {
    let (sleeper, waker) = sleeper();
    let mut ticket = limiter.ticket(tokens, true, now);
    loop {
        match ticket.poll_until(&mut Context::from_waker(&waker), now) {
            Turn::Served(answer) => return answer.expect("no bound to run into"),
            Turn::Wait(_) => sleeper.0.wait(),
        }
    }
}

fn try_all(settings: &RateLimit, threads: fn(&Limiter, Instant)) {
    let settings = settings.clone().max_queue_time(None);
    let now = Instant::now();
    let mut model = Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let limiter = settings.build().expect("settings that work");
        threads(&limiter, now);
        let state = limiter.state();
        assert_eq!((state.in_flight, state.queued), (0, 0));
    });
}

#[test]
fn giving_back_a_slot_meets_queueing() {
    try_all(&RateLimit::new().max_concurrent(1), |limiter, now| {
        let permit = acquire(limiter, 0, now);
        let waiter = thread::spawn({
            let limiter = limiter.clone();
            move || drop(acquire(&limiter, 0, now))
        });
        drop(permit);
        waiter.join().expect("served");
    });
}

#[test]
fn giving_back_tokens_meets_queueing() {
    try_all(&RateLimit::new().tokens_per_minute(10), |limiter, now| {
        let permit = acquire(limiter, 10, now);
        let waiter = thread::spawn({
            let limiter = limiter.clone();
            move || acquire(&limiter, 7, now).settle(Some(7))
        });
        permit.settle(Some(3));
        waiter.join().expect("served");
    });
}

#[test]
fn cancelling_an_unsent_request_meets_queueing() {
    try_all(&RateLimit::new().requests_per_minute(1), |limiter, now| {
        let permit = acquire(limiter, 0, now);
        let waiter = thread::spawn({
            let limiter = limiter.clone();
            move || drop(acquire(&limiter, 0, now))
        });
        permit.cancel();
        waiter.join().expect("served");
    });
}

#[test]
fn leaving_the_head_meets_giving_back() {
    try_all(&RateLimit::new().max_concurrent(1), |limiter, now| {
        let permit = acquire(limiter, 0, now);
        let (_, waker) = sleeper();
        let mut head = limiter.ticket(0, true, now);
        assert!(matches!(head.poll_until(&mut Context::from_waker(&waker), now), Turn::Wait(None)));
        let next = thread::spawn({
            let limiter = limiter.clone();
            move || drop(acquire(&limiter, 0, now))
        });
        let gives_up = thread::spawn(move || drop(head));
        drop(permit);
        gives_up.join().expect("gone");
        next.join().expect("served");
    });
}

#[test]
fn two_waiters_are_served_one_after_the_other() {
    try_all(&RateLimit::new().max_concurrent(1), |limiter, now| {
        let permit = acquire(limiter, 0, now);
        let waiters = [(); 2].map(|()| {
            let limiter = limiter.clone();
            thread::spawn(move || drop(acquire(&limiter, 0, now)))
        });
        drop(permit);
        for waiter in waiters {
            waiter.join().expect("served");
        }
    });
}

#[test]
fn a_success_meets_queueing() {
    let settings = RateLimit::new().requests_per_minute(2).burst(2).aimd(Aimd::new(1.0, 0.5, 1, 2));
    try_all(&settings, |limiter, now| {
        limiter.throttled_at(now);
        drop(acquire(limiter, 0, now));
        let (woken, waker) = sleeper();
        let mut head = limiter.ticket(0, true, now);
        let succeeds = thread::spawn({
            let limiter = limiter.clone();
            move || limiter.succeeded()
        });
        let Turn::Wait(Some(mut again_at)) = head.poll_until(&mut Context::from_waker(&waker), now) else {
            panic!("nothing is left");
        };
        while again_at > now + Duration::from_secs(30) {
            woken.0.wait();
            let Turn::Wait(Some(sooner)) = head.poll_until(&mut Context::from_waker(&waker), now) else {
                panic!("nothing is left");
            };
            again_at = sooner;
        }
        succeeds.join().expect("told");
    });
}
