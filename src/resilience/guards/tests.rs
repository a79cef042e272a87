use super::*;
use crate::resilience::CircuitState;
use std::time::Duration;

#[tokio::test]
async fn settings_make_a_guard_of_their_own_each_time() {
    let random = Random::seeded(1);
    let breaker = Guard::from(CircuitBreaker::default());
    let (one, other) = (breaker.build(&random).expect("valid"), breaker.build(&random).expect("valid"));
    one.open();
    assert_eq!(other.state(), CircuitState::Closed);
}

#[tokio::test]
async fn a_running_guard_is_shared() {
    let random = Random::seeded(1);
    let breaker = CircuitBreaker::default().build().expect("valid");
    Guard::from(breaker.clone()).build(&random).expect("it runs").open();
    assert_eq!(breaker.state(), CircuitState::Open);

    let budget = RetryBudget::new(Duration::from_secs(60), 1, 0.5).build().expect("valid");
    Guard::from(budget.clone()).build(&random).expect("it runs").record_first();
    assert_eq!(budget.state().attempts, 1);

    let limiter = RateLimit::new().max_concurrent(1).build().expect("valid");
    let permit = Guard::from(limiter.clone()).build(&random).expect("it runs").acquire_now(0).await;
    assert_eq!((permit.is_ok(), limiter.state().in_flight), (true, 1));
}

#[tokio::test]
async fn impossible_settings_make_none() {
    let random = Random::seeded(1);
    assert!(Guard::from(CircuitBreaker::consecutive(0)).build(&random).is_err());
    assert!(Guard::from(RetryBudget::new(Duration::ZERO, 1, 0.5)).build(&random).is_err());
    assert!(Guard::from(RateLimit::new().max_concurrent(0)).build(&random).is_err());
}
