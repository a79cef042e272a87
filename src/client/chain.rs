//! The walk over the targets of a call.

use super::attempt::{Place, Take, TargetOperation};
use super::call::{Call, CallOptions};
use super::failure::{Human, TargetFailure, aborted, limit_refused, line, listed, record, target_failure};
use super::fallback::{FallbackContext, FallbackDecision};
use super::reask::Reasks;
use super::scope::Scope;
use super::target::ReadyTarget;
use super::whole::{Answered, Whole};
use super::{Inner, capability, check, estimate};
use crate::LlmError;
use crate::chat::{AnsweredBy, Reply, Request, Usage};
use crate::observe::EventKind;
use crate::record::{Attempt, ErrorCode, ErrorKind, TargetAttempt};
use crate::resilience::clock::later;
use crate::resilience::{Cancel, Course, End, Engine, Lease, LimitHint, Retry, Run, Stop};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tokio::time::Instant;

/// Asks, and waits for the whole answer.
#[expect(clippy::manual_async_fn, reason = "an async fn keeps its arguments twice, and a call is large")]
pub(super) fn run(client: &Inner, mut call: Call) -> impl Future<Output = Result<Reply, LlmError>> + Send {
    async move {
        let started = Instant::now();
        let Call { request, options } = &mut call;
        let scope = Scope::begin(&client.observers, &client.random, options.request_id.as_deref(), started);
        let answer = match check::check(client, request, options) {
            Ok(()) => ask_in_order::<Whole>(client, request, options, started, &scope).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(won) => Ok(answered(client, options, won, scope, started)),
            Err(error) => {
                scope.finish(None, Some(&error));
                Err(error)
            }
        }
    }
}

/// Settles what the call holds, and tells who answered.
fn answered(client: &Inner, options: &CallOptions, won: Won<Whole>, scope: Scope, started: Instant) -> Reply {
    let Won { place, output, lease, attempts, history, .. } = won;
    let Answered { mut reply, limits } = *output;
    let target = &client.targets[place];
    let model = model_of(place, target, options);
    let ended = Instant::now();
    lease.succeed_by(|| ended, spent(reply.usage()));
    follow(target, limits.as_deref());
    reply.answered(answered_by(place, target, attempts, ended - started), history);
    if let Some(usage) = reply.usage() {
        scope.tell(Some((target, model)), || EventKind::Usage { usage: *usage });
    }
    scope.finish(Some((target, model)), None);
    reply
}

/// The tokens that an answer spent, for the limiter.
pub(super) fn spent(usage: Option<&Usage>) -> Option<u32> {
    usage.map(|usage| u32::try_from(usage.total).unwrap_or(u32::MAX))
}

/// Who answered.
pub(super) fn answered_by(place: usize, target: &ReadyTarget, attempts: u32, elapsed: Duration) -> AnsweredBy {
    let (name, provider) = (target.name.clone(), target.provider_name.clone());
    AnsweredBy { index: place, name, provider, attempts, elapsed }
}

/// The model that a call asks of a target.
pub(super) fn model_of<'a>(place: usize, target: &'a ReadyTarget, options: &'a CallOptions) -> &'a str {
    let own = options.models.iter().rev().find(|(which, _)| which.means(place, &target.name));
    own.map_or(&*target.model, |(_, model)| model)
}

/// The target that answered: what it gave, and everything that came before it.
pub(super) struct Won<T: Take> {
    pub(super) place: usize,
    pub(super) output: T::Output,
    /// What the call holds of the target, to be settled.
    pub(super) lease: Lease,
    pub(super) sent: T::Kept,
    /// How many attempts it took on this target.
    pub(super) attempts: u32,
    /// Every failed attempt, on all targets; the last `attempts - 1` of them on this one.
    pub(super) history: Vec<Attempt>,
    /// The targets that failed before.
    pub(super) failed: Vec<TargetAttempt>,
}

