//! What a body says, read with tolerance: providers, gateways and proxies write errors in some thirty shapes.

use super::duration;
use crate::provider::{AnswerFault, Failure};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// The most of a provider's message that is kept, in bytes.
const MESSAGE_CAP: usize = 2_048;
/// How much of a body that is no JSON is searched for an event of a stream.
const EVENT_SCAN: usize = 65_536;

/// JSON pointers to an error object or an error text: `OpenAI` and nearly all, `OpenAI`'s responses, Groq's streams,
/// `OpenRouter`'s choices.
const ERRORS: &[&str] = &["/error", "/response/error", "/x_groq/error", "/choices/0/error"];
/// Where the error object has its message, when it is an object.
const MESSAGES: &[&str] = &["/message", "/msg", "/detail"];
/// Where a body without an error object has it. Mistral wraps the list of `FastAPI` in `message`, `MiniMax` has
/// `base_resp`, Cloudflare `errors`, AWS sometimes a capital.
const FLAT_MESSAGES: &[&str] = &[
    "/message",
    "/Message",
    "/detail",
    "/detail/0/msg",
    "/msg",
    "/detail/message",
    "/message/detail/0/msg",
    "/errors/0/message",
    "/errors/0",
    "/base_resp/status_msg",
    "/error_description",
    "/title",
];
/// Where an error object has its code.
const CODES: &[&str] = &["/code", "/details/error_code", "/error_code"];
/// Where a flat body has it.
const FLAT_CODES: &[&str] = &["/code", "/base_resp/status_code", "/errors/0/code"];
/// Where an error object has its type. Gemini's is `status`.
const TYPES: &[&str] = &["/type", "/status", "/metadata/error_type"];
/// Where a flat body has it. AWS: `__type`.
const FLAT_TYPES: &[&str] = &["/type", "/__type"];
/// Where an error object has further words for machines: Azure, Anthropic, `OpenRouter`.
const WORDS: &[&str] = &[
    "/code",
    "/type",
    "/status",
    "/innererror/code",
    "/details/error_code",
    "/metadata/error_type",
    "/metadata/provider_code",
    "/metadata/limit_source",
];
/// Where a status hides in an error object.
const STATUSES: &[&str] = &["/code", "/status", "/status_code", "/http_code", "/http_status"];
/// Where it hides in a flat body.
const FLAT_STATUSES: &[&str] = &["/status_code", "/raw_status_code", "/code", "/status", "/originalStatusCode"];
/// Where a reply says why it ended: the only word in an answer that failed without an error object.
const FINISH: &[&str] = &["/choices/0/finish_reason", "/candidates/0/finishReason", "/stopReason"];
/// Where the categories of a content filter are: Azure, `OpenRouter`, Gemini.
const CATEGORIES: &[&str] = &[
    "/error/innererror/content_filter_result",
    "/error/innererror/content_filter_results",
    "/error/metadata/reasons",
    "/choices/0/content_filter_results",
    "/prompt_filter_results/0/content_filter_results",
    "/promptFeedback/safetyRatings",
    "/candidates/0/safetyRatings",
];
/// Where a provider says when a quota returns, as a moment.
const RESETS: &[&str] = &["/error/metadata/resets_at", "/error/resets_at", "/resets_at"];
/// Where it says in how many seconds.
const RESETS_IN: &[&str] = &["/error/resets_in_seconds", "/resets_in_seconds"];

/// What a body says.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    /// The body as JSON.
    pub(super) json: Option<Value>,
    /// Whether there is an error in it, whatever the status.
    pub(super) is_error: bool,
    /// The provider's message.
    pub(super) message: Option<String>,
    /// The provider's code.
    pub(super) code: Option<String>,
    /// The provider's error type.
    pub(super) kind: Option<String>,
    /// Every word for machines, [squeezed](squeeze).
    pub(super) words: Vec<String>,
    /// The status that the error object names as its own.
    pub(super) status: Option<u16>,
}

impl Spoken {
    /// Reads the body of a failure, and AWS's header beside it.
    pub(super) fn read(failure: &Failure<'_>) -> Self {
        let refused = failure.status.is_some_and(|status| status >= 400);
        let expected = refused || failure.status.is_none() || failure.fault == Some(AnswerFault::Error);
        let mut spoken = Self { json: json(failure), ..Self::default() };
        if let Some(root) = spoken.json.take() {
            spoken.listen(&root, expected);
            spoken.json = Some(root);
        }
        // "AccessDeniedException:http://internal.amazon.com/coral/..": the name ends at the colon.
        if let Some(name) = failure.header("x-amzn-errortype").and_then(|h| h.split(':').next()) {
            spoken.is_error = true;
            spoken.kind = Some(name.trim().to_owned());
            spoken.words.push(squeeze(name));
        }
        // In AWS's event streams the name of the event is that of the exception.
        if let Some(name) = failure.event.filter(|name| name.ends_with("Exception")) {
            spoken.is_error = true;
            spoken.kind = Some(name.to_owned());
            spoken.words.push(squeeze(name));
        }
        if refused && spoken.message.is_none() {
            spoken.message = plain_text(failure);
        }
        spoken
    }

