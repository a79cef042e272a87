//! The JSON form of the records: the names, what is left out, and bodies that are written once.
//!
//! The records are plain structs; what is serialized are the structs below, which are made from them by one walk over the
//! tree. The walk is the same in both directions (request, attempts, targets), so a reader meets a body before any
//! reference to it.

use super::attempt::{Attempt, Next, StopReason, TargetAttempt};
use super::request::{Body, RequestSnapshot};
use super::snapshot::ErrorSnapshot;
use super::{ErrorCode, ErrorKind, Issues, millis, timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

#[derive(Deserialize, Serialize)]
struct ErrorForm {
    kind: ErrorKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<ErrorCode>,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "millis::optional")]
    retry_after_ms: Option<Duration>,
    retryable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issues: Option<Issues>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<RequestForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<AttemptForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    targets: Vec<TargetForm>,
}

#[derive(Deserialize, Serialize)]
struct AttemptForm {
    index: u32,
    error: ErrorForm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<RequestForm>,
    #[serde(with = "timestamp")]
    started_at: SystemTime,
    #[serde(with = "millis")]
    duration_ms: Duration,
    #[serde(with = "millis")]
    queued_ms: Duration,
    next: NextForm,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum NextForm {
    Retried {
        #[serde(with = "millis")]
        after_ms: Duration,
        advised: bool,
    },
    Stopped(StopReason),
}

#[derive(Deserialize, Serialize)]
struct TargetForm {
    target: usize,
    name: String,
    provider: String,
    model: String,
    error: ErrorForm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<RequestForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<AttemptForm>,
}

#[derive(Deserialize, Serialize)]
struct RequestForm {
    provider: String,
    name: String,
    model: String,
    method: String,
    url: String,
    headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_same_as: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    body_truncated: bool,
    #[serde(with = "timestamp")]
    started_at: SystemTime,
}

/// The bodies met so far while writing, by their bytes.
#[derive(Default)]
struct Written(HashMap<(bytes::Bytes, bool), String>);

impl Written {
    fn error(&mut self, at: &str, e: &ErrorSnapshot) -> ErrorForm {
        ErrorForm {
            kind: e.kind,
            code: e.code,
            message: e.message.clone(),
            status: e.status,
            retry_after_ms: e.retry_after,
            retryable: e.retryable,
            provider_code: e.provider_code.clone(),
            provider_type: e.provider_type.clone(),
            provider_message: e.provider_message.clone(),
            request_id: e.request_id.clone(),
            issues: e.issues.clone(),
            request: self.request(at, e.request.as_ref()),
            attempts: self.attempts(at, &e.attempts),
            targets: (e.targets.iter().enumerate())
                .map(|(i, t)| self.target(&format!("{at}/targets/{i}"), t))
                .collect(),
        }
    }

    fn attempts(&mut self, at: &str, attempts: &[Attempt]) -> Vec<AttemptForm> {
        attempts.iter().enumerate().map(|(i, a)| self.attempt(&format!("{at}/attempts/{i}"), a)).collect()
    }

    fn attempt(&mut self, at: &str, a: &Attempt) -> AttemptForm {
        AttemptForm {
            index: a.index,
            error: self.error(&format!("{at}/error"), &a.error),
            request: self.request(at, a.request.as_ref()),
            started_at: a.started_at,
            duration_ms: a.duration,
            queued_ms: a.queued,
            next: match a.next {
                Next::Retried { after, advised } => NextForm::Retried { after_ms: after, advised },
                Next::Stopped(reason) => NextForm::Stopped(reason),
            },
        }
    }

    fn target(&mut self, at: &str, t: &TargetAttempt) -> TargetForm {
        TargetForm {
            target: t.target,
            name: t.name.clone(),
            provider: t.provider.clone(),
            model: t.model.clone(),
            error: self.error(&format!("{at}/error"), &t.error),
            request: self.request(at, t.request.as_ref()),
            attempts: self.attempts(at, &t.attempts),
        }
    }

