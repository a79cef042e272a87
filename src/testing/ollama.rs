//! Ollama's own chat protocol.

mod read;

use super::answer::{Called, Failure, Reply, words};
use super::delivery::Piece;
use super::http1::Request;
use super::protocol::{Asked, Body, Protocol, Rendered, seconds};
use crate::resilience::clock::wall_now;
use http::Method;
use serde_json::{Value, json};

const PATH: &str = "/api/chat";

#[derive(Debug)]
pub(super) struct Ollama;

impl Protocol for Ollama {
    fn base_path(&self) -> &'static str {
        ""
    }

    fn read(&self, request: &Request, _: &str) -> Result<Asked, Rendered> {
        let path = request.path.split('?').next().unwrap_or_default();
        if path != PATH {
            return Err(plain(404, "404 page not found"));
        }
        if request.method != Method::POST {
            return Err(plain(405, "405 method not allowed"));
        }
        read::read(&request.body).map_err(|message| error(400, &message))
    }

    fn reply(&self, reply: &Reply, asked: &Asked, id: &str) -> Rendered {
        if !asked.stream {
            let calls =
                reply.tool_calls.iter().enumerate().map(|(at, call)| tool_call(call, at, id)).collect::<Vec<_>>();
            let mut message = json!({"role": "assistant", "content": asked.text(reply)});
            if let Some(thinking) = &reply.reasoning {
                message["thinking"] = thinking.as_str().into();
            }
            if !calls.is_empty() {
                message["tool_calls"] = calls.into();
            }
            return Rendered::json(200, &last(reply, asked, message));
        }
        let line = |mut message: Value| {
            message["role"] = "assistant".into();
            json!({"model": asked.model(reply), "created_at": now(), "message": message, "done": false})
        };
        let thinking = words(reply.reasoning.as_deref().unwrap_or_default());
        let thinking = thinking.into_iter().map(|word| line(json!({"content": "", "thinking": word})));
        let text = reply.chunks(asked.text(reply)).into_iter().map(|chunk| line(json!({"content": chunk})));
        let calls = reply.tool_calls.iter().enumerate();
        let calls = calls.map(|(at, call)| line(json!({"content": "", "tool_calls": [tool_call(call, at, id)]})));
        let last = last(reply, asked, json!({"role": "assistant", "content": ""}));
        let lines = thinking.chain(text).chain(calls).chain([last]);
        Rendered::stream("application/x-ndjson", lines.map(|line| format!("{line}\n").into()).collect())
    }

    fn event(&self, data: &str) -> Piece {
        format!("{data}\n").into()
    }

    /// The server has none; a blank line says nothing either.
    fn ping(&self) -> Piece {
        "\n".into()
    }

    fn failure(&self, failure: &Failure, model: Option<&str>, _: &str) -> Rendered {
        let model = model.unwrap_or("the model");
        match failure {
            Failure::BadRequest(message) => error(400, message),
            Failure::InSuccess { code: _, message } => error(200, message),
            Failure::Overloaded => of_status(503, model),
            Failure::QuotaExhausted => error(429, "you have reached your weekly usage limit"),
            Failure::RateLimited(wait) => of_status(429, model).header("retry-after", seconds(*wait)),
            Failure::Status(status) => of_status(*status, model),
            Failure::Unauthorized => of_status(401, model),
        }
    }
}

/// The line that says why and with how much it ended: the whole answer, or the last of a stream.
#[allow(clippy::needless_pass_by_value)] // reads better with `json!` at the call site
fn last(reply: &Reply, asked: &Asked, message: Value) -> Value {
    let (input, output) = asked.usage(reply);
    let mut body = json!({
        "model": asked.model(reply),
        "created_at": now(),
        "message": message,
        "done": true,
        "done_reason": reply.finish_reason.as_deref().unwrap_or("stop"),
        "total_duration": 912_345_678,
        "load_duration": 12_345_678,
        "prompt_eval_duration": 100_000_000,
        "eval_duration": 500_000_000,
    });
    // Counts of zero are left out.
    for (name, count) in [("prompt_eval_count", input), ("eval_count", output)] {
        if count > 0 {
            body[name] = count.into();
        }
    }
    body
}

fn now() -> String {
    humantime::format_rfc3339_nanos(wall_now()).to_string()
}

