//! Reads a request, or refuses it as Google does: front end, credentials, JSON, values, in this order.

use super::signature::generation;
use super::{Refusal, conversation, no_such_page, tools};
use crate::testing::http1::Request;
use crate::testing::protocol::{Asked, Rendered};
use http::Method;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

pub(super) fn read(request: &Request) -> Result<Asked, Rendered> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let Some(Asking { model, is_vertex, stream }) = asking(path).filter(|_| request.method == Method::POST) else {
        return Err(no_such_page(path));
    };
    let read = || {
        check_credentials(request, query, is_vertex)?;
        let body = json_body(&request.body)?;
        let config = check_settings(&body, &model, is_vertex)?;
        tools::check(&body, &config, &model)?;
        let stream_list = stream && !query.split('&').any(|pair| pair == "alt=sse");
        Ok(Asked { stream, stream_list, ..conversation::read(body.get("contents"), &model)? })
    };
    read().map_err(Refusal::render)
}

/// What a path asks.
struct Asking {
    model: String,
    is_vertex: bool,
    stream: bool,
}

fn asking(path: &str) -> Option<Asking> {
    let parts: Vec<_> = path.strip_prefix("/v1")?.split('/').collect();
    let (name, is_vertex) = match parts[..] {
        ["" | "beta" | "alpha", "models" | "tunedModels", name] => (name, false),
        ["" | "beta1", "projects", _, "locations", _, "publishers", "google", "models", name]
        | ["" | "beta1", "projects", _, "locations", _, "endpoints", name] => (name, true),
        _ => return None,
    };
    let (name, method) = name.rsplit_once(':')?;
    let stream = match method {
        "generateContent" => false,
        "streamGenerateContent" => true,
        _ => return None,
    };
    let model = percent_decode_str(name).decode_utf8().ok()?.into_owned();
    (!model.is_empty()).then_some(Asking { model, is_vertex, stream })
}

/// A key in the header or in the query, or a token; never two of them. Vertex wants a token.
fn check_credentials(request: &Request, query: &str, is_vertex: bool) -> Result<(), Refusal> {
    let in_query = query.split('&').filter(|pair| pair.starts_with("key=")).count();
    let keys = request.headers.get_all("x-goog-api-key").iter().count() + in_query;
    let has_token = request.headers.contains_key("authorization");
    match (keys, has_token) {
        (0, false) if is_vertex => {
            let message = "Request is missing required authentication credential. Expected OAuth 2 access token, login \
                           cookie or other valid authentication credential.";
            Err(Refusal::new(401, message))
        }
        (0, false) => {
            let message = "Method doesn't allow unregistered callers (callers without established identity). Please use \
                           API Key or other form of API consumer identity to call this API.";
            Err(Refusal::new(403, message))
        }
        (1, false) if is_vertex => {
            let message = "API keys are not supported by this API. Expected OAuth2 access token or other authentication \
                           credentials that assert a principal.";
            Err(Refusal::new(401, message))
        }
        (0, true) | (1, false) => Ok(()),
        _ => Err(Refusal::new(400, "Multiple authentication credentials received. Please pass only one.")),
    }
}

/// What a request may hold, in both spellings that protocol buffers take.
const FIELDS: [&str; 13] = [
    "cachedContent",
    "contents",
    "continuationToken",
    "generationConfig",
    "labels",
    "model",
    "modelArmorConfig",
    "safetySettings",
    "serviceTier",
    "store",
    "systemInstruction",
    "toolConfig",
    "tools",
];

const CONFIG_FIELDS: [&str; 22] = [
    "audioTimestamp",
    "candidateCount",
    "enableEnhancedCivicAnswers",
    "frequencyPenalty",
    "imageConfig",
    "logprobs",
    "maxOutputTokens",
    "mediaResolution",
    "presencePenalty",
    "responseJsonSchema",
    "responseLogprobs",
    "responseMimeType",
    "responseModalities",
    "responseSchema",
    "routingConfig",
    "seed",
    "speechConfig",
    "stopSequences",
    "temperature",
    "thinkingConfig",
    "topK",
    "topP",
];

