//! Amazon Bedrock's Converse. It streams with feature `bedrock`, whose frames have checksums.

#[cfg(feature = "bedrock")]
mod events;

use super::answer::{Failure, Reply};
use super::http1::Request;
use super::protocol::{Asked, Protocol, Rendered, count_tokens, seconds, text_of};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};

/// What stands before the model in a path, and behind it: of a whole answer, and of a stream.
const PATH: (&str, [&str; 2]) = ("/model/", ["/converse", "/converse-stream"]);

/// Every field of a request; another one is refused.
const FIELDS: &[&str] = &[
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "guardrailConfig",
    "inferenceConfig",
    "messages",
    "outputConfig",
    "performanceConfig",
    "promptVariables",
    "requestMetadata",
    "serviceTier",
    "system",
    "toolConfig",
];

#[derive(Debug)]
pub(super) struct Bedrock;

impl Protocol for Bedrock {
    fn base_path(&self) -> &'static str {
        ""
    }

    fn read(&self, request: &Request, id: &str) -> Result<Asked, Rendered> {
        read(request).map_err(|refusal| refusal.render(id))
    }

    fn reply(&self, reply: &Reply, asked: &Asked, id: &str) -> Rendered {
        let forced = asked.forced_call(reply);
        let reply = forced.as_ref().unwrap_or(reply);
        #[cfg(feature = "bedrock")]
        if asked.stream {
            let body = super::protocol::Body::Stream(events::events(reply, asked, id));
            let headers = vec![("content-type", "application/vnd.amazon.eventstream".to_owned())];
            return identified(Rendered { status: 200, headers, body }, id);
        }
        let (input, output) = asked.usage(reply);
        let body = json!({
            "output": {"message": {"role": "assistant", "content": content(reply, asked.text(reply), id)}},
            "stopReason": stop_reason(reply),
            "usage": {"inputTokens": input, "outputTokens": output, "totalTokens": input.saturating_add(output)},
            "metrics": {"latencyMs": 820},
        });
        identified(Rendered::json(200, &body), id)
    }

    fn failure(&self, failure: &Failure, _: Option<&str>, id: &str) -> Rendered {
        let rendered = Refusal::of(failure).render(id);
        match failure {
            Failure::RateLimited(wait) => rendered.header("retry-after", seconds(*wait)),
            _ => rendered,
        }
    }

    #[cfg(feature = "bedrock")]
    fn failure_event(&self, failure: &Failure, _: &str) -> super::delivery::Piece {
        let Refusal { kind, message, .. } = Refusal::of(failure);
        events::exception(&kind, &message)
    }

    #[cfg(feature = "bedrock")]
    fn event(&self, data: &str) -> super::delivery::Piece {
        events::event("contentBlockDelta", &json!({"contentBlockIndex": 0, "p": data}))
    }

    /// There are none.
    fn ping(&self) -> super::delivery::Piece {
        super::delivery::Piece::bytes("")
    }
}

/// The blocks of an answer.
fn content(reply: &Reply, text: &str, id: &str) -> Vec<Value> {
    let thought = reply.reasoning.as_ref().map(
        |thought| json!({"reasoningContent": {"reasoningText": {"text": thought, "signature": "c2lnLWV4YW1wbGU="}}}),
    );
    let text = Some(text).filter(|text| !text.is_empty()).map(|text| json!({"text": text}));
    let calls = reply.tool_calls.iter().enumerate().map(|(place, call)| {
        let made_up = format!("tooluse_{id}_{place}");
        let input = serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::from(call.arguments.as_str()));
        json!({"toolUse": {"toolUseId": call.id.as_deref().unwrap_or(&made_up), "name": call.name, "input": input}})
    });
    thought.into_iter().chain(text).chain(calls).collect()
}

fn stop_reason(reply: &Reply) -> &str {
    let own = if reply.tool_calls.is_empty() { "end_turn" } else { "tool_use" };
    reply.finish_reason.as_deref().unwrap_or(own)
}

fn identified(rendered: Rendered, id: &str) -> Rendered {
    rendered.header("x-amzn-requestid", format!("00000000-0000-4000-8000-{id}"))
}

