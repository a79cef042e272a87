//! Just enough HTTP/1.1: reads the head of a request and the sizes of its chunks, writes heads and chunks.
//!
//! Nothing here touches a socket; `wire` does.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

/// The longest head, and the longest line of a chunked body, that is read.
pub(super) const MAX_HEAD: usize = 64 * 1024;
/// The longest body that is read.
pub(super) const MAX_BODY: usize = 64 * 1024 * 1024;

/// One request, read whole.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    /// Path and query, as sent.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) keep_alive: bool,
}

/// How the body of a request is delimited.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Framing {
    Chunked,
    Length(usize),
}

/// A request that is not HTTP/1.1, or too long: the status to refuse it with, and why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Unreadable {
    pub(super) status: u16,
    pub(super) why: &'static str,
}

impl Unreadable {
    const fn bad(why: &'static str) -> Self {
        Self { status: 400, why }
    }

    pub(super) const fn too_large(why: &'static str) -> Self {
        Self { status: 413, why }
    }
}

/// Reads a head, up to and without its empty line. The body is still to come.
pub(super) fn parse_head(head: &[u8]) -> Result<(Request, Framing), Unreadable> {
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let first = std::str::from_utf8(lines.next().unwrap_or_default()).map_err(|_| Unreadable::bad("request line"))?;
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Unreadable::bad("request line"));
    };
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| Unreadable::bad("method"))?;
    let newest = match version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        _ => return Err(Unreadable { status: 505, why: "version" }),
    };
    let headers = parse_headers(lines)?;
    let framing = framing(&headers)?;
    let said = |word| tokens(&headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case(word));
    let keep_alive = if newest { !said("close") } else { said("keep-alive") };
    Ok((Request { method, path: origin_form(target), headers, body: Bytes::new(), keep_alive }, framing))
}

fn parse_headers<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<HeaderMap, Unreadable> {
    let bad = Unreadable::bad("header");
    let mut headers = HeaderMap::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':').ok_or(bad)?;
        let name = HeaderName::from_bytes(&line[..colon]).map_err(|_| bad)?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).map_err(|_| bad)?;
        headers.try_append(name, value).map_err(|_| bad)?;
    }
    Ok(headers)
}

fn framing(headers: &HeaderMap) -> Result<Framing, Unreadable> {
    if let Some(last) = tokens(headers, &header::TRANSFER_ENCODING).last() {
        return if last.eq_ignore_ascii_case("chunked") {
            Ok(Framing::Chunked)
        } else {
            Err(Unreadable { status: 501, why: "transfer-encoding" })
        };
    }
    let mut length = None;
    for said in tokens(headers, &header::CONTENT_LENGTH) {
        if !said.bytes().all(|byte| byte.is_ascii_digit()) || length.is_some_and(|before| before != said) {
            return Err(Unreadable::bad("content-length"));
        }
        length = Some(said);
    }
    match length.map(str::parse) {
        None => Ok(Framing::Length(0)),
        Some(Ok(length)) if length <= MAX_BODY => Ok(Framing::Length(length)),
        Some(_) => Err(Unreadable::too_large("the body is too large")),
    }
}

/// The comma-separated words of a header, over all its lines.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|token| !token.is_empty())
}

/// `http://host/path?query`, as sent to a proxy, without its origin.
fn origin_form(target: &str) -> String {
    match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => match rest.find('/') {
            Some(slash) => rest[slash..].to_owned(),
            None => "/".to_owned(),
        },
        _ => target.to_owned(),
    }
}

/// Reads the line before a chunk.
pub(super) fn parse_chunk_size(line: &[u8]) -> Result<usize, Unreadable> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let text = std::str::from_utf8(digits).unwrap_or_default();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Unreadable::bad("chunk size"));
    }
    match usize::from_str_radix(text, 16) {
        Ok(size) if size <= MAX_BODY => Ok(size),
        _ => Err(Unreadable::too_large("the body is too large")),
    }
}

/// Writes a head, the empty line included.
pub(super) fn write_head<'a>(status: u16, headers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Status");
    let mut head = format!("HTTP/1.1 {status} {reason}\r\n").into_bytes();
    for (name, value) in headers {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The end of a chunked body.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Writes one chunk. An empty one would end the body: it is left out.
pub(super) fn write_chunk(data: &[u8]) -> Vec<u8> {
    if data.is_empty() {
        return Vec::new();
    }
    let mut chunk = format!("{:x}\r\n", data.len()).into_bytes();
    chunk.extend_from_slice(data);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<(Request, Framing), Unreadable> {
        parse_head(text.as_bytes())
    }

    #[test]
    fn a_head_is_read() -> Result<(), Unreadable> {
        let (request, framing) = head("POST /v1/x?key=1 HTTP/1.1\r\nHost: a\r\ncontent-length:  5 \r\n")?;
        assert_eq!((request.method, request.path.as_str()), (Method::POST, "/v1/x?key=1"));
        assert_eq!(request.headers["host"], "a");
        assert_eq!((framing, request.keep_alive), (Framing::Length(5), true));
        Ok(())
    }

    #[test]
    fn chunked_wins_over_a_length() -> Result<(), Unreadable> {
        let (_, framing) = head("POST / HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: gzip, Chunked\r\n")?;
        assert_eq!(framing, Framing::Chunked);
        Ok(())
    }

    #[test]
    fn the_connection_header_decides_about_keep_alive() -> Result<(), Unreadable> {
        assert!(!head("GET / HTTP/1.1\r\nconnection: te, Close\r\n")?.0.keep_alive);
        assert!(!head("GET / HTTP/1.0\r\n")?.0.keep_alive);
        assert!(head("GET / HTTP/1.0\r\nconnection: keep-alive\r\n")?.0.keep_alive);
        Ok(())
    }

    #[test]
    fn a_proxy_request_loses_its_origin() -> Result<(), Unreadable> {
        assert_eq!(head("GET http://host:80/a?b=c HTTP/1.1\r\n")?.0.path, "/a?b=c");
        assert_eq!(head("GET http://host HTTP/1.1\r\n")?.0.path, "/");
        assert_eq!(head("GET /a?next=http://b/c HTTP/1.1\r\n")?.0.path, "/a?next=http://b/c");
        Ok(())
    }

    #[test]
    fn what_is_not_http_is_refused() {
        for (text, status) in [
            ("", 400),
            ("PRI * HTTP/2.0\r\n", 505),
            ("GET / HTTP/1.1 more\r\n", 400),
            ("GET / HTTP/1.1\r\nno colon\r\n", 400),
            ("GET / HTTP/1.1\r\nb\u{e4}d: x\r\n", 400),
            ("GET / HTTP/1.1\r\ncontent-length: -1\r\n", 400),
            ("GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n", 400),
            ("GET / HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n", 413),
            ("GET / HTTP/1.1\r\ntransfer-encoding: gzip\r\n", 501),
        ] {
            assert_eq!(head(text).map(|_| ()).map_err(|bad| bad.status), Err(status), "{text}");
        }
    }

    #[test]
    fn chunk_sizes() {
        assert_eq!(parse_chunk_size(b"1A;name=value"), Ok(26));
        assert_eq!(parse_chunk_size(b"+1").map_err(|bad| bad.status), Err(400));
        assert_eq!(parse_chunk_size(b"").map_err(|bad| bad.status), Err(400));
        assert_eq!(parse_chunk_size(b"fffffffff").map_err(|bad| bad.status), Err(413));
    }
}