    fn listen(&mut self, root: &Value, expected: bool) {
        let error = first(root, ERRORS, Some).filter(|e| is_something(e));
        self.is_error = error.is_some() || is_flat_error(root);
        if !(self.is_error || expected) {
            return; // a reply: its fields are not a provider's words about an error
        }
        let nothing = Value::Null;
        let error = error.unwrap_or(&nothing);
        self.message = message(error, root);
        self.code = first(error, CODES, scalar).or_else(|| first(root, FLAT_CODES, scalar));
        let (types, of) = if error.is_object() { (TYPES, error) } else { (FLAT_TYPES, root) };
        self.kind = first(of, types, name);
        if !self.is_error && self.code.is_none() {
            self.code = first(root, FINISH, name);
        }
        self.status = first(error, STATUSES, status).or_else(|| first(root, FLAT_STATUSES, status));
        let listed = each(error, "/details", "/reason").chain(
            list(error, "/details").flat_map(|detail| each(detail, "/violations", "/quotaId")), // Google
        );
        let words = WORDS.iter().filter_map(|at| error.pointer(at)).chain(listed).filter_map(scalar);
        self.words.extend(words.chain(self.code.clone()).chain(self.kind.clone()).map(|word| squeeze(&word)));
    }

    /// Whether one of the machine words is `word`, in whichever case and with whichever separators it is written.
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|w| same_word(w, word))
    }

    /// Whether one of the machine words has `part` in it.
    pub(super) fn has_word_part(&self, part: &str) -> bool {
        let part = squeeze(part);
        self.words.iter().any(|w| w.contains(&part))
    }

    /// Whether there is something at this JSON pointer.
    pub(super) fn has_field(&self, at: &str) -> bool {
        self.json.as_ref().and_then(|json| json.pointer(at)).is_some_and(is_something)
    }

    /// The categories of a content filter that caught something.
    pub(super) fn categories(&self) -> Vec<String> {
        let Some(json) = &self.json else { return Vec::new() };
        let caught = CATEGORIES.iter().filter_map(|at| json.pointer(at)).map(|found| match found {
            Value::Object(ratings) => {
                ratings.iter().filter(|(_, r)| is_true(r, "filtered")).map(|(k, _)| k.clone()).collect()
            }
            Value::Array(items) => items
                .iter()
                .filter_map(|item| {
                    item.as_str().or_else(|| item.get("category")?.as_str().filter(|_| is_true(item, "blocked")))
                })
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        });
        caught.into_iter().find(|categories: &Vec<_>| !categories.is_empty()).unwrap_or_default()
    }

    /// When the body says that a quota returns.
    pub(super) fn resets_at(&self, now: Option<SystemTime>) -> Option<SystemTime> {
        let json = self.json.as_ref()?;
        first(json, RESETS, |v| duration::moment(&scalar(v)?))
            .or_else(|| now?.checked_add(first(json, RESETS_IN, |v| duration::seconds(&scalar(v)?))?))
            .or_else(|| regained(self.message.as_deref()?))
    }

    /// The wait in a `RetryInfo`, as Google's APIs document it: `"34.07s"`, or seconds and nanoseconds.
    pub(super) fn retry_info(&self) -> Option<Duration> {
        let error = first(self.json.as_ref()?, ERRORS, Some)?;
        list(error, "/details").find_map(|detail| match detail.get("retryDelay")? {
            Value::String(text) => duration::units(text),
            delay => {
                let part = |name| delay.get(name).and_then(Value::as_f64).unwrap_or(0.0);
                duration::of_seconds(part("seconds") + part("nanos") / 1e9)
            }
        })
    }
}

/// The moment in Anthropic's "You will regain access on 2026-04-01 at 00:00 UTC."
fn regained(said: &str) -> Option<SystemTime> {
    let (_, after) = said.split_once("regain access on ")?;
    let time = after.get(10..).and_then(|rest| rest.strip_prefix(" at ")?.get(..5)).unwrap_or("00:00");
    duration::rfc3339(&format!("{}T{time}:00Z", after.get(..10)?))
}