    fn request(&mut self, at: &str, request: Option<&RequestSnapshot>) -> Option<RequestForm> {
        let r = request?;
        let (body, body_same_as) = match &r.body {
            None => (None, None),
            Some(body) => {
                let key = (body.bytes().clone(), body.is_truncated());
                if let Some(place) = self.0.get(&key) {
                    (None, Some(place.clone()))
                } else {
                    self.0.insert(key, format!("{at}/request/body"));
                    (Some(body_value(body)), None)
                }
            }
        };
        Some(RequestForm {
            provider: r.provider.clone(),
            name: r.name.clone(),
            model: r.model.clone(),
            method: r.method.clone(),
            url: r.url.clone(),
            headers: r.headers.clone(),
            body_truncated: body.is_some() && r.body.as_ref().is_some_and(Body::is_truncated),
            body,
            body_same_as,
            started_at: r.started_at,
        })
    }
}

/// An object or an array as it is, anything else as text.
fn body_value(body: &Body) -> serde_json::Value {
    match body.json() {
        Some(value) if value.is_object() || value.is_array() => value,
        _ => String::from_utf8_lossy(body.bytes()).into_owned().into(),
    }
}

/// The bodies met so far while reading, by their place.
#[derive(Default)]
struct Read(HashMap<String, Body>);

impl Read {
    fn error(&mut self, at: &str, e: ErrorForm) -> Result<ErrorSnapshot, String> {
        Ok(ErrorSnapshot {
            kind: e.kind,
            code: e.code,
            message: e.message,
            status: e.status,
            retry_after: e.retry_after_ms,
            retryable: e.retryable,
            provider_code: e.provider_code,
            provider_type: e.provider_type,
            provider_message: e.provider_message,
            request_id: e.request_id,
            issues: e.issues,
            request: self.request(at, e.request)?,
            attempts: self.attempts(at, e.attempts)?,
            targets: (e.targets.into_iter().enumerate())
                .map(|(i, t)| self.target(&format!("{at}/targets/{i}"), t))
                .collect::<Result<_, _>>()?,
        })
    }

    fn attempts(&mut self, at: &str, attempts: Vec<AttemptForm>) -> Result<Vec<Attempt>, String> {
        attempts.into_iter().enumerate().map(|(i, a)| self.attempt(&format!("{at}/attempts/{i}"), a)).collect()
    }

    fn attempt(&mut self, at: &str, a: AttemptForm) -> Result<Attempt, String> {
        Ok(Attempt {
            index: a.index,
            error: self.error(&format!("{at}/error"), a.error)?,
            request: self.request(at, a.request)?,
            started_at: a.started_at,
            duration: a.duration_ms,
            queued: a.queued_ms,
            next: match a.next {
                NextForm::Retried { after_ms, advised } => Next::Retried { after: after_ms, advised },
                NextForm::Stopped(reason) => Next::Stopped(reason),
            },
        })
    }

    fn target(&mut self, at: &str, t: TargetForm) -> Result<TargetAttempt, String> {
        Ok(TargetAttempt {
            target: t.target,
            name: t.name,
            provider: t.provider,
            model: t.model,
            error: self.error(&format!("{at}/error"), t.error)?,
            request: self.request(at, t.request)?,
            attempts: self.attempts(at, t.attempts)?,
        })
    }

