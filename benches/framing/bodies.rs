//! The bodies that are read.

use crate::readers::{Read, steadfast};
use base64::Engine as _;
use bytes::Bytes;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use steadfast::provider::Framing;

/// Bodies of one sort, each in pieces.
pub(crate) struct Bodies {
    pub(crate) name: &'static str,
    pub(crate) framing: Framing,
    pub(crate) each: Vec<Vec<Bytes>>,
}

impl Bodies {
    /// What is to be found in them.
    pub(crate) fn expected(&self) -> Read {
        self.each.iter().map(|pieces| steadfast(self.framing.clone(), &[pieces.concat().into()])).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.each.iter().flatten().map(Bytes::len).sum()
    }
}

/// Events of one body.
const EVENTS: u32 = 1000;

pub(crate) fn all() -> Vec<Bodies> {
    let named = |mut body: String, number| {
        write!(body, "event: content_block_delta\n{}", event(number)).expect("a string takes all");
        body
    };
    let plain = (0..EVENTS).map(event).collect::<String>();
    let with_names = (0..EVENTS).fold(String::new(), named);
    let json = (0..EVENTS).map(|number| chunk(number) + "\n").collect::<String>();
    let one = |name, framing, pieces: Vec<Bytes>| Bodies { name, framing, each: vec![pieces] };
    let cut = |body: &str, size| body.as_bytes().chunks(size).map(leak).collect();
    let length = event(0).len();
    vec![
        one("events of 300 bytes, one a piece", Framing::Sse, cut(&plain, length)),
        one("events of 300 bytes, 16 KiB a piece", Framing::Sse, cut(&plain, 16 << 10)),
        one("events of 300 bytes, 128 bytes a piece", Framing::Sse, cut(&plain, 128)),
        one("events with names and CRLF, one a piece", Framing::Sse, {
            let crlf = with_names.replace('\n', "\r\n");
            cut(&crlf, crlf.len() / EVENTS as usize)
        }),
        Bodies { name: "the SSE bodies of fixtures/cases", framing: Framing::Sse, each: corpus() },
        one("lines of JSON of 300 bytes, one a piece", Framing::Ndjson, cut(&json, length - 8 + 1)),
        one("lines of JSON of 300 bytes, 16 KiB a piece", Framing::Ndjson, cut(&json, 16 << 10)),
        #[cfg(feature = "bedrock")]
        one("an AWS event stream, 16 KiB a piece", Framing::AwsEventStream, aws_event_stream()),
    ]
}

/// A piece as the network gives it; static, so that counting its references is not measured.
fn leak(piece: &[u8]) -> Bytes {
    Bytes::from_static(Box::leak(piece.into()))
}

/// A chunk of a completion. All are of one length.
fn chunk(number: u32) -> String {
    format!(
        r#"{{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1741569952,"model":"gpt-4.1-mini-2025-04-14","service_tier":"default","system_fingerprint":"fp_44added55e","choices":[{{"index":0,"delta":{{"content":" words{number:05}"}},"logprobs":null,"finish_reason":null}}],"usage":null}}"#
    )
}

fn event(number: u32) -> String {
    format!("data: {}\n\n", chunk(number))
}

/// Streams of the cases, in their own pieces. Left out are those that begin with a byte order mark, which eventsource-stream
/// cannot read at all, those that are compressed, and those of over 100 KB, which would hide the others.
fn corpus() -> Vec<Vec<Bytes>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cases");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("it is there").flatten().map(|entry| entry.path()).collect();
    files.sort();
    let lines = files.iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let cases = lines.flat_map(|path| {
        let text = std::fs::read_to_string(path).expect("it can be read");
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a case a line")).collect::<Vec<_>>()
    });
    let is_sse = |case: &Value| {
        let headers = &case["response"]["headers"];
        case["kind"] == "stream"
            && headers["content-type"] == "text/event-stream"
            && headers["content-encoding"].is_null()
    };
    cases.filter(is_sse).map(|case| pieces(&case["response"]["chunks"])).filter(|body| is_usual(body)).collect()
}

fn is_usual(body: &[Bytes]) -> bool {
    let starts_plain = !body.first().is_some_and(|piece| piece.starts_with(b"\xEF"));
    starts_plain && body.iter().map(Bytes::len).sum::<usize>() < 100_000
}

fn pieces(chunks: &Value) -> Vec<Bytes> {
    let piece = |chunk: &Value| {
        let text = chunk.as_str().or_else(|| chunk["repeat"].as_str());
        let times = chunk["times"].as_u64().and_then(|times| usize::try_from(times).ok()).unwrap_or(1);
        let base64 = || base64::engine::general_purpose::STANDARD.decode(chunk["b64"].as_str()?).ok();
        text.map(|text| text.repeat(times).into_bytes()).or_else(base64).map(|bytes| leak(&bytes))
    };
    chunks.as_array().into_iter().flatten().filter_map(piece).collect()
}

#[cfg(feature = "bedrock")]
fn aws_event_stream() -> Vec<Bytes> {
    use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
    let mut wire = Vec::new();
    for number in 0..EVENTS {
        let payload =
            format!(r#"{{"contentBlockIndex":0,"delta":{{"text":" words{number:05}"}},"p":"{}"}}"#, "a".repeat(120));
        let headers =
            [(":event-type", "contentBlockDelta"), (":content-type", "application/json"), (":message-type", "event")];
        let headers = headers.map(|(name, value)| Header::new(name, HeaderValue::String(value.into()))).to_vec();
        let message = Message::new_from_parts(headers, payload);
        aws_smithy_eventstream::frame::write_message_to(&message, &mut wire).expect("it fits");
    }
    wire.chunks(16 << 10).map(leak).collect()
}
