//! What Google refuses of a conversation: who speaks after whom, what a part may hold, which results answer which calls, and
//! calls whose signature is missing or was changed.

use super::Refusal;
use super::signature::{self, STAND_IN};
use crate::testing::protocol::{Asked, count_tokens};
use serde_json::Value;

/// What a part holds; exactly one of them.
const DATA: [&str; 8] = [
    "codeExecutionResult",
    "executableCode",
    "fileData",
    "functionCall",
    "functionResponse",
    "inlineData",
    "text",
    "toolCall",
];
/// What may stand beside it.
const BESIDE: [&str; 5] = ["mediaResolution", "partMetadata", "thought", "thoughtSignature", "videoMetadata"];

fn invalid<T>(message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(400, message))
}

/// A turn, read.
struct Turn<'a> {
    is_user: bool,
    parts: Vec<Part<'a>>,
}

/// A part: the name of its data, the data, and the part itself.
struct Part<'a> {
    kind: &'static str,
    data: &'a Value,
    whole: &'a Value,
}

impl Turn<'_> {
    fn count(&self, kind: &str) -> usize {
        self.parts.iter().filter(|part| part.kind == kind).count()
    }

    fn text(&self) -> String {
        self.parts.iter().filter(|part| part.kind == "text").filter_map(|part| part.data.as_str()).collect()
    }

    /// Whether the user says something of their own: there a new turn of the conversation begins.
    fn is_new(&self) -> bool {
        self.is_user && self.count("functionResponse") == 0
    }
}

/// Reads the contents of a request.
pub(super) fn read(contents: Option<&Value>, model: &str) -> Result<Asked, Refusal> {
    let contents = match contents {
        Some(Value::Array(contents)) if !contents.is_empty() => contents,
        _ => return invalid("* GenerateContentRequest.contents: contents is not specified\n"),
    };
    let turns = contents.iter().enumerate().map(|(place, content)| turn(place, content));
    let turns = turns.collect::<Result<Vec<_>, _>>()?;
    check_order(&turns)?;
    check_signatures(&turns, model)?;
    let last = turns.iter().rev().find(|turn| turn.is_user);
    Ok(Asked {
        model: model.to_owned(),
        prompt: last.map(Turn::text).unwrap_or_default(),
        input_tokens: turns.iter().map(|turn| count_tokens(&turn.text()) + 1).sum(),
        ..Asked::default()
    })
}

/// Checks a system text.
pub(super) fn check_system(instruction: &Value) -> Result<(), Refusal> {
    let parts = parts(instruction, "system_instruction")?;
    match parts.iter().find(|part| part.kind != "text") {
        Some(part) => invalid(format!("* GenerateContentRequest.system_instruction: {} is not a text\n", part.kind)),
        None => Ok(()),
    }
}

fn turn(place: usize, content: &Value) -> Result<Turn<'_>, Refusal> {
    let is_user = match content.get("role") {
        None => true,
        Some(role) if role == "user" => true,
        Some(role) if role == "model" => false,
        Some(_) => return invalid("Please use a valid role: user, model."),
    };
    Ok(Turn { is_user, parts: parts(content, &format!("contents[{place}]"))? })
}

fn parts<'a>(content: &'a Value, at: &str) -> Result<Vec<Part<'a>>, Refusal> {
    let at = format!("* GenerateContentRequest.{at}.parts");
    let parts = content.get("parts").and_then(Value::as_array).filter(|parts| !parts.is_empty());
    let Some(parts) = parts else {
        return invalid(format!("{at}: contents.parts must not be empty.\n"));
    };
    parts.iter().enumerate().map(|(place, part)| read_part(part, &format!("{at}[{place}]"))).collect()
}

fn read_part<'a>(part: &'a Value, at: &str) -> Result<Part<'a>, Refusal> {
    let fields = part.as_object().into_iter().flatten();
    let mut data = None;
    for (name, value) in fields {
        let is = |known: &&&str| **known == name || super::read::snake(known) == *name;
        if let Some(kind) = DATA.iter().find(is) {
            if data.replace((*kind, value)).is_some() {
                return invalid(format!("{at}.data: oneof field 'data' is already set. Cannot set '{kind}'\n"));
            }
        } else if !BESIDE.iter().any(|known| is(&known)) {
            return invalid(format!(
                "Invalid JSON payload received. Unknown name \"{name}\" at '{at}': Cannot find field."
            ));
        }
    }
    let Some((kind, data)) = data else {
        return invalid(format!("{at}.data: required oneof field 'data' must have one initialized field\n"));
    };
    let wants = |field: &str| data.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let is_whole = match kind {
        "text" => data.is_string(),
        "inlineData" => wants("mimeType") && wants("data"),
        "fileData" => wants("fileUri"),
        "functionCall" => wants("name") && data.get("args").is_none_or(Value::is_object),
        "functionResponse" => wants("name") && data.get("response").is_some_and(Value::is_object),
        _ => data.is_object(),
    };
    if is_whole {
        Ok(Part { kind, data, whole: part })
    } else {
        invalid(format!("{at}.{kind}: a required field is not set\n"))
    }
}

