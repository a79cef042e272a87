//! The streams of `fixtures/cases`: what servers really send.

use super::cut::{everywhere, read};
use super::sse_oracles::{by_eventsource_stream, by_the_standard};
use base64::Engine as _;
use serde_json::Value;
use steadfast::provider::{FrameFault, Framing};
use steadfast::transport::framing::Framer;

/// One stream: the id of its case, and its body in the pieces that it is sent in.
struct Body {
    id: String,
    pieces: Vec<Vec<u8>>,
}

impl Body {
    fn whole(&self) -> Vec<u8> {
        self.pieces.concat()
    }
}

/// Those of this type. What is compressed reaches the framing otherwise.
fn bodies(content_type: &str) -> Vec<Body> {
    let is_meant = |case: &Value| {
        let headers = &case["response"]["headers"];
        case["kind"] == "stream" && headers["content-type"] == content_type && headers["content-encoding"].is_null()
    };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/cases");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    paths.sort();
    let cases = paths.iter().flat_map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    });
    cases
        .filter(is_meant)
        .map(|case| Body {
            id: case["id"].as_str().unwrap().to_owned(),
            pieces: case["response"]["chunks"].as_array().unwrap().iter().filter_map(piece).collect(),
        })
        .collect()
}

/// What a chunk of a case sends; a pause sends nothing.
fn piece(chunk: &Value) -> Option<Vec<u8>> {
    if let Some(text) = chunk.as_str() {
        return Some(text.into());
    }
    if let Some(base64) = chunk["b64"].as_str() {
        return Some(base64::engine::general_purpose::STANDARD.decode(base64).unwrap());
    }
    let times = usize::try_from(chunk["times"].as_u64()?).unwrap();
    Some(chunk["repeat"].as_str()?.repeat(times).into_bytes())
}

#[test]
fn every_stream_is_read_by_the_standard_wherever_it_is_cut() {
    let bodies = bodies("text/event-stream");
    assert!(bodies.len() >= 60, "{}", bodies.len());
    for body in bodies {
        let whole = body.whole();
        let expected = by_the_standard(&whole);
        let pieces = body.pieces.iter().map(Vec::as_slice);
        assert_eq!(read(Framer::new(Framing::Sse), pieces).frames, expected, "{}", body.id);
        if whole.len() < 10_000 {
            assert_eq!(everywhere(|| Framer::new(Framing::Sse), &whole).frames, expected, "{}", body.id);
        }
    }
}

/// Why this crate reads server-sent events itself. Should the list become empty, `eventsource-stream` has caught up.
#[test]
fn eventsource_stream_does_not_read_all_of_them() {
    let mut lost = Vec::new();
    for body in bodies("text/event-stream") {
        let pieces: Vec<&[u8]> = body.pieces.iter().map(Vec::as_slice).collect();
        if body.whole().starts_with(b"\xEF\xBB\xBF") {
            lost.push(body.id); // it panics: it cuts the mark, which has three bytes, after the first
            continue;
        }
        let expected = by_the_standard(&body.whole()).into_iter().map(|frame| (frame.event, frame.data));
        let read = by_eventsource_stream(pieces).into_iter().map(|frame| (frame.event, frame.data));
        if !read.eq(expected) {
            lost.push(body.id);
        }
    }
    // The first panics, the second is buffered without a bound, of the third the last event is lost.
    assert_eq!(lost, ["sse-byte-order-mark", "sse-event-never-ends", "sse-no-final-blank-line"]);
}

#[test]
fn lines_of_json_come_out_as_they_went_in() {
    let bodies = bodies("application/x-ndjson");
    assert!(bodies.len() >= 5, "{}", bodies.len());
    for body in bodies {
        let whole = body.whole();
        let lines = whole.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        let outcome = everywhere(|| Framer::new(Framing::Ndjson), &whole);
        assert!(outcome.frames.iter().map(|frame| &frame.data[..]).eq(lines), "{}: {outcome:?}", body.id);
    }
}

#[cfg(feature = "bedrock")]
#[test]
fn every_aws_event_stream_is_read_to_its_end() {
    let bodies = bodies("application/vnd.amazon.eventstream");
    assert!(bodies.len() >= 5, "{}", bodies.len());
    for body in bodies {
        let outcome = everywhere(|| Framer::new(Framing::AwsEventStream), &body.whole());
        assert!(outcome.fault.is_none() && !outcome.is_mid_frame, "{}: {outcome:?}", body.id);
        assert!(outcome.frames.iter().all(|frame| !frame.event.is_empty()), "{}: {outcome:?}", body.id);
    }
}

#[test]
fn an_event_that_never_ends_is_refused_and_not_buffered() {
    let body = bodies("text/event-stream").into_iter().find(|body| body.id == "sse-event-never-ends").unwrap();
    let framer = || Framer::new(Framing::Sse).max_event_bytes(1 << 20);
    let pieces = body.pieces.iter().flat_map(|piece| piece.chunks(16 << 10));
    assert_eq!(read(framer(), pieces).fault, Some(FrameFault::TooLarge(1 << 20)));
}