/// A word without case and separators: `DeploymentNotFound` and `deployment_not_found` are the same word.
pub(super) fn squeeze(word: &str) -> String {
    letters(word).collect()
}

fn same_word(squeezed: &str, word: &str) -> bool {
    letters(word).eq(squeezed.chars())
}

/// Whether two words are the same but for case and separators.
pub(super) fn is_word(a: &str, b: &str) -> bool {
    letters(a).eq(letters(b))
}

fn letters(word: &str) -> impl Iterator<Item = char> {
    // "com.amazon.coral#ThrottlingException": the namespace before the # is no part of the name.
    word.rsplit('#').next().unwrap_or(word).chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase())
}

/// The body as JSON: whole, or its first line, or the first event of a stream that carries an error. Gemini without SSE
/// wraps the error in an array.
fn json(failure: &Failure<'_>) -> Option<Value> {
    let body = failure.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(failure.body).trim_ascii_start();
    let whole = || serde_json::from_slice(body).ok();
    let line = || serde_json::Deserializer::from_slice(body).into_iter().next()?.ok();
    let found = match body.first()? {
        b'{' | b'[' | b'"' => whole().or_else(line)?,
        _ => event(body)?,
    };
    Some(match found {
        Value::Array(items) if items.first().is_some_and(Value::is_object) => items.into_iter().next()?,
        found => found,
    })
}

/// The first event of an SSE body that carries an error. llama.cpp writes a field `error:` with the bare error object.
fn event(body: &[u8]) -> Option<Value> {
    let text = lossless(body.get(..EVENT_SCAN).unwrap_or(body))?;
    text.lines().find_map(|line| {
        if let Some(data) = line.strip_prefix("data:") {
            let value: Value = serde_json::from_str(data).ok()?;
            (is_flat_error(&value) || first(&value, ERRORS, Some).is_some_and(is_something)).then_some(value)
        } else {
            let error: Value = serde_json::from_str(line.strip_prefix("error:")?).ok()?;
            Some(serde_json::json!({ "error": error }))
        }
    })
}

fn message(error: &Value, root: &Value) -> Option<String> {
    // OpenRouter's own message is "Provider returned error"; what the provider said is in `raw`, as text or as JSON.
    let raw = || error.pointer("/metadata/raw").and_then(foreign);
    let own = || text(error).or_else(|| first(error, MESSAGES, text)).map(|m| inner(&m).unwrap_or(m));
    let flat = || text(root).or_else(|| first(root, FLAT_MESSAGES, text));
    raw().or_else(own).or_else(flat).map(|m| clip(&m))
}

/// What another provider said, passed on as text or as JSON. A page is not passed on.
fn foreign(raw: &Value) -> Option<String> {
    match raw {
        Value::String(said) => inner(said).or_else(|| text(raw).filter(|t| !t.trim_start().starts_with('<'))),
        raw => message(raw.get("error").unwrap_or(&Value::Null), raw),
    }
}

/// The message within a text that is itself an error body.
fn inner(text: &str) -> Option<String> {
    let text = text.trim();
    let nested: Value = text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()?;
    // One level: what is nested deeper is shown as it is.
    let error = nested.get("error").unwrap_or(&Value::Null);
    self::text(error)
        .or_else(|| first(error, MESSAGES, self::text))
        .or_else(|| first(&nested, FLAT_MESSAGES, self::text))
}

/// A body that is text and neither a page nor binary, as a message.
fn plain_text(failure: &Failure<'_>) -> Option<String> {
    let body = failure.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(failure.body).trim_ascii();
    if is_page(failure) || matches!(body, b"" | b"{}" | b"[]" | b"null" | b"\"\"") {
        return None;
    }
    let text = lossless(body.get(..=MESSAGE_CAP).unwrap_or(body))?;
    let is_binary = text.chars().any(|c| c.is_control() && !c.is_whitespace());
    (!is_binary).then(|| clip(text))
}

/// The text of these bytes, a character that was cut off at their end left out; nothing where they are not UTF-8.
fn lossless(bytes: &[u8]) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(e) if e.error_len().is_none() => std::str::from_utf8(bytes.get(..e.valid_up_to())?).ok(),
        Err(_) => None,
    }
}

/// Whether the body is HTML or XML, by its header or by its first character.
fn is_page(failure: &Failure<'_>) -> bool {
    let declared = media_type(failure).is_some_and(|m| m.eq_ignore_ascii_case("text/html") || m.ends_with("xhtml+xml"));
    declared || failure.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(failure.body).trim_ascii_start().starts_with(b"<")
}

