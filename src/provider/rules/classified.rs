//! What a failure was found to be, and how that is found.

use super::body;
use super::generic::by_status;
use super::limits;
use super::rule::{Dialect, Evidence, Then};
use super::wait;
use crate::provider::{AnswerFault, Failure, TransportFault};
use crate::record::{ErrorCode, ErrorKind, Issues, QuotaScope};
use crate::resilience::{Advice, Health, Verdict};
use std::time::Duration;

/// What a failure was found to be.
///
/// ```
/// use steadfast::provider::{Failure, RulePack};
/// use steadfast::resilience::Advice;
/// use steadfast::{ErrorCode, http::HeaderMap};
///
/// let headers = HeaderMap::new();
/// let body = br#"{"error":{"message":"Please try again in 430ms.","code":"rate_limit_exceeded"}}"#;
/// let seen = RulePack::groq().classify(&Failure::answer(429, &headers, body));
/// assert_eq!(seen.code, Some(ErrorCode::ProviderRateLimited));
/// assert_eq!(seen.retry, Advice::After(std::time::Duration::from_millis(430)));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Classified {
    /// What sort of failure.
    pub kind: ErrorKind,
    /// The stable reason.
    pub code: Option<ErrorCode>,
    /// Whether and when to try again.
    pub retry: Advice,
    /// What settled [`retry`](Self::retry).
    pub basis: Basis,
    /// Whether it is evidence about health.
    pub health: Health,
    /// The status that it was judged by: the one that arrived, or the one that an error object in a success names as its
    /// own or implies.
    pub status: Option<u16>,
    /// The wait that the provider advised, whether or not a retry can help.
    pub retry_after: Option<Duration>,
    /// The provider's own code.
    pub provider_code: Option<String>,
    /// The provider's own error type.
    pub provider_type: Option<String>,
    /// The provider's own words, as sent, at most 2 kB of them.
    pub provider_message: Option<String>,
    /// Structured detail.
    pub issues: Option<Issues>,
    /// What arrived, where the provider said nothing readable: `502, text/html, 512 bytes`.
    pub arrived: Option<String>,
}

/// What settled whether to try again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Basis {
    /// Output had been delivered: never.
    Delivered,
    /// The provider sent `x-should-retry: false`.
    Forbidden,
    /// There is evidence that a quota is used up.
    Quota,
    /// The provider sent `x-should-retry: true`.
    Requested,
    /// The table of codes, or a rule of the pack.
    Table,
}

impl Classified {
    /// A failure of this code, with everything that follows from it.
    pub fn new(code: ErrorCode) -> Self {
        Self {
            kind: code.kind(),
            code: Some(code),
            retry: if code.is_retryable() { Advice::Backoff } else { Advice::Never },
            basis: if code == ErrorCode::ProviderQuotaExhausted { Basis::Quota } else { Basis::Table },
            health: if code.counts_toward_breaker() { Health::Bad } else { Health::Neutral },
            status: None,
            retry_after: None,
            provider_code: None,
            provider_type: None,
            provider_message: None,
            issues: None,
            arrived: None,
        }
    }

    /// The same failure under another code: kind, retry and health follow from it, what the provider said stays.
    #[must_use]
    pub fn with_code(self, code: ErrorCode) -> Self {
        let Self { kind, code, retry, basis, health, .. } = Self::new(code);
        let issues = self.issues.clone().filter(|_| self.code == code);
        Self { kind, code, retry, basis, health, issues, ..self }.at_advice()
    }

    /// The same failure with another answer to whether it is tried again.
    #[must_use]
    pub fn with_retry(self, retry: Advice) -> Self {
        Self { retry, basis: Basis::Table, ..self }
    }

    /// Whether the same request could succeed later.
    pub fn is_retryable(&self) -> bool {
        self.retry != Advice::Never
    }

