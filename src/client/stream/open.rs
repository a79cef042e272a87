//! Opening a stream: everything up to the first chunk with content, which is retried and failed over like a call.

use super::end::Open;
use super::reader::{Broken, Reader, Step};
use super::silence::Watch;
use super::{ReplyStream, State};
use crate::LlmError;
use crate::chat::Request;
use crate::client::attempt::{Sent, Take, TargetOperation};
use crate::client::call::{Call, CallOptions};
use crate::client::chain::{ask_in_order, follow};
use crate::client::failure::{AttemptFailure, Human};
use crate::client::scope::Scope;
use crate::client::target::ReadyTarget;
use crate::client::whole::Answered;
use crate::client::{Inner, check, estimate};
use crate::provider::{AnswerFault, Draft, EncodeContext, Failure, Framing, Head, TransportFault};
use crate::record::{ErrorCode, Issues, Silence};
use crate::resilience::LimitHint;
use crate::transport::framing::Framer;
use crate::transport::{Response, TransportError};
use bytes::Bytes;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// Asks for an answer as it comes, and waits until it begins.
#[expect(clippy::manual_async_fn, reason = "an async fn keeps its arguments twice, and a call is large")]
pub(in crate::client) fn open(
    client: &Arc<Inner>,
    mut call: Call,
) -> impl Future<Output = Result<ReplyStream, LlmError>> + Send {
    async move {
        let started = Instant::now();
        let Call { request, options } = &mut call;
        let scope = Scope::begin(&client.observers, &client.random, options.request_id.as_deref(), started);
        let opened = match check::check(client, request, options) {
            Ok(()) => ask_in_order::<Streamed>(client, request, options, started, &scope).await,
            Err(error) => Err(error),
        };
        match opened {
            Ok(mut won) => {
                let target = &client.targets[won.place];
                follow(target, won.output.limits.take().as_deref());
                // What a broken stream has cost is counted from here, where anyone wants to know.
                let counts = target.guards.limiter.is_some() || scope.is_observed();
                let prompt = if counts { estimate::prompt(request) } else { 0 };
                let Call { request, options } = call;
                let contract = Request { history: Vec::new(), system: None, user: None, ..request };
                let open = Open::new(Arc::clone(client), scope, contract, options, won, prompt, started);
                Ok(ReplyStream(Box::new(State::Open(Box::new(open)))))
            }
            Err(error) => {
                scope.finish(None, Some(&error));
                Err(error)
            }
        }
    }
}

/// Takes an answer as it comes.
pub(in crate::client) struct Streamed;

/// A stream with content, or one that has ended without any.
pub(in crate::client) struct Opened {
    pub(super) reader: Reader,
    pub(super) watch: Watch,
    limits: Option<Box<LimitHint>>,
}

impl Take for Streamed {
    type Output = Box<Opened>;
    type Kept = Sent;

    fn keep(sent: Sent) -> Sent {
        sent
    }

    fn context(model: &str) -> EncodeContext<'_> {
        EncodeContext::new(model).streaming()
    }

    #[expect(clippy::manual_async_fn, reason = "an async fn keeps its arguments twice, and a response is large")]
    fn take(
        op: &TargetOperation<'_, Self>,
        mut response: Response,
    ) -> impl Future<Output = Result<Box<Opened>, AttemptFailure>> + Send {
        async move {
            let provider = &op.target.provider;
            let (framing, cap) = (provider.framing(), op.client.max_response_bytes);
            let Some(decoder) = provider.stream_decoder(&Self::context(op.model)) else {
                let what = format!("{} does not stream", provider.name());
                return Err(AttemptFailure::of(ErrorCode::UnsupportedCapability, what));
            };
            let draft = || if op.options.pass_through { Draft::pass_through() } else { Draft::new() };
            let (idle, stall) = silences(op.target, op.options);
            let mut framer = Framer::new(framing.clone()).max_event_bytes(op.client.max_event_bytes);
            if says_whole(&framing, &response.head) {
                let body = response.read(cap).await.map_err(|error| op.broken(error))?;
                return whole(op, response, &body, framer, decoder, draft());
            }
            let mut watch = Watch::new(idle, None);
            let first = poll_fn(|cx| match response.poll_chunk(cx) {
                Poll::Ready(first) => Poll::Ready(Ok(first)),
                Poll::Pending => watch.poll(cx, false, false).map(Err),
            });
            let first = match first.await {
                Ok(first) => first.map_err(|error| op.broken(error))?,
                Err((silence, limit)) => return Err(op.silent(silence, limit, false)),
            };
            if let Some(first) = first {
                // An error that is sent as it is, without an event around it, would be no event at all.
                if matches!(framing, Framing::Sse) && looks_whole(&first) {
                    let body = response.read_after(first, cap).await.map_err(|error| op.broken(error))?;
                    return whole(op, response, &body, framer, decoder, draft());
                }
                framer.push(first);
            }
            let limits = op.hint(&response.head).map(Box::new);
            let mut reader = Reader::new(response, framer, decoder, draft(), cap);
            let first = poll_fn(|cx| match reader.poll_step(cx) {
                Poll::Ready(step) => Poll::Ready(Ok(step)),
                Poll::Pending => {
                    let fresh = reader.take_fresh();
                    watch.poll(cx, fresh, false).map(Err)
                }
            });
            match first.await {
                Ok(Ok(Step::Chunk(chunk))) => reader.draft.put_back(chunk),
                Ok(Ok(Step::Done)) => {
                    if let Some(fault) = reader.draft.unusable() {
                        return Err(op.unusable(fault, reader.head()));
                    }
                }
                Ok(Err(broken)) => return Err(op.stream_broken(&broken, reader.head(), false)),
                Err((silence, limit)) => return Err(op.silent(silence, limit, false)),
            }
            Ok(Box::new(Opened { reader, watch: Watch::new(idle, stall), limits }))
        }
    }
}

