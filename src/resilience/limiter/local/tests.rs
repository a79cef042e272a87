use super::*;
use crate::resilience::Aimd;
use std::sync::{Arc, mpsc};
use std::thread;

fn adaptive(start: u32, max: u32) -> Arc<Local> {
    Arc::new(Local::new(&RateLimit::new().requests_per_minute(start).aimd(Aimd::new(1.0, 0.5, 1, max))))
}

#[test]
fn giving_back_takes_no_lock_when_nobody_waits() {
    let limiter = adaptive(60, 120);
    let held = limiter.lock();
    let other = Arc::clone(&limiter);
    let (done, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        for settlement in [Settlement::Spent(7), Settlement::Estimate, Settlement::Unsent] {
            other.settle(10, settlement);
        }
        other.succeeded();
        let _ = done.send(());
    });
    let done = told.recv_timeout(Duration::from_secs(2));
    drop(held);
    thread.join().expect("no panic");
    assert!(done.is_ok());
}

#[test]
fn successes_are_counted_only_while_they_raise_the_limit() {
    let now = Instant::now();
    let limiter = adaptive(59, 60);
    let counted = || {
        limiter.succeeded();
        limiter.state(now);
        limiter.successes.load(Relaxed)
    };
    assert_eq!((counted(), counted()), (1, 1), "the first has reached the maximum");
    limiter.throttled(now);
    assert_eq!(counted(), 2);
    // Whoever takes next has seen it too.
    let limiter = adaptive(59, 60);
    for _ in 0..3 {
        limiter.succeeded();
        assert!(limiter.try_now(0, now).is_some_and(|answer| answer.is_ok()));
    }
    assert_eq!(limiter.successes.load(Relaxed), 1);
    let fixed = Local::new(&RateLimit::new().requests_per_minute(60));
    fixed.succeeded();
    assert_eq!(fixed.successes.load(Relaxed), 0);
}

#[test]
fn it_shows_its_settings() {
    let shown = format!("{:?}", adaptive(59, 60));
    assert!(shown.starts_with("Local { settings: RateLimit { requests_per_minute: Some(59)"), "{shown}");
}