/// Checks what the provider checks first, in its order.
fn read(request: &Request) -> Result<Asked, Refusal> {
    check_credentials(&request.headers)?;
    let path = request.path.split('?').next().unwrap_or_default();
    let of = |suffix| path.strip_prefix(PATH.0).and_then(|rest| rest.strip_suffix(suffix));
    let [whole, stream] = PATH.1;
    let streams = cfg!(feature = "bedrock") && of(stream).is_some();
    let model = if streams { of(stream) } else { of(whole) };
    // An id is one segment: a `/` or a `:` in it is encoded.
    let model = model.filter(|model| !model.is_empty() && !model.contains(['/', ':']));
    let model = model.ok_or_else(|| Refusal::new(404, "UnknownOperationException", ""))?;
    if request.method != Method::POST {
        return Err(Refusal::new(405, "UnknownOperationException", ""));
    }
    let model = percent_encoding::percent_decode_str(model).decode_utf8();
    let model = model.map_err(|_| "The provided model identifier is invalid.")?.into_owned();
    let Ok(Value::Object(body)) = serde_json::from_slice(&request.body) else {
        return Err(Refusal::new(400, "SerializationException", "The body is no JSON object"));
    };
    if let Some(field) = body.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(format!("The field {field} is not a member of the request").into());
    }
    check_sampling(&body)?;
    check_tool_config(&body)?;
    if let Some(system) = body.get("system") {
        check_blocks(system, "system")?;
    }
    let messages = body.get("messages").and_then(Value::as_array).ok_or("The field messages must be a list")?;
    check_messages(messages)?;
    let text = |message: &Value| text_of(&message["content"]);
    let last = messages.iter().rev().find(|message| message["role"] == "user");
    let system = body.get("system").map_or(0, |system| count_tokens(&text_of(system)));
    Ok(Asked {
        model,
        prompt: last.map(text).unwrap_or_default(),
        input_tokens: messages.iter().map(|message| count_tokens(&text(message)) + 3).sum::<u64>() + system,
        stream: streams,
        forced_tool: body.get("toolConfig").and_then(|c| c["toolChoice"]["tool"]["name"].as_str().map(str::to_owned)),
        ..Asked::default()
    })
}

/// A key, or a signature of the right form. Which secret made it is not known here.
fn check_credentials(headers: &HeaderMap) -> Result<(), Refusal> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let missing = || Refusal::new(403, "MissingAuthenticationTokenException", "Missing Authentication Token");
    let authorization = header(AUTHORIZATION.as_str()).ok_or_else(missing)?;
    if authorization.strip_prefix("Bearer ").is_some_and(|key| !key.trim().is_empty()) {
        return Ok(());
    }
    let refused = |message: &str| Refusal::new(403, "InvalidSignatureException", message);
    let parts = authorization.strip_prefix("AWS4-HMAC-SHA256 ").ok_or_else(missing)?;
    let part = |name: &str| parts.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
    let scope: Vec<_> = part("Credential").unwrap_or_default().split('/').collect();
    let [_, day, _, "bedrock", "aws4_request"] = scope[..] else {
        return Err(refused("Credential should be scoped to the service bedrock"));
    };
    if !header("x-amz-date").is_some_and(|date| date.starts_with(day)) {
        return Err(refused("x-amz-date is not of the day of the credential's scope"));
    }
    let signed: Vec<_> = part("SignedHeaders").unwrap_or_default().split(';').collect();
    let has = |name: &str| signed.contains(&name);
    if !has("host") || !has("x-amz-date") || (header("x-amz-security-token").is_some() && !has("x-amz-security-token"))
    {
        return Err(refused("host, x-amz-date and x-amz-security-token must be signed"));
    }
    let signature = part("Signature").unwrap_or_default();
    if signature.len() != 64 || !signature.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(refused("The request signature we calculated does not match the signature you provided."));
    }
    Ok(())
}

