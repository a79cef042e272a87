//! An answer as it comes.

mod end;
mod open;
mod reader;
mod silence;

pub(super) use open::open;

use crate::LlmError;
use crate::chat::{AnsweredBy, Chunk, Reply};
use crate::record::{Attempt, ErrorCode};
use end::Open;
use futures_core::Stream;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// A streamed answer: its chunks as they come, and the whole reply at its end.
///
/// It is read no faster than it is asked for: a reader that stops holds the server back. Opening it was retried and failed
/// over like any call; once there is content nothing is sent again, since the caller may have shown it. What breaks then
/// is one error, after which the stream yields nothing more: `stream_interrupted`, `idle_timeout`, or what the provider's own
/// error in the stream says. [`LlmError::partial`] holds what had come until then. An answer that ends before its protocol's
/// end is never a success.
///
/// Dropping it cancels the request and gives back everything that it holds.
///
/// ```
/// use steadfast::{Client, Target, testing::{Answer, FakeProvider}, provider::OpenAi};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let fake = FakeProvider::openai().otherwise(Answer::text("Paris, of course.")).start().await?;
/// let target = Target::new(OpenAi::new("sk-...").base_url(&fake.base_url()), "gpt-5-mini");
/// let client = Client::builder(target).build()?;
///
/// let mut stream = client.stream("What is the capital of France?").await?;
/// while let Some(chunk) = stream.next().await {
///     print!("{}", chunk?.text());
/// }
/// let reply = stream.into_reply().await?;
/// assert_eq!(reply.text(), "Paris, of course.");
/// # Ok(()) }
/// ```
#[must_use = "a stream does nothing until it is read"]
pub struct ReplyStream(Box<State>);

/// Where a stream is.
enum State {
    Open(Box<Open>),
    /// It ended: with the reply, or with an error that was yielded.
    Ended(AnsweredBy, Vec<Attempt>, Box<Result<Reply, LlmError>>),
}

impl ReplyStream {
    /// The next chunk; none after the last one, and after an error.
    ///
    /// # Errors
    ///
    /// What broke the stream. It comes once.
    pub async fn next(&mut self) -> Option<Result<Chunk, LlmError>> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, LlmError>>> {
        let State::Open(open) = &mut *self.0 else { return Poll::Ready(None) };
        let end = match ready!(open.poll(cx)) {
            Ok(Some(chunk)) => return Poll::Ready(Some(Ok(chunk))),
            Ok(None) => open.finish(),
            Err(why) => open.broken(why),
        };
        let (by, attempts) = open.origin();
        *self.0 = State::Ended(by, attempts, Box::new(end.result));
        Poll::Ready(end.last)
    }

    /// Reads what is left, and gives the whole reply: the same that [`Client::call`](crate::Client::call) would have given,
    /// after the same validation.
    ///
    /// # Errors
    ///
    /// What broke the stream, the same error again where [`next`](Self::next) has given it; `invalid_call` where the call asked not
    /// to accumulate.
    pub async fn into_reply(self) -> Result<Reply, LlmError> {
        self.on_text(|_| {}).await
    }

    /// Reads what is left, calls `show` for each piece of text, and gives the whole reply.
    ///
    /// # Errors
    ///
    /// As [`into_reply`](Self::into_reply).
    pub async fn on_text(mut self, mut show: impl FnMut(&str)) -> Result<Reply, LlmError> {
        while let Some(Ok(chunk)) = self.next().await {
            if let Chunk::Text(words) = chunk {
                show(&words);
            }
        }
        match *self.0 {
            State::Ended(_, _, reply) => *reply,
            // `next` has said that there is nothing more, which it does of an ended stream only.
            State::Open(_) => Err(LlmError::new(crate::ErrorKind::Unknown, "the stream has not ended")),
        }
    }

    /// Reads what is left, and gives its text. Works without accumulation too; what was read before is not in it.
    ///
    /// # Errors
    ///
    /// What broke the stream.
    pub async fn collect_text(mut self) -> Result<String, LlmError> {
        let mut text = String::new();
        while let Some(chunk) = self.next().await {
            text.push_str(chunk?.text());
        }
        match *self.0 {
            State::Ended(_, _, result) => {
                result.err().filter(|error| error.code() != Some(ErrorCode::InvalidCall)).map_or(Ok(text), Err)
            }
            State::Open(_) => Ok(text),
        }
    }

    /// The target that answers, and what it took to open the stream.
    pub fn target(&self) -> &AnsweredBy {
        match &*self.0 {
            State::Open(open) => open.by(),
            State::Ended(by, ..) => by,
        }
    }

    /// The provider's request id, for support tickets.
    pub fn provider_request_id(&self) -> Option<&str> {
        match &*self.0 {
            State::Open(open) => open.provider_request_id(),
            State::Ended(_, _, result) => Result::as_ref(result).ok()?.provider_request_id(),
        }
    }

    /// The failures that came before the stream was open, on every target, in order.
    pub fn attempts(&self) -> &[Attempt] {
        match &*self.0 {
            State::Open(open) => open.attempts(),
            State::Ended(_, attempts, _) => attempts,
        }
    }
}

impl Stream for ReplyStream {
    type Item = Result<Chunk, LlmError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_chunk(cx)
    }
}

impl fmt::Debug for ReplyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_open = matches!(*self.0, State::Open(_));
        f.debug_struct("ReplyStream").field("target", self.target()).field("open", &is_open).finish_non_exhaustive()
    }
}
