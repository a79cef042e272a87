//! From what was seen of an attempt to its failure: classified, with the request that was sent, and without a secret.

use super::{Take, TargetOperation};
use crate::LlmError;
use crate::chat::Usage;
use crate::client::chain::spent;
use crate::client::failure::{AttemptFailure, line, what};
use crate::client::validate::Breach;
use crate::error::Redactor;
use crate::provider::{AnswerFault, Auth, Failure, Head, request_id};
use crate::record::{ErrorCode, Issues, RequestSnapshot};
use crate::resilience::clock::{wall_at, wall_now};
use crate::resilience::{Advice, Health, LimitHint};
use crate::transport::TransportError;
use std::error::Error;
use tokio::time::Instant;

/// The longest id of a request that is kept, in characters.
const REQUEST_ID: usize = 256;

impl<T: Take> TargetOperation<'_, T> {
    /// The connection failed.
    pub(in crate::client) fn broken(&self, error: TransportError) -> AttemptFailure {
        let failure = Failure::transport(error.fault());
        self.failed(failure, None, Some(error.into_source()))
    }

    /// Turns evidence into an error, with the request that was sent, and without a secret.
    pub(in crate::client) fn failed(
        &self,
        failure: Failure<'_>,
        head: Option<&Head>,
        source: Option<Box<dyn Error + Send + Sync>>,
    ) -> AttemptFailure {
        let failure = failure.at(wall_now());
        let status = failure.status;
        let mut seen = self.target.rules().classify(&failure);
        // The target's own lists stand between the provider's word and the table.
        seen.retry = seen.advice(&self.retry.non_retryable_status, &self.retry.retry_status, true);
        if self.is_own_fault(seen.code) {
            seen.health = Health::Neutral;
        }
        let redactor = self.redactor();
        let clean = |text: Option<String>| text.map(|text| self.client.capture.text(&redactor, text));
        seen.provider_message = clean(seen.provider_message);
        seen.arrived = clean(seen.arrived);
        let cause = source.as_deref().map(|source| redactor.owned(root_cause(source)));
        let what = what(&seen, status, cause.as_deref());
        let verdict = seen.verdict(status);
        let message = line(None, &what, None, seen.provider_message.as_deref());

        let mut error = LlmError::new(seen.kind, message).with_counts_toward_breaker(verdict.health == Health::Bad);
        error = error.change_record(|record| {
            record.code = seen.code;
            record.status = status;
            record.retryable = verdict.retry != Advice::Never;
            record.retry_after = seen.retry_after;
            record.provider_code = seen.provider_code.map(|code| redactor.owned(code));
            record.provider_type = seen.provider_type.map(|kind| redactor.owned(kind));
            record.provider_message = seen.provider_message;
            record.issues = seen.issues.map(|issues| redactor.issues(issues));
            record.request_id = head.and_then(|head| request_id(&head.headers)).map(|id| kept_id(&redactor, id));
            record.request = Some(self.snapshot(&redactor));
        });
        if let Some(source) = source {
            error = error.with_shared_source(redactor.source(source));
        }
        let limits = head.and_then(|head| self.hint(head)).map(Box::new);
        AttemptFailure { error, verdict, what, spent: Some(0), limits }
    }

    /// The answer came to its end, and is none. What it cost was paid all the same.
    pub(in crate::client) fn unusable(&self, fault: AnswerFault, head: &Head) -> AttemptFailure {
        // No event of the stream is to blame: there is no body whose words would say more.
        let failure = Failure::of(head, b"{}").fault(fault);
        AttemptFailure { spent: None, ..self.failed(failure, Some(head), None) }
    }

    /// The answer came, and does not keep to what was asked. It was paid for.
    pub(in crate::client) fn breached(&self, breach: Breach, head: &Head, usage: Option<&Usage>) -> AttemptFailure {
        let redactor = self.redactor();
        let mut issues = redactor.issues(breach.issues);
        if let Issues::Json { text_head, .. } = &mut issues {
            *text_head = self.client.capture.text(&redactor, std::mem::take(text_head));
        }
        let mut failed = AttemptFailure::of(breach.code, redactor.owned(breach.what));
        failed.spent = spent(usage);
        failed.limits = self.hint(head).map(Box::new);
        failed.change(|record| {
            record.status = Some(head.status.as_u16());
            record.issues = Some(issues);
            record.request_id = request_id(&head.headers).map(|id| kept_id(&redactor, id));
            record.request = Some(self.snapshot(&redactor));
        })
    }

    /// A bad key or model that the call brought itself says nothing about the target.
    fn is_own_fault(&self, code: Option<ErrorCode>) -> bool {
        match code {
            Some(ErrorCode::NotFound) => self.model != self.target.model,
            Some(ErrorCode::Authentication | ErrorCode::Authorization) => {
                let header = match self.target.provider.auth() {
                    Auth::Header(header) => header.name(),
                    Auth::Source(source) => source.name(),
                    Auth::None | Auth::Query(_) | Auth::Custom(_) => &http::header::AUTHORIZATION,
                };
                self.options.has_header(header)
            }
            _ => false,
        }
    }

    /// What an answer says of the provider's limits, where the limiter follows it.
    pub(in crate::client) fn hint(&self, head: &Head) -> Option<LimitHint> {
        let follows = self.target.guards.limiter.as_ref().is_some_and(crate::resilience::Limiter::follows);
        if follows { self.target.rules().limits(&head.headers, Some(wall_now())) } else { None }
    }

    pub(super) fn redactor(&self) -> Redactor {
        let mut redactor = Redactor::default();
        match self.target.provider.auth() {
            Auth::Header(header) => redactor.secret(header.secret()),
            Auth::Query(query) => redactor.secret(query.secret()),
            Auth::None | Auth::Source(_) | Auth::Custom(_) => {}
        }
        for secret in &self.sent.applied.secrets {
            redactor.secret(secret);
        }
        redactor.header_secrets(&self.sent.request.headers);
        redactor.url_secrets(&self.sent.request.url);
        redactor
    }

    /// The failure with the request that was sent, if it was.
    pub(in crate::client) fn with_request(&self, failure: AttemptFailure) -> AttemptFailure {
        let request = self.sent.at.map(|_| self.snapshot(&self.redactor()));
        failure.change(|record| record.request = request)
    }

    fn snapshot(&self, redactor: &Redactor) -> RequestSnapshot {
        let sent_at = wall_at(self.sent.at.unwrap_or_else(Instant::now));
        let mut snapshot = self.client.capture.request(self.target, self.model, &self.sent.request, redactor, sent_at);
        if self.sent.body_let_go {
            snapshot.body = None; // what is left of it is not what was sent
        }
        snapshot
    }
}

/// The provider's id of a request, as much of it as an id may have.
fn kept_id(redactor: &Redactor, id: &str) -> String {
    let mut id = redactor.owned(id.to_owned());
    if let Some((end, _)) = id.char_indices().nth(REQUEST_ID) {
        id.truncate(end);
    }
    id
}

/// What is at the bottom of an error: the words of a wrapper say only that something is wrapped.
fn root_cause(error: &(dyn Error + Send + Sync)) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
