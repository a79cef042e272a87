//! Takes secrets out of everything that is kept of a failed attempt, when it is kept and not when it is printed.

use crate::record::Issues;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::HeaderMap;
use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret, SecretString};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use url::Url;

const REDACTED: &str = "REDACTED";

/// A shorter secret is not searched for: local servers use keys such as `EMPTY`, and every "EMPTY" would go.
const SHORTEST: usize = 8;

/// Headers that are left out, with the value: by name, or by part of a name.
const ABSENT: [&str; 5] = ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-amz-security-token"];
const ABSENT_PARTS: [&str; 6] = ["api-key", "apikey", "api_key", "-token", "secret", "subscription-key"];

/// Headers whose values are kept. Others are named, and their values read `REDACTED`.
const KEPT: [&str; 20] = [
    "accept",
    "accept-encoding",
    "anthropic-beta",
    "anthropic-version",
    "api-version",
    "content-encoding",
    "content-length",
    "content-type",
    "http-referer",
    "openai-beta",
    "openai-organization",
    "openai-project",
    "traceparent",
    "tracestate",
    "user-agent",
    "x-client-request-id",
    "x-request-id",
    "x-stainless-retry-count",
    "x-title",
    "x-openrouter-title",
];

/// Query parameters whose values are secret.
const SECRET_QUERY: [&str; 10] = [
    "access_token",
    "api-key",
    "api_key",
    "apikey",
    "key",
    "sig",
    "signature",
    "x-amz-credential",
    "x-amz-security-token",
    "x-amz-signature",
];

/// Whether a header of this name must not be kept at all.
pub(crate) fn is_secret_header(name: &str) -> bool {
    ABSENT.contains(&name) || ABSENT_PARTS.iter().any(|part| name.contains(part))
}

/// Knows the secrets of one attempt, and takes them out of text, bytes, headers and URLs.
#[derive(Default)]
pub(crate) struct Redactor {
    /// The secrets, the longest first.
    secrets: Vec<String>,
    /// The same in base64, of either alphabet.
    in_base64: Vec<String>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

impl Redactor {
    /// Adds a secret. It is found in all the forms in which providers echo it: plain, JSON-escaped, percent-encoded, base64.
    pub(crate) fn secret(&mut self, secret: &SecretString) {
        self.plain(secret.expose_secret());
    }

    /// Adds what is secret in `url`: the password, the pair that basic authentication makes of it, and query values.
    pub(crate) fn url_secrets(&mut self, url: &Url) {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        if let Some(password) = url.password() {
            self.plain(password);
            self.plain(&decoded(password));
            self.plain(&format!("{}:{}", decoded(url.username()), decoded(password)));
        } else if !url.username().is_empty() {
            self.plain(url.username());
            self.plain(&decoded(url.username()));
        }
        for (name, value) in url.query_pairs() {
            if is_secret_query(&name) {
                self.plain(&value);
            }
        }
    }

    /// Adds the values of the secret headers among `headers`, and the credentials after a scheme such as `Bearer`.
    pub(crate) fn header_secrets(&mut self, headers: &HeaderMap) {
        for (name, value) in headers {
            if value.is_sensitive() || is_secret_header(name.as_str()) {
                let value = String::from_utf8_lossy(value.as_bytes());
                self.plain(&value);
                if let Some((_scheme, credentials)) = value.split_once(' ') {
                    self.plain(credentials.trim());
                }
            }
        }
    }

    fn plain(&mut self, secret: &str) {
        if secret.len() < SHORTEST || self.secrets.iter().any(|known| known == secret) {
            return;
        }
        self.secrets.push(secret.to_owned());
        // The longest first: a short secret may be a part of it.
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self.in_base64.extend([STANDARD_NO_PAD.encode(secret), URL_SAFE_NO_PAD.encode(secret)]);
    }

