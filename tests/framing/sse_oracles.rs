//! Random documents, cut at random: against the standard read literally, and against `eventsource-stream`.

use super::cut::{Outcome, Owned, cut, read};
use eventsource_stream::Eventsource;
use futures_core::Stream;
use proptest::prelude::*;
use std::convert::Infallible;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use steadfast::provider::Framing;
use steadfast::transport::framing::Framer;

/// The standard, sentence by sentence, over a whole document, but for the last event, which needs no blank line here. Names must be UTF-8.
pub(crate) fn by_the_standard(body: &[u8]) -> Vec<Owned> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
    let mut bytes = body.iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' => {
                bytes.next_if(|next| **next == b'\n');
                lines.push(Vec::new());
            }
            b'\n' => lines.push(Vec::new()),
            other => lines.last_mut().expect("there is one").push(*other),
        }
    }
    let last = lines.pop().filter(|line| !line.is_empty());
    let mut frames = Vec::new();
    let (mut event, mut data) = (Vec::new(), Vec::new());
    let mut give = |event: &mut Vec<u8>, data: &mut Vec<u8>, torn| {
        let event = String::from_utf8(std::mem::take(event)).expect("the documents have such names");
        let mut data = std::mem::take(data);
        if data.pop().is_some() {
            frames.push(Owned { event, data, exception: false, torn });
        }
    };
    for line in lines.iter().chain(&last) {
        if line.is_empty() {
            give(&mut event, &mut data, false);
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"event" => event = value.to_vec(),
            b"data" => {
                data.extend_from_slice(value);
                data.push(b'\n');
            }
            _ => {}
        }
    }
    give(&mut event, &mut data, true);
    frames
}

/// Pieces as the stream that `eventsource-stream` wants; it is always ready.
struct Pieces<'a>(std::vec::IntoIter<&'a [u8]>);

impl<'a> Stream for Pieces<'a> {
    type Item = Result<&'a [u8], Infallible>;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}

pub(crate) fn by_eventsource_stream(pieces: Vec<&[u8]>) -> Vec<Owned> {
    let mut events = pin!(Pieces(pieces.into_iter()).eventsource());
    let mut frames = Vec::new();
    while let Poll::Ready(Some(event)) = events.as_mut().poll_next(&mut Context::from_waker(Waker::noop())) {
        let event = event.expect("the document is UTF-8");
        // It calls an event without a name `message`, as browsers do.
        let name = if event.event == "message" { "" } else { &event.event };
        frames.push(Owned::named(name, &event.data));
    }
    frames
}

/// Lines as servers write them, and as they should not.
fn line() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        6 => Just("data"), 2 => Just("event"),
        3 => prop::sample::select(vec!["id", "retry", "", "dat", "datas", " data", "\u{feff}data"])
    ];
    let colon = prop_oneof![3 => Just(": "), 1 => Just(":"), 1 => Just(""), 1 => Just(":  ")];
    let value = prop_oneof!["[a-z{}\":,]{0,12}", "\\PC{0,6}", Just(String::new()), Just("😀\u{2028}é\0".to_owned())];
    prop_oneof![
        6 => (name, colon, value).prop_map(|(name, colon, value)| format!("{name}{colon}{value}")),
        4 => Just(String::new()),
        // Bare JSON is data here, and to the standard it is nothing.
        1 => "[^\r\n{\\[][^\r\n]{0,7}",
    ]
}

fn document() -> impl Strategy<Value = String> {
    let end = prop_oneof![5 => Just("\n"), 2 => Just("\r\n"), 2 => Just("\r"), 1 => Just("")];
    let lines = prop::collection::vec((line(), end), 0..24);
    (any::<bool>(), lines).prop_map(|(mark, lines)| {
        let mut document = if mark { "\u{feff}".to_owned() } else { String::new() };
        document.extend(lines.into_iter().flat_map(|(line, end)| [line, end.to_owned()]));
        document
    })
}

fn places() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_document_is_read_by_the_standard(document in document(), places in places()) {
        let outcome = read(Framer::new(Framing::Sse), cut(document.as_bytes(), &places));
        prop_assert_eq!(outcome.fault, None);
        prop_assert_eq!(outcome.frames, by_the_standard(document.as_bytes()));
    }

    #[test]
    fn any_document_is_read_as_eventsource_stream_reads_it(document in document(), places in places()) {
        // Where the two differ on purpose: it panics at a byte order mark, waits for one more byte after a CR, and gives no
        // event that lacks its blank line at the end. So the document loses its mark, and has an end.
        let document = document.trim_start_matches('\u{feff}').to_owned() + "\n\n\n";
        let pieces = cut(document.as_bytes(), &places);
        let outcome = read(Framer::new(Framing::Sse), pieces.clone());
        prop_assert_eq!(outcome.fault, None);
        prop_assert_eq!(outcome.frames, by_eventsource_stream(pieces));
    }

    #[test]
    fn any_bytes_give_the_same_wherever_they_are_cut(
        body in prop::collection::vec(prop_oneof![
            3 => prop::sample::select(&b"\n\r:da t"[..]).prop_map(|byte| vec![byte]),
            2 => prop::sample::select(vec![&b"data:"[..], b"event:", b"\xEF\xBB\xBF", b"\n\n"]).prop_map(<[u8]>::to_vec),
            1 => any::<u8>().prop_map(|byte| vec![byte]),
        ], 0..80).prop_map(|parts| parts.concat()),
        places in places(),
        max in prop_oneof![Just(usize::MAX), 0..40_usize],
        framing in prop::sample::select(vec![Framing::Sse, Framing::Ndjson]),
    ) {
        let framer = || Framer::new(framing.clone()).max_event_bytes(max);
        let whole: Outcome = read(framer(), [&body[..]]);
        prop_assert_eq!(&read(framer(), cut(&body, &places)), &whole);
        prop_assert_eq!(&read(framer(), body.chunks(1)), &whole);
    }
}