fn json_body(bytes: &[u8]) -> Result<Map<String, Value>, Refusal> {
    let Ok(Value::Object(body)) = serde_json::from_slice(bytes) else {
        let message = "Invalid JSON payload received. Expected an object.";
        return Err(Refusal::new(400, message));
    };
    fields(body, &FIELDS, "")
}

/// The object with its fields in camel case; what Google does not know it refuses.
pub(super) fn fields(object: Map<String, Value>, known: &[&str], at: &str) -> Result<Map<String, Value>, Refusal> {
    let mut read = Map::new();
    for (name, value) in object {
        let Some(field) = known.iter().find(|field| **field == name || snake(field) == name) else {
            let path = if at.is_empty() { String::new() } else { format!(" at '{at}'") };
            let message = format!("Invalid JSON payload received. Unknown name \"{name}\"{path}: Cannot find field.");
            let violation = json!({"field": at, "description": message});
            return Err(Refusal::new(400, message).detail("BadRequest", json!({"fieldViolations": [violation]})));
        };
        read.insert((*field).to_owned(), value);
    }
    Ok(read)
}

pub(super) fn snake(camel: &str) -> String {
    let mut snake = String::new();
    for c in camel.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// Checks what is set, and gives `generationConfig`.
fn check_settings(body: &Map<String, Value>, model: &str, is_vertex: bool) -> Result<Map<String, Value>, Refusal> {
    if body.contains_key("cachedContent")
        && ["systemInstruction", "tools", "toolConfig"].iter().any(|field| body.contains_key(*field))
    {
        let message = "CachedContent can not be used with GenerateContent request setting system_instruction, tools \
                       or tool_config.";
        return Err(Refusal::new(400, message));
    }
    if let Some(instruction) = body.get("systemInstruction") {
        if model.starts_with("gemma-") {
            return Err(Refusal::new(400, format!("Developer instruction is not enabled for models/{model}")));
        }
        conversation::check_system(instruction)?;
    }
    let config = match body.get("generationConfig") {
        Some(Value::Object(config)) => fields(config.clone(), &CONFIG_FIELDS, "generation_config")?,
        _ => return Ok(Map::new()),
    };
    let wrong = |field: &str, why: &str| {
        Err(Refusal::new(400, format!("* GenerateContentRequest.generation_config.{field}: {field} {why}\n")))
    };
    for (field, name, max) in [("temperature", "temperature", 2.0), ("topP", "top_p", 1.0)] {
        let value = config.get(field).and_then(Value::as_f64);
        if value.is_some_and(|value| !(0.0..=max).contains(&value)) {
            return wrong(name, &format!("must be in the range [0.0, {max:.1}]."));
        }
    }
    for (field, name) in [("maxOutputTokens", "max_output_tokens"), ("seed", "seed")] {
        let fits = |value: &Value| value.as_i64().is_some_and(|value| i32::try_from(value).is_ok());
        if config.get(field).is_some_and(|value| !fits(value)) {
            return wrong(name, "must be a 32-bit integer.");
        }
    }
    if config.get("stopSequences").and_then(Value::as_array).is_some_and(|stops| stops.len() > 5) {
        return wrong("stop_sequences", "must have at most 5 elements.");
    }
    if !is_vertex
        && model.starts_with("gemini-2.5")
        && ["presencePenalty", "frequencyPenalty"].iter().any(|field| config.contains_key(*field))
    {
        return Err(Refusal::new(400, format!("Penalty is not enabled for models/{model}")));
    }
    check_form(&config, model)?;
    check_thinking(config.get("thinkingConfig"), model)?;
    Ok(config)
}

fn check_form(config: &Map<String, Value>, model: &str) -> Result<(), Refusal> {
    let form = config.get("responseMimeType").map_or("text/plain", |form| form.as_str().unwrap_or_default());
    let schemas = ["responseSchema", "responseJsonSchema"].iter().filter(|field| config.contains_key(**field)).count();
    let message = match (form, schemas) {
        ("application/json", _) if model.starts_with("gemma-3") => {
            return Err(Refusal::new(400, format!("JSON mode is not enabled for models/{model}")));
        }
        (_, 2) => "only one of response_schema and response_json_schema may be set.",
        ("application/json" | "text/plain" | "text/x.enum", 0) | ("application/json" | "text/x.enum", _) => {
            return Ok(());
        }
        (_, 0) => "allowed mimetypes are `text/plain`, `application/json` and `text/x.enum`.",
        _ => "only allowed when the response mime type is application/json.",
    };
    Err(Refusal::new(400, format!("* GenerateContentRequest.generation_config.response_mime_type: {message}\n")))
}

/// A level or a budget, as the generation takes it; never both.
fn check_thinking(thinking: Option<&Value>, model: &str) -> Result<(), Refusal> {
    let Some(thinking) = thinking else { return Ok(()) };
    let known = ["includeThoughts", "thinkingBudget", "thinkingLevel"];
    let thinking = thinking.as_object().cloned().unwrap_or_default();
    let thinking = fields(thinking, &known, "generation_config.thinking_config")?;
    let levels: &[&str] = match model {
        _ if model.starts_with("gemini-4-hydrogen") => &["LOW", "MEDIUM", "HIGH", "XHIGH"],
        _ if model.starts_with("gemini-3.5-flash") || model.starts_with("gemini-3.6-flash") => {
            &["MINIMAL", "LOW", "MEDIUM", "HIGH"]
        }
        _ if matches!(generation(model), Some(3 | 4)) => &["LOW", "MEDIUM", "HIGH"],
        _ if matches!(generation(model), Some(..=2)) => &[],
        _ => &["MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"],
    };
    let budget = match model {
        _ if model.starts_with("gemini-2.5-pro") => 128..=32_768,
        _ if model.starts_with("gemini-2.5") => 0..=24_576,
        _ => 0..=i64::from(i32::MAX),
    };
    let message = match (thinking.get("thinkingLevel"), thinking.get("thinkingBudget")) {
        (Some(_), Some(_)) => "You can only set only one of thinking budget and thinking level.".to_owned(),
        (Some(level), None) if !levels.iter().any(|known| level == known) => {
            format!("Thinking level {level} is not supported for this model.")
        }
        // -1 leaves it to the model.
        (None, Some(tokens)) if !tokens.as_i64().is_some_and(|tokens| tokens == -1 || budget.contains(&tokens)) => {
            format!("The thinking budget {tokens} is invalid. Please choose a value between {budget:?}.")
        }
        _ => return Ok(()),
    };
    Err(Refusal::new(400, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::protocol::Body;
    use bytes::Bytes;
    use http::{HeaderMap, HeaderName, HeaderValue};

    const PATH: &str = "/v1beta/models/m:generateContent";
    const KEY: (&str, &str) = ("x-goog-api-key", "k");
    const HI: &str = r#"{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}"#;

    fn ask(path: &str, headers: &[(&'static str, &'static str)], body: &str) -> Result<Asked, (u16, String)> {
        let headers =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let request = Request {
            method: Method::POST,
            path: path.to_owned(),
            headers: headers.collect::<HeaderMap>(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            keep_alive: true,
        };
        read(&request).map_err(|refused| match &refused.body {
            Body::Whole(bytes) => (refused.status, String::from_utf8_lossy(bytes).into_owned()),
            Body::Stream(_) | Body::Ended(..) => (refused.status, String::new()),
        })
    }

    #[test]
    fn the_last_content_of_the_user_is_the_prompt() {
        let body = r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[
            {"role":"model","parts":[{"text":"Three","thoughtSignature":"eA=="}]},
            {"role":"user","parts":[{"text":"One "},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"text":"two"}]}],
            "generation_config":{"max_output_tokens":7}}"#;
        let asked = ask("/v1/models/gemini%2Dx:generateContent", &[KEY], body);
        assert_eq!(
            asked,
            Ok(Asked {
                model: "gemini-x".to_owned(),
                prompt: "One two".to_owned(),
                input_tokens: 6,
                ..Asked::default()
            })
        );
    }

    #[test]
    fn a_model_is_found_where_google_has_it() {
        let token = ("authorization", "Bearer t");
        let vertex = "projects/p/locations/eu/publishers/google/models/m:generateContent";
        for (path, headers) in [
            (PATH.to_owned(), KEY),
            ("/v1/tunedModels/m:generateContent".to_owned(), KEY),
            (format!("{PATH}?alt=json"), token),
            (format!("/v1/{vertex}"), token),
            (format!("/v1beta1/{vertex}"), token),
        ] {
            assert_eq!(ask(&path, &[headers], HI).map(|asked| asked.model), Ok("m".to_owned()), "{path}");
        }
        for path in [
            "/models/m:generateContent",
            "/v1beta/models/m",
            "/v1beta/models/m:countTokens",
            "/v1beta/models/:generateContent",
            "/v1beta/v1beta/models/m:generateContent",
            "/v1beta/chat/completions",
        ] {
            let (status, page) = ask(path, &[KEY], HI).unwrap_err();
            assert!(status == 404 && page.contains("<title>Error 404"), "{path}: {status} {page}");
        }
    }

    #[test]
    fn one_credential_is_wanted_and_no_more() {
        let token = ("authorization", "Bearer t");
        let vertex = "/v1/projects/p/locations/eu/publishers/google/models/m:generateContent";
        let query = format!("{PATH}?key=k");
        for (path, headers, status, said) in [
            (PATH, &[][..], 403, "unregistered callers"),
            (PATH, &[KEY, token], 400, "Multiple authentication credentials"),
            (&query, &[KEY], 400, "Multiple authentication credentials"),
            (&query, &[token], 400, "Multiple authentication credentials"),
            (vertex, &[], 401, "missing required authentication"),
            (vertex, &[KEY], 401, "API keys are not supported"),
        ] {
            let refused = ask(path, headers, HI).unwrap_err();
            assert!(refused.0 == status && refused.1.contains(said), "{path} {headers:?}: {refused:?}");
        }
        assert!(ask(&query, &[], HI).is_ok());
    }

    #[test]
    fn a_bad_request_is_refused_as_the_provider_does() {
        for (body, said) in [
            ("{", "Invalid JSON payload"),
            ("[]", "Invalid JSON payload"),
            (r#"{"messages":[]}"#, r#"Unknown name \"messages\": Cannot find field."#),
            (r#"{"contents":[]}"#, "contents is not specified"),
            ("{}", "contents is not specified"),
            (r#"{"contents":[{"role":"assistant","parts":[{"text":"x"}]}]}"#, "valid role: user, model"),
            (r#"{"contents":[{"role":"system","parts":[{"text":"x"}]}]}"#, "valid role: user, model"),
            (r#"{"contents":[{"role":"user","parts":[]}]}"#, "contents[0].parts: contents.parts must not be empty"),
            (r#"{"contents":[{"role":"user"}]}"#, "contents.parts must not be empty"),
            (r#"{"contents":[{"parts":[{}]}]}"#, "parts[0].data: required oneof field 'data'"),
            (r#"{"contents":[{"parts":[{"text":"x"}]}],"systemInstruction":{"parts":[]}}"#, "system_instruction.parts"),
            (
                r#"{"contents":[{"parts":[{"text":"x"}]}],"systemInstruction":{"parts":[{"text":"x"}]},"cachedContent":"c"}"#,
                "CachedContent can not be used",
            ),
        ] {
            let (status, message) = ask(PATH, &[KEY], body).unwrap_err();
            assert!(status == 400 && message.contains(said), "{body}: {status} {message}");
            assert!(message.contains("INVALID_ARGUMENT"), "{message}");
        }
        for (config, said) in [
            (r#"{"temperature":2.5}"#, "temperature must be in the range [0.0, 2.0]"),
            (r#"{"topP":1.5}"#, "top_p must be in the range [0.0, 1.0]"),
            (r#"{"seed":2147483648}"#, "seed must be a 32-bit integer"),
            (r#"{"maxOutputTokens":"many"}"#, "max_output_tokens must be"),
            (r#"{"stopSequences":["1","2","3","4","5","6"]}"#, "stop_sequences must have at most 5"),
            (r#"{"responseMimeType":"application/xml"}"#, "allowed mimetypes"),
            (r#"{"responseJsonSchema":{}}"#, "only allowed when"),
            (r#"{"responseMimeType":"application/json","responseJsonSchema":{},"responseSchema":{}}"#, "only one of"),
            (r#"{"thinkingConfig":{"thinkingLevel":"LOW","thinkingBudget":1}}"#, "only one of thinking budget"),
            (r#"{"thinkingConfig":{"thinkingLevel":"MAX"}}"#, "is not supported for this model"),
            (r#"{"thinkingConfig":{"thinkingBudget":-2}}"#, "thinking budget -2 is invalid"),
            (r#"{"thinkingConfig":{"effort":"low"}}"#, r#"Unknown name \"effort\""#),
            (r#"{"maxTokens":5}"#, r#"Unknown name \"maxTokens\" at 'generation_config'"#),
        ] {
            let body = format!(r#"{{"contents":[{{"parts":[{{"text":"x"}}]}}],"generationConfig":{config}}}"#);
            let (status, message) = ask(PATH, &[KEY], &body).unwrap_err();
            assert!(status == 400 && message.contains(said), "{config}: {status} {message}");
        }
    }

    #[test]
    fn each_model_refuses_what_it_does_not_take() {
        let gemini = "gemini-2.5-pro";
        for (model, config, said) in [
            (gemini, r#"{"presencePenalty":1}"#, "Penalty is not enabled"),
            (gemini, r#"{"thinkingConfig":{"thinkingBudget":0}}"#, "thinking budget 0 is invalid"),
            (gemini, r#"{"thinkingConfig":{"thinkingLevel":"LOW"}}"#, "is not supported"),
            ("gemini-4-argon", r#"{"thinkingConfig":{"thinkingLevel":"XHIGH"}}"#, "is not supported"),
            ("gemma-3-27b-it", r#"{"responseMimeType":"application/json"}"#, "JSON mode is not enabled"),
        ] {
            let body = format!(r#"{{"contents":[{{"parts":[{{"text":"x"}}]}}],"generationConfig":{config}}}"#);
            let refused = ask(&format!("/v1beta/models/{model}:generateContent"), &[KEY], &body).unwrap_err();
            assert!(refused.0 == 400 && refused.1.contains(said), "{model} {config}: {refused:?}");
        }
        let instructed = r#"{"contents":[{"parts":[{"text":"x"}]}],"systemInstruction":{"parts":[{"text":"x"}]}}"#;
        assert!(ask("/v1beta/models/gemma-3-27b-it:generateContent", &[KEY], instructed).is_err());
    }

    #[test]
    fn a_stream_is_asked_for_by_its_method() {
        for (method, stream, stream_list) in [
            ("generateContent", false, false),
            ("generateContent?alt=sse", false, false),
            ("streamGenerateContent", true, true),
            ("streamGenerateContent?alt=sse", true, false),
        ] {
            let asked = ask(&format!("/v1beta/models/m:{method}"), &[KEY], HI).unwrap();
            assert_eq!((asked.stream, asked.stream_list), (stream, stream_list), "{method}");
        }
    }
}
