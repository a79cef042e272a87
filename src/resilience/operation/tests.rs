use super::*;

#[test]
fn progress_only_goes_on_until_it_is_taken_back() {
    let progress = Progress::default();
    let marks = || (progress.is_sent(), progress.has_head());
    assert_eq!(marks(), (false, false));
    progress.sent();
    assert_eq!(marks(), (true, false));
    progress.sent();
    assert_eq!(marks(), (true, false));
    progress.head();
    assert_eq!(marks(), (true, true));
    progress.sent();
    assert_eq!(marks(), (true, true));
    progress.head();
    assert_eq!(marks(), (true, true));
    progress.unsent();
    assert_eq!(marks(), (false, false));
    progress.head();
    assert_eq!(marks(), (true, true), "who answers was reached");
}

#[test]
fn a_transient_failure_is_evidence_and_a_permanent_one_is_not() {
    let verdict = Verdict { retry: Advice::Backoff, health: Health::Bad, throttled: false, label: "x", tag: None };
    assert_eq!(Verdict::transient("x"), verdict);
    assert_eq!(Verdict::permanent("x"), Verdict { retry: Advice::Never, health: Health::Neutral, ..verdict });
}

#[test]
fn an_interruption_says_what_it_was() {
    let said = [Interrupt::Timeout(Duration::from_millis(1_500)), Interrupt::Deadline, Interrupt::Cancelled];
    assert_eq!(said.map(|by| by.to_string()), ["timed out after 1.5s", "the deadline passed", "cancelled"]);
}

/// An operation that says no more than it must.
struct Terse;

impl Operation for Terse {
    type Output = ();
    type Error = ();

    async fn attempt<'a>(&'a mut self, _: AttemptContext<'a>) -> Result<(), ()> {
        Ok(())
    }

    fn interrupted(&mut self, _: Interrupt) {}

    fn classify(&self, (): &()) -> Verdict {
        Verdict::transient("x")
    }
}

#[test]
fn an_operation_need_not_know_what_it_spent_nor_any_limits() {
    Terse.observe(Signal::AttemptStarted { index: 0 });
    assert_eq!((Terse.spent(&()), Terse.limits(&())), (None, None));
}
