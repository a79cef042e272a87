//! JSON values, one a line.

use super::cut::{Outcome, Owned, everywhere, frames};
use bytes::Bytes;
use steadfast::provider::{FrameFault, Framing};
use steadfast::transport::framing::Framer;

fn ndjson(body: &str) -> Outcome {
    frames(Framing::Ndjson, body)
}

#[test]
fn each_line_is_a_frame() {
    assert_eq!(ndjson("{\"a\":1}\n{\"b\":2}\n"), Outcome::whole(["{\"a\":1}", "{\"b\":2}"].map(Owned::of)));
}

#[test]
fn blank_lines_and_white_space_carry_nothing() {
    assert_eq!(ndjson("\n{}\r\n\r\n \t\n\n  [1,\r2] \n"), Outcome::whole(["{}", "[1,\r2]"].map(Owned::of)));
    assert_eq!(ndjson(" \r\n \t"), Outcome::whole([]));
}

#[test]
fn the_end_of_the_body_ends_the_last_line() {
    assert_eq!(ndjson("{}\n {\"a\":"), Outcome::whole([Owned::of("{}"), Owned::of("{\"a\":").torn()]));
}

#[test]
fn a_line_over_the_bound_is_refused_after_those_before_it() {
    let bounded = |body: &str| everywhere(|| Framer::new(Framing::Ndjson).max_event_bytes(4), body.as_bytes());
    assert_eq!(bounded("[1]\n[22]\n"), Outcome::whole(["[1]", "[22]"].map(Owned::of)));
    for body in ["[1]\n[333]\n[1]\n", "[1]\n[3333", "[1]\n     "] {
        assert_eq!(bounded(body), Outcome::fault([Owned::of("[1]")], FrameFault::TooLarge(4)), "{body:?}");
    }
}

#[test]
fn a_line_within_a_piece_is_not_copied() {
    let piece = Bytes::from_static(b"{\"a\":1}\r\n {}\n");
    let mut framer = Framer::new(Framing::Ndjson);
    framer.push(piece.clone());
    let mut given = 0;
    while let Some(frame) = framer.next_frame().unwrap() {
        assert!(piece.as_ptr_range().contains(&frame.data.as_ptr()));
        given += 1;
    }
    assert_eq!(given, 2);
}