/// Asks one target after the other until one answers.
pub(super) async fn ask_in_order<'a, T: Take>(
    client: &'a Inner,
    request: &mut Request,
    options: &'a CallOptions,
    started: Instant,
    scope: &'a Scope,
) -> Result<Won<T>, LlmError> {
    let deadline = options.deadline.unwrap_or(client.deadline).map(|deadline| later(started, deadline));
    let cancel = Cancel::either(options.cancel.as_ref(), client.cancel.as_ref());
    // What the call asked for itself, once the defaults of a target have been added to it.
    let mut own_sampling = None;
    let mut walk = Walk { client, scope, started, deadline, failures: Vec::new(), history: Vec::new() };

    for (place, target) in client.targets.iter().enumerate() {
        let retry = effective_retry(target, options);
        if let Some(error) = walk.out_of_time(cancel, retry.min_attempt_time) {
            return Err(walk.ended(error));
        }
        let model = model_of(place, target, options);
        walk.tell_fallback(place, target, model);
        if own_sampling.is_some() || !target.sampling.is_unset() || !options.without.is_empty() {
            let own = own_sampling.get_or_insert_with(|| request.sampling.clone());
            request.sampling = own.clone().or(&target.sampling);
            for setting in &options.without {
                request.sampling.unset(*setting);
            }
        }
        let at = Place { client, scope, target, options, request, retry: &retry, model };
        let asked = match walk.shut(target, model) {
            Some(refused) => Err(refused),
            // Most calls ask once; those that may ask again pay for it.
            None if options.expected.reask == 0 => walk.ask_once::<T>(place, at, cancel, 0).await,
            None => Box::pin(walk.ask_again::<T>(place, at, cancel)).await,
        };
        let failure = match asked {
            Ok(answer) => {
                let Answer { output, lease, sent, attempts, mut before } = answer;
                walk.history.append(&mut before);
                let failed = walk.failures.into_iter().map(Failure::listed).collect();
                return Ok(Won { place, output, lease, sent, attempts, history: walk.history, failed });
            }
            Err(failure) => failure,
        };
        let may_repeat = retry.idempotent || !failure.sent;
        if walk.failed(place, target, model, failure) == FallbackDecision::Stop || !may_repeat {
            break;
        }
    }
    Err(walk.exhausted())
}

/// The answer of a target, and what it took.
pub(super) struct Answer<T: Take> {
    output: T::Output,
    lease: Lease,
    sent: T::Kept,
    pub(super) attempts: u32,
    /// The failed attempts before it.
    pub(super) before: Vec<Attempt>,
}

/// A chain on its way: what has failed so far.
struct Walk<'a> {
    client: &'a Inner,
    scope: &'a Scope,
    started: Instant,
    deadline: Option<Instant>,
    failures: Vec<Failure<'a>>,
    /// Every failed attempt on every target, for the reply that may still come.
    history: Vec<Attempt>,
}

/// A target that failed.
struct Failure<'a> {
    place: usize,
    target: &'a ReadyTarget,
    model: &'a str,
    error: LlmError,
    what: String,
}

impl Failure<'_> {
    /// It, as the error or the reply of a chain lists it.
    fn listed(self) -> TargetAttempt {
        listed(self.place, self.target, self.model, self.error)
    }
}

impl<'a> Walk<'a> {
    /// Why no further target may be asked.
    fn out_of_time(&self, cancel: Cancel<'_>, min_attempt_time: Duration) -> Option<LlmError> {
        if cancel.is_cancelled() {
            return Some(aborted());
        }
        let deadline = self.deadline?;
        let remaining = deadline.saturating_duration_since(Instant::now());
        // The first attempt is made with whatever time the caller gave.
        let has_too_little = !self.failures.is_empty() && remaining < min_attempt_time;
        (remaining.is_zero() || has_too_little).then(|| {
            let message = line(None, "deadline exceeded", None, None);
            LlmError::of(ErrorCode::DeadlineExceeded, message)
        })
    }

    /// The refusal of a target that is cut off, before any work is done for it.
    fn shut(&self, target: &ReadyTarget, model: &str) -> Option<TargetFailure> {
        // Before the first, nothing has gone by but the check of the call.
        let now = || if self.failures.is_empty() { self.started } else { Instant::now() };
        let refusal = target.guards.breaker.as_ref()?.shut(model, now)?;
        Some(target_failure(target, Course::default().failed(Stop::Circuit(refusal)), false))
    }

