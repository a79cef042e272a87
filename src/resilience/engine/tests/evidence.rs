//! What the circuit is told in the end: one outcome a run.

use super::*;
use crate::resilience::FailureEvidence;

fn failure(label: &'static str) -> Outcome {
    Outcome::Failure(FailureEvidence::new(label))
}

#[tokio::test(start_paused = true)]
async fn a_run_that_fails_and_then_succeeds_is_one_success() {
    let fleet = Arc::new(Fleet::default());
    let bench = Bench::new(2).fleet(&fleet);
    let (_, lease) = bench.run(Run::default(), &mut Script::new([BUSY, BUSY, DONE])).await.expect("done");
    assert_eq!(fleet.outcomes(), []);
    lease.succeed(None);
    assert_eq!(fleet.outcomes(), [Outcome::Success]);
}

#[tokio::test(start_paused = true)]
async fn an_output_is_an_answer_whatever_the_operation_has_told_of_it() {
    for step in [DONE, DONE.head()] {
        let fleet = Arc::new(Fleet::default());
        let (_, lease) = Bench::new(0).fleet(&fleet).run(Run::default(), &mut Script::new([step])).await.expect("done");
        sleep(60 * SECOND).await; // used for longer than a silence may be
        drop(lease);
        assert_eq!(fleet.outcomes(), [Outcome::Released]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_failure_is_the_evidence() {
    for (steps, outcome) in [
        (vec![WRONG], Outcome::Released),
        (vec![BUSY, WRONG], Outcome::Released),
        (vec![BUSY, fails(Verdict::transient("down"))], failure("down")),
        (vec![fails(Verdict { tag: Some(503), ..Verdict::transient("down") }); 2], {
            let mut evidence = FailureEvidence::new("down");
            evidence.tag = Some(503);
            Outcome::Failure(evidence)
        }),
    ] {
        let fleet = Arc::new(Fleet::default());
        Bench::new(1).fleet(&fleet).fail(Run::default(), steps).await;
        assert_eq!(fleet.outcomes(), [outcome]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_advised_wait_is_evidence_up_to_the_longest_worth_honouring() {
    for (advised, told) in [(5, 5), (60, 60), (61, 60)] {
        let fleet = Arc::new(Fleet::default());
        Bench::new(0).fleet(&fleet).fail(Run::default(), [fails(advises(advised * SECOND))]).await;
        let evidence = FailureEvidence::new("limited").advised(u32::try_from(told).expect("small") * SECOND);
        assert_eq!(fleet.outcomes(), [Outcome::Failure(evidence)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_does_not_blind_the_circuit() {
    let fleet = Arc::new(Fleet::default());
    let failed = Bench::new(3).fleet(&fleet).budget(&budget(0, 0.0)).fail(Run::default(), [BUSY]).await;
    assert_eq!((failed.stop, fleet.labels()), (Stop::Budget, vec!["busy"]));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_a_failure_still_records_that_failure() {
    // By the limiter, at once and after its queue.
    for settings in [RateLimit::new().max_queue_len(0), RateLimit::new().max_queue_time(SECOND)] {
        let fleet = Arc::new(Fleet::default());
        let limiter = settings.requests_per_minute(1).build().expect("valid");
        let failed = Bench::new(3).fleet(&fleet).limiter(&limiter).fail(Run::default(), [BUSY]).await;
        assert!(matches!(failed.stop, Stop::Limit(_)));
        assert_eq!(fleet.labels(), ["busy"]);
    }
    // By the deadline, in the queue.
    let fleet = Arc::new(Fleet::default());
    let limiter = RateLimit::new().requests_per_minute(1).build().expect("valid");
    let failed = Bench::new(3).fleet(&fleet).limiter(&limiter).fail(by_deadline(5 * SECOND), [BUSY]).await;
    assert_eq!((failed.stop, fleet.labels()), (Stop::Deadline, vec!["busy"]));
    // By the circuit, after the wait.
    let fleet = Arc::new(Fleet { recheck: true, ..Fleet::default() });
    let bench = Bench::new(3).fleet(&fleet);
    let mut op = Script::new([BUSY]);
    let refuse = async { fleet.refuses.store(true, SeqCst) };
    let (ran, ()) = tokio::join!(bench.run(Run::default(), &mut op), refuse);
    assert!(matches!(ran.expect_err("refused").stop, Stop::Circuit(_)));
    assert_eq!(fleet.labels(), ["busy"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_before_any_attempt_says_nothing() {
    let fleet = Arc::new(Fleet::default());
    let limiter = RateLimit::new().tokens_per_minute(1).build().expect("valid");
    let run = Run { cost: 2, ..Run::default() };
    Bench::new(3).fleet(&fleet).limiter(&limiter).fail(run, []).await;
    assert_eq!(fleet.labels(), ["(released)"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_cancelled_between_its_attempts_says_nothing() {
    let fleet = Arc::new(Fleet { hang_evidence: Some(ms(100)), ..Fleet::default() });
    let limiter = RateLimit::new().requests_per_minute(1).build().expect("valid");
    // In the wait for the retry, and in the queue after it.
    for cancel_at in [ms(500), ms(1_500)] {
        let token = cancel_after(cancel_at);
        let bench = Bench::new(3).fleet(&fleet).limiter(&limiter);
        let failed = bench.fail(cancelled_by(&token), [BUSY]).await;
        assert_eq!(failed.stop, Stop::Cancelled);
        tokio::time::advance(60 * SECOND).await;
    }
    assert_eq!(fleet.labels(), ["(released)"; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_run_dropped_between_its_attempts_says_nothing() {
    let fleet = Arc::new(Fleet { hang_evidence: Some(ms(100)), ..Fleet::default() });
    let bench = Bench::new(3).fleet(&fleet);
    let mut op = Script::new([BUSY.after(SECOND)]);
    assert!(tokio::time::timeout(ms(1_500), bench.run(Run::default(), &mut op)).await.is_err());
    assert_eq!(fleet.labels(), ["(released)"]);
}

/// How an attempt is cut off by one who has no more time or interest.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Cancel,
    Deadline,
    Drop,
    Reserve,
}

/// The outcome of an attempt that is cut off after so long.
async fn cut_off(cut: Cut, after: Duration, step: Step) -> Vec<&'static str> {
    let fleet = Arc::new(Fleet { hang_evidence: Some(2 * SECOND), ..Fleet::default() });
    // Another failure, and time, comes first: only the attempt's own silence is evidence.
    let bench = Bench::new(1).fleet(&fleet).timeout(60 * SECOND);
    let all = 11 * SECOND + after;
    let token = CancellationToken::new();
    let run = match cut {
        Cut::Cancel => {
            let later = token.clone();
            tokio::spawn(async move {
                sleep(all).await;
                later.cancel();
            });
            cancelled_by(&token)
        }
        Cut::Deadline => by_deadline(all),
        Cut::Reserve => by_reserve(all),
        Cut::Drop => Run::default(),
    };
    let mut op = Script::new([BUSY.after(10 * SECOND), step]);
    if matches!(cut, Cut::Drop) {
        assert!(tokio::time::timeout(all, bench.run(run, &mut op)).await.is_err());
    } else {
        let failed = bench.run(run, &mut op).await.expect_err("cut off");
        assert_eq!(failed.tried.len(), 2);
    }
    assert_eq!(op.attempts(), 2);
    fleet.labels()
}

#[tokio::test(start_paused = true)]
async fn an_attempt_cut_off_is_evidence_only_if_it_was_silent_for_long() {
    for cut in [Cut::Cancel, Cut::Deadline, Cut::Drop, Cut::Reserve] {
        assert_eq!(cut_off(cut, ms(2_000), HANGS).await, ["request_timeout"], "{cut:?}");
        assert_eq!(cut_off(cut, ms(1_999), HANGS).await, ["(released)"], "{cut:?}, too soon");
        assert_eq!(cut_off(cut, ms(9_000), HANGS.head()).await, ["(released)"], "{cut:?}, it had begun to answer");
        assert_eq!(cut_off(cut, ms(9_000), HANGS.unsent()).await, ["(released)"], "{cut:?}, nothing was sent");
    }
}

#[tokio::test(start_paused = true)]
async fn its_own_timeout_is_a_failure_however_short() {
    let fleet = Arc::new(Fleet { hang_evidence: Some(20 * SECOND), ..Fleet::default() });
    let bench = Bench::new(0).fleet(&fleet).timeout(SECOND);
    bench.fail(Run::default(), [HANGS]).await;
    bench.fail(by_deadline(ms(1_001)), [HANGS]).await;
    bench.fail(by_reserve(ms(1_001)), [HANGS]).await;
    assert_eq!(fleet.labels(), ["timeout"; 3]);
    bench.fail(by_reserve(ms(1_000)), [HANGS]).await;
    assert_eq!(fleet.labels()[3], "(released)", "at the same instant it was the reserve");
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_its_own_is_no_cut_even_at_the_end() {
    let fleet = Arc::new(Fleet { hang_evidence: Some(20 * SECOND), ..Fleet::default() });
    let failed = Bench::new(3).fleet(&fleet).fail(by_reserve(SECOND), [BUSY.after(SECOND)]).await;
    assert_eq!((failed.stop, fleet.labels()), (Stop::Deadline, vec!["busy"]));
}

#[tokio::test(start_paused = true)]
async fn hang_evidence_is_half_of_the_timeout_and_at_most_ten_seconds() {
    for (timeout, evidence) in [(Some(4), 2), (Some(20), 10), (Some(120), 10), (None, 10)] {
        for (after, label) in [(evidence * 1_000 - 1, "(released)"), (evidence * 1_000, "request_timeout")] {
            let fleet = Arc::new(Fleet::default());
            let bench = Bench { timeout: timeout.map(Duration::from_secs), ..Bench::new(0) }.fleet(&fleet);
            bench.fail(by_deadline(ms(after)), [HANGS]).await;
            assert_eq!(fleet.labels(), [label], "{timeout:?} {after}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_panics_gives_everything_back() {
    for (step, requests, tokens) in [
        (Step { ends: Ends::Panics, ..DONE.unsent() }, 60, 100),
        (Step { ends: Ends::Panics, ..DONE }, 59, 90), // it may have been spent
    ] {
        let fleet = Arc::new(Fleet::default());
        let limiter = RateLimit::new().requests_per_minute(60).tokens_per_minute(100).build().expect("valid");
        let bench = Bench::new(1).fleet(&fleet).limiter(&limiter);
        let ran = tokio::spawn(async move {
            bench.run(Run { cost: 10, ..Run::default() }, &mut Script::new([step])).await.map(|(output, _)| output)
        });
        assert!(ran.await.expect_err("on purpose").is_panic());
        let state = limiter.state();
        assert_eq!(
            (state.in_flight, state.requests_remaining, state.tokens_remaining),
            (0, Some(requests), Some(tokens))
        );
        assert_eq!(fleet.labels(), ["(released)"]);
    }
}