/// A call, whole: the server sends it only when it has read it.
fn tool_call(called: &Called, at: usize, id: &str) -> Value {
    let Called { id: own, name, arguments } = called;
    // What is no JSON passes as a text: the server itself sends objects alone.
    let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.clone()));
    let id = own.clone().unwrap_or_else(|| format!("call_{id}{at}"));
    json!({"id": id, "function": {"index": at, "name": name, "arguments": arguments}})
}

fn of_status(status: u16, model: &str) -> Rendered {
    let message = match status {
        401 => {
            let body = json!({"error": "unauthorized", "signin_url": "https://ollama.example/connect?key=once"});
            return Rendered::json(401, &body);
        }
        403 => "cloud features are disabled on this server",
        404 => return error(404, &format!("model '{model}' not found")),
        429 => "too many requests",
        502 => "the cloud cannot be reached",
        503 => "server busy, please try again: the queue of requests is full",
        500.. => "the model runner has unexpectedly stopped",
        _ => "invalid request",
    };
    error(status, message)
}

/// An error is a text, not an object.
fn error(status: u16, message: &str) -> Rendered {
    Rendered::json(status, &json!({"error": message}))
}

/// What the router says before a handler is asked.
fn plain(status: u16, text: &'static str) -> Rendered {
    Rendered { status, headers: vec![("content-type", "text/plain".to_owned())], body: Body::Whole(text.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderMap;

    fn ask(method: Method, path: &str, body: &str) -> Result<Asked, (u16, String)> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let request = Request { method, path: path.to_owned(), headers: HeaderMap::new(), body, keep_alive: true };
        Ollama.read(&request, "1").map_err(|refused| match refused.body {
            Body::Whole(bytes) => (refused.status, String::from_utf8_lossy(&bytes).into_owned()),
            Body::Stream(_) | Body::Ended(..) => (refused.status, String::new()),
        })
    }

    #[test]
    fn the_last_message_of_the_user_is_the_prompt() {
        let body = r#"{"model":"m","stream":false,"unknown":1,"messages":[{"role":"system","content":"Be brief."},
            {"role":"user","content":"One two"},{"role":"user","content":"Three"},{"role":"assistant","content":null}],
            "options":{"temperature":0.5,"stop":["END"]}}"#;
        let expected =
            Asked { model: "m".to_owned(), prompt: "Three".to_owned(), input_tokens: 19, ..Asked::default() };
        assert_eq!(ask(Method::POST, PATH, body), Ok(expected));
    }

    #[test]
    fn a_bad_request_is_refused_as_the_server_does() {
        for (method, path, body, status, named) in [
            (Method::POST, "/chat", "{}", 404, "404 page not found"),
            (Method::GET, PATH, "", 405, "405 method not allowed"),
            (Method::POST, PATH, "", 400, "missing request body"),
            (Method::POST, PATH, "{", 400, "invalid character"),
            (Method::POST, PATH, "{}", 400, "model is required"),
            (Method::POST, PATH, r#"{"model":"m","messages":"Hi"}"#, 400, "messages"),
            (Method::POST, PATH, r#"{"model":"m","messages":[{"role":"developer","content":"x"}]}"#, 400, "role"),
            (Method::POST, PATH, r#"{"model":"m","messages":[{"role":"user","content":[]}]}"#, 400, "type string"),
            (Method::POST, PATH, r#"{"model":"m","options":{"temperature":"hot"}}"#, 400, "temperature"),
            (Method::POST, PATH, r#"{"model":"m","options":{"stop":"END"}}"#, 400, "stop"),
            (Method::POST, PATH, r#"{"model":"m","messages":[],"stream":"no"}"#, 400, "stream"),
            (Method::POST, PATH, r#"{"model":"m","think":"xhigh"}"#, 400, "think"),
            (Method::POST, PATH, r#"{"model":"m","format":"yaml"}"#, 400, "format"),
            (
                Method::POST,
                PATH,
                r#"{"model":"m","tools":[{"type":"function","function":{"name":"f"}}]}"#,
                400,
                "parameters",
            ),
            (
                Method::POST,
                PATH,
                r#"{"model":"m","messages":[{"role":"user","images":["data:image/png;base64,aGk="]}]}"#,
                400,
                "base64",
            ),
            (
                Method::POST,
                PATH,
                r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]}"#,
                400,
                "arguments",
            ),
        ] {
            let (got, said) = ask(method, path, body).unwrap_err();
            assert!(got == status && said.contains(named), "{body}: {got} {said}");
        }
    }
}
