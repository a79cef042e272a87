//! From evidence to an error: the failure of one attempt, and of one target.

use super::target::ReadyTarget;
use crate::LlmError;
use crate::provider::Classified;
use crate::record::{Attempt, ErrorCode, ErrorKind, ErrorSnapshot, Issues, Next, StopReason, TargetAttempt};
use crate::resilience::clock::wall_at;
use crate::resilience::{
    Advice, CircuitRefusal, Decision, Failed, Health, LimitHint, LimitReason, LimitRefusal, RefusalReason, Stop, Tried,
    Verdict,
};
use std::fmt::{self, Write as _};
use std::time::Duration;

/// How much of the provider's words a message quotes, in characters.
const QUOTED: usize = 300;

/// The failure of one attempt: the error, and what the engine needs to know of it.
#[derive(Clone, Debug)]
pub(super) struct AttemptFailure {
    pub(super) error: LlmError,
    pub(super) verdict: Verdict,
    /// What failed, without where and how often: `server error (503)`.
    pub(super) what: String,
    pub(super) spent: Option<u32>,
    pub(super) limits: Option<Box<LimitHint>>,
}

impl AttemptFailure {
    /// A failure with this code, as its row of the table says.
    pub(super) fn of(code: ErrorCode, what: String) -> Self {
        let error = LlmError::of(code, what.clone());
        let verdict = verdict_of(&error);
        Self { error, verdict, what, spent: None, limits: None }
    }

    /// The same with the request that was sent.
    pub(super) fn change(mut self, change: impl FnOnce(&mut ErrorSnapshot)) -> Self {
        self.error = self.error.change_record(change);
        self
    }
}

/// What an error means to the engine, where no rule pack has said more.
pub(super) fn verdict_of(error: &LlmError) -> Verdict {
    Verdict {
        retry: if error.is_retryable() { Advice::Backoff } else { Advice::Never },
        health: if error.counts_toward_breaker() { Health::Bad } else { Health::Neutral },
        throttled: false,
        label: error.code().map_or(error.kind().as_str(), ErrorCode::as_str),
        tag: error.status(),
    }
}

/// `server error (503)`, `provider rate limited (429), wait 20 s`, `network error: connection failed: refused`.
pub(super) fn what(seen: &Classified, status: Option<u16>, cause: Option<&str>) -> String {
    let mut text = words(seen.code.map_or(seen.kind.as_str(), ErrorCode::as_str));
    if let Some(status) = status {
        _ = write!(text, " ({status})");
    }
    if let Some(wait) = seen.retry_after {
        _ = write!(text, ", asked to wait {}", Human(wait));
    }
    let arrived = seen.arrived.as_deref().map(|arrived| without_status(arrived, status));
    let detail = arrived.or(cause).filter(|detail| !detail.is_empty());
    if let Some(detail) = detail {
        text.push_str(": ");
        text.push_str(&shortened(detail));
    }
    text
}

/// What arrived, without the status, which the line has told already.
fn without_status(arrived: &str, status: Option<u16>) -> &str {
    let rest = status.and_then(|status| arrived.strip_prefix(&format!("{status}, ")));
    rest.unwrap_or(arrived)
}

/// The line of an attempt, or of a target: where, what, how often, and the provider's words.
pub(super) fn line(name: Option<&str>, what: &str, attempts: Option<(usize, Duration)>, says: Option<&str>) -> String {
    let mut line = String::with_capacity(name.map_or(0, |name| name.len() + 2) + what.len());
    for part in name.into_iter().flat_map(|name| [name, ": "]) {
        line.push_str(part);
    }
    line.push_str(what);
    if let Some((count, time)) = attempts.filter(|(count, _)| *count > 1) {
        _ = write!(line, ", {count} attempts over {}", Human(time));
    }
    if let Some(says) = says.filter(|says| !says.is_empty()) {
        line.push_str("; provider says: ");
        line.push_str(&shortened(says));
    }
    line
}

