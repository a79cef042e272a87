//! Gemini's `generateContent`, on the Developer API and under the paths of Vertex AI.

mod conversation;
mod read;
mod signature;
mod tools;
mod write;

use super::answer::{Failure, Reply};
use super::delivery::Piece;
use super::http1::Request;
use super::protocol::{Asked, Body, Protocol, Rendered};
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Gemini;

impl Protocol for Gemini {
    fn base_path(&self) -> &'static str {
        "/v1beta"
    }

    fn read(&self, request: &Request, _: &str) -> Result<Asked, Rendered> {
        read::read(request)
    }

    fn reply(&self, reply: &Reply, asked: &Asked, id: &str) -> Rendered {
        write::write(reply, asked, id)
    }

    fn event(&self, data: &str) -> Piece {
        Piece::from(format!("data: {data}\r\n\r\n"))
    }

    fn failure(&self, failure: &Failure, model: Option<&str>, _: &str) -> Rendered {
        let model = model.unwrap_or("the-model");
        match failure {
            Failure::BadRequest(message) => Refusal::new(400, message).render(),
            Failure::InSuccess { code, message } => {
                let error = json!({"message": message, "status": code.to_ascii_uppercase()});
                Rendered::json(200, &json!({ "error": error }))
            }
            Failure::Overloaded => Refusal::new(503, "The model is overloaded. Please try again later.").render(),
            Failure::QuotaExhausted => {
                // The trap is the provider's own: it advises a short wait although the quota is that of a day.
                let quota = Quota { id: "GenerateRequestsPerDayPerProjectPerModel-FreeTier", value: 250 };
                quota.refusal(model, Duration::from_millis(36_100)).render()
            }
            Failure::RateLimited(wait) => {
                let quota = Quota { id: "GenerateRequestsPerMinutePerProjectPerModel", value: 10 };
                quota.refusal(model, *wait).render()
            }
            Failure::Status(status) => Refusal::of_status(*status, model).render(),
            Failure::Unauthorized => invalid_key().render(),
        }
    }
}

/// An error object and the status it comes with.
struct Refusal {
    status: u16,
    message: String,
    details: Vec<Value>,
}

impl Refusal {
    fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), details: Vec::new() }
    }

    /// With a detail of this type of `google.rpc`.
    fn detail(mut self, kind: &str, mut detail: Value) -> Self {
        detail["@type"] = format!("type.googleapis.com/google.rpc.{kind}").into();
        self.details.push(detail);
        self
    }

    fn of_status(status: u16, model: &str) -> Self {
        match status {
            401 => {
                let message = "Request had invalid authentication credentials. Expected OAuth 2 access token, login \
                               cookie or other valid authentication credential.";
                Self::new(401, message)
            }
            403 => Self::new(403, "The caller does not have permission"),
            404 => {
                let message = format!(
                    "models/{model} is not found for API version v1beta, or is not supported for generateContent. Call \
                     ListModels to see the list of available models and their supported methods."
                );
                Self::new(404, message)
            }
            429 => Self::new(429, "Resource has been exhausted (e.g. check quota)."),
            500 => Self::new(500, "An internal error has occurred. Please retry."),
            501 => Self::new(501, "Operation is not implemented, or supported, or enabled."),
            503 => Self::new(503, "The service is currently unavailable."),
            504 => Self::new(504, "Deadline expired before operation could complete."),
            400..=499 => Self::new(status, "Request contains an invalid argument."),
            _ => Self::new(status, "An error has occurred."),
        }
    }

    fn render(self) -> Rendered {
        let Self { status, message, details } = self;
        let mut error = json!({"code": status, "message": message, "status": status_name(status)});
        if !details.is_empty() {
            error["details"] = details.into();
        }
        Rendered::json(status, &json!({ "error": error }))
    }
}

/// The name of gRPC for a status of HTTP.
fn status_name(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        402 | 429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        400..=498 => "INVALID_ARGUMENT",
        501 => "UNIMPLEMENTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500..=599 => "INTERNAL",
        _ => "UNKNOWN",
    }
}