/// How long a stream of this call on this target may be silent: in bytes, and in chunks with content.
fn silences(target: &ReadyTarget, options: &CallOptions) -> (Option<Duration>, Option<Duration>) {
    let idle = options.idle_timeout.unwrap_or(target.idle_timeout);
    (idle, options.stall_timeout.unwrap_or(target.stall_timeout))
}

/// Whether a head announces something else than a stream: a whole answer, an error, a page, or what nobody here can read.
fn says_whole(framing: &Framing, head: &Head) -> bool {
    let media = head.header("content-type").and_then(|media| media.split(';').next()).unwrap_or_default().trim();
    let compressed = head.header("content-encoding").is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity"));
    // Lines of JSON may be announced as JSON too; what a framing of the user's own is announced as is not known here.
    let lines = matches!(framing, Framing::Custom(_) | Framing::Ndjson);
    let json = media.eq_ignore_ascii_case("application/json") && !lines;
    compressed || json || media.eq_ignore_ascii_case("text/html")
}

/// Whether a body begins as JSON or a page do, and no server-sent event does.
fn looks_whole(first: &[u8]) -> bool {
    let text = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first).trim_ascii_start();
    matches!(text.first(), Some(b'{' | b'[' | b'<'))
}

/// An answer that came whole although a stream was asked for: as good as any other, and as bad.
fn whole(
    op: &TargetOperation<'_, Streamed>,
    response: Response,
    body: &Bytes,
    framer: Framer,
    decoder: Box<dyn crate::provider::StreamDecoder>,
    draft: Draft,
) -> Result<Box<Opened>, AttemptFailure> {
    let Answered { reply, limits } = *op.decode(&response.head, body)?;
    let reader = Reader::new(response, framer, decoder, draft.whole(&reply), op.client.max_response_bytes);
    Ok(Box::new(Opened { reader, watch: Watch::new(None, None), limits }))
}

/// What goes wrong with a stream, as a failure of its attempt.
impl TargetOperation<'_, Streamed> {
    /// The stream broke.
    pub(super) fn stream_broken(&self, broken: &Broken, head: &Head, delivered: bool) -> AttemptFailure {
        let (failure, source) = match broken {
            Broken::Cut => {
                let cut = "the stream ended before the answer did";
                let error = TransportError::new(TransportFault::Interrupted, cut);
                (Failure::transport(TransportFault::Interrupted), Some(error.into_source()))
            }
            Broken::Frame { fault, event, data } => (Failure::of(head, data).fault(fault.clone()).event(event), None),
            Broken::Framing(why) => (Failure::of(head, b"{}").fault(AnswerFault::Frame(why.clone())), None),
            Broken::TooLarge(limit) => (Failure::transport(TransportFault::TooLarge(*limit)), None),
            Broken::Transport(error) => (Failure::transport(error.fault()), Some(error.to_string().into())),
        };
        let failure = failure.delivered(delivered);
        // What was generated until then was paid for.
        AttemptFailure { spent: None, ..self.failed(failure, Some(head), source) }
    }

    /// The stream was silent for too long.
    pub(super) fn silent(&self, silence: Silence, limit: Duration, delivered: bool) -> AttemptFailure {
        let of = if silence == Silence::Bytes { "a byte" } else { "content" };
        let what = format!("idle timeout: the stream was silent for {} without {of}", Human(limit));
        let failed = AttemptFailure::of(ErrorCode::IdleTimeout, what);
        let failed = failed.change(|record| {
            record.issues = Some(Issues::Silence { silence });
            record.retryable &= !delivered;
        });
        self.with_request(failed)
    }
}
