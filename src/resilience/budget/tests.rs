use super::*;
use futures_core::future::BoxFuture;
use proptest::prelude::*;
use std::time::Duration;

const WINDOW: Duration = Duration::from_secs(64); // buckets of a second

fn budget(min_calls: u32, retry_ratio: f64) -> (Budget, Instant) {
    let start = Instant::now();
    (Budget::local(&RetryBudget::new(WINDOW, min_calls, retry_ratio), start), start)
}

fn firsts(budget: &Budget, n: u32, now: Instant) {
    (0..n).for_each(|_| budget.record_first_at(now));
}

fn retry(budget: &Budget, now: Instant) -> Option<BudgetMark> {
    match budget.try_retry_at(now) {
        Answer::Now(mark) => mark,
        Answer::Later(_) => panic!("a local budget answers at once"),
    }
}

/// Sends retries until the budget refuses.
fn send_all(budget: &Budget, now: Instant) -> u32 {
    let mut sent = 0;
    while let Some(mark) = retry(budget, now) {
        mark.sent();
        sent += 1;
    }
    sent
}

#[test]
fn retries_are_refused_from_the_ratio_on() {
    for (n, ratio, allowed) in [(30, 0.1, 4), (10, 0.5, 10), (9, 1.0, u32::MAX), (10, 0.0, 0), (100, 0.25, 34)] {
        let (budget, now) = budget(1, ratio);
        firsts(&budget, n, now);
        if allowed == u32::MAX {
            (0..1_000).for_each(|_| retry(&budget, now).expect("retries never are all attempts").sent());
        } else {
            assert_eq!(send_all(&budget, now), allowed, "{n} firsts, ratio {ratio}");
        }
    }
}

#[test]
fn any_retry_is_allowed_below_min_calls() {
    let (budget, now) = budget(10, 0.0);
    firsts(&budget, 4, now);
    assert_eq!(send_all(&budget, now), 6);
    assert_eq!(budget.state_at(now), RetryBudgetState::new(10, 6));
}

#[test]
fn without_attempts_a_retry_is_allowed_unless_the_ratio_is_zero() {
    let (none, now) = budget(0, 0.0);
    assert!(retry(&none, now).is_none());
    let (some, now) = budget(0, 0.1);
    assert_eq!(send_all(&some, now), 1);
}

#[test]
fn attempts_leave_with_the_window() {
    let (budget, now) = budget(1, 0.1);
    firsts(&budget, 10, now);
    assert_eq!(send_all(&budget, now), 2);
    firsts(&budget, 1, now + WINDOW / 2);
    assert_eq!(budget.state_at(now + WINDOW - Duration::from_millis(1)), RetryBudgetState::new(13, 2));
    assert_eq!(budget.state_at(now + WINDOW), RetryBudgetState::new(1, 0));
    assert_eq!(budget.state_at(now + 2 * WINDOW), RetryBudgetState::new(0, 0));
}

#[test]
fn a_dropped_mark_gives_its_retry_back_and_a_sent_one_does_not() {
    let (budget, now) = budget(1, 0.1);
    firsts(&budget, 9, now);
    let mark = retry(&budget, now).expect("the first");
    assert!(retry(&budget, now).is_none());
    drop(mark);
    assert_eq!(budget.state_at(now), RetryBudgetState::new(9, 0));
    retry(&budget, now).expect("again").sent();
    assert_eq!(budget.state_at(now), RetryBudgetState::new(10, 1));
}

#[test]
fn a_mark_that_has_left_the_window_gives_nothing_back() {
    let (budget, now) = budget(0, 1.0);
    let old = retry(&budget, now).expect("nothing recorded");
    firsts(&budget, 1, now + WINDOW);
    retry(&budget, now + WINDOW).expect("half of them").sent();
    drop(old);
    assert_eq!(budget.state_at(now + WINDOW), RetryBudgetState::new(2, 1));
}

