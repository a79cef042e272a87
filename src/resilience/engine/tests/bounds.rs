//! Time and cancellation: what ends an attempt, a wait or a run, and by which name.

use super::*;
use crate::resilience::LimitReason;

#[tokio::test(start_paused = true)]
async fn a_spent_deadline_asks_nobody_and_sends_nothing() {
    let fleet = Arc::new(Fleet::default());
    let bench = Bench::new(1).fleet(&fleet);
    for run in [by_deadline(Duration::ZERO), by_reserve(Duration::ZERO)] {
        let failed = bench.fail(run, []).await;
        assert_eq!((failed.stop, failed.tried.len(), failed.sent), (Stop::Deadline, 0, false));
    }
    assert_eq!(fleet.admits.load(SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_token_asks_nobody_and_sends_nothing() {
    let fleet = Arc::new(Fleet::default());
    let (cancelled, other) = (CancellationToken::new(), CancellationToken::new());
    cancelled.cancel();
    for cancel in [Cancel::either(Some(&cancelled), Some(&other)), Cancel::either(Some(&other), Some(&cancelled))] {
        let failed = Bench::new(1).fleet(&fleet).fail(Run { cancel, ..Run::default() }, []).await;
        assert_eq!((failed.stop, failed.tried.len(), failed.sent), (Stop::Cancelled, 0, false));
    }
    assert_eq!(fleet.admits.load(SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_cancelled_and_late_was_cancelled() {
    let token = CancellationToken::new();
    token.cancel();
    let run = Run { cancel: Cancel::either(Some(&token), None), ..by_deadline(Duration::ZERO) };
    assert_eq!(Bench::new(1).fail(run, []).await.stop, Stop::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn the_first_attempt_is_made_with_whatever_time_is_left() {
    let (output, lease) = Bench::new(1).run(by_deadline(ms(1)), &mut Script::new([DONE])).await.expect("done");
    assert_eq!(output, "done");
    lease.succeed(None);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_cut_off_at_its_timeout_and_tried_again() {
    let start = Instant::now();
    let bench = Bench::new(1).timeout(3 * SECOND);
    let failed = bench.fail(Run::default(), [HANGS, HANGS]).await;
    assert_eq!(failed.stop, Stop::UsedUp);
    assert_eq!(errors(&failed), [Broken::Cut(Interrupt::Timeout(3 * SECOND)); 2]);
    assert_eq!(failed.tried.iter().map(|tried| tried.took).collect::<Vec<_>>(), [3 * SECOND; 2]);
    assert_eq!(start.elapsed(), 7 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_the_run_replaces_that_of_the_policy() {
    let bench = Bench::new(0).timeout(3 * SECOND);
    let shorter = Run { timeout: Some(Some(SECOND)), ..Run::default() };
    assert_eq!(errors(&bench.fail(shorter, [HANGS]).await), [Broken::Cut(Interrupt::Timeout(SECOND))]);
    let longer = Run { timeout: Some(Some(5 * SECOND)), ..Run::default() };
    assert_eq!(errors(&bench.fail(longer, [HANGS]).await), [Broken::Cut(Interrupt::Timeout(5 * SECOND))]);
    let none = Run { timeout: Some(None), ..by_deadline(100 * SECOND) };
    assert_eq!(errors(&bench.fail(none, [HANGS]).await), [Broken::Cut(Interrupt::Deadline)]);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_cuts_off_what_the_timeout_would_not_have() {
    for (timeout, by) in [
        (4_999, Interrupt::Timeout(ms(4_999))),
        (5_000, Interrupt::Deadline), // at the same instant it is the deadline
        (5_001, Interrupt::Deadline),
    ] {
        let start = Instant::now();
        let failed = Bench::new(0).timeout(ms(timeout)).fail(by_deadline(5 * SECOND), [HANGS]).await;
        assert_eq!(errors(&failed), [Broken::Cut(by)]);
        assert_eq!(start.elapsed(), ms(timeout).min(5 * SECOND));
        let deadline = by == Interrupt::Deadline;
        assert_eq!(failed.stop, if deadline { Stop::Deadline } else { Stop::UsedUp });
        assert!(failed.sent);
    }
}

#[tokio::test(start_paused = true)]
async fn the_reserve_cuts_off_as_a_timeout_of_what_was_left() {
    let bench = Bench::new(3).timeout(20 * SECOND);
    let failed = bench.fail(by_reserve(5 * SECOND), [BUSY, HANGS]).await;
    assert_eq!(failed.tried[1].error, Broken::Cut(Interrupt::Timeout(4 * SECOND)));
    assert_eq!(failed.stop, Stop::Deadline, "no time for another");
}

#[tokio::test(start_paused = true)]
async fn an_output_that_is_there_with_the_deadline_is_not_thrown_away() {
    let ran = Bench::new(0).run(by_deadline(5 * SECOND), &mut Script::new([DONE.after(5 * SECOND)])).await;
    assert!(ran.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_leaves_too_little_time_is_not_slept() {
    for (deadline, fits) in [(1_250, true), (1_249, false)] {
        for step in [BUSY, fails(advises(SECOND))] {
            let start = Instant::now();
            let mut op = Script::new([step, DONE]);
            let ran = Bench::new(1).run(by_deadline(ms(deadline)), &mut op).await;
            assert_eq!(ran.is_ok(), fits);
            if let Err(failed) = ran {
                assert_eq!((failed.stop, failed.tried.len()), (Stop::Deadline, 1));
                assert_eq!(failed.tried[0].next, Decision::Stop(Stop::Deadline));
                assert_eq!(start.elapsed(), Duration::ZERO);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn min_attempt_time_may_be_nothing() {
    let bench = Bench::new(1).retry(|retry| retry.min_attempt_time(Duration::ZERO));
    assert!(bench.run(by_deadline(ms(1_001)), &mut Script::new([BUSY, DONE])).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_an_attempt_at_once() {
    for first in [true, false] {
        let start = Instant::now();
        let (token, other) = (cancel_after(2 * SECOND), CancellationToken::new());
        let cancel =
            if first { Cancel::either(Some(&token), Some(&other)) } else { Cancel::either(Some(&other), Some(&token)) };
        let failed = Bench::new(3).timeout(60 * SECOND).fail(Run { cancel, ..Run::default() }, [HANGS]).await;
        assert_eq!((failed.stop, failed.sent), (Stop::Cancelled, true));
        assert_eq!(errors(&failed), [Broken::Cut(Interrupt::Cancelled)]);
        assert_eq!(failed.tried[0].next, Decision::Stop(Stop::Cancelled));
        assert_eq!(start.elapsed(), 2 * SECOND);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_wait_for_a_retry_at_once() {
    let start = Instant::now();
    let token = cancel_after(ms(300));
    let failed = Bench::new(3).fail(cancelled_by(&token), [BUSY]).await;
    assert_eq!((failed.stop, failed.tried.len(), failed.sent), (Stop::Cancelled, 1, true));
    assert_eq!(start.elapsed(), ms(300));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_fails_by_itself_while_it_is_cancelled_is_not_tried_again() {
    let token = CancellationToken::new();
    let mut op = Script::new([BUSY]);
    op.cancels = Some(token.clone());
    let failed = Bench::new(3).run(cancelled_by(&token), &mut op).await.expect_err("cancelled");
    assert_eq!(failed.stop, Stop::Cancelled);
    assert_eq!(errors(&failed), [Broken::Own(Verdict::transient("busy"))], "its own error is kept");
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_by_the_end_of_the_run() {
    for end in [by_deadline, by_reserve] {
        let limiter = exhausted(RateLimit::new()).await;
        let start = Instant::now();
        let failed = Bench::new(1).limiter(&limiter).fail(end(ms(500)), []).await;
        assert_eq!((failed.stop, failed.tried.len(), failed.sent), (Stop::Deadline, 0, false));
        assert_eq!(start.elapsed(), ms(500));
        let state = limiter.state();
        assert_eq!((state.queued, state.in_flight), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_the_queue_ends_it_at_once() {
    let limiter = exhausted(RateLimit::new()).await;
    let start = Instant::now();
    let token = cancel_after(ms(400));
    assert_eq!(Bench::new(1).limiter(&limiter).fail(cancelled_by(&token), []).await.stop, Stop::Cancelled);
    assert_eq!((start.elapsed(), limiter.state().queued), (ms(400), 0));
}

#[tokio::test(start_paused = true)]
async fn the_queues_own_bound_is_the_limiters_refusal() {
    let limiter = exhausted(RateLimit::new().max_queue_time(ms(700))).await;
    let start = Instant::now();
    let failed = Bench::new(1).limiter(&limiter).fail(by_deadline(5 * SECOND), []).await;
    assert!(matches!(failed.stop, Stop::Limit(refusal) if refusal.reason == LimitReason::QueueTimeout));
    assert_eq!(start.elapsed(), ms(700));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_the_queue_left_too_little_time_is_not_made() {
    for (deadline, made) in [(1_250, true), (1_249, false)] {
        let limiter = exhausted(RateLimit::new()).await;
        let bench = Bench::new(0).limiter(&limiter);
        match bench.run(by_deadline(ms(deadline)), &mut Script::new([DONE])).await {
            Ok((_, lease)) => {
                assert!(made);
                lease.succeed(None);
                assert_eq!(limiter.state().requests_remaining, Some(0));
            }
            Err(failed) => {
                assert_eq!((made, failed.stop, failed.sent), (false, Stop::Deadline, false));
                assert_eq!(limiter.state().requests_remaining, Some(1), "what was not used came back");
            }
        }
        assert_eq!(limiter.state().in_flight, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_settings_are_survived() {
    let longest = Duration::MAX;
    let retry = Retry::new(2)
        .base_delay(longest)
        .max_delay(longest)
        .factor(f64::MAX)
        .max_retry_after(longest)
        .advised_jitter(1.0)
        .min_attempt_time(longest);
    let bench = Bench { retry, ..Bench::new(0) }.timeout(longest);
    let token = cancel_after(3_600 * SECOND);
    for step in [BUSY, fails(advises(longest)), HANGS] {
        let failed = bench.fail(cancelled_by(&token), [step]).await;
        assert_eq!(failed.stop, Stop::Cancelled, "it waits as long as anybody does");
    }
    let failed = bench.fail(by_deadline(60 * SECOND), [fails(advises(longest))]).await;
    assert_eq!(failed.stop, Stop::Deadline);
}

#[tokio::test(start_paused = true)]
async fn a_retry_whose_wait_was_overslept_is_not_sent_late() {
    for (overslept, sent_again) in [(2_750, true), (2_751, false), (9_000, false)] {
        let fleet = Arc::new(Fleet::default());
        let bench = Bench::new(1).fleet(&fleet);
        let mut op = Script::new([BUSY, DONE]);
        // A thread that was held up: the clock is past the wait's end, and the deadline, when the run goes on.
        let (ran, ()) = tokio::join!(bench.run(by_deadline(3 * SECOND), &mut op), tokio::time::advance(ms(overslept)));
        assert_eq!(op.attempts() == 2, sent_again, "{overslept}");
        match ran {
            Ok((_, lease)) => lease.succeed(None),
            Err(failed) => assert_eq!((failed.stop, failed.tried.len()), (Stop::Deadline, 1)),
        }
        assert_eq!(fleet.labels(), if sent_again { ["(success)"] } else { ["busy"] });
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_of_circuits_is_bounded_by_deadline_and_cancellation() {
    let fleet = Arc::new(Fleet { slow: Some(60 * SECOND), ..Fleet::default() });
    let bench = Bench::new(1).fleet(&fleet);
    let start = Instant::now();
    assert_eq!(bench.fail(by_deadline(2 * SECOND), []).await.stop, Stop::Deadline);
    assert_eq!(start.elapsed(), 2 * SECOND);
    let token = cancel_after(SECOND);
    assert_eq!(bench.fail(cancelled_by(&token), []).await.stop, Stop::Cancelled);
    assert_eq!(start.elapsed(), 3 * SECOND);
    assert_eq!(fleet.admits.load(SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_store_of_circuits_takes_is_not_the_attempts() {
    let fleet = Arc::new(Fleet { slow: Some(2 * SECOND), ..Fleet::default() });
    let bench = Bench::new(0).fleet(&fleet).timeout(3 * SECOND);
    let start = Instant::now();
    let failed = bench.fail(Run::default(), [HANGS]).await;
    assert_eq!((failed.tried[0].took, start.elapsed()), (3 * SECOND, 5 * SECOND));
    assert_eq!(failed.tried[0].started, start + 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_slow_to_be_asked_again_is_bounded_and_the_failure_recorded() {
    let fleet = Arc::new(Fleet { slow: Some(SECOND), recheck: true, ..Fleet::default() });
    let start = Instant::now();
    let failed = Bench::new(3).fleet(&fleet).fail(by_deadline(ms(2_500)), [BUSY]).await;
    assert_eq!((failed.stop, failed.tried.len(), start.elapsed()), (Stop::Deadline, 1, ms(2_500)));
    assert_eq!((fleet.admits.load(SeqCst), fleet.labels()), (1, vec!["busy"]));
}