/// Roles alternate, the user has the last word, and each turn of calls is answered by the next.
fn check_order(turns: &[Turn<'_>]) -> Result<(), Refusal> {
    if turns.windows(2).any(|pair| pair[0].is_user == pair[1].is_user) {
        return invalid("Please ensure that multiturn requests alternate between user and model.");
    }
    if turns.last().is_some_and(|last| !last.is_user) {
        return invalid("Please ensure that multiturn requests end with a user role or a function response.");
    }
    let mut calls: Vec<&Value> = Vec::new();
    for turn in turns {
        if (turn.is_user && turn.count("functionCall") > 0) || (!turn.is_user && turn.count("functionResponse") > 0) {
            return invalid("Please ensure that function calls are of the model, and function responses of the user.");
        }
        if turn.is_user {
            check_responses(turn, &calls)?;
        }
        calls = turn.parts.iter().filter(|part| part.kind == "functionCall").map(|part| part.data).collect();
    }
    Ok(())
}

fn check_responses(turn: &Turn<'_>, calls: &[&Value]) -> Result<(), Refusal> {
    let responses: Vec<_> =
        turn.parts.iter().filter(|part| part.kind == "functionResponse").map(|part| part.data).collect();
    if calls.is_empty() && !responses.is_empty() {
        return invalid("Please ensure that function response turn comes immediately after a function call turn.");
    }
    if calls.len() != responses.len() {
        return invalid(
            "Please ensure that the number of function response parts is equal to the number of function call parts of \
             the function call turn.",
        );
    }
    // By id where there is one, else by name and place.
    for (place, response) in responses.iter().enumerate() {
        let answers = |call: &Value| call["name"] == response["name"] && call.get("id") == response.get("id");
        let is_answer = match response.get("id") {
            Some(_) => calls.iter().any(|call| answers(call)),
            None => answers(calls[place]),
        };
        if !is_answer {
            let name = response["name"].as_str().unwrap_or_default();
            return invalid(format!("Function response `{name}` does not answer a function call of the turn before."));
        }
    }
    Ok(())
}

/// Every signature is one that this model gave; in the current turn the first call of each step has one.
fn check_signatures(turns: &[Turn<'_>], model: &str) -> Result<(), Refusal> {
    if !signature::is_signing(model) {
        return Ok(());
    }
    for part in turns.iter().flat_map(|turn| &turn.parts) {
        let Some(signature) = part.whole.get("thoughtSignature") else { continue };
        let is_stand_in = part.kind == "functionCall" && signature == STAND_IN;
        if !is_stand_in && signature.as_str() != Some(&*signature::sign(model, part.whole)) {
            return invalid("Corrupted thought signature.");
        }
    }
    let current = turns.iter().rposition(Turn::is_new).unwrap_or(0);
    for turn in &turns[current..] {
        let mut calls = turn.parts.iter().filter(|part| part.kind == "functionCall");
        if let Some(first) = calls.next()
            && first.whole.get("thoughtSignature").is_none()
        {
            let name = first.data["name"].as_str().unwrap_or_default();
            return invalid(format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work \
                 correctly. Additional data, function call `{name}`."
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(contents: &Value, model: &str) -> String {
        match read(Some(contents), model) {
            Ok(_) => String::new(),
            Err(refusal) => refusal.message,
        }
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "parts": [{"text": text}]})
    }

    fn call(name: &str, id: Option<&str>) -> Value {
        let mut call = json!({"name": name, "args": {}});
        if let Some(id) = id {
            call["id"] = id.into();
        }
        json!({"functionCall": call})
    }

    fn response(name: &str, id: Option<&str>) -> Value {
        let mut response = json!({"name": name, "response": {"output": "x"}});
        if let Some(id) = id {
            response["id"] = id.into();
        }
        json!({"functionResponse": response})
    }

    fn turn(role: &str, parts: &[Value]) -> Value {
        json!({"role": role, "parts": parts})
    }

    #[test]
    fn results_answer_the_calls_of_the_turn_before() {
        let ask = |calls: &[Value], responses: &[Value]| {
            refused(&json!([user("Hi"), turn("model", calls), turn("user", responses)]), "gemini-2.5-flash")
        };
        let (a, b) = (call("a", None), call("b", None));
        assert_eq!(ask(&[a.clone(), b.clone()], &[response("a", None), response("b", None)]), "");
        let by_id = [call("a", Some("1")), call("a", Some("2"))];
        assert_eq!(ask(&by_id, &[response("a", Some("2")), response("a", Some("1"))]), "");
        for (calls, responses, said) in [
            (vec![a.clone(), b.clone()], vec![response("b", None), response("a", None)], "does not answer"),
            (vec![a.clone(), b], vec![response("a", None)], "number of function response parts"),
            (vec![a.clone()], vec![json!({"text": "never mind"})], "number of function response parts"),
            (vec![json!({"text": "x"})], vec![response("a", None)], "immediately after a function call turn"),
            (vec![a.clone()], vec![response("b", None)], "does not answer"),
            (vec![a.clone()], vec![response("a", Some("made-up"))], "does not answer"),
            (vec![a.clone()], vec![json!({"functionResponse": {"name": "a", "response": "x"}})], "required field"),
            (vec![a], vec![call("a", None)], "function calls are of the model"),
        ] {
            let message = ask(&calls, &responses);
            assert!(message.contains(said), "{said}: {message}");
        }
    }

    #[test]
    fn roles_alternate_and_the_user_has_the_last_word() {
        let model = turn("model", &[json!({"text": "x"})]);
        assert!(refused(&json!([user("One"), user("Two")]), "m").contains("alternate"));
        assert!(refused(&json!([user("One"), model]), "m").contains("end with a user role"));
        assert_eq!(refused(&json!([model, user("Two")]), "m"), "");
    }

    #[test]
    fn a_part_holds_one_thing_that_is_whole() {
        for (part, said) in [
            (json!({"text": "x", "inlineData": {}}), "already set"),
            (json!({"text": 1}), "required field"),
            (json!({"inlineData": {"mimeType": "image/png"}}), "required field"),
            (json!({"fileData": {"mimeType": "image/png"}}), "required field"),
            (json!({"text": "x", "cache_control": {}}), "Unknown name"),
            (json!({"thought": true}), "required oneof"),
        ] {
            let message = refused(&json!([turn("user", std::slice::from_ref(&part))]), "m");
            assert!(message.contains(said), "{part}: {message}");
        }
        let fine = [
            json!({"inline_data": {"mimeType": "image/png", "data": "AAAA"}}),
            json!({"fileData": {"fileUri": "https://h/x"}, "videoMetadata": {"fps": 1}}),
        ];
        assert_eq!(refused(&json!([turn("user", &fine)]), "m"), "");
    }

    #[test]
    fn a_call_of_the_current_turn_has_the_signature_that_it_came_with() {
        let (model, other) = ("gemini-4-argon", "gemini-4-carbon");
        let signed = |signer: &str, args: Value| {
            let mut part = json!({"functionCall": {"name": "a", "args": {}}});
            part["thoughtSignature"] = signature::sign(signer, &part).into();
            part["functionCall"]["args"] = args;
            part
        };
        let ask = |call: Value, model: &str| {
            refused(&json!([user("Hi"), turn("model", &[call]), turn("user", &[response("a", None)])]), model)
        };
        assert_eq!(ask(signed(model, json!({})), model), "");
        assert!(ask(signed(model, json!({"x": 1})), model).contains("Corrupted"));
        assert!(ask(signed(other, json!({})), model).contains("Corrupted"));
        assert!(ask(call("a", None), model).contains("missing a thought_signature"));
        assert_eq!(ask(call("a", None), "gemini-2.5-flash"), "");
        let mut stand_in = call("a", None);
        stand_in["thoughtSignature"] = STAND_IN.into();
        assert_eq!(ask(stand_in, model), "");
        let earlier = json!([
            user("Hi"),
            turn("model", &[call("a", None)]),
            turn("user", &[response("a", None)]),
            turn("model", &[json!({"text": "x"})]),
            user("And?"),
        ]);
        assert_eq!(refused(&earlier, model), "", "only the current turn counts");
    }
}