#[test]
fn a_first_attempt_takes_no_lock_while_its_bucket_lasts() {
    let (budget, start) = budget(1, 0.1);
    let Arm::Local(books) = &budget.0 else { panic!("a local budget") };
    let held = lock(&books.window);
    let other = budget.clone();
    let (done, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        firsts(&other, 2, start + Duration::from_millis(999));
        let _ = done.send(());
    });
    let done = told.recv_timeout(Duration::from_secs(2));
    drop(held);
    thread.join().expect("no panic");
    assert!(done.is_ok());
    assert_eq!(budget.state_at(start).attempts, 2);
}

#[test]
fn clones_share_the_books() {
    let (budget, now) = budget(1, 0.1);
    let other = budget.clone();
    firsts(&other, 3, now);
    assert_eq!(budget.state_at(now).attempts, 3);
    assert_eq!(format!("{budget:?}"), "Budget(Local(Books { attempts: 3, retries: 0, .. }))");
}

#[test]
fn each_impossible_setting_is_named() {
    let fields = |settings: RetryBudget| -> Vec<String> {
        let error = settings.build().expect_err("cannot be");
        error.problems().iter().map(|problem| problem.field.clone()).collect()
    };
    assert_eq!(fields(RetryBudget::new(Duration::ZERO, 0, -0.1)), ["window", "retry_ratio"]);
    for ratio in [1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(fields(RetryBudget::new(WINDOW, 0, ratio)), ["retry_ratio"]);
    }
    for ratio in [0.0, 1.0] {
        assert!(RetryBudget::new(WINDOW, 0, ratio).build().is_ok());
    }
}

