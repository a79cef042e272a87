//! The AWS event stream.

use super::cut::{Outcome, Owned, cut, everywhere, read};
use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::DateTime;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use proptest::prelude::*;
use steadfast::provider::{FrameFault, Framing};
use steadfast::transport::framing::Framer;

/// Five messages as they are on the wire.
const TEXT: &str = "\
AAAAfwAAAFKbxZivCzpldmVudC10eXBlBwAMbWVzc2FnZVN0YXJ0DTpjb250ZW50LXR5cGUHABBhcHBsaWNhdGlvbi9qc29uDTptZXNzYWdlLXR5cGUHAAVl\
dmVudHsicCI6ImFiIiwicm9sZSI6ImFzc2lzdGFudCJ9NixsGAAAAJ4AAABX/huCTws6ZXZlbnQtdHlwZQcAEWNvbnRlbnRCbG9ja0RlbHRhDTpjb250ZW50\
LXR5cGUHABBhcHBsaWNhdGlvbi9qc29uDTptZXNzYWdlLXR5cGUHAAVldmVudHsiY29udGVudEJsb2NrSW5kZXgiOjAsImRlbHRhIjp7InRleHQiOiJIaSJ9\
LCJwIjoiYWJjIn2TQ/AQAAAAfQAAAFbmaA/WCzpldmVudC10eXBlBwAQY29udGVudEJsb2NrU3RvcA06Y29udGVudC10eXBlBwAQYXBwbGljYXRpb24vanNv\
bg06bWVzc2FnZS10eXBlBwAFZXZlbnR7ImNvbnRlbnRCbG9ja0luZGV4IjowfbMuTTQAAAB6AAAAUcosRmULOmV2ZW50LXR5cGUHAAttZXNzYWdlU3RvcA06\
Y29udGVudC10eXBlBwAQYXBwbGljYXRpb24vanNvbg06bWVzc2FnZS10eXBlBwAFZXZlbnR7InN0b3BSZWFzb24iOiJlbmRfdHVybiJ9X78J/AAAALcAAABO\
VqFn+gs6ZXZlbnQtdHlwZQcACG1ldGFkYXRhDTpjb250ZW50LXR5cGUHABBhcHBsaWNhdGlvbi9qc29uDTptZXNzYWdlLXR5cGUHAAVldmVudHsidXNhZ2Ui\
OnsiaW5wdXRUb2tlbnMiOjksIm91dHB1dFRva2VucyI6MiwidG90YWxUb2tlbnMiOjExfSwibWV0cmljcyI6eyJsYXRlbmN5TXMiOjIxMH19XCh+CA==";

fn framer() -> Framer {
    Framer::new(Framing::AwsEventStream)
}

fn header(name: &'static str, value: &'static str) -> Header {
    Header::new(name, HeaderValue::String(value.into()))
}

fn wire(headers: impl IntoIterator<Item = Header>, payload: &'static str) -> Vec<u8> {
    let message = headers.into_iter().fold(Message::new(payload.as_bytes()), Message::add_header);
    let mut wire = Vec::new();
    write_message_to(&message, &mut wire).expect("it fits");
    wire
}

fn event(name: &'static str, payload: &'static str) -> Vec<u8> {
    wire([header(":event-type", name), header(":message-type", "event")], payload)
}

