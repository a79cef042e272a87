use super::*;
use crate::resilience::limiter::Taken;
use crate::resilience::{
    Advice, Aimd, Breaker, Budget, CircuitBreaker, CircuitState, FailureEvidence, Limiter, Outcome, RateLimit,
    RateLimitState, RetryBudget, RetryBudgetState,
};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::advance;

const SECOND: Duration = Duration::from_secs(1);

/// A target of which one call holds everything: a request of 60 tokens, and a retry.
struct Target {
    breaker: Breaker,
    limiter: Limiter,
    budget: Budget,
}

impl Target {
    fn new(breaker: &CircuitBreaker) -> Self {
        let limits = RateLimit::new().requests_per_minute(60).tokens_per_minute(100).max_concurrent(1);
        Self {
            breaker: breaker.build().expect("valid"),
            limiter: limits.aimd(Aimd::new(60.0, 0.5, 1, 120)).build().expect("valid"),
            budget: RetryBudget::new(600 * SECOND, 0, 1.0).build().expect("valid"),
        }
    }

    async fn lease(&self) -> Lease {
        let guards = Guards {
            breaker: Some(self.breaker.clone()),
            budget: Some(self.budget.clone()),
            limiter: Some(self.limiter.clone()),
        };
        let mut lease = Lease::new(&Arc::new(guards), Instant::now());
        let holding = lease.holding();
        holding.admission = Some(self.breaker.admit("").await.expect("it admits"));
        holding.permit = Some(Taken::Permit(self.limiter.acquire_now(60).await.expect("there is room")));
        holding.mark = self.budget.try_retry().await;
        holding.timeout = Some(4 * SECOND);
        holding.max_advised = 60 * SECOND;
        lease
    }

    /// Requests and tokens that are left, and retries in the books; no slot is taken.
    fn left(&self) -> (u64, u64, u64) {
        let RateLimitState { requests_remaining, tokens_remaining, in_flight, .. } = self.limiter.state();
        assert_eq!(in_flight, 0);
        let RetryBudgetState { retries, .. } = self.budget.state();
        (requests_remaining.expect("limited"), tokens_remaining.expect("limited"), retries)
    }

    fn failures(&self) -> BTreeMap<&'static str, u64> {
        self.breaker.failure_breakdown()
    }
}

/// A target whose circuit has failed once, and opens at the second time in a row.
fn shaky() -> Target {
    let target = Target::new(&CircuitBreaker::consecutive(2));
    fail_once(&target.breaker);
    target
}

fn fail_once(breaker: &Breaker) {
    let admission = match breaker.admit_at("", Instant::now()) {
        crate::resilience::answer::Answer::Now(answer) => answer.expect("closed"),
        crate::resilience::answer::Answer::Later(_) => panic!("a local breaker answers at once"),
    };
    breaker.record(admission, Outcome::Failure(FailureEvidence::new("before")));
}

#[tokio::test(start_paused = true)]
async fn success_settles_the_tokens_keeps_the_retry_and_is_a_success_for_the_circuit() {
    let target = shaky();
    let lease = target.lease().await;
    lease.0.progress.head();
    lease.succeed(Some(10));
    assert_eq!(target.left(), (59, 90, 1));
    fail_once(&target.breaker);
    assert_eq!(target.breaker.state(), CircuitState::Closed, "no longer the second in a row");
    advance(60 * SECOND).await;
    assert_eq!(target.limiter.state().requests_remaining, Some(120), "and raises the limit of the next minute");
}

#[tokio::test(start_paused = true)]
async fn success_without_a_report_lets_the_estimate_stand() {
    let target = shaky();
    let lease = target.lease().await;
    lease.0.progress.sent();
    lease.succeed(None);
    assert_eq!(target.left(), (59, 40, 1));
}

