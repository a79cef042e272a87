use super::*;
use crate::resilience::{LimitReason, Limiter};
use std::sync::Mutex;

const SECOND: Duration = Duration::from_secs(1);

/// Notes what it is asked and told. It admits what may wait, and refuses the rest.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().expect("whole").push(what.into());
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("whole"))
    }
}

impl SharedLimiter for Notes {
    fn admit(self: Arc<Self>, tokens: u32, wait: bool) -> Admission {
        self.note(format!("admit {tokens} {wait}"));
        Box::pin(async move {
            if wait {
                Ok(Permit::shared(Noted(Arc::clone(&self))))
            } else {
                Err(LimitRefusal::new(LimitReason::QueueFull, Bucket::Tokens, 7))
            }
        })
    }

    fn predicted_wait(&self, tokens: u32) -> Duration {
        SECOND * tokens
    }

    fn waiting_for(&self) -> Bucket {
        Bucket::Concurrency
    }

    fn state(&self) -> RateLimitState {
        RateLimitState { queued: 3, ..RateLimitState::default() }
    }

    fn estimate_fraction(&self) -> f64 {
        0.5
    }

    fn succeeded(&self) {
        self.note("succeeded");
    }

    fn throttled(&self) {
        self.note("throttled");
    }

    fn follows(&self) -> bool {
        true
    }

    fn follow(&self, hint: &LimitHint) {
        self.note(format!("follow {:?}", hint.requests_remaining));
    }

    fn hold_until(&self, until: Instant) {
        self.note(format!("hold {:?}", until - Instant::now()));
    }
}

#[derive(Debug)]
struct Noted(Arc<Notes>);

impl SharedPermit for Noted {
    fn settle(self: Box<Self>, settlement: Settlement) {
        self.0.note(format!("{settlement:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_asked_and_told_everything_that_a_limiter_of_this_process_is() {
    let notes = Arc::new(Notes::default());
    let limiter = Limiter::shared(Arc::clone(&notes) as Arc<dyn SharedLimiter>);

    limiter.acquire(10).await.expect("it admits").settle(Some(4));
    limiter.acquire(11).await.expect("it admits").settle(None);
    limiter.acquire(12).await.expect("it admits").cancel();
    drop(limiter.acquire(13).await.expect("it admits"));
    let expected = [
        "admit 10 true",
        "Spent(4)",
        "admit 11 true",
        "Estimate",
        "admit 12 true",
        "Unsent",
        "admit 13 true",
        "Estimate",
    ];
    assert_eq!(notes.taken(), expected);
    let refusal = limiter.acquire_now(14).await.expect_err("it refuses what may not wait");
    assert_eq!((refusal.reason, refusal.bucket, refusal.limit), (LimitReason::QueueFull, Bucket::Tokens, 7));

    limiter.succeeded();
    limiter.throttled();
    limiter.follow(&LimitHint { requests_remaining: Some(9), ..LimitHint::default() });
    limiter.hold_until(Instant::now() + SECOND);
    assert_eq!(notes.taken(), ["admit 14 false", "succeeded", "throttled", "follow Some(9)", "hold 1s"]);
    assert_eq!((limiter.predicted_wait(3), limiter.estimate_fraction(), limiter.follows()), (SECOND * 3, 0.5, true));
    assert_eq!(limiter.state().queued, 3);
    assert_eq!(limiter.ticket(15, true, Instant::now()).bucket(), Bucket::Concurrency);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_ends_too_late_is_refused_for_what_its_queue_waits_for() {
    let limiter = Limiter::shared(Arc::new(Notes::default()));
    let now = Instant::now();
    assert!(limiter.too_long_at(3, now, now + SECOND * 3).is_none());
    let (wait, refusal) = limiter.too_long_at(4, now, now + SECOND * 3).expect("its wait is 4 s");
    assert_eq!((wait, refusal.reason, refusal.bucket), (SECOND * 4, LimitReason::QueueTimeout, Bucket::Concurrency));
}

/// What one is that has nothing to say of estimates, outcomes and the provider's own limits.
#[derive(Debug)]
struct Plain;

impl SharedLimiter for Plain {
    fn admit(self: Arc<Self>, _: u32, _: bool) -> Admission {
        Box::pin(std::future::pending())
    }

    fn predicted_wait(&self, _: u32) -> Duration {
        Duration::ZERO
    }

    fn waiting_for(&self) -> Bucket {
        Bucket::Requests
    }

    fn state(&self) -> RateLimitState {
        RateLimitState::default()
    }
}

#[test]
fn an_estimate_is_reserved_whole_and_no_hint_is_followed_unless_it_says_so() {
    let limiter = Limiter::shared(Arc::new(Plain));
    assert_eq!((limiter.estimate_fraction(), limiter.follows()), (1.0, false));
}