/// The media type of the answer, without its parameters.
pub(super) fn media_type<'a>(failure: &Failure<'a>) -> Option<&'a str> {
    let media = failure.header("content-type")?.split(';').next()?.trim();
    (!media.is_empty() && media.len() <= 64).then_some(media)
}

/// Cuts a text to [`MESSAGE_CAP`], at the end of a word: half a key in it could no longer be found and hidden.
fn clip(text: &str) -> String {
    let text = text.trim();
    if text.len() <= MESSAGE_CAP {
        return text.to_owned();
    }
    let mut end = MESSAGE_CAP;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = &text[..end];
    head[..head.rfind(char::is_whitespace).unwrap_or(end)].trim_end().to_owned()
}

fn first<'a, T>(value: &'a Value, pointers: &[&str], read: impl Fn(&'a Value) -> Option<T>) -> Option<T> {
    pointers.iter().find_map(|at| read(value.pointer(at)?))
}

fn list<'a>(value: &'a Value, at: &str) -> std::slice::Iter<'a, Value> {
    value.pointer(at).and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter()
}

fn each<'a>(value: &'a Value, at: &str, then: &'static str) -> impl Iterator<Item = &'a Value> {
    list(value, at).filter_map(move |item| item.pointer(then))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|s| !s.trim().is_empty()).map(str::to_owned)
}

/// A text or a number, as text.
fn scalar(value: &Value) -> Option<String> {
    text(value).or_else(|| value.as_number().map(ToString::to_string))
}

/// A text that names something: not a number, and not the bare word "error".
fn name(value: &Value) -> Option<String> {
    text(value).filter(|t| duration::number(t).is_none() && t != "error")
}

/// A number or numeric text that is the status of an error.
fn status(value: &Value) -> Option<u16> {
    scalar(value)?.parse().ok().filter(|status| (400..600).contains(status))
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.trim().is_empty(),
        Value::Number(_) | Value::Bool(_) | Value::Null => false,
    }
}

fn is_true(value: &Value, field: &str) -> bool {
    value.get(field) == Some(&Value::Bool(true))
}

