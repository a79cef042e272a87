//! Server-sent events, by the standard.

use super::cut::{Outcome, Owned, everywhere, frames};
use bytes::Bytes;
use steadfast::provider::{FrameFault, Framing};
use steadfast::transport::framing::Framer;

fn sse(body: &str) -> Outcome {
    frames(Framing::Sse, body)
}

fn bounded(max: usize, body: &str) -> Outcome {
    everywhere(|| Framer::new(Framing::Sse).max_event_bytes(max), body.as_bytes())
}

#[test]
fn lines_end_in_lf_cr_or_crlf() {
    let expected = Outcome::whole([Owned::named("a", "1"), Owned::of("2\n3")]);
    for end in ["\n", "\r", "\r\n"] {
        let body = ["event: a", "data: 1", "", "data: 2", "data: 3", "", ""].join(end);
        assert_eq!(sse(&body), expected, "{end:?}");
    }
    assert_eq!(sse("event: a\rdata: 1\r\n\ndata: 2\ndata: 3\r\r\n"), expected, "mixed");
}

#[test]
fn a_cr_ends_an_event_before_the_next_byte_comes() {
    let mut framer = Framer::new(Framing::Sse);
    framer.push(Bytes::from_static(b"data: 1\r\n\r"));
    assert_eq!(framer.next_frame().unwrap().unwrap().data, b"1");
    assert_eq!(framer.next_frame(), Ok(None));
    framer.push(Bytes::from_static(b"\ndata: 2\n\n"));
    assert_eq!(framer.next_frame().unwrap().unwrap().data, b"2");
}

#[test]
fn one_byte_order_mark_at_the_start_is_dropped() {
    assert_eq!(sse("\u{feff}data: 1\n\n"), Outcome::whole([Owned::of("1")]));
    assert_eq!(sse("\u{feff}\ndata: 1\n\n"), Outcome::whole([Owned::of("1")]));
    assert_eq!(sse("\u{feff}\u{feff}data: 1\n\n"), Outcome::whole([]), "the second is part of a field's name");
    assert_eq!(sse("\n\u{feff}data: 1\n\n"), Outcome::whole([]), "not at the start");
    assert_eq!(sse("\u{feff}"), Outcome::whole([]));
    assert_eq!(everywhere(|| Framer::new(Framing::Sse), b"\xEF\xBBdata: 1\n\n"), Outcome::whole([]), "half a mark");
}

#[test]
fn comments_and_unknown_fields_are_ignored() {
    let body =
        ": OPENROUTER PROCESSING\n\n:\n:data: no\nid: 7\nretry: 10\nretry: soon\nid: a\0b\ndata: 1\n: inside\nid\n\n";
    assert_eq!(sse(body), Outcome::whole([Owned::of("1")]));
    assert_eq!(sse("dataa: 1\n Data: 2\ndata : 3\nDATA: 4\n<html>\n\n"), Outcome::whole([]));
}

#[test]
fn one_space_after_the_colon_is_dropped() {
    assert_eq!(sse("data:1\n\ndata:  2 \n\ndata:\t3\n\n"), Outcome::whole(["1", " 2 ", "\t3"].map(Owned::of)));
    assert_eq!(
        sse("event:a\ndata: 1\n\nevent:  b\ndata: 2\n\n").frames,
        [Owned::named("a", "1"), Owned::named(" b", "2")]
    );
    assert_eq!(sse("data: a: b:c\n\n"), Outcome::whole([Owned::of("a: b:c")]));
}

#[test]
fn data_lines_are_joined_by_newlines() {
    assert_eq!(
        sse("data: {\ndata:  \"a\":\ndata\ndata:\ndata: 1}\n\n"),
        Outcome::whole([Owned::of("{\n \"a\":\n\n\n1}")])
    );
}

