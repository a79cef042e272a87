//! A request over HTTP as an operation of the engine, whatever sends it.

use super::Stopped;
use super::fault::Judged;
use super::replay::{Reading, Replayed};
use crate::provider::{Failure, RulePack};
use crate::record::ConfigError;
use crate::resilience::clock::wall_now;
use crate::resilience::{
    AttemptContext, Decision, Failed, Guards, Interrupt, Lease, LimitHint, Operation, Policy, Progress, Retry,
    RetryNotice, Signal, Stop, Tried, Verdict,
};
use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, StatusCode};
use http_body::Body;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// How much of the body of a failure is read, and for how long.
const FAILURE_BODY: usize = 1 << 20;
const FAILURE_BODY_TIME: Duration = Duration::from_secs(5);

/// One way to send one request, as often as it takes.
pub(super) trait Exchange: Send {
    /// A response as the sender gives it.
    type Response: Send;
    /// Its body.
    type Body: Body<Error: Send> + Send;
    /// What the sender fails with.
    type Error: Into<Box<dyn Error + Send + Sync>> + Send;

    /// Sends the request and waits for the head of the response.
    fn send<'a>(
        &'a mut self,
        progress: &'a Progress,
    ) -> impl Future<Output = Result<Self::Response, Self::Error>> + Send;

    /// The head of a response.
    fn head(response: &Self::Response) -> (StatusCode, &HeaderMap);

    /// A response in parts, for one that failed.
    fn open(&self, response: Self::Response) -> http::Response<Self::Body>;

    /// What the sender's own error means.
    fn judge(&self, error: &Self::Error) -> Judged;
}

/// What guards the requests: a policy, and the rules by which it judges.
#[derive(Clone, Debug)]
pub(super) struct Guarded {
    pub(super) rules: RulePack,
    policy: Policy,
    /// The policy's retry, for a request that cannot be sent twice.
    once: Retry,
}

impl Guarded {
    pub(super) fn new(rules: RulePack, policy: Policy) -> Result<Self, ConfigError> {
        policy.check()?;
        let once = policy.retry_settings().clone().max_retries(0);
        Ok(Self { rules, policy, once })
    }

    pub(super) fn guards(&self) -> &Guards {
        self.policy.guards()
    }

    /// Sends a request until it succeeds or the policy gives up.
    pub(super) async fn run<X: Exchange>(&self, exchange: X, cost: Option<u32>, twice: bool) -> Outcome<X> {
        let mut run = self.policy.new_run();
        run.cost = cost.unwrap_or(run.cost);
        if !twice {
            run.retry = Some(&self.once);
        }
        let mut op = HttpOperation { guarded: self, exchange, failing: None };
        match self.policy.execute(run, &mut op).await {
            Ok((response, lease)) => {
                self.succeed(X::head(&response).1, lease);
                Outcome::Live(response)
            }
            Err(failed) => Outcome::of(failed),
        }
    }

    /// Settles what a success held. What its body will cost is not known here: the estimate stays.
    fn succeed(&self, headers: &HeaderMap, lease: Lease) {
        lease.succeed(None);
        if let Some(limiter) = self.policy.guards().limiter.as_ref().filter(|limiter| limiter.follows())
            && let Some(hint) = self.rules.limits(headers, Some(wall_now()))
        {
            limiter.follow(&hint);
        }
    }

    fn verdict(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Verdict {
        let status = status.as_u16();
        let body = &body[..body.len().min(FAILURE_BODY)];
        let seen = self.rules.classify(&Failure::answer(status, headers, body).at(wall_now()));
        let retry = self.policy.retry_settings();
        // The engine itself passes over an advised wait that is not to be respected; the circuit should still hear of it.
        let advice = seen.advice(&retry.non_retryable_status, &retry.retry_status, true);
        Verdict { retry: advice, ..seen.verdict(Some(status)) }
    }
}

/// How a request ended.
pub(super) enum Outcome<X: Exchange> {
    /// With a success, as the sender gave it.
    Live(X::Response),
    /// With a failure that was read.
    Read(http::Response<Replayed<X::Body>>),
    /// With the sender's own error.
    Broken(X::Error),
    /// By the policy.
    Stopped(Stopped),
}

impl<X: Exchange> Outcome<X> {
    fn of(failed: Failed<AttemptFailure<X>>) -> Self {
        let Failed { stop, mut tried, sent, .. } = failed;
        let attempts = tried.len();
        let last = tried.pop();
        // A failure that was to be tried again is not the end of it: something else has prevented that.
        let ended = matches!(&last, Some(Tried { next: Decision::Stop(_), .. })) && stop != Stop::Cancelled;
        match last.map(|tried| tried.error) {
            Some(AttemptFailure::Answer(answer)) if ended => Self::Read(answer.into_response()),
            Some(AttemptFailure::Broken(error, _)) if ended => Self::Broken(error),
            last => {
                let verdict = last.as_ref().map(AttemptFailure::verdict);
                let cut = match &last {
                    Some(AttemptFailure::Cut(by)) => Some(*by),
                    _ => None,
                };
                let source = match last {
                    Some(AttemptFailure::Broken(error, _)) => Some(error.into()),
                    _ => None,
                };
                Self::Stopped(Stopped { stop, cut: cut.filter(|_| ended), attempts, sent, last: verdict, source })
            }
        }
    }
}

/// How one attempt failed.
enum AttemptFailure<X: Exchange> {
    Answer(Box<Answer<X::Body>>),
    Broken(X::Error, Verdict),
    Cut(Interrupt),
}

impl<X: Exchange> AttemptFailure<X> {
    fn verdict(&self) -> Verdict {
        match self {
            Self::Answer(answer) => answer.verdict,
            Self::Broken(_, verdict) => *verdict,
            Self::Cut(by) => by.verdict(),
        }
    }
}

/// A response that failed: what it says, and its body to hand back.
struct Answer<B: Body> {
    head: Parts,
    verdict: Verdict,
    /// Locked, because the engine only shows an error that will be retried, and its connection must go before the wait.
    body: Mutex<Option<Replayed<B>>>,
}

impl<B: Body> Answer<B> {
    fn into_response(self) -> http::Response<Replayed<B>> {
        let body = self.body.into_inner().unwrap_or_else(PoisonError::into_inner);
        http::Response::from_parts(self.head, body.unwrap_or(Replayed::Read(Bytes::new())))
    }

