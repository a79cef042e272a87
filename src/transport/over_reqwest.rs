//! The built-in way: `reqwest`, without its own retries and redirects.

use super::{Response, TransportError};
use crate::provider::{Head, HttpRequest, TransportFault};
use std::time::Duration;

/// A client as this crate wants it: it follows no redirect (keys must not cross an origin) and sends nothing twice by
/// itself (there is one attempt loop).
pub(crate) fn default_client(connect_timeout: Option<Duration>) -> reqwest::Result<reqwest::Client> {
    let mut builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .user_agent(concat!("steadfast/", env!("CARGO_PKG_VERSION")));
    if let Some(timeout) = connect_timeout {
        builder = builder.connect_timeout(timeout);
    }
    builder.build()
}

pub(super) async fn send(client: &reqwest::Client, request: HttpRequest) -> Result<Response, TransportError> {
    let mut out = reqwest::Request::new(request.method, request.url);
    *out.headers_mut() = request.headers.into_map();
    *out.body_mut() = Some(request.body.into());
    let mut response = client.execute(out).await.map_err(fault)?;
    let headers = std::mem::take(response.headers_mut());
    Ok(Response::reqwest(Head::new(response.status(), headers), response))
}

/// What broke, without the URL, which may hold a key.
pub(super) fn fault(error: reqwest::Error) -> TransportError {
    TransportError::new(sort(&error), error.without_url())
}

/// What sort of break an error tells of.
pub(crate) fn sort(error: &reqwest::Error) -> TransportFault {
    if error.is_builder() {
        TransportFault::Request
    } else if error.is_connect() {
        TransportFault::Connect
    } else if error.is_timeout() {
        TransportFault::Timeout
    } else {
        TransportFault::Interrupted
    }
}