    /// What the engine is told. `status` is the HTTP status that arrived, if any did.
    pub fn verdict(&self, status: Option<u16>) -> Verdict {
        Verdict {
            retry: self.retry,
            health: self.health,
            throttled: self.code == Some(ErrorCode::ProviderRateLimited),
            label: self.code.map_or(self.kind.as_str(), ErrorCode::as_str),
            tag: status,
        }
    }

    /// [`retry`](Self::retry) under a target's own settings, in the order of the decision: delivered output,
    /// `x-should-retry: false` and a spent quota are final; then `never` (`non_retryable_status`), `x-should-retry: true`,
    /// `also` (`retry_status`), and the table. Without `respect_retry_after` the computed backoff takes the place of an
    /// advised wait.
    pub fn advice(&self, never: &[u16], also: &[u16], respect_retry_after: bool) -> Advice {
        let listed = |list: &[u16]| self.status.is_some_and(|status| list.contains(&status));
        let is_final = matches!(self.basis, Basis::Delivered | Basis::Forbidden | Basis::Quota) && !self.is_retryable();
        let requested = self.basis == Basis::Requested && self.is_retryable();
        let retry = if is_final || listed(never) {
            Advice::Never
        } else if !requested && !self.is_retryable() && listed(also) {
            self.retried()
        } else {
            self.retry
        };
        match retry {
            Advice::After(_) if !respect_retry_after => Advice::Backoff,
            retry => retry,
        }
    }

    /// The answer of a failure that is tried again: after the advised wait where there is one.
    fn retried(&self) -> Advice {
        self.retry_after.filter(|wait| !wait.is_zero()).map_or(Advice::Backoff, Advice::After)
    }

    /// Turns a backoff into the advised wait.
    fn at_advice(mut self) -> Self {
        if self.is_retryable() {
            self.retry = self.retried();
        }
        self
    }
}

/// What a failure is in a dialect: what was found, then the decision whether to try again.
pub(super) fn classify(dialect: &'static Dialect, failure: &Failure<'_>) -> Classified {
    if let Some(fault) = failure.transport {
        return broken(fault, failure.delivered);
    }
    let evidence = Evidence::gather(dialect, failure);
    let then = judge(dialect, &evidence);
    let mut seen = found(dialect, &evidence, then);
    if !seen.is_retryable() && seen.basis == Basis::Quota {
        return seen;
    }
    let says = |word| failure.header("x-should-retry").is_some_and(|text| text.trim().eq_ignore_ascii_case(word));
    if says("false") {
        (seen.retry, seen.basis) = (Advice::Never, Basis::Forbidden);
    } else if says("true") {
        (seen.retry, seen.basis) = (seen.retried(), Basis::Requested);
    }
    seen
}

/// A break below HTTP.
fn broken(fault: TransportFault, delivered: bool) -> Classified {
    let code = match fault {
        TransportFault::TooLarge(_) => ErrorCode::ResponseTooLarge,
        TransportFault::Request => ErrorCode::InvalidCall,
        _ if delivered => ErrorCode::StreamInterrupted,
        TransportFault::Connect => ErrorCode::ConnectionFailed,
        TransportFault::Interrupted => ErrorCode::ConnectionInterrupted,
        TransportFault::Timeout => ErrorCode::RequestTimeout,
    };
    let mut seen = Classified::new(code);
    if let TransportFault::TooLarge(limit) = fault {
        seen.issues = Some(Issues::TooLarge { limit });
    }
    seen
}

/// What an answer is found to be.
fn judge(dialect: &'static Dialect, evidence: &Evidence<'_>) -> Then {
    let failure = evidence.failure;
    let by_error = || dialect.decide(evidence).copied().unwrap_or_else(|| by_status(evidence.status.unwrap_or(500)));
    match failure.status {
        Some(status) if status >= 400 => by_error(),
        Some(status) if !(200..300).contains(&status) => by_status(status),
        // An answer that should have been a success, or an event in a stream.
        status => match &failure.fault {
            Some(AnswerFault::Error) => by_error(),
            Some(AnswerFault::Empty) => Then::Is(ErrorCode::EmptyResponse),
            Some(AnswerFault::Filtered(_)) => Then::Is(ErrorCode::ContentFiltered),
            Some(AnswerFault::Frame(_)) => Then::Is(ErrorCode::StreamFrameInvalid),
            Some(AnswerFault::ToolArguments(_)) => Then::Is(ErrorCode::ToolArgumentsParseFailed),
            None if evidence.spoken.is_error || status.is_none() => by_error(),
            None if status != Some(200) => Then::Is(ErrorCode::UnexpectedStatus),
            None if failure.body.trim_ascii().is_empty() => Then::Is(ErrorCode::EmptyResponse),
            Some(AnswerFault::Invalid(_)) | None => Then::Is(ErrorCode::ResponseInvalid),
        },
    }
}

