//! OpenAI's Responses API.

use super::answer::{Failure, Reply};
use super::http1::Request;
use super::openai::{OpenAi, created, read, request_id, turns};
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
        let mut asked = match body.get("input") {
            Some(Value::String(prompt)) => Asked::of(&body, &[json!({"role": "user", "content": prompt})]),
            _ => Asked::of(&body, turns(&body, "input").map_err(|refusal| refusal.render(id))?),
        };
        asked.input_tokens += body.get("instructions").and_then(Value::as_str).map_or(0, count_tokens);
        Ok(asked)
    }

    fn reply(&self, reply: &Reply, asked: &Asked, id: &str) -> Rendered {
        let (input, output) = asked.usage(reply);
        let message = json!({
            "id": format!("msg_{id}"),
            "type": "message",
            "status": if reply.finish_reason.is_some() { "incomplete" } else { "completed" },
            "role": "assistant",
            "content": [{"type": "output_text", "text": asked.text(reply), "annotations": [], "logprobs": []}],
        });
        let mut body = response(id, asked.model(reply));
        body["output"] = json!([message]);
        body["usage"] = json!({
            "input_tokens": input,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input.saturating_add(output),
        });
        if let Some(reason) = &reply.finish_reason {
            body["status"] = "incomplete".into();
            body["incomplete_details"] = json!({"reason": reason});
        }
        Rendered::json(200, &body).header("x-request-id", request_id(id))
    }

    fn failure(&self, failure: &Failure, model: Option<&str>, id: &str) -> Rendered {
        let Failure::InSuccess { code, message } = failure else { return OpenAi.failure(failure, model, id) };
        let mut body = response(id, model.unwrap_or_default());
        body["status"] = "failed".into();
        body["error"] = json!({"code": code, "message": message});
        Rendered::json(200, &body).header("x-request-id", request_id(id))
    }
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
