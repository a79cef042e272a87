//! The fake provider without a socket, for a paused clock.

use super::answer::Answer;
use super::backend::{Action, Backend};
use super::delivery::{Ending, Piece};
use super::http1::Request;
use super::journal::Received;
use super::openai::OpenAi;
use super::outgoing::Outgoing;
use super::protocol::{Plain, Protocol};
use super::script::{Next, Script};
use crate::provider::{Head, HttpRequest, TransportFault};
use crate::transport::{BoxFuture, Response, Transport, TransportError};
use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::watch;
use tokio::time::{Sleep, sleep};

/// A provider in memory: plays the scripts of a [`FakeProvider`](super::FakeProvider) as the [`Transport`] of a client.
///
/// Nothing of it is real but the time, and that is tokio's: under a paused clock, waits of minutes pass at once and to the
/// nanosecond. Cloning shares script and journal, so a test keeps one clone and gives the client another.
///
/// ```
/// use std::time::Duration;
/// use steadfast::provider::OpenAiCompatible;
/// use steadfast::testing::{Answer, Fault, MemoryTransport};
/// use steadfast::{Client, Target};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// tokio::time::pause();
/// let provider = MemoryTransport::openai()
///     .then(Fault::rate_limited(Duration::from_secs(20)))
///     .otherwise(Answer::text("Hello."));
///
/// let target = Target::new(OpenAiCompatible::new(provider.base_url()), "any-model");
/// let client = Client::builder(target).transport(provider.clone()).build()?;
/// assert_eq!(client.call("Hi").await?.text(), "Hello.");
///
/// // It came back exactly when it was asked to, and left nothing open.
/// let times: Vec<_> = provider.journal().iter().map(|received| received.at).collect();
/// assert_eq!(times, [Duration::ZERO, Duration::from_secs(20)]);
/// assert_eq!(provider.exchanges_open(), 0);
/// # Ok(()) }
/// ```
///
/// Where it differs from a socket: every request has a connection of its own, pieces come without a gap, and a reset comes
/// at once. [`Fault::close_on_reuse`](super::Fault::close_on_reuse) is skipped, since no connection is used twice.
#[derive(Clone)]
pub struct MemoryTransport {
    host: Arc<str>,
    shared: Arc<Shared>,
}

struct Shared {
    backend: Backend,
    counts: watch::Sender<Counts>,
}

/// What can be waited for.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    begun: u64,
    requests: usize,
    open: usize,
}

impl MemoryTransport {
    /// Speaks OpenAI's chat completions, as [`FakeProvider::openai`](super::FakeProvider::openai) does.
    pub fn openai() -> Self {
        Self::new(OpenAi, Answer::echo())
    }

    /// Speaks no dialect, just HTTP, as [`FakeProvider::http`](super::FakeProvider::http) does.
    pub fn http() -> Self {
        Self::new(Plain, Answer::raw(404))
    }

    fn new(protocol: impl Protocol + 'static, otherwise: Answer) -> Self {
        let backend = Backend::new(Arc::new(protocol), 0, Script::new(otherwise));
        Self { host: "memory.invalid".into(), shared: Arc::new(Shared { backend, counts: watch::Sender::default() }) }
    }

    /// Sets the host in the base URL. Default: `memory.invalid`. It is what a [`MemoryNetwork`] tells providers apart by.
    #[must_use]
    pub fn host(mut self, host: &str) -> Self {
        self.host = host.into();
        self
    }

    /// Adds an answer to the script: one request, one answer, in order.
    #[must_use]
    pub fn then(self, answer: Answer) -> Self {
        self.push(answer);
        self
    }

    /// Plays the last answer so many times in all.
    #[must_use]
    pub fn times(self, times: usize) -> Self {
        self.shared.backend.state().script.repeat_last(times);
        self
    }

    /// Sets the answer for when the script is used up. Default: an echo of what was asked.
    #[must_use]
    pub fn otherwise(self, answer: Answer) -> Self {
        self.set_otherwise(answer);
        self
    }

