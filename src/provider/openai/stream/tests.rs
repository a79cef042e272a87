//! Streams as they are on the wire, whole and cut at every byte; the usual frame, read either way.

use super::*;
use crate::chat::{Chunk, Reply, ToolCall, Usage};
use crate::provider::Framing;
use crate::provider::stream::testing::Read;
use proptest::prelude::*;
use serde_json::json;

macro_rules! stream {
    ($name:literal) => {
        include_str!(concat!("../../../../fixtures/", $name, ".sse"))
    };
}

fn read(body: &str) -> Read {
    Read::of(&Framing::Sse, body, ChatStream::default)
}

/// The reply that a complete stream comes to.
fn reply(body: &str) -> Reply {
    let read = read(body);
    assert!(read.complete, "{read:?}");
    read.reply().unwrap()
}

/// The texts of the chunks that are text, and of those that are reasoning.
fn words(chunks: &[Chunk]) -> (Vec<&str>, Vec<&str>) {
    let told = |of: fn(&Chunk) -> &str| chunks.iter().map(of).filter(|words| !words.is_empty()).collect();
    (told(Chunk::text), told(Chunk::reasoning))
}

#[test]
fn text_comes_in_the_pieces_in_which_it_was_sent() {
    let told = read(stream!("openai/text"));
    assert_eq!(words(&told.chunks), (vec!["Hello", " there."], vec![]));
    let reply = told.reply().unwrap();
    assert_eq!(
        (reply.text(), reply.finish_reason(), reply.model()),
        ("Hello there.", FinishReason::Stop, Some("gpt-6-luna"))
    );
    let mut usage = Usage::new(12, 3);
    (usage.cached_input, usage.reasoning) = (Some(0), Some(0));
    assert_eq!(reply.usage(), Some(&usage));

    let told = read(stream!("openai/padded"));
    assert_eq!(words(&told.chunks).0, ["Line", " one\n\"two\"", " ü🚀", " 🚀"]);
    let reply = told.reply().unwrap();
    assert_eq!((reply.finish_reason(), reply.usage()), (FinishReason::Length, Some(&Usage::new(10, 6))));
}

#[test]
fn a_tool_call_is_put_together() {
    let reply = reply(stream!("openai/tool_call"));
    let call = ToolCall::new("call_b1", "get_weather", json!({"city": "Oslo"}));
    assert_eq!((reply.tool_calls(), reply.finish_reason()), (&[call][..], FinishReason::ToolCalls));
    assert_eq!(reply.usage(), Some(&Usage::new(64, 18)));
}

#[test]
fn a_refusal_is_kept_apart_from_the_text() {
    let reply = reply(stream!("openai/refusal"));
    assert_eq!((reply.text(), reply.refusal()), ("", Some("I cannot help with that.")));
}