/// Whether a body without an error object says that it is one: Anthropic, old vLLM and Mistral, AWS, `MiniMax`,
/// Cloudflare.
fn is_flat_error(root: &Value) -> bool {
    let is = |field: &str| root.get(field).and_then(Value::as_str) == Some("error");
    is("type")
        || is("object")
        || root.get("__type").is_some_and(Value::is_string)
        || root.pointer("/base_resp/status_code").is_some_and(|code| code.as_i64().is_some_and(|code| code != 0))
        || root.get("errors").is_some_and(is_something)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    fn read(status: u16, body: &str) -> Spoken {
        Spoken::read(&Failure::answer(status, &HeaderMap::new(), body.as_bytes()))
    }

    #[test]
    fn messages_are_found_in_every_shape() {
        for (body, expected) in [
            (r#"{"error":{"message":"a","type":"t"}}"#, "a"),
            (r#"{"error":"b"}"#, "b"),
            (r#"{"object":"error","message":"c"}"#, "c"),
            (r#"{"detail":"d"}"#, "d"),
            (r#"{"detail":[{"loc":["body","seed"],"msg":"e"}]}"#, "e"),
            (r#"{"msg":"f"}"#, "f"),
            (r#"{"Message":"g"}"#, "g"),
            (r#"[{"error":{"message":"h"}}]"#, "h"),
            (r#"{"object":"error","message":{"detail":[{"msg":"i"}]}}"#, "i"),
            (r#"{"success":false,"errors":[{"code":1,"message":"j"}]}"#, "j"),
            (r#"{"error":{"message":"Provider returned error","metadata":{"raw":"k"}}}"#, "k"),
            (r#"{"error":{"message":"x","metadata":{"raw":"{\"error\":{\"message\":\"l\"}}"}}}"#, "l"),
            (r#"{"error":{"message":"x","metadata":{"raw":{"detail":"m"}}}}"#, "m"),
            (r#"{"error":{"message":"n","metadata":{"raw":"<html>no</html>"}}}"#, "n"),
            (r#"{"error":"{\"error\":{\"message\":\"o\"}}"}"#, "o"),
            (r#"{"type":"response.failed","response":{"error":{"message":"p"}}}"#, "p"),
            (r#"{"code":"Permission denied","error":"q"}"#, "q"),
            ("\u{feff}\n {\"error\":\"r\"}", "r"),
            ("{\"error\":\"s\"}\n{\"done\":true}\n", "s"),
            ("event: error\ndata: {\"error\":{\"message\":\"t\"}}\n\n", "t"),
            ("error: {\"code\":400,\"message\":\"u\"}\n\n", "u"),
            ("upstream connect error, overflow", "upstream connect error, overflow"),
            (r#""quoted""#, "quoted"),
            (r#"{"unheard":"of"}"#, r#"{"unheard":"of"}"#),
        ] {
            assert_eq!(read(500, body).message.as_deref(), Some(expected), "{body}");
        }
    }

    #[test]
    fn pages_and_binary_bodies_have_no_message() {
        for body in ["<!DOCTYPE html><p>secret</p>", "\u{feff} <?xml version='1.0'?>", "", "{}", " null ", "a\0b"] {
            assert_eq!(read(502, body).message, None, "{body}");
        }
        let mut headers = HeaderMap::new();
        headers.insert("content-type", http::HeaderValue::from_static("text/html; charset=utf-8"));
        assert_eq!(Spoken::read(&Failure::answer(502, &headers, b"Bad gateway")).message, None);
        assert_eq!(Spoken::read(&Failure::answer(502, &headers, b"\x1f\x8b\x08\xff")).message, None);
    }

    #[test]
    fn a_reply_is_never_a_message() {
        for body in [
            r#"{"choices":[{"message":{"content":"private"}}],"error":null}"#,
            r#"{"message":"private","type":"message"}"#,
            "private",
        ] {
            let spoken = read(200, body);
            assert!(!spoken.is_error && spoken.message.is_none() && spoken.words.is_empty(), "{body}");
        }
    }

    #[test]
    fn a_long_message_is_cut_between_words() {
        let spoken = read(500, &"word sk-0123456789 ".repeat(500));
        let message = spoken.message.unwrap_or_default();
        assert!(message.len() <= MESSAGE_CAP && (message.ends_with("word") || message.ends_with("sk-0123456789")));
        let spoken = read(500, &format!("{{\"error\":\"{}\"}}", "é".repeat(4_000)));
        assert_eq!(spoken.message.map(|m| m.len()), Some(MESSAGE_CAP));
    }

    #[test]
    fn codes_types_and_statuses_are_found() {
        for (body, code, kind, status) in [
            (r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#, Some("503"), Some("UNAVAILABLE"), Some(503)),
            (r#"{"error":{"code":"429","message":"m"}}"#, Some("429"), None, Some(429)),
            (r#"{"error":{"code":"content_filter","status":400}}"#, Some("content_filter"), None, Some(400)),
            (r#"{"object":"error","type":"rate_limited","code":"1300"}"#, Some("1300"), Some("rate_limited"), None),
            (r#"{"type":"error","code":"server_error","message":"m"}"#, Some("server_error"), None, None),
            (r#"{"__type":"com.amazon#ThrottlingException"}"#, None, Some("com.amazon#ThrottlingException"), None),
            (r#"{"choices":[{"finish_reason":"error","error":{"code":502}}]}"#, Some("502"), None, Some(502)),
            (r#"{"type":"response.failed","response":{"error":{"code":"x"}}}"#, Some("x"), None, None),
            (r#"{"status_code":429,"error":{"message":"m"}}"#, None, None, Some(429)),
            (
                r#"{"type":"error","error":{"type":"rate_limit_error","details":{"error_code":"ramp_limit_exceeded"}}}"#,
                Some("ramp_limit_exceeded"),
                Some("rate_limit_error"),
                None,
            ),
        ] {
            let spoken = read(200, body);
            assert!(spoken.is_error, "{body}");
            assert_eq!((spoken.code.as_deref(), spoken.kind.as_deref(), spoken.status), (code, kind, status), "{body}");
        }
        assert!(read(200, r#"{"__type":"com.amazon#ThrottlingException"}"#).has_word("throttling_exception"));
    }

    #[test]
    fn categories_are_those_that_caught_something() {
        for (body, expected) in [
            (
                r#"{"error":{"innererror":{"content_filter_result":{"hate":{"filtered":false},"violence":{"filtered":true}}}}}"#,
                "violence",
            ),
            (r#"{"error":{"metadata":{"reasons":["self-harm"]}}}"#, "self-harm"),
            (r#"{"candidates":[{"safetyRatings":[{"category":"A"},{"category":"B","blocked":true}]}]}"#, "B"),
        ] {
            assert_eq!(read(400, body).categories(), [expected], "{body}");
        }
    }
}