    /// Sets a rule that answers when the script is used up: by path, by body, by the time or the number of a request.
    #[must_use]
    pub fn otherwise_with(self, rule: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        self.shared.backend.state().script.set_otherwise(Next::Rule(Arc::new(rule)));
        self
    }

    /// Adds an answer to the end of the script.
    pub fn push(&self, answer: Answer) {
        self.shared.backend.state().script.push(answer);
    }

    /// Sets the answer for when the script is used up.
    pub fn set_otherwise(&self, answer: Answer) {
        self.shared.backend.state().script.set_otherwise(answer);
    }

    /// The base URL to give to an adapter, `http://memory.invalid/v1` for OpenAI.
    pub fn base_url(&self) -> String {
        format!("http://{}{}", self.host, self.shared.backend.protocol().base_path())
    }

    /// What was asked so far, in order. Connections that were refused are in it too.
    pub fn journal(&self) -> Vec<Received> {
        self.shared.backend.state().journal.clone()
    }

    /// How many requests were made so far, those to a refused connection included.
    pub fn requests(&self) -> usize {
        self.shared.backend.state().journal.len()
    }

    /// How many requests are being answered: made, and neither read to their end nor dropped.
    pub fn exchanges_open(&self) -> usize {
        self.shared.counts.borrow().open
    }

    /// Waits until so many requests were made, in all.
    pub async fn wait_for_requests(&self, count: usize) {
        self.wait_for(|counts| counts.requests >= count).await;
    }

    /// Waits until no request is being answered.
    pub async fn wait_until_idle(&self) {
        self.wait_for(|counts| counts.open == 0).await;
    }

    async fn wait_for(&self, wanted: impl FnMut(&Counts) -> bool + Send) {
        // It fails when the sender is gone, and that is in `self`.
        let _ = self.shared.counts.subscribe().wait_for(wanted).await;
    }

    async fn exchange(&self, request: HttpRequest) -> Result<Response, TransportError> {
        let path = match request.url.query() {
            Some(query) => format!("{}?{query}", request.url.path()),
            None => request.url.path().to_owned(),
        };
        let HttpRequest { method, headers, body, url: _ } = request;
        let number = self.shared.begin();
        let open = Open(Arc::clone(&self.shared));
        let request = Request { method, path, headers: headers.into_map(), body, keep_alive: true };
        let (answer, action) = self.shared.backend.receive(request, number, false);
        self.shared.counts.send_modify(|counts| counts.requests += 1);
        if !answer.delivery.delay.is_zero() {
            sleep(answer.delivery.delay).await;
        }
        match action {
            Action::Send(rendered) => response(Outgoing::of(&answer, rendered), open),
            Action::Refuse => Err(broken(TransportFault::Connect, io::ErrorKind::ConnectionRefused)),
            Action::Close => Err(broken(TransportFault::Interrupted, io::ErrorKind::UnexpectedEof)),
            Action::Reset => Err(broken(TransportFault::Interrupted, io::ErrorKind::ConnectionReset)),
            Action::Hang => std::future::pending().await,
        }
    }
}

impl Transport for MemoryTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(self.exchange(request))
    }
}

impl fmt::Debug for MemoryTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTransport")
            .field("host", &self.host)
            .field("requests", &self.requests())
            .field("exchanges_open", &self.exchanges_open())
            .finish_non_exhaustive()
    }
}