    /// Lets go of the body, and of the connection that it may still hold.
    fn release(&self) {
        drop(self.body.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// The attempts of one request.
struct HttpOperation<'a, X: Exchange> {
    guarded: &'a Guarded,
    exchange: X,
    /// The failure that is being read. Here and not in the attempt, so that an attempt that is cut off leaves it behind.
    failing: Option<(Parts, Reading<X::Body>)>,
}

impl<X: Exchange> HttpOperation<'_, X> {
    async fn send(&mut self, progress: &Progress) -> Result<X::Response, AttemptFailure<X>> {
        let response = match self.exchange.send(progress).await {
            Ok(response) => response,
            Err(error) => {
                let Judged { verdict, unsent } = self.exchange.judge(&error);
                if unsent {
                    progress.unsent();
                }
                return Err(AttemptFailure::Broken(error, verdict));
            }
        };
        progress.head();
        let status = X::head(&response).0;
        if !(status.is_client_error() || status.is_server_error()) {
            return Ok(response);
        }
        let (head, body) = self.exchange.open(response).into_parts();
        let (_, reading) = self.failing.insert((head, Reading::new(body)));
        // What has come until then is enough, if it must be.
        let _ = timeout(FAILURE_BODY_TIME, poll_fn(|cx| reading.poll(cx, FAILURE_BODY))).await;
        // It was put there above, and only an interruption takes it.
        Err(self.failure().unwrap_or(AttemptFailure::Cut(Interrupt::Cancelled)))
    }

    /// The failure that was being read, as far as it came.
    fn failure(&mut self) -> Option<AttemptFailure<X>> {
        let (head, reading) = self.failing.take()?;
        let (read, body) = reading.replay();
        let verdict = self.guarded.verdict(head.status, &head.headers, &read);
        Some(AttemptFailure::Answer(Box::new(Answer { head, verdict, body: Mutex::new(Some(body)) })))
    }
}

impl<X: Exchange> Operation for HttpOperation<'_, X> {
    type Output = X::Response;
    type Error = AttemptFailure<X>;

    fn attempt<'a>(
        &'a mut self,
        cx: AttemptContext<'a>,
    ) -> impl Future<Output = Result<X::Response, AttemptFailure<X>>> + Send {
        self.send(cx.progress)
    }

    /// Where the head of a failure has come, that is what happened, however long its body took.
    fn interrupted(&mut self, by: Interrupt) -> AttemptFailure<X> {
        self.failure().unwrap_or(AttemptFailure::Cut(by))
    }

    fn classify(&self, error: &AttemptFailure<X>) -> Verdict {
        error.verdict()
    }

    fn spent(&self, error: &AttemptFailure<X>) -> Option<u32> {
        match error {
            AttemptFailure::Answer(_) => Some(0),
            // Nobody knows what was done until the connection broke.
            AttemptFailure::Broken(..) | AttemptFailure::Cut(_) => None,
        }
    }

    fn limits(&self, error: &AttemptFailure<X>) -> Option<LimitHint> {
        match error {
            AttemptFailure::Answer(answer) => self.guarded.rules.limits(&answer.head.headers, Some(wall_now())),
            AttemptFailure::Broken(..) | AttemptFailure::Cut(_) => None,
        }
    }

    fn observe(&self, signal: Signal<'_, AttemptFailure<X>>) {
        if let Signal::RetryScheduled { error: AttemptFailure::Answer(answer), .. } = &signal {
            answer.release();
        }
        if let Some(hook) = self.guarded.policy.retry_hook()
            && let Some(notice) = RetryNotice::of(&signal, |error| error.verdict().label)
        {
            hook(&notice);
        }
    }
}

impl<X: Exchange> fmt::Debug for AttemptFailure<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verdict().label)
    }
}
