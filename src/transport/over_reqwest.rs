//! The built-in way: `reqwest`, without its own retries and redirects.

use super::{Response, TransportError};
use crate::provider::{Head, HttpRequest, TransportFault};
use std::ffi::OsString;
use std::time::Duration;

/// A client as this crate wants it: it follows no redirect (keys must not cross an origin) and sends nothing twice by
/// itself (there is one attempt loop).
pub(crate) fn default_client(connect_timeout: Option<Duration>) -> reqwest::Result<reqwest::Client> {
    // `never` by itself still copies each request, for the retry that it then does not allow.
    let never = reqwest::retry::never().max_retries_per_request(0);
    let mut builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).retry(never);
    if !may_have_proxy(|name| std::env::var_os(name)) {
        builder = builder.no_proxy(); // else each request would ask anew which of no proxies is meant for it
    }
    if let Some(timeout) = connect_timeout {
        builder = builder.connect_timeout(timeout);
    }
    builder.build()
}

/// Whether the system may name a proxy: in the environment, or where it keeps its settings.
fn may_have_proxy(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let names = ["ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"];
    let keeps_settings = cfg!(any(target_os = "macos", windows));
    keeps_settings || names.iter().any(|name| variable(name).is_some_and(|value| !value.is_empty()))
}

pub(super) fn send(
    client: &reqwest::Client,
    request: HttpRequest,
) -> impl Future<Output = Result<Response, TransportError>> + Send + use<> {
    let mut out = reqwest::Request::new(request.method, request.url);
    *out.headers_mut() = request.headers.into_map();
    *out.body_mut() = Some(request.body.into());
    let answer = client.execute(out);
    async {
        let mut response = answer.await.map_err(fault)?;
        let headers = std::mem::take(response.headers_mut());
        Ok(Response::reqwest(Head::new(response.status(), headers), response))
    }
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

#[cfg(all(test, not(any(target_os = "macos", windows))))]
mod tests {
    use super::may_have_proxy;

    #[test]
    fn proxies_of_the_environment_are_asked_where_there_are_any() {
        for (name, value, may) in
            [("https_proxy", "http://host:3128", true), ("HTTP_PROXY", "", false), ("NO_PROXY", "*", false)]
        {
            assert_eq!(may_have_proxy(|asked| (asked == name).then(|| value.into())), may, "{name}={value}");
        }
    }
}
