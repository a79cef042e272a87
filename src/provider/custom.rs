//! A protocol of your own, as closures.

use super::endpoint::Endpoint;
use super::{
    AnswerFault, Auth, Capabilities, Draft, EncodeContext, Failure, Frame, Framing, Head, HttpRequest, Provider,
    RulePack, StreamDecoder, json,
};
use crate::LlmError;
use crate::chat::{Reply, Request};
use crate::record::{ConfigError, ErrorCode, Problems};
use bytes::Bytes;
use http::StatusCode;
use secrecy::SecretString;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

type Encode = Arc<dyn Fn(&Request, &EncodeContext<'_>) -> Result<Encoded, LlmError> + Send + Sync>;
type Decode = Arc<dyn for<'a> Fn(&'a Head, &'a Bytes) -> Result<Reply, Failure<'a>> + Send + Sync>;
type ReadFrame = Arc<dyn Fn(&Frame<'_>, &mut Draft) -> Result<(), AnswerFault> + Send + Sync>;

/// A protocol of your own: where it is, how a request is written, how an answer is read. Everything resilient comes from
/// the client, as for every other adapter.
///
/// The closures have to be pure: they may be called again for each target and each call, and get no credentials. What
/// they need of the provider's own fields is in [`Request::extra`]. What can be asked beyond text is said by
/// [`capabilities`](Self::capabilities), and how a streamed answer is read by [`stream_event`](Self::stream_event).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::json;
/// use steadfast::chat::Reply;
/// use steadfast::provider::{AnswerFault, Custom, Failure, RulePack};
/// use steadfast::testing::{Answer, FakeProvider, Fault};
/// use steadfast::{Client, Target};
///
/// # let fake = FakeProvider::http().then(Fault::status(503)).then(Answer::text("HELLO")).start().await?;
/// let shouter = Custom::new("shouter", format!("{}/shout", fake.origin()))
///     .api_key("in-house-key")
///     .encode(|request, cx| {
///         let words: Vec<_> = request.user.iter().map(|content| content.text()).collect();
///         Ok(json!({"model": cx.model, "words": words}))
///     })
///     .decode(|head, body| match std::str::from_utf8(body) {
///         Ok(text) => Ok(Reply::new(text)),
///         Err(_) => Err(Failure::of(head, body).fault(AnswerFault::Invalid("not UTF-8".into()))),
///     })
///     .rule_pack(RulePack::generic().named("shouter"));
///
/// let client = Client::builder(Target::new(shouter, "loud-1")).build()?;
/// let reply = client.call("hello").await?; // the first answer was a 503, and was retried
/// assert_eq!(reply.text(), "HELLO");
/// # assert_eq!(fake.journal()[1].json()?, json!({"model": "loud-1", "words": ["hello"]}));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Custom {
    name: Cow<'static, str>,
    endpoint: Endpoint,
    encode: Option<Encode>,
    decode: Option<Decode>,
    read_frame: Option<ReadFrame>,
    framing: Framing,
    capabilities: Capabilities,
    rules: RulePack,
}

/// What an encoder wrote. `Debug` shows no body.
#[derive(Clone)]
#[non_exhaustive]
pub enum Encoded {
    /// A JSON object, posted to the adapter's URL. The call's `extra` fields are merged into it last.
    Json(Value),
    /// Any other body, posted to the adapter's URL. Set its `content-type` with [`Custom::header`].
    Body(Bytes),
    /// A request of its own: another method, a URL that depends on the model, headers that depend on the call. The
    /// adapter's headers are added where it has none of their name.
    Request(Box<HttpRequest>),
}

impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(_) => f.write_str("Json"),
            Self::Body(body) => write!(f, "Body({} bytes)", body.len()),
            Self::Request(request) => request.fmt(f),
        }
    }
}

impl From<Value> for Encoded {
    fn from(body: Value) -> Self {
        Self::Json(body)
    }
}

impl From<Bytes> for Encoded {
    fn from(body: Bytes) -> Self {
        Self::Body(body)
    }
}

impl From<Vec<u8>> for Encoded {
    fn from(body: Vec<u8>) -> Self {
        Self::Body(body.into())
    }
}

impl From<String> for Encoded {
    fn from(body: String) -> Self {
        Self::Body(body.into())
    }
}

impl From<HttpRequest> for Encoded {
    fn from(request: HttpRequest) -> Self {
        Self::Request(Box::new(request))
    }
}