fn check_sampling(body: &Map<String, Value>) -> Result<(), Refusal> {
    let config = &body.get("inferenceConfig").cloned().unwrap_or_default();
    for name in ["temperature", "topP"] {
        if !config[name].is_null() && !config[name].as_f64().is_some_and(|value| (0.0..=1.0).contains(&value)) {
            return Err(format!("Value at 'inferenceConfig.{name}' must be between 0 and 1").into());
        }
    }
    if !config["maxTokens"].is_null() && config["maxTokens"].as_u64().is_none_or(|max| max == 0) {
        return Err("Value at 'inferenceConfig.maxTokens' must be greater than or equal to 1".into());
    }
    let is_text = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    match &config["stopSequences"] {
        Value::Null => Ok(()),
        Value::Array(stops) if stops.iter().all(is_text) => Ok(()),
        _ => Err("Value at 'inferenceConfig.stopSequences' must be a list of texts".into()),
    }
}

/// Blocks of tools take declared tools, and a forced tool is one of them.
fn check_tool_config(body: &Map<String, Value>) -> Result<(), Refusal> {
    let tools = body.get("toolConfig").and_then(|config| config["tools"].as_array());
    let has_blocks = body.get("messages").and_then(Value::as_array).into_iter().flatten().any(|message| {
        let blocks = message["content"].as_array().into_iter().flatten();
        blocks.into_iter().any(|block| block.get("toolUse").or(block.get("toolResult")).is_some())
    });
    let Some(tools) = tools else {
        if has_blocks {
            let message = "The toolConfig field must be defined when using toolUse and toolResult content blocks.";
            return Err(message.into());
        }
        return Ok(());
    };
    let names: Vec<_> = tools.iter().filter_map(|tool| tool["toolSpec"]["name"].as_str()).collect();
    if names.len() != tools.len() || names.is_empty() {
        return Err("toolConfig.tools must be a list of tools with names".into());
    }
    match body["toolConfig"]["toolChoice"]["tool"]["name"].as_str() {
        Some(forced) if !names.contains(&forced) => Err(format!("The tool {forced} is not declared").into()),
        _ => Ok(()),
    }
}

fn check_messages(messages: &[Value]) -> Result<(), Refusal> {
    for (place, message) in messages.iter().enumerate() {
        if !matches!(message["role"].as_str(), Some("user" | "assistant")) {
            return Err(format!("Value at 'messages.{place}.role' must be one of user, assistant").into());
        }
        check_blocks(&message["content"], &format!("messages.{place}.content"))?;
    }
    if messages.first().is_none_or(|first| first["role"] != "user") {
        return Err("A conversation must start with a user message. Try again with one.".into());
    }
    if messages.windows(2).any(|pair| pair[0]["role"] == pair[1]["role"]) {
        return Err("A conversation must alternate between user and assistant roles.".into());
    }
    check_tools(messages)
}

/// Each call is answered in the next message, and nothing else is.
fn check_tools(messages: &[Value]) -> Result<(), Refusal> {
    let ids = |message: Option<&Value>, block: &str| -> Vec<String> {
        let blocks = message.and_then(|message| message["content"].as_array()).into_iter().flatten();
        let mut ids: Vec<_> = blocks.filter_map(|b| b.get(block)?["toolUseId"].as_str().map(str::to_owned)).collect();
        ids.sort();
        ids
    };
    for place in 0..messages.len() {
        let before = place.checked_sub(1).map(|before| &messages[before]);
        let (called, returned) = (ids(before, "toolUse"), ids(Some(&messages[place]), "toolResult"));
        if called != returned {
            let message = "The number of toolResult blocks must match the toolUse blocks of the previous turn.";
            return Err(message.into());
        }
    }
    if !ids(messages.last(), "toolUse").is_empty() {
        return Err("A conversation must not end with toolUse blocks.".into());
    }
    Ok(())
}

/// Content is a list of blocks, each an object whose one key says what it is; a text has words in it.
fn check_blocks(content: &Value, place: &str) -> Result<(), Refusal> {
    let blocks = content.as_array().filter(|blocks| !blocks.is_empty());
    for block in blocks.ok_or_else(|| format!("The content at {place} must be a list of blocks"))? {
        if block.as_object().is_none_or(|block| block.len() != 1) {
            return Err(format!("The block at {place} must have exactly one member").into());
        }
        if block.get("text").is_some_and(|text| text.as_str().is_none_or(|text| text.trim().is_empty())) {
            return Err(format!("The text at {place} is blank. Add text to it, and try again.").into());
        }
    }
    Ok(())
}

