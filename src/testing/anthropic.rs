//! Anthropic's messages.

mod conversation;
mod message;
mod settings;

use super::answer::{Failure, Reply};
use super::delivery::Piece;
use super::http1::Request;
use super::protocol::{Asked, Protocol, Rendered, count_tokens, seconds, text_of};
use crate::resilience::clock::wall_now;
use conversation::{Asking, has_words};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;

const PATH: &str = "/v1/messages";
/// The versions of the protocol that there are.
const VERSIONS: [&str; 2] = ["2023-06-01", "2026-10-21"];
/// The version that takes no sampling settings.
const UNSAMPLED: &str = "2026-10-21";

/// Every field of a request; another one is refused.
const FIELDS: &[&str] = &[
    "cache_control",
    "container",
    "context_management",
    "diagnostics",
    "fallbacks",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "thread",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

#[derive(Debug)]
pub(super) struct Anthropic;

impl Protocol for Anthropic {
    fn base_path(&self) -> &'static str {
        ""
    }

    fn read(&self, request: &Request, id: &str) -> Result<Asked, Rendered> {
        read(request).map_err(|refusal| refusal.render(id))
    }

    fn reply(&self, reply: &Reply, asked: &Asked, id: &str) -> Rendered {
        identified(message::render(reply, asked, id), id)
    }

    fn failure(&self, failure: &Failure, model: Option<&str>, id: &str) -> Rendered {
        let rendered = Refusal::of(failure, model.unwrap_or("the model")).render(id);
        match failure {
            Failure::RateLimited(wait) => rendered
                .header("retry-after", seconds(*wait))
                .header("anthropic-ratelimit-requests-limit", "50")
                .header("anthropic-ratelimit-requests-remaining", "0")
                .header("anthropic-ratelimit-requests-reset", moment(*wait))
                .header("anthropic-ratelimit-input-tokens-limit", "30000")
                .header("anthropic-ratelimit-input-tokens-remaining", "12000")
                .header("anthropic-ratelimit-input-tokens-reset", moment(*wait)),
            _ => rendered,
        }
    }

    fn event(&self, data: &str) -> Piece {
        let kind = serde_json::from_str::<Value>(data).map(|data| data["type"].as_str().unwrap_or_default().to_owned());
        format!("event: {}\ndata: {data}\n\n", kind.unwrap_or_default()).into()
    }

    fn ping(&self) -> Piece {
        self.event(r#"{"type":"ping"}"#)
    }
}

fn request_id(id: &str) -> String {
    format!("req_{id}")
}

/// The headers of every answer.
fn identified(rendered: Rendered, id: &str) -> Rendered {
    rendered
        .header("request-id", request_id(id))
        .header("anthropic-organization-id", "00000000-0000-4000-8000-000000000000")
}

/// The end of a wait, in whole seconds: never before it. Years of four digits are all that RFC 3339 has.
fn moment(wait: Duration) -> String {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    humantime::format_rfc3339_seconds(wall_now() + wait.min(YEAR) + Duration::from_millis(999)).to_string()
}

/// Checks what the provider checks first, in its order.
fn read(request: &Request) -> Result<Asked, Refusal> {
    let path = request.path.split('?').next().unwrap_or_default();
    if path != PATH {
        return Err(Refusal::new(404, "not_found_error", "Not found"));
    }
    if request.method != Method::POST {
        return Err(Refusal::invalid(405, "Method Not Allowed"));
    }
    let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
    if header("x-api-key").is_none() && header("authorization").is_none() {
        return Err(Refusal::new(401, "authentication_error", "x-api-key header is required"));
    }
    let version = header("anthropic-version").ok_or("anthropic-version: header is required")?;
    if !VERSIONS.contains(&version) {
        return Err(format!("anthropic-version: \"{version}\" is not a valid version").into());
    }
    let Ok(Value::Object(body)) = serde_json::from_slice(&request.body) else {
        return Err("The request body is not valid JSON".into());
    };
    let model = body.get("model").ok_or("model: Field required")?;
    let model = model.as_str().filter(|model| !model.is_empty()).ok_or("model: Input should be a valid string")?;
    let limit = body.get("max_tokens").ok_or("max_tokens: Field required")?;
    limit.as_u64().ok_or("max_tokens: Input should be a valid integer greater than or equal to 0")?;
    if let Some(field) = body.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(format!("{field}: Extra inputs are not permitted").into());
    }
    let thinks = settings::check(&body, model, version)?;
    if body.get("system").is_some_and(|system| !has_words(system)) {
        return Err("system: text content blocks must contain non-whitespace text".into());
    }
    let messages = body.get("messages").ok_or("messages: Field required")?;
    let messages = messages.as_array().ok_or("messages: Input should be a valid list")?;
    conversation::check(messages, Asking { model, budgeted: thinks.with_budget, thinks: thinks.at_all })?;
    let stream = body.get("stream").unwrap_or(&Value::Bool(false));
    let stream = stream.as_bool().ok_or("stream: Input should be a valid boolean")?;
    let text = |message: &Value| text_of(&message["content"]);
    // Results of tools are no words of the user.
    let is_said = |message: &&Value| message["role"] == "user" && !text(message).is_empty();
    let last = messages.iter().rev().find(is_said);
    let system = body.get("system").map_or(0, |system| count_tokens(&text_of(system)));
    Ok(Asked {
        model: model.to_owned(),
        prompt: last.map(text).unwrap_or_default(),
        input_tokens: messages.iter().map(|message| count_tokens(&text(message)) + 3).sum::<u64>() + system,
        stream,
        forced: settings::forced(&body),
        ..Asked::default()
    })
}

