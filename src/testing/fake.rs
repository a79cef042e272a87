//! The fake provider, as a test holds it.

use super::answer::Answer;
use super::anthropic::Anthropic;
use super::azure::Azure;
use super::backend::Backend;
use super::bedrock::Bedrock;
use super::gemini::Gemini;
use super::journal::Received;
use super::ollama::Ollama;
use super::openai::OpenAi;
use super::protocol::{Plain, Protocol};
use super::responses::Responses;
use super::script::{Next, Script};
use super::serve::{Shared, accept};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use tokio::net::TcpSocket;
use tokio::task::AbortHandle;

/// A provider that is not there: a real HTTP server on a loopback port, which answers as it is told.
///
/// It stops, and closes all its connections, when it is dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// use std::time::Duration;
/// use steadfast::testing::{Answer, FakeProvider, Fault};
///
/// let fake = FakeProvider::openai()
///     .then(Fault::rate_limited(Duration::from_millis(50)))
///     .then(Fault::status(503)).times(2)
///     .then(Fault::reset_before_head())
///     .otherwise(Answer::text("Hello there."))
///     .start()
///     .await?;
///
/// assert_eq!(fake.base_url(), format!("{}/v1", fake.origin()));
/// // … make calls to `fake.base_url()`, then look at what arrived:
/// for received in fake.journal() {
///     println!("{:?} {} {} -> {}", received.at, received.method, received.path, received.answered);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FakeProvider {
    address: SocketAddr,
    base_path: &'static str,
    shared: Arc<Shared>,
    server: AbortHandle,
}

/// Makes a [`FakeProvider`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `start` is called"]
pub struct FakeProviderBuilder {
    protocol: Arc<dyn Protocol>,
    script: Script,
}

impl FakeProvider {
    /// Speaks OpenAI's chat completions, under `/v1/chat/completions`.
    ///
    /// Answers made by [`Answer::text`] and [`Answer::echo`] are sent to valid requests; to others the provider's own
    /// refusal is sent in their place: 400 for a body that is not JSON or names no model, for tool calls without results,
    /// results without calls, schemas that are called strict and are not, 404 for another path. Faults and raw answers are
    /// sent whatever was asked. A request for a stream gets one, an event at a time; its usage is told when it is asked for.
    ///
    /// [`Answer::reasoning`] is told in `reasoning_content`, as servers do that speak this protocol; OpenAI itself keeps it.
    pub fn openai() -> FakeProviderBuilder {
        FakeProviderBuilder::new(OpenAi, Answer::echo())
    }

    /// Speaks OpenAI's Responses API, under `/v1/responses`, as [`openai`](Self::openai) speaks chat completions.
    ///
    /// An [`Answer::finish_reason`] is why the response is incomplete, such as `max_output_tokens`; an error in a 200 is a
    /// response that failed. Reasoning is told as a summary; it comes sealed for its model where that is asked for, and is
    /// refused when it comes back otherwise, or without what it led to.
    pub fn responses() -> FakeProviderBuilder {
        FakeProviderBuilder::new(Responses, Answer::echo())
    }

    /// Speaks as Azure OpenAI does: chat completions under `/openai/v1/chat/completions`, and under
    /// `/openai/deployments/NAME/chat/completions` with an `api-version`.
    ///
    /// It wants credentials, of whatever value: an `api-key` or a bearer token, or it answers 401. Its
    /// [`base_url`](Self::base_url) is the endpoint of a resource, without a path. Every deployment exists.
    pub fn azure() -> FakeProviderBuilder {
        FakeProviderBuilder::new(Azure, Answer::echo())
    }

    /// Speaks Anthropic's messages, under `/v1/messages`.
    ///
    /// As with [`openai`](Self::openai), requests that Anthropic would refuse are refused in its words: without a key
    /// (401), without `anthropic-version`, without `max_tokens`, with a field that does not exist, with roles that do not
    /// alternate, with content that is empty, with calls and results that do not match, with settings that do not go
    /// together, with thoughts that are not as it had signed them.
    ///
    /// A request that forces one tool is answered by a call of it where the answer's text is JSON: that is the arguments, or
    /// the only one of them.
    pub fn anthropic() -> FakeProviderBuilder {
        FakeProviderBuilder::new(Anthropic, Answer::echo())
    }

