//! One attempt on one target, as the engine runs it.

mod evidence;

use super::Inner;
use super::call::CallOptions;
use super::credentials::Applied;
use super::failure::{AttemptFailure, line, verdict_of};
use super::scope::{Scope, reason};
use super::target::ReadyTarget;
use crate::LlmError;
use crate::chat::Request;
use crate::observe::EventKind;
use crate::provider::{Auth, EncodeContext, Failure, Head, HttpRequest, TransportFault};
use crate::record::{ErrorCode, ErrorKind};
use crate::resilience::{Advice, AttemptContext, Interrupt, LimitHint, Operation, Retry, Signal, Verdict};
use crate::transport::Response;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use std::fmt::Write as _;
use std::marker::PhantomData;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How much of the body of a failure is read, and for how long.
const FAILURE_BODY: usize = 1 << 20;
const FAILURE_BODY_TIME: Duration = Duration::from_secs(5);

/// The attempts of one call on one target. `T` says what is made of an answer.
pub(super) struct TargetOperation<'a, T> {
    pub(super) client: &'a Inner,
    pub(super) scope: &'a Scope,
    pub(super) target: &'a ReadyTarget,
    pub(super) options: &'a CallOptions,
    /// What the answer is held to.
    pub(super) request: &'a Request,
    retry: &'a Retry,
    pub(super) model: &'a str,
    sent: Sent,
    /// The failure whose body the running attempt is reading: what is left of it when the attempt is cut off.
    refusal: Option<(Head, BytesMut)>,
    attempts: u32,
    /// How many attempts this target had before, with other words.
    before: u32,
    /// Whether a kept token was rejected already.
    token_rejected: bool,
    takes: PhantomData<fn() -> T>,
}

/// What an attempt sends, and what of it an error may show.
pub(super) struct Sent {
    /// What every attempt sends, without credentials.
    pub(super) request: HttpRequest,
    /// When the running attempt was sent, if it was.
    pub(super) at: Option<Instant>,
    /// The credentials of the running attempt.
    applied: Applied,
    /// Whether the body was let go since.
    body_let_go: bool,
}

impl Sent {
    /// Lets the body go if it is longer than this: nothing is sent again, and it would be held for an error that may not come.
    pub(super) fn let_go_of_body(&mut self, longest: usize) {
        if self.request.body.len() > longest {
            self.request.body = Bytes::new();
            self.body_let_go = true;
        }
    }
}

/// What is made of an answer whose status is a success: a whole reply, or an open stream.
pub(super) trait Take: Sized {
    type Output: Send;
    /// What is kept of what was sent.
    type Kept: Send;

    /// Keeps what is needed of what was sent, once there is an answer.
    fn keep(sent: Sent) -> Self::Kept;

    /// What the adapter is told when it encodes the request.
    fn context(model: &str) -> EncodeContext<'_>;

    /// Reads as much of the answer as is needed.
    fn take(
        op: &TargetOperation<'_, Self>,
        response: Response,
    ) -> impl Future<Output = Result<Self::Output, AttemptFailure>> + Send;
}

/// Where the attempts of a call are made.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) client: &'a Inner,
    pub(super) scope: &'a Scope,
    pub(super) target: &'a ReadyTarget,
    pub(super) options: &'a CallOptions,
    pub(super) request: &'a Request,
    pub(super) retry: &'a Retry,
    pub(super) model: &'a str,
}

impl<'a, T: Take> TargetOperation<'a, T> {
    pub(super) fn new(place: Place<'a>, mut request: HttpRequest) -> Self {
        for (name, value) in place.options.headers.iter().flat_map(|headers| headers.iter()) {
            request.headers.insert(name, value.clone());
        }
        if let Some(id) = place.options.request_id.as_deref().and_then(|id| http::HeaderValue::from_str(id).ok()) {
            request.headers.insert("x-client-request-id", id);
        }
        Self::again(place, Sent { request, at: None, applied: Applied::default(), body_let_go: false })
    }

    /// The operation of a request that was sent: to say what became of it later.
    pub(super) fn again(place: Place<'a>, sent: Sent) -> Self {
        let Place { client, scope, target, options, request, retry, model } = place;
        Self {
            client,
            scope,
            target,
            options,
            request,
            retry,
            model,
            sent,
            refusal: None,
            attempts: 0,
            before: 0,
            token_rejected: false,
            takes: PhantomData,
        }
    }

    /// The same after so many attempts on this target.
    pub(super) fn after(self, attempts: u32) -> Self {
        Self { before: attempts, ..self }
    }

    /// What is kept of what was sent.
    pub(super) fn into_kept(self) -> T::Kept {
        T::keep(self.sent)
    }