    fn request(&mut self, at: &str, request: Option<RequestForm>) -> Result<Option<RequestSnapshot>, String> {
        let Some(r) = request else { return Ok(None) };
        let body = match (r.body, r.body_same_as) {
            (Some(value), _) => {
                let bytes = match value {
                    serde_json::Value::String(text) => text.into_bytes(),
                    value => value.to_string().into_bytes(),
                };
                let body = if r.body_truncated { Body::truncated(bytes) } else { Body::new(bytes) };
                self.0.insert(format!("{at}/request/body"), body.clone());
                Some(body)
            }
            (None, Some(place)) => Some(
                self.0
                    .get(&place)
                    .cloned()
                    .ok_or_else(|| format!("body_same_as: nothing before {at} is at {place}"))?,
            ),
            (None, None) => None,
        };
        Ok(Some(RequestSnapshot {
            provider: r.provider,
            name: r.name,
            model: r.model,
            method: r.method,
            url: r.url,
            headers: r.headers,
            body,
            started_at: r.started_at,
        }))
    }
}

/// Writes and reads a record by its form, alone or as the root of a tree.
macro_rules! json_form {
    ($record:ident, $form:ident, $walk:ident) => {
        impl Serialize for $record {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                Written::default().$walk("", self).serialize(to)
            }
        }

        impl<'de> Deserialize<'de> for $record {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Read::default().$walk("", $form::deserialize(from)?).map_err(D::Error::custom)
            }
        }
    };
}
json_form!(ErrorSnapshot, ErrorForm, error);
json_form!(Attempt, AttemptForm, attempt);
json_form!(TargetAttempt, TargetForm, target);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{QuotaScope, Silence};

    fn request(body: &str) -> RequestSnapshot {
        let at = SystemTime::UNIX_EPOCH + Duration::new(1_796_040_000, 123_456_789);
        RequestSnapshot {
            provider: "openai".into(),
            name: "openai/gpt-5-mini".into(),
            model: "gpt-5-mini".into(),
            headers: [("content-type".to_owned(), "application/json".to_owned())].into(),
            body: Some(Body::new(body.to_owned())),
            ..RequestSnapshot::new("POST", "https://api.openai.com/v1/chat/completions", at)
        }
    }

    fn tree() -> ErrorSnapshot {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_040_000);
        let mut attempts: Vec<_> =
            [Next::Retried { after: Duration::from_micros(250_700), advised: true }, Next::Stopped(StopReason::UsedUp)]
                .into_iter()
                .zip(0..)
                .map(|(next, index)| Attempt {
                    request: Some(request(r#"{"model":"m","temperature":0.7}"#)),
                    duration: Duration::from_nanos(1_234_567),
                    queued: Duration::from_millis(3),
                    ..Attempt::new(index, ErrorSnapshot::new(ErrorKind::Api, "server error (503)"), at, next)
                })
                .collect();
        attempts[1].request = Some(request("not json"));
        let first = TargetAttempt {
            provider: "openai".into(),
            model: "m".into(),
            request: Some(request(r#"{"model":"m","temperature":0.7}"#)),
            attempts,
            ..TargetAttempt::new(0, "openai/m", ErrorSnapshot::new(ErrorKind::Api, "server error (503)"))
        };
        ErrorSnapshot {
            code: Some(ErrorCode::FallbackExhausted),
            retry_after: Some(Duration::from_secs(86_400)),
            issues: Some(Issues::Quota { scope: QuotaScope::Day, resets_at: Some(at) }),
            request: Some(request(r#"{ "temperature": 0.7, "model": "m" }"#)),
            targets: vec![first],
            ..ErrorSnapshot::new(ErrorKind::FallbackExhausted, "all failed")
        }
    }

    #[test]
    fn json_reads_back_as_the_same_value() {
        let tree = tree();
        let json = serde_json::to_string(&tree).unwrap();
        assert_eq!(serde_json::from_str::<ErrorSnapshot>(&json).unwrap(), tree);
        let value = serde_json::to_value(&tree).unwrap();
        assert_eq!(serde_json::from_value::<ErrorSnapshot>(value).unwrap(), tree);
    }

    #[test]
    fn identical_bodies_are_written_once() {
        let value = serde_json::to_value(tree()).unwrap();
        assert_eq!(value["targets"][0]["request"]["body"]["model"], "m");
        assert_eq!(value["targets"][0]["attempts"][0]["request"]["body_same_as"], "/targets/0/request/body");
        assert!(value.pointer("/targets/0/attempts/0/request/body").is_none());
        assert_eq!(value["targets"][0]["attempts"][1]["request"]["body"], "not json");
    }

    #[test]
    fn a_reference_to_nothing_is_an_error() {
        let mut value = serde_json::to_value(tree()).unwrap();
        value["targets"][0]["attempts"][0]["request"]["body_same_as"] = "/nowhere".into();
        let error = serde_json::from_value::<ErrorSnapshot>(value).unwrap_err();
        assert!(error.to_string().contains("/nowhere"), "{error}");
    }

    #[test]
    fn strings_of_a_newer_version_read_as_other() {
        let json = r#"{"kind":"new_kind","code":"new_code","message":"m","retryable":false,
            "issues":{"type":"new_issue","n":1}}"#;
        let read: ErrorSnapshot = serde_json::from_str(json).unwrap();
        assert_eq!((read.kind, read.code), (ErrorKind::Other, Some(ErrorCode::Other)));
        assert_eq!(read.issues, Some(Issues::Other));
        let silence: Silence = serde_json::from_str("\"tokens\"").unwrap();
        assert_eq!(silence, Silence::Other);
    }

    #[test]
    fn truncated_bodies_say_so() {
        let mut tree = tree();
        tree.request.as_mut().unwrap().body = Some(Body::truncated("{\"cut\":"));
        let value = serde_json::to_value(&tree).unwrap();
        assert_eq!(value["request"]["body_truncated"], true);
        assert_eq!(serde_json::from_value::<ErrorSnapshot>(value).unwrap(), tree);
    }
}
