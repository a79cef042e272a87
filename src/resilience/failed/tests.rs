use super::*;
use crate::resilience::{Bucket, LimitReason, RefusalReason};

#[test]
fn every_stop_says_why() {
    let refusal = CircuitRefusal::new(RefusalReason::HeldOpen, Instant::now());
    let limit = LimitRefusal::new(LimitReason::QueueTimeout, Bucket::Requests, 60);
    for (stop, said) in [
        (Stop::NotRetryable, "not retryable"),
        (Stop::UsedUp, "retries used up"),
        (Stop::Budget, "retry budget exhausted"),
        (Stop::Deadline, "deadline exceeded"),
        (Stop::WaitTooLong, "the advised wait is too long"),
        (Stop::Cancelled, "cancelled"),
        (Stop::Circuit(refusal), "circuit held open after 0 failures"),
        (Stop::Limit(limit), "waited too long for requests (limit 60)"),
    ] {
        assert_eq!(stop.to_string(), said);
    }
}