/// At most [`QUOTED`] characters of a text, on one line and without its last period.
fn shortened(text: &str) -> String {
    let text = text.trim_end().trim_end_matches('.');
    let mut out: String =
        text.chars().take(QUOTED).map(|c| if c.is_control() || c.is_whitespace() { ' ' } else { c }).collect();
    if text.chars().nth(QUOTED).is_some() {
        out.push('…');
    }
    out
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// A duration as a person reads it.
pub(super) struct Human(pub(super) Duration);

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0.as_secs(), self.0.subsec_millis());
        if seconds == 0 {
            write!(f, "{millis} ms")
        } else if millis < 50 || seconds >= 120 {
            write!(f, "{seconds} s")
        } else {
            let tenths = seconds * 10 + u64::from((millis + 50) / 100);
            write!(f, "{}.{} s", tenths / 10, tenths % 10)
        }
    }
}

/// How one target ended: its error, and the failed attempts behind it.
pub(super) struct TargetFailure {
    pub(super) error: LlmError,
    pub(super) what: String,
    /// Every failed attempt, a single one included.
    pub(super) attempts: Vec<Attempt>,
    pub(super) sent: bool,
}

/// Turns the engine's account of a target into its error. `share`: the run had to end for the sake of the targets after it.
pub(super) fn target_failure(target: &ReadyTarget, failed: Failed<AttemptFailure>, share: bool) -> TargetFailure {
    let Failed { stop, tried, sent, .. } = failed;
    let time = match (tried.first(), tried.last()) {
        (Some(first), Some(last)) => last.started + last.queued + last.took - first.started,
        _ => Duration::ZERO,
    };
    let last = tried.last().map(|tried| (tried.error.clone(), tried.next));
    let count = tried.len();
    let attempts: Vec<Attempt> = tried.into_iter().map(record).collect();
    // Whether the error is the last attempt's own: then a single attempt need not be listed beside it.
    let mut own = false;
    let (error, what) = match (stop, last) {
        (Stop::Circuit(refusal), _) => circuit_open(&refusal),
        (Stop::Limit(refusal), _) => limit_refused(&refusal),
        (Stop::Budget, Some((last, _))) => budget_exhausted(&last),
        // The time ran out, or the caller cancelled, between two attempts or before the first.
        (Stop::Deadline, None | Some((_, Decision::Retry { .. }))) => time_is_up(share),
        (Stop::Cancelled, None | Some((_, Decision::Retry { .. }))) => (aborted(), ABORTED.to_owned()),
        (Stop::Cancelled, Some((last, _))) if last.error.kind() != ErrorKind::Aborted => {
            (aborted(), ABORTED.to_owned())
        }
        (_, Some((last, _))) => {
            own = true;
            (last.error, last.what)
        }
        (_, None) => {
            let what = stop.to_string();
            (LlmError::new(ErrorKind::Unknown, what.clone()), what)
        }
    };
    let request = attempts.iter().rev().find_map(|attempt| attempt.request.clone());
    let nested = if own && count == 1 { Vec::new() } else { attempts.clone() };
    let error = error.change_record(|record| {
        record.message = line(Some(&target.name), &what, Some((count, time)), record.provider_message.as_deref());
        record.request = request;
        record.attempts = nested;
    });
    TargetFailure { error, what, attempts, sent }
}

/// A failed attempt, as it is listed.
pub(super) fn record(tried: Tried<AttemptFailure>) -> Attempt {
    let next = match tried.next {
        Decision::Retry { after, advised } => Next::Retried { after, advised },
        Decision::Stop(stop) => Next::Stopped(match stop {
            Stop::NotRetryable => StopReason::NotRetryable,
            Stop::UsedUp => StopReason::UsedUp,
            Stop::Budget => StopReason::Budget,
            Stop::Deadline => StopReason::Deadline,
            Stop::WaitTooLong => StopReason::WaitTooLong,
            Stop::Cancelled => StopReason::Cancelled,
            Stop::Circuit(_) | Stop::Limit(_) => StopReason::Refused,
        }),
    };
    let mut error = tried.error.error.into_snapshot();
    let request = error.request.take();
    let mut attempt = Attempt::new(tried.index, error, wall_at(tried.started), next);
    attempt.request = request;
    attempt.duration = tried.took;
    attempt.queued = tried.queued;
    attempt
}

