//! Reads a request, or refuses it as Google does: front end, credentials, JSON, values, in this order.

use super::{Refusal, no_such_page};
use crate::testing::http1::Request;
use crate::testing::protocol::{Asked, Rendered, count_tokens};
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
        check_settings(&body)?;
        let stream_list = stream && !query.split('&').any(|pair| pair == "alt=sse");
        Ok(Asked { stream, stream_list, ..asked(&body, model)? })
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
fn fields(object: Map<String, Value>, known: &[&str], at: &str) -> Result<Map<String, Value>, Refusal> {
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

fn snake(camel: &str) -> String {
    let mut snake = String::new();
    for c in camel.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

fn check_settings(body: &Map<String, Value>) -> Result<(), Refusal> {
    if let Some(instruction) = body.get("systemInstruction") {
        if body.contains_key("cachedContent") {
            let message = "CachedContent can not be used with GenerateContent request setting system_instruction, tools \
                           or tool_config.";
            return Err(Refusal::new(400, message));
        }
        parts(instruction, "system_instruction")?;
    }
    let config = match body.get("generationConfig") {
        Some(Value::Object(config)) => fields(config.clone(), &CONFIG_FIELDS, "generation_config")?,
        _ => return Ok(()),
    };
    let wrong = |field: &str, why: &str| {
        Refusal::new(400, format!("* GenerateContentRequest.generation_config.{field}: {field} {why}\n"))
    };
    for (field, name, max) in [("temperature", "temperature", 2.0), ("topP", "top_p", 1.0)] {
        let value = config.get(field).and_then(Value::as_f64);
        if value.is_some_and(|value| !(0.0..=max).contains(&value)) {
            return Err(wrong(name, &format!("must be in the range [0.0, {max:.1}].")));
        }
    }
    for (field, name) in [("maxOutputTokens", "max_output_tokens"), ("seed", "seed")] {
        let fits = |value: &Value| value.as_i64().is_some_and(|value| i32::try_from(value).is_ok());
        if config.get(field).is_some_and(|value| !fits(value)) {
            return Err(wrong(name, "must be a 32-bit integer."));
        }
    }
    match config.get("stopSequences") {
        Some(Value::Array(stops)) if stops.len() > 5 => Err(wrong("stop_sequences", "must have at most 5 elements.")),
        _ => Ok(()),
    }
}

fn asked(body: &Map<String, Value>, model: String) -> Result<Asked, Refusal> {
    let contents = match body.get("contents") {
        Some(Value::Array(contents)) if !contents.is_empty() => contents,
        _ => return Err(Refusal::new(400, "* GenerateContentRequest.contents: contents is not specified\n")),
    };
    let mut asked = Asked { model, ..Asked::default() };
    for (place, content) in contents.iter().enumerate() {
        let role = match content.get("role") {
            None => "user",
            Some(role) => role.as_str().filter(|role| ["user", "model"].contains(role)).unwrap_or_default(),
        };
        if role.is_empty() {
            return Err(Refusal::new(400, "Please use a valid role: user, model."));
        }
        let text = parts(content, &format!("contents[{place}]"))?;
        asked.input_tokens += count_tokens(&text) + 1;
        if role == "user" {
            asked.prompt = text;
        }
    }
    Ok(asked)
}

/// The text of a content, whose parts may not be missing or empty.
fn parts(content: &Value, at: &str) -> Result<String, Refusal> {
    let at = format!("* GenerateContentRequest.{at}.parts");
    let parts = content.get("parts").and_then(Value::as_array).filter(|parts| !parts.is_empty());
    let Some(parts) = parts else {
        return Err(Refusal::new(400, format!("{at}: contents.parts must not be empty.\n")));
    };
    let is_data = |part: &Value| {
        let fields = part.as_object().into_iter().flatten();
        fields
            .filter(|(name, _)| !["thought", "thoughtSignature", "thought_signature"].contains(&name.as_str()))
            .count()
            == 1
    };
    if let Some(place) = parts.iter().position(|part| !is_data(part)) {
        let message = format!("{at}[{place}].data: required oneof field 'data' must have one initialized field\n");
        return Err(Refusal::new(400, message));
    }
    Ok(parts.iter().filter_map(|part| part.get("text")?.as_str()).collect())
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
            {"role":"user","parts":[{"text":"One "},{"inlineData":{}},{"text":"two"}]},
            {"role":"model","parts":[{"text":"Three","thoughtSignature":"eA=="}]}],
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
            (r#"{"maxTokens":5}"#, r#"Unknown name \"maxTokens\" at 'generation_config'"#),
        ] {
            let body = format!(r#"{{"contents":[{{"parts":[{{"text":"x"}}]}}],"generationConfig":{config}}}"#);
            let (status, message) = ask(PATH, &[KEY], &body).unwrap_err();
            assert!(status == 400 && message.contains(said), "{config}: {status} {message}");
        }
    }
}
