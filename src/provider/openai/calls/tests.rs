//! Fragments in every order and shape in which servers have sent them.

use super::*;
use crate::chat::{Chunk, FinishReason};

/// The calls that these lists of fragments come to: ids, names, arguments. An id that was made up is a star.
fn assembled(lists: &[&str]) -> Vec<(String, String, Value)> {
    let (mut calls, mut draft) = (Calls::default(), Draft::new());
    for list in lists {
        calls.add(&serde_json::from_str(list).unwrap(), "p", &mut draft);
    }
    calls.complete(&mut draft);
    draft.finish(FinishReason::ToolCalls);
    let reply = draft.finished().unwrap_or_else(|(fault, _)| panic!("{fault:?}"));
    let star = |id: &str| if id.starts_with("call_") && id.len() == 21 { "*".to_owned() } else { id.to_owned() };
    reply.tool_calls().iter().map(|call| (star(&call.id), call.name.clone(), call.arguments.clone())).collect()
}

fn call(id: &str, name: &str, arguments: Value) -> (String, String, Value) {
    (id.to_owned(), name.to_owned(), arguments)
}

#[test]
fn fragments_find_their_call() {
    let two = vec![call("a", "get", json!({"n": 1})), call("b", "get", json!({"n": 2}))];
    for (lists, why) in [
        (
            &[
                r#"[{"index":0,"id":"a","function":{"name":"get","arguments":""}}]"#,
                r#"[{"index":1,"id":"b","function":{"name":"get","arguments":""}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"n\""}},{"index":1,"function":{"arguments":"{\"n\":2"}}]"#,
                r#"[{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":":1}"}}]"#,
            ][..],
            "by their number, interleaved",
        ),
        (
            &[
                r#"[{"index":1,"id":"a","function":{"name":"get","arguments":"{\"n\":1}"}}]"#,
                r#"[{"index":2,"id":"b","function":{"name":"get","arguments":"{\"n\":2}"}}]"#,
            ],
            "by numbers that begin at 1",
        ),
        (
            &[
                r#"[{"index":0,"id":"a","function":{"name":"get","arguments":"{\"n\""}}]"#,
                r#"[{"index":0,"id":"b","function":{"name":"get","arguments":"{\"n\""}}]"#,
                r#"[{"index":0,"id":"a","function":{"name":"get","arguments":":1}"}}]"#,
                r#"[{"index":0,"id":"b","function":{"name":"get","arguments":":2}"}}]"#,
            ],
            "by their id, all of one number",
        ),
        (
            &[
                r#"[{"id":"a","function":{"name":"get","arguments":"{\"n\""}}]"#,
                r#"[{"function":{"arguments":":1}"}}]"#,
                r#"[{"id":"b","function":{"name":"get","arguments":"{\"n\""}}]"#,
                r#"[{"function":{"arguments":":2}"}}]"#,
            ],
            "the last one, without a number",
        ),
        (
            &[
                r#"[{"id":"a","function":{"name":"get"}},{"id":"b","function":{"name":"get"}}]"#,
                r#"[{"function":{"arguments":"{\"n\":1}"}},{"function":{"arguments":"{\"n\":2}"}}]"#,
            ],
            "by their place in the list, without a number",
        ),
    ] {
        assert_eq!(assembled(lists), two, "{why}");
    }
}

#[test]
fn calls_without_ids_are_told_apart_by_names_and_complete_arguments() {
    let named = |name: &str, arguments: &str| {
        json!([{"index": 0, "id": "", "function": {"name": name, "arguments": arguments}}]).to_string()
    };
    let read = |lists: &[String]| assembled(&lists.iter().map(String::as_str).collect::<Vec<_>>());
    // Other arguments: another call. The same: an echo.
    let lists = [named("get", r#"{"n":1}"#), named("get", r#"{"n":1}"#), named("get", r#"{"n":2}"#), named("now", "")];
    let calls = vec![call("*", "get", json!({"n": 1})), call("*", "get", json!({"n": 2})), call("*", "now", json!({}))];
    assert_eq!(read(&lists), calls);
    // A name that comes with every fragment.
    let lists = [named("get", r#"{"n""#), named("get", ":"), named("get", "1}")];
    assert_eq!(read(&lists), [call("*", "get", json!({"n": 1}))]);
}

#[test]
fn a_call_that_comes_a_second_time_as_a_whole_is_no_news() {
    for echo in [r#""{\"n\": 1}""#, r#"{"n":1}"#, r#""""#, "null"] {
        let echo = format!(r#"[{{"index":0,"id":"a","function":{{"name":"get","arguments":{echo}}}}}]"#);
        let first = r#"[{"index":0,"id":"a","function":{"name":"get","arguments":"{\"n\":1}"}}]"#;
        assert_eq!(assembled(&[first, &echo]), [call("a", "get", json!({"n": 1}))], "{echo}");
    }
}

#[test]
fn what_is_no_list_of_calls_is_none() {
    for list in ["null", "[]", "{}", "\"\"", "[null]", "[7]"] {
        let read = assembled_or_empty(list);
        assert!(read <= 1, "{list}");
    }
}

/// How many calls come of this, whatever they are.
fn assembled_or_empty(list: &str) -> usize {
    let (mut calls, mut draft) = (Calls::default(), Draft::new());
    calls.add(&serde_json::from_str(list).unwrap(), "p", &mut draft);
    calls.complete(&mut draft);
    draft.tool_calls()
}

#[test]
fn an_id_is_told_once_with_the_first_part_that_knows_it() {
    let (mut calls, mut draft) = (Calls::default(), Draft::new());
    for list in [
        r#"[{"index":0,"id":"a","function":{"name":"get","arguments":""}}]"#,
        r#"[{"index":0,"id":"a","function":{"name":"get","arguments":"{}"}}]"#,
        r#"[{"index":1,"function":{"name":"now","arguments":"{}"}}]"#,
    ] {
        calls.add(&serde_json::from_str(list).unwrap(), "p", &mut draft);
    }
    calls.complete(&mut draft);
    let parts: Vec<_> = std::iter::from_fn(|| draft.next_chunk())
        .filter_map(|chunk| if let Chunk::ToolCall(part) = chunk { Some(part) } else { None })
        .map(|part| (part.index, part.id.is_some(), part.name.is_some(), part.arguments, part.complete))
        .collect();
    let part = |index, id, name, arguments: &str, complete| (index, id, name, arguments.to_owned(), complete);
    assert_eq!(
        parts,
        [
            part(0, true, true, "", false),
            part(0, false, false, "{}", false),
            part(1, false, true, "{}", false),
            part(0, false, false, "", true),
            part(1, true, false, "", true),
        ]
    );
}
