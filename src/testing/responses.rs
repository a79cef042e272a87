//! OpenAI's Responses API.

mod input;
mod items;

use super::answer::{Failure, Reply};
use super::delivery::Piece;
use super::http1::Request;
use super::openai::{EVENT_STREAM, OpenAi, Refusal, created, read, request_id, turns};
use super::protocol::{Asked, Body, Protocol, Rendered, count_tokens};
use serde_json::{Map, Value, json};

const PATH: &str = "/v1/responses";

#[derive(Debug)]
pub(super) struct Responses;

impl Protocol for Responses {
    fn base_path(&self) -> &'static str {
        "/v1"
    }

    fn read(&self, request: &Request, id: &str) -> Result<Asked, Rendered> {
        let body = read(request, PATH).map_err(|refusal| refusal.render(id))?;
        asked(&body).map_err(|refusal| refusal.render(id))
    }

    fn reply(&self, reply: &Reply, asked: &Asked, id: &str) -> Rendered {
        let rendered = if asked.stream {
            Rendered::stream(EVENT_STREAM, items::events(reply, asked, id))
        } else {
            Rendered::json(200, &items::complete(reply, asked, id))
        };
        rendered.header("x-request-id", request_id(id))
    }

    fn failure(&self, failure: &Failure, model: Option<&str>, id: &str) -> Rendered {
        let Failure::InSuccess { code, message } = failure else { return OpenAi.failure(failure, model, id) };
        let mut body = response(id, model.unwrap_or_default());
        body["status"] = "failed".into();
        body["error"] = json!({"code": code, "message": message});
        Rendered::json(200, &body).header("x-request-id", request_id(id))
    }

    /// An event with the fields of the error object beside its type, where chat completions nest them.
    fn failure_event(&self, failure: &Failure, id: &str) -> Piece {
        let Body::Whole(body) = OpenAi.failure(failure, None, id).body else { return Piece::bytes("") };
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let error = &body["error"];
        let fields = json!({"code": error["code"].as_str().or(error["type"].as_str()), "message": error["message"], "param": null});
        let fields = fields.to_string();
        format!("event: error\ndata: {{\"type\":\"error\",{}\n\n", &fields[1..]).into()
    }
}

fn asked(body: &Map<String, Value>) -> Result<Asked, Refusal> {
    let mut asked = if let Some(Value::String(prompt)) = body.get("input") {
        Asked::of(body, &[json!({"role": "user", "content": prompt})])
    } else {
        let items = turns(body, "input")?;
        input::check(body, items)?;
        Asked::of(body, items)
    };
    input::check_options(body)?;
    asked.input_tokens += body.get("instructions").and_then(Value::as_str).map_or(0, count_tokens);
    let included = body.get("include").and_then(Value::as_array);
    asked.encrypted_reasoning =
        included.is_some_and(|names| names.iter().any(|name| name == "reasoning.encrypted_content"));
    Ok(asked)
}

/// A response that completed with nothing in it.
fn response(id: &str, model: &str) -> Value {
    json!({
        "id": format!("resp_{id}"),
        "object": "response",
        "created_at": created(),
        "status": "completed",
        "error": null,
        "incomplete_details": null,
        "model": model,
        "output": [],
        "parallel_tool_calls": true,
        "tool_choice": "auto",
        "tools": [],
        "service_tier": "default",
        "usage": null,
        "metadata": Map::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderMap, Method};

    fn refusal(input: &str, rest: &str) -> Option<String> {
        let body = format!(r#"{{"model":"m","input":[{input}]{rest}}}"#);
        let request = Request {
            method: Method::POST,
            path: PATH.to_owned(),
            headers: HeaderMap::new(),
            body: Bytes::from(body),
            keep_alive: true,
        };
        let Body::Whole(body) = Responses.read(&request, "1").err()?.body else { return None };
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        Some(body["error"]["message"].as_str().unwrap_or_default().to_owned())
    }

    #[test]
    fn an_input_is_refused_as_the_provider_does() {
        const USER: &str = r#"{"role":"user","content":"Hi"}"#;
        const CALL: &str = r#"{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}"#;
        const OUTPUT: &str = r#"{"type":"function_call_output","call_id":"c1","output":"4"}"#;
        let reasoning = |sealed: &str| format!(r#"{{"type":"reasoning","id":"rs_1","summary":[]{sealed}}}"#);
        let sealed = |model: &str| format!(r#","encrypted_content":"{}""#, items::sealed(model, "rs_1"));
        let stateless = r#","store":false"#;
        let refused = |items: &[&str], rest: &str| refusal(&items.join(","), rest);
        assert_eq!(refused(&[USER, &reasoning(""), CALL, OUTPUT], ""), None);
        assert_eq!(refused(&[USER, &reasoning(&sealed("m")), CALL, OUTPUT], stateless), None);
        for (items, rest, why) in [
            (&[USER, OUTPUT][..], "", "No tool call found for function call output with call_id c1"),
            (&[USER, OUTPUT, CALL], "", "No tool call found"),
            (&[USER, CALL], "", "No tool output found for function call c1"),
            (&[USER, &reasoning("")], "", "without its required following item"),
            (&[&reasoning(""), USER], "", "without its required following item"),
            (&[USER, &reasoning(""), CALL, OUTPUT], stateless, "Items are not persisted"),
            (&[USER, &reasoning(&sealed("other")), CALL, OUTPUT], stateless, "could not be verified"),
            (&[r#"{"role":"tool","content":"Hi"}"#], "", "Invalid value: 'tool'"),
            (&[r#"{"role":"user","content":[{"type":"text","text":"Hi"}]}"#], "", "Invalid value: 'text'"),
            (
                &[r#"{"role":"assistant","content":[{"type":"input_text","text":"Hi"}]}"#],
                "",
                "Invalid value: 'input_text'",
            ),
            (&[USER], r#","text":{"format":{"type":"json_object"}}"#, "must contain the word 'json'"),
            (&[USER], r#","parallel_tool_calls":true"#, "only allowed when 'tools' are specified"),
        ] {
            let refused = refused(items, rest);
            assert!(refused.as_ref().is_some_and(|message| message.contains(why)), "{why}: {refused:?}");
        }
    }
}
