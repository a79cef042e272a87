//! OpenAI's chat completions.

mod completion;
mod conversation;

pub(super) use completion::{chunks, completion, fragments, spent};
pub(super) use conversation::{check_output, check_tools};

use super::answer::{Failure, Reply};
use super::http1::Request;
use super::protocol::{Asked, Protocol, Rendered, count_tokens, seconds, text_of};
use crate::resilience::clock::wall_now;
use http::Method;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::time::{Duration, SystemTime};

const PATH: &str = "/v1/chat/completions";
pub(super) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

#[derive(Debug)]
pub(super) struct OpenAi;

impl Protocol for OpenAi {
    fn base_path(&self) -> &'static str {
        "/v1"
    }

    fn read(&self, request: &Request, id: &str) -> Result<Asked, Rendered> {
        read(request, PATH).and_then(|body| asked(&body)).map_err(|refusal| refusal.render(id))
    }

    fn reply(&self, reply: &Reply, asked: &Asked, id: &str) -> Rendered {
        let rendered = if asked.stream {
            Rendered::stream(EVENT_STREAM, chunks(reply, asked, id, ""))
        } else {
            Rendered::json(200, &completion(reply, asked, id))
        };
        rendered.header("x-request-id", request_id(id))
    }

    fn failure(&self, failure: &Failure, model: Option<&str>, id: &str) -> Rendered {
        let model = model.unwrap_or("the model");
        let rendered = Refusal::of(failure, model).render(id);
        match failure {
            Failure::RateLimited(wait) => rendered
                .header("retry-after-ms", wait.as_millis().to_string())
                .header("retry-after", seconds(*wait))
                .header("x-ratelimit-limit-requests", "500")
                .header("x-ratelimit-remaining-requests", "0")
                .header("x-ratelimit-reset-requests", go_duration(*wait)),
            _ => rendered,
        }
    }
}

pub(super) fn request_id(id: &str) -> String {
    format!("req_{id}")
}

/// The seconds since 1970.
pub(super) fn created() -> u64 {
    wall_now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Checks what the provider checks first, in its order: where and how it was asked, and that there is a model.
pub(super) fn read(request: &Request, at: &str) -> Result<Map<String, Value>, Refusal> {
    let path = request.path.split('?').next().unwrap_or_default();
    if path != at {
        let message = format!("Invalid URL ({} {path})", request.method);
        return Err(Refusal::invalid(404, message));
    }
    if request.method != Method::POST {
        let hint = "(HINT: Perhaps you meant to use a different HTTP method?)";
        let message = format!("Not allowed to {} on {at}. {hint}", request.method);
        return Err(Refusal::invalid(405, message).code("method_not_supported"));
    }
    let Ok(Value::Object(body)) = serde_json::from_slice(&request.body) else {
        let message = "We could not parse the JSON body of your request. The API expects a JSON payload.";
        return Err(Refusal::invalid(400, message));
    };
    if body.get("model").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(Refusal::invalid(400, "you must provide a model parameter"));
    }
    Ok(body)
}

/// What a request for a chat completion asks.
pub(super) fn asked(body: &Map<String, Value>) -> Result<Asked, Refusal> {
    let messages = turns(body, "messages")?;
    conversation::check(messages)?;
    conversation::check_options(body)?;
    let usage = body.get("stream_options").and_then(|options| options.get("include_usage"));
    Ok(Asked { stream_usage: usage == Some(&Value::Bool(true)), ..Asked::of(body, messages) })
}

/// The turns of a request: a list that is not empty.
pub(super) fn turns<'a>(body: &'a Map<String, Value>, field: &'static str) -> Result<&'a [Value], Refusal> {
    let (code, message) = match body.get(field) {
        Some(Value::Array(turns)) if !turns.is_empty() => return Ok(turns),
        None => ("missing_required_parameter", format!("Missing required parameter: '{field}'.")),
        Some(Value::Array(_)) => {
            let message = format!("Invalid '{field}': empty array. Expected an array with minimum length 1.");
            ("empty_array", message)
        }
        Some(_) => ("invalid_type", format!("Invalid type for '{field}': expected an array of objects.")),
    };
    Err(Refusal::invalid(400, message).code(code).param(field))
}

impl Asked {
    /// What these turns ask. The last of the user is the prompt.
    pub(super) fn of(body: &Map<String, Value>, turns: &[Value]) -> Self {
        let text = |turn: &Value| turn.get("content").map(text_of).unwrap_or_default();
        let last = turns.iter().rev().find(|turn| turn.get("role").is_some_and(|role| role == "user"));
        Self {
            model: body.get("model").and_then(Value::as_str).unwrap_or_default().to_owned(),
            prompt: last.or(turns.last()).map(text).unwrap_or_default(),
            input_tokens: turns.iter().map(|turn| count_tokens(&text(turn)) + 3).sum(),
            stream: body.get("stream") == Some(&Value::Bool(true)),
            ..Self::default()
        }
    }
}

/// An error object and the status it comes with.
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) message: String,
    kind: &'static str,
    code: Option<String>,
    param: Option<Cow<'static, str>>,
}

