//! What the errors of other senders mean, as far as that can be seen from outside.

use super::Stopped;
use crate::provider::{Failure, RulePack, TransportFault};
#[cfg(feature = "reqwest")]
use crate::resilience::Classify;
use crate::resilience::Verdict;
use std::error::Error;
use std::io;

/// What an error means, and whether it shows that nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) unsent: bool,
}

/// Looks through an error and its causes for one that tells what broke.
pub(super) fn find(rules: &RulePack, error: &(dyn Error + 'static)) -> Option<Judged> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(judged) = judge(rules, cause) {
            return Some(judged);
        }
        next = cause.source();
    }
    None
}

fn judge(rules: &RulePack, cause: &(dyn Error + 'static)) -> Option<Judged> {
    #[cfg(feature = "reqwest")]
    if let Some(error) = cause.downcast_ref::<reqwest::Error>() {
        return Some(Judged {
            verdict: Classify::classify(rules, error),
            unsent: matches!(crate::transport::sort(error), TransportFault::Connect | TransportFault::Request),
        });
    }
    if let Some(stopped) = cause.downcast_ref::<Stopped>() {
        // Another policy, further down, has already done what could be done.
        return Some(Judged { verdict: Verdict::permanent("stopped"), unsent: !stopped.may_have_been_sent() });
    }
    let fault = sort(cause.downcast_ref::<io::Error>()?.kind())?;
    Some(broken(rules, fault))
}

/// A break below HTTP.
pub(super) fn broken(rules: &RulePack, fault: TransportFault) -> Judged {
    Judged { verdict: rules.verdict(&Failure::transport(fault)), unsent: fault == TransportFault::Connect }
}

fn sort(kind: io::ErrorKind) -> Option<TransportFault> {
    use io::ErrorKind as Kind;
    match kind {
        Kind::AddrNotAvailable
        | Kind::ConnectionRefused
        | Kind::HostUnreachable
        | Kind::NetworkDown
        | Kind::NetworkUnreachable => Some(TransportFault::Connect),
        Kind::TimedOut => Some(TransportFault::Timeout),
        Kind::BrokenPipe
        | Kind::ConnectionAborted
        | Kind::ConnectionReset
        | Kind::NotConnected
        | Kind::UnexpectedEof => Some(TransportFault::Interrupted),
        _ => None, // it may wrap another
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resilience::{Advice, Stop};

    #[derive(Debug, thiserror::Error)]
    #[error("wrapped")]
    struct Wrapped(#[source] Box<dyn Error + Send + Sync>);

    fn found(error: impl Into<Box<dyn Error + Send + Sync>>) -> Option<(&'static str, bool)> {
        find(&RulePack::generic(), &Wrapped(error.into())).map(|found| (found.verdict.label, found.unsent))
    }

    #[test]
    fn breaks_are_found_behind_wrappers() {
        let io = |kind: io::ErrorKind| found(io::Error::from(kind));
        assert_eq!(io(io::ErrorKind::ConnectionRefused), Some(("connection_failed", true)));
        assert_eq!(io(io::ErrorKind::ConnectionReset), Some(("connection_interrupted", false)));
        assert_eq!(io(io::ErrorKind::TimedOut), Some(("request_timeout", false)));
        assert_eq!(io(io::ErrorKind::PermissionDenied), None);
        assert_eq!(found("some text"), None);
    }

    #[test]
    fn a_policy_further_down_is_not_retried() {
        let stopped = Stopped { stop: Stop::Cancelled, cut: None, attempts: 1, sent: true, last: None, source: None };
        let found = find(&RulePack::generic(), &Wrapped(stopped.into())).expect("it is known");
        assert_eq!((found.verdict.retry, found.unsent), (Advice::Never, false));
    }
}