    /// Speaks Ollama's own protocol, under `/api/chat`. Every model is installed.
    ///
    /// Requests that Ollama would refuse are refused in its words: content that is not a plain text, pictures that are no
    /// base64, arguments that are no object, options of the wrong type. It streams unless told not to, as Ollama does.
    pub fn ollama() -> FakeProviderBuilder {
        FakeProviderBuilder::new(Ollama, Answer::echo())
    }

    /// Speaks Amazon Bedrock's Converse, under `/model/MODEL/converse`. Every model exists; answers name none.
    ///
    /// As with [`openai`](Self::openai), requests that Bedrock would refuse are refused in its words: without a bearer key or
    /// a signature (403; that the signature has the right form and scope is checked, not which secret made it), with a model
    /// that is not one encoded segment, with blocks, roles or settings that it does not take. Streams it does not speak yet.
    pub fn bedrock() -> FakeProviderBuilder {
        FakeProviderBuilder::new(Bedrock, Answer::echo())
    }

    /// Speaks Gemini's `generateContent`, under `/v1beta/models/MODEL:generateContent` and, with a bearer token, under the
    /// paths of Vertex AI; as `MODEL:streamGenerateContent?alt=sse` it streams, and without `alt` it streams a JSON list.
    ///
    /// As with [`openai`](Self::openai), what the provider refuses is refused in its words: none or two credentials, an
    /// unknown role or field, turns that do not alternate, results that do not answer the calls before them, settings and
    /// combinations that the model does not take. From Gemini 3 on, calls are signed, and a call of the current turn whose
    /// signature is missing or was changed is refused; earlier models give their calls no ids. [`Fault::rate_limited`](super::Fault::rate_limited)
    /// tells its wait in the body alone, and [`Fault::quota_exhausted`](super::Fault::quota_exhausted) is a daily quota that
    /// nevertheless advises a short wait: so does the provider.
    pub fn gemini() -> FakeProviderBuilder {
        FakeProviderBuilder::new(Gemini, Answer::echo())
    }

    /// Speaks no dialect, just HTTP under any path: a text is the whole body, a fault its status. Once the script is
    /// used up it answers 404.
    pub fn http() -> FakeProviderBuilder {
        FakeProviderBuilder::new(Plain, Answer::raw(404))
    }

    /// An OpenAI that is down: its port is taken, and refuses connections.
    ///
    /// For another dialect, or a script, see [`FakeProviderBuilder::refused`].
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub fn refused() -> io::Result<RefusedProvider> {
        Self::openai().refused()
    }

    /// The base URL to give to a client, `http://127.0.0.1:PORT/v1` for OpenAI; for the others without a path.
    pub fn base_url(&self) -> String {
        format!("{}{}", self.origin(), self.base_path)
    }

    /// `http://127.0.0.1:PORT`.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What arrived so far, in order. It keeps every request, bodies included, for as long as the server lives.
    pub fn journal(&self) -> Vec<Received> {
        self.shared.backend.state().journal.clone()
    }

    /// How many requests arrived so far.
    pub fn requests(&self) -> usize {
        self.shared.backend.state().journal.len()
    }

    /// How many connections are open.
    pub fn connections_open(&self) -> usize {
        self.shared.counts.borrow().open
    }

    /// Adds an answer to the end of the script.
    pub fn push(&self, answer: Answer) {
        self.shared.backend.state().script.push(answer);
    }

    /// Sets the answer for when the script is used up.
    pub fn set_otherwise(&self, answer: Answer) {
        self.shared.backend.state().script.set_otherwise(answer);
    }

    /// Waits until so many requests have arrived, in all.
    pub async fn wait_for_requests(&self, count: usize) {
        self.shared.wait_for(|counts| counts.requests >= count).await;
    }

    /// Waits until no request is being read or answered. Connections that are kept alive may still be open.
    ///
    /// A client that drops a call closes its connection, and both are seen together: after this,
    /// [`connections_open`](Self::connections_open) no longer counts it.
    pub async fn wait_until_idle(&self) {
        self.shared.wait_for(|counts| counts.busy == 0).await;
    }

    /// Waits until no connection is open.
    pub async fn wait_until_disconnected(&self) {
        self.shared.wait_for(|counts| counts.open == 0).await;
    }

