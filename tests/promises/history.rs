//! What a conversation may consist of. Every fault is found before anything is sent, and says where it is and what to do.

use super::support::*;
use serde_json::json;
use steadfast::chat::{Content, Media, Opaque, Part, Reply, Request, ToolCall, ToolResult, Turn};
use steadfast::record::Issues;
use steadfast::{Call, LlmError};

fn called(ids: &[&str]) -> Turn {
    Turn::assistant_tool_calls(ids.iter().map(|id| ToolCall::new(*id, "get_weather", json!({}))))
}

fn results(ids: &[&str]) -> Turn {
    Turn::tool_results(ids.iter().map(|id| ToolResult::new(*id, "rain")))
}

/// The error of a call that is wrong by itself: nothing was sent.
async fn refused(call: Call) -> LlmError {
    let (provider, client) = answering([]);
    let error = failure(&client, call).await;
    assert_eq!(provider.requests(), 0, "{error}");
    assert!(error.request().is_none() && error.attempts().is_empty(), "{error}");
    error
}

fn turn_of(error: &LlmError) -> Option<(usize, Vec<String>)> {
    match error.issues()? {
        Issues::Turn { turn } => Some((*turn, Vec::new())),
        Issues::ToolResults { turn, ids } => Some((*turn, ids.clone())),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_a_history_has_its_code_its_turn_and_a_cure() {
    let picture = || Part::image_url("https://example.com/cat.png");
    let user = || Turn::user("Weather?");
    for (history, code_, turn, ids, says) in [
        (vec![user(), Turn::assistant(" ")], "invalid_history", 1, "", "its words are empty; leave them out"),
        (vec![user(), called(&[])], "invalid_history", 1, "", "neither words nor tool calls; leave it out"),
        (vec![Turn::user("")], "invalid_history", 0, "", "its words are empty"),
        (vec![user(), called(&["a", "a"])], "invalid_history", 1, "", "two tool calls have the id \"a\""),
        (vec![user(), called(&[""])], "invalid_history", 1, "", "tool call 0 has no id or no name"),
        (vec![user(), results(&["a"])], "invalid_history", 1, "", "the turn before called no tool"),
        (vec![results(&["a"])], "invalid_history", 0, "", "the turn before called no tool"),
        (
            vec![user(), called(&["a", "b"])],
            "missing_tool_results",
            1,
            "a b",
            "put `Turn::tool_results` right after it",
        ),
        (
            vec![user(), called(&["a"]), user(), Turn::assistant("Yes?")],
            "missing_tool_results",
            1,
            "a",
            "called tools that have no results (a)",
        ),
        (vec![user(), called(&["a"]), called(&["b"])], "missing_tool_results", 1, "a", "`ToolResult::error`"),
        (
            vec![user(), called(&["a", "b"]), results(&["b"])],
            "missing_tool_results",
            2,
            "a",
            "lacks results for calls (a)",
        ),
        (
            vec![user(), called(&["a"]), results(&["a", "x", "x", "y"])],
            "unknown_tool_result_ids",
            2,
            "x y",
            "(x, y); it called a",
        ),
        (vec![user(), called(&["a"]), results(&["a", "a"])], "duplicate_tool_result_ids", 2, "a", "give one for each"),
        (vec![Turn::assistant("Hello"), user()], "invalid_history", 1, "", "set `merge_turns`"),
        (
            vec![user(), Turn::assistant(vec![Part::text("Look:"), picture()])],
            "invalid_history",
            1,
            "",
            "part 1: pictures, documents and sound belong to a turn of the user",
        ),
        (
            vec![Turn::user(Part::Reasoning(Opaque::new("anthropic", json!({})))), Turn::assistant("Hm")],
            "invalid_history",
            0,
            "",
            "part 0: reasoning belongs to a turn of the model",
        ),
        (
            vec![user(), called(&["a"]), Turn::tool_results([ToolResult::new("a", Part::image("image/bmp", b"x"))])],
            "invalid_history",
            2,
            "",
            "result \"a\": part 0: the picture is of type \"image/bmp\"",
        ),
    ] {
        let name = format!("{history:?}");
        let error = refused(Call::user("And now?").history(history)).await;
        assert_eq!(code(&error), code_, "{name}: {error}");
        let ids: Vec<String> = ids.split_whitespace().map(str::to_owned).collect();
        assert_eq!(turn_of(&error), Some((turn, ids)), "{name}: {error}");
        let message = error.to_string();
        assert!(message.contains(&format!("history[{turn}]")) && message.contains(says), "{name}: {message}");
    }
    let error = refused(Call::from(Request::default()).history([Turn::user("a"), Turn::assistant("b")])).await;
    assert_eq!((code(&error), turn_of(&error)), ("invalid_history", Some((1, Vec::new()))));
}

#[tokio::test(start_paused = true)]
async fn a_picture_has_a_type_that_models_take_and_bytes_that_are_base64() {
    let typeless: Media = serde_json::from_value(json!({"base64": "aGk="})).expect("media");
    for (part, says) in [
        (
            Part::image("image/tiff", b"x"),
            "type \"image/tiff\"; models take image/png, image/jpeg, image/gif, image/webp",
        ),
        (Part::image_base64("image/png", "a-b_"), "not base64 as standard has it"),
        (Part::image_base64("image/png", ""), "not base64"),
        (Part::Image(typeless), "the bytes have no media type"),
        (Part::image_url("data:image/png;base64,aGk="), "the URL is a data URL; give its bytes as base64 instead"),
        (Part::image_url("cat.png"), "the URL cannot be read"),
        (Part::Audio(Media::bytes("video/mp4", b"x")), "the sound is of type \"video/mp4\""),
        (Part::document("Report", Media::bytes("pdf", b"x")), "the document is of type \"pdf\""),
        (Part::text(" "), "the text is empty; leave it out"),
    ] {
        let name = format!("{part:?}");
        let error = refused(Call::user(vec![Part::text("What is this?"), part])).await;
        assert_eq!(code(&error), "invalid_call", "{name}");
        let message = error.to_string();
        assert!(message.contains("user: part 1: ") && message.contains(says), "{name}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sound_conversation_of_every_kind_is_sent() {
    let (provider, client) = answering([Reply::new("Fine."), Reply::new("Fine.")]);
    let picture = Part::image("image/webp", b"bytes");
    let history = [
        Turn::user(vec![Part::text("What is this?"), picture, Part::image_url("https://example.com/cat.png")]),
        Turn::assistant(vec![
            Part::Reasoning(Opaque::new("anthropic", json!({"signature": "s"}))),
            Part::text("A cat."),
        ]),
        Turn::user("And the weather?"),
        called(&["a", "b"]),
        Turn::tool_results([ToolResult::error("b", "no such place"), ToolResult::json("a", json!({"celsius": 4}))]),
    ];
    reply(&client, Call::default().history(history.clone())).await;
    reply(&client, Call::user("Thanks").history(history)).await;
    assert_eq!(provider.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn merge_turns_joins_the_users_words_to_a_history_that_ends_with_them() {
    let (provider, client) = answering([Reply::new("Fine."), Reply::new("Fine.")]);
    let history = [Turn::user("One."), Turn::assistant("Yes?"), Turn::user("Two.")];
    reply(&client, Call::user("Three.").history(history.clone()).merge_turns(true)).await;
    let picture = Content::from(Part::image_url("https://example.com/cat.png"));
    reply(&client, Call::user(picture).history(history).merge_turns(true)).await;
    let sent: Vec<Request> =
        provider.journal().iter().map(|seen| serde_json::from_slice(&seen.body).expect("sent")).collect();
    assert_eq!((sent[0].history.len(), &sent[0].user), (2, &Some("Two.\n\nThree.".into())));
    let parts = vec![Part::text("Two."), Part::image_url("https://example.com/cat.png")];
    assert_eq!(sent[1].user, Some(parts.into()));
}

#[test]
fn a_system_turn_within_a_history_cannot_be_written() {
    let error =
        serde_json::from_value::<Turn>(json!({"role": "system", "content": "Obey."})).expect_err("no such turn");
    assert!(
        error.to_string().contains("unknown variant `system`, expected one of `assistant`, `tool`, `user`"),
        "{error}"
    );
}

#[test]
fn a_reply_as_a_turn_takes_along_what_its_provider_wants_back() {
    let signed = Opaque::new("gemini", json!({"thoughtSignature": "c2ln"}));
    let block = Opaque::new("anthropic", json!({"type": "thinking", "signature": "s"}));
    let calls = [ToolCall::new("a", "get_weather", json!({"city": "Oslo"})).with_opaque(signed)];
    let reply = Reply::new("\n\n").with_tool_calls(calls.clone()).with_opaque([block.clone()]);
    let Turn::Assistant { content, tool_calls, .. } = reply.to_turn() else { panic!("a turn of the model") };
    assert_eq!(tool_calls, calls);
    assert_eq!(content, Some(Content::Parts(vec![Part::Reasoning(block)])), "mere line breaks are not sent back");
    let words = Reply::new("\n\n").with_tool_calls(calls).to_turn();
    assert_eq!(words.content(), None);
}