    /// The text without secrets, nor the beginning of one where it was cut off at the end of the text.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in self.secrets.iter().chain(&self.in_base64) {
            if let Some(clean) = without(&text, secret) {
                text = Cow::Owned(clean);
            }
        }
        text
    }

    /// Structured detail, without secrets in what it quotes.
    pub(crate) fn issues(&self, mut issues: Issues) -> Issues {
        let clean = |text: &mut String| *text = self.owned(std::mem::take(text));
        match &mut issues {
            Issues::ContentFilter { categories } => categories.iter_mut().for_each(clean),
            Issues::Json { text_head, .. } => clean(text_head),
            Issues::Schema { mismatches } => mismatches.iter_mut().for_each(|place| clean(&mut place.message)),
            Issues::Tools { problems } => {
                problems.iter_mut().filter_map(|problem| problem.detail.as_mut()).for_each(clean);
            }
            _ => {}
        }
        issues
    }

    /// The same for text that is already owned.
    pub(crate) fn owned(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => clean,
        }
    }

    /// The bytes without secrets; the same shared bytes where there was none. Bytes that are not text are read as text
    /// as far as they are.
    pub(crate) fn bytes(&self, bytes: &Bytes) -> Bytes {
        let text = String::from_utf8_lossy(bytes);
        match self.text(&text) {
            Cow::Borrowed(_) => bytes.clone(),
            Cow::Owned(clean) => clean.into(),
        }
    }

    /// The URL with user info and secret query values replaced.
    pub(crate) fn url(&self, url: &Url) -> String {
        let mut clean = url.clone();
        if !clean.username().is_empty() || clean.password().is_some() {
            // Fails only for URLs that cannot have user info, and those have none.
            let _ = clean.set_username(REDACTED);
            let _ = clean.set_password(None);
        }
        if clean.query_pairs().any(|(name, _)| is_secret_query(&name)) {
            let pairs: Vec<_> = (url.query_pairs())
                .map(|(name, value)| {
                    let value = if is_secret_query(&name) { Cow::Borrowed(REDACTED) } else { value };
                    (name, value)
                })
                .collect();
            clean.query_pairs_mut().clear().extend_pairs(pairs);
        }
        self.owned(clean.into())
    }

    /// The headers by name: secret ones absent, values outside the allow-list and `kept` replaced.
    pub(crate) fn headers(&self, headers: &HeaderMap, kept: &[http::HeaderName]) -> BTreeMap<String, String> {
        let mut out = BTreeMap::<String, String>::new();
        for (name, value) in headers {
            if value.is_sensitive() || is_secret_header(name.as_str()) {
                continue;
            }
            let value = match value.to_str() {
                Ok(value) if KEPT.contains(&name.as_str()) || kept.contains(name) => self.text(value),
                _ => Cow::Borrowed(REDACTED),
            };
            (out.entry(name.as_str().to_owned()))
                .and_modify(|before| {
                    before.push_str(", ");
                    before.push_str(&value);
                })
                .or_insert_with(|| value.into_owned());
        }
        out
    }

    /// The cause, if neither it nor what lies behind it mentions a secret; else the same chain as text without secrets.
    pub(crate) fn source(&self, source: Box<dyn Error + Send + Sync>) -> Arc<dyn Error + Send + Sync> {
        let mut link: Option<&(dyn Error + 'static)> = Some(&*source);
        while let Some(error) = link {
            let (display, debug) = (error.to_string(), format!("{error:?}"));
            if matches!(self.text(&display), Cow::Owned(_)) || matches!(self.text(&debug), Cow::Owned(_)) {
                return Arc::new(self.cleaned(&*source));
            }
            link = error.source();
        }
        source.into()
    }

    fn cleaned(&self, error: &(dyn Error + 'static)) -> CleanedSource {
        CleanedSource {
            text: self.owned(error.to_string()),
            source: error.source().map(|source| Box::new(self.cleaned(source))),
        }
    }
}

/// The text with `secret` replaced, however it is written; none where it does not occur.
fn without(text: &str, secret: &str) -> Option<String> {
    let mut clean = None::<String>;
    let (mut kept, mut at) = (0, 0);
    while let Some(c) = text[at..].chars().next() {
        if let Some(length) = written_length(&text[at..], secret) {
            let clean = clean.get_or_insert_default();
            clean.push_str(&text[kept..at]);
            clean.push_str(REDACTED);
            at += length;
            kept = at;
        } else {
            at += c.len_utf8();
        }
    }
    clean.map(|clean| clean + &text[kept..])
}

/// How long `secret` is as it stands at the beginning of `text`, in whichever way it is written; also where only its first
/// [`SHORTEST`] bytes or more do, and the text ends with them.
fn written_length(text: &str, secret: &str) -> Option<usize> {
    [after_plain, after_in_url, after_in_json].into_iter().find_map(|after| {
        let mut rest = text;
        for (at, c) in secret.char_indices() {
            if rest.is_empty() && at >= SHORTEST {
                break;
            }
            rest = after(rest, c)?;
        }
        Some(text.len() - rest.len())
    })
}

/// What comes after a character that stands as it is.
fn after_plain(text: &str, c: char) -> Option<&str> {
    text.strip_prefix(c)
}

/// What comes after a character of a URL: there is more than one custom as to which are escaped.
fn after_in_url(text: &str, c: char) -> Option<&str> {
    match text.as_bytes().first()? {
        b'%' => {
            let mut rest = text;
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let digits = rest.strip_prefix('%')?.get(..2)?;
                rest = (u8::from_str_radix(digits, 16) == Ok(byte)).then(|| &rest[3..])?;
            }
            Some(rest)
        }
        b'+' if c == ' ' => Some(&text[1..]),
        _ => after_plain(text, c),
    }
}