#[test]
fn an_error_ends_the_stream_and_what_came_before_it_stays() {
    for body in [stream!("openai/error_midway"), stream!("compatible/openrouter_error")] {
        let read = read(body);
        assert_eq!((&read.fault, words(&read.chunks).0), (&Some(AnswerFault::Error), vec!["Hel"]));
    }
    for data in [
        r#"{"error":{"message":"m"}}"#,
        r#"{"error":"upstream closed"}"#,
        r#"{"code":"Permission denied","error":"Key is disabled"}"#,
        r#"{"object":"error","message":"m","code":400}"#,
        r#"{"x_groq":{"error":{"message":"m"}},"choices":[{"index":0,"delta":{}}]}"#,
        r#"{"choices":[{"index":0,"error":{"message":"m"},"delta":{"content":"no"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"insufficient_system_resource"}]}"#,
    ] {
        let read = read(&format!("data: {data}\n\ndata: [DONE]\n\n"));
        assert_eq!((read.fault, read.chunks.len()), (Some(AnswerFault::Error), 0), "{data}");
    }
    for data in ["nonsense", r#"{"choices":[{"delta":{"content":"no"#, r#"{"choices":[{"delta":{"content":7}}]}"#, "7"]
    {
        let read = read(&format!("data: {data}\n\n"));
        assert!(matches!(read.fault, Some(AnswerFault::Frame(_))), "{data}: {read:?}");
    }
}

#[test]
fn other_servers_tell_the_same_in_other_shapes() {
    let groq = reply(stream!("compatible/groq"));
    assert_eq!((groq.text(), groq.reasoning()), ("Hello there.", Some("Greet back.")));
    assert_eq!(groq.usage().map(|usage| (usage.total, usage.reasoning)), Some((26, Some(9))));

    let openrouter = reply(stream!("compatible/openrouter_tool_call"));
    assert_eq!(openrouter.reasoning(), Some("Need the weather."));
    assert_eq!(openrouter.tool_calls(), [ToolCall::new("call_fx5", "get_weather", json!({"city": "Oslo"}))]);
    assert_eq!(openrouter.usage(), Some(&Usage::new(64, 18)));

    let mistral = reply(stream!("compatible/mistral"));
    assert_eq!((mistral.text(), mistral.reasoning()), ("One moment.", Some("Need the weather.")));
    let cities: Vec<_> = mistral.tool_calls().iter().map(|call| (&*call.id, &call.arguments["city"])).collect();
    assert_eq!(cities, [("a1B2c3D4e", &json!("Oslo")), ("f5G6h7I8j", &json!("Lima"))]);
    assert_eq!(mistral.usage().and_then(|usage| usage.cached_input), Some(8));

    let azure = read(stream!("azure/filtered")).reply().unwrap_err().0;
    assert_eq!(azure, AnswerFault::Filtered(vec!["violence".to_owned(), "jailbreak".to_owned()]));
}

#[test]
fn reasoning_outside_the_output_is_added_to_it() {
    let body = r#"data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":5}}}"#;
    let xai = || ChatStream { reasoning_outside_output: true, ..ChatStream::default() };
    let reply = Read::of(&Framing::Sse, body, xai).reply().unwrap();
    assert_eq!(reply.usage().map(|usage| usage.output), Some(14));
}

#[test]
fn only_the_first_choice_is_read() {
    let choice = |index: u32, words: &str| {
        format!("data: {{\"choices\":[{{\"index\":{index},\"delta\":{{\"content\":\"{words}\"}}}}]}}\n\n")
    };
    let ends = |index: u32| {
        format!("data: {{\"choices\":[{{\"index\":{index},\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n")
    };
    let body = [choice(1, "One"), choice(0, "no"), choice(1, " two"), choice(0, " no"), ends(0), ends(1)].concat();
    assert_eq!(reply(&body).text(), "One two");
    let only_others_end = [choice(1, "One"), ends(0)].concat();
    assert!(!read(&only_others_end).complete);
}

#[test]
fn a_whole_message_may_come_in_one_frame() {
    let body = r#"data: {"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Whole"},"finish_reason":"stop"}]}"#;
    assert_eq!(reply(body).text(), "Whole");
}

#[test]
fn a_call_that_the_token_limit_cut_before_its_arguments_is_malformed() {
    let call = r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"wipe","arguments":""}}]}}]}"#;
    for (finish, cut) in [("length", true), ("tool_calls", false)] {
        let body = format!(
            "{call}\n\ndata: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{finish}\"}}]}}\n\n"
        );
        let fault = read(&body).fault;
        assert_eq!(matches!(fault, Some(AnswerFault::ToolArguments(_))), cut, "{fault:?}");
    }
}

/// What comes of these frames when the usual one is read through a stencil, and when every one is parsed.
fn both_ways(frames: &[Vec<u8>]) -> [(Vec<Chunk>, Option<AnswerFault>); 2] {
    let parses = ChatStream { usual: Stencil::never(), ..ChatStream::default() };
    [ChatStream::default(), parses].map(|mut decoder| {
        let mut draft = Draft::new();
        let fault = frames.iter().find_map(|data| decoder.read(&Frame::new(data), &mut draft).err());
        (std::iter::from_fn(|| draft.next_chunk()).collect(), fault)
    })
}

/// A text, written as JSON with more escapes than it needs, or fewer.
fn written() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => any::<String>().prop_map(|words| json!(words).to_string()),
        1 => "[a-z ]{0,6}".prop_map(|words| words.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect::<Vec<_>>().concat()).prop_map(|words: String| format!("\"{words}\"")),
        1 => "[a-z\\\\\"\n]{0,6}".prop_map(|words| format!("\"{words}\"")),
        1 => Just("null".to_owned()),
    ]
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let field =
        prop::sample::select(vec!["content", "content", "content", "reasoning", "reasoning_content", "refusal"]);
    let number = prop::sample::select(vec!["1", "2", "1700000000", "01", "1.5", "-1"]);
    let finish = prop::sample::select(vec!["null", "null", "null", "\"\"", "\"stop\""]);
    let usage = prop::sample::select(vec!["", "", ",\"usage\":null", ",\"usage\":{\"prompt_tokens\":1}"]);
    let change = prop::option::weighted(0.2, (any::<prop::sample::Index>(), any::<u8>()));
    (field, written(), number, finish, usage, "[a-z\"\\\\]{0,3}", change).prop_map(|(field, words, created, finish, usage, padding, change)| {
        let mut frame = format!(
            r#"{{"created":{created},"choices":[{{"index":0,"delta":{{"{field}":{words}}},"finish_reason":{finish}}}]{usage},"obfuscation":"{padding}"}}"#
        ).into_bytes();
        if let Some((at, byte)) = change {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        frame
    })
}

proptest! {
    #[test]
    fn frames_say_the_same_whether_they_are_parsed_or_not(frames in prop::collection::vec(frame(), 1..6)) {
        let [through_stencil, parsed] = both_ways(&frames);
        prop_assert_eq!(through_stencil, parsed);
    }
}
