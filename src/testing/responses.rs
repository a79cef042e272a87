//! OpenAI's Responses API.

mod input;
mod items;

use super::answer::{Failure, Reply};
use super::http1::Request;
use super::openai::{EVENT_STREAM, OpenAi, Refusal, created, read, request_id, turns};
use super::protocol::{Asked, Protocol, Rendered, count_tokens};
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