/// What comes after a character of a JSON string.
fn after_in_json(text: &str, c: char) -> Option<&str> {
    let Some(rest) = text.strip_prefix('\\') else { return after_plain(text, c) };
    match rest.strip_prefix('u').and_then(|rest| rest.get(..4)) {
        Some(digits) => (u32::from_str_radix(digits, 16) == Ok(u32::from(c))).then(|| &rest[5..]),
        None => rest.strip_prefix(c).filter(|_| matches!(c, '"' | '/' | '\\')),
    }
}

fn is_secret_query(name: &str) -> bool {
    SECRET_QUERY.iter().any(|secret| name.eq_ignore_ascii_case(secret))
}

/// A cause that mentioned a secret, as text.
#[derive(Debug)]
struct CleanedSource {
    text: String,
    source: Option<Box<CleanedSource>>,
}

impl fmt::Display for CleanedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for CleanedSource {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

    fn redactor(secret: &str) -> Redactor {
        let mut redactor = Redactor::default();
        redactor.secret(&secret.to_owned().into());
        redactor
    }

    #[test]
    fn every_form_of_a_secret_is_found() {
        let secret = "sk-a/b+c \"d\"é";
        let r = redactor(secret);
        let json = serde_json::to_string(secret).unwrap();
        let forms = [
            secret.to_owned(),
            json.trim_matches('"').to_owned(),
            utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
            utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string().replace("%2F", "%2f"),
            url::form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
            base64::engine::general_purpose::STANDARD.encode(secret),
            base64::engine::general_purpose::URL_SAFE.encode(secret),
        ];
        for form in &forms[..3] {
            assert_eq!(r.text(&format!("key <{form}> was wrong")), "key <REDACTED> was wrong", "{form}");
        }
        for form in &forms[4..] {
            assert!(r.text(form).starts_with(REDACTED), "{form}");
        }
    }

    #[test]
    fn the_beginning_of_a_secret_is_found_at_the_end_of_a_text() {
        let r = redactor("sk-é/12345678");
        assert_eq!(r.text("it was sk-é/12345"), "it was REDACTED");
        assert_eq!(r.text("it was sk-é/123"), "it was REDACTED");
        assert_eq!(r.text("it was sk-é/12"), "it was REDACTED");
        assert_eq!(r.text("it was sk-é/1"), "it was sk-é/1", "seven bytes are too few to tell");
        assert_eq!(r.text("it was sk-%C3%A9%2f12"), "it was REDACTED");
        assert_eq!(r.text("sk-é/12345 it was"), "sk-é/12345 it was", "in the middle nothing was cut off");
    }