impl Custom {
    /// The protocol of this name, at this URL: the whole of it, nothing is appended. It needs an
    /// [`encode`](Self::encode) and a [`decode`](Self::decode); `ClientBuilder::build` says when one is missing.
    pub fn new(name: impl Into<Cow<'static, str>>, url: impl AsRef<str>) -> Self {
        Self {
            name: name.into(),
            endpoint: Endpoint::new(url.as_ref(), &[]),
            encode: None,
            decode: None,
            read_frame: None,
            framing: Framing::default(),
            capabilities: Capabilities::text(),
            rules: RulePack::generic(),
        }
    }

    /// How a request is written: as a JSON value, as bytes or text, or as a whole [`HttpRequest`].
    /// [`EncodeContext::stream`] says whether the answer is wanted as a stream.
    ///
    /// What the protocol cannot express is best refused with an error of kind `invalid_params`, so that nothing that a
    /// caller asked for is silently dropped.
    #[must_use]
    pub fn encode<E: Into<Encoded>>(
        mut self,
        encode: impl Fn(&Request, &EncodeContext<'_>) -> Result<E, LlmError> + Send + Sync + 'static,
    ) -> Self {
        self.encode = Some(Arc::new(move |request, cx| encode(request, cx).map(Into::into)));
        self
    }

    /// How an answer with status 200 is read. Other statuses go to the [rules](Self::rule_pack) by themselves; so does a
    /// [`Failure`] that the closure returns, with what it found wrong.
    #[must_use]
    pub fn decode(
        mut self,
        decode: impl for<'a> Fn(&'a Head, &'a Bytes) -> Result<Reply, Failure<'a>> + Send + Sync + 'static,
    ) -> Self {
        self.decode = Some(Arc::new(decode));
        self
    }

    /// How one frame of a streamed answer is read into the draft of the reply; [`framing`](Self::framing) says what a frame
    /// is. Without it the adapter does not stream.
    ///
    /// The answer is complete once the closure has called [`Draft::done`], or when its body ends after
    /// [`Draft::finish`]; a body that ends before is an interruption. What the closure has to remember between frames is
    /// in the draft; a protocol that needs more is an implementation of [`Provider`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use steadfast::chat::FinishReason;
    /// use steadfast::provider::{AnswerFault, Custom, Draft, EncodeContext, Frame, Framing, Provider};
    ///
    /// let teller = Custom::new("teller", "https://tell.example/v1")
    ///     .framing(Framing::Ndjson)
    ///     .stream_event(|frame, draft| {
    ///         let line: serde_json::Value =
    ///             serde_json::from_slice(frame.data).map_err(|_| AnswerFault::Frame("not JSON".into()))?;
    ///         draft.text(line["word"].as_str().unwrap_or_default().to_owned());
    ///         if line["last"] == true {
    ///             draft.finish(FinishReason::Stop);
    ///             draft.done();
    ///         }
    ///         Ok(())
    ///     });
    ///
    /// // What the client does with it:
    /// let mut decoder = teller.stream_decoder(&EncodeContext::new("m-1").streaming()).ok_or("it streams")?;
    /// let mut draft = Draft::new();
    /// decoder.read(&Frame::new(br#"{"word":"Hello","last":true}"#), &mut draft).map_err(|fault| format!("{fault:?}"))?;
    /// assert_eq!(draft.finish_reason(), Some(FinishReason::Stop));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn stream_event(
        mut self,
        read: impl Fn(&Frame<'_>, &mut Draft) -> Result<(), AnswerFault> + Send + Sync + 'static,
    ) -> Self {
        self.read_frame = Some(Arc::new(read));
        self
    }

    /// How the body of a streamed answer is cut into frames. Default: server-sent events.
    #[must_use]
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// What can be asked, of any model. Default: text alone, and streams where there is a
    /// [`stream_event`](Self::stream_event), which alone decides about them.
    ///
    /// The closures have to keep what is said here: what a call asks for beyond it is refused before they see it.
    #[must_use]
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// A header for every request. Not for secrets: those go into [`auth`](Self::auth). `content-type` and `accept` are
    /// JSON unless set.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.endpoint = self.endpoint.header(name, value);
        self
    }