    /// How many attempts were made.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    async fn send(&mut self, cx: AttemptContext<'_>) -> Result<T::Output, AttemptFailure> {
        self.attempts += 1;
        (self.sent.at, self.refusal) = (None, None);
        let mut request = self.sent.request.clone();
        let auth = self.target.provider.auth();
        self.sent.applied = match self.target.credentials.apply(auth, self.options, &mut request).await {
            Ok(applied) => applied,
            Err(error) => return Err(Self::unauthorized(error)),
        };
        // Only some credentials take time.
        let waits = matches!(auth, Auth::Source(_) | Auth::Custom(_));
        self.sent.at = Some(if waits { Instant::now() } else { cx.started });
        cx.progress.sent();
        let mut response = match self.client.sender.send(request).await {
            Ok(response) => response,
            Err(error) => {
                if matches!(error.fault(), TransportFault::Connect | TransportFault::Request) {
                    cx.progress.unsent();
                }
                return Err(self.broken(error));
            }
        };
        cx.progress.head();
        self.tell_redirect(&response);
        if response.head.status != StatusCode::OK {
            let (head, body) = self.refusal.insert((response.head.clone(), BytesMut::new()));
            // What came until then is enough: the status has said that it failed.
            let _ = timeout(FAILURE_BODY_TIME, response.read_some(FAILURE_BODY, body)).await;
            let (head, body) = (head.clone(), body.split().freeze());
            return Err(self.refused(&head, &body));
        }
        T::take(self, response).await
    }

    /// Your own HTTP client may have followed a redirect, and taken a key along.
    fn tell_redirect(&self, response: &Response) {
        if self.scope.is_observed()
            && let Some(url) = response.url()
            && url.origin() != self.sent.request.url.origin()
        {
            let to = url.origin().ascii_serialization();
            self.scope.tell(Some((self.target, self.model)), || EventKind::Redirected { to });
        }
    }

    /// An answer whose status says that it failed.
    fn refused(&mut self, head: &Head, body: &Bytes) -> AttemptFailure {
        let mut failed = match self.target.provider.decode(head, body) {
            Err(failure) => self.failed(failure, Some(head), None),
            // An adapter may take another status than 200 for a success; this client reads whole answers of 200 only.
            Ok(_) => self.failed(Failure::of(head, body), Some(head), None),
        };
        if head.status.is_redirection()
            && let Some(to) = head.header("location")
        {
            let to = self.redactor().owned(origin(to, &self.sent.request.url));
            _ = write!(failed.what, ": redirects to {to}, which is not followed; is the base URL right?");
            let message = line(None, &failed.what, None, failed.error.provider_message());
            failed = failed.change(|record| record.message = message);
        }
        self.fresh_token(failed)
    }

    /// There are no credentials: nothing was sent.
    fn unauthorized(error: LlmError) -> AttemptFailure {
        let verdict = verdict_of(&error);
        let what = format!("no credentials: {error}");
        AttemptFailure { error, verdict, what, spent: None, limits: None }
    }

    /// A provider that does not accept credentials that were kept says that they are old: others are fetched, and the attempt
    /// is worth repeating, once.
    fn fresh_token(&mut self, mut failed: AttemptFailure) -> AttemptFailure {
        if let (Some(token), Some(ErrorCode::Authentication)) = (self.sent.applied.kept_token, failed.error.code()) {
            self.target.credentials.reject(self.target.provider.auth(), token);
            if !std::mem::replace(&mut self.token_rejected, true) {
                failed.verdict.retry = Advice::After(Duration::ZERO);
                failed = failed.change(|record| record.retryable = true);
            }
        }
        failed
    }
}

/// The place that a redirect points to, without its path and query, which may hold secrets.
fn origin(to: &str, from: &url::Url) -> String {
    from.join(to).map_or_else(|_| "an unreadable place".to_owned(), |url| url.origin().ascii_serialization())
}

impl<T: Take> Operation for TargetOperation<'_, T> {
    type Output = T::Output;
    type Error = AttemptFailure;

    fn attempt<'a>(
        &'a mut self,
        cx: AttemptContext<'a>,
    ) -> impl Future<Output = Result<T::Output, AttemptFailure>> + Send {
        self.send(cx)
    }

    fn interrupted(&mut self, by: Interrupt) -> AttemptFailure {
        let failure = match (by, self.refusal.take()) {
            // Only its body is late: the failure is the one that its head tells of, with the wait that it advises.
            (Interrupt::Timeout(_), Some((head, body))) => return self.refused(&head, &body.freeze()),
            (Interrupt::Timeout(after), None) => {
                let what = format!("request timeout after {}", super::failure::Human(after));
                AttemptFailure::of(ErrorCode::RequestTimeout, what)
            }
            (Interrupt::Deadline, _) => AttemptFailure::of(ErrorCode::DeadlineExceeded, "deadline exceeded".to_owned()),
            (Interrupt::Cancelled, _) => {
                let what = "cancelled by the caller".to_owned();
                let error = LlmError::new(ErrorKind::Aborted, what.clone());
                AttemptFailure { verdict: verdict_of(&error), error, what, spent: None, limits: None }
            }
        };
        self.with_request(failure)
    }

    fn classify(&self, failure: &AttemptFailure) -> Verdict {
        failure.verdict
    }

    fn spent(&self, failure: &AttemptFailure) -> Option<u32> {
        failure.spent
    }

    fn limits(&self, failure: &AttemptFailure) -> Option<LimitHint> {
        failure.limits.as_deref().copied()
    }

    fn observe(&self, signal: Signal<'_, AttemptFailure>) {
        self.scope.tell(Some((self.target, self.model)), || match signal {
            Signal::AttemptStarted { index } => EventKind::AttemptStarted { attempt: self.before + index },
            Signal::AttemptFailed { index, error } => {
                EventKind::AttemptFailed { attempt: self.before + index, error: error.error.clone() }
            }
            Signal::RetryScheduled { retry, max_retries, delay, advised, error } => EventKind::RetryScheduled {
                attempt: retry,
                max_retries,
                delay,
                advised,
                reason: reason(&error.error),
                error: error.error.clone(),
            },
            Signal::RateLimited { waited, bucket } => EventKind::RateLimited { waited, bucket },
            Signal::BudgetExhausted { error } => EventKind::BudgetExhausted { error: error.error.clone() },
        });
    }
}
