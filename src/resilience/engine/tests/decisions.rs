//! Whether to try again, and after which wait.

use super::*;

/// What there is to decide about: a failure for which every reason to stop holds.
struct Case {
    verdict: Verdict,
    by: Option<Interrupt>,
    index: u32,
    trial: bool,
    sent: bool,
    retry: Retry,
    run: Run<'static>,
}

impl Case {
    fn decide(&self) -> Result<(Duration, bool), Stop> {
        let random = Random::seeded(1);
        let settings = Engine { retry: &self.retry, timeout: None, random: &random, run: self.run };
        settings.decide(&self.verdict, self.by, self.index, self.trial, self.sent, Instant::now())
    }
}

/// A first failure that backoff may cure, with all the time there is.
fn curable() -> Case {
    Case {
        verdict: Verdict::transient("busy"),
        by: None,
        index: 0,
        trial: false,
        sent: true,
        retry: Bench::new(3).retry,
        run: Run::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn reasons_to_stop_come_in_their_order() {
    let token: &'static CancellationToken = Box::leak(Box::default());
    token.cancel();
    let mut case = curable();
    case.verdict = Verdict { retry: Advice::Never, ..Verdict::transient("busy") };
    case.by = Some(Interrupt::Deadline);
    case.trial = true;
    case.index = 3;
    case.retry = case.retry.idempotent(false).max_retry_after(SECOND);
    case.run = Run { cancel: Cancel::either(Some(token), None), ..by_deadline(2 * SECOND) };

    assert_eq!(case.decide(), Err(Stop::Cancelled));
    case.run.cancel = Cancel::default();
    case.by = Some(Interrupt::Cancelled);
    assert_eq!(case.decide(), Err(Stop::Cancelled));
    case.by = Some(Interrupt::Deadline);
    assert_eq!(case.decide(), Err(Stop::Deadline));
    case.by = Some(Interrupt::Timeout(SECOND));
    assert_eq!(case.decide(), Err(Stop::NotRetryable), "never");
    case.verdict = advises(3 * SECOND);
    assert_eq!(case.decide(), Err(Stop::NotRetryable), "sent, and must not be sent twice");
    case.sent = false;
    assert_eq!(case.decide(), Err(Stop::UsedUp), "a trial, and all retries used");
    case.trial = false;
    assert_eq!(case.decide(), Err(Stop::UsedUp), "all retries used");
    case.index = 2;
    case.trial = true;
    assert_eq!(case.decide(), Err(Stop::UsedUp), "a trial");
    case.trial = false;
    assert_eq!(case.decide(), Err(Stop::WaitTooLong));
    case.retry.max_retry_after = 3 * SECOND;
    assert_eq!(case.decide(), Err(Stop::Deadline), "does not fit");
    case.run.end = None;
    assert_eq!(case.decide(), Ok((3 * SECOND, true)));
}

#[test]
fn what_must_not_be_sent_twice_is_tried_again_as_long_as_nothing_was_sent() {
    let mut case = curable();
    case.retry.idempotent = false;
    assert_eq!(case.decide(), Err(Stop::NotRetryable));
    case.sent = false;
    assert_eq!(case.decide(), Ok((SECOND, false)));
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_once_stays_sent_for_the_run() {
    let bench = Bench::new(5).retry(|retry| retry.idempotent(false));
    let failed = bench.fail(Run::default(), [BUSY.unsent(), BUSY.unsent(), BUSY]).await;
    assert_eq!((failed.stop, failed.tried.len(), failed.sent), (Stop::NotRetryable, 3, true));
    let failed = Bench::new(1).fail(Run::default(), [BUSY, BUSY.unsent()]).await;
    assert!(failed.sent, "by the first attempt");
    let failed = Bench::new(1).fail(Run::default(), [BUSY.unsent(), BUSY.unsent()]).await;
    assert!(!failed.sent);
}

#[test]
fn an_advised_wait_is_kept_to_exactly() {
    for wait in [ms(1), ms(60_000)] {
        let case = Case { verdict: advises(wait), ..curable() };
        assert_eq!(case.decide(), Ok((wait, true)));
    }
    let too_long = Case { verdict: advises(ms(60_001)), ..curable() };
    assert_eq!(too_long.decide(), Err(Stop::WaitTooLong));
}

#[test]
fn advised_jitter_only_adds_and_at_most_its_share_or_a_second() {
    let random = Random::seeded(7);
    for (wait, share, most) in [(ms(500), 0.1, ms(50)), (ms(500), 1.0, ms(500)), (60 * SECOND, 1.0, SECOND)] {
        let retry = Retry::new(1).advised_jitter(share);
        let settings = Engine { retry: &retry, timeout: None, random: &random, run: Run::default() };
        let waits: Vec<_> = (0..200)
            .map(|_| settings.decide(&advises(wait), None, 0, false, true, Instant::now()).expect("it fits").0)
            .collect();
        let (least, longest) = (waits.iter().min().expect("200"), waits.iter().max().expect("200"));
        assert!(*least >= wait && *longest <= wait + most, "{least:?} to {longest:?}");
        assert!(*longest > *least + most / 2, "spread over all of it: {least:?} to {longest:?}");
    }
}

#[test]
fn without_respect_for_advice_the_backoff_is_used() {
    let mut case = Case { verdict: advises(3_600 * SECOND), ..curable() };
    case.retry.respect_retry_after = false;
    assert_eq!(case.decide(), Ok((SECOND, false)));
    case.index = 2;
    assert_eq!(case.decide(), Ok((4 * SECOND, false)));
}

#[test]
fn advice_to_try_at_once_is_followed_but_nobody_is_told_of_a_wait() {
    let case = Case { verdict: advises(Duration::ZERO), ..curable() };
    assert_eq!(case.decide(), Ok((Duration::ZERO, false)));
}

#[test]
fn the_number_of_retries_is_that_and_not_that_of_attempts() {
    for (max_retries, index, again) in
        [(0, 0, false), (1, 0, true), (1, 1, false), (u32::MAX, u32::MAX - 1, true), (u32::MAX, u32::MAX, false)]
    {
        let case = Case { retry: Retry::new(max_retries), index, ..curable() };
        assert_eq!(case.decide().is_ok(), again, "{index} of {max_retries}");
        assert!(again || case.decide() == Err(Stop::UsedUp));
    }
}

#[tokio::test(start_paused = true)]
async fn the_retries_of_the_run_replace_those_of_the_policy() {
    for (own, of_run) in [(0, 2), (5, 2)] {
        let retry = Bench::new(of_run).retry;
        let run = Run { retry: Some(&retry), ..Run::default() };
        let failed = Bench::new(own).fail(run, [BUSY; 3]).await;
        assert_eq!((failed.stop, failed.tried.len()), (Stop::UsedUp, 3));
    }
}

#[tokio::test(start_paused = true)]
async fn without_retries_there_is_one_attempt() {
    let start = Instant::now();
    let failed = Bench::new(0).fail(Run::default(), [BUSY]).await;
    assert_eq!((failed.stop, failed.tried.len()), (Stop::UsedUp, 1));
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_cured_is_not_tried_again() {
    let failed = Bench::new(5).fail(Run::default(), [BUSY, WRONG]).await;
    assert_eq!((failed.stop, failed.tried.len()), (Stop::NotRetryable, 2));
    assert_eq!(failed.tried[0].next, Decision::Retry { after: SECOND, advised: false });
    assert_eq!(failed.tried[1].next, Decision::Stop(Stop::NotRetryable));
}

#[test]
fn chance_is_drawn_only_where_it_is_wanted() {
    let (random, untouched) = (Random::seeded(7), Random::seeded(7));
    let retry = Bench::new(1).retry;
    let settings = Engine { retry: &retry, timeout: None, random: &random, run: Run::default() };
    for verdict in [advises(SECOND), Verdict::transient("busy")] {
        assert!(settings.decide(&verdict, None, 0, false, true, Instant::now()).is_ok());
    }
    assert_eq!(random.bits(), untouched.bits());
}

#[test]
fn a_share_that_makes_no_sense_adds_nothing_and_harms_nobody() {
    for share in [f64::NAN, -1.0, f64::NEG_INFINITY] {
        let case = Case { verdict: advises(SECOND), retry: Retry::new(1).advised_jitter(share), ..curable() };
        assert_eq!(case.decide(), Ok((SECOND, true)), "{share}");
    }
}