    /// Tells that a target is asked because another has failed.
    fn tell_fallback(&self, place: usize, target: &ReadyTarget, model: &str) {
        let Some(failed) = self.failures.last() else { return };
        let from = &self.client.targets[place - 1].name;
        self.scope.tell(Some((target, model)), || EventKind::Fallback {
            from: from.clone(),
            to: target.name.clone(),
            error: failed.error.clone(),
            elapsed: self.started.elapsed(),
        });
    }

    /// Asks one target, and asks again where the call wants that of an answer that does not fit.
    async fn ask_again<T: Take>(
        &self,
        place: usize,
        at: Place<'_>,
        cancel: Cancel<'_>,
    ) -> Result<Answer<T>, TargetFailure> {
        let mut reasks = Reasks::new(at.options.expected.reask);
        loop {
            let asked = Place { request: reasks.request(at.request), ..at };
            match self.ask_once::<T>(place, asked, cancel, reasks.attempts()).await {
                Ok(answer) => return Ok(reasks.answered(answer)),
                Err(mut failure) => {
                    if !reasks.again(at.request, &mut failure) {
                        return Err(reasks.failed(at.target, failure));
                    }
                }
            }
        }
    }

    /// Asks one target. `before`: how many attempts it had with other words.
    async fn ask_once<T: Take>(
        &self,
        place: usize,
        at: Place<'_>,
        cancel: Cancel<'_>,
        before: u32,
    ) -> Result<Answer<T>, TargetFailure> {
        let Place { target, options, request, retry, model, .. } = at;
        let cx = T::context(model);
        capability::check(request, &*target.provider, model, cx.stream).map_err(refused)?;
        let encoded = target.provider.encode(request, &cx).map_err(refused)?;
        let end = self.end(place);
        let cost = estimate::estimate(target, request, options.estimated_tokens);
        self.check_queue(place, target, cost, end)?;
        let run = Run { retry: Some(retry), timeout: options.timeout, end, cancel, cost, key: model };
        let mut op = TargetOperation::<T>::new(at, encoded).after(before);
        let engine = Engine::new(retry, target.timeout, &self.client.random, run);
        let (mut lease, mut course) = (Lease::new(&target.guards, Instant::now()), Course::default());
        match engine.execute(lease.holding(), &mut op, &mut course).await {
            Ok(output) => {
                let before = course.tried.into_iter().map(record).collect();
                Ok(Answer { output, lease, attempts: op.attempts(), sent: op.into_kept(), before })
            }
            Err(stop) => Err(target_failure(target, course.failed(stop), matches!(end, Some(End::Reserve(_))))),
        }
    }

    /// The instant that a target ends by: one that is not the last leaves time to the others.
    fn end(&self, place: usize) -> Option<End> {
        let deadline = self.deadline?;
        let is_last = place + 1 == self.client.targets.len();
        let reserve = (deadline - self.started).mul_f64(self.client.fallback.reserve);
        Some(if is_last || reserve.is_zero() { End::Deadline(deadline) } else { End::Reserve(deadline - reserve) })
    }

    /// A target whose queue is longer than its time is passed over while there is another one.
    fn check_queue(
        &self,
        place: usize,
        target: &ReadyTarget,
        cost: u32,
        end: Option<End>,
    ) -> Result<(), TargetFailure> {
        let is_last = place + 1 == self.client.targets.len();
        let (Some(limiter), Some(end), false) = (&target.guards.limiter, end, is_last) else { return Ok(()) };
        let now = Instant::now();
        let Some((wait, refusal)) = limiter.too_long_at(cost, now, end.at()) else { return Ok(()) };
        let left = Human(end.at().saturating_duration_since(now));
        let what = format!("refused by the rate limiter: about {} in its queue, {left} left", Human(wait));
        let message = line(Some(&target.name), &what, None, None);
        let error = limit_refused(&refusal).0.change_record(|record| record.message = message);
        Err(TargetFailure { error, what, attempts: Vec::new(), sent: false })
    }