impl Refusal {
    pub(super) fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), kind, code: None, param: None }
    }

    pub(super) fn invalid(status: u16, message: impl Into<String>) -> Self {
        Self::new(status, "invalid_request_error", message)
    }

    pub(super) fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    pub(super) fn param(self, param: &'static str) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    /// With the place in the body that it is about.
    pub(super) fn at(self, place: String) -> Self {
        Self { param: Some(place.into()), ..self }
    }

    pub(super) fn of(failure: &Failure, model: &str) -> Self {
        match failure {
            Failure::BadRequest(message) => Self::invalid(400, message),
            Failure::InSuccess { code, message } => Self::new(200, "server_error", message).code(code),
            Failure::Overloaded => {
                let message = "The server is currently overloaded with other requests. Sorry about that!";
                Self::new(503, "service_unavailable_error", message).code("server_is_overloaded")
            }
            Failure::QuotaExhausted => {
                let message = "You exceeded your current quota, please check your plan and billing details.";
                Self::new(429, "insufficient_quota", message).code("insufficient_quota")
            }
            Failure::RateLimited(wait) => {
                let limit = "requests per min (RPM): Limit 500, Used 500, Requested 1";
                let wait = go_duration(*wait);
                let message = format!("Rate limit reached for {model} on {limit}. Please try again in {wait}.");
                Self::new(429, "requests", message).code("rate_limit_exceeded")
            }
            Failure::Status(status) => Self::of_status(*status, model),
            Failure::Unauthorized => Self::of_status(401, model),
        }
    }

    fn of_status(status: u16, model: &str) -> Self {
        match status {
            401 => Self::invalid(401, "Incorrect API key provided.").code("invalid_api_key"),
            403 => {
                let message = "Country, region, or territory not supported";
                Self::new(403, "request_forbidden", message).code("unsupported_country_region_territory")
            }
            404 => {
                let message = format!("The model `{model}` does not exist or you do not have access to it.");
                Self::invalid(404, message).code("model_not_found")
            }
            408 => Self::new(408, "server_error", "The request timed out. Please try again."),
            409 => Self::invalid(409, "Another request for this resource is in progress."),
            413 => Self::invalid(413, "The request body is too large."),
            429 => {
                let message = format!("Rate limit reached for {model} on requests per min (RPM).");
                Self::new(429, "requests", message).code("rate_limit_exceeded")
            }
            500.. => Self::new(status, "server_error", "The server had an error while processing your request. Sorry!"),
            _ => Self::invalid(status, "Your request is invalid."),
        }
    }

    pub(super) fn render(self, id: &str) -> Rendered {
        let Self { status, message, kind, code, param } = self;
        let body = json!({"error": {"message": message, "type": kind, "param": param, "code": code}});
        Rendered::json(status, &body).header("x-request-id", request_id(id))
    }
}