    /// The credentials. Default: none.
    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.endpoint = self.endpoint.auth(Ok(auth));
        self
    }

    /// A key, sent as a bearer token.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.endpoint = self.endpoint.auth(Auth::bearer(key.into()));
        self
    }

    /// What errors mean. Default: [`RulePack::generic`].
    #[must_use]
    pub fn rule_pack(mut self, rules: RulePack) -> Self {
        self.rules = rules;
        self
    }
}

/// Reads a stream by a closure.
struct Events(ReadFrame);

impl StreamDecoder for Events {
    fn read(&mut self, frame: &Frame<'_>, draft: &mut Draft) -> Result<(), AnswerFault> {
        (self.0)(frame, draft)
    }

    fn end(&mut self, draft: &mut Draft) -> bool {
        draft.finish_reason().is_some()
    }
}

fn missing(what: &str) -> ConfigError {
    ConfigError::new(what, "not given", "a closure")
}

impl Provider for Custom {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        problems.take(self.endpoint.check());
        problems.take(self.encode.as_ref().ok_or_else(|| missing("encode")));
        problems.take(self.decode.as_ref().ok_or_else(|| missing("decode")));
        problems.finish()
    }

    fn capabilities(&self, _: &str) -> Capabilities {
        Capabilities { stream: self.read_frame.is_some(), ..self.capabilities }
    }

    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
        let encode = self.encode.as_ref().ok_or_else(|| missing("encode"))?;
        let encoded = encode(request, cx)?;
        let (url, headers) = self.endpoint.request_line()?;
        Ok(match encoded {
            Encoded::Json(body) => HttpRequest::post(url, headers, merged(&body, &request.extra)?),
            Encoded::Body(body) => HttpRequest::post(url, headers, body),
            Encoded::Request(mut own) => {
                for (name, value) in &headers {
                    own.headers.entry(name).or_insert_with(|| value.clone());
                }
                *own
            }
        })
    }

    fn decode<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        match &self.decode {
            Some(decode) if head.status == StatusCode::OK => decode(head, body),
            _ => Err(Failure::of(head, body)),
        }
    }

    fn framing(&self) -> Framing {
        self.framing.clone()
    }

    fn stream_decoder(&self, _: &EncodeContext<'_>) -> Option<Box<dyn StreamDecoder>> {
        Some(Box::new(Events(self.read_frame.clone()?)))
    }

    fn rules(&self) -> &RulePack {
        &self.rules
    }

    fn auth(&self) -> &Auth {
        self.endpoint.credentials()
    }
}