#[test]
fn settings_are_read_from_files_and_unknown_ones_rejected() {
    let read = |text: &str| serde_json::from_str::<RetryBudget>(text).map_err(|e| e.to_string());
    let settings = read(r#"{"window": "1m 4s", "min_calls": 3, "retry_ratio": 0.2}"#);
    assert_eq!(settings, Ok(RetryBudget::new(WINDOW, 3, 0.2)));
    let wrong = read(r#"{"window": "64s", "min_calls": 3, "ratio": 0.2}"#).expect_err("unknown");
    assert!(wrong.contains("unknown field `ratio`"), "{wrong}");
}

#[tokio::test(start_paused = true)]
async fn the_shell_reads_tokios_clock() {
    let budget = RetryBudget::new(WINDOW, 1, 0.1).build().expect("valid");
    budget.record_first();
    budget.try_retry().await.expect("the first").sent();
    assert!(budget.try_retry().await.is_none());
    tokio::time::advance(WINDOW).await;
    assert_eq!(budget.state(), RetryBudgetState::new(0, 0));
    assert!(budget.try_retry().await.is_some());
}

/// Allows two marks, and remembers what came back.
#[derive(Debug, Default)]
struct Remote(std::sync::Mutex<(u64, Vec<u64>)>);

impl SharedBudget for Remote {
    fn record_first(&self) {
        self.0.lock().expect("whole").0 += 100;
    }
    fn try_retry(&self) -> BoxFuture<'_, Option<u64>> {
        Box::pin(async {
            tokio::task::yield_now().await;
            let mut this = self.0.lock().expect("whole");
            this.0 += 1;
            (this.0 <= 102).then_some(this.0)
        })
    }
    fn give_back(&self, mark: u64) {
        self.0.lock().expect("whole").1.push(mark);
    }
    fn state(&self) -> RetryBudgetState {
        RetryBudgetState::new(4, 1)
    }
}

#[tokio::test]
async fn a_shared_budget_is_asked_and_gets_back_what_was_not_sent() {
    let remote = Arc::new(Remote::default());
    let budget = Budget::shared(remote.clone());
    budget.record_first();
    budget.try_retry().await.expect("one").sent();
    drop(budget.try_retry().await.expect("two"));
    assert!(budget.try_retry().await.is_none());
    assert_eq!(remote.0.lock().expect("whole").1, [102]);
    assert_eq!(budget.state(), RetryBudgetState::new(4, 1));
}

#[derive(Clone, Debug)]
enum Op {
    First(u8),
    Retry,
    Send(usize),
    GiveBack(usize),
    Wait(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (1u8..5).prop_map(Op::First),
        Just(Op::Retry),
        Just(Op::Retry),
        any::<usize>().prop_map(Op::Send),
        any::<usize>().prop_map(Op::GiveBack),
        (0u64..30).prop_map(Op::Wait),
    ]
}

proptest! {
    /// Against a plain list of attempts: the same counts, and no retry beyond the ratio once there are `min_calls`.
    #[test]
    fn retries_never_pass_the_ratio(
        ops in prop::collection::vec(op(), 1..300), min_calls in 0u32..20, ratio in 0.0f64..=1.0,
    ) {
        let (budget, start) = budget(min_calls, ratio);
        let mut second = 0;
        let mut attempts: Vec<(u64, bool)> = Vec::new();
        let mut marks: Vec<(u64, BudgetMark)> = Vec::new();
        for op in ops {
            let now = start + Duration::from_secs(second);
            let count = |list: &[(u64, bool)]| (list.len() as u64, list.iter().filter(|a| a.1).count() as u64);
            match op {
                Op::First(n) => {
                    firsts(&budget, n.into(), now);
                    attempts.extend((0..n).map(|_| (second, false)));
                }
                Op::Retry => {
                    let (all, retries) = count(&attempts);
                    let state = RetryBudgetState::new(all, retries);
                    let spent = all >= u64::from(min_calls) && state.retry_ratio >= ratio;
                    let mark = retry(&budget, now);
                    prop_assert_eq!(mark.is_none(), spent);
                    if let Some(mark) = mark {
                        marks.push((second, mark));
                        attempts.push((second, true));
                    }
                }
                Op::Send(i) if !marks.is_empty() => marks.swap_remove(i % marks.len()).1.sent(),
                Op::GiveBack(i) if !marks.is_empty() => {
                    let (at, mark) = marks.swap_remove(i % marks.len());
                    drop(mark);
                    if let Some(i) = attempts.iter().position(|a| *a == (at, true)) {
                        attempts.remove(i);
                    }
                }
                Op::Wait(seconds) => second += seconds,
                Op::Send(_) | Op::GiveBack(_) => {}
            }
            attempts.retain(|(at, _)| at + 64 > second);
            let (all, retries) = count(&attempts);
            let state = budget.state_at(start + Duration::from_secs(second));
            prop_assert_eq!(state, RetryBudgetState::new(all, retries));
        }
    }
}

#[test]
fn threads_lose_no_attempt_and_do_not_pass_the_ratio_together() {
    const FIRSTS: u32 = 20_000;
    let budget = RetryBudget::new(Duration::from_secs(3_600), 10, 0.1).build().expect("valid");
    let sent: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut sent = 0;
                    for i in 0..FIRSTS {
                        budget.record_first();
                        match retry(&budget, Instant::now()) {
                            Some(mark) if i % 3 == 0 => {
                                mark.sent();
                                sent += 1;
                            }
                            _ => {}
                        }
                    }
                    sent
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    let state = budget.state();
    assert_eq!((state.attempts, state.retries), (u64::from(4 * FIRSTS) + sent, sent));
    assert!(state.retry_ratio < 0.1 + 1.0 / 10_000.0, "{state:?}");
}

#[test]
fn a_thousand_failures_at_once_do_not_all_pass_on_one_reading() {
    let budget = RetryBudget::new(Duration::from_secs(3_600), 10, 0.1).build().expect("valid");
    (0..900).for_each(|_| budget.record_first());
    let marks: Vec<BudgetMark> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| (0..125).filter_map(|_| retry(&budget, Instant::now())).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(marks.len(), 100); // 100 of 1,000
}