/// An error object and the status it comes with.
struct Refusal {
    status: u16,
    kind: String,
    message: String,
    /// `error.details.error_code`.
    code: Option<&'static str>,
}

impl Refusal {
    fn new(status: u16, kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status, kind: kind.into(), message: message.into(), code: None }
    }

    fn invalid(status: u16, message: impl Into<String>) -> Self {
        Self::new(status, "invalid_request_error", message)
    }

    fn of(failure: &Failure, model: &str) -> Self {
        match failure {
            Failure::BadRequest(message) => Self::invalid(400, message),
            Failure::InSuccess { code, message } => Self::new(200, code, message),
            Failure::Overloaded => Self::of_status(529, model),
            Failure::QuotaExhausted => {
                let refusal = Self::new(429, "rate_limit_error", "Your organization has reached its spend limit.");
                Self { code: Some("enforced_spend_limit_reached"), ..refusal }
            }
            Failure::RateLimited(_) => Self::of_status(429, model),
            Failure::Status(status) => Self::of_status(*status, model),
            Failure::Unauthorized => Self::of_status(401, model),
        }
    }

    fn of_status(status: u16, model: &str) -> Self {
        let (kind, message) = match status {
            401 => ("authentication_error", "invalid x-api-key"),
            402 => ("billing_error", "There is an issue with your billing or payment information."),
            403 => ("permission_error", "Your API key does not have permission to use this resource."),
            404 => return Self::new(404, "not_found_error", format!("model: {model}")),
            409 => ("conflict_error", "The resource is being changed by another request."),
            413 => ("request_too_large", "Request exceeds the maximum allowed number of bytes."),
            429 => ("rate_limit_error", "This request would exceed your organization's rate limit of 50 requests."),
            504 => ("timeout_error", "The request timed out; consider streaming."),
            529 => ("overloaded_error", "Overloaded"),
            500.. => ("api_error", "Internal server error"),
            _ => ("invalid_request_error", "The request is invalid."),
        };
        Self::new(status, kind, message)
    }

    fn render(self, id: &str) -> Rendered {
        let Self { status, kind, message, code } = self;
        let mut error = json!({"type": kind, "message": message});
        if let Some(code) = code {
            error["details"] = json!({"error_code": code});
        }
        identified(Rendered::json(status, &json!({"type": "error", "error": error, "request_id": request_id(id)})), id)
    }
}