/// The body with the call's own fields in it.
fn merged(body: &Value, extra: &Map<String, Value>) -> Result<Vec<u8>, LlmError> {
    if !extra.is_empty() && !body.is_object() {
        let message = "extra fields are set, and the encoder wrote no JSON object to merge them into";
        return Err(LlmError::of(ErrorCode::InvalidCall, message));
    }
    json::write(body, extra, &[], 256)
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, endpoint, encode: _, decode: _, read_frame: _, framing, capabilities, rules } = self;
        f.debug_struct("Custom")
            .field("name", name)
            .field("endpoint", endpoint)
            .field("framing", framing)
            .field("capabilities", capabilities)
            .field("rules", rules)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::FinishReason;
    use http::{HeaderMap, Method};
    use serde_json::json;
    use url::Url;

    fn custom() -> Custom {
        Custom::new("mine", "http://host/generate/?v=2").header("x-team", "search").decode(|_, _| Ok(Reply::new("Hi")))
    }

    fn header<'a>(http: &'a HttpRequest, name: &str) -> &'a str {
        http.headers[name].to_str().unwrap()
    }

    fn send(custom: &Custom, request: &Request) -> HttpRequest {
        custom.check().unwrap();
        Provider::encode(custom, request, &EncodeContext::new("m-1")).unwrap()
    }

    #[test]
    fn json_is_posted_with_the_fields_of_the_call() {
        let custom = custom().encode(|request, cx| Ok(json!({"model": cx.model, "n": request.turns().count()})));
        let mut request = Request::user("Hi");
        request.extra.insert("n".into(), 2.into());
        let http = send(&custom, &request);
        assert_eq!((&http.method, http.url.as_str()), (&Method::POST, "http://host/generate/?v=2"));
        assert_eq!(serde_json::from_slice::<Value>(&http.body).unwrap(), json!({"model": "m-1", "n": 2}));
        assert_eq!((header(&http, "x-team"), header(&http, "content-type")), ("search", "application/json"));

        let list = custom.encode(|_, _| Ok(json!([1])));
        assert!(Provider::encode(&list, &request, &EncodeContext::new("m")).is_err());
        assert_eq!(&send(&list, &Request::user("Hi")).body[..], b"[1]");
    }

    #[test]
    fn a_body_or_a_whole_request_is_sent_as_it_is() {
        let text = custom().header("content-type", "text/plain").encode(|_, _| Ok("Hi".to_owned()));
        let http = send(&text, &Request::user("Hi"));
        assert_eq!((&http.body[..], header(&http, "content-type")), (&b"Hi"[..], "text/plain"));

        let whole = custom().encode(|_, cx| {
            let url = Url::parse(&format!("http://host/models/{}", cx.model)).unwrap();
            let headers = HeaderMap::from_iter([(http::HeaderName::from_static("x-team"), "own".parse().unwrap())]);
            let mut request = HttpRequest::post(url, headers, "");
            request.method = Method::PUT;
            Ok(request)
        });
        let http = send(&whole, &Request::user("Hi"));
        assert_eq!((&http.method, http.url.path()), (&Method::PUT, "/models/m-1"));
        assert_eq!((header(&http, "x-team"), header(&http, "accept")), ("own", "application/json"));
    }

    #[test]
    fn only_a_success_is_decoded() {
        let body = Bytes::from_static(b"{}");
        for (status, read) in [(200, true), (201, false), (500, false)] {
            let head = Head::new(StatusCode::from_u16(status).unwrap(), HeaderMap::new());
            assert_eq!(Provider::decode(&custom(), &head, &body).is_ok(), read, "{status}");
        }
    }

    /// Words by the line; `!` is an error, `.` the end.
    fn teller() -> Custom {
        custom().framing(Framing::Ndjson).stream_event(|frame, draft| {
            match frame.data {
                b"!" => return Err(AnswerFault::Error),
                b"." => draft.finish(FinishReason::Stop),
                words => draft.text(String::from_utf8_lossy(words).into_owned()),
            }
            Ok(())
        })
    }

    #[test]
    fn frames_are_read_by_the_closure() {
        let cx = EncodeContext::new("m-1").streaming();
        let mut decoder = teller().stream_decoder(&cx).unwrap();
        let mut draft = Draft::new();
        for words in ["Hel", "lo"] {
            decoder.read(&Frame::new(words.as_bytes()), &mut draft).unwrap();
            assert_eq!(draft.next_chunk().unwrap().text(), words);
        }
        assert_eq!(decoder.read(&Frame::new(b"!"), &mut draft), Err(AnswerFault::Error));
        assert!(!decoder.end(&mut draft), "no reason why it ended was told");
        decoder.read(&Frame::new(b"."), &mut draft).unwrap();
        assert!(decoder.end(&mut draft));
        let reply = draft.finished().unwrap();
        assert_eq!((reply.text(), reply.finish_reason()), ("Hello", FinishReason::Stop));
    }

    #[test]
    fn it_can_do_what_it_says_and_streams_when_it_can_read_them() {
        fn can(custom: &impl Provider) -> Capabilities {
            custom.capabilities("m-1")
        }
        let able = Capabilities { tools: true, stream: true, ..Capabilities::text() };
        let cx = EncodeContext::new("m-1").streaming();
        let mute = custom().capabilities(able);
        assert_eq!(can(&mute), Capabilities { stream: false, ..able });
        assert!(mute.stream_decoder(&cx).is_none() && matches!(Provider::framing(&mute), Framing::Sse));
        assert_eq!(can(&teller()), Capabilities { stream: true, ..Capabilities::text() });
        assert_eq!(can(&teller().capabilities(able)), able);
        assert!(matches!(Provider::framing(&teller()), Framing::Ndjson));
        let told = custom().encode(|_, cx| Ok(json!({"stream": cx.stream})));
        let http = Provider::encode(&told, &Request::user("Hi"), &cx).unwrap();
        assert_eq!(&http.body[..], br#"{"stream":true}"#);
    }

    #[test]
    fn everything_that_is_missing_is_told_at_once() {
        let told = Custom::new("mine", "nonsense").api_key("").check().unwrap_err().to_string();
        for what in ["base_url", "api_key", "encode", "decode"] {
            assert!(told.contains(what), "{told}");
        }
        assert!(!format!("{:?}", custom().api_key("a-secret-key")).contains("a-secret"));
    }
}