/// Everything that is known of a failure that was found to be this.
fn found(dialect: &'static Dialect, evidence: &Evidence<'_>, then: Then) -> Classified {
    let (code, scope) = match then {
        Then::Is(code) | Then::Again(code) | Then::Final(code) => (code, QuotaScope::Unknown),
        Then::Quota(scope) => (ErrorCode::ProviderQuotaExhausted, scope),
    };
    let mut seen = Classified::new(code);
    seen.status = evidence.status.or(evidence.failure.status);
    seen.retry_after = evidence.wait;
    match then {
        Then::Again(_) => seen.retry = Advice::Backoff,
        Then::Final(_) => seen.retry = Advice::Never,
        Then::Is(_) | Then::Quota(_) => {}
    }
    seen = seen.at_advice();
    seen.issues = issues(dialect, evidence, code, scope);
    let spoken = &evidence.spoken;
    seen.provider_code.clone_from(&spoken.code);
    seen.provider_type.clone_from(&spoken.kind);
    seen.provider_message.clone_from(&spoken.message);
    if seen.provider_message.is_none() && code != ErrorCode::ContentFiltered {
        seen.arrived = arrived(evidence.failure);
    }
    seen
}

fn issues(dialect: &'static Dialect, evidence: &Evidence<'_>, code: ErrorCode, scope: QuotaScope) -> Option<Issues> {
    let Failure { headers, fault, at, .. } = evidence.failure;
    match code {
        ErrorCode::ContentFiltered => {
            let categories = match fault {
                Some(AnswerFault::Filtered(named)) if !named.is_empty() => named.clone(),
                _ => evidence.spoken.categories(),
            };
            Some(Issues::ContentFilter { categories })
        }
        ErrorCode::ToolArgumentsParseFailed => match fault {
            Some(AnswerFault::ToolArguments(problems)) => Some(Issues::Tools { problems: problems.clone() }),
            _ => None,
        },
        ErrorCode::ProviderQuotaExhausted => {
            // A wait in a header is about the quota; Gemini's in the body is about the next probe.
            let wait = || {
                wait::from_headers((*headers)?, *at)
                    .or_else(|| limits::refill(dialect.buckets(), |name| evidence.failure.header(name), *at))
            };
            let resets_at = evidence.spoken.resets_at(*at).or_else(|| at.as_ref()?.checked_add(wait()?));
            Some(Issues::Quota { scope, resets_at })
        }
        ErrorCode::ProviderRateLimited => {
            let hint = limits::read(dialect.buckets(), |name| evidence.failure.header(name), *at);
            let requests = (hint.requests_limit, hint.requests_remaining, hint.requests_reset);
            let tokens = (hint.tokens_limit, hint.tokens_remaining, hint.tokens_reset);
            // The empty bucket is the one that refused.
            let by_tokens = requests == (None, None, None) || requests.1 != Some(0) && tokens.1 == Some(0);
            let (limit, remaining, reset) = if by_tokens { tokens } else { requests };
            (!hint.is_empty()).then_some(Issues::RateLimit { limit, remaining, reset })
        }
        _ => None,
    }
}

