//! What an operation is told, and what a failed run keeps.

use super::*;

#[tokio::test(start_paused = true)]
async fn signals_come_in_order_with_the_right_numbers() {
    let bench = Bench::new(3).timeout(10 * SECOND);
    let mut op = Script::new([BUSY.after(ms(500)), fails(advises(3 * SECOND)), HANGS, DONE.after(SECOND)]);
    let (output, lease) = bench.run(Run::default(), &mut op).await.expect("the last one");
    lease.succeed(None);
    assert_eq!(output, "done");
    let expected = [
        "0 started 0",
        "0.5 failed 0 busy",
        "0.5 retry 1 of 3 after 1s for busy",
        "1.5 started 1",
        "1.5 failed 1 limited",
        "1.5 retry 2 of 3 after 3s advised for limited",
        "4.5 started 2",
        "14.5 failed 2 timeout",
        "14.5 retry 3 of 3 after 4s for timeout",
        "18.5 started 3",
    ];
    assert_eq!(op.notes(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_keeps_every_attempt_with_its_times() {
    let limiter = RateLimit::new().requests_per_minute(60).burst(1).build().expect("valid");
    let start = Instant::now();
    let bench = Bench::new(1).retry(|retry| retry.base_delay(ms(250))).limiter(&limiter);
    let failed = bench.fail(Run::default(), [BUSY.after(ms(500)), BUSY.after(ms(50))]).await;
    let [first, second] = &failed.tried[..] else { panic!("two attempts: {:?}", failed.tried) };
    assert_eq!((first.index, second.index), (0, 1));
    assert_eq!((first.started, first.queued, first.took), (start, Duration::ZERO, ms(500)));
    assert_eq!(first.next, Decision::Retry { after: ms(250), advised: false });
    // Since the first went out 0.75 s have passed, and a request comes back in a second.
    assert_eq!((second.started, second.queued, second.took), (start + ms(750), ms(250), ms(50)));
    assert_eq!(second.next, Decision::Stop(Stop::UsedUp));
}

#[tokio::test(start_paused = true)]
async fn a_wait_in_the_queue_is_told_before_the_attempt_and_none_is_not() {
    let limiter = exhausted(RateLimit::new()).await;
    let bench = Bench::new(0).limiter(&limiter);
    let mut op = Script::new([DONE]);
    bench.run(Run::default(), &mut op).await.expect("done").1.succeed(None);
    assert_eq!(op.notes(), ["1 waited 1s for requests", "1 started 0"]);
    tokio::time::advance(SECOND).await;
    let mut op = Script::new([DONE]);
    bench.run(Run::default(), &mut op).await.expect("done").1.succeed(None);
    assert_eq!(op.notes(), ["0 started 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_is_told_instead_of_a_retry() {
    let bench = Bench::new(3).budget(&budget(0, 0.0));
    let mut op = Script::new([BUSY]);
    let failed = bench.run(Run::default(), &mut op).await.expect_err("no retry");
    assert_eq!(op.notes(), ["0 started 0", "0 failed 0 busy", "0 no budget for busy"]);
    assert_eq!(failed.stop, Stop::Budget);
    assert_eq!(failed.tried[0].next, Decision::Stop(Stop::Budget));
    assert_eq!(op.start.elapsed(), Duration::ZERO, "without the wait");
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_holds_no_slot_while_it_waits_to_be_tried_again() {
    let limiter = RateLimit::new().max_concurrent(1).build().expect("valid");
    let mut op = Script::new([BUSY, DONE]);
    op.limiter = Some(limiter.clone());
    let (_, lease) = Bench::new(1).limiter(&limiter).run(Run::default(), &mut op).await.expect("done");
    let expected = [
        "0 started 0",
        "0 in flight 1",
        "0 failed 0 busy",
        "0 in flight 1",
        "0 retry 1 of 1 after 1s for busy",
        "0 in flight 0",
        "1 started 1",
        "1 in flight 1",
    ];
    assert_eq!(op.notes(), expected);
    assert_eq!(limiter.state().in_flight, 1, "until the lease is settled");
    lease.succeed(None);
    assert_eq!(limiter.state().in_flight, 0);
}
