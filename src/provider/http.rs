//! HTTP as values: what an adapter writes and what it reads.

use super::Headers;
use crate::error::Redactor;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode};
use std::fmt;
use url::Url;

/// A request as an adapter encodes it, without credentials: the client adds those. `Debug` shows neither them nor the body.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: Url,
    /// The headers, shared until one request differs.
    pub headers: Headers,
    /// The body, shared by reference count.
    pub body: Bytes,
}

impl HttpRequest {
    /// A POST of `body` to `url`.
    pub fn post(url: Url, headers: impl Into<Headers>, body: impl Into<Bytes>) -> Self {
        Self { method: Method::POST, url, headers: headers.into(), body: body.into() }
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A query may hold a key under any name.
        let place = format!("{}{}", self.url.origin().ascii_serialization(), self.url.path());
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &place)
            .field("headers", &Redactor::default().headers(&self.headers, &[]))
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish()
    }
}

/// The head of a response. `Debug` shows no cookie.
#[derive(Clone)]
#[non_exhaustive]
pub struct Head {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
}

impl Head {
    /// A head of `status` with `headers`.
    pub fn new(status: StatusCode, headers: HeaderMap) -> Self {
        Self { status, headers }
    }

    /// A header as text, where it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers = Redactor::default().headers(&self.headers, &[]);
        f.debug_struct("Head").field("status", &self.status).field("headers", &headers).finish()
    }
}

/// Headers that carry a request id, the commonest first.
static REQUEST_ID: [HeaderName; 7] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("request-id"),
    HeaderName::from_static("apim-request-id"),
    HeaderName::from_static("x-amzn-requestid"),
    HeaderName::from_static("x-generation-id"),
    HeaderName::from_static("cerebras-request-id"),
    HeaderName::from_static("cf-ray"),
];

/// The provider's request id, whichever header it stands in.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<&str> {
    REQUEST_ID.iter().find_map(|name| headers.get(name)?.to_str().ok())
}