#[test]
fn empty_data_is_an_event_and_no_data_is_none() {
    assert_eq!(sse("data:\n\ndata: \n\ndata\n\n"), Outcome::whole(["", "", ""].map(Owned::of)));
    assert_eq!(
        sse("event: ping\n\nid: 1\n\n\n\ndata: 1\n\n"),
        Outcome::whole([Owned::of("1")]),
        "the name is forgotten"
    );
}

#[test]
fn the_last_name_of_an_event_counts() {
    assert_eq!(sse("event: a\nevent: b\ndata: 1\n\n").frames, [Owned::named("b", "1")]);
    assert_eq!(sse("event: a\ndata: 1\nevent\n\n").frames, [Owned::of("1")]);
    assert_eq!(sse("data: 1\nevent: späť\n\ndata: 2\n\n").frames, [Owned::named("späť", "1"), Owned::of("2")]);
}

#[test]
fn a_name_that_is_not_utf8_is_a_fault_of_the_event_that_has_it() {
    let read = |body: &[u8]| everywhere(|| Framer::new(Framing::Sse), body);
    let fault = FrameFault::Invalid("the name of an event is not UTF-8".into());
    assert_eq!(read(b"data: 1\n\nevent: \xFF\ndata: 2\n\ndata: 3\n\n"), Outcome::fault([Owned::of("1")], fault));
    assert_eq!(read(b"event: \xFF\n\nevent: \xFF\nevent: a\ndata: 2\n\n"), Outcome::whole([Owned::named("a", "2")]));
}

#[test]
fn data_may_be_any_bytes() {
    let read = everywhere(|| Framer::new(Framing::Sse), b"data: \xF0\x9F\x00\xFF\n\n");
    assert_eq!(read.frames[0].data, b"\xF0\x9F\x00\xFF");
    assert_eq!(sse("data: a\u{2028}b\u{85}c\u{c}\u{b}d\n\n").frames, [Owned::of("a\u{2028}b\u{85}c\u{c}\u{b}d")]);
}

#[test]
fn the_end_of_the_body_ends_the_last_event() {
    for (body, data) in [("data: 1", "1"), ("data: 1\n", "1"), ("data: 1\ndata: 2\r", "1\n2"), ("data: 1\n: a", "1")] {
        assert_eq!(sse(body), Outcome::whole([Owned::of(data).torn()]), "{body:?}");
    }
    assert_eq!(sse("event: a\ndata: 1\n\nevent: b\ndata: {\"x").frames[1], Owned::named("b", "{\"x").torn());
    assert_eq!(sse("data: 1\n\n: bye"), Outcome::whole([Owned::of("1")]));
}

/// Gemini's errors come so in the middle of a stream, and those of gateways.
#[test]
fn lines_of_bare_json_are_data() {
    let error = "{\"error\":{\"code\":503}}";
    for (bare, data) in [
        (format!("{error}\n\n"), error),
        (format!("[{error}]\r\n\r\n"), "[{\"error\":{\"code\":503}}]"),
        ("{\n  \"error\": {\n    \"code\": 503\n  }\n}\n\n".to_owned(), "{\n  \"error\": {\n    \"code\": 503\n  }\n}"),
    ] {
        let body = format!("data: 1\n\n{bare}data: 2\n\n");
        assert_eq!(sse(&body), Outcome::whole(["1", data, "2"].map(Owned::of)), "{body:?}");
    }
    assert_eq!(sse(&format!("event: error\n{error}\n\n")), Outcome::whole([Owned::named("error", error)]));
    for end in ["", "\n"] {
        let body = format!("data: 1\n\n{error}{end}");
        assert_eq!(sse(&body), Outcome::whole([Owned::of("1"), Owned::of(error).torn()]), "{end:?}");
    }
    assert_eq!(sse("data: 1\n{\"a\":2}\n\n"), Outcome::whole([Owned::of("1")]), "behind data it is no field");
}