/// An exception and the status it comes with.
struct Refusal {
    status: u16,
    kind: String,
    message: String,
}

impl Refusal {
    fn new(status: u16, kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status, kind: kind.into(), message: message.into() }
    }

    fn of(failure: &Failure) -> Self {
        match failure {
            Failure::BadRequest(message) => Self::new(400, "ValidationException", message),
            Failure::InSuccess { code, message } => Self::new(200, code, message),
            Failure::Overloaded => Self::of_status(503),
            Failure::QuotaExhausted => {
                let message = "Your request exceeds the service quota for your account.";
                Self::new(400, "ServiceQuotaExceededException", message)
            }
            Failure::RateLimited(_) => Self::of_status(429),
            Failure::Status(status) => Self::of_status(*status),
            Failure::Unauthorized => {
                Self::new(403, "UnrecognizedClientException", "The security token included in the request is invalid.")
            }
        }
    }

    fn of_status(status: u16) -> Self {
        let (kind, message) = match status {
            403 => ("AccessDeniedException", "You don't have access to the model with the specified model ID."),
            404 => ("ResourceNotFoundException", "The model with the specified model ID is not found."),
            408 => ("ModelTimeoutException", "The model took too long to answer."),
            409 => ("ConflictException", "The resource is being changed by another request."),
            424 => ("ModelErrorException", "The model failed while it processed the request."),
            429 => ("ThrottlingException", "Too many requests, please wait before trying again."),
            503 => ("ServiceUnavailableException", "Bedrock is unable to process your request."),
            500.. => ("InternalServerException", "The system encountered an unexpected error."),
            _ => ("ValidationException", "The request is invalid."),
        };
        Self::new(status, kind, message)
    }

    /// With the exception's name in a header, and behind it an address that is no part of it; in a success, which has no
    /// such header, in the body.
    fn render(self, id: &str) -> Rendered {
        let Self { status, kind, message } = self;
        let rendered = if status == 200 {
            Rendered::json(status, &json!({"__type": kind, "message": message}))
        } else {
            let named = format!("{kind}:http://internal.example/coral/com.example.bedrock/");
            Rendered::json(status, &json!({"message": message})).header("x-amzn-errortype", named)
        };
        identified(rendered, id)
    }
}