/// Several [`MemoryTransport`]s as the transport of one client: each request goes to the one whose host it names, and to a
/// refused connection where there is none.
///
/// ```
/// use steadfast::provider::OpenAiCompatible;
/// use steadfast::testing::{Fault, MemoryNetwork, MemoryTransport};
/// use steadfast::{Client, Target};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let primary = MemoryTransport::openai().host("primary.invalid").otherwise(Fault::unauthorized());
/// let fallback = MemoryTransport::openai().host("fallback.invalid");
/// let target = |provider: &MemoryTransport| Target::new(OpenAiCompatible::new(provider.base_url()), "any-model");
///
/// let client = Client::builder(target(&primary))
///     .fallback(target(&fallback))
///     .transport(MemoryNetwork::new([&primary, &fallback]))
///     .build()?;
/// assert_eq!(client.call("Hi").await?.target().index, 1);
/// assert_eq!((primary.requests(), fallback.requests()), (1, 1));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryNetwork(Vec<MemoryTransport>);

impl MemoryNetwork {
    /// A network of these providers. Of two with the same host, the first is found.
    pub fn new<'a>(providers: impl IntoIterator<Item = &'a MemoryTransport>) -> Self {
        Self(providers.into_iter().cloned().collect())
    }
}

impl Transport for MemoryNetwork {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<Response, TransportError>> {
        match self.0.iter().find(|provider| request.url.host_str() == Some(&*provider.host)) {
            Some(provider) => provider.send(request),
            None => Box::pin(async { Err(broken(TransportFault::Connect, io::ErrorKind::ConnectionRefused)) }),
        }
    }
}

impl Shared {
    /// Counts an exchange as open, and gives its number.
    fn begin(&self) -> u64 {
        let mut number = 0;
        self.counts.send_modify(|counts| {
            counts.open += 1;
            counts.begun += 1;
            number = counts.begun;
        });
        number
    }
}

/// An exchange that is open for as long as this lives.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.counts.send_modify(|counts| counts.open -= 1);
    }
}

fn broken(fault: TransportFault, kind: io::ErrorKind) -> TransportError {
    TransportError::new(fault, io::Error::from(kind))
}

fn response(outgoing: Outgoing, open: Open) -> Result<Response, TransportError> {
    // What no HTTP client could have read.
    let unreadable = || broken(TransportFault::Interrupted, io::ErrorKind::InvalidData);
    let status = StatusCode::from_u16(outgoing.status).map_err(|_| unreadable())?;
    let mut headers = HeaderMap::new();
    for (name, value) in &outgoing.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unreadable())?;
        headers.append(name, HeaderValue::from_bytes(value).map_err(|_| unreadable())?);
    }
    let head = Head::new(status, headers);
    let missing: Option<u64> = match head.header("content-length") {
        Some(length) if !outgoing.chunked => Some(length.parse().map_err(|_| unreadable())?),
        _ => None,
    };
    let closes = matches!(outgoing.ending, Ending::Close | Ending::CloseWithoutTerminator);
    // Without a length a body ends as it says itself, or with the connection.
    let complete = if outgoing.chunked { outgoing.terminated } else { closes || outgoing.pieces.is_empty() };
    let (pieces, ending) = (outgoing.pieces.into(), outgoing.ending);
    let body = Body { pieces, missing, complete: missing.is_none() && complete, ending, pause: None, open: Some(open) };
    Ok(Response::new(head, Box::pin(body)))
}

/// A body as it comes.
struct Body {
    pieces: VecDeque<Piece>,
    /// How much of the announced length is still to come, where one was announced.
    missing: Option<u64>,
    /// Whether the body is whole after its last piece.
    complete: bool,
    ending: Ending,
    pause: Option<Pin<Box<Sleep>>>,
    /// Gone once the exchange is over.
    open: Option<Open>,
}

