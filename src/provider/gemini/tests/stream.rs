//! Streams as they are on the wire: `fixtures/gemini/*.sse`.

use super::*;
use crate::chat::{Chunk, Opaque, ToolCall};
use crate::provider::{Draft, Frame, Framing};
use crate::transport::framing::Framer;

macro_rules! stream {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/gemini/", $name, ".sse"))
    };
}

/// What came of a stream: the chunks, and the reply, or why there is none and what came nevertheless.
#[derive(Debug, PartialEq)]
struct Told {
    chunks: Vec<Chunk>,
    outcome: Result<Reply, (AnswerFault, Reply)>,
}

/// A stream that broke off.
fn interrupted() -> AnswerFault {
    AnswerFault::Invalid("interrupted".to_owned())
}

fn tell(pieces: &[&'static [u8]]) -> Told {
    let cx = EncodeContext::new("gemini-4-argon").streaming();
    let mut decoder = Gemini::new("k").stream_decoder(&cx).unwrap();
    let (mut framer, mut draft, mut chunks) = (Framer::new(Framing::Sse), Draft::new(), Vec::new());
    let mut read = |framer: &mut Framer, draft: &mut Draft| {
        while let Some(frame) = framer.next_frame().unwrap() {
            decoder.read(&frame, draft)?;
            chunks.extend(std::iter::from_fn(|| draft.next_chunk()));
        }
        Ok(())
    };
    let mut fed = pieces.iter().try_for_each(|piece| {
        framer.push(Bytes::from_static(piece));
        read(&mut framer, &mut draft)
    });
    framer.end();
    fed = fed.and_then(|()| read(&mut framer, &mut draft));
    let outcome = match fed {
        Err(fault) => Err((fault, draft.partial())),
        Ok(()) if decoder.end(&mut draft) => draft.finished(),
        Ok(()) => Err((interrupted(), draft.partial())),
    };
    chunks.extend(std::iter::from_fn(|| draft.next_chunk()));
    Told {
        chunks: without_made_up_ids(chunks),
        outcome: outcome.map(named).map_err(|(fault, reply)| (fault, named(reply))),
    }
}

/// An id that was made up is another one each time.
fn name_of_id(id: &str) -> String {
    if id.starts_with("call_") { "made up".to_owned() } else { id.to_owned() }
}

fn without_made_up_ids(mut chunks: Vec<Chunk>) -> Vec<Chunk> {
    for chunk in &mut chunks {
        if let Chunk::ToolCall(part) = chunk {
            part.id = part.id.as_deref().map(name_of_id);
        }
    }
    chunks
}

fn named(reply: Reply) -> Reply {
    let calls = reply.tool_calls().iter().cloned().map(|call| ToolCall { id: name_of_id(&call.id), ..call });
    let calls: Vec<_> = calls.collect();
    reply.with_tool_calls(calls)
}

/// Whole, and cut in two at every byte: the same each time.
fn told(stream: &'static [u8]) -> Told {
    let whole = tell(&[stream]);
    for at in 1..stream.len() {
        let (head, tail) = stream.split_at(at);
        assert_eq!(tell(&[head, tail]), whole, "cut at {at}");
    }
    let bytes: Vec<_> = stream.chunks(1).collect();
    assert_eq!(tell(&bytes), whole, "byte by byte");
    whole
}

fn texts(told: &Told) -> Vec<&str> {
    told.chunks.iter().map(Chunk::text).filter(|text| !text.is_empty()).collect()
}

fn signed(data: Value) -> Opaque {
    Opaque::new("gemini", data)
}

#[test]
fn a_stream_is_asked_for_as_events() {
    let cx = EncodeContext::new("gemini-4-argon").streaming();
    let url = |gemini: Gemini| gemini.encode(&Request::user("Hi"), &cx).unwrap().url.to_string();
    let path = "models/gemini-4-argon:streamGenerateContent";
    assert_eq!(url(Gemini::new("k")), format!("https://generativelanguage.googleapis.com/v1beta/{path}?alt=sse"));
    assert_eq!(url(Gemini::new("k").base_url("http://h/v1?a=b")), format!("http://h/v1/{path}?a=b&alt=sse"));
    let project = "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google";
    assert_eq!(url(Gemini::vertex("p", "global", NoTokens)), format!("{project}/{path}?alt=sse"));
    let whole = Gemini::new("k").encode(&Request::user("Hi"), &EncodeContext::new("gemini-4-argon")).unwrap();
    let streamed = Gemini::new("k").encode(&Request::user("Hi"), &cx).unwrap();
    assert_eq!(streamed.body, whole.body);
}

#[test]
fn words_and_thoughts_come_piece_by_piece_and_the_last_count_holds() {
    let told = told(stream!("text"));
    assert_eq!(texts(&told), ["Hello", " there.\n“Ægir” 🌍"]);
    assert_eq!(told.chunks[0].reasoning(), "Greet back.");
    let reply = told.outcome.unwrap();
    assert_eq!((reply.text(), reply.reasoning()), ("Hello there.\n“Ægir” 🌍", Some("Greet back.")));
    assert_eq!((reply.finish_reason(), reply.model()), (FinishReason::Stop, Some("gemini-4-argon")));
    assert_eq!(reply.provider_request_id(), Some("fx-0005"));
    let usage = Usage { cached_input: Some(8), reasoning: Some(9), ..Usage::new(12, 12) };
    assert_eq!(reply.usage(), Some(&usage));
    let signature = json!({"thoughtSignature": "c2lnLWV4YW1wbGUz", "text": "", "model": "gemini-4-argon"});
    assert_eq!(reply.opaque(), [signed(signature)]);
}

#[test]
fn a_call_comes_whole_with_its_signature() {
    let told = told(stream!("tool_call"));
    let Chunk::ToolCall(part) = &told.chunks[0] else { panic!("{told:?}") };
    assert_eq!((part.index, part.id.as_deref(), part.name.as_deref()), (0, Some("fc3"), Some("get_weather")));
    assert_eq!((part.arguments.as_str(), part.complete), (r#"{"city":"Oslo"}"#, true));
    let reply = told.outcome.unwrap();
    let own = json!({"id": "fc3", "thoughtSignature": "c2lnLWV4YW1wbGU0", "model": "gemini-4-argon"});
    let call = ToolCall::new("fc3", "get_weather", json!({"city": "Oslo"})).with_opaque(signed(own));
    assert_eq!((reply.tool_calls(), reply.finish_reason()), (&[call][..], FinishReason::ToolCalls));
}

#[test]
fn calls_without_ids_get_one_each() {
    let reply = told(stream!("parallel_calls_without_ids")).outcome.unwrap();
    let calls: Vec<_> = reply.tool_calls().iter().map(|call| (call.name.as_str(), call.arguments.clone())).collect();
    assert_eq!(
        calls,
        [("get_weather", json!({"city": "Oslo"})), ("get_weather", json!({"city": "Lima"})), ("get_time", json!({})),]
    );
    let signature = json!({"thoughtSignature": "c2lnLWV4YW1wbGU1", "model": "gemini-4-argon"});
    assert_eq!(reply.tool_calls()[0].opaque, Some(signed(signature)));
    assert_eq!((reply.text(), reply.tool_calls()[1].opaque.as_ref()), ("Let me look.", None));

    let body =
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a"}},{"functionCall":{"name":"a"}}]}}]}"#;
    let ids = [read(body).unwrap(), read(body).unwrap()];
    let mut ids: Vec<_> = ids.iter().flat_map(Reply::tool_calls).map(|call| call.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4, "unique within the conversation, be two answers the same");
}

#[test]
fn arguments_in_pieces_become_one_call() {
    let told = told(stream!("arguments_in_pieces"));
    let parts: Vec<_> =
        told.chunks.iter().map(|chunk| matches!(chunk, Chunk::ToolCall(part) if part.complete)).collect();
    assert_eq!(parts, [false, true], "the name at once, the arguments when they are whole");
    let reply = told.outcome.unwrap();
    let expected = json!({"city": "New York", "days": [{"in": 1.5}]});
    assert_eq!((reply.tool_calls()[0].name.as_str(), &reply.tool_calls()[0].arguments), ("get_weather", &expected));
    assert!(reply.tool_calls()[0].opaque.is_some());
}

#[test]
fn an_error_in_the_midst_keeps_what_came() {
    for stream in [&stream!("busy_midway")[..], stream!("busy_midway_bare")] {
        let (fault, partial) = told(stream).outcome.unwrap_err();
        assert_eq!((fault, partial.text()), (AnswerFault::Error, "Hel"));
    }
}

#[test]
fn a_stream_without_a_reason_why_it_ended_is_cut() {
    let (fault, partial) = told(stream!("cut_midway")).outcome.unwrap_err();
    assert_eq!((fault, partial.text(), partial.usage()), (interrupted(), "Hello", Some(&Usage::new(4, 2))));
}

#[test]
fn a_filter_in_a_stream_is_one() {
    let (fault, partial) = told(stream!("blocked_prompt")).outcome.unwrap_err();
    assert_eq!((fault, partial.usage()), (filtered("PROHIBITED_CONTENT"), Some(&Usage::new(4, 0))));
    let reply = told(stream!("stopped_for_safety")).outcome.unwrap();
    assert_eq!((reply.text(), reply.finish_reason()), ("Mix", FinishReason::ContentFilter));
}

#[test]
fn what_gateways_do_to_a_stream_costs_nothing() {
    let told = told(stream!("gateway"));
    assert_eq!(texts(&told), ["One", " two"], "the second candidate is another answer");
    let reply = told.outcome.unwrap();
    assert_eq!((reply.finish_reason(), reply.usage()), (FinishReason::Length, Some(&Usage::new(9, 2))));
}

#[test]
fn a_frame_that_is_not_the_protocol_is_told_without_its_words() {
    for (data, said) in [
        (r#"{"candidates":[{"content":{"parts":[{"text":"secret"#, "the JSON is cut"),
        (r#"{"candidates":"secret"}"#, "the JSON has another shape"),
        ("secret", "it is not JSON"),
        (r#""secret""#, "the JSON has another shape"),
        ("{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"secret\u{1}\"}]}}]}", "it is not JSON"),
    ] {
        let cx = EncodeContext::new("m").streaming();
        let mut decoder = Gemini::new("k").stream_decoder(&cx).unwrap();
        let fault = decoder.read(&Frame::new(data.as_bytes()), &mut Draft::new()).unwrap_err();
        let AnswerFault::Frame(why) = fault else { panic!("{fault:?}") };
        assert!(why.starts_with(said) && !why.contains("secret"), "{data}: {why}");
    }
}

#[test]
fn whole_and_streamed_are_the_same_reply() {
    let event = format!("data: {}\n\n", golden(fixture!("text.response")));
    let streamed = tell(&[event.leak().as_bytes()]).outcome.unwrap();
    assert_eq!(streamed, read(fixture!("text.response")).unwrap());
}
