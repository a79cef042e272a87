//! An open stream, and the three ways in which it ends: complete, broken, dropped. Whichever it is, everything that the call
//! holds is settled then, and not before.

use super::open::{Opened, Streamed};
use super::reader::{Broken, Reader, Step};
use super::silence::Watch;
use crate::LlmError;
use crate::chat::{AnsweredBy, Chunk, Reply, Request, Usage};
use crate::client::Inner;
use crate::client::attempt::{Place, Sent, TargetOperation};
use crate::client::call::CallOptions;
use crate::client::chain::{Won, answered_by, effective_retry, model_of, spent};
use crate::client::failure::{AttemptFailure, aborted, line, listed, verdict_of};
use crate::client::scope::Scope;
use crate::client::validate::validate;
use crate::observe::EventKind;
use crate::provider::request_id;
use crate::record::{Attempt, ErrorCode, Next, Silence, StopReason, TargetAttempt};
use crate::resilience::Lease;
use crate::resilience::clock::wall_at;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::WaitForCancellationFutureOwned;

/// Request bodies up to this length are kept while a stream is open, for the snapshot in its error; larger ones are let go.
const KEPT_BODY: usize = 16 << 10;

/// An open stream, and everything that it holds.
pub(super) struct Open {
    client: Arc<Inner>,
    scope: Option<Scope>,
    /// What the reply is held to; the conversation itself is gone.
    contract: Request,
    options: CallOptions,
    place: usize,
    reader: Reader,
    watch: Watch,
    lease: Option<Lease>,
    sent: Option<Sent>,
    by: AnsweredBy,
    attempts: Vec<Attempt>,
    failed: Vec<TargetAttempt>,
    started: Instant,
    cancelled: [Option<Pin<Box<WaitForCancellationFutureOwned>>>; 2],
    /// Whether content came since the stream last had to wait.
    content: bool,
    /// The prompt's tokens and the bytes of output so far, to estimate by.
    prompt: u32,
    output: u64,
}

/// Why a stream ended without its answer.
pub(super) enum Why {
    Broken(Broken),
    Cancelled,
    Silent(Silence, Duration),
}

/// How a stream ended: what it yields last, and what it comes to.
pub(super) struct End {
    pub(super) last: Option<Result<Chunk, LlmError>>,
    pub(super) result: Result<Reply, LlmError>,
}

impl End {
    fn failed(error: LlmError) -> Self {
        Self { last: Some(Err(error.clone())), result: Err(error) }
    }
}

impl Open {
    pub(super) fn new(
        client: Arc<Inner>,
        scope: Scope,
        contract: Request,
        options: CallOptions,
        won: Won<Streamed>,
        prompt: u32,
        started: Instant,
    ) -> Self {
        let Won { place, output, lease, mut sent, attempts: made, history, failed } = won;
        let Opened { reader, watch, .. } = *output;
        sent.let_go_of_body(KEPT_BODY);
        let cancelled =
            [&options.cancel, &client.cancel].map(|token| token.clone().map(|token| Box::pin(token.cancelled_owned())));
        Self {
            by: answered_by(place, &client.targets[place], made, started.elapsed()),
            client,
            scope: Some(scope),
            contract,
            options,
            place,
            reader,
            watch,
            lease: Some(lease),
            sent: Some(sent),
            attempts: history,
            failed,
            started,
            cancelled,
            content: true,
            prompt,
            output: 0,
        }
    }

    pub(super) fn by(&self) -> &AnsweredBy {
        &self.by
    }

    pub(super) fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    pub(super) fn provider_request_id(&self) -> Option<&str> {
        request_id(&self.reader.head().headers)
    }

    /// With the id of the request: that of the head, or the one in the answer itself.
    fn identified(&self, reply: Reply) -> Reply {
        match self.provider_request_id() {
            Some(id) => reply.with_provider_request_id(id.to_owned()),
            None => reply,
        }
    }

    /// Who answers, and the failures before: for the time after the end.
    pub(super) fn origin(&mut self) -> (AnsweredBy, Vec<Attempt>) {
        (std::mem::take(&mut self.by), std::mem::take(&mut self.attempts))
    }

