//! What is kept of a request that failed.

use super::target::ReadyTarget;
use crate::error::Redactor;
use crate::provider::HttpRequest;
use crate::record::{Body, RequestSnapshot};
use bytes::Bytes;
use http::HeaderName;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::SystemTime;

/// Whether the bodies of failed requests are kept in their snapshots.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum CaptureBodies {
    /// No body is kept.
    Never,
    /// The body of a failed attempt is kept, up to the cap.
    #[default]
    OnFailure,
}

type Edit = dyn Fn(&mut String) + Send + Sync;

/// What is kept, and what is taken out of it.
#[derive(Clone)]
pub(crate) struct Capture {
    pub(crate) bodies: CaptureBodies,
    pub(crate) cap: usize,
    pub(crate) kept_headers: Vec<HeaderName>,
    pub(crate) redact: Option<Arc<Edit>>,
}

impl Default for Capture {
    fn default() -> Self {
        Self { bodies: CaptureBodies::default(), cap: 64 << 10, kept_headers: Vec::new(), redact: None }
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("bodies", &self.bodies).field("cap", &self.cap).finish_non_exhaustive()
    }
}

impl Capture {
    /// Text of the provider's, without secrets and as the application wants it.
    pub(crate) fn text(&self, redactor: &Redactor, text: String) -> String {
        self.hooked(redactor.owned(text))
    }

    fn hooked(&self, mut text: String) -> String {
        if let Some(redact) = &self.redact
            && catch_unwind(AssertUnwindSafe(|| redact(&mut text))).is_err()
        {
            // What the hook wanted to take out is not known, so nothing is kept.
            "(the redact hook panicked)".clone_into(&mut text);
        }
        text
    }

    /// The request of a failed attempt.
    pub(crate) fn request(
        &self,
        target: &ReadyTarget,
        model: &str,
        request: &HttpRequest,
        redactor: &Redactor,
        started_at: SystemTime,
    ) -> RequestSnapshot {
        RequestSnapshot {
            provider: target.provider_name.as_ref().to_owned(),
            name: target.name.as_ref().to_owned(),
            model: model.to_owned(),
            headers: redactor.headers(&request.headers, &self.kept_headers),
            body: self.body(redactor, &request.body),
            ..RequestSnapshot::new(request.method.as_str(), redactor.url(&request.url), started_at)
        }
    }

    fn body(&self, redactor: &Redactor, body: &Bytes) -> Option<Body> {
        if self.bodies == CaptureBodies::Never {
            return None;
        }
        let mut body = redactor.bytes(body);
        if self.redact.is_some() {
            body = self.hooked(String::from_utf8_lossy(&body).into_owned()).into();
        }
        if body.len() <= self.cap {
            return Some(Body::new(body));
        }
        // At the end of a character, so that the rest is text. A copy, so that the whole body is not held by its head.
        let mut end = self.cap;
        while end > 0 && body[end] & 0xC0 == 0x80 {
            end -= 1;
        }
        Some(Body::truncated(Bytes::copy_from_slice(&body[..end])))
    }
}