#[tokio::test(start_paused = true)]
async fn an_output_that_turned_out_to_be_a_failure_is_one() {
    let target = shaky();
    let lease = target.lease().await;
    lease.0.progress.head();
    lease.fail(&Verdict::transient("broken_stream"), Some(70));
    assert_eq!((target.left(), target.breaker.state()), ((59, 30, 1), CircuitState::Open));
    assert_eq!(target.failures(), BTreeMap::from([("before", 1), ("broken_stream", 1)]));
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_says_nothing_neither_opens_nor_resets() {
    let target = shaky();
    let lease = target.lease().await;
    lease.0.progress.head();
    lease.fail(&Verdict::permanent("refused"), None);
    assert_eq!((target.left(), target.breaker.state()), ((59, 40, 1), CircuitState::Closed));
    fail_once(&target.breaker);
    assert_eq!(target.breaker.state(), CircuitState::Open);
}

#[tokio::test(start_paused = true)]
async fn dropped_with_nothing_sent_everything_comes_back_and_nothing_is_recorded() {
    let target = shaky();
    let lease = target.lease().await;
    advance(100 * SECOND).await;
    drop(lease);
    assert_eq!(target.left(), (60, 100, 0));
    assert_eq!(target.failures(), BTreeMap::from([("before", 1)]));
}

#[tokio::test(start_paused = true)]
async fn dropped_after_it_was_sent_the_slot_comes_back_and_the_estimate_stays() {
    let target = shaky();
    let lease = target.lease().await;
    lease.0.progress.sent();
    drop(lease);
    assert_eq!(target.left(), (59, 40, 1));
    assert_eq!(target.failures(), BTreeMap::from([("before", 1)]), "too soon to be evidence");
}

#[tokio::test(start_paused = true)]
async fn dropped_after_a_long_silence_it_is_a_timeout() {
    for (silence, hung) in [(1_999, false), (2_000, true)] {
        let target = shaky();
        let lease = target.lease().await;
        lease.0.progress.sent();
        advance(Duration::from_millis(silence)).await;
        drop(lease);
        assert_eq!(target.failures().contains_key("request_timeout"), hung);
        assert_eq!(target.breaker.state(), if hung { CircuitState::Open } else { CircuitState::Closed });
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_after_an_answer_began_it_says_nothing_however_late() {
    let target = shaky();
    let lease = target.lease().await;
    lease.0.progress.head();
    advance(100 * SECOND).await;
    drop(lease);
    assert_eq!(target.failures(), BTreeMap::from([("before", 1)]));
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_is_dropped_gives_its_slot_back() {
    let target = Target::new(&CircuitBreaker::default().cooldown(SECOND));
    target.breaker.open();
    advance(SECOND).await;
    let lease = target.lease().await;
    assert!(lease.0.is_trial() && target.breaker.admit("").await.is_err());
    lease.0.progress.sent();
    drop(lease);
    advance(60 * SECOND).await;
    let lease = target.lease().await;
    assert!(lease.0.is_trial());
    lease.0.progress.sent();
    lease.succeed(None);
    assert_eq!(target.breaker.state(), CircuitState::Closed);
    advance(60 * SECOND).await;
    assert!(!target.lease().await.0.is_trial());
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_the_last_failure_advised_is_the_cooldown_up_to_its_bound() {
    for (advised, cooldown) in [(45, 45), (60, 60), (3_600, 60)] {
        let target = shaky();
        let lease = target.lease().await;
        lease.0.progress.head();
        lease.fail(&Verdict { retry: Advice::After(advised * SECOND), ..Verdict::transient("limited") }, None);
        let refusal = target.breaker.admit("").await.expect_err("open");
        assert_eq!(refusal.retry_after(), Some(cooldown * SECOND));
    }
}

#[tokio::test(start_paused = true)]
async fn the_tag_of_the_last_failure_is_kept_for_refusals() {
    let target = shaky();
    let lease = target.lease().await;
    lease.0.progress.head();
    lease.fail(&Verdict { tag: Some(529), ..Verdict::transient("overloaded") }, None);
    let refusal = target.breaker.admit("").await.expect_err("open");
    assert_eq!((refusal.last_label, refusal.last_tag), (Some("overloaded"), Some(529)));
}

#[tokio::test(start_paused = true)]
async fn what_is_given_up_has_spent_what_is_known_and_says_nothing_of_the_target() {
    let target = shaky();
    let lease = target.lease().await;
    lease.0.progress.sent();
    advance(60 * SECOND).await; // silence enough, were it cut off
    lease.abandon(Some(25));
    assert_eq!(target.limiter.state().in_flight, 0);
    assert_eq!(target.failures(), BTreeMap::from([("before", 1)]));
    assert_eq!(target.breaker.state(), CircuitState::Closed);

    let lease = target.lease().await;
    lease.0.progress.head();
    lease.abandon(Some(25));
    assert_eq!(target.left().1, 75, "of 100 tokens, 60 of which were reserved");
}