    /// Notes the failure of a target, and asks the policy whether to go on.
    fn failed(
        &mut self,
        place: usize,
        target: &'a ReadyTarget,
        model: &'a str,
        mut failure: TargetFailure,
    ) -> FallbackDecision {
        let now = Instant::now();
        let cx = FallbackContext {
            target: place,
            is_last: place + 1 == self.client.targets.len(),
            elapsed: now - self.started,
            remaining_deadline: self.deadline.map(|deadline| deadline.saturating_duration_since(now)),
        };
        self.history.append(&mut failure.attempts);
        let TargetFailure { error, what, .. } = failure;
        let decide = &self.client.fallback.decide;
        let decision = catch_unwind(AssertUnwindSafe(|| decide(&error, &cx))).unwrap_or(FallbackDecision::Stop);
        self.failures.push(Failure { place, target, model, error, what });
        decision
    }

    /// The chain ends for a reason of its own: no target is to blame, all that were tried are listed.
    fn ended(self, error: LlmError) -> LlmError {
        let targets: Vec<_> = self.failures.into_iter().map(Failure::listed).collect();
        let elapsed = self.started.elapsed();
        error.change_record(|record| {
            if !targets.is_empty() {
                let tried =
                    if targets.len() == 1 { "1 target".to_owned() } else { format!("{} targets", targets.len()) };
                record.message = format!("{}, {tried} tried over {}", record.message, Human(elapsed));
            }
            record.targets = targets;
        })
    }

    /// Every target that was to be tried has failed.
    fn exhausted(mut self) -> LlmError {
        let never_wrapped = |error: &LlmError| {
            matches!(error.kind(), ErrorKind::Aborted | ErrorKind::QuotaExceeded)
                || error.code() == Some(ErrorCode::DeadlineExceeded)
        };
        let Some(last) = self.failures.last() else {
            return LlmError::new(ErrorKind::Unknown, "the client has no target");
        };
        if self.failures.len() == 1 {
            return self.failures.remove(0).error;
        }
        let error = last.error.clone();
        if never_wrapped(&error) {
            return error
                .change_record(|record| record.targets = self.failures.into_iter().map(Failure::listed).collect());
        }
        let retryable = self.failures.iter().any(|failure| failure.error.is_retryable());
        let retry_after = self.failures.iter().filter_map(|failure| failure.error.retry_after()).min();
        let causes: Vec<_> = self.failures.iter().map(|f| format!("{}: {}", f.target.name, f.what)).collect();
        let message = format!("all {} targets failed: {}", causes.len(), causes.join("; "));
        let rest = error.clone();
        LlmError::of(ErrorCode::FallbackExhausted, message)
            .with_retryable(retryable)
            .change_record(|record| {
                record.status = rest.status();
                record.retry_after = retry_after;
                record.provider_code = rest.provider_code().map(str::to_owned);
                record.provider_type = rest.provider_type().map(str::to_owned);
                record.provider_message = rest.provider_message().map(str::to_owned);
                record.request_id = rest.request_id().map(str::to_owned);
                record.request = rest.request().cloned();
                record.targets = self.failures.into_iter().map(Failure::listed).collect();
            })
            .with_source(error)
    }
}

/// The target cannot write the call in its protocol's words: nothing was sent.
fn refused(error: LlmError) -> TargetFailure {
    let what = error.to_string();
    TargetFailure { error, what, attempts: Vec::new(), sent: false }
}

/// The target's settings for retries, with those of the call in their place.
pub(super) fn effective_retry<'a>(target: &'a ReadyTarget, options: &'a CallOptions) -> Cow<'a, Retry> {
    let base = options.retry.as_deref().unwrap_or(&target.retry);
    if options.max_retries.is_none() && options.idempotent.is_none() {
        return Cow::Borrowed(base);
    }
    let mut retry = base.clone();
    retry.max_retries = options.max_retries.unwrap_or(retry.max_retries);
    retry.idempotent = options.idempotent.unwrap_or(retry.idempotent);
    Cow::Owned(retry)
}

/// Lets the limiter pace by what a successful answer says of the provider's limits.
pub(super) fn follow(target: &ReadyTarget, limits: Option<&LimitHint>) {
    if let (Some(limiter), Some(hint)) = (&target.guards.limiter, limits) {
        limiter.follow(hint);
    }
}