/// What is wrong with a request that can be read.
impl From<&str> for Refusal {
    fn from(message: &str) -> Self {
        Self::invalid(400, message)
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self::invalid(400, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::protocol::Body;
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue};

    fn request(body: &str) -> Request {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", HeaderValue::from_static("k"));
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        let body = Bytes::copy_from_slice(body.as_bytes());
        Request { method: Method::POST, path: PATH.to_owned(), headers, body, keep_alive: true }
    }

    fn refused(request: &Request) -> (u16, Value) {
        let refused = Anthropic.read(request, "1").err();
        let body = match refused.as_ref().map(|refused| &refused.body) {
            Some(Body::Whole(bytes)) => serde_json::from_slice(bytes).unwrap_or_default(),
            _ => Value::Null,
        };
        (refused.map_or(0, |refused| refused.status), body)
    }

    /// A request with these fields beside a good model, limit and message.
    fn with(fields: &str) -> Request {
        let mut body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]});
        let fields: Value = serde_json::from_str(&format!("{{{fields}}}")).unwrap();
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        request(&body.to_string())
    }

    #[test]
    fn the_last_message_of_the_user_is_the_prompt() {
        let asked = Anthropic.read(
            &with(
                r#""system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":[{"type":"text","text":"One "},
                {"type":"image","source":{"type":"url","url":"https://x.example/a.png"}},{"type":"text","text":"two"}]},{"role":"assistant","content":"Three"}]"#,
            ),
            "1",
        );
        let expected =
            Asked { model: "m".to_owned(), prompt: "One two".to_owned(), input_tokens: 13, ..Asked::default() };
        assert_eq!(asked.ok(), Some(expected));
    }

    #[test]
    fn a_bad_request_is_refused_as_the_provider_does() {
        for (fields, named) in [
            (r#""model":"""#, "model"),
            (r#""max_tokens":null"#, "max_tokens"),
            (r#""seed":7"#, "seed: Extra inputs are not permitted"),
            (r#""temperature":1.5"#, "temperature"),
            (r#""stop_sequences":["\n"]"#, "stop_sequences"),
            (r#""system":" ""#, "system"),
            (r#""messages":"Hi""#, "messages"),
            (r#""messages":[]"#, "at least one"),
            (r#""messages":[{"role":"system","content":"x"}]"#, "system"),
            (r#""messages":[{"role":"tool","content":"x"}]"#, "messages.0.role"),
            (r#""messages":[{"role":"user","content":""}]"#, "non-empty"),
            (r#""messages":[{"role":"user","content":[]}]"#, "non-empty"),
            (r#""messages":[{"role":"user","content":[{"type":"text","text":" "}]}]"#, "non-empty"),
            (r#""messages":[{"role":"user","content":[{"text":"x"}]}]"#, "non-empty"),
            (r#""messages":[{"role":"assistant","content":"x"}]"#, "first message"),
            (r#""messages":[{"role":"user","content":"x"},{"role":"user","content":"y"}]"#, "alternate"),
            (r#""stream":"yes""#, "stream"),
        ] {
            let (status, body) = refused(&with(fields));
            assert_eq!((status, &body["type"], &body["request_id"]), (400, &json!("error"), &json!("req_1")));
            assert_eq!(body["error"]["type"], "invalid_request_error");
            assert!(body["error"]["message"].as_str().is_some_and(|message| message.contains(named)), "{body}");
        }
        for (body, named) in [
            ("{", "JSON"),
            (r#"{"model":"m","messages":[]}"#, "max_tokens: Field required"),
            (r#"{"max_tokens":1}"#, "model: Field required"),
            (r#"{"model":"m","max_tokens":1}"#, "messages: Field required"),
        ] {
            let (status, body) = refused(&request(body));
            assert!(status == 400 && body["error"]["message"].to_string().contains(named), "{body}");
        }
    }

    /// A conversation in which a tool was called, with these blocks of the model and of the user.
    fn called(assistant: &str, user: &str) -> String {
        format!(
            r#""messages":[{{"role":"user","content":"Hi"}},{{"role":"assistant","content":[{assistant}]}},{{"role":"user","content":[{user}]}}]"#
        )
    }

    #[test]
    fn calls_and_results_that_do_not_match_are_refused() {
        const USE: &str = r#"{"type":"tool_use","id":"a","name":"f","input":{}}"#;
        const RESULT: &str = r#"{"type":"tool_result","tool_use_id":"a","content":"1"}"#;
        const TEXT: &str = r#"{"type":"text","text":"Hi"}"#;
        assert!(Anthropic.read(&with(&called(USE, &format!("{RESULT},{TEXT}"))), "1").is_ok());
        for (assistant, user, named) in [
            (USE, TEXT, "without `tool_result` blocks immediately after: a"),
            (TEXT, RESULT, "unexpected `tool_use_id`"),
            (USE, &format!("{RESULT},{RESULT}"), "single result"),
            (USE, &format!("{TEXT},{RESULT}"), "come first"),
            (&format!("{USE},{USE}"), RESULT, "unique"),
            (r#"{"type":"tool_use","id":"a.b","name":"f","input":{}}"#, RESULT, "tool_use.id"),
            (r#"{"type":"tool_use","id":"a","name":"f","input":"{}"}"#, RESULT, "valid dictionary"),
            (USE, r#"{"type":"tool_result","tool_use_id":"a","is_error":true}"#, "is_error"),
            (USE, r#"{"type":"tool_result","tool_use_id":"a","content":""}"#, "non-empty"),
            (r#"{"type":"image","source":{}}"#, TEXT, "'image'"),
            (TEXT, r#"{"type":"thinking","thinking":"Hm","signature":"s"}"#, "'thinking'"),
            (
                TEXT,
                r#"{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"aGk="}}"#,
                "media_type",
            ),
            (TEXT, r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"a"}}"#, "base64"),
            (TEXT, r#"{"type":"image","source":{"type":"url","url":"data:image/png;base64,aGk="}}"#, "HTTP"),
            (
                TEXT,
                r#"{"type":"document","source":{"type":"base64","media_type":"text/csv","data":"aGk="}}"#,
                "media_type",
            ),
        ] {
            let (status, body) = refused(&with(&called(assistant, user)));
            let said = body["error"]["message"].as_str().unwrap_or_default();
            assert!(status == 400 && said.contains(named), "{assistant} {user}: {said}");
        }
    }

    #[test]
    fn thoughts_have_to_come_back_as_they_were_given() {
        let given = |model: &str| {
            let reply = Reply { reasoning: Some("Hm".into()), text: Some("Hi".into()), ..Reply::default() };
            let asked = Asked { model: model.to_owned(), ..Asked::default() };
            match Anthropic.reply(&reply, &asked, "1").body {
                Body::Whole(bytes) => serde_json::from_slice::<Value>(&bytes).unwrap()["content"][0].take(),
                _ => Value::Null,
            }
        };
        let back = |model: &str, block: &Value| {
            let messages = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [block]}, {"role": "user", "content": "Bye"}]);
            refused(&with(&format!(r#""model":"{model}","messages":{messages}"#)))
        };
        assert_eq!(back("claude-opus-4-6", &given("claude-opus-4-6")).0, 0);
        assert_eq!(back("claude-sonnet-4-6", &given("claude-opus-4-6")).0, 0);
        let mut changed = given("claude-opus-4-6");
        changed["thinking"] = "Hmm".into();
        let mut unsigned = given("claude-opus-4-6");
        unsigned.as_object_mut().unwrap().remove("signature");
        for (model, block, named) in [
            ("claude-opus-4-6", changed, "Invalid `signature`"),
            ("claude-opus-4-6", unsigned, "signature: Field required"),
            ("claude-opus-5-5", given("claude-opus-4-6"), "another model"),
        ] {
            let (status, body) = back(model, &block);
            assert!(
                status == 400 && body["error"]["message"].as_str().is_some_and(|said| said.contains(named)),
                "{body}"
            );
        }
    }

    #[test]
    fn settings_that_do_not_go_together_are_refused() {
        const TOOL: &str = r#""tools":[{"name":"f","input_schema":{"type":"object"}}]"#;
        const BUDGET: &str = r#""max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024}"#;
        let unthinking = called(
            r#"{"type":"tool_use","id":"a","name":"f","input":{}}"#,
            r#"{"type":"tool_result","tool_use_id":"a","content":"1"}"#,
        );
        for (fields, named) in [
            (format!(r#"{TOOL},{BUDGET},"tool_choice":{{"type":"any"}}"#), "forces tool use"),
            (format!(r#"{BUDGET},"temperature":0.5"#), "temperature"),
            (r#""max_tokens":1024,"thinking":{"type":"enabled","budget_tokens":1024}"#.to_owned(), "greater than"),
            (r#""max_tokens":9999,"thinking":{"type":"enabled","budget_tokens":1000}"#.to_owned(), "1024"),
            (r#""model":"claude-sonnet-5","thinking":{"type":"enabled","budget_tokens":1024}"#.to_owned(), "not supported"),
            (r#""model":"claude-opus-5-5","thinking":{"type":"disabled"}"#.to_owned(), "not supported"),
            (format!(r#""model":"claude-opus-5-5",{TOOL},"tool_choice":{{"type":"any"}}"#), "not supported"),
            (format!("{BUDGET},{unthinking}"), "Expected `thinking`"),
            (format!(r#"{TOOL},"tool_choice":"auto""#), "tool_choice"),
            (format!(r#"{TOOL},"tool_choice":{{"type":"tool","name":"g"}}"#), "'g' not found"),
            (format!(r#"{TOOL},"tool_choice":{{"type":"none","disable_parallel_tool_use":true}}"#), "Extra inputs"),
            (r#""tool_choice":{"type":"auto"}"#.to_owned(), "while providing tools"),
            (r#""tools":[{"name":"a.b","input_schema":{"type":"object"}}]"#.to_owned(), "pattern"),
            (r#""tools":[{"name":"f","input_schema":{}}]"#.to_owned(), "input_schema.type"),
            (r#""tools":[{"name":"f","input_schema":{"type":"object"},"strict":true}]"#.to_owned(), "additionalProperties"),
            (r#""output_config":{"effort":"minimal"}"#.to_owned(), "effort"),
            (r#""output_config":{"format":{"type":"json_schema","name":"n","schema":{}}}"#.to_owned(), "name"),
            (
                r#""output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"integer","minimum":1}},"additionalProperties":false}}}"#.to_owned(),
                "minimum",
            ),
        ] {
            let (status, body) = refused(&with(&fields));
            let said = body["error"]["message"].as_str().unwrap_or_default();
            assert!(status == 400 && said.contains(named), "{fields}: {said}");
        }
    }

    #[test]
    fn path_method_key_and_version_come_first() {
        let good = || with("");
        for (change, status, kind) in [
            ((|r| r.path = "/messages".to_owned()) as fn(&mut Request), 404, "not_found_error"),
            (|r| r.method = Method::GET, 405, "invalid_request_error"),
            (|r| drop(r.headers.remove("x-api-key")), 401, "authentication_error"),
            (|r| drop(r.headers.remove("anthropic-version")), 400, "invalid_request_error"),
            (
                |r| drop(r.headers.insert("anthropic-version", HeaderValue::from_static("1"))),
                400,
                "invalid_request_error",
            ),
        ] {
            let mut request = good();
            change(&mut request);
            let (got, body) = refused(&request);
            assert_eq!((got, &body["error"]["type"]), (status, &json!(kind)));
        }
        let mut sampled = with(r#""temperature":0.5"#);
        assert!(Anthropic.read(&sampled, "1").is_ok());
        sampled.headers.insert("anthropic-version", HeaderValue::from_static(UNSAMPLED));
        assert_eq!(refused(&sampled).0, 400);
    }

    #[test]
    fn a_rate_limit_says_when_it_ends() {
        let limited = Anthropic.failure(&Failure::RateLimited(Duration::from_millis(1_050)), Some("m"), "1");
        let header = |name| limited.headers.iter().find(|(have, _)| *have == name).map(|(_, value)| value.as_str());
        assert_eq!((header("retry-after"), header("request-id")), (Some("2"), Some("req_1")));
        let reset = header("anthropic-ratelimit-requests-reset").and_then(|at| humantime::parse_rfc3339(at).ok());
        assert!(reset.is_some_and(|at| at >= wall_now() + Duration::from_secs(1)));
    }
}