/// `1m30s`, `50ms`: how the provider writes a time.
fn go_duration(duration: Duration) -> String {
    let (minutes, seconds, millis) = (duration.as_secs() / 60, duration.as_secs() % 60, duration.subsec_millis());
    match (minutes, seconds, millis) {
        (0, 0, millis) => format!("{millis}ms"),
        (0, seconds, 0) => format!("{seconds}s"),
        (0, seconds, millis) => format!("{seconds}.{millis:03}s"),
        (minutes, seconds, 0) => format!("{minutes}m{seconds}s"),
        (minutes, seconds, millis) => format!("{minutes}m{seconds}.{millis:03}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::protocol::Body;
    use bytes::Bytes;
    use http::HeaderMap;

    fn request(method: Method, path: &str, body: &str) -> Request {
        let body = Bytes::copy_from_slice(body.as_bytes());
        Request { method, path: path.to_owned(), headers: HeaderMap::new(), body, keep_alive: true }
    }

    fn body_of(rendered: &Rendered) -> Value {
        match &rendered.body {
            Body::Whole(bytes) => serde_json::from_slice(bytes).unwrap_or_default(),
            Body::Stream(_) | Body::Ended(..) => Value::Null,
        }
    }

    #[test]
    fn the_last_user_message_is_the_prompt() {
        let body = r#"{"model":"m","messages":[{"role":"system","content":"Be brief."},
            {"role":"user","content":[{"type":"text","text":"One "},
                {"type":"image_url","image_url":{"url":"https://host/a.png"}},{"type":"text","text":"two"}]},
            {"role":"assistant","content":""}]}"#;
        let asked = OpenAi.read(&request(Method::POST, "/v1/chat/completions?x=1", body), "1").ok();
        let expected =
            Asked { model: "m".to_owned(), prompt: "One two".to_owned(), input_tokens: 14, ..Asked::default() };
        assert_eq!(asked, Some(expected));
    }

    #[test]
    fn a_bad_request_is_refused_as_the_provider_does() {
        for (method, path, body, status, code) in [
            (Method::POST, "/chat/completions", "{}", 404, Value::Null),
            (Method::GET, PATH, "", 405, json!("method_not_supported")),
            (Method::POST, PATH, "{", 400, Value::Null),
            (Method::POST, PATH, "[]", 400, Value::Null),
            (Method::POST, PATH, r#"{"messages":[]}"#, 400, Value::Null),
            (Method::POST, PATH, r#"{"model":"m"}"#, 400, json!("missing_required_parameter")),
            (Method::POST, PATH, r#"{"model":"m","messages":[]}"#, 400, json!("empty_array")),
            (Method::POST, PATH, r#"{"model":"m","messages":"hi"}"#, 400, json!("invalid_type")),
            (Method::POST, PATH, r#"{"model":"m","messages":[{}]}"#, 400, json!("invalid_value")),
        ] {
            let refused = OpenAi.read(&request(method, path, body), "1").err();
            let error = refused.as_ref().map(|refused| body_of(refused)["error"].take()).unwrap_or_default();
            assert_eq!(refused.map(|refused| refused.status), Some(status), "{path} {body}");
            assert_eq!((&error["type"], &error["code"]), (&json!("invalid_request_error"), &code), "{path} {body}");
        }
    }

    /// The status and the message of the refusal of these messages, with these fields beside them.
    fn refusal(messages: &str, rest: &str) -> Option<(u16, String)> {
        let body = format!(r#"{{"model":"m","messages":[{messages}]{rest}}}"#);
        let refused = OpenAi.read(&request(Method::POST, PATH, &body), "1").err()?;
        Some((refused.status, body_of(&refused)["error"]["message"].as_str().unwrap_or_default().to_owned()))
    }

    #[test]
    fn a_conversation_is_refused_as_the_provider_does() {
        const USER: &str = r#"{"role":"user","content":"Hi"}"#;
        const CALLS: &str = r#"{"role":"assistant","content":null,"tool_calls":[
            {"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},
            {"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
        let result = |id: &str| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"4"}}"#);
        let said = |messages: &[&str]| refusal(&messages.join(","), "").map(|(_, message)| message);
        assert_eq!(said(&[USER, CALLS, &result("c2"), &result("c1"), USER]), None);
        for (messages, why) in [
            (&[USER, CALLS, &result("c1")][..], "did not have response messages: c2"),
            (&[USER, CALLS, USER], "did not have response messages: c1, c2"),
            (&[USER, CALLS, &result("c1"), USER, &result("c2")], "did not have response messages: c2"),
            (&[USER, &result("c1")], "must be a response to a preceding message"),
            (&[CALLS, &result("c1"), &result("c2"), &result("c3")], "'c3' not found in 'tool_calls'"),
            (&[r#"{"role":"assistant","content":null}"#], "expected a string, got null"),
            (&[r#"{"role":"model","content":"Hi"}"#], "Invalid value: 'model'"),
            (
                &[r#"{"role":"user","content":[{"type":"image_url","image_url":"https://h/a.png"}]}"#],
                "Invalid image data",
            ),
            (&[r#"{"role":"user","content":[{"type":"input_text","text":"Hi"}]}"#], "Invalid value: 'input_text'"),
            (
                &[
                    r#"{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{}}}]}"#,
                ],
                "arguments are a string",
            ),
        ] {
            assert!(said(messages).is_some_and(|message| message.contains(why)), "{why}: {:?}", said(messages));
        }
        let tool = |rest: &str| format!(r#","tools":[{{"type":"function","function":{{"name":"f",{rest}}}}}]"#);
        for (rest, why) in [
            (r#","tool_choice":"required""#.to_owned(), "only allowed when 'tools' are specified"),
            (r#","stream_options":{"include_usage":true}"#.to_owned(), "only allowed when 'stream' is enabled"),
            (r#","max_tokens":1,"max_completion_tokens":1"#.to_owned(), "at the same time"),
            (r#","response_format":{"type":"json_object"}"#.to_owned(), "must contain the word 'json'"),
            (
                tool(r#""parameters":{"type":"object","properties":{"a":{}}},"strict":true"#),
                "'additionalProperties' is required",
            ),
            (
                tool(
                    r#""parameters":{"type":"object","properties":{"a":{}},"additionalProperties":false},"strict":true"#,
                ),
                "Missing 'a'",
            ),
            (
                tool(r#""parameters":{}"#) + r#","tool_choice":{"type":"function","function":{"name":"g"}}"#,
                "no function named 'g'",
            ),
        ] {
            let refused = refusal(USER, &rest);
            assert!(refused.as_ref().is_some_and(|(_, message)| message.contains(why)), "{why}: {refused:?}");
        }
    }

    #[test]
    fn body_and_headers_of_a_rate_limit_say_the_same() {
        let limited = OpenAi.failure(&Failure::RateLimited(Duration::from_millis(1_050)), Some("m"), "1");
        let header = |name| limited.headers.iter().find(|(have, _)| *have == name).map(|(_, value)| value.as_str());
        assert_eq!(header("retry-after-ms"), Some("1050"));
        assert_eq!(header("retry-after"), Some("2"));
        assert_eq!(header("x-ratelimit-reset-requests"), Some("1.050s"));
        let message = body_of(&limited)["error"]["message"].to_string();
        assert!(message.contains("Please try again in 1.050s."), "{message}");
    }
}