    /// The next chunk; none at the end of the answer.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Chunk>, Why>> {
        if self.cancelled.iter_mut().flatten().any(|cancelled| cancelled.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(Err(Why::Cancelled));
        }
        match self.reader.poll_step(cx) {
            Poll::Ready(Ok(Step::Chunk(chunk))) => {
                self.content = true;
                self.output += match &chunk {
                    Chunk::Reasoning(words) | Chunk::Text(words) => words.len() as u64,
                    Chunk::ToolCall(part) => part.arguments.len() as u64,
                    Chunk::Usage(_) => 0,
                };
                Poll::Ready(Ok(Some(chunk)))
            }
            Poll::Ready(Ok(Step::Done)) => {
                self.reader.drain(cx);
                Poll::Ready(Ok(None))
            }
            Poll::Ready(Err(broken)) => Poll::Ready(Err(Why::Broken(broken))),
            Poll::Pending => {
                let (fresh, content) = (self.reader.take_fresh(), std::mem::take(&mut self.content));
                self.watch.poll(cx, fresh, content).map(|(silence, limit)| Err(Why::Silent(silence, limit)))
            }
        }
    }

    /// The answer is complete: it is held to what was asked, and everything is settled.
    pub(super) fn finish(&mut self) -> End {
        let usage = self.reader.draft.usage_so_far();
        let finished = self.reader.draft.finished();
        if self.options.pass_through {
            return self.finish_passed_through(usage, finished.err().map(|(fault, _)| fault));
        }
        match finished {
            Ok(reply) => {
                let mut reply = self.identified(reply);
                if let Err(breach) = validate(&self.contract, &self.options.expected, &mut reply) {
                    let failed = self.fail(|op, reader| op.breached(breach, reader.head(), usage.as_ref()), reply);
                    return End::failed(failed);
                }
                reply.answered(self.by.clone(), self.attempts.clone());
                self.succeed(usage);
                End { last: usage.map(|usage| Ok(Chunk::Usage(usage))), result: Ok(reply) }
            }
            Err((fault, partial)) => End::failed(self.fail(|op, reader| op.unusable(fault, reader.head()), partial)),
        }
    }

    /// The answer is complete, and nobody kept it.
    fn finish_passed_through(&mut self, usage: Option<Usage>, fault: Option<crate::provider::AnswerFault>) -> End {
        if let Some(fault) = fault {
            return End::failed(self.fail(|op, reader| op.unusable(fault, reader.head()), Reply::default()));
        }
        self.succeed(usage);
        let message = "the call asked not to accumulate: its stream has no reply; read its chunks";
        End {
            last: usage.map(|usage| Ok(Chunk::Usage(usage))),
            result: Err(LlmError::of(ErrorCode::InvalidCall, message)),
        }
    }

    fn succeed(&mut self, usage: Option<Usage>) {
        if let Some(lease) = self.lease.take() {
            lease.succeed(spent(usage.as_ref()));
        }
        let target = &self.client.targets[self.place];
        let about = Some((target, model_of(self.place, target, &self.options)));
        if let Some(scope) = self.scope.take() {
            if let Some(usage) = usage {
                scope.tell(about, || EventKind::Usage { usage });
            }
            scope.finish(about, None);
        }
    }

    /// The stream broke: the error, with what had come until then.
    pub(super) fn broken(&mut self, why: Why) -> End {
        let partial = self.reader.draft.partial();
        let partial = self.identified(partial);
        End::failed(self.fail(
            |op, reader| match why {
                Why::Broken(broken) => op.stream_broken(&broken, reader.head(), true),
                Why::Silent(silence, limit) => op.silent(silence, limit, true),
                Why::Cancelled => {
                    let error = aborted();
                    let what = error.to_string();
                    op.with_request(AttemptFailure {
                        verdict: verdict_of(&error),
                        error,
                        what,
                        spent: None,
                        limits: None,
                    })
                }
            },
            partial,
        ))
    }

    fn fail(
        &mut self,
        failure: impl FnOnce(&TargetOperation<'_, Streamed>, &Reader) -> AttemptFailure,
        mut partial: Reply,
    ) -> LlmError {
        let Some((sent, scope)) = self.sent.take().zip(self.scope.take()) else {
            return LlmError::new(crate::ErrorKind::Unknown, "the stream has ended"); // it fails once
        };
        let target = &self.client.targets[self.place];
        let model = model_of(self.place, target, &self.options);
        let retry = effective_retry(target, &self.options);
        let sent_at = sent.at.unwrap_or(self.started);
        let at = Place {
            client: &self.client,
            scope: &scope,
            target,
            options: &self.options,
            request: &self.contract,
            retry: &retry,
            model,
        };
        let failure = failure(&TargetOperation::again(at, sent), &self.reader);

        let (usage, estimated) = self.usage_so_far();
        if let Some(lease) = self.lease.take() {
            let tokens = spent(Some(&usage));
            if failure.error.kind() == crate::ErrorKind::Aborted {
                lease.abandon(tokens);
            } else {
                lease.fail(&failure.verdict, tokens);
            }
        }
        let about = Some((target, model));
        let index = self.by.attempts.saturating_sub(1);
        let AttemptFailure { error, what, .. } = failure;
        scope.tell(about, || EventKind::AttemptFailed { attempt: index, error: error.clone() });
        scope.tell(about, || EventKind::UsageFailure { usage, partial: true, estimated });

        let mut last =
            Attempt::new(index, error.to_snapshot(), wall_at(sent_at), Next::Stopped(StopReason::NotRetryable));
        last.request = last.error.request.take();
        last.duration = sent_at.elapsed();
        // The failed attempts on this target, and this one; a single one is the error itself.
        let own = self.attempts.len().saturating_sub(index as usize);
        let count = self.attempts.len() - own + 1;
        let nested = if count > 1 { self.attempts[own..].iter().cloned().chain([last]).collect() } else { Vec::new() };
        let error = error.with_retryable(false).change_record(|record| {
            let time = (count, self.started.elapsed());
            record.message = line(Some(&target.name), &what, Some(time), record.provider_message.as_deref());
            record.attempts = nested;
        });
        partial.answered(self.by.clone(), self.attempts.clone());
        let mut targets = std::mem::take(&mut self.failed);
        let error = if targets.is_empty() {
            error
        } else {
            targets.push(listed(self.place, target, model, error.clone()));
            error.change_record(|record| record.targets = targets)
        };
        let error = error.with_partial(partial);
        scope.finish(about, Some(&error));
        error
    }

    /// What the stream has spent so far: as reported, or else estimated by the length of its texts.
    fn usage_so_far(&self) -> (Usage, bool) {
        match self.reader.draft.usage_so_far() {
            Some(usage) => (usage, false),
            None => (Usage::new(u64::from(self.prompt), self.output.div_ceil(4)), true),
        }
    }
}

/// Its reader has lost interest: what it spent is told, and everything is given back.
impl Drop for Open {
    fn drop(&mut self) {
        let (usage, estimated) = self.usage_so_far();
        if let Some(lease) = self.lease.take() {
            lease.abandon(spent(Some(&usage)));
        }
        if let Some(scope) = self.scope.take() {
            let target = &self.client.targets[self.place];
            let about = Some((target, model_of(self.place, target, &self.options)));
            scope.tell(about, || EventKind::UsageFailure { usage, partial: true, estimated });
        }
    }
}
