//! Every interleaving of a few threads, under loom:
//! `RUSTFLAGS="--cfg loom" cargo test --release --lib --no-default-features interleavings`.

use super::*;
use loom::thread;
use std::time::Duration;

fn retry(budget: &Budget, now: Instant) -> Option<BudgetMark> {
    match budget.try_retry_at(now) {
        Answer::Now(mark) => mark,
        Answer::Later(_) => panic!("a local budget answers at once"),
    }
}

#[test]
fn two_retries_do_not_pass_on_one_reading() {
    loom::model(|| {
        let now = Instant::now();
        let budget = Budget::local(&RetryBudget::new(Duration::from_secs(64), 1, 0.1), now);
        budget.record_first_at(now);
        let other = budget.clone();
        let thread = thread::spawn(move || retry(&other, now));
        let (one, two) = (retry(&budget, now), thread.join().expect("no panic"));
        assert!(one.is_some() != two.is_some());
        drop((one, two));
        assert_eq!(budget.state_at(now), RetryBudgetState::new(1, 0));
    });
}

#[test]
fn a_first_attempt_beside_the_turn_of_a_bucket_is_counted_once() {
    loom::model(|| {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let budget = Budget::local(&RetryBudget::new(Duration::from_secs(64), 1, 1.0), now);
        let other = budget.clone();
        let thread = thread::spawn(move || {
            other.record_first_at(now);
            other.record_first_at(later);
        });
        budget.record_first_at(later);
        let mark = retry(&budget, later);
        thread.join().expect("no panic");
        assert_eq!(budget.state_at(later), RetryBudgetState::new(4, 1));
        drop(mark);
        assert_eq!(budget.state_at(later), RetryBudgetState::new(3, 0));
    });
}