    /// Stops, and waits until the port is free and all connections are closed. Dropping does the same without waiting.
    pub async fn stop(self) {
        self.server.abort();
        self.shared.wait_for(|counts| !counts.listening && counts.open == 0).await;
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl FakeProviderBuilder {
    fn new(protocol: impl Protocol + 'static, otherwise: Answer) -> Self {
        Self { protocol: Arc::new(protocol), script: Script::new(otherwise) }
    }

    /// Adds an answer to the script: one request, one answer, in order.
    pub fn then(mut self, answer: Answer) -> Self {
        self.script.push(answer);
        self
    }

    /// Plays the last answer so many times in all.
    pub fn times(mut self, times: usize) -> Self {
        self.script.repeat_last(times);
        self
    }

    /// Sets the answer for when the script is used up. Default: an echo of what was asked.
    pub fn otherwise(mut self, answer: Answer) -> Self {
        self.script.set_otherwise(answer);
        self
    }

    /// Sets a rule that answers when the script is used up: by path, by body, by the time or the number of a request.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> std::io::Result<()> {
    /// use steadfast::testing::{Answer, FakeProvider, Fault};
    ///
    /// let fake = FakeProvider::openai()
    ///     .otherwise_with(|received| match received.json() {
    ///         Ok(body) if body["model"] == "gpt-old" => Fault::status(404),
    ///         _ => Answer::echo(),
    ///     })
    ///     .start()
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn otherwise_with(mut self, rule: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        self.script.set_otherwise(Next::Rule(Arc::new(rule)));
        self
    }

    /// Starts the server, on this runtime.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub async fn start(self) -> io::Result<FakeProvider> {
        self.refused()?.listen().await
    }

    /// Starts the server on a thread and a runtime of its own: for code without a runtime, and for servers that are to
    /// be independent of the runtime under test.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let fake = steadfast::testing::FakeProvider::openai().start_blocking()?;
    /// assert_eq!(fake.requests(), 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// When no port or no thread can be had.
    pub fn start_blocking(self) -> io::Result<FakeProvider> {
        let (sender, receiver) = mpsc::channel();
        std::thread::Builder::new().name("fake-provider".to_owned()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(sender.send(Err(error))),
            };
            runtime.block_on(async {
                let started = self.start().await;
                let shared = started.as_ref().map(|fake| Arc::clone(&fake.shared));
                if let Ok(shared) = shared {
                    // Where nobody takes the handle it is dropped here, and the server stops.
                    drop(sender.send(started));
                    shared.wait_for(|counts| !counts.listening && counts.open == 0).await;
                } else {
                    drop(sender.send(started));
                }
            });
        })?;
        receiver.recv().map_err(io::Error::other)?
    }

    /// Takes a port that refuses connections until [`listen`](RefusedProvider::listen) is called.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub fn refused(self) -> io::Result<RefusedProvider> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let address = socket.local_addr()?;
        Ok(RefusedProvider { socket, address, builder: self })
    }
}

/// A provider that is down: its port refuses connections, and nobody else can take it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// use steadfast::testing::FakeProvider;
///
/// let down = FakeProvider::refused()?;
/// let base_url = down.base_url();
/// // … calls to `base_url` fail to connect …
/// let up = down.listen().await?;
/// assert_eq!(up.base_url(), base_url);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct RefusedProvider {
    socket: TcpSocket,
    address: SocketAddr,
    builder: FakeProviderBuilder,
}

impl RefusedProvider {
    /// The base URL to give to a client.
    pub fn base_url(&self) -> String {
        format!("{}{}", self.origin(), self.builder.protocol.base_path())
    }

    /// `http://127.0.0.1:PORT`.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Starts to answer.
    ///
    /// # Errors
    ///
    /// When the port cannot be listened on.
    #[allow(clippy::unused_async)] // a runtime is needed, and whoever awaits has one
    pub async fn listen(self) -> io::Result<FakeProvider> {
        let Self { socket, address, builder: FakeProviderBuilder { protocol, script } } = self;
        let listener = socket.listen(1024)?;
        let base_path = protocol.base_path();
        let shared = Arc::new(Shared::new(Backend::new(protocol, address.port(), script)));
        let server = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(FakeProvider { address, base_path, shared, server })
    }
}
