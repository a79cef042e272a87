use super::*;
use crate::resilience::Decision;
use tokio::time::Instant;

#[derive(Debug, PartialEq)]
struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broken pipe")
    }
}

impl Error for Broken {}

fn failed(stop: Stop, causes: impl IntoIterator<Item = Cause<Broken>>) -> PolicyError<Broken> {
    let tried = (0..).zip(causes).map(|(index, error)| Tried {
        index,
        error,
        started: Instant::now(),
        took: Duration::ZERO,
        queued: Duration::ZERO,
        next: Decision::Stop(stop),
    });
    PolicyError::Failed(Failed { stop, tried: tried.collect(), sent: true })
}

fn misconfigured() -> PolicyError<Broken> {
    PolicyError::Config(ConfigError::new("timeout", "0 s", "more than zero, or none"))
}

fn cut() -> Cause<Broken> {
    Cause::Interrupted(Interrupt::Timeout(Duration::from_secs(3)))
}

#[test]
fn the_message_says_why_after_how_many_attempts_and_with_which_error() {
    for (error, message) in [
        (failed(Stop::UsedUp, [Cause::Operation(Broken)]), "retries used up after 1 attempt: broken pipe"),
        (failed(Stop::UsedUp, [cut(), Cause::Operation(Broken)]), "retries used up after 2 attempts: broken pipe"),
        (
            failed(Stop::Deadline, [Cause::Operation(Broken), cut()]),
            "deadline exceeded after 2 attempts: timed out after 3s",
        ),
        (failed(Stop::Cancelled, []), "cancelled after 0 attempts"),
        (misconfigured(), "invalid configuration: timeout is 0 s; allowed: more than zero, or none"),
    ] {
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn its_source_is_the_operations_own_last_error_or_what_is_wrong_with_the_settings() {
    let source = |error: PolicyError<Broken>| error.source().map(ToString::to_string);
    assert_eq!(source(failed(Stop::UsedUp, [cut(), Cause::Operation(Broken)])).as_deref(), Some("broken pipe"));
    assert_eq!(source(failed(Stop::UsedUp, [Cause::Operation(Broken), cut()])), None);
    assert_eq!(source(failed(Stop::Cancelled, [])), None);
    assert_eq!(source(misconfigured()), Some(misconfigured().to_string()));
}

#[test]
fn the_operations_own_last_error_comes_out_unchanged() {
    assert_eq!(failed(Stop::UsedUp, [cut(), Cause::Operation(Broken)]).into_operation(), Some(Broken));
    assert_eq!(failed(Stop::UsedUp, [Cause::Operation(Broken), cut()]).into_operation(), None);
    assert_eq!(failed(Stop::Cancelled, []).into_operation(), None);
    assert_eq!(misconfigured().into_operation(), None);
}

#[test]
fn it_tells_why_it_gave_up_and_what_was_tried() {
    let error = failed(Stop::UsedUp, [cut(), Cause::Operation(Broken)]);
    assert_eq!((error.stop(), error.attempts().len()), (Some(Stop::UsedUp), 2));
    assert!(matches!(error.attempts()[1].error, Cause::Operation(Broken)));
    assert_eq!((misconfigured().stop(), misconfigured().attempts().len()), (None, 0));
}

#[test]
fn a_timeout_may_be_cured_and_the_callers_own_impatience_may_not() {
    let classify = |_: &Broken| Verdict::permanent("own");
    let op = FnOperation::new(|_: AttemptInfo| async { Err::<(), _>(Broken) }, &classify, None);
    for (cause, verdict) in [
        (Cause::Operation(Broken), Verdict::permanent("own")),
        (cut(), Verdict::transient("request_timeout")),
        (Cause::Interrupted(Interrupt::Deadline), Verdict::permanent("deadline_exceeded")),
        (Cause::Interrupted(Interrupt::Cancelled), Verdict::permanent("aborted")),
    ] {
        assert_eq!(Operation::classify(&op, &cause), verdict);
    }
}
