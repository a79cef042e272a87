//! A framing of the caller's own.

use super::cut::{Outcome, Owned, everywhere, read};
use steadfast::provider::{Cut, CutFrames, FrameFault};
use steadfast::transport::framing::Framer;

/// Records as `name=data;`. A `#` is skipped; `!` is a fault.
struct Records;

impl CutFrames for Records {
    fn cut(&mut self, unread: &[u8], ended: bool) -> Result<Cut, FrameFault> {
        assert!(!unread.is_empty());
        let hashes = unread.iter().take_while(|byte| **byte == b'#').count();
        if hashes > 0 {
            return Ok(Cut::Skip(hashes));
        }
        if unread[0] == b'!' {
            return Err(FrameFault::Invalid("an exclamation mark".into()));
        }
        let end = unread.iter().position(|byte| *byte == b';').or(ended.then_some(unread.len()));
        let Some(end) = end else { return Ok(Cut::More) };
        let equals = unread[..end].iter().position(|byte| *byte == b'=').unwrap_or(0);
        Ok(Cut::Frame { event: 0..equals, data: equals + 1..end, consumed: (end + 1).min(unread.len()) })
    }
}

fn records(body: &str) -> Outcome {
    everywhere(|| Framer::custom(Box::new(Records)).max_event_bytes(12), body.as_bytes())
}

#[test]
fn frames_lie_where_it_says() {
    let frames = [Owned::named("a", "one"), Owned::named("b", ""), Owned::named("cc", "three")];
    assert_eq!(records("a=one;b=;##cc=three;"), Outcome::whole(frames.clone()));
    assert_eq!(
        records("#a=one;b=;cc=three#"),
        Outcome::whole([frames[0].clone(), frames[1].clone(), Owned::named("cc", "three#")])
    );
}

#[test]
fn its_own_fault_comes_after_the_frames_before() {
    assert_eq!(
        records("a=one;!b=two;"),
        Outcome::fault([Owned::named("a", "one")], FrameFault::Invalid("an exclamation mark".into()))
    );
}

#[test]
fn a_frame_over_the_bound_is_refused() {
    assert_eq!(records("a=23456789a;").frames, [Owned::named("a", "23456789a")]);
    for body in ["a=one;b=234567890ab;c=d;", "a=one;b=234567890abc"] {
        assert_eq!(records(body), Outcome::fault([Owned::named("a", "one")], FrameFault::TooLarge(12)), "{body:?}");
    }
}

#[test]
fn places_that_are_nowhere_are_a_fault() {
    struct Answers(Option<Cut>);
    impl CutFrames for Answers {
        fn cut(&mut self, _: &[u8], _: bool) -> Result<Cut, FrameFault> {
            Ok(self.0.take().unwrap_or(Cut::More))
        }
    }
    let backwards = std::ops::Range { start: 2, end: 1 };
    for cut in [
        Cut::Skip(0),
        Cut::Skip(5),
        Cut::Frame { event: 0..0, data: 0..4, consumed: 0 },
        Cut::Frame { event: 0..0, data: 0..4, consumed: 5 },
        Cut::Frame { event: 0..0, data: 0..5, consumed: 4 },
        Cut::Frame { event: 5..5, data: 0..4, consumed: 4 },
        Cut::Frame { event: backwards.clone(), data: 0..4, consumed: 4 },
        Cut::Frame { event: 0..0, data: backwards, consumed: 4 },
        Cut::Frame { event: 3..4, data: 0..4, consumed: 4 },
    ] {
        let outcome = read(Framer::custom(Box::new(Answers(Some(cut.clone())))), [&b"abc\xFF"[..]]);
        assert!(matches!(outcome.fault, Some(FrameFault::Invalid(_))), "{cut:?} gave {outcome:?}");
    }
}
