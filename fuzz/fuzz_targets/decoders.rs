//! What every adapter makes of a body: as an answer, and as a stream. The first byte chooses the adapter.

#![no_main]

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use steadfast::provider::{
    Anthropic, Bedrock, Draft, EncodeContext, Gemini, Head, Ollama, OpenAi, OpenAiResponses, Provider,
};
use steadfast::transport::framing::Framer;

static ADAPTERS: LazyLock<[Box<dyn Provider>; 6]> = LazyLock::new(|| {
    [
        Box::new(OpenAi::new("key")),
        Box::new(OpenAiResponses::new("key")),
        Box::new(Anthropic::new("key")),
        Box::new(Gemini::new("key")),
        Box::new(Ollama::new()),
        Box::new(Bedrock::bearer("us-east-1", "key")),
    ]
});

fuzz_target!(|input: &[u8]| {
    let Some((which, body)) = input.split_first() else { return };
    let adapter = &ADAPTERS[usize::from(*which) % ADAPTERS.len()];

    let (head, whole) = (Head::new(StatusCode::OK, HeaderMap::new()), Bytes::copy_from_slice(body));
    if let Err(failure) = adapter.decode(&head, &whole) {
        let _ = adapter.rules().classify(&failure);
    }

    let cx = EncodeContext::new("model").streaming();
    // Bodies of frames are mostly text: the binary framing has a target of its own, so its events are made of lines here.
    let Some(mut decoder) = adapter.stream_decoder(&cx) else { return };
    let mut draft = Draft::new();
    if adapter.name() == "bedrock" {
        for line in body.split(|byte| *byte == b'\n') {
            let (event, data) = line.split_at(line.iter().position(|byte| *byte == b' ').unwrap_or(0));
            let frame = steadfast::provider::Frame::new(data).event(std::str::from_utf8(event).unwrap_or_default());
            if decoder.read(&frame, &mut draft).is_err() {
                return;
            }
        }
    } else {
        let mut framer = Framer::new(adapter.framing());
        framer.push(whole);
        framer.end();
        while let Ok(Some(frame)) = framer.next_frame() {
            if decoder.read(&frame, &mut draft).is_err() {
                return;
            }
        }
    }
    let _ = decoder.end(&mut draft);
});