    #[test]
    fn a_secret_is_found_however_its_characters_are_escaped() {
        let r = redactor("a/b+c \"d\"é~");
        for written in [
            r#"a/b+c "d"é~"#,
            "a%2Fb%2bc%20%22d%22%C3%A9%7e",
            "a/b%2Bc+%22d%22%c3%a9~",
            r#"a\/b+c \"d\"\u00e9~"#,
            r"a\u002Fb\u002bc\u0020\u0022d\u0022é\u007E",
        ] {
            assert_eq!(r.text(&format!("<{written}><{written}>")), "<REDACTED><REDACTED>", "{written}");
        }
        for secret in ["sk-100%\\\\sure", "sk-%25\\u0041"] {
            let json = serde_json::Value::from(secret).to_string();
            let url = utf8_percent_encode(secret, NON_ALPHANUMERIC);
            let text = format!("{secret} {json} {url}");
            assert_eq!(redactor(secret).text(&text), "REDACTED \"REDACTED\" REDACTED");
        }
        for other in ["a%2", "a%zzb", "a\\", "a\\u00", "a\\bb", "%", "a/b%2Bc+%22d%22%c3%a8~", "é%C3"] {
            assert_eq!(r.text(other), other);
        }
    }

    #[test]
    fn a_short_secret_is_left_alone() {
        assert_eq!(redactor("EMPTY").text("the list is EMPTY"), "the list is EMPTY");
    }

    #[test]
    fn bytes_without_a_secret_stay_shared() {
        let body = Bytes::from_static(b"{\"a\":1}");
        assert_eq!(redactor("sk-12345678").bytes(&body).as_ptr(), body.as_ptr());
        let body = Bytes::from_static(b"{\"a\":\"sk-12345678\"}");
        assert_eq!(redactor("sk-12345678").bytes(&body), "{\"a\":\"REDACTED\"}");
    }

    #[test]
    fn urls_lose_user_info_and_secret_query_values() {
        let url: Url = "http://user:p%40ss-word-1@host/v1?key=abc&model=m&X-Amz-Signature=ff".parse().unwrap();
        let mut r = Redactor::default();
        r.url_secrets(&url);
        assert_eq!(r.url(&url), "http://REDACTED@host/v1?key=REDACTED&model=m&X-Amz-Signature=REDACTED");
        assert_eq!(r.text("p@ss-word-1 dXNlcjpwQHNzLXdvcmQtMQ=="), "REDACTED REDACTED==");
    }

    #[test]
    fn secret_headers_are_absent_and_unknown_ones_valueless() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer x"),
            ("x-goog-api-key", "k"),
            ("ocp-apim-subscription-key", "k"),
            ("cookie", "a=b"),
            ("content-type", "application/json"),
            ("x-team", "blue"),
            ("x-mine", "kept"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let mut sensitive: http::HeaderValue = "v".parse().unwrap();
        sensitive.set_sensitive(true);
        headers.insert("x-request-id", sensitive);
        let kept = Redactor::default().headers(&headers, &[http::HeaderName::from_static("x-mine")]);
        let kept: Vec<_> = kept.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(kept, [("content-type", "application/json"), ("x-mine", "kept"), ("x-team", REDACTED)]);
    }

    #[test]
    fn a_cause_is_kept_unless_it_mentions_a_secret() {
        let r = redactor("sk-12345678");
        let kept = r.source(Box::new(std::io::Error::other("refused")));
        assert!(kept.downcast_ref::<std::io::Error>().is_some());
        let cleaned = r.source(Box::new(std::io::Error::other("bad key sk-12345678")));
        assert_eq!(cleaned.to_string(), "bad key REDACTED");
    }
}
