use super::*;
use std::task::Waker;
use std::time::Duration;
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn what_is_ready_needs_neither_timer_nor_runtime() {
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let cut = Some((Instant::now(), Interrupt::Deadline));
    let mut timer = pin!(None);
    let raced = poll_once(race(pin!(async { 7 }), timer.as_mut(), cut, Cancel::either(Some(&cancelled), None)));
    assert!(matches!(raced, Poll::Ready(Ok(7))), "and is not thrown away");
    assert!(timer.is_none());
}

#[test]
fn without_a_cut_no_timer_is_made() {
    let mut timer = pin!(None);
    let token = CancellationToken::new();
    let raced =
        poll_once(race(pin!(std::future::pending::<()>()), timer.as_mut(), None, Cancel::either(None, Some(&token))));
    assert!(raced.is_pending() && timer.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_cut_comes_at_its_instant_and_by_its_name() {
    let start = Instant::now();
    let mut timer = pin!(None);
    // One timer, moved later, and sooner than it was set to.
    for (wait, by) in [(5, Interrupt::Timeout(SECOND)), (2, Interrupt::Deadline)] {
        let at = start + wait * SECOND;
        let raced = race(pin!(std::future::pending::<()>()), timer.as_mut(), Some((at, by)), Cancel::default()).await;
        assert_eq!(raced, Err(by));
    }
    assert_eq!(start.elapsed(), 5 * SECOND, "the second was over before it began");
    let cut = Some((start + 100 * SECOND, Interrupt::Deadline));
    assert_eq!(race(pin!(sleep(SECOND)), timer.as_mut(), cut, Cancel::default()).await, Ok(()));
    assert_eq!(start.elapsed(), 6 * SECOND);
    let at = start + 8 * SECOND;
    let cut = Some((at, Interrupt::Deadline));
    assert_eq!(
        race(pin!(std::future::pending::<()>()), timer.as_mut(), cut, Cancel::default()).await,
        Err(Interrupt::Deadline)
    );
    assert_eq!(Instant::now(), at);
}

#[tokio::test(start_paused = true)]
async fn either_token_cancels_and_is_heard_before_the_cut() {
    let (one, other) = (CancellationToken::new(), CancellationToken::new());
    let both = Cancel::either(Some(&one), Some(&other));
    assert!(!both.is_cancelled());
    other.cancel();
    assert!(both.is_cancelled() && Cancel::either(Some(&other), None).is_cancelled());
    let cut = Some((Instant::now(), Interrupt::Deadline));
    for cancel in [both, Cancel::either(Some(&other), Some(&one)), Cancel::either(None, Some(&other))] {
        let raced = race(pin!(std::future::pending::<()>()), pin!(None), cut, cancel).await;
        assert_eq!(raced, Err(Interrupt::Cancelled));
    }
    assert!(!Cancel::default().is_cancelled());
}