/// What arrived: status, media type and length; where a redirect leads; what an adapter found wrong. Nothing is quoted.
fn arrived(failure: &Failure<'_>) -> Option<String> {
    let status = failure.status?;
    let mut parts = vec![status.to_string()];
    if (300..400).contains(&status) {
        let host = failure.header("location").and_then(|to| url::Url::parse(to).ok()?.host_str().map(str::to_owned));
        parts.extend(host.map(|host| format!("redirect to {host}")));
    }
    parts.extend(body::media_type(failure).map(str::to_owned));
    parts.push(format!("{} bytes", failure.body.len()));
    let mut text = parts.join(", ");
    if let Some(AnswerFault::Frame(why) | AnswerFault::Invalid(why)) = &failure.fault {
        text = format!("{text}: {why}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::RulePack;
    use http::{HeaderMap, HeaderValue};

    const LIMITED: &[u8] = br#"{"error":{"message":"m","code":"rate_limit_exceeded"}}"#;
    const SPENT: &[u8] = br#"{"error":{"message":"m","code":"insufficient_quota"}}"#;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(n, v)| (http::HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
    }

    fn classify(failure: &Failure<'_>) -> Classified {
        RulePack::openai().classify(failure)
    }

    #[test]
    fn the_decision_is_taken_in_order() {
        let second = Advice::After(Duration::from_secs(1));
        let (forbid, ask) = (("x-should-retry", "false"), ("x-should-retry", "true"));
        let after = ("retry-after", "1");
        for (status, lines, body, delivered, retry, basis) in [
            (429, &[after][..], LIMITED, false, second, Basis::Table),
            (429, &[after, ask], LIMITED, true, Advice::Never, Basis::Delivered),
            (429, &[after, forbid], LIMITED, false, Advice::Never, Basis::Forbidden),
            (429, &[after, ask], SPENT, false, Advice::Never, Basis::Quota),
            (400, &[ask], b"", false, Advice::Backoff, Basis::Requested),
            (400, &[ask, after], b"", false, second, Basis::Requested),
            (400, &[after], b"", false, Advice::Never, Basis::Table),
            (500, &[], b"", false, Advice::Backoff, Basis::Table),
        ] {
            let headers = headers(lines);
            let seen = classify(&Failure::answer(status, &headers, body).delivered(delivered));
            assert_eq!((seen.retry, seen.basis), (retry, basis), "{status} {lines:?}");
        }
    }

    #[test]
    fn status_lists_come_between() {
        let empty = HeaderMap::new();
        let ask = headers(&[("x-should-retry", "true")]);
        let forbid = headers(&[("x-should-retry", "false")]);
        let advised = headers(&[("retry-after", "1")]);
        let second = Advice::After(Duration::from_secs(1));
        for (status, headers, body, never, also, retry) in [
            (503, &empty, LIMITED, &[503][..], &[][..], Advice::Never),
            (503, &ask, LIMITED, &[503], &[], Advice::Never),
            (503, &empty, LIMITED, &[503], &[503], Advice::Never),
            (404, &empty, b"", &[], &[404], Advice::Backoff),
            (404, &advised, b"", &[], &[404], second),
            (404, &forbid, b"", &[], &[404], Advice::Never),
            (429, &empty, SPENT, &[], &[429], Advice::Never),
            (429, &advised, LIMITED, &[], &[], second),
        ] {
            let seen = classify(&Failure::answer(status, headers, body));
            assert_eq!(seen.advice(never, also, true), retry, "{status}");
        }
        let seen = classify(&Failure::answer(429, &advised, LIMITED));
        assert_eq!(seen.advice(&[], &[], false), Advice::Backoff);
        assert_eq!(seen.retry_after, Some(Duration::from_secs(1)));
    }

    #[test]
    fn breaks_below_http_are_told_apart() {
        for (fault, delivered, code, retried) in [
            (TransportFault::Connect, false, ErrorCode::ConnectionFailed, true),
            (TransportFault::Interrupted, false, ErrorCode::ConnectionInterrupted, true),
            (TransportFault::Interrupted, true, ErrorCode::StreamInterrupted, false),
            (TransportFault::Timeout, false, ErrorCode::RequestTimeout, true),
            (TransportFault::Timeout, true, ErrorCode::StreamInterrupted, false),
            (TransportFault::TooLarge(9), false, ErrorCode::ResponseTooLarge, false),
            (TransportFault::Request, false, ErrorCode::InvalidCall, false),
        ] {
            let seen = classify(&Failure::transport(fault).delivered(delivered));
            assert_eq!((seen.code, seen.kind), (Some(code), code.kind()), "{fault:?}");
            assert_eq!(seen.is_retryable(), retried, "{fault:?}");
        }
        let seen = classify(&Failure::transport(TransportFault::TooLarge(9)));
        assert_eq!(seen.issues, Some(Issues::TooLarge { limit: 9 }));
    }

    #[test]
    fn faults_of_an_answer_have_their_codes() {
        let headers = headers(&[("content-type", "application/json; charset=utf-8")]);
        let seen = |fault, body| classify(&Failure::answer(200, &headers, body).fault(fault));
        assert_eq!(seen(AnswerFault::Empty, b"{}").code, Some(ErrorCode::EmptyResponse));
        assert_eq!(seen(AnswerFault::Error, LIMITED).code, Some(ErrorCode::ProviderRateLimited));
        let filtered = seen(AnswerFault::Filtered(vec!["violence".into()]), b"{}");
        assert_eq!(filtered.code, Some(ErrorCode::ContentFiltered));
        assert_eq!(filtered.issues, Some(Issues::ContentFilter { categories: vec!["violence".into()] }));
        let invalid = seen(AnswerFault::Invalid("a list where an object should be".into()), b"[1]");
        assert_eq!((invalid.code, invalid.retry), (Some(ErrorCode::ResponseInvalid), Advice::Never));
        let arrived = "200, application/json, 3 bytes: a list where an object should be";
        assert_eq!(invalid.arrived.as_deref(), Some(arrived));
    }

    #[test]
    fn what_arrived_is_told_and_not_quoted() {
        let html = headers(&[("content-type", "text/html; charset=utf-8")]);
        let seen = classify(&Failure::answer(502, &html, &[b'<'; 512]));
        assert_eq!((seen.arrived.as_deref(), seen.provider_message), (Some("502, text/html, 512 bytes"), None));
        let moved = headers(&[("location", "https://user:pw@other.example/x?key=1")]);
        let seen = classify(&Failure::answer(307, &moved, b""));
        assert_eq!(seen.arrived.as_deref(), Some("307, redirect to other.example, 0 bytes"));
    }

    #[test]
    fn the_verdict_is_labelled_and_tagged() {
        let empty = HeaderMap::new();
        let verdict = RulePack::openai().verdict(&Failure::answer(429, &empty, LIMITED));
        assert_eq!((verdict.label, verdict.tag, verdict.throttled), ("provider_rate_limited", Some(429), true));
        let verdict = RulePack::openai().verdict(&Failure::transport(TransportFault::Connect));
        assert_eq!((verdict.label, verdict.tag, verdict.throttled), ("connection_failed", None, false));
        assert_eq!(verdict.health, Health::Bad);
    }

    #[test]
    fn the_bucket_that_refused_is_in_the_issues() {
        let lines = headers(&[
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-remaining-requests", "99"),
            ("x-ratelimit-limit-tokens", "30000"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "1.2s"),
        ]);
        let seen = classify(&Failure::answer(429, &lines, LIMITED));
        let reset = Some(Duration::from_millis(1_200));
        assert_eq!(seen.issues, Some(Issues::RateLimit { limit: Some(30_000), remaining: Some(0), reset }));
    }

    #[test]
    fn a_new_code_brings_what_follows_from_it() {
        let advised = headers(&[("retry-after", "1")]);
        let seen = classify(&Failure::answer(418, &advised, b"")).with_code(ErrorCode::Overloaded);
        assert_eq!(seen.retry, Advice::After(Duration::from_secs(1)));
        assert_eq!((seen.health, seen.status), (Health::Bad, Some(418)));
    }
}