/// A key that is wrong is a bad argument.
fn invalid_key() -> Refusal {
    let info = json!({
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com"},
    });
    Refusal::new(400, "API key not valid. Please pass a valid API key.").detail("ErrorInfo", info)
}

/// A quota that is used up. The wording is the same for every window; the id tells them apart.
struct Quota {
    id: &'static str,
    value: u32,
}

impl Quota {
    fn refusal(&self, model: &str, wait: Duration) -> Refusal {
        let (metric, wait) = ("generativelanguage.googleapis.com/generate_content_requests", protobuf(wait));
        let message = format!(
            "You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: \
             {metric}, limit: {}, model: {model}\nPlease retry in {wait}.",
            self.value
        );
        let violation = json!({
            "quotaMetric": metric,
            "quotaId": self.id,
            "quotaDimensions": {"location": "global", "model": model},
            "quotaValue": self.value.to_string(),
        });
        let help = json!({"description": "Learn more about Gemini API quotas",
            "url": "https://ai.google.dev/gemini-api/docs/rate-limits"});
        Refusal::new(429, message)
            .detail("Help", json!({"links": [help]}))
            .detail("QuotaFailure", json!({"violations": [violation]}))
            .detail("RetryInfo", json!({"retryDelay": wait}))
    }
}

/// `46.5s`: how protocol buffers write a time.
fn protobuf(duration: Duration) -> String {
    let text = format!("{}.{:09}", duration.as_secs(), duration.subsec_nanos());
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The page that Google's front end answers with where it has no method.
fn no_such_page(path: &str) -> Rendered {
    let page = format!(
        "<!DOCTYPE html>\n<html lang=en>\n<title>Error 404 (Not Found)!!1</title>\n<p><b>404.</b> <ins>That\u{2019}s an \
         error.</ins>\n<p>The requested URL <code>{path}</code> was not found on this server.\n"
    );
    let headers = vec![("content-type", "text/html; charset=UTF-8".to_owned())];
    Rendered { status: 404, headers, body: Body::Whole(page.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::answer::Called;

    fn body_of(rendered: &Rendered) -> Value {
        match &rendered.body {
            Body::Whole(bytes) => serde_json::from_slice(bytes).unwrap_or_default(),
            Body::Stream(_) | Body::Ended(..) => Value::Null,
        }
    }

    #[test]
    fn a_time_is_written_as_protocol_buffers_do() {
        for (millis, text) in [(46_500, "46.5s"), (34_000, "34s"), (50, "0.05s"), (0, "0s"), (100_000, "100s")] {
            assert_eq!(protobuf(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn the_window_of_a_quota_is_in_its_id() {
        for (failure, window, wait) in [
            (Failure::RateLimited(Duration::from_millis(50)), "PerMinute", "0.05s"),
            (Failure::QuotaExhausted, "PerDay", "36.1s"),
        ] {
            let limited = Gemini.failure(&failure, Some("m"), "1");
            assert_eq!(limited.status, 429);
            assert!(limited.headers.iter().all(|(name, _)| *name == "content-type"), "the wait is in the body alone");
            let error = body_of(&limited)["error"].take();
            assert_eq!(error["status"], "RESOURCE_EXHAUSTED");
            let detail = |kind: &str| {
                let mut details = error["details"].as_array().into_iter().flatten();
                details.find(|d| d["@type"].as_str().is_some_and(|t| t.ends_with(kind))).cloned().unwrap()
            };
            let quota = detail("QuotaFailure")["violations"][0]["quotaId"].to_string();
            assert!(quota.contains(window), "{quota}");
            assert_eq!(detail("RetryInfo")["retryDelay"], wait);
        }
    }

    #[test]
    fn a_wrong_key_is_a_bad_argument() {
        let refused = Gemini.failure(&Failure::Unauthorized, None, "1");
        let error = body_of(&refused)["error"].take();
        assert_eq!((refused.status, &error["status"]), (400, &json!("INVALID_ARGUMENT")));
        assert_eq!(error["details"][0]["reason"], "API_KEY_INVALID");
    }

    #[test]
    fn what_is_empty_is_left_out_of_a_reply() {
        let reply = Reply { text: Some(String::new()), usage: Some((8, 0)), ..Reply::default() };
        let asked = Asked { model: "m".to_owned(), ..Asked::default() };
        let body = body_of(&Gemini.reply(&reply, &asked, "1"));
        assert_eq!(body["candidates"][0]["content"], json!({"role": "model"}));
        assert_eq!(body["usageMetadata"].get("candidatesTokenCount"), None);
        assert_eq!(body["modelVersion"], "m");
    }

    /// The events of a stream, and its media type.
    fn streamed(reply: &Reply, model: &str, stream_list: bool) -> (String, Vec<String>) {
        let asked = Asked { model: model.to_owned(), stream: true, stream_list, ..Asked::default() };
        let rendered = Gemini.reply(reply, &asked, "1");
        let Body::Stream(pieces) = rendered.body else { panic!("no stream") };
        let text = |piece: Piece| match piece {
            Piece::Bytes(bytes) => String::from_utf8(bytes.into()).unwrap(),
            Piece::Pause(_) => String::new(),
        };
        (rendered.headers[0].1.clone(), pieces.into_iter().map(text).collect())
    }

    fn thinking() -> Reply {
        let tool = Called { id: None, name: "get_time".to_owned(), arguments: "{}".to_owned() };
        let reasoning = Some("Hm, well.".to_owned());
        Reply {
            text: Some("It is".to_owned()),
            reasoning,
            tool_calls: vec![tool],
            usage: Some((4, 9)),
            ..Reply::default()
        }
    }

    #[test]
    fn a_stream_is_events_that_each_hold_a_piece_and_the_count_so_far() {
        let (media_type, events) = streamed(&thinking(), "gemini-4-argon", false);
        assert_eq!(media_type, "text/event-stream");
        let read = |event: &String| -> Value {
            let data = event.strip_prefix("data: ").and_then(|data| data.strip_suffix("\r\n\r\n"));
            serde_json::from_str(data.unwrap()).unwrap()
        };
        let events: Vec<_> = events.iter().map(read).collect();
        let parts: Vec<_> = events.iter().map(|event| &event["candidates"][0]["content"]["parts"][0]).collect();
        assert_eq!(parts[0], &json!({"text": "Hm, well.", "thought": true}));
        assert_eq!((&parts[1]["text"], &parts[2]["text"]), (&json!("It"), &json!(" is")));
        assert_eq!(parts[3]["functionCall"], json!({"id": "fc-1-0", "name": "get_time", "args": {}}));
        assert!(parts[3]["thoughtSignature"].is_string());
        assert_eq!((parts[4], parts.len()), (&json!({"text": ""}), 5));
        let reasons: Vec<_> = events.iter().map(|event| &event["candidates"][0]["finishReason"]).collect();
        assert_eq!((reasons[3], reasons[4]), (&Value::Null, &json!("STOP")));
        let counts: Vec<_> = events.iter().map(|event| event["usageMetadata"]["totalTokenCount"].as_u64()).collect();
        assert_eq!(counts, [Some(7), Some(8), Some(9), Some(9), Some(13)]);
    }

    #[test]
    fn without_alt_sse_a_stream_is_a_list() {
        let (media_type, pieces) = streamed(&thinking(), "gemini-2.5-flash", true);
        assert!(media_type.starts_with("application/json"), "{media_type}");
        let list: Value = serde_json::from_str(&pieces.concat()).unwrap();
        assert_eq!((list.as_array().map(Vec::len), pieces.len()), (Some(5), 5));
        let called = &list[3]["candidates"][0]["content"]["parts"][0];
        assert_eq!(called, &json!({"functionCall": {"name": "get_time", "args": {}}}), "older models sign nothing");
    }

    #[test]
    fn the_words_of_a_model_that_signs_are_signed() {
        let reply = Reply { text: Some("Hi".to_owned()), ..Reply::default() };
        let asked = Asked { model: "gemini-4-argon".to_owned(), ..Asked::default() };
        let body = body_of(&Gemini.reply(&reply, &asked, "1"));
        assert!(body["candidates"][0]["content"]["parts"][0]["thoughtSignature"].is_string());
    }
}