#[test]
fn a_body_that_breaks_off_before_the_data_is_mid_frame() {
    for body in ["event: message_st", "event: a\n", "event: a\nda", "da", "id: 7"] {
        assert_eq!(sse(&format!("data: 1\n\n{body}")), Outcome::broken_off([Owned::of("1")]), "{body:?}");
    }
    for body in ["", "\n", "id: 7\n", ": a", ": a\n", "event: a\n\n", "\r\n"] {
        assert_eq!(sse(&format!("data: 1\n\n{body}")), Outcome::whole([Owned::of("1")]), "{body:?}");
    }
}

#[test]
fn an_event_over_the_bound_is_refused_after_those_before_it() {
    let too_large =
        |frames: &[&str]| Outcome::fault(frames.iter().map(|data| Owned::of(data)), FrameFault::TooLarge(10));
    assert_eq!(bounded(10, "data: 1\n\ndata: 2345\r\n\r\n"), Outcome::whole(["1", "2345"].map(Owned::of)));
    assert_eq!(bounded(10, "data: 1\n\ndata: 23456\n\ndata: 3\n\n"), too_large(&["1"]));
    assert_eq!(bounded(10, "data: 1\n\ndata: 23456"), too_large(&["1"]), "no end at all");
    assert_eq!(
        bounded(10, "data:\r\ndata\r\n\r\n"),
        Outcome::whole([Owned::of("\n")]),
        "the end of a line is one byte"
    );
    assert_eq!(bounded(10, "data:\r\ndata:"), too_large(&[]), "line by line");
    assert_eq!(bounded(10, "data:1\n:2345"), too_large(&[]), "comments inside an event");
    assert_eq!(bounded(10, "event: abcd"), too_large(&[]), "its name");
    assert_eq!(bounded(10, ":234567890a\n"), too_large(&[]), "a comment");
    assert_eq!(bounded(10, "x234567890a"), too_large(&[]), "what is no field");
}

#[test]
fn comments_between_events_never_add_up() {
    let body = ": alive\n".repeat(20) + "id: 8\nretry: 1\n" + "data: 1\n\n";
    assert_eq!(bounded(10, &body), Outcome::whole([Owned::of("1")]));
}

#[test]
fn a_fault_is_final() {
    let mut framer = Framer::new(Framing::Sse).max_event_bytes(4);
    framer.push(Bytes::from_static(b"data: 1"));
    assert_eq!(framer.next_frame(), Err(FrameFault::TooLarge(4)));
    framer.push(Bytes::from_static(b"\n\nid\n\n"));
    framer.end();
    assert_eq!(framer.next_frame(), Err(FrameFault::TooLarge(4)));
}

#[test]
fn an_event_within_a_piece_is_not_copied() {
    let piece = Bytes::from_static(b"data: 1\n\nevent: a\r\ndata: 2\r\n\r\nid: 3\ndata: 3\n: c\n\n");
    let mut framer = Framer::new(Framing::Sse);
    framer.push(piece.clone());
    let mut given = 0;
    while let Some(frame) = framer.next_frame().unwrap() {
        assert!(piece.as_ptr_range().contains(&frame.data.as_ptr()));
        given += 1;
    }
    assert_eq!(given, 3);
}

#[test]
fn a_piece_that_was_read_is_let_go() {
    let piece = Bytes::from("data: 1\n\ndata: 2".to_owned().into_bytes());
    let mut framer = Framer::new(Framing::Sse);
    framer.push(piece.clone());
    while framer.next_frame().unwrap().is_some() {}
    assert!(piece.is_unique(), "though its last event goes on in the next piece");
}

#[test]
fn nothing_of_the_body_is_in_debug() {
    let mut framer = Framer::new(Framing::Sse);
    framer.push(Bytes::from_static(b"event: sesame\ndata: sesame\n"));
    framer.next_frame().unwrap();
    let shown = format!("{framer:?}");
    assert!(shown.starts_with("Framer { framing: Sse") && !shown.contains("sesame"), "{shown}");
}