fn circuit_open(refusal: &CircuitRefusal) -> (LlmError, String) {
    let code = match refusal.reason {
        RefusalReason::TrialInFlight => ErrorCode::CircuitTrialInFlight,
        _ => ErrorCode::CircuitCoolingDown,
    };
    let mut what = String::with_capacity(96);
    what.push_str("circuit open: ");
    match refusal.reason {
        RefusalReason::CoolingDown { remaining } => {
            _ = write!(what, "cooling down, next trial in {}", Human(remaining));
        }
        RefusalReason::TrialInFlight => what.push_str("its trial is in flight"),
        _ => what.push_str("held open by hand"),
    }
    if refusal.failures > 0 {
        _ = write!(what, ", after {} failures", refusal.failures);
    }
    let last_code = refusal.last_label.and_then(|label| label.parse().ok()).filter(|code| *code != ErrorCode::Other);
    let error = LlmError::of(code, String::new()).change_record(|record| {
        record.retry_after = refusal.retry_after();
        record.issues = Some(Issues::Circuit {
            failures: refusal.failures,
            last_code,
            last_status: refusal.last_tag,
            opened_at: wall_at(refusal.opened_at),
        });
    });
    (error, what)
}

/// The limiter refused.
pub(super) fn limit_refused(refusal: &LimitRefusal) -> (LlmError, String) {
    let code = match refusal.reason {
        LimitReason::QueueFull => ErrorCode::RateLimitQueueFull,
        LimitReason::QueueTimeout => ErrorCode::RateLimitQueueTimeout,
        LimitReason::Capacity => ErrorCode::RateLimitCapacityExceeded,
    };
    let what = format!("refused by the rate limiter: {refusal}");
    let bucket = refusal.bucket.as_str().to_owned();
    (LlmError::of(code, String::new()).with_issues(Issues::Limit { bucket, limit: refusal.limit }), what)
}

/// The budget's refusal speaks for the failure that wanted the retry.
fn budget_exhausted(last: &AttemptFailure) -> (LlmError, String) {
    let what = format!("retry budget exhausted after {}", last.what);
    let cause = last.error.clone();
    let error = LlmError::of(ErrorCode::RetryBudgetExhausted, String::new())
        .with_counts_toward_breaker(cause.counts_toward_breaker())
        .change_record(|record| {
            record.status = cause.status();
            record.retry_after = cause.retry_after();
            record.provider_code = cause.provider_code().map(str::to_owned);
            record.provider_type = cause.provider_type().map(str::to_owned);
            record.provider_message = cause.provider_message().map(str::to_owned);
            record.request_id = cause.request_id().map(str::to_owned);
        });
    (error.with_source(cause), what)
}

const ABORTED: &str = "cancelled by the caller";

/// The caller cancelled.
pub(super) fn aborted() -> LlmError {
    LlmError::new(ErrorKind::Aborted, ABORTED)
}

/// The deadline passed; or, for a target that had to leave time to others, its share of it.
fn time_is_up(share: bool) -> (LlmError, String) {
    if share {
        let what = "request timeout: its share of the deadline was used up".to_owned();
        // Nothing was asked of the target that it could have failed at.
        (LlmError::of(ErrorCode::RequestTimeout, String::new()).with_counts_toward_breaker(false), what)
    } else {
        (LlmError::of(ErrorCode::DeadlineExceeded, String::new()), "deadline exceeded".to_owned())
    }
}

/// One target of a chain with its error, as it is listed.
pub(super) fn listed(place: usize, target: &ReadyTarget, model: &str, error: LlmError) -> TargetAttempt {
    let mut error = error.into_snapshot();
    let (request, attempts) = (error.request.take(), std::mem::take(&mut error.attempts));
    let mut listed = TargetAttempt::new(place, &*target.name, error);
    target.provider_name.as_ref().clone_into(&mut listed.provider);
    model.clone_into(&mut listed.model);
    listed.request = request;
    listed.attempts = attempts;
    listed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Failure, RulePack};
    use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};

    #[test]
    fn a_line_tells_the_status_once() {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("text/html"))]);
        let seen = RulePack::openai().classify(&Failure::answer(502, &headers, b"<html>"));
        assert_eq!(what(&seen, Some(502), None), "server error (502): text/html, 6 bytes");
    }
}