/// What is wrong with a request that can be read.
impl From<&str> for Refusal {
    fn from(message: &str) -> Self {
        Self::new(400, "ValidationException", message)
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self::new(400, "ValidationException", message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::protocol::Body;
    use bytes::Bytes;
    use http::HeaderValue;

    const CONVERSE: &str = "/model/vendor.model-v1%3A0/converse";
    const HI: &str = r#"{"messages":[{"role":"user","content":[{"text":"Hi"}]}]}"#;

    fn request(path: &str, authorization: &str, body: &str) -> Request {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(authorization).unwrap());
        headers.insert("x-amz-date", HeaderValue::from_static("20261130T120000Z"));
        let body = Bytes::copy_from_slice(body.as_bytes());
        Request { method: Method::POST, path: path.to_owned(), headers, body, keep_alive: true }
    }

    fn signed(service: &str, headers: &str, signature: &str) -> String {
        let scope = format!("AKID/20261130/us-east-1/{service}/aws4_request");
        format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={headers}, Signature={signature}")
    }

    /// The status, and the exception and message.
    fn refused(request: &Request) -> (u16, String) {
        let Err(refused) = Bedrock.read(request, "1") else { return (0, String::new()) };
        let kind = refused.headers.iter().find(|(name, _)| *name == "x-amzn-errortype");
        let Body::Whole(body) = &refused.body else { unreachable!() };
        (refused.status, format!("{} {}", kind.map_or("", |(_, kind)| kind), String::from_utf8_lossy(body)))
    }

    #[test]
    fn the_last_message_of_the_user_is_the_prompt_and_the_model_is_in_the_path() {
        let body = r#"{"system":[{"text":"Be brief."}],"messages":[{"role":"user","content":[{"text":"One"}]},
            {"role":"assistant","content":[{"text":"Two"}]},
            {"role":"user","content":[{"text":"Three "},{"text":"four"},{"cachePoint":{"type":"default"}}]}],
            "inferenceConfig":{"maxTokens":9,"temperature":1,"stopSequences":["END"]},
            "additionalModelRequestFields":{"top_k":5}}"#;
        let asked = Bedrock.read(&request(CONVERSE, "Bearer k", body), "1").ok();
        let asked = asked.map(|asked| (asked.model, asked.prompt, asked.input_tokens));
        assert_eq!(asked, Some(("vendor.model-v1:0".to_owned(), "Three four".to_owned(), 17)));
    }

    #[test]
    fn a_key_or_a_signature_is_wanted() {
        let digits = "0123456789abcdef".repeat(4);
        let good = signed("bedrock", "content-type;host;x-amz-date", &digits);
        assert!(Bedrock.read(&request(CONVERSE, &good, HI), "1").is_ok());
        for (authorization, kind) in [
            ("Bearer ".to_owned(), "MissingAuthenticationTokenException"),
            ("Basic eA==".to_owned(), "MissingAuthenticationTokenException"),
            (signed("bedrock-runtime", "host;x-amz-date", &digits), "InvalidSignatureException"),
            (signed("bedrock", "host", &digits), "InvalidSignatureException"),
            (signed("bedrock", "host;x-amz-date", "beef"), "InvalidSignatureException"),
        ] {
            let (status, said) = refused(&request(CONVERSE, &authorization, HI));
            assert!(status == 403 && said.starts_with(kind), "{authorization}: {status} {said}");
        }
        let mut unsigned = request(CONVERSE, &good, HI);
        unsigned.headers.insert("x-amz-security-token", HeaderValue::from_static("t"));
        assert_eq!(refused(&unsigned).0, 403);
        unsigned.headers.remove(AUTHORIZATION);
        assert_eq!(refused(&unsigned).0, 403);
    }

    #[test]
    fn a_bad_request_is_refused_as_the_provider_does() {
        for (path, body, status, named) in [
            ("/model/vendor.model-v1:0/converse", HI, 404, "UnknownOperation"),
            ("/model/a/b/converse", HI, 404, "UnknownOperation"),
            ("/model//converse", HI, 404, "UnknownOperation"),
            (CONVERSE, "{", 400, "SerializationException"),
            (CONVERSE, "{}", 400, "messages"),
            (CONVERSE, r#"{"messages":[]}"#, 400, "start with a user message"),
            (CONVERSE, r#"{"messages":[{"role":"user","content":"Hi"}]}"#, 400, "list of blocks"),
            (CONVERSE, r#"{"messages":[{"role":"user","content":[]}]}"#, 400, "list of blocks"),
            (CONVERSE, r#"{"messages":[{"role":"user","content":[{"text":" "}]}]}"#, 400, "blank"),
            (CONVERSE, r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}"#, 400, "one member"),
            (CONVERSE, r#"{"messages":[{"role":"system","content":[{"text":"a"}]}]}"#, 400, "role"),
            (
                CONVERSE,
                r#"{"messages":[{"role":"user","content":[{"text":"a"}]},{"role":"user","content":[{"text":"b"}]}]}"#,
                400,
                "alternate",
            ),
            (CONVERSE, r#"{"messages":[{"role":"user","content":[{"text":"a"}]}],"top_k":5}"#, 400, "top_k"),
            (CONVERSE, r#"{"inferenceConfig":{"temperature":1.5}}"#, 400, "temperature"),
            (CONVERSE, r#"{"inferenceConfig":{"maxTokens":0}}"#, 400, "maxTokens"),
            (CONVERSE, r#"{"inferenceConfig":{"stopSequences":"END"}}"#, 400, "stopSequences"),
            (CONVERSE, r#"{"system":[{"text":""}]}"#, 400, "system"),
        ] {
            let (got, said) = refused(&request(path, "Bearer k", body));
            assert!(got == status && said.contains(named), "{path} {body}: {got} {said}");
        }
    }
}