#[test]
fn a_stream_of_text_is_five_events() {
    let wire = BASE64.decode(TEXT).expect("as it is written above");
    let expected = [
        Owned::named("messageStart", r#"{"p":"ab","role":"assistant"}"#),
        Owned::named("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"Hi"},"p":"abc"}"#),
        Owned::named("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        Owned::named("messageStop", r#"{"stopReason":"end_turn"}"#),
        Owned::named(
            "metadata",
            r#"{"usage":{"inputTokens":9,"outputTokens":2,"totalTokens":11},"metrics":{"latencyMs":210}}"#,
        ),
    ];
    assert_eq!(everywhere(framer, &wire), Outcome::whole(expected.clone()));
    for length in [1, 11, 12, 40, 126] {
        assert_eq!(read(framer(), [&wire[..length]]), Outcome::broken_off([]), "{length} bytes");
    }
    assert_eq!(read(framer(), [&wire[..128]]), Outcome::broken_off([expected[0].clone()]));
}

#[test]
fn exceptions_and_errors_are_marked() {
    let exception = wire(
        [header(":exception-type", "throttlingException"), header(":message-type", "exception")],
        r#"{"message":"Too many requests"}"#,
    );
    let error = wire(
        [
            header(":message-type", "error"),
            header(":error-code", "InternalFailure"),
            header(":error-message", "It broke"),
        ],
        "",
    );
    let marked = |frame: Owned| Owned { exception: true, ..frame };
    assert_eq!(
        everywhere(framer, &[event("a", "{}"), exception, error].concat()),
        Outcome::whole([
            Owned::named("a", "{}"),
            marked(Owned::named("throttlingException", r#"{"message":"Too many requests"}"#)),
            marked(Owned::named("InternalFailure", "It broke")),
        ])
    );
}

#[test]
fn headers_of_every_type_are_skipped() {
    let headers = [
        Header::new("t", HeaderValue::Bool(true)),
        Header::new("f", HeaderValue::Bool(false)),
        Header::new("b", HeaderValue::Byte(-1)),
        Header::new("s", HeaderValue::Int16(2)),
        Header::new("i", HeaderValue::Int32(3)),
        Header::new("l", HeaderValue::Int64(4)),
        Header::new("bytes", HeaderValue::ByteArray(vec![0; 300].into())),
        Header::new("time", HeaderValue::Timestamp(DateTime::from_secs(5))),
        Header::new("uuid", HeaderValue::Uuid(6)),
        header(":event-type", "a"),
        header(":message-type", "event"),
    ];
    assert_eq!(everywhere(framer, &wire(headers, "{}")), Outcome::whole([Owned::named("a", "{}")]));
    let unnamed = wire([header(":message-type", "event")], "");
    assert_eq!(everywhere(framer, &unnamed), Outcome::whole([Owned::of("")]));
}

#[test]
fn one_changed_byte_is_a_fault_wherever_it_is() {
    let (first, second) = (event("a", "{}"), event("b", r#"{"x":1}"#));
    for at in 0..second.len() {
        let mut damaged = second.clone();
        damaged[at] ^= 0x10;
        let outcome = read(framer(), [&[&first[..], &damaged, &first].concat()[..]]);
        assert_eq!(outcome.frames, [Owned::named("a", "{}")], "byte {at}");
        assert!(matches!(outcome.fault, Some(FrameFault::Invalid(_))), "byte {at}: {outcome:?}");
    }
}

#[test]
fn a_damaged_length_is_found_before_so_many_bytes_come() {
    let mut damaged = event("a", "{}");
    damaged[2] = 0xff;
    assert!(matches!(read(framer(), [&damaged[..12]]).fault, Some(FrameFault::Invalid(_))));
    let html = everywhere(framer, b"<html>502 Bad Gateway</html>");
    assert!(matches!(html.fault, Some(FrameFault::Invalid(_))), "{html:?}");
}

#[test]
fn a_message_must_say_what_it_is() {
    for (headers, why) in [
        (vec![header(":event-type", "a")], "a message does not say what it is"),
        (vec![header(":message-type", "rumour")], "a message is neither an event nor an exception nor an error"),
        (vec![Header::new(":message-type", HeaderValue::Bool(true))], "a message does not say what it is"),
    ] {
        assert_eq!(everywhere(framer, &wire(headers, "{}")), Outcome::fault([], FrameFault::Invalid(why.into())));
    }
}

#[test]
fn a_message_over_the_bound_is_refused_by_its_length() {
    let (small, large) = (event("a", "{}"), event("b", r#"{"x":1}"#));
    let bounded = |max: usize| move || framer().max_event_bytes(max);
    let body = [&small[..], &large].concat();
    assert_eq!(everywhere(bounded(large.len()), &body).fault, None);
    let outcome = everywhere(bounded(large.len() - 1), &body);
    assert_eq!(outcome, Outcome::fault([Owned::named("a", "{}")], FrameFault::TooLarge(large.len() - 1)));
    assert_eq!(read(bounded(20)(), [&small[..12]]).fault, Some(FrameFault::TooLarge(20)), "before the rest has come");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_give_the_same_wherever_they_are_cut(
        // Whole messages, parts of them, and bytes from nowhere; with checksums that are right, so that more than they is seen.
        parts in prop::collection::vec(prop_oneof![
            4 => Just(event("a", "{}")),
            2 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| {
                let mut wire = event("a", "{}");
                let at = at.index(wire.len());
                wire[at] = byte;
                checked(wire)
            }),
            1 => prop::collection::vec(any::<u8>(), 0..40),
            1 => prop::collection::vec(any::<u8>(), 16..60).prop_map(checked),
        ], 0..5),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        max in prop_oneof![Just(usize::MAX), 0..80_usize],
    ) {
        let body = parts.concat();
        let framer = || framer().max_event_bytes(max);
        let whole = read(framer(), [&body[..]]);
        prop_assert_eq!(&read(framer(), cut(&body, &places)), &whole);
        prop_assert_eq!(&read(framer(), body.chunks(1)), &whole);
    }
}

/// Corrects the length and both checksums of something like a message.
fn checked(mut wire: Vec<u8>) -> Vec<u8> {
    let end = wire.len() - 4;
    let length = u32::try_from(wire.len()).expect("it is small").to_be_bytes();
    wire[..4].copy_from_slice(&length);
    let sum = crc32fast::hash(&wire[..8]).to_be_bytes();
    wire[8..12].copy_from_slice(&sum);
    let sum = crc32fast::hash(&wire[..end]).to_be_bytes();
    wire[end..].copy_from_slice(&sum);
    wire
}