impl Stream for Body {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while self.open.is_some() && self.missing != Some(0) {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match self.pieces.pop_front() {
                Some(Piece::Pause(duration)) => self.pause = Some(Box::pin(sleep(duration))),
                Some(Piece::Bytes(mut bytes)) => {
                    if let Some(missing) = &mut self.missing {
                        // A client reads no further than what was announced.
                        bytes.truncate(usize::try_from(*missing).unwrap_or(usize::MAX));
                        *missing -= bytes.len() as u64;
                    }
                    return Poll::Ready(Some(Ok(bytes)));
                }
                None if self.complete => break,
                None => {
                    let kind = match self.ending {
                        Ending::Hang | Ending::KeepAlive => return Poll::Pending,
                        Ending::Reset => io::ErrorKind::ConnectionReset,
                        Ending::Close | Ending::CloseWithoutTerminator => io::ErrorKind::UnexpectedEof,
                    };
                    self.open = None;
                    return Poll::Ready(Some(Err(broken(TransportFault::Interrupted, kind))));
                }
            }
        }
        self.open = None;
        Poll::Ready(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fault;
    use std::time::Duration;
    use tokio::time::{Instant, timeout};

    const ASKED: &str = r#"{"model":"m-1","messages":[{"role":"user","content":"What is up?"}]}"#;

    /// What a client sees: the status, the body that came, and what broke.
    type Seen = (Option<u16>, String, Option<(TransportFault, io::ErrorKind)>);

    fn fault(error: TransportError) -> (TransportFault, io::ErrorKind) {
        let fault = error.fault();
        (fault, error.into_source().downcast_ref().map_or(io::ErrorKind::Other, io::Error::kind))
    }

    async fn ask(memory: &MemoryTransport) -> Seen {
        let url = format!("{}/chat/completions?x=1", memory.base_url()).parse().unwrap();
        let mut response = match memory.send(HttpRequest::post(url, HeaderMap::new(), ASKED)).await {
            Ok(response) => response,
            Err(error) => return (None, String::new(), Some(fault(error))),
        };
        let (status, mut body) = (response.head.status.as_u16(), Vec::new());
        loop {
            match response.chunk().await {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Ok(None) => return (Some(status), String::from_utf8(body).unwrap(), None),
                Err(error) => return (Some(status), String::from_utf8(body).unwrap(), Some(fault(error))),
            }
        }
    }

    fn body() -> Answer {
        Answer::raw(200).body("0123456789")
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_breaks_where_the_script_says() {
        const CUT: (TransportFault, io::ErrorKind) = (TransportFault::Interrupted, io::ErrorKind::UnexpectedEof);
        const RESET: (TransportFault, io::ErrorKind) = (TransportFault::Interrupted, io::ErrorKind::ConnectionReset);
        const REFUSED: (TransportFault, io::ErrorKind) = (TransportFault::Connect, io::ErrorKind::ConnectionRefused);
        for (answer, status, text, broken) in [
            (body(), Some(200), "0123456789", None),
            (body().chunked(), Some(200), "0123456789", None),
            (body().chunked().then_close(), Some(200), "0123456789", None),
            (body().then_hang(), Some(200), "0123456789", None),
            (body().then_reset(), Some(200), "0123456789", None),
            (body().announce_length(4), Some(200), "0123", None),
            (body().cut_after(3), Some(200), "012", Some(CUT)),
            (body().cut_after(3).then_reset(), Some(200), "012", Some(RESET)),
            (body().announce_length(99).then_close(), Some(200), "0123456789", Some(CUT)),
            (body().chunked().then_reset(), Some(200), "0123456789", Some(RESET)),
            (body().chunked().close_without_terminator(), Some(200), "0123456789", Some(CUT)),
            (Answer::raw(204), Some(204), "", None),
            (Fault::empty(), Some(200), "", None),
            (Fault::reset_before_head(), None, "", Some(RESET)),
            (Fault::connection_refused(), None, "", Some(REFUSED)),
            (Answer::raw(200).header("bad name", ""), None, "", Some((CUT.0, io::ErrorKind::InvalidData))),
        ] {
            let name = answer.to_string();
            let memory = MemoryTransport::http().then(answer);
            let seen = timeout(Duration::from_secs(1), ask(&memory)).await;
            assert_eq!(seen, Ok((status, text.to_owned(), broken)), "{name}");
            assert_eq!((memory.requests(), memory.exchanges_open()), (1, 0), "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_hangs_until_it_is_dropped() {
        let silent =
            [Fault::hang(), body().chunked().then_hang(), body().announce_length(99), body().cut_after(1).then_hang()];
        for answer in silent {
            let name = answer.to_string();
            let memory = MemoryTransport::http().then(answer);
            assert!(timeout(Duration::from_secs(3_600), ask(&memory)).await.is_err(), "{name}");
            assert_eq!(memory.exchanges_open(), 0, "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn time_passes_as_the_script_says() {
        let ms = Duration::from_millis;
        let pieces = || ["01".into(), Piece::pause(ms(70)), "2".into()];
        for (answer, took) in [
            (body().delay(ms(30)), 30),
            (Fault::connection_refused().delay(ms(40)), 40),
            (body().drip(4, ms(10)), 20),
            (Answer::raw(200).pieces(pieces()), 70),
            (Answer::raw(200).pieces(pieces()).chunked().delay(ms(5)), 75),
        ] {
            let name = answer.to_string();
            let start = Instant::now();
            ask(&MemoryTransport::http().then(answer)).await;
            assert_eq!(start.elapsed(), ms(took), "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_journal_says_what_was_asked_and_when() {
        let memory = MemoryTransport::openai().then(Fault::status(500)).times(2);
        memory.push(Fault::connection_refused());
        for _ in 0..4 {
            ask(&memory).await;
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let journal = memory.journal();
        let told: Vec<_> = journal.iter().map(|seen| (seen.at.as_secs(), seen.connection, &*seen.answered)).collect();
        assert_eq!(told, [(0, 1, "500"), (1, 2, "500"), (2, 3, "connection refused"), (3, 4, "200 echo")]);
        assert_eq!(
            (journal[0].path.as_str(), journal[0].body.as_ref()),
            ("/v1/chat/completions?x=1", ASKED.as_bytes())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_requests_is_a_signal() {
        let memory = MemoryTransport::http().otherwise(body().delay(Duration::from_secs(5)));
        let asking = tokio::spawn({
            let memory = memory.clone();
            async move { ask(&memory).await }
        });
        memory.wait_for_requests(1).await;
        assert_eq!(memory.exchanges_open(), 1);
        memory.wait_until_idle().await;
        assert_eq!(asking.await.unwrap().0, Some(200));
    }

    #[tokio::test]
    async fn a_dropped_exchange_is_not_open() {
        let memory = MemoryTransport::http().otherwise(body());
        let url = "http://memory.invalid/".parse().unwrap();
        let response = memory.send(HttpRequest::post(url, HeaderMap::new(), "")).await.unwrap();
        assert_eq!(memory.exchanges_open(), 1);
        drop(response);
        assert_eq!(memory.exchanges_open(), 0);
    }

    #[tokio::test]
    async fn a_network_finds_providers_by_host_and_refuses_others() {
        let (a, b) = (MemoryTransport::http().host("a.invalid"), MemoryTransport::http().host("b.invalid"));
        let network = MemoryNetwork::new([&a, &b]);
        for (url, status) in [("http://b.invalid/x", Some(404)), ("http://c.invalid/x", None)] {
            let sent = network.send(HttpRequest::post(url.parse().unwrap(), HeaderMap::new(), "")).await;
            assert_eq!(sent.ok().map(|response| response.head.status.as_u16()), status, "{url}");
        }
        assert_eq!((a.requests(), b.requests()), (0, 1));
    }

    #[tokio::test]
    async fn a_body_stays_at_its_end() {
        let memory = MemoryTransport::http().otherwise(body());
        let outgoing = Outgoing::of(&body(), crate::testing::protocol::Rendered::json(200, &serde_json::Value::Null));
        let shared = Arc::clone(&memory.shared);
        shared.begin();
        let mut response = response(outgoing, Open(shared)).unwrap();
        assert!(response.chunk().await.unwrap().is_some());
        for _ in 0..2 {
            assert!(response.chunk().await.unwrap().is_none());
        }
    }
}
