use super::*;
use tokio::time::advance;

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn wall_time_follows_the_paused_clock() {
    let before = wall_now();
    assert_eq!(wall_now(), before);
    advance(HOUR).await;
    assert_eq!(wall_now(), before + HOUR);
}

#[tokio::test(start_paused = true)]
async fn wall_time_is_known_of_any_instant() {
    let (wall, now) = (wall_now(), Instant::now());
    assert_eq!(wall_at(now), wall);
    assert_eq!(wall_at(now + HOUR), wall + HOUR);
    advance(HOUR).await;
    assert_eq!(wall_at(now), wall);
}

#[test]
fn wall_time_is_that_of_the_system_give_or_take_what_paused_clocks_have_counted() {
    let since = |wall: SystemTime| wall.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    assert!(since(wall_now()) > Duration::from_secs(1_700_000_000));
}

#[test]
fn a_clock_that_stands_before_the_first_one_is_before_it_in_wall_time_too() {
    let (wall, start) = (SystemTime::UNIX_EPOCH + 5 * HOUR, Instant::now() + HOUR);
    assert_eq!(wall_from((wall, start), start - HOUR), wall - HOUR);
    assert_eq!(wall_from((wall, start), start), wall);
    assert_eq!(wall_from((wall, start), start + HOUR), wall + HOUR);
}

#[test]
fn later_is_as_late_as_asked_and_never_overflows() {
    let now = Instant::now();
    assert_eq!(later(now, Duration::ZERO), now);
    assert_eq!(later(now, HOUR), now + HOUR);
    assert!(later(now, Duration::MAX) > now + 24 * 365 * 29 * HOUR);
    assert!(later(later(now, Duration::MAX), Duration::MAX) >= later(now, Duration::MAX));
}

#[test]
fn the_time_that_a_machine_slept_is_not_missed() {
    let counted = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    let system = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    // A paused clock stands still for the length of a test, or runs ahead.
    for seconds in [0, 1_000, 1_030, 1_060] {
        assert_eq!(awake(counted, system(seconds)), counted);
    }
    assert_eq!(awake(counted, system(4_600)), system(4_600));
}
